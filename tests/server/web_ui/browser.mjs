// SPDX-License-Identifier: MIT
// Chromium with a page that is watched, and what the tests do with it.
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

// A page, and check(): nothing went wrong with it. allowed: a pattern of messages that a test provokes.
export async function watch(context, url) {
    const page = await context.newPage(), faults = [];
    page.setDefaultTimeout(120000);   // a busy machine is slow
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

// Opens the page and waits until it knows its models.
export async function visit({ page, url }) {
    const answer = await page.goto(url).catch((error) => {   // where a password is asked for and there is none
        if (!/ERR_INVALID_AUTH_CREDENTIALS/.test(error.message)) throw error;
    });
    if (answer?.ok()) await page.waitForFunction(() => document.querySelector(".model select")?.options.length > 0);
}

// ------------------------------------------------------------------------------------ what users do

export async function send(page, text) {
    await page.fill("#prompt", text);
    await page.press("#prompt", "Enter");
}

export async function ended(page) {
    await page.waitForSelector("button[aria-label='Send']");
    await rendered(page);
}

// Answers come slowly from here on, however fast the machine is.
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

// Texts become HTML in a worker.
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

// The next request for an answer, as JSON.
export async function nextRequest(page, act) {
    const request = page.waitForRequest((one) => one.url().endsWith("/v1/chat/completions"));
    await act();
    return (await request).postDataJSON();
}

// The events of a stream that has these deltas, and no end.
export function events(deltas) {
    const chunks = deltas.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] }));
    return chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
}

// Answers every request with this text, in pieces, as a model would. JSON of deltas where it is a list.
export async function pretend(page, answer) {
    const deltas = Array.isArray(answer) ? answer : answer.match(/[^]{1,7}/g).map((content) => ({ content }));
    const end = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
    const body = `${events(deltas)}data: ${JSON.stringify(end)}\n\ndata: [DONE]\n\n`;
    await page.route("**/v1/chat/completions", (route) => route.fulfill({ contentType: "text/event-stream", body }));
}

// Serious and critical violations that axe finds. For a context with bypassCSP, which axe's script needs.
export async function violations(page) {
    const source = readFileSync(tools.resolve("axe-core/axe.min.js"), "utf8");
    await page.evaluate(source);
    const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations", "passes"] }));
    if (found.passes.length === 0) throw new Error("axe looked at nothing");
    return found.violations.filter(({ impact }) => impact === "serious" || impact === "critical")
        .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" | ")}`);
}
