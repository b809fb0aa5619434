// attend.wasm through attend.mjs: published attention cases, the built-in model,
// a published model from memory, and what must be refused. ATTEND_WASM and
// ATTEND_SHARED say where the module and the published cases are.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { load } from "../attend.mjs";
import { readTensors } from "./tensors.mjs";

const wasm = readFileSync(process.env.ATTEND_WASM);
const attend = await load(wasm);
const shared = process.env.ATTEND_SHARED;
const skip = existsSync(`${shared}/golden`) ? false : "no published cases beside the project";

test("vector code is not what runs", () => {
  assert.equal(attend.target, "wasm128");
  assert.equal(attend.class, "muladd");
  assert.match(attend.version, /^\d+\.\d+\.\d+$/);
});

test("the module has grown by models that no page asks for", () => {
  assert.ok(wasm.length < 3e6, `${wasm.length} bytes`);
});

// What attend.mjs has no argument for is what the C golden runner covers.
function callOf({ about, tensors }) {
  if (about.op !== "sdpa" || tensors.q?.shape.length !== 4 || about.align === "explicit") return null;
  if (tensors.kv_lens || tensors.prefix_lens || tensors.doc_ids_q) return null;
  const { q, k, v, attn_mask: mask, alibi_slopes: slopes, sink } = tensors;
  const [B, H, T, D] = q.shape, [, G, S, Dv] = v.shape;
  const wide = mask && { data: mask.data, shape: [...Array(4 - mask.shape.length).fill(1), ...mask.shape] };
  const bottom = about.align === "bottom_right";
  const windowed = about.window_left !== "-1" || about.window_right !== "-1";
  if (bottom && about.causal !== "1" && (windowed || slopes)) return null;
  return {
    q: q.data, k: k.data, v: v.data, shape: { B, H, G, T, S, D, Dv },
    causal: about.causal === "1" && (bottom ? "bottom-right" : "top-left"),
    window: windowed ? [Number(about.window_left), Number(about.window_right)] : undefined,
    mask: mask?.data instanceof Uint8Array ? wide : undefined,
    bias: mask?.data instanceof Float32Array ? wide : undefined,
    slopes: slopes?.data, sinks: sink?.data,
    scale: Number(about.scale), softcap: Number(about.softcap) || Infinity,
  };
}

function furthest(got, wanted) {
  let worst = 0;
  wanted.forEach((x, i) => {
    const off = got[i] === x ? 0 : Math.abs(got[i] - x);
    if (!(off <= worst)) worst = off;
  });
  return worst;
}

test("published attention comes out otherwise", { skip }, () => {
  const folder = `${shared}/golden/sdpa`;
  let cases = 0;
  for (const name of readdirSync(folder)) {
    const file = readTensors(`${folder}/${name}`), call = callOf(file);
    if (!call) continue;
    const { out, lse } = attend.sdpa(call);
    for (const [what, got] of [["out", out], ["lse", lse]]) {
      const off = furthest(got, file.tensors[what].data);
      assert.ok(off <= Number(file.about[`tol_f32_${what}`]), `${name}: ${what} is off by ${off}`);
    }
    cases++;
  }
  assert.ok(cases > 100, `${cases} cases`);
});

test("weights are not those of the definition", () => {
  const { weights, out } = attend.sdpa({
    q: Float32Array.of(1), k: Float32Array.of(0, Math.log(3)), v: Float32Array.of(4, 8),
    shape: { H: 1, T: 1, S: 2, D: 1 }, weights: true,
  });
  assert.ok(Math.abs(weights[0] - 0.25) < 1e-6 && Math.abs(weights[1] - 0.75) < 1e-6);
  assert.ok(Math.abs(out[0] - 7) < 1e-5);
});

test("a wrong size or a bad argument passes", () => {
  const one = Float32Array.of(1), shape = { H: 1, T: 1, S: 1, D: 1 };
  assert.throws(() => attend.sdpa({ q: one, k: one, v: new Float32Array(2), shape }), /v has 2/);
  assert.throws(() => attend.sdpa({ q: one, k: one, v: one, shape, softcap: -1 }), /softcap/);
  assert.throws(() => attend.openModel("absent.bin"), /absent\.bin/);
  assert.throws(() => attend.openModel("m.bin", { "m.bin": new Uint8Array(100) }), Error);
});

test("the built-in model cannot be taken back and forth", () => {
  const model = attend.openModel(), session = model.session();
  assert.equal(model.info.name, "hand");
  assert.deepEqual([...model.encode("The cat")], [0, 1, 4]);
  const pieces = [...session.generate("The cat", { maxNew: 3 })];
  assert.equal(pieces.length, 3);
  assert.equal(model.decode([0, 1, 4, ...pieces.map((piece) => piece.id)]),
    model.decode([0, 1, 4]) + pieces.map((piece) => piece.text).join(""));
  const logits = session.eval([4]);
  session.truncate(session.length - 1);
  assert.deepEqual(session.eval([4]), logits);
  session.close();
  model.close();
});

test("a model from memory tells another story than published", { skip }, () => {
  const folder = `${shared}/golden_models/stories260k`;
  const bytes = (name) => new Uint8Array(readFileSync(`${folder}/${name}`));
  const model = attend.openModel("stories260K.bin",
    { "stories260K.bin": bytes("stories260K.bin"), "tok512.bin": bytes("tok512.bin") });
  const lines = readFileSync(`${folder}/expected/greedy.jsonl`, "utf8").trim().split("\n");
  for (const line of lines.slice(0, 4)) {
    const { prompt, prompt_ids: ids, greedy_ids: wanted, n_generated: count } = JSON.parse(line);
    assert.deepEqual([...model.encode(prompt)], ids);
    const session = model.session();
    const got = [...session.generate(prompt, { maxNew: count })].map((piece) => piece.id);
    assert.deepEqual(got, wanted.slice(ids.length, ids.length + got.length));
    assert.ok(got.length === count || wanted.length === ids.length + got.length, `${got.length} tokens`);
    session.close();
  }
  model.close();
});

test("characters have other properties than in Unicode", async () => {
  const { unicodeImports } = await import("../unicode.mjs");
  const host = unicodeImports(() => ({ buffer: new ArrayBuffer(128) }));
  assert.deepEqual([0x61, 0x300, 0x334, 0x345, 0x93c].map(host.char_class), [0, 230, 1, 240, 7]);
  assert.equal(host.char_compose(0x65, 0x301), 0xe9);
  assert.equal(host.char_is(0x24, 3), 1); // "$" is a symbol, yet ASCII's punctuation
  assert.equal(host.char_breaks(0x65, 0x301, 1), 0);
  assert.equal(host.char_breaks(0x301, 0x66, 0), 1);
});
