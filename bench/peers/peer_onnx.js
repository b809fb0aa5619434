// peer_onnx.js — ONNX Runtime's attention operators, through npm's onnxruntime-node:
// node peer_onnx.js FOLDER, where FOLDER holds node_modules.
//
// A model of one operator is written in memory and run on the CPU. Calls in a
// row are nodes in a row, so what JavaScript costs is paid once a run. Its
// threads stop spinning at the end of each run, so that the peer measured next
// has the machine for itself. GroupQueryAttention decodes in place: past and
// present are one buffer, as its users have it.
'use strict';

const fs = require('fs');
const path = require('path');
const readline = require('readline');
const {model} = require('./onnx_model.js');

const MICROSOFT = 'com.microsoft';
const say = line => process.stdout.write(line + '\n');
const [folder] = process.argv.slice(2);
let ort, version;
try {
  const where = path.join(path.resolve(folder || '.'), 'node_modules', 'onnxruntime-node');
  ort = require(where);
  version = require(path.join(where, 'package.json')).version;
} catch (error) {
  say('absent\tonnxruntime-node cannot be loaded: ' + String(error.message).split('\n')[0]);
  process.exit(0);
}

// A file of the case, [B,heads,n,D], as it is or as [B,n,heads·D].
function load(c, name, heads, n, interleave) {
  const raw = fs.readFileSync(path.join(c.folder, `${name}.${c.dtype}`));
  const Type = c.dtype === 'f16' ? Uint16Array : Float32Array;
  const from = new Type(raw.buffer, raw.byteOffset, raw.length / Type.BYTES_PER_ELEMENT);
  const type = c.dtype === 'f16' ? 'float16' : 'float32';
  if (!interleave) return new ort.Tensor(type, from, [c.b, heads, n, c.d]);
  const to = new Type(from.length);
  for (let b = 0, at = 0; b < c.b; b++)
    for (let h = 0; h < heads; h++)
      for (let i = 0; i < n; i++, at += c.d)
        to.set(from.subarray(at, at + c.d), ((b * n + i) * heads + h) * c.d);
  return new ort.Tensor(type, to, [c.b, n, heads * c.d]);
}

const int32 = (data, dims) => new ort.Tensor('int32', Int32Array.from(data), dims);

// What each operator is fed and how it is written; a string is a refusal.
const operators = {
  MultiHeadAttention(c) {
    if (c.h !== c.g) return 'no grouped heads';
    if (c.dtype !== 'f32') return 'f32 only';
    return {
      domain: MICROSOFT,
      attributes: {num_heads: c.h, unidirectional: c.causal && c.t > 1 ? 1 : 0},
      feeds: {q: load(c, 'q', c.h, c.t, true), k: load(c, 'k', c.g, c.s, true),
              v: load(c, 'v', c.g, c.s, true)},
      inputs: ['k', 'v'],
      interleaved: true,
    };
  },

  GroupQueryAttention(c) {
    if (!c.causal) return 'always causal';
    const common = {
      domain: MICROSOFT,
      attributes: {num_heads: c.h, kv_num_heads: c.g},
      interleaved: true,
    };
    const lengths = {seqlens: int32(Array(c.b).fill(c.s - 1), [c.b]), total: int32([c.s], [1])};
    const q = load(c, 'q', c.h, c.t, true);
    if (c.t === c.s)
      return {...common,
              feeds: {q, k: load(c, 'k', c.g, c.s, true), v: load(c, 'v', c.g, c.s, true),
                      ...lengths},
              inputs: ['k', 'v', '', '', 'seqlens', 'total']};
    if (c.t !== 1) return 'prefill or one token';
    // The newest key comes as an input, and the operator puts it in its place.
    const past_k = load(c, 'k', c.g, c.s, false), past_v = load(c, 'v', c.g, c.s, false);
    const newest = past => {
      const data = new past.data.constructor(c.b * c.g * c.d);
      for (let i = 0; i < c.b * c.g; i++) {
        const last = past.data.subarray(((i + 1) * c.s - 1) * c.d, (i + 1) * c.s * c.d);
        data.set(last, i * c.d);
        last.fill(0);
      }
      return new ort.Tensor(past.type, data, [c.b, 1, c.g * c.d]);
    };
    return {...common,
            feeds: {q, k: newest(past_k), v: newest(past_v), past_k, past_v, ...lengths},
            inputs: ['k', 'v', 'past_k', 'past_v', 'seqlens', 'total'],
            present: {present_k: past_k, present_v: past_v}};
  },

  Attention(c) {
    return {
      attributes: {is_causal: c.causal && c.t > 1 ? 1 : 0},
      feeds: {q: load(c, 'q', c.h, c.t, false), k: load(c, 'k', c.g, c.s, false),
              v: load(c, 'v', c.g, c.s, false)},
      inputs: ['k', 'v'],
      interleaved: false,
    };
  },
};

// A model that applies the operator `chain` times.
function build(c, op) {
  const nodes = [], presents = Object.keys(op.present || {});
  for (let i = 0; i < c.chain; i++)
    nodes.push({op: c.variant, domain: op.domain, attributes: op.attributes,
                inputs: [i ? `o${i - 1}` : 'q', ...op.inputs],
                outputs: [i === c.chain - 1 ? 'out' : `o${i}`, ...presents]});
  const described = ([name, tensor]) => ({name, type: tensor.type, dims: tensor.dims});
  return model({nodes, inputs: Object.entries(op.feeds).map(described),
                outputs: [{name: 'out', type: op.feeds.q.type, dims: op.feeds.q.dims},
                          ...Object.entries(op.present || {}).map(described)]});
}

let current = null;

async function prepare(c) {
  const op = operators[c.variant](c);
  if (typeof op === 'string') return op;
  if (op.present && c.chain > 1) return 'no chain of decode steps';
  if (current) await current.session.release();
  current = null;
  const session = await ort.InferenceSession.create(build(c, op), {
    executionProviders: ['cpu'],
    intraOpNumThreads: c.threads,
    interOpNumThreads: 1,
    extra: {session: {force_spinning_stop: '1'}},
  });
  // The output's memory is ours and the same in every run.
  const q = op.feeds.q;
  const out = new ort.Tensor(q.type, new q.data.constructor(q.data.length), q.dims);
  current = {c, op, session, fetches: {out, ...op.present}};
  return null;
}

const call = () => current.session.run(current.op.feeds, current.fetches);

// As in worker.c: short ones are warmed up and repeated for about 20 ms.
async function measure() {
  const now = () => Number(process.hrtime.bigint()) * 1e-9;
  let start = now();
  await call();
  const once = now() - start;
  if (once > 0.05) return once / current.c.chain;
  const times = 1 + Math.floor(0.02 / Math.max(once, 1e-6));
  start = now();
  for (let i = 0; i < times; i++) await call();
  return (now() - start) / times / current.c.chain;
}

function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction);
}

// The output as f32 [B,H,T,D].
function dump(file) {
  const {c, op, fetches} = current, from = fetches.out.data;
  const to = new Float32Array(from.length);
  const widen = fetches.out.type === 'float16' ? fromHalf : x => x;
  for (let b = 0, at = 0; b < c.b; b++)
    for (let h = 0; h < c.h; h++)
      for (let t = 0; t < c.t; t++)
        for (let d = 0; d < c.d; d++, at++)
          to[at] = widen(from[op.interleaved ? ((b * c.t + t) * c.h + h) * c.d + d : at]);
  fs.writeFileSync(file, to);
  return 'done';
}

function readCase(words) {
  const [folder, b, h, g, d, t, s, causal, dtype, threads, chain, variant] = words;
  return {folder, b: +b, h: +h, g: +g, d: +d, t: +t, s: +s, causal: +causal === 1, dtype,
          threads: +threads, chain: +chain, variant};
}

async function answer(line) {
  const [command, ...words] = line.split(' ');
  if (command === 'case') {
    const no = await prepare(readCase(words));
    return no ? 'no ' + no : 'ready';
  }
  if (command === 'run') return (await measure()).toFixed(9);
  if (command === 'dump') return dump(words[0]);
  return 'no such command';
}

async function main() {
  say(`peer\tONNX Runtime\t${version}\t${Object.keys(operators)}`);
  for await (const line of readline.createInterface({input: process.stdin}))
    say(await answer(line).catch(error => 'no ' + String(error.message).split('\n')[0]));
}

main();
