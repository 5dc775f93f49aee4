// SPDX-License-Identifier: MIT
// Conversations: answers, branches, the list of conversations, and the state after a reload.
import assert from "node:assert/strict";

import { ask, button, ended, lastAnswer, nextRequest, openPanel, send, setNumber, slowDown } from "./browser.mjs";

const TALE = "Tell me the tale of Rapunzel.";

async function shorten(page, n) {
    await openPanel(page, "General");
    await setNumber(page, "Longest answer", n);
}

async function answerStreamsAndMetersShow({ page }) {
    await shorten(page, 300);
    await ask(page, TALE);
    assert.match(await lastAnswer(page).locator(".prose").innerText(), /^There were once a man and a woman/);
    const meters = await page.locator("#meters").innerText();
    assert.match(meters, /tokens\/s/);
    assert.match(meters, /\b300 tokens/);
    assert.match(meters, /of 1024/);
    assert.match(await lastAnswer(page).innerText(), /ended at its limit/);
    const before = await lastAnswer(page).locator(".prose").innerText();
    const request = await nextRequest(page, () => button(page, "Continue the answer").click());
    assert.equal(request.continue_final_message, true);
    assert.equal(request.messages.at(-1).role, "assistant");
    await lastAnswer(page).locator(".actions").waitFor();
    const text = await lastAnswer(page).locator(".prose").innerText();
    assert.ok(text.startsWith(before), text);
    assert.ok(text.length > before.length, text);
}

async function escapeStopsAnAnswer({ page }) {
    await slowDown(page);
    await send(page, TALE);
    await page.waitForSelector(".message.assistant .prose");
    await page.keyboard.press("Escape");
    await ended(page);
    assert.match(await lastAnswer(page).innerText(), /Stopped\./);
    const text = await lastAnswer(page).locator(".prose").innerText();
    await page.waitForTimeout(200);
    assert.equal(await lastAnswer(page).locator(".prose").innerText(), text);
}

async function theComposerStaysWhereItIs({ page }) {
    await shorten(page, 200);
    await slowDown(page);
    const box = () => page.locator(".composer-box").boundingBox();
    const before = await box();
    await send(page, TALE);
    await page.waitForSelector(".message.assistant .prose");
    assert.deepEqual(await box(), before);
    await page.waitForFunction(() => document.querySelector(".message.assistant").innerText.length > 300);
    assert.deepEqual(await box(), before);
    await ended(page);
    assert.deepEqual(await box(), before);
    const atEnd = await page.locator(".thread").evaluate((one) => one.scrollHeight - one.scrollTop - one.clientHeight);
    assert.ok(Math.abs(atEnd) < 2, `${atEnd} pixels from the end`);
}

async function editsAndAnswersBecomeBranches({ page }) {
    await shorten(page, 12);
    await ask(page, TALE);
    const first = await lastAnswer(page).locator(".prose").innerText();
    await button(page, "Answer again").click();
    await page.getByLabel("Branch 2 of 2").waitFor();
    await ended(page);
    await button(page, "Branch before").click();
    await page.getByLabel("Branch 1 of 2").waitFor();
    assert.equal(await lastAnswer(page).locator(".prose").innerText(), first);

    await page.locator(".message.user").hover();
    await page.locator(".message.user").getByRole("button", { name: "Edit" }).click();
    await page.getByLabel("Text of the message").fill("Tell me the tale of Hansel and Gretel.");
    const request = await nextRequest(page, () => button(page, "Send as a branch").click());
    assert.equal(request.messages.length, 1);
    assert.equal(request.messages[0].content, "Tell me the tale of Hansel and Gretel.");
    await ended(page);
    assert.notEqual(await lastAnswer(page).locator(".prose").innerText(), first);
    await page.locator(".message.user").getByRole("button", { name: "Branch before" }).click();
    assert.equal(await page.locator(".message.user .said").innerText(), TALE);
    assert.equal(await lastAnswer(page).locator(".prose").innerText(), first);

    await lastAnswer(page).getByRole("button", { name: "Edit" }).click();
    await page.getByLabel("Text of the message").fill("My own words.");
    await button(page, "Keep as a branch").click();
    await page.getByLabel("Branch 3 of 3").waitFor();
    assert.equal(await lastAnswer(page).locator(".prose").innerText(), "My own words.");
}

// Waits until the browser's database has a conversation with this number of messages.
async function saved(page, n) {
    await page.waitForFunction((wanted) => new Promise((resolve) => {
        const opened = indexedDB.open("frit", 1);
        opened.onsuccess = () => {
            const all = opened.result.transaction("conversations").objectStore("conversations").getAll();
            all.onsuccess = () => {
                opened.result.close();
                resolve(all.result.some((one) => Object.keys(one.nodes).length === wanted));
            };
        };
    }), n);
}

async function aReloadKeepsEverything({ page }) {
    await shorten(page, 12);
    await ask(page, TALE);
    await button(page, "Answer again").click();
    await ended(page);
    await page.getByLabel("Branch 2 of 2").waitFor();
    await saved(page, 3);
    await page.reload();
    await page.locator(".entry-open").first().click();
    assert.equal(await page.locator(".message.user .said").innerText(), TALE);
    await page.getByLabel("Branch 2 of 2").waitFor();
    await openPanel(page, "General");
    assert.equal(await page.getByLabel("Longest answer", { exact: true }).inputValue(), "12");
}

async function theListRenamesFindsAndDeletes({ page }) {
    await shorten(page, 3);
    await ask(page, "First question");
    await button(page, "New conversation").click();
    await page.locator(".empty").waitFor();
    await shorten(page, 3);
    await ask(page, "Second question");
    assert.equal(await page.locator(".entry").count(), 2);
    await page.locator(".entry", { hasText: "First" }).hover();
    await button(page, "Rename First question").click();
    await page.getByLabel("Title").fill("A tale");
    await page.keyboard.press("Enter");
    await page.getByLabel("Find a conversation").fill("tale");
    assert.equal(await page.locator(".entry").count(), 1);
    await page.getByLabel("Find a conversation").fill("");
    await page.locator(".entry", { hasText: "Second" }).hover();
    await button(page, "Delete Second question").click();
    await page.locator(".empty").waitFor();
    assert.equal(await page.locator(".entry").count(), 1);
    await button(page, "Undo").click();
    await page.locator(".message.user", { hasText: "Second" }).waitFor();
    assert.equal(await page.locator(".entry").count(), 2);
}

async function tabsShowTheSame({ page, url }) {
    await shorten(page, 3);
    await ask(page, "A question");
    await saved(page, 2);
    const other = await page.context().newPage();
    await other.goto(url);
    await other.locator(".entry-open").click();
    await ask(other, "One more");
    await page.locator(".message.user", { hasText: "One more" }).waitFor();
    await page.locator(".message.assistant .actions").nth(1).waitFor();
    await ask(page, "And one");
    assert.equal(await page.locator(".message").count(), 6);
    await other.locator(".message").nth(5).waitFor();
    await other.locator(".entry").hover();
    await button(other, "Delete A question").click();
    await page.locator(".empty").waitFor();
    assert.equal(await page.locator(".entry").count(), 0);
}

async function messagesAreDeletedForGood({ page }) {
    await shorten(page, 3);
    await ask(page, "A question");
    await saved(page, 2);
    await page.locator(".message.user").hover();
    await page.locator(".message.user").getByRole("button", { name: "Delete from here" }).click();
    await page.locator(".empty").waitFor();
    await saved(page, 0);
    await button(page, "Undo").click();
    await saved(page, 2);
    assert.equal(await page.locator(".message").count(), 2);
}

async function theChosenModelAnswers({ page }) {
    const model = (id, n_ctx) => ({ id, object: "model", meta: { n_ctx } });
    await page.route("**/v1/models", (route) => route.fulfill({ json: { object: "list", data: [model("fable", 1024), model("other", 77)] } }));
    await page.reload();
    await page.waitForFunction(() => document.querySelector(".model select").options.length === 2);
    await page.getByLabel("Model", { exact: true }).selectOption("other");
    await page.locator(".empty", { hasText: "Ask other" }).waitFor();
    const request = await nextRequest(page, () => send(page, "Hello."));   // the server has no such model
    assert.equal(request.model, "other");
    assert.match(await lastAnswer(page).getByRole("alert").innerText(), /'other' does not exist/);
    await button(page, "New conversation").click();
    assert.equal(await page.getByLabel("Model", { exact: true }).inputValue(), "other");
}

async function aFailureIsSaidAndCanBeRepeated({ page }) {
    let n = 0;
    await page.route("**/v1/chat/completions", (route) => (n++ > 0 ? route.continue() : route.fulfill(
        { status: 429, json: { error: { message: "the queue is full" } } })));
    await ask(page, TALE);
    assert.match(await lastAnswer(page).getByRole("alert").innerText(), /the queue is full/);
    await shorten(page, 5);
    await button(page, "Answer again").click();
    await ended(page);
    await lastAnswer(page).locator(".prose").waitFor();
    assert.equal(await page.getByRole("alert").count(), 0);
}

export const tests = [
    { name: "an answer streams, is measured, and continues", run: answerStreamsAndMetersShow },
    { name: "Escape stops an answer", run: escapeStopsAnAnswer },
    { name: "nothing jumps while an answer streams", run: theComposerStaysWhereItIs },
    { name: "edits and new answers become branches", run: editsAndAnswersBecomeBranches },
    { name: "a reload keeps conversations, branches and settings", run: aReloadKeepsEverything },
    { name: "the list renames, finds, deletes and undoes", run: theListRenamesFindsAndDeletes },
    { name: "tabs show the same", run: tabsShowTheSame },
    { name: "messages are deleted for good, or not", run: messagesAreDeletedForGood },
    { name: "the chosen model answers", run: theChosenModelAnswers, allowed: /404/ },
    { name: "a failure is said and can be repeated", run: aFailureIsSaidAndCanBeRepeated, allowed: /429/ },
];
