// SPDX-License-Identifier: MIT
// Opens the web UI in Chromium, watches its pages for errors, and has the actions of the tests.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const tools = createRequire(new URL("../../../build/tools/web-ui/package.json", import.meta.url));
const { chromium } = tools("playwright-core");

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
               "--disable-component-update", "--disable-sync"];

export function startBrowser() {
    return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
}

export const CONTEXT = { viewport: { width: 1280, height: 800 }, acceptDownloads: true };

// Opens a page. check() fails if the page had an error. allowed: a pattern of messages that the test provokes.
export async function watch(context, url) {
    const page = await context.newPage(), faults = [];
    page.setDefaultTimeout(120000);   // for busy machines
    page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) faults.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => faults.push(`error: ${error.stack}`));
    page.on("dialog", (dialog) => {
        faults.push(`dialog: ${dialog.message()}`);
        dialog.dismiss();
    });
    context.on("request", (request) => {
        if (!request.url().startsWith(url) && !/^(data|blob):/.test(request.url())) faults.push(`request: ${request.url()}`);
    });
    const check = (allowed) => assert.deepEqual(faults.filter((fault) => !allowed?.test(fault)), []);
    return { page, url, check };
}

// Opens the page and waits until its list of models is loaded.
export async function visit({ page, url }) {
    const answer = await page.goto(url).catch((error) => {   // some pages ask for a password, which the test then gives
        if (!/ERR_INVALID_AUTH_CREDENTIALS/.test(error.message)) throw error;
    });
    if (answer?.ok()) await page.waitForFunction(() => document.querySelector(".model select")?.options.length > 0);
}

// ------------------------------------------------------------------------------------ actions of users

export async function send(page, text) {
    await page.fill("#prompt", text);
    await page.press("#prompt", "Enter");
}

export async function ended(page) {
    await page.waitForSelector("button[aria-label='Send']");
    await rendered(page);
}

// Slows answers down from here on, so that their speed does not depend on the machine.
export async function slowDown(page) {
    const session = await page.context().newCDPSession(page);
    await session.send("Network.emulateNetworkConditions",
                       { offline: false, latency: 0, downloadThroughput: 30000, uploadThroughput: -1 });
}

// Sends a message and waits for the whole answer.
export async function ask(page, text) {
    const whole = page.locator(".message.assistant:not(.writing)");
    const n = await whole.count();
    await send(page, text);
    await whole.nth(n).waitFor();
    await rendered(page);
}

// Waits until texts are HTML, which a worker makes.
export async function rendered(page) {
    await page.waitForFunction(() => !document.querySelector("[aria-busy=true]"));
}

export const button = (page, name) => page.getByRole("button", { name, exact: true });
export const lastAnswer = (page) => page.locator(".message.assistant").last();

export async function setNumber(page, label, value) {
    await page.getByLabel(label, { exact: true }).fill(String(value));
}

export async function openPanel(page, tab) {
    if (!(await page.locator("#panel").isVisible())) await button(page, "Settings").click();
    await page.getByRole("tab", { name: tab }).click();
}

// Returns the body of the next request for an answer.
export async function nextRequest(page, act) {
    const request = page.waitForRequest((one) => one.url().endsWith("/v1/chat/completions"));
    await act();
    return (await request).postDataJSON();
}

// Returns the events of a stream with these deltas, without an end.
export function events(deltas) {
    const chunks = deltas.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] }));
    return chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
}

// Answers every request with a text in pieces, as a model would. A list has the deltas as JSON.
export async function pretend(page, answer) {
    const deltas = Array.isArray(answer) ? answer : answer.match(/[^]{1,7}/g).map((content) => ({ content }));
    const end = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
    const body = `${events(deltas)}data: ${JSON.stringify(end)}\n\ndata: [DONE]\n\n`;
    await page.route("**/v1/chat/completions", (route) => route.fulfill({ contentType: "text/event-stream", body }));
}

// Returns the serious and critical violations that axe finds. The context must have bypassCSP, for axe's script.
export async function violations(page) {
    const source = readFileSync(tools.resolve("axe-core/axe.min.js"), "utf8");
    await page.evaluate(source);
    const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations", "passes"] }));
    if (found.passes.length === 0) throw new Error("axe looked at nothing");
    return found.violations.filter(({ impact }) => impact === "serious" || impact === "critical")
        .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ")}`);
}
