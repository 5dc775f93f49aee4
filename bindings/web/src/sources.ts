// SPDX-License-Identifier: MIT
// Files that the engine reads a range at a time, in the worker: handles of the origin private file system, files that a
// user chose, bytes, and files of Node and Deno.

import { FritError } from "./library.js";

/** A file of a model, as a worker receives it. */
export type FileSource =
    | { kind: "opfs"; folder: string; name: string }
    | { kind: "blob"; blob: Blob }
    | { kind: "bytes"; bytes: Uint8Array }
    | { kind: "path"; path: string };

/** An open file. `read` fills the bytes and returns false if it cannot. */
export interface OpenFile {
    size: number;
    read(at: number, into: Uint8Array): boolean;
    close(): void;
}

interface SyncHandle {
    getSize(): number;
    read(into: Uint8Array, options: { at: number }): number;
    close(): void;
}

// Calls `read` until the bytes are full.
function fill(into: Uint8Array, read: (part: Uint8Array, done: number) => number): boolean {
    for (let done = 0; done < into.length;) {
        const n = read(into.subarray(done), done);
        if (n <= 0) return false;
        done += n;
    }
    return true;
}

async function openOpfs(folder: string, name: string): Promise<OpenFile> {
    const root = await navigator.storage.getDirectory();
    const file = await (await root.getDirectoryHandle(folder)).getFileHandle(name);
    const make = (file as unknown as { createSyncAccessHandle?: (options: object) => Promise<SyncHandle> }).createSyncAccessHandle;
    if (!make) return openBlob(await file.getFile());
    let handle: SyncHandle;
    try {
        handle = await make.call(file, { mode: "read-only" });   // several tabs may read
    } catch {
        return openBlob(await file.getFile());   // engines without this mode allow one handle
    }
    return {
        size: handle.getSize(),
        read: (at, into) => fill(into, (part, done) => handle.read(part, { at: at + done })),
        close: () => handle.close(),
    };
}

declare class FileReaderSync {
    readAsArrayBuffer(blob: Blob): ArrayBuffer;
}

async function openBlob(blob: Blob): Promise<OpenFile> {
    if (typeof FileReaderSync === "undefined") return openBytes(new Uint8Array(await blob.arrayBuffer()));
    const reader = new FileReaderSync();
    return {
        size: blob.size,
        read(at, into) {
            const bytes = new Uint8Array(reader.readAsArrayBuffer(blob.slice(at, at + into.length)));
            into.set(bytes);
            return bytes.length === into.length;
        },
        close() {},
    };
}

function openBytes(bytes: Uint8Array): OpenFile {
    return {
        size: bytes.length,
        read(at, into) {
            into.set(bytes.subarray(at, at + into.length));
            return at + into.length <= bytes.length;
        },
        close() {},
    };
}

const NODE_FS = "node:fs";   // a variable, so that bundlers for browsers do not look for it

async function openPath(path: string): Promise<OpenFile> {
    const fs = (await import(/* @vite-ignore */ /* webpackIgnore: true */ NODE_FS)) as typeof import("node:fs");
    const fd = fs.openSync(path, "r");
    return {
        size: fs.fstatSync(fd).size,
        read: (at, into) => fill(into, (part, done) => fs.readSync(fd, part, 0, part.length, at + done)),
        close: () => fs.closeSync(fd),
    };
}

/** Opens a file. Throws FritError "E_NOT_FOUND" or "E_IO". */
export async function openSource(source: FileSource): Promise<OpenFile> {
    const name = source.kind === "opfs" ? source.name : source.kind === "path" ? source.path : source.kind;
    try {
        if (source.kind === "opfs") return await openOpfs(source.folder, source.name);
        if (source.kind === "blob") return await openBlob(source.blob);
        return source.kind === "path" ? await openPath(source.path) : openBytes(source.bytes);
    } catch (error) {
        const { name: kind, code, message } = error as Error & { code?: string };
        const isMissing = kind === "NotFoundError" || code === "ENOENT";
        throw new FritError(`${name}: cannot be opened: ${message}`, isMissing ? "E_NOT_FOUND" : "E_IO");
    }
}
