// GFLOP/s of attention in this engine: node wasm/bench.mjs build/wasm/attend.wasm
// Best of ten calls, H=12 D=64 T=1024; counts allowed pairs only. Copying the
// arrays in and out of the module is part of a call.
import { readFileSync } from "node:fs";
import { argv } from "node:process";

import { load } from "./attend.mjs";

const H = 12, D = 64, T = 1024;
const attend = await load(readFileSync(argv[2]));
const numbers = () => Float32Array.from({ length: H * T * D }, () => Math.random() - 0.5);
const q = numbers(), k = numbers(), v = numbers();
for (const causal of [true, false]) {
  let best = Infinity;
  for (let round = 0; round < 10; round++) {
    const begin = performance.now();
    attend.sdpa({ q, k, v, shape: { H, T, S: T, D }, causal });
    best = Math.min(best, performance.now() - begin);
  }
  const pairs = causal ? (T * (T + 1)) / 2 : T * T;
  const rate = (4 * pairs * H * D) / best / 1e6;
  console.log(`${attend.target} causal ${causal}: ${best.toFixed(1)} ms, ${rate.toFixed(1)} GFLOP/s`);
}
