// SPDX-License-Identifier: MIT
// Unsent texts, one for each conversation. They survive a reload if the browser stores them.
const PREFIX = "frit-draft-", MAX_KEPT = 300000;
const NEW = "new";   // of a conversation that has no message yet
const EMPTY = { text: "", files: [] };
const drafts = new Map();

export const draftKey = ({ id, nodes }) => (Object.keys(nodes).length > 0 ? id : NEW);

function stored(key) {
    try {
        const { text, files } = JSON.parse(localStorage.getItem(PREFIX + key));
        if (typeof text !== "string" || !Array.isArray(files)) return EMPTY;
        return { text, files: files.filter((one) => typeof one?.name === "string" && typeof one.text === "string") };
    } catch {
        return EMPTY;   // there is none, or no storage
    }
}

export function draftOf(key) {
    if (!drafts.has(key)) drafts.set(key, stored(key));
    return drafts.get(key);
}

export function setDraft(key, draft) {
    drafts.set(key, draft);
    const isEmpty = draft.text === "" && draft.files.length === 0;
    let json = JSON.stringify(draft);
    if (json.length > MAX_KEPT) json = JSON.stringify({ ...draft, files: [] });
    try {
        if (isEmpty || json.length > MAX_KEPT) localStorage.removeItem(PREFIX + key);
        else localStorage.setItem(PREFIX + key, json);
    } catch {
        // the text stays in memory
    }
}

export function dropDraft(key) {
    setDraft(key, EMPTY);
}
