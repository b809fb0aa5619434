// Conversations as attend writes them beside what the models' own chat templates
// write, run by Hugging Face's Jinja:
//   node chat_in_jinja.mjs ATTEND NODE_MODULES TOKENIZER [TEMPLATE.jinja …]
// The templates are those of popular models in @huggingface/ollama-utils, and the
// ones given. attend may refuse a template or a conversation; it may not write
// anything else. TOKENIZER begins texts with <s> and ends them with </s>. Ends with 1
// if anything differs, with 77 if the packages are not there.
import {execFileSync} from "node:child_process";
import {mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {createRequire} from "node:module";
import {tmpdir} from "node:os";
import {join, resolve} from "node:path";
import {pathToFileURL} from "node:url";

const [program, modules, tokenizer, ...files] = process.argv.slice(2);
const AT_LEAST = 66; // of the 97 templates of ollama-utils 0.0.18
let Template, collected;
try {
    const require = createRequire(resolve(modules) + "/");
    const jinja = require.resolve("@huggingface/jinja").replace(/index\.cjs$/, "index.js");
    ({Template} = await import(pathToFileURL(jinja)));
    const source = readFileSync(join(modules,
        "@huggingface/ollama-utils/src/chat-template-automap.ts"), "utf8");
    collected = (0, eval)(source.slice(source.indexOf("= [") + 2, source.lastIndexOf("]") + 1));
} catch (error) {
    console.error(`chat_in_jinja: ${error.message}`);
    process.exit(77);
}

const user = content => ({role: "user", content});
const assistant = content => ({role: "assistant", content});
const system = content => ({role: "system", content});
// No system message of white space alone: this Jinja takes it for false, as JavaScript does.
const conversations = [
    [user("u1")],
    [system(" sys "), user(" u1 ")],
    [system("sys"), user(" u1 "), assistant(" a1 "), user("u2\n")],
    [user(" u1 "), assistant(" a1\n"), user(" u2 "), assistant("<think>\nt\n</think>\n\nf"),
        user("u3")],
    [user("a"), assistant("<|im_end|>"), user("it's <s>")],
    [system("\ts\n"), user("\u00a0x\u3000"), assistant("é\t"), user("[INST] \\n {{ x }}")]
];

function attend(...words) {
    const quiet = {stdio: ["ignore", "pipe", "ignore"]};
    try {
        return JSON.parse(execFileSync(program, ["tokenizer", "chat", "-z", tokenizer, "--json",
            "--quiet", ...words], quiet));
    } catch {
        return null;
    }
}

function jinja(template, messages) {
    try {
        return new Template(template).render({messages, add_generation_prompt: true,
            bos_token: "<s>", eos_token: "</s>", date_string: "26 Jul 2024"});
    } catch {
        return null;
    }
}

const folder = mkdtempSync(join(tmpdir(), "attend-"));
let known = 0, compared = 0, failed = 0;
try {
    const templates = collected.map(x => [x.model, x.gguf]);
    for (const file of files) templates.push([file, readFileSync(file, "utf8")]);
    for (const [name, template] of templates) {
        const file = join(folder, "template");
        writeFileSync(file, template + "\n"); // a last newline does not count
        const format = attend("--template", file)?.format;
        if (!format) continue;
        known++;
        for (const messages of conversations) {
            const ours = attend("--template", file, ...messages.map(m => `${m.role}:${m.content}`));
            if (ours === null) continue;
            compared++;
            const theirs = jinja(template, messages);
            if (ours.text === theirs) continue;
            failed++;
            console.log(`FAIL ${name} as ${format}\n  got  ${JSON.stringify(ours.text)}\n` +
                `  want ${JSON.stringify(theirs)}`);
        }
    }
} finally {
    rmSync(folder, {recursive: true});
}
console.log(`${known} templates known, ${compared} conversations compared, ${failed} differ`);
process.exit(failed > 0 || known < AT_LEAST ? 1 : 0);
