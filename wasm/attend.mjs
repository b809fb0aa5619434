// attend in JavaScript: attention, and models in files that the caller has in
// memory. Works in browsers and node.
//
//   const attend = await load(bytesOfAttendWasm);
//   const { out } = attend.sdpa({ q, k, v, shape: { H: 12, T: 1024, S: 1024, D: 64 }, causal: true });
//
//   const model = attend.openModel("m.bin", { "m.bin": bytes, "tokenizer.bin": more });
//   const session = model.session();
//   for (const { text } of session.generate("Once upon a time")) …
//
// What C reports as a status is an Error here, with the same message. Models and
// sessions live in the module's memory until close().
import { memoryFiles } from "./files.mjs";
import { unicodeImports } from "./unicode.mjs";

const TEXTS = ["name", "family", "format", "dtype"];
const NUMBERS = ["layers", "width", "heads", "kvHeads", "headDim", "ffnWidth", "vocab", "context",
  "parameters"];
const CAUSAL = { false: 0, true: 1, "top-left": 1, "bottom-right": 2 };

/** @param source the bytes of attend.wasm, or a compiled WebAssembly.Module */
export async function load(source, { target } = {}) {
  let exports;
  const memory = () => exports.memory;
  const { files, calls } = memoryFiles(memory);
  const module = source instanceof WebAssembly.Module ? source : await WebAssembly.compile(source);
  const imports = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module))
    if (from === "wasi_snapshot_preview1") (imports[from] ??= {})[name] = calls[name];
  imports.attend = unicodeImports(memory);
  exports = (await WebAssembly.instantiate(module, imports)).exports;
  exports._initialize();
  const attend = new Attend(exports, files);
  attend.check(attend.withText(target, (name) => exports.attend_start(name)));
  return attend;
}

class Attend {
  constructor(exports, files) {
    this.c = exports;
    this.files = files;
  }

  get version() { return this.text(this.c.attend_version()); }
  get target() { return this.text(this.c.attend_target()); }
  get class() { return this.text(this.c.attend_class()); }

  /** A zero-terminated text of the module. */
  text(at) {
    const bytes = new Uint8Array(this.c.memory.buffer);
    return new TextDecoder().decode(bytes.subarray(at, bytes.indexOf(0, at)));
  }

  check(status) {
    if (status !== 0) throw new Error(this.text(this.c.attend_message()));
  }

  made(pointer) {
    if (!pointer) throw new Error(this.text(this.c.attend_message()));
    return pointer;
  }

  allocate(bytes) {
    const at = this.c.attend_allocate(bytes);
    if (!at) throw new Error(`no memory for ${bytes} bytes`);
    return at;
  }

  /** Calls back with addresses of copies of the arrays (0 for undefined ones); of { bytes }
   * with those of so much memory. */
  withArrays(arrays, use) {
    const taken = [];
    try {
      for (const array of arrays)
        taken.push(array ? this.allocate(array.byteLength ?? array.bytes) : 0);
      arrays.forEach((array, i) => {
        if (!array?.buffer) return;
        const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
        new Uint8Array(this.c.memory.buffer, taken[i], bytes.length).set(bytes);
      });
      return use(...taken);
    } finally {
      for (const at of taken) if (at) this.c.attend_release(at);
    }
  }

  withText(text, use) {
    return this.withArrays([text === undefined ? undefined : new TextEncoder().encode(`${text}\0`)],
      use);
  }

  /**
   * Attention on adjacent Float32Arrays: q [B,H,T,D], k [B,G,S,D], v [B,G,S,Dv]. shape has H, T, S,
   * D and, if they are not 1, H and D, also B, G and Dv. Optional: causal (true or "bottom-right"),
   * window [left, right] (-1: any), mask { data: Uint8Array, shape: 4 sizes }, bias { data, shape },
   * slopes, sinks, scale, softcap, weights: true. Returns { out, lse, weights }.
   */
  sdpa({ q, k, v, shape, causal = false, window, mask, bias, slopes, sinks, scale = Infinity,
    softcap = Infinity, weights = false }) {
    const { B = 1, H, G = H, T, S, D, Dv = D } = shape;
    expect("q", q, B * H * T * D);
    expect("k", k, B * G * S * D);
    expect("v", v, B * G * S * Dv);
    if (bias) expect("bias.data", bias.data, product(bias.shape));
    if (mask) expect("mask.data", mask.data, product(mask.shape));
    if (slopes) expect("slopes", slopes, H);
    if (sinks) expect("sinks", sinks, H);
    const sizes = [B * H * T * Dv, B * H * T, weights ? B * H * T * S : undefined];
    const results = sizes.map((n) => n !== undefined && { bytes: 4 * n });
    const arrays = [q, k, v, ...results, bias?.data, mask?.data, slopes, sinks];
    return this.withArrays(arrays, (...at) => {
      const words = [...at, B, H, G, T, S, D, Dv, ...(bias?.shape ?? [0, 0, 0, 0]),
        ...(mask?.shape ?? [0, 0, 0, 0]), CAUSAL[causal], Number(Boolean(window)),
        ...(window ?? [0, 0]), 0];
      const call = new ArrayBuffer(4 * words.length + 16);
      new Int32Array(call, 0, words.length).set(words);
      new Float64Array(call, 4 * words.length, 2).set([scale, softcap]);
      this.withArrays([new Uint8Array(call)], (c) => this.check(this.c.attend_sdpa(c)));
      const [out, lse, all] = sizes.map((n, i) => n === undefined ? undefined
        : new Float32Array(this.c.memory.buffer, at[3 + i], n).slice());
      return { out, lse, weights: all };
    });
  }

  /** Opens a model by name among `files` (name -> Uint8Array); without arguments the built-in one. */
  openModel(name, files = {}, { tokenizer } = {}) {
    for (const [file, bytes] of Object.entries(files)) this.files.set(file, bytes);
    try {
      return new Model(this, this.withText(name && `/${name}`, (path) =>
        this.withText(tokenizer && `/${tokenizer}`, (other) =>
          this.made(this.c.attend_model_open(path, other)))));
    } finally {
      for (const file of Object.keys(files)) this.files.delete(file);
    }
  }
}

class Model {
  constructor(attend, handle) {
    this.attend = attend;
    this.handle = handle;
    this.decoder = 0;
    this.info = {};
    TEXTS.forEach((key, i) => {
      this.info[key] = attend.text(attend.c.attend_model_text(handle, i));
    });
    NUMBERS.forEach((key, i) => { this.info[key] = attend.c.attend_model_number(handle, i); });
  }

  encode(text) {
    const { attend, attend: { c } } = this, bytes = new TextEncoder().encode(text);
    return attend.withArrays([bytes], (at) => {
      const encoding = attend.made(c.attend_encode(this.handle, at, bytes.length));
      const ids = new Int32Array(c.memory.buffer, c.attend_encoding_ids(encoding),
        c.attend_encoding_size(encoding)).slice();
      c.attend_encoding_free(encoding);
      return ids;
    });
  }

  decode(ids) {
    const { attend, attend: { c } } = this, list = Int32Array.from(ids);
    this.decoder ||= attend.made(c.attend_decoder_create(this.handle));
    return attend.withArrays([list, new Uint32Array(1)], (at, length) => {
      const text = attend.made(c.attend_decode(length, this.decoder, at, list.length));
      const bytes = new Uint32Array(c.memory.buffer, length, 1)[0];
      return new TextDecoder().decode(new Uint8Array(c.memory.buffer, text, bytes));
    });
  }

  isEnd(id) { return this.attend.c.attend_model_is_end(this.handle, id) !== 0; }

  session({ context = 0 } = {}) {
    return new Session(this,
      this.attend.made(this.attend.c.attend_session_create(this.handle, context)));
  }

  /** After its sessions. */
  close() {
    if (this.decoder) this.attend.c.attend_decoder_free(this.decoder);
    if (this.handle) this.attend.c.attend_model_close(this.handle);
    this.decoder = this.handle = 0;
  }
}

class Session {
  constructor(model, handle) {
    this.model = model;
    this.attend = model.attend;
    this.handle = handle;
  }

  get length() { return this.attend.c.attend_session_length(this.handle); }

  /** Reads ids; the logits after the last one, a copy. */
  eval(ids) {
    const { attend, attend: { c } } = this, list = Int32Array.from(ids);
    attend.withArrays([list], (at) =>
      attend.check(c.attend_session_eval(this.handle, at, list.length)));
    return new Float32Array(c.memory.buffer, c.attend_session_logits(this.handle),
      this.model.info.vocab).slice();
  }

  truncate(length) { this.attend.check(this.attend.c.attend_session_truncate(this.handle, length)); }

  /** The likeliest token, again and again: yields { id, text }. `prompt` is a text or ids. */
  *generate(prompt, { maxNew = 256 } = {}) {
    const ids = typeof prompt === "string" ? [...this.model.encode(prompt)] : [...prompt];
    let logits = this.eval(ids), before = this.model.decode(ids);
    for (let n = 0; n < maxNew && this.length < this.model.info.context; n++) {
      const id = logits.reduce((best, x, i) => (x > logits[best] ? i : best), 0);
      if (this.model.isEnd(id)) return;
      ids.push(id);
      const text = this.model.decode(ids);
      yield { id, text: text.slice(before.length) };
      before = text;
      logits = this.eval([id]);
    }
  }

  close() {
    if (this.handle) this.attend.c.attend_session_free(this.handle);
    this.handle = 0;
  }
}

function product(shape) { return shape.reduce((a, b) => a * b, 1); }

function expect(name, array, length) {
  if (array?.length !== length)
    throw new RangeError(`${name} has ${array?.length} elements, its shape ${length}`);
}
