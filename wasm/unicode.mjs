// What src/text/normalize_wasm.c asks the host about characters.
const classes = [
  /^\p{M}$/u, /^\p{Mn}$/u, /^\p{N}$/u, /^\p{P}$/u, /^[\p{Cc}\p{Cf}\p{Co}\p{Cs}]$/u,
  /^[\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\u200C\u200D\u24B6-\u24E9\u{1F130}-\u{1F149}\u{1F150}-\u{1F169}\u{1F170}-\u{1F189}]$/u,
];
const PUNCTUATION = 3;

// A mark of each canonical combining class: normalising puts the smaller class first.
const marks = [
  [1, 0x334], [6, 0x16ff0], [7, 0x93c], [8, 0x3099], [9, 0x94d], [10, 0x5b0], [11, 0x5b1],
  [12, 0x5b2], [13, 0x5b3], [14, 0x5b4], [15, 0x5b5], [16, 0x5b6], [17, 0x5b7], [18, 0x5b8],
  [19, 0x5b9], [20, 0x5bb], [21, 0x5bc], [22, 0x5bd], [23, 0x5bf], [24, 0x5c1], [25, 0x5c2],
  [26, 0xfb1e], [27, 0x64b], [28, 0x64c], [29, 0x64d], [30, 0x64e], [31, 0x64f], [32, 0x650],
  [33, 0x651], [34, 0x652], [35, 0x670], [36, 0x711], [84, 0xc55], [91, 0xc56], [103, 0xe38],
  [107, 0xe48], [118, 0xeb8], [122, 0xec8], [129, 0xf71], [130, 0xf72], [132, 0xf74],
  [202, 0x321], [214, 0x1dce], [216, 0x31b], [218, 0x302a], [220, 0x316], [222, 0x59a],
  [224, 0x302e], [226, 0x1d16d], [228, 0x5ae], [230, 0x300], [232, 0x315], [233, 0x35c],
  [234, 0x35d], [240, 0x345],
];

const text = (...codes) => String.fromCodePoint(...codes);

function combiningClass(code) {
  if (!/^\p{M}$/u.test(text(code))) return 0;
  const goesBefore = (mark) => text(0x61, mark, code).normalize("NFD") !== text(0x61, mark, code);
  if (code !== 0x345 && !goesBefore(0x345)) return 0;
  let found = 0;
  for (const [value, mark] of marks) if (!goesBefore(mark)) found = value;
  return found;
}

const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });
let cluster = "";

export function unicodeImports(memory) {
  return {
    char_is(code, what) {
      if (what === PUNCTUATION && code < 0x80) return Number(/[!-/:-@[-`{-~]/.test(text(code)));
      return Number(classes[what].test(text(code)));
    },
    char_class: combiningClass,
    char_map(out, most, code, how) {
      const from = text(code);
      const lower = [...from.toLowerCase()].length > 1 && code !== 0x130 ? from : from.toLowerCase();
      const to = how === 2 ? lower : from.normalize(how === 1 ? "NFKD" : "NFD");
      const codes = [...to].map((c) => c.codePointAt(0));
      const result = codes.length <= most ? codes : [code];
      new Uint32Array(memory().buffer, out, result.length).set(result);
      return result.length;
    },
    char_compose(first, second) {
      const composed = [...text(first, second).normalize("NFC")];
      return composed.length === 1 ? composed[0].codePointAt(0) : 0;
    },
    // Neighbours of one text in order: the cluster so far decides with them.
    char_breaks(before, after, begins) {
      const joined = (begins ? text(before) : cluster) + text(after);
      const breaks = [...segmenter.segment(joined)].length > 1;
      cluster = breaks ? text(after) : joined;
      return Number(breaks);
    },
  };
}
