// SPDX-License-Identifier: MIT
// Vercel's unmodified ai package, with its provider for OpenAI's interface, against the servers that clients_node.py has
// started.
import assert from "node:assert/strict";
import test from "node:test";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embedMany, generateObject, generateText, stepCountIs, streamObject, streamText, tool } from "ai";
import { z } from "zod";

const { FRIT_TALES, FRIT_TOOLS, FRIT_KEY } = process.env;
const provider = (url) => createOpenAICompatible({
  name: "frit", baseURL: `${url}/v1`, apiKey: FRIT_KEY, includeUsage: true, supportsStructuredOutputs: true,
});
const tales = provider(FRIT_TALES)("default");
const prompt = "Tell me the tale of Rapunzel.";
const short = { model: tales, prompt, temperature: 0, maxOutputTokens: 20, maxRetries: 0 };
const Book = z.object({
  tale: z.enum(["Rapunzel", "Cinderella"]), pages: z.number().int().min(1).max(99), illustrated: z.boolean(),
});

function withWeather(cities) {
  return {
    model: provider(FRIT_TOOLS)("scripted"), prompt: "weather", maxRetries: 0, stopWhen: stepCountIs(3),
    tools: { get_weather: tool({
      description: "Weather of a city", inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => { cities.push(city); return 21; } }) },
  };
}

test("generateText and streamText agree", async () => {
  const whole = await generateText(short);
  assert.match(whole.text, /There were once a man and a woman/);
  assert.equal(whole.finishReason, "length");
  const stream = streamText(short);
  let text = "";
  for await (const delta of stream.textStream) text += delta;
  assert.equal(text, whole.text);
  assert.equal((await stream.usage).outputTokens, 20);
});

test("generateObject gives an object of the schema", async () => {
  const { object } = await generateObject({ ...short, maxOutputTokens: 300, schema: Book });
  assert.deepEqual(Object.keys(object), ["tale", "pages", "illustrated"]);
  const stream = streamObject({ ...short, maxOutputTokens: 300, schema: Book });
  let last;
  for await (const partial of stream.partialObjectStream) last = partial;
  assert.deepEqual(last, object);
});

test("tools are called in a loop", async () => {
  const cities = [];
  const answer = await generateText(withWeather(cities));
  assert.equal(answer.text, "It is 21 degrees.");
  assert.equal(answer.steps.length, 2);
  assert.equal(answer.steps[0].reasoningText, "Hm, weather.");
  assert.deepEqual(cities, ["Paris"]);
});

test("tools are called in a stream", async () => {
  const cities = [], kinds = new Set();
  const stream = streamText(withWeather(cities));
  for await (const part of stream.fullStream) kinds.add(part.type);
  for (const kind of ["reasoning-delta", "text-delta", "tool-call", "tool-result", "finish"])
    assert.ok(kinds.has(kind), kind);
  assert.equal(await stream.text, "It is 21 degrees.");
  assert.deepEqual(cities, ["Paris"]);
});

test("a stream that is aborted frees its session", async () => {
  const abort = new AbortController();
  const stream = streamText({ ...short, maxOutputTokens: 400, abortSignal: abort.signal });
  try { for await (const delta of stream.textStream) if (delta) abort.abort(); } catch { /* how it ends is its own affair */ }
  for (let i = 0; i < 500; i++)
    if ((await (await fetch(`${FRIT_TALES}/health`)).json()).running === 0) return;
  assert.fail("the session is still busy");
});

test("vectors are read", async () => {
  const { embeddings } = await embedMany({
    model: provider(FRIT_TALES).textEmbeddingModel("default"), values: ["a king", "a queen"], maxRetries: 0,
  });
  assert.equal(embeddings.length, 2);
  assert.equal(embeddings[0].length, embeddings[1].length);
});

test("errors say what was wrong", async () => {
  await assert.rejects(generateText({ ...short, temperature: -1 }), (e) => e.statusCode === 400 && /temperature/.test(e.message));
});
