// SPDX-License-Identifier: MIT
// Copies the modules into a package or a page. Threads of emscripten's module load the file of its own name beside it,
// but bundlers give files other names, and a worker cannot be of another origin: the copy loads its own address, or what
// Module.threadScript says.
import { cpSync, readFileSync, writeFileSync } from "node:fs";

const WORKER = /new Worker\(new URL\("[\w.-]+",\s*import\.meta\.url\),/g;

export function copyModules(web, out) {
    for (const name of ["frit", "frit-relaxed"]) {
        const script = readFileSync(`${web}/${name}.js`, "utf8"), n = script.match(WORKER)?.length ?? 0;
        if (n !== 1) throw new Error(`${web}/${name}.js: starts workers in ${n} places, expected one`);
        writeFileSync(`${out}/${name}.js`, script.replace(WORKER, 'new Worker(Module["threadScript"]?.()??new URL(import.meta.url),'));
        cpSync(`${web}/${name}.wasm`, `${out}/${name}.wasm`);
    }
}
