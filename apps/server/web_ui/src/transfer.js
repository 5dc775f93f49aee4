// SPDX-License-Identifier: MIT
// Exports and imports conversations as a file. A file may come from anywhere: a wrong form is refused, and unknown members
// are ignored.
import { withFiles } from "./files.js";
import { newId, newSettings, pathOf, ROOT } from "./conversation.js";
import { isPictureUrl } from "./pictures.js";

const FORMAT = "frit conversations";
const ROLES = ["user", "assistant", "tool"];

export function exportJson(conversations) {
    return JSON.stringify({ format: FORMAT, version: 1, conversations }, null, 1);
}

export function exportMarkdown(conversation) {
    const names = { user: "You", assistant: "Model", tool: "Tool" };
    const parts = pathOf(conversation).map(({ role, content, files, pictures = [] }) => {
        const images = pictures.map(({ name, url }) => `![${name.replace(/[[\]\\\s]+/g, " ")}](${url})`);
        return `## ${names[role]}\n\n${[...images, withFiles(content, files ?? [])].filter(Boolean).join("\n\n")}\n`;
    });
    return `# ${conversation.title}\n\n${parts.join("\n")}`;
}

export function download(name, text, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// ------------------------------------------------------------------------------------ import

const text = (value) => (typeof value === "string" ? value : "");
const number = (value, fallback) => (Number.isFinite(value) ? value : fallback);

function call(value) {
    return { id: text(value?.id), name: text(value?.name), arguments: text(value?.arguments) };
}

function picture(value) {
    if (!isPictureUrl(text(value?.url))) throw new Error("a picture is no data URI of a PNG, JPEG, WebP or GIF");
    return { name: text(value.name), url: value.url };
}

function token(value) {
    const top = Array.isArray(value?.top_logprobs) ? value.top_logprobs : [];
    return { token: text(value?.token), logprob: number(value?.logprob, 0),
             top_logprobs: top.map((one) => ({ token: text(one?.token), logprob: number(one?.logprob, 0) })) };
}

function node(id, value) {
    if (!ROLES.includes(value?.role)) throw new Error(`a message has the role '${value?.role}', not ${ROLES.join(", ")}`);
    const made = { id, parent: text(value.parent), role: value.role, content: text(value.content),
                   at: number(value.at, Date.now()) };
    if (value.reasoning) made.reasoning = text(value.reasoning);
    if (value.model) made.model = text(value.model);
    if (Array.isArray(value.files)) made.files = value.files.map((one) => ({ name: text(one?.name), text: text(one?.text) }));
    if (Array.isArray(value.pictures) && value.pictures.length > 0) made.pictures = value.pictures.map(picture);
    if (value.call_id) made.call_id = text(value.call_id);
    if (Array.isArray(value.calls)) made.calls = value.calls.map(call);
    if (Array.isArray(value.tokens)) made.tokens = value.tokens.map(token);
    return made;
}

// Every message must be reachable from the root, without cycles.
function checkTree(nodes) {
    const good = new Set();
    for (const start of Object.values(nodes)) {
        const way = new Set();
        for (let at = start; at.parent !== ROOT && !good.has(at.id); at = nodes[at.parent]) {
            if (!Object.hasOwn(nodes, at.parent) || way.has(at.id)) throw new Error("a message has no way to the first one");
            way.add(at.id);
        }
        way.forEach((id) => good.add(id));
    }
}

function settings(value) {
    const made = newSettings();
    for (const [key, fallback] of Object.entries(made))
        if (typeof value?.[key] === typeof fallback && key !== "sampling") made[key] = value[key];
    for (const [key, given] of Object.entries(value?.sampling ?? {}))
        if (Number.isFinite(given)) made.sampling[key] = given;
    return made;
}

function conversation(value) {
    if (typeof value?.nodes !== "object" || value.nodes === null) throw new Error("a conversation has no messages");
    const nodes = Object.fromEntries(Object.entries(value.nodes).filter(([id]) => id !== ROOT && id !== "__proto__")
        .map(([id, one]) => [id, node(id, one)]));
    checkTree(nodes);
    const chosen = Object.fromEntries(Object.entries(value.chosen ?? {}).filter(([, child]) => Object.hasOwn(nodes, child)));
    const now = Date.now();
    return { id: newId(), title: text(value.title).slice(0, 200) || "Imported", created: number(value.created, now),
             updated: number(value.updated, now), nodes, chosen, settings: settings(value.settings) };
}

// Throws a sentence for a wrong file. Conversations get new ids, so that an import overwrites nothing.
export function importJson(source) {
    const json = JSON.parse(source);
    if (json?.format !== FORMAT || !Array.isArray(json.conversations))
        throw new Error(`the file has no conversations of this page (format '${FORMAT}')`);
    return json.conversations.map(conversation);
}
