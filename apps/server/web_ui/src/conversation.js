// SPDX-License-Identifier: MIT
// A conversation is a tree of messages. Each message has a parent, children of one parent are branches, and `chosen` names
// the child that is shown. The functions return a changed copy, which shares the unchanged messages.
import { withFiles } from "./files.js";
import { partOf } from "./pictures.js";

export const ROOT = "root";

// crypto.randomUUID needs a secure context, but a server in the local network has plain HTTP.
export function newId() {
    return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function newConversation() {
    const now = Date.now();
    return { id: newId(), title: "", created: now, updated: now, nodes: {}, chosen: {}, settings: newSettings() };
}

export function newSettings() {
    return { model: "", system: "", sampling: {}, max_tokens: "", seed: "", effort: "", logprobs: false, schema: "", use_schema: false,
             tools: "", use_tools: false, tool_choice: "auto" };
}

export function childrenOf(conversation, parent) {
    return Object.values(conversation.nodes).filter((node) => node.parent === parent);
}

// The shown messages, from the first one on.
export function pathOf(conversation) {
    const children = Map.groupBy(Object.values(conversation.nodes), (node) => node.parent);
    const path = [];
    for (let list = children.get(ROOT); list; list = children.get(path.at(-1).id))
        path.push(list.find((node) => node.id === conversation.chosen[list[0].parent]) ?? list.at(-1));
    return path;
}

// The messages from the first one to the given one.
export function pathTo(conversation, id) {
    const path = [];
    for (let node = conversation.nodes[id]; node; node = conversation.nodes[node.parent]) path.unshift(node);
    return path;
}

export function addNode(conversation, fields) {
    const node = { id: newId(), content: "", at: Date.now(), ...fields };
    const title = conversation.title || (node.role === "user" ? titleOf(node.content || (node.files ?? node.pictures)?.[0].name || "") : "");
    return [{ ...conversation, title, nodes: { ...conversation.nodes, [node.id]: node },
              chosen: { ...conversation.chosen, [node.parent]: node.id } }, node];
}

export function changeNode(conversation, id, fields) {
    if (!conversation.nodes[id]) return conversation;
    return { ...conversation, nodes: { ...conversation.nodes, [id]: { ...conversation.nodes[id], ...fields } } };
}

export function choose(conversation, node) {
    return { ...conversation, chosen: { ...conversation.chosen, [node.parent]: node.id } };
}

// A copy without the message and all that follow it.
export function removeNode(conversation, id) {
    const nodes = { ...conversation.nodes }, gone = [id];
    const children = Map.groupBy(Object.values(nodes), (node) => node.parent);
    for (let at = 0; at < gone.length; at++) {
        delete nodes[gone[at]];
        gone.push(...(children.get(gone[at]) ?? []).map((child) => child.id));
    }
    return { ...conversation, nodes };
}

function titleOf(text) {
    const line = text.trim().split("\n")[0];
    return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}

// The content of a message in the form of a request: a text, or parts where it has pictures.
function contentOf({ content, files, pictures }) {
    const text = files ? withFiles(content, files) : content;
    if (!pictures) return text;
    return [...pictures.map(partOf), ...(text === "" ? [] : [{ type: "text", text }])];
}

// A message in the form of a request.
export function messageOf(node) {
    if (node.role === "tool") return { role: "tool", tool_call_id: node.call_id, content: node.content };
    const message = { role: node.role, content: contentOf(node) };
    if (node.reasoning) message.reasoning_content = node.reasoning;
    if (node.calls?.length) {
        message.content = node.content || null;
        message.tool_calls = node.calls.map(({ id, name, arguments: text }) =>
            ({ id, type: "function", function: { name, arguments: text } }));
    }
    return message;
}

// The messages of a request, up to the given one. An answer that was stopped before its first word is left out.
export function saidTo(conversation, id) {
    return pathTo(conversation, id).filter((node) => node.role !== "assistant" || node.content !== "" || node.calls?.length > 0);
}

export function systemOf({ settings: { system } }) {
    return system.trim() ? [{ role: "system", content: system }] : [];
}

// The calls of the message that have no result on the shown branch.
export function openCalls(conversation, node) {
    const answered = new Set(pathOf(conversation).filter((one) => one.role === "tool").map((one) => one.call_id));
    return (node.calls ?? []).filter((call) => !answered.has(call.id));
}
