// SPDX-License-Identifier: MIT
// Tests the npm package in Node, Chromium and Firefox:
//
//     node tests/web/package.mjs PACKAGE FRIT [ENGINE...]     PACKAGE: the built package, FRIT: the native command
//
// With the word "downloads" as an engine, browsers run the tests of downloads alone.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

import { run as runApi } from "./api.mjs";
import { BROWSERS, find, run } from "./browsers.mjs";
import { startFlaky } from "./flaky.mjs";

const [packageFolder, native, ...wanted] = process.argv.slice(2);
const here = import.meta.dirname ?? new URL(".", import.meta.url).pathname;
const source = resolve(here, "../.."), model = `${source}/models/fable.gguf`;
const folders = { "/package/": resolve(packageFolder), "/tests/": here, "/models/": `${source}/models` };
const text = { prompt: "Tell me the tale", n: 32, expected: "" };
text.expected = JSON.parse(execFileSync(native, ["run", "-m", model, "--raw", "-p", text.prompt, "-n", String(text.n), "--temp", "0", "--cpu", "scalar",
    "--json"], { stdio: ["ignore", "pipe", "ignore"] })).text;
const temporary = mkdtempSync(join(tmpdir(), "frit-parts-"));
execFileSync(native, ["convert", model, `${temporary}/parts.gguf`, "--split-max-size", "8M"], { stdio: "ignore" });
const flaky = await startFlaky(model, temporary);
const options = { ctx: 512 };

let nPassed = 0, nFailed = 0;
function report(engine, results) {
    for (const { name, error, skipped, note } of results) {
        if (error) nFailed++;
        else if (!skipped) nPassed++;
        console.log(error ? `FAIL ${engine}: ${name}: ${error}` : skipped ? `skip ${engine}: ${name}: ${skipped}` : `ok   ${engine}: ${name}${note ? `: ${note}` : ""}`);
    }
}

const onlyDownloads = wanted.includes("downloads");
const named = wanted.filter((name) => name !== "downloads");
const engines = named.length ? named : onlyDownloads ? Object.keys(BROWSERS) : ["node", ...Object.keys(BROWSERS)];
if (engines.includes("node")) {
    const api = await import(pathToFileURL(resolve(packageFolder, "dist/index.js")).href);
    report("node", await runApi({ api, model, bytes: () => readFileSync(model), text, options, isNode: true }));
}
for (const engine of engines.filter((name) => name !== "node")) {
    if (!find(engine)) {
        console.log(`skip ${engine}: it is not installed`);
        continue;
    }
    const page = { api: "/package/dist/index.js", dist: "/package/dist", model: "/models/fable.gguf", text, options, engine, origin: flaky.origin, hasParts: true,
                   size: statSync(model).size, sha256: createHash("sha256").update(readFileSync(model)).digest("hex") };
    for (const isolated of onlyDownloads ? [true] : [true, false]) {
        const jobs = [...(onlyDownloads ? [] : [{ ...page, page: "/tests/api.mjs" }]), ...(isolated ? [{ ...page, page: "/tests/downloads.mjs" }] : [])];
        for (const result of await run(engine, folders, jobs, { isolated, seconds: 600 }))
            report(isolated ? engine : `${engine} on one thread`, result.results ?? [{ name: "the page", error: result.error }]);
    }
}
flaky.close();
rmSync(temporary, { recursive: true });
console.log(`${nPassed} passed, ${nFailed} failed`);
process.exit(nFailed > 0 || nPassed === 0 ? 1 : 0);
