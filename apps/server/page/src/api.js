// SPDX-License-Identifier: MIT
// The requests of the page. All paths are relative: the page may lie under another path of a proxy.
import { readEvents } from "./events.js";

export class RequestError extends Error {}

async function check(answer) {
    if (answer.ok) return answer;
    let message = `status ${answer.status}`;
    try {
        message = (await answer.json()).error.message;
    } catch {
        // The status has to do.
    }
    throw new RequestError(message);
}

async function getJson(path) {
    return (await check(await fetch(path))).json();
}

export const listModels = async () => (await getJson("v1/models")).data;
export const listSampling = () => getJson("sampling");

// Yields the chunks of a streamed chat.
export async function* chat(body, signal) {
    const answer = await fetch("v1/chat/completions", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
        signal,
    });
    await check(answer);
    for await (const data of readEvents(answer.body)) {
        if (data === "[DONE]") return;
        const chunk = JSON.parse(data);
        if (chunk.error) throw new RequestError(chunk.error.message);
        yield chunk;
    }
    throw new RequestError("the answer broke off: the connection ended");
}
