// SPDX-License-Identifier: MIT
// Models that the browser stores for this origin: downloading, listing, deleting.

import { FOLDER } from "./download.js";
import { FritError } from "./library.js";
import { filesAt } from "./platform.js";
import { Remote } from "./remote.js";
import { Sha256 } from "./sha256.js";
import type { FileSource } from "./sources.js";
import type { DownloadProgress } from "./types.js";

/** A stored file of a model. */
export interface StoredFile {
    name: string;
    url: string;
    /** Bytes. */
    size: number;
    /** False: a download was stopped, and continues when the same URL is downloaded again. */
    complete: boolean;
}

/** Options of `download`. */
export interface DownloadOptions {
    signal?: AbortSignal | undefined;
    onProgress?: ((progress: DownloadProgress) => void) | undefined;
    /** SHA-256 of the file in hexadecimal. Default: the file is not compared. */
    sha256?: string | undefined;
    /** The folder of the package's files. Default: where this script is. */
    baseURL?: string | URL | undefined;
}

const CACHE = "frit";

// True if workers can have private files. Private windows of some browsers have none.
async function hasOpfs(): Promise<boolean> {
    if (typeof navigator !== "object" || typeof navigator.storage?.getDirectory !== "function") return false;
    return navigator.storage.getDirectory().then(() => true, () => false);
}

// FNV-1a of the address, so that files of one name from two places are two.
function nameOf(url: string): string {
    let hash = 0x811c9dc5;
    for (const byte of new TextEncoder().encode(url)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
    const last = decodeURIComponent(new URL(url).pathname.split("/").at(-1) ?? "").replace(/[^\w.-]/g, "_").slice(-100);
    return `${hash.toString(16).padStart(8, "0")}-${last || "model"}`;
}

async function folder(): Promise<FileSystemDirectoryHandle> {
    return (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER, { create: true });
}

/**
 * Downloads a file into the origin's private files, unless it is there. A download that was stopped or killed continues.
 * Where a browser has no private files for workers, the Cache API stores the file, and a stopped download begins again.
 *
 * @returns the name under which the file is stored
 * @throws FritError "E_NOT_FOUND" (status 404), "E_IO" (the network), "E_LIMIT" (no room), "E_FORMAT" (another SHA-256)
 */
export async function download(url: string | URL, options: DownloadOptions = {}): Promise<string> {
    const { signal, onProgress, sha256, baseURL } = options, { href } = new URL(url, globalThis.location?.href);
    const name = nameOf(href);
    signal?.throwIfAborted();
    if (!(await hasOpfs())) {
        await downloadToCache(href, options);
        return name;
    }
    // Without this right the browser may delete files if the disk is full. Some browsers ask the user, who may not answer.
    navigator.storage.persist?.().catch(() => false);
    const remote = await Remote.start(filesAt(baseURL).worker);
    try {
        await remote.call("download", [{ url: href, name, sha256: sha256 ?? null }],
                          { onEvent: (progress: DownloadProgress) => onProgress?.(progress), ...(signal ? { signal } : {}) });
    } finally {
        if (signal?.aborted) setTimeout(() => remote.end(), 1000);   // the worker closes its files first
        else remote.end();
    }
    return name;
}

// Where there are no private files: the whole file at once, into the Cache API.
async function downloadToCache(url: string, { signal, onProgress, sha256 }: DownloadOptions): Promise<void> {
    const cache = await caches.open(CACHE);
    if (await cache.match(url)) return;
    const start = performance.now();
    let loaded = 0, total = 0;
    try {
        const response = await fetch(url, { signal: signal ?? null });
        if (!response.ok || !response.body)
            throw new FritError(`${url}: the server answers with status ${response.status}`, response.status === 404 ? "E_NOT_FOUND" : "E_IO");
        total = Number(response.headers.get("Content-Length") ?? 0);
        const counted = response.body.pipeThrough(new TransformStream<Uint8Array, Uint8Array>({
            transform(part, controller) {
                loaded += part.length;
                const rate = (1000 * loaded) / Math.max(performance.now() - start, 1);
                onProgress?.({ url, loaded, total, rate, secondsLeft: total > 0 ? (total - loaded) / rate : null });
                controller.enqueue(part);
            },
        }));
        await cache.put(url, new Response(counted));
    } catch (error) {
        if (signal?.aborted || error instanceof FritError) throw signal?.aborted ? signal.reason : error;
        throw new FritError(`${url}: cannot be downloaded: ${(error as Error).message}, after ${loaded} of ${total} bytes`, "E_IO");
    }
    if (sha256 === undefined) return;
    const sum = new Sha256(), reader = (await (await cache.match(url))!.blob()).stream().getReader();
    for (let part; !(part = await reader.read()).done;) sum.add(part.value);
    const found = sum.end();
    if (found === sha256.toLowerCase()) return;
    await cache.delete(url);
    throw new FritError(`${url}: the SHA-256 of the file is ${found}, expected ${sha256.toLowerCase()}`, "E_FORMAT");
}

/** The file of a URL or a stored name, for a worker. */
export async function storedSource(name: string, url?: string): Promise<FileSource> {
    if (await hasOpfs()) return { kind: "opfs", folder: FOLDER, name };
    const found = url ? await (await caches.open(CACHE)).match(url) : undefined;
    if (!found) throw new FritError(`${name}: is not stored`, "E_NOT_FOUND");
    return { kind: "blob", blob: await found.blob() };
}

async function readState(directory: FileSystemDirectoryHandle, name: string): Promise<{ url: string; size: number; complete: boolean } | null> {
    try {
        const head = await (await (await directory.getFileHandle(`${name}.state`)).getFile()).slice(0, 4096).text();
        return JSON.parse(head.slice(0, head.indexOf("\0")));
    } catch {
        return null;
    }
}

/** The models that are stored for this origin. */
export async function listStored(): Promise<StoredFile[]> {
    const found: StoredFile[] = [];
    if (!(await hasOpfs())) {
        if (typeof caches === "undefined") return [];
        const cache = await caches.open(CACHE);
        for (const { url } of await cache.keys()) {
            const size = (await (await cache.match(url))!.blob()).size;
            found.push({ name: nameOf(url), url, size, complete: true });
        }
        return found;
    }
    const directory = await folder();
    for await (const name of (directory as unknown as { keys(): AsyncIterable<string> }).keys()) {
        if (name.endsWith(".state")) continue;
        const state = await readState(directory, name);
        if (state) found.push({ name, url: state.url, size: state.size, complete: state.complete });
    }
    return found.sort((a, b) => a.name.localeCompare(b.name));
}

/** Deletes a stored file, or what is there of a stopped download. Nothing happens if there is none. */
export async function deleteStored(name: string): Promise<void> {
    if (!(await hasOpfs())) {
        const file = (await listStored()).find((each) => each.name === name);
        if (file) await (await caches.open(CACHE)).delete(file.url);
        return;
    }
    const directory = await folder();
    for (const each of [`${name}.state`, name])
        await directory.removeEntry(each).catch((error: Error) => {
            if (error.name !== "NotFoundError") throw new FritError(`${name}: cannot be deleted while it is in use`, "E_IO");
        });
}

/** Bytes that are stored for this origin, and that may be stored in all. */
export async function storageSpace(): Promise<{ usage: number; quota: number }> {
    const { usage = 0, quota = 0 } = await navigator.storage.estimate();
    return { usage, quota };
}

export { nameOf };
