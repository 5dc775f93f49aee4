// SPDX-License-Identifier: MIT
// The unmodified openai package from npm against the servers that clients_node.py has started.
import assert from "node:assert/strict";
import test from "node:test";
import OpenAI from "openai";

const { FRIT_TALES, FRIT_TOOLS, FRIT_KEY } = process.env;
const tales = new OpenAI({ baseURL: `${FRIT_TALES}/v1`, apiKey: FRIT_KEY, maxRetries: 0 });
const tools = new OpenAI({ baseURL: `${FRIT_TOOLS}/v1`, apiKey: FRIT_KEY, maxRetries: 0 });
const asked = {
  model: "default", temperature: 0, max_tokens: 20,
  messages: [{ role: "user", content: "Tell me the tale of Rapunzel." }],
};
const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const weather = { type: "function", function: { name: "get_weather", description: "Weather of a city", parameters: city } };

test("a stream is the answer", async () => {
  const whole = await tales.chat.completions.create(asked);
  assert.match(whole.choices[0].message.content, /There were once a man and a woman/);
  let text = "", usage = null;
  for await (const chunk of await tales.chat.completions.create(
    { ...asked, stream: true, stream_options: { include_usage: true } })) {
    text += chunk.choices[0]?.delta.content ?? "";
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, whole.choices[0].message.content);
  assert.equal(usage.completion_tokens, 20);
});

test("a stream that is left ends", async () => {
  const stream = await tales.chat.completions.create({ ...asked, max_tokens: 400, stream: true });
  for await (const chunk of stream) if (chunk.choices[0].delta.content) break;
  assert.ok(stream.controller.signal.aborted);
  for (let i = 0; i < 500; i++)
    if ((await (await fetch(`${FRIT_TALES}/health`)).json()).running === 0) return;
  assert.fail("the session is still busy");
});

test("a schema is obeyed", async () => {
  const schema = {
    type: "object", properties: { tale: { enum: ["Rapunzel", "Cinderella"] }, long: { type: "boolean" } },
    required: ["tale", "long"], additionalProperties: false,
  };
  const answer = await tales.chat.completions.parse({
    ...asked, max_tokens: 300,
    response_format: { type: "json_schema", json_schema: { name: "book", strict: true, schema } },
  });
  const book = answer.choices[0].message.parsed ?? JSON.parse(answer.choices[0].message.content);
  assert.ok(["Rapunzel", "Cinderella"].includes(book.tale));
  assert.equal(typeof book.long, "boolean");
});

test("the tool runner runs tools", async () => {
  const cities = [];
  const runner = tools.chat.completions.runTools({
    model: "scripted", messages: [{ role: "user", content: "weather" }],
    tools: [{ type: "function", function: {
      ...weather.function, parse: JSON.parse, function: (given) => { cities.push(given.city); return "21"; } } }],
  });
  assert.equal(await runner.finalContent(), "It is 21 degrees.");
  assert.deepEqual(cities, ["Paris"]);
});

test("responses stream", async () => {
  const stream = tools.responses.stream({
    model: "scripted", input: "weather", tools: [{ type: "function", strict: false, ...weather.function }],
  });
  let text = "";
  stream.on("response.output_text.delta", (event) => { text += event.delta; });
  const final = await stream.finalResponse();
  assert.equal(text, "Let me look.");
  assert.equal(final.output_text, text);
  assert.deepEqual(JSON.parse(final.output.at(-1).arguments), { city: "Paris" });
});

test("vectors are read", async () => {   // this package asks for base64 unless told otherwise
  const coded = await tales.embeddings.create({ model: "default", input: ["a king"] });
  const plain = await tales.embeddings.create({ model: "default", input: ["a king"], encoding_format: "float" });
  assert.equal(coded.data[0].embedding.length, plain.data[0].embedding.length);
  coded.data[0].embedding.forEach((x, i) => assert.ok(Math.abs(x - plain.data[0].embedding[i]) < 1e-6));
});

test("errors have their classes", async () => {
  await assert.rejects(tales.chat.completions.create({ ...asked, temperature: -1 }),
    (e) => e instanceof OpenAI.BadRequestError && e.param === "temperature" && Boolean(e.requestID));
  await assert.rejects(tales.chat.completions.create({ ...asked, model: "gpt-4" }), OpenAI.NotFoundError);
  const other = new OpenAI({ baseURL: `${FRIT_TALES}/v1`, apiKey: "wrong", maxRetries: 0 });
  await assert.rejects(other.models.list(), OpenAI.AuthenticationError);
});
