// SPDX-License-Identifier: MIT
// A worker that runs one job of run.mjs: a text, or a test program.
import { answer } from "./engine.mjs";

async function fetched(url) {
    return new Uint8Array(await (await fetch(url)).arrayBuffer());
}

async function runProgram({ url, args }) {
    const lines = [];
    const print = (line) => lines.push(line);
    const { default: create } = await import(url);
    const code = await new Promise((resolve) => {
        create({ arguments: args ?? [], threads: 8, print, printErr: print, onExit: resolve }).catch((error) => {
            lines.push(String(error));
            resolve(1);
        });
    });
    return { code, text: lines.join("\n") };
}

self.onmessage = async ({ data }) => {
    try {
        const job = data.model ? { ...data, model: await fetched(data.model) } : data;
        self.postMessage(data.program ? await runProgram(job) : await answer(job));
    } catch (error) {
        self.postMessage({ error: String(error?.stack ?? error) });
    }
};
