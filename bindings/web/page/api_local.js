// SPDX-License-Identifier: MIT
// What the web UI of frit serve asks its server for (api.js), answered by the engine in this page.
import { signal } from "@preact/signals";

import { deleteStored, Frit, FritError, listStored, storageSpace, storedName } from "../src/index.ts";
import sampling from "sampling";

export class RequestError extends Error {
    constructor(message, code) {
        super(message);
        this.code = code;
    }
}

// The model that is loaded, or is being loaded: id, frit, progress (a sentence and a number from 0 to 1), error.
export const engine = signal({ id: null, frit: null, progress: null, error: null });
export const catalogue = signal([]);   // models that can be loaded: id, url, size, note, stored, file
const CHOSEN = "frit-model";           // the model that was used last
let loading = null;                    // { id, promise, controller }

const mib = (n) => (n >= 2 ** 30 ? `${(n / 2 ** 30).toFixed(1)} GiB` : `${Math.ceil(n / 2 ** 20)} MiB`);
export { mib as sizeText };

// Memory that a model may use: a module addresses 4 GiB, and a device should keep half of its own for other programs.
export const MEMORY = Math.min(4, (navigator.deviceMemory ?? 8) / 2) * 2 ** 30;
const CACHE_BYTES = 300 << 20;   // keys, values and scratch of a context of 4,096 tokens of a small model

// Why a model cannot be loaded here, as a sentence; null: it fits.
export function problemOf({ size, stored }, space) {
    if (size + CACHE_BYTES > MEMORY) return `Needs about ${mib(size + CACHE_BYTES)} of memory; this page may use ${mib(MEMORY)}.`;
    if (!stored && space && size > space.quota - space.usage) return `Needs ${mib(size)} of storage; ${mib(Math.max(0, space.quota - space.usage))} are free.`;
    return null;
}

export async function refreshCatalogue() {
    const list = await fetch("models.json").then((answer) => (answer.ok ? answer.json() : []), () => []);
    const stored = await listStored().catch(() => []);
    const named = list.map((each) => {
        const url = new URL(each.url, location.href).href, found = stored.find((file) => file.name === storedName(url));
        return { ...each, url, stored: found?.complete ?? false, partial: found && !found.complete, file: null };
    });
    const others = stored.filter((file) => !named.some(({ url }) => url === file.url))
        .map(({ url, size, complete }) => ({ id: decodeURIComponent(url.split("/").at(-1)).replace(/\.gguf$/, ""), url, size, stored: complete, partial: !complete, file: null }));
    const files = catalogue.value.filter(({ file }) => file);
    catalogue.value = [...named, ...others, ...files];
    return storageSpace().catch(() => null);
}

export function addModel(model) {
    catalogue.value = [...catalogue.value.filter(({ id }) => id !== model.id), model];
}

export async function removeModel(model) {
    if (engine.value.id === model.id) closeEngine();
    await deleteStored(storedName(model.url));
}

export function closeEngine() {
    loading?.controller.abort();
    loading = null;
    engine.value.frit?.close();
    engine.value = { id: null, frit: null, progress: null, error: null };
}

function describe(progress) {
    if (progress.phase === "load") return { text: "Preparing the weights", done: progress.done };
    const { loaded, total, rate, secondsLeft } = progress;
    const left = secondsLeft === null ? "" : `, ${secondsLeft < 90 ? `${Math.ceil(secondsLeft)} s` : `${Math.round(secondsLeft / 60)} min`} left`;
    return { text: `Downloading ${mib(loaded)} of ${total ? mib(total) : "?"}, ${mib(rate)}/s${left}`, done: total ? loaded / total : 0 };
}

// Loads a model unless it is loaded.
export async function loadModel(id) {
    if (engine.value.id === id && engine.value.frit) return engine.value.frit;
    if (loading?.id === id) return loading.promise;
    closeEngine();
    const model = catalogue.value.find((each) => each.id === id), controller = new AbortController();
    if (!model) throw new RequestError("Choose a model first.", "no_model");
    engine.value = { id, frit: null, progress: { text: "Starting", done: 0 }, error: null };
    const isCurrent = () => loading?.controller === controller;
    const onProgress = (progress) => { if (isCurrent()) engine.value = { ...engine.value, progress: describe(progress) }; };
    const promise = Frit.load(model.file ?? model.url, { onProgress, signal: controller.signal, memory: MEMORY, sha256: model.sha256 }).then((frit) => {
        if (!isCurrent()) {
            frit.close();
            throw new RequestError("Another model was chosen.", "cancelled");
        }
        engine.value = { id, frit, progress: null, error: null };
        if (!model.file) localStorage.setItem(CHOSEN, id);
        return frit;
    }, (error) => {
        if (isCurrent()) engine.value = { id: null, frit: null, progress: null, error: error.message };
        throw new RequestError(error.message, error.code ?? "failed_here");
    }).finally(() => {
        if (isCurrent()) loading = null;
        refreshCatalogue();
    });
    loading = { id, promise, controller };
    return promise;
}

// ------------------------------------------------------------------------------------ what the web UI calls

export async function listModels() {
    if (catalogue.value.length === 0) await refreshCatalogue();
    const last = localStorage.getItem(CHOSEN);
    const order = (model) => (model.id === engine.value.id ? 0 : model.id === last ? 1 : model.stored ? 2 : 3);
    return [...catalogue.value].sort((a, b) => order(a) - order(b))
        .map(({ id }) => ({ id, meta: engine.value.id === id && engine.value.frit ? { n_ctx: engine.value.frit.info.n_ctx } : {} }));
}

export const listSampling = async () => sampling;

// A request that is sent before the models are listed has none.
const idOf = async (body) => body.model ?? engine.value.id ?? (await listModels())[0]?.id;

export async function countTokens(body, abort) {
    try {
        return await (await loadModel(await idOf(body))).countTokens(body, { signal: abort });
    } catch (error) {
        throw error instanceof FritError ? new RequestError(error.message, error.code ?? "failed_here") : error;
    }
}

export async function* chat(body, abort) {
    const frit = await loadModel(await idOf(body));
    abort.throwIfAborted();
    try {
        yield* await frit.chat.completions.create({ ...body, stream: true, return_progress: true, stream_options: { include_usage: true } }, { signal: abort });
    } catch (error) {
        throw error instanceof FritError ? new RequestError(error.message, error.code ?? "failed_here") : error;
    }
}
