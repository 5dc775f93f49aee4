// SPDX-License-Identifier: MIT
// Measures the modules of build/web with a model, in tokens a second of a prompt and of an answer:
//
//     node tests/web/bench.mjs build/web MODEL.gguf [ENGINE] [ROUNDS]     ENGINE: chromium (the default), firefox
//
// `frit bench MODEL.gguf -t 1` measures the native command.
import { basename, dirname, resolve } from "node:path";

import { run } from "./browsers.mjs";

const [web, model, engine = "chromium", rounds = "3"] = process.argv.slice(2);
const here = import.meta.dirname ?? new URL(".", import.meta.url).pathname;
const folders = { "/web/": resolve(web), "/tests/": here, "/model/": dirname(resolve(model)) };
const prompt = "The quick brown fox jumps over the lazy dog, and the miller's daughter spins straw into gold. ".repeat(6);
const settings = [["frit", 1, "scalar"], ["frit", 1], ["frit", 2], ["frit-relaxed", 1], ["frit-relaxed", 2]];
const jobs = [];
for (let round = 0; round < Number(rounds); round++)
    for (const [module, threads, cpu] of settings)
        jobs.push({ url: `/web/${module}.js`, model: `/model/${basename(model)}`, prompt, nTokens: 64, threads, cpu });
const results = await run(engine, folders, jobs, { seconds: 900 });

function median(values) {
    return [...values].sort((a, b) => a - b)[values.length >> 1];
}

console.log("| module | threads | kernels | prompt | decode | heap, MiB |\n| --- | --- | --- | --- | --- | --- |");
settings.forEach(([module, threads, cpu], i) => {
    const mine = results.filter((_, at) => at % settings.length === i);
    const failed = mine.find((result) => result.error);
    if (failed) console.log(`| ${module} | ${threads} | | ${failed.error} | | |`);
    else console.log(`| ${module} | ${threads} | ${cpu ?? "vectors"} | ${median(mine.map((r) => r.prompt)).toFixed(1)} | ` +
        `${median(mine.map((r) => r.decode)).toFixed(1)} | ${(mine[0].heap / 2 ** 20).toFixed(0)} |`);
});
