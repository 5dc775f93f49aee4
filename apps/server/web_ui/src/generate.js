// SPDX-License-Identifier: MIT
// Generates answers: sends the conversation, and adds the pieces of the reply to a message.
import { chat } from "./api.js";
import { addNode, changeNode, ROOT } from "./conversation.js";
import { fit } from "./fit.js";
import { describe } from "./problems.js";
import { announced, chosenModel, contextSize, current, flush, get, put, refreshModels, running, runs, say, setRun } from "./store.js";

const PAINT_MS = 40;         // between two changes of what is shown
const N_ALTERNATIVES = 5;    // of each token
const MIN_SECONDS = 0.02;    // a speed of less time says nothing

function parseJson(text, name) {
    try {
        return JSON.parse(text);
    } catch (error) {
        throw new Error(`${name}: ${error.message}`);
    }
}

// The fields of a request from the settings. Throws a sentence if a text of the panel is not JSON.
export function requestOf(settings) {
    const body = { model: chosenModel()?.id, ...settings.sampling };
    if (settings.max_tokens !== "") body.max_completion_tokens = Number(settings.max_tokens);
    if (settings.seed !== "") body.seed = Number(settings.seed);
    if (settings.effort !== "") body.reasoning_effort = settings.effort;
    if (settings.logprobs) Object.assign(body, { logprobs: true, top_logprobs: N_ALTERNATIVES });
    if (settings.use_schema && settings.schema.trim())
        body.response_format = { type: "json_schema",
                                 json_schema: { name: "answer", strict: true, schema: parseJson(settings.schema, "The schema") } };
    if (settings.use_tools && settings.tools.trim()) {
        body.tools = toolList(parseJson(settings.tools, "The tools"));
        body.tool_choice = settings.tool_choice;
    }
    return body;
}

// Accepts a list of tools or of functions, or a single one.
export function toolList(json) {
    return [json].flat().map((tool) => (tool?.type === "function" ? tool : { type: "function", function: tool }));
}

// ------------------------------------------------------------------------------------ one answer

function addCalls(calls, deltas) {
    for (const { index, id, function: part } of deltas) {
        const call = (calls[index] ??= { id: "", name: "", arguments: "" });
        call.id ||= id ?? "";
        call.name += part?.name ?? "";
        call.arguments += part?.arguments ?? "";
    }
}

function addChunk(answer, chunk) {
    if (chunk.usage) answer.usage = chunk.usage;
    const choice = chunk.choices?.[0];
    if (!choice) return;
    const { content, reasoning_content: reasoning, tool_calls: calls } = choice.delta ?? {};
    if (content || reasoning || calls) {
        answer.first ??= performance.now();
        answer.last = performance.now();
        answer.n_chunks++;
    }
    answer.content += content ?? "";
    answer.reasoning += reasoning ?? "";
    if (calls) addCalls(answer.calls, calls);
    if (choice.logprobs?.content) answer.tokens.push(...choice.logprobs.content);
    if (choice.finish_reason) answer.finish = choice.finish_reason;
}

// A chunk counts as one token until the server reports the usage of the whole answer.
function statsOf(answer) {
    const n = answer.usage?.completion_tokens ?? answer.n_chunks;
    const seconds = (answer.last - answer.first) / 1000;
    return { first_ms: answer.first === undefined ? null : Math.round(answer.first - answer.start), n_answer: n,
             per_second: n > 1 && seconds >= MIN_SECONDS ? (n - 1) / seconds : null,
             n_prompt: answer.usage?.prompt_tokens ?? answer.n_prompt ?? null,
             n_cached: answer.usage?.prompt_tokens_details?.cached_tokens ?? null };
}

function fieldsOf(answer) {
    const fields = { content: answer.content, reasoning: answer.reasoning, finish: answer.finish, stats: statsOf(answer) };
    if (answer.calls.length > 0) fields.calls = answer.calls.map((call) => ({ ...call }));
    if (answer.tokens.length > 0) fields.tokens = [...answer.tokens];
    return fields;
}

// Sets the error that the message of a failed request shows.
function problemOf(error) {
    const { text, detail, code } = describe({ code: error.code, message: error.message, seconds: error.seconds });
    return { error: text, detail, code };
}

const NO_PROBLEM = { error: null, detail: null, code: null, stopped: false, unfinished: false };

// `after`: the message before the answer, or the answer itself if it is continued.
async function run(conversation, node, after, body) {
    const { id } = conversation, controller = new AbortController(), { signal } = controller;
    const isThere = () => runs.value.get(id)?.controller === controller;
    setRun(id, { node: node.id, controller, progress: null });
    announced.value = "The model is answering.";
    const answer = { content: node.content, reasoning: node.reasoning ?? "", calls: [], tokens: [...(node.tokens ?? [])],
                     finish: null, n_chunks: 0, start: performance.now() };
    let timer;
    const show = (more) => {
        clearTimeout(timer);
        timer = undefined;
        const now = get(id);
        if (now) put(changeNode(now, node.id, { ...fieldsOf(answer), ...more }));
    };
    const stream = async (size) => {
        const { messages, first } = await fit(get(id), after, body, size, signal);
        show({ ...NO_PROBLEM, unfinished: true, first_seen: first });
        if (first) announced.value = "The context is full: the oldest messages are left out.";
        for await (const chunk of chat({ ...body, messages }, signal)) {
            if (chunk.prompt_progress) {
                if (isThere()) setRun(id, { ...runs.value.get(id), progress: chunk.prompt_progress });
                answer.n_prompt = chunk.prompt_progress.total;
            }
            addChunk(answer, chunk);
            timer ??= setTimeout(show, PAINT_MS);
        }
    };
    try {
        const size = contextSize(conversation);
        await stream(size).catch(async (error) => {   // the size of a model that is not loaded is not known
            if (size || error.code !== "context_length_exceeded") throw error;
            await refreshModels();
            await stream(contextSize(conversation));
        });
        show({ ...NO_PROBLEM });
        announced.value = "The answer is complete.";
    } catch (error) {
        const stopped = signal.aborted;
        show(stopped ? { ...NO_PROBLEM, stopped } : { ...NO_PROBLEM, ...problemOf(error) });
        announced.value = stopped ? "The answer was stopped." : `The answer failed: ${get(id)?.nodes[node.id]?.error ?? error.message}`;
    }
    if (isThere()) setRun(id, null);
    if (!contextSize(conversation)) refreshModels().catch(() => {});   // it is loaded now
    await flush();
}

// Starts an answer in the message that `make` adds to the conversation, or finds in it.
async function start(make, more = {}) {
    if (running.value) return;
    let body;
    try {
        body = requestOf(current.value.settings);
    } catch (error) {
        say(error.message);
        return;
    }
    const [conversation, node, after] = make(current.value);
    put(conversation);
    await run(conversation, node, after, { ...body, ...more });
}

function newAnswer(conversation, parent) {
    const [next, node] = addNode(conversation, { parent, role: "assistant", model: chosenModel()?.id, unfinished: true });
    return [next, node, parent];
}

// ------------------------------------------------------------------------------------ what the user does

// Adds a message of the user after `parent`, and its answer.
export function send(text, parent, { files = [], pictures = [] } = {}) {
    const fields = { ...(files.length > 0 && { files }), ...(pictures.length > 0 && { pictures }) };
    return start((conversation) => {
        const [next, node] = addNode(conversation, { parent: parent ?? ROOT, role: "user", content: text, ...fields });
        return newAnswer(next, node.id);
    });
}

// Retries an answer that failed.
export function retry(node) {
    return start((conversation) => [changeNode(conversation, node.id, { reasoning: "", tokens: [] }), { ...node, reasoning: "", tokens: [] },
                                    node.parent]);
}

// Adds another answer to the message before.
export function regenerate(node) {
    return start((conversation) => newAnswer(conversation, node.parent));
}

export function answerTo(node) {
    return start((conversation) => newAnswer(conversation, node.id));
}

export function continueAnswer(node) {
    return start((conversation) => [conversation, conversation.nodes[node.id], node.id],
                 { continue_final_message: true, add_generation_prompt: false });
}

// Adds results of calls, one message each, and an answer once no call is open.
export function sendResults(node, results) {
    return start((conversation) => {
        let next = conversation, parent = node.id;
        for (const [call_id, content] of results) {
            const [added, result] = addNode(next, { parent, role: "tool", call_id, content });
            [next, parent] = [added, result.id];
        }
        return newAnswer(next, parent);
    });
}

export function stop() {
    running.value?.controller.abort();
}
