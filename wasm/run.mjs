// Runs a program built for WASI: node wasm/run.mjs PROGRAM.wasm [ARGUMENT...]
// It sees the files that a native program would see.
import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";
import { argv, env } from "node:process";

import { unicodeImports } from "./unicode.mjs";

const [, , program, ...rest] = argv;
const wasi = new WASI({ version: "preview1", args: [program, ...rest], env, preopens: { "/": "/" } });
const module = await WebAssembly.compile(await readFile(program));
let instance;
const attend = unicodeImports(() => instance.exports.memory);
instance = await WebAssembly.instantiate(module, { ...wasi.getImportObject(), attend });
// At once: node 20 crashes when it takes down an instance that has opened many files.
process.exit(wasi.start(instance));
