// SPDX-License-Identifier: MIT
// Situations of users: the context is full, the network is gone, another conversation waits, a file is read.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { ask, button, ended, events, lastAnswer, nextRequest, openPanel, pretend, rendered, send, setNumber, slowDown } from "./browser.mjs";

const TALE = "Tell me the tale of Rapunzel.";
const WORDS = "a man and his wife ".repeat(60);   // about 300 tokens

async function shorten(page, n) {
    await openPanel(page, "General");
    await setNumber(page, "Longest answer", n);
}

const alertOf = (page) => lastAnswer(page).getByRole("alert");

// ------------------------------------------------------------------------------------ the context

async function aFullContextDropsTheOldestTurns({ page }) {
    await shorten(page, 6);
    await ask(page, `One: ${WORDS}`);
    await ask(page, `Two: ${WORDS}`);
    assert.equal(await page.locator(".cut").count(), 0);
    await ask(page, `Three: ${WORDS}`);
    const request = await nextRequest(page, () => send(page, `Four: ${WORDS}`));
    await ended(page);
    assert.match(request.messages[0].content, /^(Two|Three): /);
    assert.equal(request.messages.at(-1).content.slice(0, 6), "Four: ");
    assert.equal(await page.getByRole("alert").count(), 0);
    assert.match(await lastAnswer(page).locator(".prose").innerText(), /\w/);
    assert.match(await page.locator(".cut").innerText(), /The context is full/);
    const again = await nextRequest(page, () => send(page, "Short."));   // this prompt begins like the one before
    await ended(page);
    assert.deepEqual(again.messages.slice(0, request.messages.length), request.messages);
    const after = page.locator(".cut + .message .said");
    assert.equal((await after.innerText()).slice(0, 3), request.messages[0].content.slice(0, 3));
    await page.reload();
    await page.locator(".cut").waitFor();
    const next = await nextRequest(page, () => send(page, "And now?"));
    assert.ok(!JSON.stringify(next.messages).includes("One: "));
    await ended(page);
    assert.equal(await page.getByRole("alert").count(), 0);
}

async function aContextOfUnknownSizeIsKeptToo({ page }) {
    let isLoaded = false;
    await page.route("**/v1/models", async (route) => {
        const answer = await route.fetch(), json = await answer.json();
        for (const model of isLoaded ? [] : json.data) delete model.meta;
        await route.fulfill({ json });
    });
    await page.reload();
    await page.waitForFunction(() => document.querySelector(".model select")?.options.length > 0);
    const words = [1, 2, 3].map((i) => ({ id: `a${i}`, parent: i > 1 ? `a${i - 1}` : "root", role: i === 2 ? "assistant" : "user", content: WORDS }));
    const json = { format: "frit conversations", version: 1,
                   conversations: [{ title: "t", nodes: Object.fromEntries(words.map((one) => [one.id, one])), chosen: {}, settings: { max_tokens: "4" } }] };
    await page.getByLabel("File to import").setInputFiles({ name: "a.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(json)) });
    await page.locator(".message").nth(2).waitFor();
    isLoaded = true;
    await send(page, WORDS);
    await page.locator(".cut").waitFor();
    await ended(page);
    assert.equal(await page.getByRole("alert").count(), 0);
    assert.match(await lastAnswer(page).locator(".prose").innerText(), /\w/);
    await page.locator(".meters", { hasText: "of 1024 tokens" }).waitFor();
}

async function aTurnThatIsTooLongIsSaidInWords({ page }) {
    await ask(page, WORDS.repeat(5));
    assert.match(await alertOf(page).innerText(), /longer than the model's context[^]*1024 tokens/);
    await page.locator(".meters", { hasText: /\d{4} of 1024 tokens/ }).waitFor();
}

async function theGaugeIsThereAfterALoad({ page, url }) {
    const text = async (pattern) => {
        await page.locator(".meters", { hasText: pattern }).waitFor();
        return Number(/(\d+) of 1024 tokens/.exec(await page.locator(".meters").innerText())[1]);
    };
    await shorten(page, 8);
    await ask(page, TALE);
    const n = await text(/of 1024 tokens/);
    await page.waitForTimeout(600);
    await page.reload();
    assert.equal(await text(/of 1024 tokens/), n);
    await page.locator(".message.user").getByRole("button", { name: "Delete from here" }).click();
    await button(page, "Undo").click();
    assert.equal(await text(/of 1024 tokens/), n);
    // The server did not report the lengths of these messages, so it is asked to count their tokens.
    const node = { id: "a", parent: "root", role: "user", content: "Hello there." };
    const json = { format: "frit conversations", version: 1, conversations: [{ title: "t", nodes: { a: node }, chosen: { root: "a" }, settings: {} }] };
    await page.getByLabel("File to import").setInputFiles({ name: "a.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(json)) });
    await page.locator(".said", { hasText: "Hello there." }).waitFor();
    const { prompt } = await (await page.request.post(`${url}/apply-template`, { data: { messages: [{ role: "user", content: "Hello there." }] } })).json();
    const { count } = await (await page.request.post(`${url}/tokenize`, { data: { content: prompt } })).json();
    assert.equal(await text(new RegExp(`\\b${count} of 1024`)), count);
}

async function theReadingOfAPromptIsShownInPercent({ page }) {
    await shorten(page, 4);
    await page.evaluate(() => {
        globalThis.seen = new Set();
        new MutationObserver(() => {
            const found = /Reading the prompt: (\d+) %/.exec(document.querySelector(".waiting")?.textContent ?? "");
            if (found) globalThis.seen.add(Number(found[1]));
        }).observe(document.body, { subtree: true, childList: true, characterData: true });
    });
    await ask(page, WORDS.repeat(2));
    const seen = await page.evaluate(() => [...globalThis.seen]);
    assert.ok(seen.length >= 3, `${seen}`);
    assert.deepEqual(seen, seen.toSorted((a, b) => a - b));
    assert.ok(seen.every((n) => n < 100));
    assert.equal(await page.locator(".waiting").count(), 0);
}

// ------------------------------------------------------------------------------------ several conversations

async function twoConversationsAreAnsweredSideBySide({ page }) {
    await slowDown(page);
    await send(page, TALE);
    await page.waitForSelector(".message.assistant .prose");
    await button(page, "New conversation").click();
    await page.locator(".empty").waitFor();
    await send(page, "Tell me the tale of Hansel and Gretel.");
    await page.waitForSelector(".message.assistant .prose");
    await page.waitForFunction(() => document.querySelectorAll(".busy").length === 2);
    const length = () => lastAnswer(page).innerText().then((text) => text.length);
    await page.locator(".entry", { hasText: "Rapunzel" }).locator("a").click();
    await page.locator(".said", { hasText: "Rapunzel" }).waitFor();
    const before = await length();
    await page.waitForFunction((n) => document.querySelector(".message.assistant").innerText.length > n + 20, before);
    await page.keyboard.press("Escape");
    await ended(page);
    assert.match(await lastAnswer(page).innerText(), /Stopped\./);
    await page.waitForFunction(() => document.querySelectorAll(".busy").length === 1);   // the other conversation
                                                                                         // continues
    await page.locator(".entry", { hasText: "Hansel" }).locator("a").click();
    await page.locator(".said", { hasText: "Hansel" }).waitFor();
    await button(page, "Stop the answer").click();
    await ended(page);
    assert.equal(await page.locator(".busy").count(), 0);
}

async function eachConversationHasAnAddress({ page, url }) {
    await shorten(page, 3);
    assert.equal(new URL(page.url()).hash, "");
    await ask(page, "First question");
    const first = page.url();
    assert.match(new URL(first).hash, /^#\w{24}$/);
    await button(page, "New conversation").click();
    await page.locator(".empty").waitFor();
    assert.equal(new URL(page.url()).hash, "");
    await shorten(page, 3);
    await ask(page, "Second question");
    const second = page.url();
    assert.notEqual(second, first);
    const shows = (text) => page.locator(".message.user .said", { hasText: text }).waitFor();
    await page.goBack();   // the second conversation was a new one in the same place
    await shows("First");
    assert.equal(page.url(), first);
    await page.goForward();
    await shows("Second");
    assert.equal(await page.locator(".entry.current").innerText(), "Second question");
    await page.waitForTimeout(600);
    await page.reload();
    await shows("Second");
    assert.equal(await page.title(), "Second question – frit");
    await page.goto(first);
    await shows("First");
    assert.equal(await page.locator(".entry", { hasText: "Second" }).locator("a").getAttribute("href"), new URL(second).hash);
    await page.goto(`${url}/#nothing`);
    await page.locator(".notice", { hasText: "no conversation of that address" }).waitFor();
    assert.equal(new URL(page.url()).hash, "");
    await page.locator(".empty").waitFor();
}

async function conversationsAreFoundByKeys({ page }) {
    await shorten(page, 3);
    await ask(page, "About apples");
    await button(page, "New conversation").click();
    await pretend(page, "Nothing rhymes with orange.");
    await ask(page, "About poems");
    await page.keyboard.press("Control+k");
    const dialog = page.getByRole("dialog", { name: "Find a conversation" });
    await dialog.waitFor();
    assert.equal(await dialog.getByRole("option").count(), 3);
    await page.keyboard.type("rhymes with");
    await dialog.getByRole("option", { name: /About poems.*Nothing rhymes with orange/ }).waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await page.keyboard.press("Control+k");
    await dialog.waitFor();
    await page.keyboard.type("apples");
    await page.keyboard.press("Enter");
    await page.locator(".said", { hasText: "About apples" }).waitFor();
    await dialog.waitFor({ state: "detached" });
    await page.keyboard.press("Control+Shift+O");
    await page.locator(".empty").waitFor();
    await page.waitForFunction(() => document.activeElement.id === "prompt");
    await page.keyboard.press("Control+k");
    await dialog.waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.locator(".said", { hasText: "About apples" }).waitFor();
}

async function theDialogLeavesAnAnswerAlone({ page }) {
    await slowDown(page);
    await send(page, TALE);
    await page.waitForSelector(".message.assistant .prose");
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.equal(await button(page, "Stop the answer").count(), 1);
    await page.keyboard.press("Escape");
    await ended(page);
}

async function draftsAreKept({ page }) {
    await shorten(page, 3);
    await ask(page, "First question");
    await page.fill("#prompt", "half a thought");
    await button(page, "New conversation").click();
    await page.locator(".empty").waitFor();
    assert.equal(await page.inputValue("#prompt"), "");
    await page.fill("#prompt", "another one");
    await page.locator(".entry", { hasText: "First" }).locator("a").click();
    await page.waitForFunction(() => document.querySelector("#prompt").value === "half a thought");
    await page.waitForTimeout(600);
    await page.reload();
    await page.waitForFunction(() => document.querySelector("#prompt").value === "half a thought");
    await page.press("#prompt", "Enter");
    await page.locator(".message.user", { hasText: "half a thought" }).waitFor();
    await ended(page);
    await page.waitForTimeout(600);
    await page.reload();
    await page.locator(".message.user", { hasText: "half a thought" }).waitFor();
    assert.equal(await page.inputValue("#prompt"), "");
    await button(page, "New conversation").click();
    await page.waitForFunction(() => document.querySelector("#prompt").value === "another one");
}

// ------------------------------------------------------------------------------------ the network

async function theNetworksErrorsAreSaidInWords({ page }) {
    const path = "**/v1/chat/completions";
    let act = (route) => route.abort("connectionrefused");
    await page.route(path, (route) => act(route));
    await shorten(page, 5);
    await ask(page, TALE);
    assert.match(await alertOf(page).innerText(), /The server cannot be reached/);
    const answers = [
        [{ status: 429, headers: { "Retry-After": "7" }, json: { error: { message: "the queue is full", code: "queue_full" } } }, /is busy.* 7 seconds[^]*the queue is full/],
        [{ status: 503, json: { error: { message: "the server ends", code: "shutting_down" } } }, /about to end/],
        [{ status: 502, contentType: "text/html", body: "<h1>Bad gateway</h1>" }, /cannot be reached/],
        [{ status: 500, json: { error: { message: "no memory", code: null } } }, /The server failed[^]*no memory/],
        [{ status: 418, body: "?" }, /status 418/],
    ];
    for (const [answer, words] of answers) {
        act = (route) => route.fulfill(answer);
        await button(page, "Try again").click();
        await alertOf(page).filter({ hasText: words }).waitFor();
        await ended(page);
    }
    act = (route) => route.fulfill({ status: 401, json: { error: { message: "no key", code: "invalid_api_key" } } });
    await button(page, "Try again").click();
    await button(page, "Load the page again").waitFor();
    act = (route) => route.continue();
    await button(page, "Try again").click();
    await lastAnswer(page).locator(".prose").waitFor();
    await ended(page);
    assert.equal(await page.getByRole("alert").count(), 0);
    assert.equal(await page.locator(".message").count(), 2);   // no branch is left
    assert.equal(await page.locator(".branches").count(), 0);
}

async function anAnswerThatBrokeOffGoesOn({ page }) {
    await shorten(page, 5);
    await page.route("**/v1/chat/completions", (route) => route.fulfill({ contentType: "text/event-stream",
                                                                         body: events([{ content: "There once lived" }]) }));
    await ask(page, TALE);
    assert.match(await alertOf(page).innerText(), /The connection ended before the answer was whole/);
    assert.equal(await lastAnswer(page).locator(".prose").innerText(), "There once lived");
    await page.unroute("**/v1/chat/completions");
    const request = await nextRequest(page, () => button(page, "Continue").click());
    assert.equal(request.continue_final_message, true);
    await ended(page);
    assert.match(await lastAnswer(page).locator(".prose").innerText(), /^There once lived \w+/);
    assert.equal(await page.getByRole("alert").count(), 0);
}

async function anAnswerThatTheReloadCutCanGoOn({ page }) {
    await slowDown(page);
    await send(page, TALE);
    await page.waitForFunction(() => document.querySelector(".message.assistant .prose")?.innerText.length > 40);
    await page.waitForTimeout(600);
    await page.reload();
    assert.match(await alertOf(page).innerText(), /This answer is not whole/);
    await rendered(page);
    const before = await lastAnswer(page).locator(".prose").innerText();
    await openPanel(page, "General");
    await setNumber(page, "Longest answer", 12);
    await button(page, "Continue").click();
    await page.waitForSelector("button[aria-label='Stop the answer']");
    await ended(page);
    assert.ok((await lastAnswer(page).locator(".prose").innerText()).length > before.length);
}

async function aServerThatIsAwayIsAskedAgain({ page, url }) {
    await page.route("**/v1/models", (route) => route.abort("connectionrefused"));
    await page.goto(url);
    await page.locator(".notice", { hasText: "The server cannot be reached" }).waitFor();
    await page.unroute("**/v1/models");
    await button(page, "Try again").click();
    await page.waitForFunction(() => document.querySelector(".model select")?.options.length > 0);
}

// ------------------------------------------------------------------------------------ files

const file = (name, text) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
const give = (page, ...files) => page.getByLabel("Text files to add").setInputFiles(files);
const chips = (page) => page.locator(".chip .chip-name").allInnerTexts();

async function textFilesGoAlong({ page }) {
    await shorten(page, 3);
    await give(page, file("notes.md", "# Notes\n```\ncode\n```\n"), file("data.csv", "a,b\n1,2\n"));
    await page.locator(".chip").nth(1).waitFor();
    await button(page, "Remove data.csv").click();
    assert.deepEqual(await chips(page), ["notes.md"]);
    const drop = (name, bytes) => page.evaluate(([called, content]) => {
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(content)], called));
        document.querySelector(".thread").dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: data }));
    }, [name, [...bytes]]);
    await drop("dropped.txt", Buffer.from("Grüße\n"));
    await page.locator(".chip", { hasText: "dropped.txt" }).waitFor();
    await page.evaluate(() => {
        const data = new DataTransfer();
        data.items.add(new File(["\u{feff}x = 1\n"], "pasted.py"));
        document.querySelector("#prompt").dispatchEvent(new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: data }));
    });
    await page.locator(".chip", { hasText: "pasted.py" }).waitFor();
    await drop("picture.png", [0x89, 0x50, 0x4e, 0x47, 0, 0, 0, 0xff]);
    await page.locator(".notice", { hasText: "picture.png is not a text" }).waitFor();
    await give(page, file("large.log", "x".repeat(600 * 1024)));
    await page.locator(".notice", { hasText: /large\.log has 600 KiB; a file may have 512 KiB/ }).waitFor();
    assert.deepEqual(await chips(page), ["notes.md", "dropped.txt", "pasted.py"]);

    await page.waitForTimeout(300);
    await page.reload();   // drafts keep their files
    await page.locator(".chip").nth(2).waitFor();
    await openPanel(page, "General");
    await setNumber(page, "Longest answer", 3);
    const request = await nextRequest(page, () => send(page, "What is this?"));
    assert.equal(request.messages[0].content, "File notes.md:\n\n````md\n# Notes\n```\ncode\n```\n````\n\nFile dropped.txt:\n\n```txt\nGrüße\n```\n\n"
                 + "File pasted.py:\n\n```py\nx = 1\n```\n\nWhat is this?");
    await ended(page);
    assert.deepEqual(await chips(page), []);
    const sent = page.locator(".message.user .sent-file");
    assert.equal(await sent.count(), 3);
    await sent.nth(1).locator("summary").click();
    assert.equal(await sent.nth(1).locator("pre").innerText(), "Grüße\n");
    assert.equal(await page.locator(".message.user .said").innerText(), "What is this?");
    const download = page.waitForEvent("download");
    await button(page, "Export").click();
    const path = await (await download).path();
    await page.getByLabel("File to import").setInputFiles(path);
    await page.locator(".notice", { hasText: "Imported 1" }).waitFor();
    assert.equal(await page.locator(".message.user .sent-file").count(), 3);
    assert.match(readFileSync(path, "utf8"), /Grüße/);
}

async function filesAreBounded({ page }) {
    await give(page, ...Array.from({ length: 25 }, (_, i) => file(`${i}.txt`, "x")));
    await page.locator(".notice", { hasText: "a message takes 20 files" }).waitFor();
    assert.equal((await chips(page)).length, 20);
    for (let i = 0; i < 20; i++) await page.locator(".chip button").first().click();
    await give(page, ...Array.from({ length: 5 }, (_, i) => file(`${i}.txt`, "x".repeat(500 * 1024))));
    await page.locator(".notice", { hasText: "all files may have 2.0 MiB together" }).waitFor();
    assert.equal((await chips(page)).length, 4);
    const box = await page.locator(".composer").boundingBox();
    assert.ok(box.y >= 0 && box.y + box.height <= 800);
}

// ------------------------------------------------------------------------------------ settings

async function theFirstSettingsAreTheUsualOnes({ page }) {
    await openPanel(page, "General");
    const labels = await page.locator("fieldset .field label").allInnerTexts();
    assert.deepEqual(labels, ["Temperature", "Top p", "Top k", "Min p"]);
    assert.equal(await page.getByLabel("Mirostat", { exact: true }).isVisible(), false);
    await page.getByText("More options of sampling").click();
    await page.getByLabel("Find an option").fill("phrases");
    await setNumber(page, "DRY: strength", 0.8);
    await page.getByLabel("Find an option").fill("nothing like it");
    await page.getByText("Nothing found.").waitFor();
    await setNumber(page, "Temperature", 1.5);
    await page.getByText("More options of sampling (1 changed)").waitFor();
    for (const name of await page.locator(".panel label[for^=sampling-]").allInnerTexts()) assert.doesNotMatch(name, /_/);
    await pretend(page, "Yes.");
    const request = await nextRequest(page, () => send(page, "Hello."));
    assert.deepEqual([request.temperature, request.dry_multiplier], [1.5, 0.8]);
    await button(page, "Reset 2 options").click();
    assert.equal(await page.getByLabel("Temperature", { exact: true }).inputValue(), "");
}

export const tests = [
    { name: "a full context drops the oldest turns and says so", run: aFullContextDropsTheOldestTurns },
    { name: "a context whose size was not known is kept to as well", run: aContextOfUnknownSizeIsKeptToo, allowed: /400/ },
    { name: "a turn that is too long is said in words", run: aTurnThatIsTooLongIsSaidInWords, allowed: /400/ },
    { name: "the gauge of the context is there after a load", run: theGaugeIsThereAfterALoad },
    { name: "the reading of a prompt is shown in per cent", server: "careful", run: theReadingOfAPromptIsShownInPercent },
    { name: "two conversations are answered side by side", run: twoConversationsAreAnsweredSideBySide },
    { name: "each conversation has an address", run: eachConversationHasAnAddress },
    { name: "conversations are found by keys", run: conversationsAreFoundByKeys },
    { name: "the dialog leaves an answer alone", run: theDialogLeavesAnAnswerAlone },
    { name: "drafts are kept for each conversation", run: draftsAreKept },
    { name: "the network's errors are said in words, with a way on", run: theNetworksErrorsAreSaidInWords, allowed: /Failed to load resource/ },
    { name: "an answer that broke off goes on", run: anAnswerThatBrokeOffGoesOn },
    { name: "an answer that a reload cut can go on", run: anAnswerThatTheReloadCutCanGoOn },
    { name: "a server that is away is asked again", run: aServerThatIsAwayIsAskedAgain, allowed: /Failed to load resource/ },
    { name: "text files go along by button, drop and paste", run: textFilesGoAlong },
    { name: "files are bounded", run: filesAreBounded },
    { name: "the first settings are the usual ones", run: theFirstSettingsAreTheUsualOnes },
];
