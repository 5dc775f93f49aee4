// SPDX-License-Identifier: MIT
// Pictures: they are added, removed, sent, shown, kept and refused. The model and its answer are a golden of transformers.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { ask, button, ended, lastAnswer, nextRequest, openPanel, pretend, send, setNumber, violations } from "./browser.mjs";
import { GOLDENS } from "./servers.mjs";

const bytesOf = (name) => readFileSync(join(GOLDENS, "images", name));
const uri = (type, name) => `data:image/${type};base64,${bytesOf(name).toString("base64")}`;
const part = (type, name) => ({ type: "image_url", image_url: { url: uri(type, name) } });
const text = (words) => ({ type: "text", text: words });
const names = (page) => page.locator(".thumbnail img").evaluateAll((list) => list.map((one) => one.alt));
const notice = (page, words) => page.locator(".notice", { hasText: words }).waitFor();

async function shorten(page, n) {
    await openPanel(page, "General");
    await setNumber(page, "Longest answer", n);
}

// Drops or pastes a file, whose bytes have `n_more` zeros behind them.
function hand(page, how, name, bytes, { type = "", n_more = 0 } = {}) {
    return page.evaluate(([act, called, base64, mime, more]) => {
        const data = new DataTransfer(), content = Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
        data.items.add(new File([content, new Uint8Array(more)], called, { type: mime }));
        const options = { bubbles: true, cancelable: true, dataTransfer: data, clipboardData: data };
        const event = act === "drop" ? new DragEvent("drop", options) : new ClipboardEvent("paste", options);
        document.querySelector(act === "drop" ? ".thread" : "#prompt").dispatchEvent(event);
    }, [how, name, bytes.toString("base64"), type, n_more]);
}

async function give(page, ...files) {
    const chooser = page.waitForEvent("filechooser");
    await button(page, "Add pictures").click();
    await (await chooser).setFiles(files);
}

const named = (name) => ({ name, mimeType: "", buffer: bytesOf(name) });
const shown = (page, n) => page.locator(".thumbnail").nth(n - 1).waitFor();
const areDrawn = (page, selector) => page.waitForFunction((one) =>
    [...document.querySelectorAll(one)].every((image) => image.complete && image.naturalWidth > 0), selector);

async function exported(page) {
    const download = page.waitForEvent("download");
    await button(page, "Export").click();
    return (await download).path();
}

// ------------------------------------------------------------------------------------ messages

async function theAnswerIsTheGoldens({ page, url }) {
    const { cases } = JSON.parse(readFileSync(join(GOLDENS, "qwen2_5_vl", "golden.json")));
    const { continuation, images: [image] } = cases.find(({ name }) => name === "one");
    await shorten(page, continuation.length);
    await hand(page, "drop", image, bytesOf(image));
    await shown(page, 1);
    const request = await nextRequest(page, () => send(page, "What is it?"));
    assert.deepEqual(request.messages, [{ role: "user", content: [part("jpeg", image), text("What is it?")] }]);
    await ended(page);
    await lastAnswer(page).locator(".actions").waitFor();
    const { conversations: [{ nodes }] } = JSON.parse(readFileSync(await exported(page), "utf8"));
    const answer = Object.values(nodes).find(({ role }) => role === "assistant");
    const { content } = await (await page.request.post(`${url}/detokenize`, { data: { tokens: continuation } })).json();
    assert.equal(answer.content, content);
}

async function picturesGoAlong({ page }) {
    await shorten(page, 3);
    await hand(page, "drop", "square.jpg", bytesOf("square.jpg"));
    await shown(page, 1);
    await hand(page, "paste", "rgba.png", bytesOf("rgba.png"), { type: "image/png" });
    await shown(page, 2);
    await give(page, named("alpha.webp"), named("first_frame.gif"));
    await shown(page, 4);
    assert.deepEqual(await names(page), ["square.jpg", "rgba.png", "alpha.webp", "first_frame.gif"]);
    await areDrawn(page, ".thumbnail img");
    await button(page, "Remove rgba.png").focus();
    await page.keyboard.press("Enter");
    assert.deepEqual(await names(page), ["square.jpg", "alpha.webp", "first_frame.gif"]);
    assert.equal(await page.evaluate(() => document.activeElement.id), "prompt");
    await hand(page, "drop", "notes.txt", Buffer.from("Some notes.\n"));
    await page.locator(".chip", { hasText: "notes.txt" }).waitFor();
    await page.waitForTimeout(300);
    await page.reload();   // drafts keep small pictures
    await shown(page, 3);
    await shorten(page, 3);
    const parts = [part("jpeg", "square.jpg"), part("webp", "alpha.webp"), part("gif", "first_frame.gif")];
    const file = "File notes.txt:\n\n```txt\nSome notes.\n```\n\n";
    const first = await nextRequest(page, () => send(page, "What is it?"));
    assert.deepEqual(first.messages[0].content, [...parts, text(`${file}What is it?`)]);
    await ended(page);
    assert.equal(await page.getByRole("alert").count(), 0);
    assert.equal(await page.locator(".thumbnail").count(), 0);
    assert.equal(await page.locator(".sent-picture img").count(), 3);
    await areDrawn(page, ".sent-picture img");

    const again = await nextRequest(page, () => button(page, "Answer again").click());
    assert.deepEqual(again.messages, first.messages);
    await ended(page);
    await page.locator(".message.user").getByRole("button", { name: "Edit" }).click();
    await page.getByLabel("Text of the message").fill("And now?");
    const edited = await nextRequest(page, () => button(page, "Send as a branch").click());
    assert.deepEqual(edited.messages[0].content, [...parts, text(`${file}And now?`)]);
    await ended(page);
    await hand(page, "drop", "tall.png", bytesOf("tall.png"));
    await shown(page, 1);
    const next = await nextRequest(page, () => button(page, "Send").click());   // a picture without words
    assert.deepEqual(next.messages[0], edited.messages[0]);
    assert.deepEqual(next.messages.at(-1).content, [part("png", "tall.png")]);
    await ended(page);
    assert.equal(await page.getByRole("alert").count(), 0);
}

async function aConversationKeepsItsPictures({ page }) {
    await pretend(page, "A square.");
    await hand(page, "drop", "square.jpg", bytesOf("square.jpg"));
    await shown(page, 1);
    await button(page, "Send").click();
    await page.locator(".message.assistant:not(.writing)").waitFor();
    assert.equal(await page.title(), "square.jpg – frit");
    await page.waitForTimeout(800);
    await page.reload();
    await page.locator(".sent-picture img").waitFor();
    await areDrawn(page, ".sent-picture img");
    const sent = page.getByRole("button", { name: "square.jpg", exact: true });
    const { height } = await sent.boundingBox();
    await sent.click();
    assert.equal(await sent.getAttribute("aria-expanded"), "true");
    await sent.click();
    assert.equal((await sent.boundingBox()).height, height);

    const path = await exported(page), json = JSON.parse(readFileSync(path, "utf8"));
    await page.getByLabel("File to import").setInputFiles(path);
    await notice(page, "Imported 1");
    assert.equal(await page.locator(".entry").count(), 2);
    const request = await nextRequest(page, () => send(page, "And?"));
    assert.deepEqual(request.messages[0].content, [part("jpeg", "square.jpg")]);

    const user = Object.values(json.conversations[0].nodes).find(({ role }) => role === "user");
    for (const url of ["https://example.org/a.png", "data:image/svg+xml;base64,PHN2Zz4=", "data:image/png;base64,%41", "javascript:alert(1)", 7]) {
        user.pictures[0].url = url;
        await page.getByLabel("File to import").setInputFiles({ name: "a.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(json)) });
        await notice(page, "a picture is no data URI");
        await button(page, "Close this notice").click();
    }
    assert.equal(await page.locator(".entry").count(), 2);
}

// Ten pictures take more than a third of the context, and less than a half.
async function picturesCountInTheContext({ page }) {
    await shorten(page, 3);
    const files = Array.from({ length: 10 }, (_, i) => ({ ...named("square.jpg"), name: `${i}.jpg` }));
    for (const words of ["One?", "Two?", "Three?"]) {
        await give(page, ...files);
        await shown(page, files.length);
        await ask(page, words);
        assert.equal(await page.getByRole("alert").count(), 0, words);
    }
    await page.locator(".cut").waitFor();
    const { messages } = await nextRequest(page, () => send(page, "Four?"));
    assert.ok(messages.length < 7, `${messages.length}`);
    await ended(page);
    assert.equal(await page.getByRole("alert").count(), 0);
}

async function theGaugeCountsPictures({ page, url }) {
    const image = { type: "image", source: { type: "base64", media_type: "image/jpeg", data: bytesOf("wide.jpg").toString("base64") } };
    const { input_tokens: n } = await (await page.request.post(`${url}/v1/messages/count_tokens`,
        { data: { messages: [{ role: "user", content: [image, image, text("Which?")] }] } })).json();
    const picture = { name: "wide.jpg", url: uri("jpeg", "wide.jpg") };
    const node = { id: "a", parent: "root", role: "user", content: "Which?", pictures: [picture, picture] };
    const json = { format: "frit conversations", version: 1, conversations: [{ title: "t", nodes: { a: node }, chosen: { root: "a" }, settings: {} }] };
    await page.getByLabel("File to import").setInputFiles({ name: "a.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(json)) });
    await page.locator(".meters", { hasText: new RegExp(`\\b${n} of 512 tokens`) }).waitFor();
}

// ------------------------------------------------------------------------------------ refusals

async function filesThatAreNoPicturesAreRefused({ page }) {
    await hand(page, "drop", "photo.heic", Buffer.from([0, 0, 0, 24, ...Buffer.from("ftypheic")]), { type: "image/heic" });
    await notice(page, "photo.heic is no PNG, JPEG, WebP or GIF.");
    await give(page, { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("Notes.") });
    await notice(page, "notes.txt is no PNG, JPEG, WebP or GIF.");
    assert.deepEqual(await names(page), []);
    assert.equal(await page.locator(".chip").count(), 0);
    await hand(page, "drop", "drawing.svg", Buffer.from("<svg/>"), { type: "image/svg+xml" });   // a text
    await page.locator(".chip", { hasText: "drawing.svg" }).waitFor();
    await give(page, ...Array.from({ length: 33 }, (_, i) => ({ ...named("one.png"), name: `${i}.png` })));
    await notice(page, "32.png: a conversation takes 32 pictures.");
    assert.equal((await names(page)).length, 32);
    const box = await page.locator(".composer").boundingBox();
    assert.ok(box.y >= 0 && box.y + box.height <= 800);
    await pretend(page, "Many.");
    await ask(page, "Look.");
    await hand(page, "drop", "more.png", bytesOf("one.png"));
    await notice(page, "more.png: a conversation takes 32 pictures.");
}

async function largePicturesAreMadeSmaller({ page }) {
    const n_more = 21 * 1024 * 1024;
    await hand(page, "drop", "broken.jpg", Buffer.from([0xff, 0xd8, 0xff, 0xe0]), { n_more });
    await notice(page, /broken\.jpg has 21\.0 MiB; a picture may have 20\.0 MiB, and the browser cannot make this one smaller\./);
    assert.deepEqual(await names(page), []);
    await hand(page, "drop", "large.png", bytesOf("rgba.png"), { n_more });
    await notice(page, /large\.png has 21\.0 MiB: it was made smaller\./);
    await shown(page, 1);
    await areDrawn(page, ".thumbnail img");
    await pretend(page, "Small.");
    const { messages } = await nextRequest(page, () => send(page, "What is it?"));
    const [, base64] = messages[0].content[0].image_url.url.split("data:image/jpeg;base64,");
    assert.equal(Buffer.from(base64, "base64").readUInt16BE(0), 0xffd8);
    assert.ok(base64.length < 100000, `${base64.length}`);
    const size = await page.locator(".sent-picture img").evaluate((one) => [one.naturalWidth, one.naturalHeight]);
    assert.deepEqual(size, [bytesOf("rgba.png").readUInt32BE(16), bytesOf("rgba.png").readUInt32BE(20)]);
}

async function aModelOfTextsRefusesThem({ page }) {
    assert.equal(await button(page, "Add pictures").count(), 0);
    assert.equal(await button(page, "Add text files").count(), 1);
    await hand(page, "drop", "square.jpg", bytesOf("square.jpg"), { type: "image/jpeg" });
    await notice(page, /square\.jpg: fable reads no pictures\./);
    assert.equal(await page.locator(".thumbnail").count(), 0);
}

async function picturesAreAccessible({ page }) {
    await pretend(page, "A square.");
    await give(page, named("square.jpg"), named("wide.jpg"));
    await shown(page, 2);
    await page.getByRole("status").filter({ hasText: "Added square.jpg, wide.jpg." }).waitFor({ state: "attached" });
    assert.deepEqual(await violations(page), []);
    await ask(page, "What is it?");
    await page.locator(".sent-picture").nth(1).waitFor();
    assert.deepEqual(await violations(page), []);
}

export const tests = [
    { name: "the answer to a picture is that of transformers", server: "seeing", run: theAnswerIsTheGoldens },
    { name: "pictures go along by drop, paste and button", server: "seeing", run: picturesGoAlong },
    { name: "a conversation keeps its pictures", server: "seeing", run: aConversationKeepsItsPictures },
    { name: "pictures count in the context", server: "seeing", run: picturesCountInTheContext },
    { name: "the gauge counts pictures", server: "seeing", run: theGaugeCountsPictures },
    { name: "files that are no pictures are refused", server: "seeing", run: filesThatAreNoPicturesAreRefused },
    { name: "large pictures are made smaller", server: "seeing", run: largePicturesAreMadeSmaller },
    { name: "a model of texts refuses pictures", run: aModelOfTextsRefusesThem },
    { name: "pictures are accessible", server: "seeing", options: { bypassCSP: true }, run: picturesAreAccessible },
];
