// SPDX-License-Identifier: MIT
// Downloads in a worker, into the origin private file system. Several connections fetch ranges. What is stored is known
// block by block, so a download that was killed continues where it was.
//
//     FOLDER/NAME          the file, of its final size from the beginning
//     FOLDER/NAME.state    what is stored: see State

import { FritError } from "./library.js";
import { Sha256 } from "./sha256.js";
import type { DownloadProgress } from "./types.js";

export const FOLDER = "frit";
const BLOCK = 256 << 10, SEGMENT_BLOCKS = 32, CONNECTIONS = 4;
const MOST_FAILURES = 6, FIRST_WAIT_MS = 500, LONGEST_WAIT_MS = 16000;   // without a new block in between
const REPORT_MS = 100, RATE_MS = 5000, FLUSH_BLOCKS = 64, LOCKED_WAIT_MS = 500;

export interface DownloadJob {
    url: string;
    name: string;
    sha256: string | null;
}

interface Access {
    read(into: Uint8Array, options: { at: number }): number;
    write(bytes: Uint8Array, options: { at: number }): number;
    truncate(size: number): void;
    getSize(): number;
    flush(): void;
    close(): void;
}

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const mib = (n: number) => `${(n / 2 ** 20).toFixed(1)} MiB`;

async function folder(): Promise<FileSystemDirectoryHandle> {
    return (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER, { create: true });
}

// A file that another tab writes is locked: waits until the tab has finished, or is closed.
async function access(name: string, stopped: () => boolean): Promise<Access> {
    const handle = await (await folder()).getFileHandle(name, { create: true });
    for (;;) {
        try {
            return await (handle as unknown as { createSyncAccessHandle(): Promise<Access> }).createSyncAccessHandle();
        } catch (error) {
            if ((error as Error).name !== "NoModificationAllowedError") throw error;
            if (stopped()) throw new FritError("the download was stopped", "E_CANCELLED");
            await sleep(LOCKED_WAIT_MS);
        }
    }
}

/** What the state file says: a JSON text of at most HEAD bytes, then a byte for each block that is stored. */
interface State {
    url: string;
    size: number;
    etag: string | null;
    complete: boolean;
}

const HEAD = 4096;

function readState(file: Access): State | null {
    const head = new Uint8Array(HEAD);
    if (file.read(head, { at: 0 }) < HEAD) return null;
    try {
        return JSON.parse(new TextDecoder().decode(head.subarray(0, head.indexOf(0)))) as State;
    } catch {
        return null;
    }
}

function writeState(file: Access, state: State): void {
    const head = new Uint8Array(HEAD), text = new TextEncoder().encode(JSON.stringify(state));
    if (text.length >= HEAD) throw new FritError(`${state.url}: the address has ${text.length} bytes, at most ${HEAD} fit`, "E_LIMIT");
    head.set(text);
    file.write(head, { at: 0 });
    file.flush();
}

/** Thrown for failures that trying again cannot mend. */
class Final extends Error {
    constructor(readonly failure: FritError) {
        super(failure.message);
    }
}

const fatal = (sentence: string, status: "E_IO" | "E_NOT_FOUND" | "E_LIMIT" | "E_FORMAT") => new Final(new FritError(sentence, status));

class Download {
    private blocks = new Uint8Array(0);   // 1: stored
    private taken = new Uint8Array(0);    // 1: a connection fetches it
    private loaded = 0;
    private nUnflushed = 0;
    private nFailures = 0;
    private rates: { at: number; loaded: number }[] = [];
    private reported = 0;
    private readonly abort = new AbortController();

    constructor(private readonly job: DownloadJob, private readonly file: Access, private readonly states: Access, private state: State,
                private readonly report: (progress: DownloadProgress) => void, private readonly stopped: () => boolean) {}

    static async run(job: DownloadJob, report: (progress: DownloadProgress) => void, stopped: () => boolean): Promise<void> {
        const states = await access(`${job.name}.state`, stopped);
        let file: Access | null = null;
        try {
            const state = readState(states);
            if (state?.complete && state.url === job.url) {
                report({ url: job.url, loaded: state.size, total: state.size, rate: 0, secondsLeft: 0 });
                return;
            }
            file = await access(job.name, stopped);
            const empty: State = { url: job.url, size: 0, etag: null, complete: false };
            await new Download(job, file, states, state?.url === job.url ? state : empty, report, stopped).fetchAll();
        } catch (error) {
            throw error instanceof Final ? error.failure : error;
        } finally {
            file?.close();
            states.close();
        }
    }

    private async fetchAll(): Promise<void> {
        const timer = setInterval(() => {
            if (this.stopped()) this.abort.abort();
            this.tell();
        }, REPORT_MS);
        try {
            await this.fetchMissing();
            this.file.flush();
            this.verify();
            this.state.complete = true;
            writeState(this.states, this.state);
            this.tell(true);
        } catch (error) {
            this.keep();
            if (this.stopped()) throw new FritError("the download was stopped", "E_CANCELLED");
            throw error;
        } finally {
            clearInterval(timer);
        }
    }

    // Asks for the first missing range, which tells the size, and if ranges are possible.
    private async fetchMissing(): Promise<void> {
        const first = await this.retry(() => this.request(0, BLOCK - 1));
        const range = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(first.headers.get("Content-Range") ?? "");
        if (first.status === 206 && range) {
            await first.body?.cancel();
            await this.begin(Number(range[3]), first.headers.get("ETag"));
            await Promise.all(Array.from({ length: CONNECTIONS }, () => this.connect()));
        } else if (first.status === 206) {   // the server hides the size: one answer with everything
            await first.body?.cancel();
            await this.retry(async () => this.takeWhole(await this.request()));
        } else {
            let response: Response | null = first;
            await this.retry(async () => {
                await this.takeWhole(response ?? await this.request());
            }, () => { response = null; });
        }
    }

    // Prepares the files, and forgets blocks of another version of the file.
    private async begin(size: number, etag: string | null): Promise<void> {
        const isSame = this.state.size === size && this.state.etag === etag && this.file.getSize() === size;
        await requireRoom(this.job.url, size - this.file.getSize(), size);
        this.blocks = new Uint8Array(Math.ceil(size / BLOCK));
        if (isSame) this.states.read(this.blocks, { at: HEAD });
        this.taken = this.blocks.slice();
        this.loaded = this.blocks.reduce((sum, stored, i) => sum + (stored ? this.sizeOf(i, size) : 0), 0);
        if (isSame) return;
        this.state = { url: this.job.url, size, etag, complete: false };
        this.states.truncate(0);
        writeState(this.states, this.state);
        this.states.write(this.blocks, { at: HEAD });
        this.file.truncate(size);
    }

    private sizeOf(block: number, size = this.state.size): number {
        return Math.min(BLOCK, size - block * BLOCK);
    }

    private async request(from?: number, to?: number): Promise<Response> {
        const headers: HeadersInit = from === undefined ? {} : { Range: `bytes=${from}-${to}` };
        const response = await fetch(this.job.url, { headers, signal: this.abort.signal, cache: "no-store" });
        if (response.ok) return response;
        await response.body?.cancel();
        const sentence = `${this.job.url}: the server answers with status ${response.status}`;
        if (response.status >= 500 || response.status === 429 || response.status === 408) throw new Error(sentence);
        throw fatal(sentence, response.status === 404 ? "E_NOT_FOUND" : "E_IO");
    }

    // Calls a function until it succeeds; gives up after failures without a new block in between.
    private async retry<T>(attempt: () => Promise<T>, failed?: () => void): Promise<T> {
        for (;;) {
            try {
                return await attempt();
            } catch (error) {
                failed?.();
                if (error instanceof Final || this.abort.signal.aborted) throw error;
                if (++this.nFailures >= MOST_FAILURES)
                    throw fatal(`${this.job.url}: cannot be downloaded: ${(error as Error).message}`, "E_IO");
                await sleep(Math.min(FIRST_WAIT_MS * 2 ** (this.nFailures - 1), LONGEST_WAIT_MS));
            }
        }
    }

    // Fetches segments of missing blocks until there are none.
    private async connect(): Promise<void> {
        for (let first; (first = this.taken.indexOf(0)) >= 0;) {
            let end = first;
            while (end < this.taken.length && end < first + SEGMENT_BLOCKS && !this.taken[end]) this.taken[end++] = 1;
            const begin = first;
            try {
                await this.retry(() => this.fetchSegment(begin, end));
            } catch (error) {
                this.abort.abort();   // the other connections end too
                throw error;
            }
        }
    }

    // Fetches blocks [first, end) that are not stored yet.
    private async fetchSegment(first: number, end: number): Promise<void> {
        while (first < end && this.blocks[first]) first++;
        if (first === end) return;
        const from = first * BLOCK, to = Math.min(end * BLOCK, this.state.size);
        const response = await this.request(from, to - 1);
        const range = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(response.headers.get("Content-Range") ?? "");
        if (response.status !== 206 || !range || Number(range[1]) !== from || Number(range[3]) !== this.state.size) {
            await response.body?.cancel();
            throw fatal(`${this.job.url}: the server answers a request for bytes ${from} to ${to - 1} with ` +
                        `${response.headers.get("Content-Range") ?? `status ${response.status}`}`, "E_IO");
        }
        if ((response.headers.get("ETag") ?? this.state.etag) !== this.state.etag) {
            await response.body?.cancel();
            throw fatal(`${this.job.url}: the file changed on the server during the download`, "E_IO");
        }
        await this.store(response, from, to);
    }

    // Writes a body block by block.
    private async store(response: Response, from: number, to: number): Promise<void> {
        const buffer = new Uint8Array(BLOCK);
        let n = 0, at = from;
        for await (const part of bodyOf(response)) {
            for (let done = 0; done < part.length;) {
                const take = Math.min(part.length - done, BLOCK - n);
                if (at + n + take > to) throw fatal(`${this.job.url}: the server sends more bytes than were asked for`, "E_IO");
                buffer.set(part.subarray(done, done + take), n);
                done += take;
                n += take;
                if (n < BLOCK && at + n < to) continue;
                this.put(at, buffer.subarray(0, n));
                at += n;
                n = 0;
            }
        }
        if (at < to) throw new Error(`the connection ended after ${at + n - from} of ${to - from} bytes`);
    }

    private put(at: number, bytes: Uint8Array): void {
        try {
            if (this.file.write(bytes, { at }) !== bytes.length) throw new Error("the disk is full");
        } catch (error) {
            throw fatal(`${this.job.url}: cannot be stored: ${(error as Error).message}`, "E_LIMIT");
        }
        const block = at / BLOCK;
        this.blocks[block] = 1;
        this.states.write(this.blocks.subarray(block, block + 1), { at: HEAD + block });
        this.loaded += bytes.length;
        this.nFailures = 0;
        if (++this.nUnflushed >= FLUSH_BLOCKS) this.keep();
    }

    private keep(): void {
        this.nUnflushed = 0;
        this.file.flush();
        this.states.flush();
    }

    // A server without ranges: everything in one answer, from the beginning.
    private async takeWhole(response: Response): Promise<void> {
        const size = Number(response.headers.get("Content-Encoding") ? 0 : response.headers.get("Content-Length") ?? 0);
        if (size > 0) await requireRoom(this.job.url, size - this.file.getSize(), size);
        this.state = { url: this.job.url, size, etag: response.headers.get("ETag"), complete: false };
        this.loaded = 0;
        this.file.truncate(0);
        for await (const part of bodyOf(response)) {
            this.file.write(part, { at: this.loaded });
            this.loaded += part.length;
            this.nFailures = 0;
        }
        if (size > 0 && this.loaded !== size) throw new Error(`the connection ended after ${this.loaded} of ${size} bytes`);
        this.state.size = this.loaded;
    }

    private verify(): void {
        const { sha256 } = this.job;
        if (sha256 === null) return;
        const sum = new Sha256(), buffer = new Uint8Array(4 << 20);
        for (let at = 0, n; at < this.state.size; at += n) {
            n = this.file.read(buffer, { at });
            if (n <= 0) throw fatal(`${this.job.name}: cannot be read`, "E_IO");
            sum.add(buffer.subarray(0, n));
        }
        const found = sum.end();
        if (found === sha256.toLowerCase()) return;
        this.states.truncate(0);   // nothing of this file is used again
        this.file.truncate(0);
        throw fatal(`${this.job.url}: the SHA-256 of the file is ${found}, expected ${sha256.toLowerCase()}`, "E_FORMAT");
    }

    private tell(isLast = false): void {
        const now = performance.now();
        if (!isLast && now - this.reported < REPORT_MS / 2) return;
        this.reported = now;
        this.rates.push({ at: now, loaded: this.loaded });
        while (this.rates.length > 2 && now - this.rates[0]!.at > RATE_MS) this.rates.shift();
        const { at, loaded } = this.rates[0]!, rate = now > at ? Math.max(0, (1000 * (this.loaded - loaded)) / (now - at)) : 0;
        const { size } = this.state;
        this.report({ url: this.job.url, loaded: this.loaded, total: size, rate,
                      secondsLeft: rate > 0 && size > 0 ? (size - this.loaded) / rate : null });
    }
}

async function* bodyOf(response: Response): AsyncGenerator<Uint8Array> {
    const reader = response.body!.getReader();
    try {
        for (let part; !(part = await reader.read()).done;) yield part.value;
    } finally {
        await reader.cancel().catch(() => {});
    }
}

// Fails if the origin may not store so many bytes more.
async function requireRoom(url: string, missing: number, size: number): Promise<void> {
    const { quota, usage } = await navigator.storage.estimate();
    const free = quota === undefined ? Infinity : quota - (usage ?? 0);
    if (missing > free)
        throw fatal(`${url}: has ${mib(size)}, and this browser lets the page store ${mib(Math.max(free, 0))} more; delete stored models`, "E_LIMIT");
}

/** Downloads a file; nothing is fetched if it is stored already. */
export const download = Download.run;
