// Tensors and attributes of a safetensors file of published cases.
import { readFileSync } from "node:fs";

const types = { F32: Float32Array, F64: Float64Array, I32: Int32Array, I64: BigInt64Array, BOOL: Uint8Array };

export function readTensors(path) {
  const file = readFileSync(path);
  const header = Number(file.readBigUInt64LE(0));
  const entries = JSON.parse(file.subarray(8, 8 + header).toString());
  const tensors = {};
  const { __metadata__: about, ...others } = entries;
  const start = file.byteOffset + 8 + header;
  for (const [name, { dtype, shape, data_offsets: [begin, end] }] of Object.entries(others))
    if (types[dtype])
      tensors[name] = { shape, data: new types[dtype](file.buffer.slice(start + begin, start + end)) };
  return { about, tensors };
}
