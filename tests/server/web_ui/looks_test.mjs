// SPDX-License-Identifier: MIT
// Colours, widths, keys, accessibility, files.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { ask, button, ended, lastAnswer, openPanel, pretend, setNumber, violations } from "./browser.mjs";

const PHONE = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true };
const ground = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const RICH = "# Title\n\nText with `code`, a [link](https://example.org) and $x^2$.\n\n```js\nconst a = \"b\"; // c\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";

async function coloursFollowTheSystemAndTheButton({ page }) {
    assert.equal(await ground(page), "rgb(255, 255, 255)");
    await page.emulateMedia({ colorScheme: "dark" });
    assert.equal(await ground(page), "rgb(23, 25, 29)");
    await page.getByRole("button", { name: /Colours: auto/ }).click();   // light
    assert.equal(await ground(page), "rgb(255, 255, 255)");
    await page.getByRole("button", { name: /Colours: light/ }).click();
    await page.emulateMedia({ colorScheme: "light" });
    assert.equal(await ground(page), "rgb(23, 25, 29)");
    await page.reload();
    assert.equal(await ground(page), "rgb(23, 25, 29)");
}

async function fitsAPhone({ page }) {
    await pretend(page, RICH + "\n\n`" + "long".repeat(60) + "`\n\n$$" + "a+".repeat(80) + "b$$\n\n```\n" + "x".repeat(300) + "\n```");
    await ask(page, "Show me " + "W".repeat(200));
    const width = () => page.evaluate(() => document.documentElement.scrollWidth);
    assert.equal(await width(), 360);
    assert.ok(await page.locator(".thread").evaluate((one) => one.scrollWidth <= one.clientWidth));
    assert.equal(await page.locator("#sidebar").count(), 0);
    await button(page, "Conversations").click();
    await page.locator("#sidebar").waitFor();
    assert.ok(await page.locator("main").evaluate((one) => one.inert));
    await page.keyboard.press("Escape");
    await page.locator("#sidebar").waitFor({ state: "detached" });
    await button(page, "Settings").click();
    await page.locator("#panel").waitFor();
    assert.equal(await width(), 360);
    await button(page, "Close the settings").click();
    const composer = await page.locator(".composer").boundingBox();
    assert.ok(composer.y + composer.height <= 740);
}

// Tab until the button or box of this name has the focus.
async function tabTo(page, name, key = "Tab") {
    for (let i = 0; i < 80; i++) {
        const found = await page.evaluate(() => {
            const one = document.activeElement;
            return one.ariaLabel || one.labels?.[0]?.innerText || one.innerText || "";
        });
        if (found.startsWith(name)) return;
        await page.keyboard.press(key);
    }
    throw new Error(`'${name}' cannot be reached by ${key}`);
}

async function keysAreEnough({ page }) {
    await page.reload();
    await page.locator(".skip").focus();
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => `${document.activeElement.id} ${location.hash}`), "prompt ");
    await tabTo(page, "Settings");
    await page.keyboard.press("Enter");
    await tabTo(page, "Longest answer");
    await page.keyboard.type("8");
    await tabTo(page, "Message", "Shift+Tab");
    await page.keyboard.type("Tell me");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("a tale.");
    assert.equal(await page.locator("#prompt").inputValue(), "Tell me\na tale.");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".message.assistant .actions");
    await tabTo(page, "Answer again", "Shift+Tab");
    await page.keyboard.press("Enter");
    await page.getByLabel("Branch 2 of 2").waitFor();
    await ended(page);
    await page.locator("#prompt").focus();
    await tabTo(page, "Edit", "Shift+Tab");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Control+a");
    await page.keyboard.type("Changed.");
    await page.keyboard.press("Control+Enter");
    await page.getByLabel("Branch 3 of 3").waitFor();
    assert.equal(await lastAnswer(page).locator(".prose").innerText(), "Changed.");
    await page.locator("#prompt").focus();
    await tabTo(page, "New conversation", "Shift+Tab");
    await page.keyboard.press("Enter");
    await page.locator(".empty").waitFor();
    const focused = await page.waitForFunction(() => document.activeElement.id === "prompt");
    assert.ok(focused);
}

const WIDE = `| ${Array.from({ length: 9 }, (_, i) => `Column ${i}`).join(" | ")} |\n|${"---|".repeat(9)}\n| ${"Donaudampfschifffahrt | ".repeat(9)}\n`;

async function tablesOfPhonesScrollWithinThemselves({ page }) {
    await pretend(page, WIDE);
    await ask(page, "Show me.");
    const frame = page.locator(".table-frame"), cell = frame.locator("td").first();
    const { inner, outer } = await frame.evaluate((one) => ({ inner: one.scrollWidth, outer: one.clientWidth }));
    assert.ok(inner > 2 * outer, `${inner} in ${outer} pixels`);
    assert.ok((await cell.boundingBox()).height < 50, "a word is broken");
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
    assert.ok(await page.locator(".thread").evaluate((one) => one.scrollWidth <= one.clientWidth));
    await frame.evaluate((one) => one.scrollBy(10000, 0));
    assert.ok(await frame.evaluate((one) => one.scrollLeft > 0));
}

async function accessible({ page, url }) {
    const bad = [];
    const look = async (where) => bad.push(...(await violations(page)).map((one) => `${where}: ${one}`));
    await look("empty");
    await openPanel(page, "General");
    await page.getByLabel("Probabilities of tokens").check();
    await setNumber(page, "Longest answer", 10);
    await ask(page, "Tell me the tale of Rapunzel.");
    await button(page, "Probabilities of tokens").last().click();
    await look("tokens");
    await pretend(page, [{ reasoning_content: "Hm." }, { content: RICH }]);
    await ask(page, "Show me.");
    await look("answer");
    await page.getByLabel("Text files to add").setInputFiles({ name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("text") });
    await page.locator(".chip").waitFor();
    await look("files");
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").waitFor();
    await look("dialog");
    await page.keyboard.press("Escape");
    await page.unroute("**/v1/chat/completions");
    await page.route("**/v1/chat/completions", (route) => route.fulfill({ status: 429, json: { error: { message: "full", code: "queue_full" } } }));
    await ask(page, "Fail.");
    await look("failure");
    await openPanel(page, "General");
    await page.getByText("More options of sampling").click();
    for (const tab of ["General", "Schema", "Tools"]) {
        await openPanel(page, tab);
        await look(tab);
    }
    await page.goto(`${url}/docs`);
    await page.locator("details").first().click();
    await look("docs");
    assert.deepEqual(bad, []);
}

async function whatIsExportedCanBeImported({ page }) {
    await openPanel(page, "General");
    await setNumber(page, "Longest answer", 5);
    await ask(page, "First");
    await button(page, "Answer again").click();
    await ended(page);
    await page.getByLabel("Branch 2 of 2").waitFor();
    const download = page.waitForEvent("download");
    await button(page, "Export").click();
    const path = await (await download).path();
    const json = JSON.parse(readFileSync(path, "utf8"));
    assert.equal(json.conversations.length, 1);
    assert.equal(Object.keys(json.conversations[0].nodes).length, 3);
    await page.locator(".entry").hover();
    await button(page, "Delete First").click();
    await page.locator(".empty").waitFor();
    await page.getByLabel("File to import").setInputFiles({ name: "a.json", mimeType: "application/json", buffer: readFileSync(path) });
    await page.locator(".message.user", { hasText: "First" }).waitFor();
    await page.getByLabel("Branch 2 of 2").waitFor();
    const markdown = page.waitForEvent("download");
    await button(page, "Markdown").click();
    assert.match(readFileSync(await (await markdown).path(), "utf8"), /^# First\n\n## You\n\nFirst\n/);
}

async function docsShowEveryPath({ page, url }) {
    const description = await (await page.request.get(`${url}/openapi.json`)).json();
    const n = Object.values(description.paths).flatMap((methods) => Object.keys(methods)).length;
    await page.goto(`${url}/docs`);
    await page.locator("details").first().waitFor();
    assert.equal(await page.locator("details").count(), n);
    await page.getByLabel("Filter").fill("chat/completions");
    assert.equal(await page.locator("details:visible").count(), 1);
    await page.locator("details:visible summary").click();
    await page.locator("details:visible th", { hasText: "max_completion_tokens" }).waitFor();
}

const dark = { colorScheme: "dark" }, forAxe = { bypassCSP: true };
export const tests = [
    { name: "colours follow the system and the button", run: coloursFollowTheSystemAndTheButton },
    { name: "the page fits a phone", options: PHONE, run: fitsAPhone },
    { name: "tables of phones scroll within themselves", options: PHONE, run: tablesOfPhonesScrollWithinThemselves },
    { name: "keys are enough", run: keysAreEnough },
    { name: "axe finds nothing serious, light", options: forAxe, run: accessible, allowed: /429/ },
    { name: "axe finds nothing serious, dark", options: { ...forAxe, ...dark }, run: accessible, allowed: /429/ },
    { name: "what is exported can be imported", run: whatIsExportedCanBeImported },
    { name: "/docs shows every path", run: docsShowEveryPath },
];
