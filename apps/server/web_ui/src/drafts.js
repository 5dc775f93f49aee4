// SPDX-License-Identifier: MIT
// Unsent texts, one for each conversation. They survive a reload if the browser stores them, with small files and pictures.
import { isPictureUrl } from "./pictures.js";

const PREFIX = "frit-draft-", MAX_KEPT = 300000;
const NEW = "new";   // of a conversation that has no message yet
const EMPTY = { text: "", files: [], pictures: [] };
const drafts = new Map();

export const draftKey = ({ id, nodes }) => (Object.keys(nodes).length > 0 ? id : NEW);

function stored(key) {
    try {
        const { text, files, pictures = [] } = JSON.parse(localStorage.getItem(PREFIX + key));
        if (typeof text !== "string" || !Array.isArray(files) || !Array.isArray(pictures)) return EMPTY;
        return { text, files: files.filter((one) => typeof one?.name === "string" && typeof one.text === "string"),
                 pictures: pictures.filter((one) => typeof one?.name === "string" && typeof one.url === "string" && isPictureUrl(one.url)) };
    } catch {
        return EMPTY;   // there is none, or no storage
    }
}

export function draftOf(key) {
    if (!drafts.has(key)) drafts.set(key, stored(key));
    return drafts.get(key);
}

// The draft as JSON: without its pictures where these are large, and without its files where both are.
function jsonOf(draft) {
    const isLarge = draft.pictures.reduce((sum, { url }) => sum + url.length, 0) > MAX_KEPT;
    const json = isLarge ? null : JSON.stringify(draft);
    if (json?.length <= MAX_KEPT) return json;
    const texts = JSON.stringify({ ...draft, pictures: [] });
    return texts.length <= MAX_KEPT ? texts : JSON.stringify({ ...draft, files: [], pictures: [] });
}

export function setDraft(key, draft) {
    drafts.set(key, draft);
    const isEmpty = draft.text === "" && draft.files.length === 0 && draft.pictures.length === 0;
    const json = jsonOf(draft);
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
