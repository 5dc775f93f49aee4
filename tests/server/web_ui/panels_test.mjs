// SPDX-License-Identifier: MIT
// The panel: system prompt, sampling, schema, tools; the view of probabilities; the key.
import assert from "node:assert/strict";

import { ask, button, ended, lastAnswer, nextRequest, openPanel, send, setNumber } from "./browser.mjs";
import { KEY } from "./servers.mjs";

async function settingsAreSent({ page, url }) {
    const rows = await (await page.request.get(`${url}/sampling`)).json();
    await openPanel(page, "General");
    assert.equal(await page.locator("[id^=sampling-]:not(small)").count(), rows.length);
    await page.getByLabel("System prompt").fill("Answer like a pirate.");
    await setNumber(page, "Top p", 0.5);
    await setNumber(page, "Longest answer", 4);
    await setNumber(page, "Seed", 7);
    await page.getByLabel("Reasoning").selectOption("none");
    const request = await nextRequest(page, () => send(page, "Hello."));
    assert.deepEqual(request.messages, [{ role: "system", content: "Answer like a pirate." }, { role: "user", content: "Hello." }]);
    assert.deepEqual([request.top_p, request.seed, request.max_completion_tokens, request.model, request.reasoning_effort],
                     [0.5, 7, 4, "fable", "none"]);
    await ended(page);
    await page.getByLabel("Top p", { exact: true }).fill("7");   // out of its row's range
    assert.equal(await page.getByLabel("Top p", { exact: true }).getAttribute("aria-invalid"), "true");
    await page.getByLabel("Top p", { exact: true }).fill("0.5");
    await button(page, "Reset 1 option").click();
    const next = await nextRequest(page, () => send(page, "Again."));
    assert.equal(next.top_p, undefined);
    await ended(page);
}

async function answersObeyTheSchema({ page }) {
    await openPanel(page, "Schema");
    await page.getByLabel("JSON Schema").fill("{\"type\": ");
    await page.getByRole("tabpanel").getByText(/JSON/).last().waitFor();
    assert.equal(await page.getByLabel("JSON Schema").getAttribute("aria-invalid"), "true");
    await page.getByLabel("JSON Schema").fill("");
    await page.getByLabel("Answer in JSON").check();
    await page.getByLabel("JSON Schema").fill(JSON.stringify(
        { type: "object", properties: { age: { type: "integer", minimum: 3, maximum: 99 } }, required: ["age"], additionalProperties: false }));
    await ask(page, "How old?");
    const answer = JSON.parse(await lastAnswer(page).locator(".prose").innerText());
    assert.deepEqual(Object.keys(answer), ["age"]);
    assert.ok(answer.age >= 3 && answer.age <= 99);
}

async function toolsAreCalledAndAnswered({ page }) {
    await openPanel(page, "Tools");
    await page.getByLabel("Offer tools").check();
    await button(page, "Insert an example").click();
    await ask(page, "weather");
    assert.match(await lastAnswer(page).locator(".call").innerText(), /get_weather[^]*"city": "Paris"/);
    assert.match(await lastAnswer(page).locator(".reasoning").textContent(), /Hm, weather/);
    await page.getByLabel("Result").fill("21 degrees");
    const request = await nextRequest(page, () => button(page, "Send the result").click());
    const [, call, result] = request.messages;
    assert.equal(call.tool_calls[0].function.name, "get_weather");
    assert.deepEqual([result.role, result.tool_call_id, result.content], ["tool", call.tool_calls[0].id, "21 degrees"]);
    await ended(page);
    assert.match(await lastAnswer(page).innerText(), /It is 21 degrees\./);
    assert.equal(await page.locator(".call textarea").count(), 0);
}

async function probabilitiesOfTokensShow({ page }) {
    await openPanel(page, "General");
    await page.getByLabel("Probabilities of tokens").check();
    await setNumber(page, "Longest answer", 20);
    await ask(page, "Tell me the tale of Rapunzel.");
    await button(page, "Probabilities of tokens").click();
    const list = page.getByRole("listbox");
    assert.equal(await list.getByRole("option").count(), 20);
    assert.equal(await list.getByRole("option").first().innerText(), "There");
    assert.equal(await page.locator(".alternatives tbody tr").count(), 5);
    const first = await page.locator(".alternatives caption").innerText();
    await list.focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    assert.notEqual(await page.locator(".alternatives caption").innerText(), first);
    assert.equal(await list.getByRole("option", { selected: true }).getAttribute("data-index"), "2");
}

async function theKeyIsThePassword({ page, url }) {
    await ask(page, "Hello.");
    await lastAnswer(page).locator(".prose").waitFor();
    const refused = await (await fetch(url)).text();
    assert.match(refused, /key/);
}

async function withoutAKeyThereIsNoPage({ page, url }) {
    const answer = await page.goto(url).catch(() => null);
    assert.ok(!answer || answer.status() === 401);
    assert.equal(await page.locator("#prompt").count(), 0);
}

export const tests = [
    { name: "sampling options come from the server's rows and are sent", run: settingsAreSent },
    { name: "answers obey the schema of the panel", run: answersObeyTheSchema },
    { name: "tools are called, and their results typed", server: "scripted", run: toolsAreCalledAndAnswered },
    { name: "probabilities of tokens show, by keys too", run: probabilitiesOfTokensShow },
    { name: "the key is the password", server: "keyed", options: { httpCredentials: { username: "me", password: KEY } },
      run: theKeyIsThePassword, allowed: /401/ },
    { name: "without a key there is no page", server: "keyed", run: withoutAKeyThereIsNoPage, allowed: /401/ },
];
