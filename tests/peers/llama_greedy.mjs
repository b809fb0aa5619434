// Greedy tokens of GGUF files by llama.cpp, through node-llama-cpp:
//   node llama_greedy.mjs NODE_MODULES  < lines of {"file", "ids", "n"}
// or {"file", "text"}, whose answer is the text's tokens;
// prints a line of {"tokens"} or {"error"} for each, the former with "likely": the
// most probable tokens of each step and their probabilities. Weights stay as
// they are in the file, the cache is F32; one thread, so that its sums have one order.
import {createInterface} from "node:readline";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const require = createRequire(process.argv[2] + "/");
const {getLlama, LlamaLogLevel} = await import(pathToFileURL(require.resolve("node-llama-cpp")));
const llama = await getLlama({
    gpu: false, build: "never", logLevel: LlamaLogLevel.error, maxThreads: 1,
    skipDownload: true, progressLogs: false
});

const LIKELY = 20;

async function greedy({file, ids, n}) {
    const model = await llama.loadModel({modelPath: file, gpuLayers: 0});
    const context = await model.createContext({contextSize: 128, flashAttention: false,
        experimentalKvCacheKeyType: "F32", experimentalKvCacheValueType: "F32"});
    const tokens = [], likely = [];
    const steps = context.getSequence().evaluateWithMetadata(ids, {probabilities: true},
        {temperature: 0});
    for await (const {token, probabilities} of steps) {
        tokens.push(token);
        likely.push([...probabilities].sort((a, b) => b[1] - a[1]).slice(0, LIKELY));
        if (tokens.length === n) break;
    }
    await context.dispose();
    await model.dispose();
    return {tokens, likely};
}

// As llama.cpp would for a prompt: special tokens typed in it are text.
async function tokenize({file, text}) {
    const model = await llama.loadModel({modelPath: file, gpuLayers: 0});
    const {bos, shouldPrependBosToken} = model.tokens;
    const tokens = [...(shouldPrependBosToken ? [bos] : []), ...model.tokenize(text, false)];
    await model.dispose();
    return {tokens};
}

for await (const line of createInterface({input: process.stdin})) {
    let answer;
    try {
        const question = JSON.parse(line);
        answer = await ("text" in question ? tokenize : greedy)(question);
    } catch (error) {
        answer = {error: String(error)};
    }
    console.log(JSON.stringify(answer));
}
process.exit(0);
