// SPDX-License-Identifier: MIT
// The state of the UI, as signals, and the actions that change it. A changed conversation is written to the browser's
// database a moment later.
import { computed, signal } from "@preact/signals";

import { listModels, listSampling } from "./api.js";
import { newConversation, newSettings, pathOf } from "./conversation.js";
import * as database from "./database.js";
import { dropDraft } from "./drafts.js";
import { bytesOfPictures } from "./pictures.js";
import { describe } from "./problems.js";

const SAVE_MS = 400;
const SAVE_LARGE_MS = 3000, LARGE = 1024 * 1024;   // a conversation is written as a whole, with its pictures

export const conversations = signal([]);             // of the list: id, title, updated; the newest first
export const current = signal(newConversation());    // the conversation that is shown
export const path = computed(() => pathOf(current.value));
export const models = signal([]);
export const samplingRows = signal([]);
export const runs = signal(new Map());               // answers that are being written, by conversation: node, controller, progress
export const running = computed(() => runs.value.get(current.value.id) ?? null);   // that of the conversation that is shown
export const notice = signal(null);                  // a sentence at the bottom: text, and perhaps an action
export const announced = signal("");                 // for screen readers only

const loaded = new Map();     // conversations that may change while another is shown
const unsaved = new Set();
let timer, wanted;   // wanted: the conversation to be shown once it is read

export function say(text, action) {
    notice.value = { text, action };
}

// null: the answer has ended.
export function setRun(id, run) {
    const next = new Map(runs.value);
    if (run) next.set(id, run);
    else next.delete(id);
    runs.value = next;
}

function storageFailed(error) {
    say(`The browser does not keep conversations: ${error?.message ?? error}`);
}

// ------------------------------------------------------------------------------------ saving

export async function flush() {
    clearTimeout(timer);
    timer = undefined;
    const list = [...unsaved].map((id) => loaded.get(id)).filter(Boolean);
    unsaved.clear();
    if (list.length === 0) return;
    await database.writeConversations(list).catch(storageFailed);
    tellTabs(list.map((one) => one.id));
}

// ------------------------------------------------------------------------------------ other tabs of the browser

const tabs = new BroadcastChannel("frit-conversations");

function tellTabs(ids) {
    tabs.postMessage(ids);
}

async function refreshList() {
    const found = await database.listConversations().catch(storageFailed);
    if (found) conversations.value = found.sort((a, b) => b.updated - a.updated);
}

// Reads a conversation that another tab wrote, unless this tab is writing it too.
tabs.onmessage = async ({ data: ids }) => {
    const changed = ids.filter((id) => !runs.value.has(id) && !unsaved.has(id));
    changed.forEach((id) => loaded.delete(id));
    await refreshList();
    if (changed.includes(current.value.id)) await openConversation(current.value.id);
};

function list(conversation) {
    const { id, title, updated } = conversation;
    const others = conversations.value.filter((one) => one.id !== id);
    conversations.value = [{ id, title, updated }, ...others].sort((a, b) => b.updated - a.updated);
}

export function get(id) {
    return loaded.get(id);
}

// Stores a changed conversation, unless it never had a message.
export function put(conversation, touched = true) {
    const next = touched ? { ...conversation, updated: Date.now() } : conversation;
    loaded.set(next.id, next);
    if (current.value.id === next.id) current.value = next;
    const known = conversations.value.find((one) => one.id === next.id);
    if (!known && Object.keys(next.nodes).length === 0) return next;
    if (!known || known.title !== next.title || next.updated - known.updated > 1000) list(next);
    unsaved.add(next.id);
    timer ??= setTimeout(flush, bytesOfPictures(next) > LARGE ? SAVE_LARGE_MS : SAVE_MS);
    return next;
}

export function changeSettings(fields) {
    put({ ...current.value, settings: { ...current.value.settings, ...fields } }, false);
}

// ------------------------------------------------------------------------------------ conversations

// A new conversation inherits the model and the system prompt of the last one.
export function startConversation() {
    const { model, system } = current.value.settings;
    const made = newConversation();
    wanted = made.id;
    current.value = { ...made, settings: { ...made.settings, model, system } };
    loaded.set(made.id, current.value);
}

// False: no conversation has this id.
export async function openConversation(id) {
    wanted = id;
    try {
        const found = loaded.get(id) ?? await database.readConversation(id);
        if (wanted !== id) return true;   // another one was opened meanwhile
        if (!found) {
            if (current.value.id === id) startConversation();   // another tab deleted it
            return false;
        }
        const whole = { ...found, settings: { ...newSettings(), ...found.settings } };
        loaded.set(id, whole);
        current.value = whole;
        return true;
    } catch (error) {
        storageFailed(error);
        return false;
    }
}

export function renameConversation(id, title) {
    const conversation = loaded.get(id);
    if (conversation && title.trim()) put({ ...conversation, title: title.trim() }, false);
}

export async function deleteConversation(id) {
    await openIfNeeded(id);
    const gone = loaded.get(id);
    runs.value.get(id)?.controller.abort();
    loaded.delete(id);
    unsaved.delete(id);
    conversations.value = conversations.value.filter((one) => one.id !== id);
    if (current.value.id === id) startConversation();
    await database.removeConversation(id).catch(storageFailed);
    tellTabs([id]);
    dropDraft(id);
    if (gone) say(`Deleted “${gone.title}”.`, { label: "Undo", run: () => { put(gone, false); openConversation(id); } });
}

export async function openIfNeeded(id) {
    if (loaded.has(id)) return;
    const found = await database.readConversation(id).catch(storageFailed);
    if (found) loaded.set(id, { ...found, settings: { ...newSettings(), ...found.settings } });
}

export async function addConversations(added) {
    added.forEach((one) => loaded.set(one.id, one));
    await database.writeConversations(added).catch(storageFailed);
    tellTabs(added.map((one) => one.id));
    added.forEach(list);
    if (added.length > 0) await openConversation(added[0].id);
}

export async function allConversations() {
    await flush();
    for (const { id } of conversations.value) await openIfNeeded(id);
    return conversations.value.map(({ id }) => loaded.get(id)).filter(Boolean);
}

// ------------------------------------------------------------------------------------ the start

export async function refreshModels() {
    models.value = await listModels();
}

// Reads models and options from the server; a failure shows a notice with a button to try again.
export async function askServer() {
    try {
        await Promise.all([refreshModels(), listSampling().then((rows) => { samplingRows.value = rows; })]);
    } catch (error) {
        say(describe(error).text, { label: "Try again", run: askServer });
    }
}

export async function load() {
    loaded.set(current.value.id, current.value);
    addEventListener("pagehide", flush);
    addEventListener("online", () => { if (models.value.length === 0) askServer(); });
    await Promise.all([refreshList(), askServer()]);
}

// Tokens of the context of the chosen model, if known.
export function contextSize({ settings: { model } }) {
    return (models.value.find((one) => one.id === model) ?? models.value[0])?.meta?.n_ctx;
}

export function chosenModel() {
    const { model } = current.value.settings;
    return models.value.find((one) => one.id === model) ?? models.value[0];
}

// Null: the chosen model reads pictures. Otherwise a sentence.
export function whyNoPictures() {
    const model = chosenModel();
    if (!model) return "The models of the server are not known yet.";
    if (!model.meta) return `${model.id} is not loaded yet; after its first answer it is known whether it reads pictures.`;
    return model.meta.modalities?.input?.includes("image") ? null : `${model.id} reads no pictures.`;
}
