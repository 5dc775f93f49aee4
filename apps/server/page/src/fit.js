// SPDX-License-Identifier: MIT
// A conversation that is longer than the context: its oldest turns are left out of the request, so that the answer has room.
import { countTokens, RequestError } from "./api.js";
import { messageOf, saidTo, systemOf } from "./conversation.js";

const ROOM = 0.25;   // of the context, for an answer without a limit of its own
const COUNTED = ["model", "tools", "reasoning_effort", "continue_final_message", "add_generation_prompt"];

export function countOf(body, messages, signal) {
    const fields = COUNTED.filter((name) => name in body).map((name) => [name, body[name]]);
    return countTokens({ ...Object.fromEntries(fields), messages }, signal);
}

// The messages of a request for what follows the message `id`, and the first of the conversation's that is among them, where
// older ones are not. size: of the context, if it is known.
export async function fit(conversation, id, body, size, signal) {
    const nodes = saidTo(conversation, id), head = systemOf(conversation);
    const turns = nodes.flatMap((node, i) => (node.role === "user" && i > 0 ? [i] : []));
    const without = (n) => [...head, ...nodes.slice(n > 0 ? turns[n - 1] : 0).map(messageOf)];
    const whole = { messages: without(0), first: null };
    if (!size || turns.length === 0) return whole;
    const room = size - Math.min(body.max_completion_tokens ?? size * ROOM, size / 2);
    if (new Blob([JSON.stringify({ ...body, messages: whole.messages })]).size <= room) return whole;   // no token has less than a byte
    const fits = async (n) => (await countOf(body, without(n), signal)) <= room;
    try {
        if (await fits(0)) return whole;
        let few = 0, enough = turns.length;
        while (few + 1 < enough) {
            const middle = (few + enough) >> 1;
            if (await fits(middle)) enough = middle;
            else few = middle;
        }
        return { messages: without(enough), first: nodes[turns[enough - 1]].id };
    } catch (error) {
        if (signal.aborted || !(error instanceof RequestError)) throw error;
        return whole;   // the answer's own request says what is wrong
    }
}
