// SPDX-License-Identifier: MIT
// Tests the modules of build/web in Node, Chromium and Firefox:
//
//     node tests/web/run.mjs build/web build/release/frit [ENGINE...]     ENGINE: node, chromium, firefox; default: all
//
// Texts must be those of the native command with plain C kernels, logits must have the same bits in all engines, and all
// programs that test kernels must pass. What an engine does not have is left out, with a line.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

import { BROWSERS, find, run } from "./browsers.mjs";

const [web, native, ...wanted] = process.argv.slice(2);
const here = import.meta.dirname ?? new URL(".", import.meta.url).pathname;
const source = resolve(here, "../..");
const folders = { "/web/": resolve(web), "/tests/": here, "/models/": `${source}/models`, "/shared/": `${source}/../shared/models` };
const N_TOKENS = 64;

const MODELS = [
    { path: "/models/fable.gguf", prompt: "Tell me the tale" },
    { path: "/shared/stories260k-f32.gguf", prompt: "Once upon a time" },
];
const SETTINGS = [
    { module: "frit", threads: 1, cpu: "scalar" },
    { module: "frit", threads: 1 },
    { module: "frit", threads: 2 },
    { module: "frit-relaxed", threads: 1 },
    { module: "frit-relaxed", threads: 2 },
];

function fileOf(path) {
    const prefix = Object.keys(folders).find((each) => path.startsWith(each));
    return `${folders[prefix]}/${path.slice(prefix.length)}`;
}

const models = MODELS.filter(({ path }) => existsSync(fileOf(path)));
for (const model of models)
    model.text = JSON.parse(execFileSync(native, ["run", "-m", fileOf(model.path), "--raw", "-p", model.prompt, "-n",
        String(N_TOKENS), "--temp", "0", "--cpu", "scalar", "--json"], { stdio: ["ignore", "pipe", "ignore"] })).text;

const texts = models.flatMap((model) => SETTINGS.map((setting) => ({
    name: `${model.path.split("/").at(-1)} ${setting.module} ${setting.threads} ${setting.cpu ?? ""}`.trim(),
    url: `/web/${setting.module}.js`, model: model.path, prompt: model.prompt, nTokens: N_TOKENS,
    threads: setting.threads, cpu: setting.cpu, expected: model.text,
})));
const programs = (existsSync(`${web}/tests`) ? readdirSync(`${web}/tests`) : [])
    .filter((file) => file.endsWith(".js") && !file.endsWith(".worker.js"))
    .map((file) => ({ name: file, program: true, url: `/web/tests/${file}` }));

let nFailed = 0, nRan = 0;
const bits = new Map();   // name of a job -> bits of its logits, of the first engine

function report(engine, job, result) {
    let problem = result.error;
    if (!problem && job.program && result.code !== 0) problem = `ended with ${result.code}\n${result.text}`;
    if (!problem && !job.program && result.text !== job.expected)
        problem = `wrote '${result.text}', expected '${job.expected}'`;
    if (!problem && !job.program) {
        const key = `${job.model} ${job.cpu ?? "vectors"}`;   // neither threads nor relaxed SIMD change a bit
        if (!bits.has(key)) bits.set(key, result.bits);
        if (bits.get(key) !== result.bits) problem = `logits have the bits ${result.bits}, expected ${bits.get(key)}`;
    }
    nRan++;
    if (problem) nFailed++;
    const speed = job.program ? "" : `  prompt ${result.prompt?.toFixed(0)}, decode ${result.decode?.toFixed(0)} tokens/s`;
    console.log(problem ? `FAIL ${engine}: ${job.name}: ${problem}` : `ok   ${engine}: ${job.name}${speed}`);
}

// Every job of Node is a process of its own.
function runNode(job) {
    const program = spawnSync(process.execPath, [`${here}/node.mjs`, JSON.stringify({ ...job, url: pathToFileURL(fileOf(job.url)).href, model: job.model && fileOf(job.model) })],
        { encoding: "utf8", maxBuffer: 1 << 26 });
    if (job.program) return { code: program.status, text: program.stdout + program.stderr };
    try {
        return JSON.parse(program.stdout);
    } catch {
        return { error: program.stdout + program.stderr };
    }
}

// Node 20 has relaxed SIMD of an earlier draft, behind a flag.
const isRelaxed = (job) => job.program || job.url.includes("relaxed");
const hasRelaxed = WebAssembly.validate(readFileSync(`${web}/frit-relaxed.wasm`));
const jobs = [...texts, ...programs];
const engines = wanted.length ? wanted : ["node", ...Object.keys(BROWSERS)];
if (engines.includes("node")) {
    for (const job of jobs.filter((each) => hasRelaxed || !isRelaxed(each))) report("node", job, runNode(job));
    if (!hasRelaxed) console.log(`skip node: version ${process.versions.node} has no relaxed SIMD`);
}
for (const engine of engines.filter((name) => name !== "node")) {
    if (!find(engine)) {
        console.log(`skip ${engine}: it is not installed`);
        continue;
    }
    (await run(engine, folders, jobs)).forEach((result, i) => report(engine, jobs[i], result));
    // Without cross-origin isolation the same module runs on one thread.
    const alone = texts.filter((job) => job.threads === 2 && !job.cpu);
    (await run(engine, folders, alone, { isolated: false })).forEach((result, i) =>
        report(engine, { ...alone[i], name: `${alone[i].name}, not isolated` },
            result.isolated ? { error: "the page is isolated" } : result));
}
console.log(`${nRan - nFailed} passed, ${nFailed} failed`);
process.exit(nFailed > 0 || nRan === 0 ? 1 : 0);
