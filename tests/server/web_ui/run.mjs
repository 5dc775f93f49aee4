// SPDX-License-Identifier: MIT
// Uses the web UI of a running `frit serve` in Chromium:
//
//     node tests/server/web_ui/run.mjs build/release/frit [NAME]     NAME: only the tests with this in their names
//
// Each *_test.mjs exports tests, { name, server, options, run }: the test's name, its server (servers.mjs), options of
// the browser's context, and a function that uses the page. After each test, the page must have had no error, no
// violation of its Content-Security-Policy, and no request to another host.
import { readdirSync } from "node:fs";

import { CONTEXT, startBrowser, visit, watch } from "./browser.mjs";
import { GOLDENS, Servers } from "./servers.mjs";

const [frit, wanted = ""] = process.argv.slice(2);
const servers = new Servers(frit);
const browser = await startBrowser();
let failed = 0, ran = 0;

async function runOne(test) {
    if (!servers.has(test.server)) {
        console.log(`skip ${test.name}: ${GOLDENS} is not there`);
        return;
    }
    const url = await servers.url(test.server ?? "fable");
    const context = await browser.newContext({ ...CONTEXT, ...test.options });
    const opened = await watch(context, url);
    try {
        await visit(opened);
        await test.run(opened);
        opened.check(test.allowed);
        console.log(`ok   ${test.name}`);
    } catch (error) {
        failed++;
        console.log(`FAIL ${test.name}\n${error.stack}`);
        await opened.page.screenshot({ path: `${servers.folder}/failed-${failed}.png` }).catch(() => {});
    }
    ran++;
    await context.close();
}

try {
    for (const file of readdirSync(new URL(".", import.meta.url)).filter((name) => name.endsWith("_test.mjs")).sort()) {
        const { tests } = await import(`./${file}`);
        for (const test of tests) if (test.name.includes(wanted)) await runOne(test);
    }
} finally {
    await browser.close();
    await servers.stop(failed > 0);
}
console.log(`${ran} tests, ${failed} failed`);
process.exit(failed > 0 || ran === 0 ? 1 : 0);
