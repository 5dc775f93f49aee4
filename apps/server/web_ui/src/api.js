// SPDX-License-Identifier: MIT
// Requests to the server. All paths are relative, as a proxy may serve the web UI under another path.
import { readEvents } from "./events.js";

// A request that failed, in the server or before it. `code` names the kind (problems.js).
export class RequestError extends Error {
    constructor(message, code, seconds) {
        super(message);
        this.code = code;
        this.seconds = seconds;   // until a request may be let in, where the server says so
    }
}

const codeOf = (status) => ({ 401: "invalid_api_key", 413: "body_too_large", 429: "queue_full", 502: "unreachable", 503: "shutting_down",
                              504: "unreachable" })[status] ?? (status >= 500 ? "failed" : "");

async function check(answer) {
    if (answer.ok) return answer;
    let message = `The server answered with status ${answer.status}.`, code = codeOf(answer.status);
    try {
        const { error } = await answer.json();
        message = error.message;
        code = error.code ?? code;
    } catch {
        // not the server's JSON, such as the HTML of a proxy: only the status is known
    }
    throw new RequestError(message, code, Number(answer.headers.get("Retry-After")) || undefined);
}

async function request(path, options) {
    let answer;
    try {
        answer = await fetch(path, options);
    } catch (error) {
        if (options?.signal?.aborted) throw error;
        throw new RequestError(error.message, navigator.onLine ? "unreachable" : "offline");
    }
    return check(answer);
}

const post = (path, body, signal) =>
    request(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });

export const listModels = async () => (await (await request("v1/models")).json()).data;
export const listSampling = async () => (await request("sampling")).json();

const isPicture = (part) => part.type === "image_url";
const counts = new WeakMap();   // tokens of pictures, by their parts and by models

// The number of tokens of a picture in a message, which the server counts once for a model.
async function countPicture(part, model, signal) {
    const known = counts.get(part) ?? new Map();
    counts.set(part, known);
    if (known.has(model)) return known.get(model);
    const [, media_type, data] = /^data:([^;,]+);base64,([^]*)$/.exec(part.image_url.url);
    const image = { type: "image", source: { type: "base64", media_type, data } }, text = { type: "text", text: "." };
    const count = async (content) =>
        (await (await post("v1/messages/count_tokens", { model, messages: [{ role: "user", content }] }, signal)).json()).input_tokens;
    known.set(model, await count([image, text]) - await count([text]));
    return known.get(model);
}

// The number of tokens of the messages in the model's template, which is applied to their texts.
export async function countTokens(body, signal) {
    const lists = body.messages.map(({ content }) => (Array.isArray(content) ? content : []));
    const textOf = (parts) => parts.filter((part) => !isPicture(part)).map(({ text }) => text).join("");
    const messages = body.messages.map((one) => (Array.isArray(one.content) ? { ...one, content: textOf(one.content) } : one));
    const { prompt } = await (await post("apply-template", { ...body, messages }, signal)).json();
    let { count } = await (await post("tokenize", { model: body.model, content: prompt }, signal)).json();
    for (const part of lists.flat().filter(isPicture)) count += await countPicture(part, body.model, signal);
    return count;
}

// Yields the chunks of a streamed chat completion.
export async function* chat(body, signal) {
    const answer = await post("v1/chat/completions", { ...body, stream: true, return_progress: true,
                                                       stream_options: { include_usage: true } }, signal);
    try {
        for await (const data of readEvents(answer.body)) {
            if (data === "[DONE]") return;
            const chunk = JSON.parse(data);
            if (chunk.error) throw new RequestError(chunk.error.message, chunk.error.code ?? "failed");
            yield chunk;
        }
    } catch (error) {
        if (signal.aborted || error instanceof RequestError) throw error;
        throw new RequestError(error.message, navigator.onLine ? "broken_off" : "offline");
    }
    throw new RequestError("The connection ended.", "broken_off");
}
