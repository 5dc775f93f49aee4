// SPDX-License-Identifier: MIT
// Tests of the npm package's interface, for pages and Node. `run` returns a result for each test: { name, error }.

const PROMPT = "Once upon a time";
const MESSAGES = [{ role: "user", content: "Tell me the tale of Rapunzel." }];
const TEST_S = 90;   // for one test
const GREEDY = { temperature: 0, max_tokens: 12 };

class Missing extends Error {}

function equal(found, expected, what = "") {
    const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
    if (a !== b) throw new Error(`${what}: found ${a}, expected ${b}`);
}

function holds(condition, what) {
    if (!condition) throw new Error(what);
}

async function fails(promise, status, part) {
    try {
        await promise;
    } catch (error) {
        if (error.status !== status || !error.message.includes(part)) throw new Error(`failed with ${error.status ?? error.name}: ${error.message}`);
        return error;
    }
    throw new Error(`did not fail; expected ${status} with "${part}"`);
}

async function take(stream) {
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    return chunks;
}

const textOf = (completion) => completion.choices[0].text;

// Tests of one loaded model. `t`: { frit, text, api, context }.
const tests = {
    async "info tells what the model is"({ frit }) {
        holds(frit.info.n_vocab > 1000 && frit.info.n_layer > 0 && frit.info.packed_bytes > 0, JSON.stringify(frit.info));
        equal(frit.info.kind, "decoder");
    },
    async "the heap has the packed weights and little more"({ frit }) {
        const { packed_bytes: packed, kv_bytes: kv, needed_bytes: needed } = frit.info, heap = await frit.memory();
        holds(heap <= packed + kv + (64 << 20), `heap ${heap}, packed ${packed}, cache ${kv}`);
        holds(needed >= packed + kv, `needed ${needed}`);
    },
    async "text continues as the command writes it"({ frit, text }) {
        equal(textOf(await frit.completions.create({ prompt: text.prompt, temperature: 0, max_tokens: text.n })), text.expected);
    },
    async "a stream has the text of the whole answer"({ frit }) {
        const request = { prompt: PROMPT, ...GREEDY }, whole = await frit.completions.create(request);
        const chunks = await take(await frit.completions.create({ ...request, stream: true }));
        equal(chunks.map((chunk) => chunk.choices[0]?.text ?? "").join(""), textOf(whole));
        equal(chunks.at(-1).choices[0].finish_reason, "length");
        equal(whole.usage.completion_tokens, 12);
    },
    async "usage comes last if it is wanted"({ frit }) {
        const chunks = await take(await frit.completions.create({ prompt: PROMPT, ...GREEDY, stream: true, stream_options: { include_usage: true } }));
        equal(chunks.at(-1).choices, []);
        equal(chunks.at(-1).usage.completion_tokens, 12);
        holds(chunks.at(-1).timings.predicted_per_second > 0, "no speed");
    },
    async "a prompt may be tokens"({ frit }) {
        const tokens = await frit.tokenize(PROMPT);
        equal(textOf(await frit.completions.create({ prompt: tokens, ...GREEDY })), textOf(await frit.completions.create({ prompt: PROMPT, ...GREEDY })));
    },
    async "the default is 16 tokens of a text"({ frit }) {
        equal((await frit.completions.create({ prompt: PROMPT, temperature: 0 })).usage.completion_tokens, 16);
    },
    async "a chat is answered"({ frit }) {
        const answer = await frit.chat.completions.create({ messages: MESSAGES, ...GREEDY });
        equal([answer.object, answer.choices[0].message.role, answer.choices[0].finish_reason], ["chat.completion", "assistant", "length"]);
        holds(answer.choices[0].message.content.length > 10, JSON.stringify(answer));
        holds(answer.usage.prompt_tokens > 5, "no prompt");
    },
    async "a chat streams its answer"({ frit }) {
        const request = { messages: MESSAGES, ...GREEDY };
        const chunks = await take(await frit.chat.completions.create({ ...request, stream: true }));
        equal(chunks[0].choices[0].delta, { role: "assistant", content: "" });
        const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
        equal(text, (await frit.chat.completions.create(request)).choices[0].message.content);
        equal(chunks.at(-1).choices[0].finish_reason, "length");
    },
    async "content may be a list of parts"({ frit }) {
        const parts = [{ role: "user", content: [{ type: "text", text: MESSAGES[0].content }] }];
        equal((await frit.chat.completions.create({ messages: parts, ...GREEDY })).choices[0].message.content,
              (await frit.chat.completions.create({ messages: MESSAGES, ...GREEDY })).choices[0].message.content);
    },
    async "a second turn reuses the first"({ frit }) {
        const first = await frit.chat.completions.create({ messages: MESSAGES, ...GREEDY });
        const messages = [...MESSAGES, first.choices[0].message, { role: "user", content: "Go on." }];
        const second = await frit.chat.completions.create({ messages, ...GREEDY });
        holds(second.usage.prompt_tokens_details.cached_tokens > 0, JSON.stringify(second.usage));
    },
    async "a seed repeats an answer"({ frit }) {
        const request = { prompt: PROMPT, temperature: 4, top_k: 0, top_p: 1, min_p: 0, seed: 7, max_tokens: 12 };
        const [a, b, c] = [await frit.completions.create(request), await frit.completions.create(request), await frit.completions.create({ ...request, seed: 8 })];
        equal(textOf(a), textOf(b));
        holds(textOf(a) !== textOf(c), "another seed gives the same text");
    },
    async "options of the command have their names"({ frit }) {
        const a = await frit.completions.create({ prompt: PROMPT, temp: 3, top_k: 1, seed: 1, max_tokens: 8 });
        equal(textOf(a), textOf(await frit.completions.create({ prompt: PROMPT, temperature: 0, max_tokens: 8 })));
    },
    async "an option out of range is refused"({ frit }) {
        await fails(frit.completions.create({ prompt: PROMPT, top_p: 7 }), "E_INVALID", "top-p");
    },
    async "stop texts end an answer"({ frit }) {
        const whole = textOf(await frit.completions.create({ prompt: PROMPT, temperature: 0, max_tokens: 30 }));
        const stop = whole.slice(8, 14);
        const answer = await frit.completions.create({ prompt: PROMPT, temperature: 0, max_tokens: 30, stop: ["zzz", stop] });
        equal([textOf(answer), answer.choices[0].finish_reason], [whole.slice(0, whole.indexOf(stop)), "stop"]);
    },
    async "stop must be texts"({ frit }) {
        await fails(frit.completions.create({ prompt: PROMPT, stop: [3] }), "E_INVALID", "stop: ");
    },
    async "biases forbid tokens"({ frit }) {
        const [token] = (await (await sessionOf(frit, PROMPT)).next(1, { temperature: 0 }));
        const answer = await frit.completions.create({ prompt: PROMPT, temperature: 0, max_tokens: 1, logit_bias: { [token]: -100 } });
        holds(textOf(answer) !== textOf(await frit.completions.create({ prompt: PROMPT, temperature: 0, max_tokens: 1 })), "the token came");
    },
    async "a schema gives JSON"({ frit }) {
        const schema = { type: "object", properties: { name: { type: "string", maxLength: 12 }, age: { type: "integer", minimum: 0, maximum: 99 } }, required: ["name", "age"] };
        const answer = await frit.chat.completions.create({ messages: MESSAGES, temperature: 0, max_tokens: 200,
                                                            response_format: { type: "json_schema", json_schema: { name: "person", schema } } });
        const { name, age } = JSON.parse(answer.choices[0].message.content);
        holds(typeof name === "string" && Number.isInteger(age), answer.choices[0].message.content);
        equal(answer.choices[0].finish_reason, "stop");
    },
    async "a grammar gives one of its texts"({ frit }) {
        const answer = await frit.completions.create({ prompt: PROMPT, temperature: 0, max_tokens: 40, grammar: 'root ::= "yes" | "no"' });
        holds(["yes", "no"].includes(textOf(answer)), textOf(answer));
    },
    async "a regular expression is matched"({ frit }) {
        const answer = await frit.completions.create({ prompt: PROMPT, temperature: 0, max_tokens: 40, regex: "[0-9]{4}-[0-9]{2}" });
        holds(/^\d{4}-\d\d$/.test(textOf(answer)), textOf(answer));
    },
    async "a bad grammar is refused with a sentence"({ frit }) {
        await fails(frit.completions.create({ prompt: PROMPT, grammar: "root ::= (" }), "E_INVALID", "");
    },
    async "two forms are refused"({ frit }) {
        await fails(frit.completions.create({ prompt: PROMPT, grammar: 'root ::= "a"', regex: "a" }), "E_INVALID", "one grammar");
    },
    async "a required tool is called"({ frit }) {
        const parameters = { type: "object", properties: { city: { type: "string", enum: ["Rome", "Oslo"] } }, required: ["city"] };
        const tools = [{ type: "function", function: { name: "weather", description: "The weather", parameters, strict: true } }];
        let answer;
        try {
            answer = await frit.chat.completions.create({ messages: MESSAGES, tools, tool_choice: "required", temperature: 0, max_tokens: 200 });
        } catch (error) {
            if (error.status === "E_UNSUPPORTED") throw new Missing(error.message);   // the model has no format for calls
            throw error;
        }
        const [call] = answer.choices[0].message.tool_calls;
        equal([call.type, call.function.name, answer.choices[0].finish_reason], ["function", "weather", "tool_calls"]);
        holds(["Rome", "Oslo"].includes(JSON.parse(call.function.arguments).city), call.function.arguments);
    },
    async "log-probabilities are those of the likeliest tokens"({ frit }) {
        const answer = await frit.chat.completions.create({ messages: MESSAGES, ...GREEDY, logprobs: true, top_logprobs: 3 });
        const { content } = answer.choices[0].logprobs;
        equal(content.length, 12);
        for (const { logprob, token, top_logprobs: top } of content) {
            equal(top.length, 3);
            equal([top[0].token, top[0].logprob], [token, logprob]);
            holds(logprob <= 0 && top[1].logprob <= top[0].logprob, JSON.stringify(top));
        }
    },
    async "a prompt longer than the context is refused"({ frit }) {
        const error = await fails(frit.completions.create({ prompt: "tale ".repeat(frit.info.n_ctx + 10) }), "E_LIMIT", "tokens");
        equal(error.code, "context_length_exceeded");
    },
    async "messages without a role are refused by their field"({ frit }) {
        const error = await fails(frit.chat.completions.create({ messages: [{ content: "x" }] }), "E_INVALID", "messages[0]");
        holds(error.param?.startsWith("messages[0]"), error.param);
    },
    async "a signal stops an answer"({ frit }) {
        const controller = new AbortController();
        let n = 0;
        try {
            for await (const _ of await frit.completions.create({ prompt: PROMPT, max_tokens: 200, stream: true, ignore_eos: true }, { signal: controller.signal }))
                if (++n === 3) controller.abort();
        } catch (error) {
            equal(error.name, "AbortError");
            equal((await frit.completions.create({ prompt: PROMPT, ...GREEDY })).usage.completion_tokens, 12);
            return;
        }
        throw new Error(`it went on for ${n} chunks`);
    },
    async "an aborted signal begins nothing"({ frit }) {
        let name;
        await frit.completions.create({ prompt: PROMPT, ...GREEDY }, { signal: AbortSignal.abort() }).catch((error) => (name = error.name));
        equal(name, "AbortError");
    },
    async "leaving the loop stops an answer"({ frit }) {
        for await (const _ of await frit.completions.create({ prompt: PROMPT, max_tokens: 200, stream: true })) break;
        equal((await frit.completions.create({ prompt: PROMPT, ...GREEDY })).usage.completion_tokens, 12);
    },
    async "requests wait for each other"({ frit }) {
        const request = { prompt: PROMPT, ...GREEDY };
        const answers = await Promise.all([1, 2, 3].map(() => frit.completions.create(request)));
        equal(new Set(answers.map(textOf)).size, 1);
    },
    async "tokens become text again"({ frit }) {
        const text = "Häuser, 家 and 🏠";
        equal((await frit.detokenize(await frit.tokenize(text, { special: false }))).trim(), text);
    },
    async "a request's tokens are counted"({ frit }) {
        const answer = await frit.chat.completions.create({ messages: MESSAGES, ...GREEDY });
        equal(await frit.countTokens({ messages: MESSAGES }), answer.usage.prompt_tokens);
    },
    async "texts have vectors of length 1"({ frit }) {
        const { data } = await frit.embeddings.create({ input: ["a tower", "a witch"] });
        equal(data.map(({ index }) => index), [0, 1]);
        for (const { embedding } of data) {
            const length = Math.hypot(...embedding);
            holds(Math.abs(length - 1) < 1e-4 && embedding.length === frit.info.n_embd, `${embedding.length} numbers of length ${length}`);
        }
    },
    async "an unknown pooling is refused"({ frit }) {
        await fails(frit.embeddings.create({ input: "x", pooling: "best" }), "E_INVALID", "best");
    },
    async "a decoder does not rerank"({ frit }) {
        await fails(frit.rerank({ query: "a", documents: ["b"] }), "E_UNSUPPORTED", "");
    },
    async "a session picks what a completion gives"({ frit }) {
        const session = await sessionOf(frit, PROMPT), tokens = await session.next(12, { temperature: 0 });
        const text = textOf(await frit.completions.create({ prompt: PROMPT, ...GREEDY }));
        equal((await frit.detokenize(await session.tokens())).trimStart(), PROMPT + text);
        equal(tokens.length, 12);
        await session.close();
    },
    async "a fork goes its own way"({ frit }) {
        const session = await sessionOf(frit, PROMPT), fork = await session.fork();
        equal(await fork.next(6, { temperature: 0 }), await session.next(6, { temperature: 0 }));
        await session.truncate(4);
        equal([(await session.tokens()).length, (await fork.tokens()).length > 6], [4, true]);
        await Promise.all([session.close(), fork.close()]);
    },
    async "a saved session goes on"({ frit }) {
        const session = await sessionOf(frit, PROMPT), bytes = await session.save(), other = await frit.session();
        await other.load(bytes);
        equal(await other.next(6, { temperature: 0 }), await session.next(6, { temperature: 0 }));
        await fails(other.load(bytes.slice(0, 100)), "E_FORMAT", "");
        await Promise.all([session.close(), other.close()]);
    },
    async "logits have the picked token as the likeliest"({ frit }) {
        const session = await sessionOf(frit, PROMPT), logits = await session.logits(), [token] = await session.next(1, { temperature: 0 });
        equal([logits.length, logits.indexOf(logits.reduce((a, b) => Math.max(a, b)))], [frit.info.n_vocab, token]);
        await session.close();
    },
    async "a closed session is refused"({ frit }) {
        const session = await frit.session();
        await session.close();
        await fails(session.next(), "E_INVALID", "closed");
    },
    async "a model that does not fit is refused with numbers"({ api, model, options }) {
        await fails(api.Frit.load(model, { ...options, memory: 1 << 20 }), "E_MEMORY", "MiB");
        await fails(api.Frit.load(model, { ...options, ctx: 10_000_000 }), "E_MEMORY", "free");
    },
    async "a file that is no model is refused"({ api, options }) {
        await fails(api.Frit.load(new TextEncoder().encode("<html>no model, only a page of the web that is long enough"), options), "E_FORMAT", "GGUF");
    },
    async "an unknown option's value is refused"({ api, model, options }) {
        await fails(api.Frit.load(model, { ...options, cache_type_k: "q9_9" }), "E_INVALID", "q9_9");
        await fails(api.Frit.load(model, { ...options, speed: 9 }), "E_INVALID", "speed: is not an option");
    },
    async "bytes load as a file does"({ api, bytes, options, frit }) {
        const other = await api.Frit.load(await bytes(), options), request = { prompt: PROMPT, ...GREEDY };
        equal(textOf(await other.completions.create(request)), textOf(await frit.completions.create(request)));
        other.close();
        await fails(other.completions.create(request), "E_CANCELLED", "closed");
    },
    async "the main thread is never blocked for long"({ frit, isNode }) {
        if (isNode) throw new Missing("for pages");
        let last = performance.now(), longest = 0, goes = true;
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => {
            const now = performance.now();
            longest = Math.max(longest, now - last);
            last = now;
            if (goes) port2.postMessage(0);
        };
        port2.postMessage(0);
        await frit.completions.create({ prompt: PROMPT, temperature: 0, max_tokens: 30 });
        goes = false;
        holds(longest < 2000, `blocked for ${longest.toFixed(1)} ms`);   // a busy machine takes the processor away
        return `longest ${longest.toFixed(1)} ms`;
    },
};

async function sessionOf(frit, text) {
    const session = await frit.session();
    await session.push(text);
    return session;
}

// Runs tests one after the other. A test that a model or an engine cannot run is left out.
export async function runTests(list, context) {
    const results = [];
    for (const [name, test] of Object.entries(list)) {
        try {
            const late = new Promise((_, reject) => setTimeout(() => reject(new Error(`no result in ${TEST_S} s`)), 1000 * TEST_S));
            results.push({ name, note: (await Promise.race([test(context), late])) ?? "" });
        } catch (error) {
            if (error instanceof Missing) results.push({ name, skipped: error.message });
            else results.push({ name, error: String(error?.stack ?? error) });
        }
    }
    return results;
}

// model: what Frit.load takes; bytes: a function that returns the model's bytes.
export async function run({ api, model, bytes, text, options, isNode }) {
    const frit = await api.Frit.load(model, options);
    const results = await runTests(tests, { frit, api, model, bytes, text, options, isNode });
    frit.close();
    return results;
}

export { equal, fails, holds, Missing };
