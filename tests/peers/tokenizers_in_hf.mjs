// What attend's tokenizers give beside Hugging Face's own library, in its native build:
//   node tokenizers_in_hf.mjs ATTEND NODE_MODULES TEXT SHARED [NAME=tokenizer.json …]
// 1. a vocabulary that attend learns from TEXT: the merges are those that the native
//    trainer learns, and the native library reads the file and gives the same ids;
// 2. speed on 5 MB of TEXT, one thread, in turns: attend's time over the native one's,
//    for GPT-2 and each tokenizer NAMEd.
// Ends with 1 if anything differs, with 77 if the native library is not there.
import {execFileSync} from "node:child_process";
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {createRequire} from "node:module";
import {tmpdir} from "node:os";
import {join, resolve} from "node:path";

process.env.RAYON_NUM_THREADS = "1";
process.env.TOKENIZERS_PARALLELISM = "false";
const [program, modules, textPath, shared, ...named] = process.argv.slice(2);
let native;
try {
    native = createRequire(resolve(modules) + "/")("tokenizers");
} catch (error) {
    console.error(`tokenizers_in_hf: ${error.message}`);
    process.exit(77);
}
const folder = mkdtempSync(join(tmpdir(), "attend-"));
const NATIVE_VOCABULARY = 30000; // of the native library's default trainer
const TURNS = 3, BYTES = 5e6;
let failed = 0;

function attend(...words) {
    const most = 1 << 30;
    return JSON.parse(execFileSync(program, [...words, "--json", "--quiet"], {maxBuffer: most}));
}

function check(what, good) {
    console.log(`${good ? "ok  " : "FAIL"} ${what}`);
    if (!good) failed++;
}

const merges = json => json.model.merges.map(m => Array.isArray(m) ? m.join(" ") : m);
const same = (a, b) => a.length === b.length && a.every((x, i) => x === b[i]);

// The native trainer cuts texts at line ends, whatever the pattern: no two of them here.
function nativeMerges(path) {
    const tokenizer = new native.Tokenizer(native.BPE.empty());
    tokenizer.setPreTokenizer(native.byteLevelPreTokenizer(false));
    tokenizer.train([path]);
    tokenizer.save(join(folder, "native.json"));
    return merges(JSON.parse(readFileSync(join(folder, "native.json"), "utf8")));
}

async function checkTraining() {
    const file = join(folder, "tokenizer.json");
    const lines = join(folder, "lines");
    writeFileSync(lines, readFileSync(textPath, "utf8").replace(/\s*\n\s*/g, "\n"));
    const theirs = nativeMerges(lines);
    const train = (...options) => attend("tokenizer", "train", lines, "-o", file, ...options);
    train("-v", String(NATIVE_VOCABULARY + 256), "--min-count", "1");
    const ours = merges(JSON.parse(readFileSync(file, "utf8")));
    const shorter = Math.min(ours.length, theirs.length);
    check(`${shorter} merges learned from ${textPath}`,
        shorter > 1000 && same(ours.slice(0, shorter), theirs.slice(0, shorter)));
    const strings = readFileSync(join(shared, "golden_models/tokenizers/strings.jsonl"), "utf8")
        .trim().split("\n").map(line => JSON.parse(line).text)
        .filter(text => text.length < 10000 && !text.includes("\0"));
    for (const pattern of ["gpt-2", "llama3", "gpt-4o", "tekken", "\\w+|[^\\w]"]) {
        train("-v", "3000", "--pattern", pattern, "--special", "<|endoftext|>", "--special", "<s>",
            "--begin", "<s>");
        const tokenizer = native.Tokenizer.fromFile(file);
        let equal = 0;
        for (const text of strings) {
            writeFileSync(join(folder, "text"), text + "\n");
            const {ids} = attend("tokenize", "-z", file, "-f", join(folder, "text"),
                "--parse-special");
            const encoding = await tokenizer.encode(text, null, {addSpecialTokens: true});
            if (same(ids, encoding.getIds())) equal++;
        }
        check(`${equal} of ${strings.length} texts alike, pattern ${pattern}`,
            equal === strings.length);
    }
}

const median = times => times.sort((a, b) => a - b)[times.length >> 1];

async function measure(name, path) {
    const text = readFileSync(textPath, "utf8");
    const large = text.repeat(Math.ceil(BYTES / text.length)).slice(0, BYTES);
    const file = join(folder, "large");
    writeFileSync(file, large);
    const tokenizer = native.Tokenizer.fromFile(path);
    const times = {attend: [], native: []};
    let counts;
    for (let turn = 0; turn < TURNS; turn++) {
        const {tokens, seconds} = attend("tokenize", "--count", "-z", path, "-f", file,
            "--no-special", "--threads", "1");
        const start = performance.now();
        const encoding = await tokenizer.encode(large, null, {addSpecialTokens: false});
        times.native.push((performance.now() - start) / 1000);
        times.attend.push(seconds);
        counts = [tokens, encoding.getLength()];
    }
    const ratio = median(times.native) / median(times.attend);
    check(`${name}: ${counts[0]} tokens, ${ratio.toFixed(2)} × the native speed`,
        ratio >= 1 && counts[0] === counts[1]);
}

try {
    await checkTraining();
    await measure("gpt2", join(shared, "golden_models/tokenizers/gpt2/tokenizer.json"));
    for (const one of named) await measure(...one.split("="));
} finally {
    rmSync(folder, {recursive: true});
}
process.exit(failed > 0 ? 1 : 0);
