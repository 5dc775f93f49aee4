// SPDX-License-Identifier: MIT
// Fits a conversation into the context: the oldest turns are left out of the request, so that the answer has room.
import { countTokens, RequestError } from "./api.js";
import { messageOf, saidTo, systemOf } from "./conversation.js";

const ROOM = 0.25;   // of the context, for an answer without a limit of its own
const LESS = 0.7;    // of what fits is kept where turns are left out, so that the next requests begin alike and run faster
const COUNTED = ["model", "tools", "reasoning_effort", "continue_final_message", "add_generation_prompt"];

export function countOf(body, messages, signal) {
    const fields = COUNTED.filter((name) => name in body).map((name) => [name, body[name]]);
    return countTokens({ ...Object.fromEntries(fields), messages }, signal);
}

// The messages of a request for an answer to the message `id`, and the first message that is not left out, if older ones
// are. `size`: tokens of the context, if known.
export async function fit(conversation, id, body, size, signal) {
    const nodes = saidTo(conversation, id), head = systemOf(conversation);
    const turns = nodes.flatMap((node, i) => (node.role === "user" && i > 0 ? [i] : []));
    const without = (n) => [...head, ...nodes.slice(n > 0 ? turns[n - 1] : 0).map(messageOf)];
    const whole = { messages: without(0), first: null };
    if (!size || turns.length === 0) return whole;
    const room = size - Math.min(body.max_completion_tokens ?? size * ROOM, size / 2);
    if (!nodes.some(({ pictures }) => pictures)) {   // no token of a text has less than a byte
        if (new Blob([JSON.stringify({ ...body, messages: whole.messages })]).size <= room) return whole;
    }
    const fits = async (n, most) => (await countOf(body, without(n), signal)) <= most;
    const from = (n) => ({ messages: without(n), first: nodes[turns[n - 1]].id });
    const before = nodes.findLast((node) => node.first_seen)?.first_seen;
    try {
        if (await fits(0, room)) return whole;
        let few = turns.findIndex((i) => nodes[i].id === before) + 1, enough = turns.length;
        if (few > 0 && (few === enough || await fits(few, room))) return from(few);
        while (few + 1 < enough) {
            const middle = (few + enough) >> 1;
            if (await fits(middle, LESS * room)) enough = middle;
            else few = middle;
        }
        return from(enough);
    } catch (error) {
        if (signal.aborted || !(error instanceof RequestError)) throw error;
        return whole;   // the answer's own request says what is wrong
    }
}
