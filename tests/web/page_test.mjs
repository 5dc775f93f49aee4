// SPDX-License-Identifier: MIT
// Uses the page that chats on the visitor's device, in Chromium: chooses the bundled model, gets an answer, loads the page
// again without a network, and looks for faults of accessibility.
//
//     node tests/web/page_test.mjs PAGE TOOLS [PICTURES]     PAGE: the built page; TOOLS: playwright-core and axe-core
import { createReadStream, existsSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join, resolve } from "node:path";

import { BROWSERS, find } from "./browsers.mjs";

const [pageFolder, tools, pictures] = process.argv.slice(2);
const here = import.meta.dirname ?? new URL(".", import.meta.url).pathname, model = resolve(here, "../../models/fable.gguf");
const require = createRequire(resolve(tools, "package.json")), { chromium } = require("playwright-core");
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".svg": "image/svg+xml", ".json": "application/json" };
const models = [{ id: "Fable 30M", url: "fable.gguf", size: statSync(model).size, note: "Tales of the Brothers Grimm." },
                { id: "A model of 70B", url: "large.gguf", size: 40e9, note: "Too large for a browser." }];

// A server without headers for isolation, as most hosts of static files are.
const server = createServer((request, response) => {
    const path = new URL(request.url, "http://x").pathname;
    if (path === "/models.json") return void response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(models));
    const file = path === "/fable.gguf" ? model : join(pageFolder, path === "/" ? "index.html" : path);
    if (!existsSync(file)) return void response.writeHead(404).end();
    const size = statSync(file).size, range = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? "");
    const [from, to] = range ? [Number(range[1]), Math.min(Number(range[2]), size - 1)] : [0, size - 1];
    response.writeHead(range ? 206 : 200, { "Content-Type": TYPES[extname(file)] ?? "application/octet-stream", "Content-Length": to - from + 1,
                                            ...(range ? { "Content-Range": `bytes ${from}-${to}/${size}` } : {}) });
    createReadStream(file, { start: from, end: to }).pipe(response);
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const address = `http://127.0.0.1:${server.address().port}/`;
const browser = await chromium.launch({ executablePath: `/usr/bin/${find("chromium") ?? BROWSERS.chromium.commands[0]}`, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1200, height: 800 } }), page = await context.newPage(), errors = [];
page.on("requestfailed", (request) => errors.push(`${request.url()}: ${request.failure()?.errorText}`));
page.on("pageerror", (error) => errors.push(error.message));
page.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
page.setDefaultTimeout(120_000);

let nFailed = 0;
async function test(name, body) {
    try {
        const note = await body();
        console.log(`ok   ${name}${note ? `: ${note}` : ""}`);
    } catch (error) {
        nFailed++;
        console.log(`FAIL ${name}: ${String(error.message ?? error).split("\n").slice(0, 4).join(" ")}`);
    }
}

const holds = (condition, what) => { if (!condition) throw new Error(what); };
const picture = async (name) => { if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) }); };

async function faults() {
    await page.evaluate(readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    holds(serious.length === 0, serious.map(({ id, nodes }) => `${id}: ${nodes[0].html}`).join("; "));
}

await test("the service worker isolates the page", async () => {
    await page.goto(address);
    await page.waitForFunction(() => globalThis.crossOriginIsolated, undefined, { polling: 200 });
});
await test("models are listed with sizes, and what does not fit is not offered", async () => {
    await page.locator(".model-button").click();
    await page.getByText("Too large for a browser").waitFor();
    holds(await page.locator(".choose", { hasText: "70B" }).isDisabled(), "70B can be chosen");
    await picture("models");
    await faults();
});
await test("a model is downloaded and answers", async () => {
    await page.locator(".choose", { hasText: "Fable" }).click();
    await page.waitForTimeout(300);
    await picture("loading");
    await page.locator("#prompt").fill("Tell me the tale of Rapunzel.");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("main").innerText.length > 600, undefined, { polling: 200 });
    await picture("chat");
    await faults();
    await page.keyboard.press("Escape");   // ends the answer
    await page.waitForTimeout(500);
});
await test("dark colours and a phone", async () => {
    await page.emulateMedia({ colorScheme: "dark" });
    await page.setViewportSize({ width: 390, height: 800 });
    await page.waitForTimeout(300);
    await picture("phone");
    await faults();
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 1200, height: 800 });
});
await test("the page works without a network", async () => {
    await context.setOffline(true);
    server.close();
    server.closeAllConnections();
    const start = performance.now();
    await page.goto(address);
    await page.locator("#prompt").fill("Tell me the tale of the frog.");
    const shown = performance.now() - start;
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector("main").innerText.length > 250, undefined, { polling: 50, timeout: 60_000 })
        .catch(async (error) => { await picture("failed"); throw error; });
    await picture("offline");
    return `shown in ${shown.toFixed(0)} ms, answers after ${(performance.now() - start).toFixed(0)} ms`;
});
// Expected: the first request for a model ends early, and without a network the service worker's script is not compared.
const expected = /ERR_INTERNET_DISCONNECTED|ERR_CONNECTION|fable.gguf: net::ERR_ABORTED|service_worker.js: net::ERR_FAILED|^Failed to load resource: net::ERR_FAILED/;
await test("no errors were written", () => holds(errors.every((text) => expected.test(text)), errors.join("; ")));
await browser.close();
process.exit(nFailed > 0 ? 1 : 0);
