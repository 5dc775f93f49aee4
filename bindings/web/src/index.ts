// SPDX-License-Identifier: MIT
/**
 * Large language models in the browser, Node and Deno: the engine frit as WebAssembly, in a worker.
 *
 *     import { Frit } from "@frit/web";
 *     const frit = await Frit.load("https://example.org/model.gguf", { onProgress: console.log });
 *     for await (const chunk of await frit.chat.completions.create({ messages: [{ role: "user", content: "Hello" }], stream: true }))
 *         console.log(chunk.choices[0]?.delta.content ?? "");
 *
 * @packageDocumentation
 */

import { FritError } from "./library.js";
import type { SamplerOptionValues } from "./options.js";
import { filesAt, hasThreads, isPage, nProcessors } from "./platform.js";
import { Remote } from "./remote.js";
import type { FileSource } from "./sources.js";
import { download, nameOf, storedSource } from "./storage.js";
import type { ChatChunk, ChatCompletion, ChatRequest, Completion, CompletionRequest, EmbeddingRequest, Embeddings, LoadOptions, ModelFile, ModelInfo,
              Reranked, RerankRequest, TokenLogprob } from "./types.js";

export { FritError } from "./library.js";
export { deleteStored, download, listStored, storageSpace, type DownloadOptions, type StoredFile } from "./storage.js";
export type * from "./types.js";
export type { EmbedOptionValues, EngineOptionValues, ModelOptionValues, SamplerOptionValues, Status } from "./options.js";

/** Options of a request. */
export interface RequestOptions {
    /** Stops the request: its promise or iterator throws the signal's reason. */
    signal?: AbortSignal;
}

const MOST_THREADS = 8;
const MOST_MEMORY = 2 ** 32;
const SHARD = /-(\d{5})-of-(\d{5})(\.gguf)$/;

// All files of a split set from the address of one.
function filesOf(model: ModelFile | ModelFile[]): ModelFile[] {
    const list = [model].flat();
    const [only] = list, found = list.length === 1 && (typeof only === "string" || only instanceof URL) ? SHARD.exec(String(only)) : null;
    if (!found) return list;
    const count = Number(found[2]);
    return Array.from({ length: count }, (_, i) => String(only).replace(SHARD, `-${String(i + 1).padStart(5, "0")}-of-${found[2]}$3`));
}

async function sourceOf(file: ModelFile, sha256: string | undefined, options: LoadOptions): Promise<FileSource> {
    if (file instanceof Uint8Array) return { kind: "bytes", bytes: file };
    if (typeof Blob !== "undefined" && file instanceof Blob) return { kind: "blob", blob: file };
    if (typeof file === "object" && "stored" in file) return storedSource(file.stored);
    const text = String(file), isPath = !isPage && !/^https?:/.test(text);
    if (isPath) return { kind: "path", path: text.startsWith("file:") ? decodeURIComponent(new URL(text).pathname) : text };
    const { href } = new URL(text, globalThis.location?.href);
    if (!isPage) return fetchBytes(href, options);
    const { signal, onProgress, baseURL } = options;
    const name = await download(href, { signal, sha256, baseURL, onProgress: (progress) => onProgress?.({ phase: "download", ...progress }) });
    return storedSource(name, href);
}

// Without storage, a file is in memory.
async function fetchBytes(url: string, { signal }: LoadOptions): Promise<FileSource> {
    const response = await fetch(url, { signal: signal ?? null });
    if (!response.ok) throw new FritError(`${url}: the server answers with status ${response.status}`, response.status === 404 ? "E_NOT_FOUND" : "E_IO");
    return { kind: "bytes", bytes: new Uint8Array(await response.arrayBuffer()) };
}

// Options that the worker gets: those of the tables, not functions and addresses.
function plainOptions(options: LoadOptions): Record<string, unknown> {
    const { onProgress: _1, onWarning: _2, signal: _3, sha256: _4, memory: _5, baseURL: _6, threads: _7, ctx: _8, ...plain } = options;
    return plain;
}

/** Chunks of an answer. Leaving the loop stops the answer. */
export interface Stream<T> extends AsyncIterable<T> {
    /** Stops the answer. The iterator ends. */
    stop(): void;
}

// An iterator of the events of a call.
function streamOf<T>(start: (onEvent: (event: T) => void, signal: AbortSignal) => Promise<unknown>, signal: AbortSignal | undefined): Stream<T> {
    const ready: T[] = [], controller = new AbortController();
    let wake: () => void = () => {}, over = false, failure: unknown = null, stopped = false;
    const abort = () => controller.abort(signal!.reason);
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
    start((event) => { ready.push(event); wake(); }, controller.signal)
        .catch((error) => { failure = error; })
        .finally(() => { over = true; signal?.removeEventListener("abort", abort); wake(); });
    const stop = () => { stopped = true; controller.abort(new FritError("the answer was stopped", "E_CANCELLED")); wake(); };
    return {
        stop,
        async *[Symbol.asyncIterator]() {
            try {
                for (;;) {
                    while (ready.length > 0) yield ready.shift()!;
                    if (stopped) return;
                    if (over) {
                        if (failure) throw failure;
                        return;
                    }
                    await new Promise<void>((resolve) => { wake = resolve; });
                }
            } finally {
                if (!over) stop();
            }
        },
    };
}

/** A model with its engine, in a worker of its own. */
export class Frit {
    /** Answers to conversations, in the shape of OpenAI's client. */
    readonly chat = { completions: { create: this.createChat.bind(this) as CreateChat } };
    /** Texts that continue a prompt. */
    readonly completions = { create: this.createCompletion.bind(this) as CreateCompletion };
    /** Vectors of texts. */
    readonly embeddings = {
        create: (request: EmbeddingRequest, options: RequestOptions = {}): Promise<Embeddings> => this.remote.call("embed", [request], options),
    };

    private constructor(private readonly remote: Remote, /** What the model is. */ readonly info: ModelInfo) {}

    /**
     * Loads a model in GGUF's format. A URL is downloaded into the browser's storage once; later loads use the stored file
     * and need no network. Weights are read a range at a time, so that they are in memory only once.
     *
     * @param model a URL, a file that the user chose, bytes, a stored file, in Node and Deno a path; or all files of a split
     *     set. Of a split set, the URL of one file is enough.
     * @throws FritError: "E_MEMORY" with numbers if the model does not fit, "E_FORMAT" for a bad file, or as `download`
     */
    static async load(model: ModelFile | ModelFile[], options: LoadOptions = {}): Promise<Frit> {
        const { signal, onProgress, onWarning, baseURL, memory = MOST_MEMORY, ctx } = options;
        const files = filesOf(model), sums = [options.sha256 ?? []].flat(), sources: FileSource[] = [];
        for (const [i, file] of files.entries()) sources.push(await sourceOf(file, sums[i], options));
        const threads = hasThreads ? Math.max(1, options.threads ?? Math.min(await nProcessors(), MOST_THREADS)) : 1;
        const { worker, module, wasm } = filesAt(baseURL), remote = await Remote.start(worker);
        const setup = { moduleURL: module.href, wasmURL: wasm.protocol === "file:" ? decodeURIComponent(wasm.pathname) : wasm.href, threads,
                        files: sources, options: plainOptions(options), ctx, memory };
        const onEvent = (event: { progress?: number; warning?: string }) => {
            if (event.progress !== undefined) onProgress?.({ phase: "load", done: event.progress });
            if (event.warning !== undefined) onWarning?.(event.warning);
        };
        try {
            return new Frit(remote, await remote.call<ModelInfo>("load", [setup], { signal, onEvent }));
        } catch (error) {
            remote.end();   // loading does not return to the worker's event loop
            throw error;
        }
    }

    private createChat(request: ChatRequest, { signal }: RequestOptions = {}): Promise<ChatCompletion | Stream<ChatChunk>> {
        const stream = streamOf<ChatChunk>((onEvent, inner) => this.remote.call("chat", [request], { signal: inner, onEvent: onEvent as never }), signal);
        return Promise.resolve(request.stream ? withUsage(stream, request.stream_options?.include_usage ?? false) : wholeChat(stream));
    }

    private createCompletion(request: CompletionRequest, { signal }: RequestOptions = {}): Promise<Completion | Stream<Completion>> {
        const stream = streamOf<Completion>((onEvent, inner) => this.remote.call("complete", [request], { signal: inner, onEvent: onEvent as never }), signal);
        return Promise.resolve(request.stream ? withUsage(stream, request.stream_options?.include_usage ?? false) : wholeText(stream));
    }

    /** Scores documents by how well they answer a query. The model must have a classifier ("E_UNSUPPORTED"). */
    rerank(request: RerankRequest, options: RequestOptions = {}): Promise<Reranked> {
        return this.remote.call("rerank", [request], options);
    }

    /**
     * The tokens of a text.
     *
     * @param options.special add the tokens that the model wants around a text. Default: true.
     * @param options.parseSpecial text that spells a special token becomes this token. Default: false.
     */
    tokenize(text: string, { special = true, parseSpecial = false, signal }: RequestOptions & { special?: boolean; parseSpecial?: boolean } = {}): Promise<number[]> {
        return this.remote.call("tokenize", [text, special, parseSpecial], { signal });
    }

    /** The text of tokens. `special`: with the text of special tokens. Default: false. */
    detokenize(tokens: number[], { special = false, signal }: RequestOptions & { special?: boolean } = {}): Promise<string> {
        return this.remote.call("detokenize", [tokens, special], { signal });
    }

    /** The number of tokens of a request's prompt. */
    countTokens(request: ChatRequest, options: RequestOptions = {}): Promise<number> {
        return this.remote.call("count", [request], options);
    }

    /** A new session: a text whose tokens the program pushes and picks itself. */
    async session(): Promise<Session> {
        return new Session(this, this.remote, await this.remote.call<number>("newSession", []));
    }

    /** The module's memory in bytes. It never shrinks. */
    memory(): Promise<number> {
        return this.remote.call("memory", []);
    }

    /** Ends the worker and frees its memory. Requests that run reject with "E_CANCELLED". */
    close(): void {
        this.remote.end();
    }
}

type CreateChat = {
    /** Streams the answer. */
    (request: ChatRequest & { stream: true }, options?: RequestOptions): Promise<Stream<ChatChunk>>;
    /** Returns the whole answer. */
    (request: ChatRequest & { stream?: false }, options?: RequestOptions): Promise<ChatCompletion>;
    (request: ChatRequest, options?: RequestOptions): Promise<ChatCompletion | Stream<ChatChunk>>;
};

type CreateCompletion = {
    (request: CompletionRequest & { stream: true }, options?: RequestOptions): Promise<Stream<Completion>>;
    (request: CompletionRequest & { stream?: false }, options?: RequestOptions): Promise<Completion>;
    (request: CompletionRequest, options?: RequestOptions): Promise<Completion | Stream<Completion>>;
};

// Leaves the chunk with the usage out unless it is wanted.
function withUsage<T extends { usage?: unknown }>(stream: Stream<T>, wanted: boolean): Stream<T> {
    if (wanted) return stream;
    return {
        stop: stream.stop,
        async *[Symbol.asyncIterator]() {
            for await (const chunk of stream) if (!chunk.usage) yield chunk;
        },
    };
}

async function wholeChat(stream: Stream<ChatChunk>): Promise<ChatCompletion> {
    const message: ChatCompletion["choices"][0]["message"] = { role: "assistant", content: null }, logprobs: TokenLogprob[] = [];
    let reason: ChatCompletion["choices"][0]["finish_reason"] = "stop", last: ChatChunk | null = null, hasLogprobs = false;
    for await (const chunk of stream) {
        last = chunk;
        const choice = chunk.choices[0];
        if (!choice) continue;
        const { content, reasoning_content: reasoning, tool_calls: calls } = choice.delta;
        if (content) message.content = (message.content ?? "") + content;
        if (reasoning) message.reasoning_content = (message.reasoning_content ?? "") + reasoning;
        for (const { index: _, ...call } of calls ?? []) (message.tool_calls ??= []).push(call);
        if (choice.logprobs) hasLogprobs = logprobs.push(...choice.logprobs.content) >= 0;
        reason = choice.finish_reason ?? reason;
    }
    if (!last?.usage || !last.timings) throw new FritError("the answer was stopped", "E_CANCELLED");
    if (message.content === null && !message.tool_calls) message.content = "";
    const { id, created, model, usage, timings } = last;
    return { id, object: "chat.completion", created, model, usage, timings,
             choices: [{ index: 0, message, logprobs: hasLogprobs ? { content: logprobs } : null, finish_reason: reason }] };
}

async function wholeText(stream: Stream<Completion>): Promise<Completion> {
    let text = "", reason: Completion["choices"][0]["finish_reason"] = null, last: Completion | null = null;
    for await (const chunk of stream) {
        last = chunk;
        text += chunk.choices[0]?.text ?? "";
        reason = chunk.choices[0]?.finish_reason ?? reason;
    }
    if (!last?.usage) throw new FritError("the answer was stopped", "E_CANCELLED");
    return { ...last, choices: [{ index: 0, text, logprobs: null, finish_reason: reason }] };
}

/** A text that the program runs itself: it pushes tokens, reads logits, picks tokens, forks and saves. */
export class Session {
    /** @internal */
    constructor(private readonly frit: Frit, private readonly remote: Remote, private readonly id: number) {}

    /** Adds tokens, or the tokens of a text. Throws "E_LIMIT" if the context has no room for them. */
    async push(tokens: number[] | string, options: RequestOptions = {}): Promise<void> {
        const list = typeof tokens === "string" ? await this.frit.tokenize(tokens, { special: (await this.tokens()).length === 0 }) : tokens;
        await this.remote.call("push", [this.id, list], options);
    }

    /**
     * Picks tokens after the last one, and adds them. The last may be a token that ends an answer. Fewer than `n` if the
     * context is full.
     */
    next(n = 1, { signal, ...sampling }: RequestOptions & SamplerOptionValues = {}): Promise<number[]> {
        return this.remote.call("next", [this.id, n, sampling], { signal });
    }

    /** Logits after the last token, one for each token of the vocabulary. */
    logits(options: RequestOptions = {}): Promise<Float32Array> {
        return this.remote.call("logits", [this.id], options);
    }

    /** All tokens. */
    tokens(): Promise<number[]> {
        return this.remote.call("tokens", [this.id]);
    }

    /** Forgets all tokens after the first n. Throws "E_INVALID" if there are fewer. */
    truncate(n: number): Promise<void> {
        return this.remote.call("truncate", [this.id, n]);
    }

    /** A second session that continues as this one would. Both share the work that was done. */
    async fork(): Promise<Session> {
        return new Session(this.frit, this.remote, await this.remote.call<number>("fork", [this.id]));
    }

    /** The session as bytes, with its cache, for `load`. */
    save(options: RequestOptions = {}): Promise<Uint8Array> {
        return this.remote.call("save", [this.id], options);
    }

    /** Replaces the content by saved bytes of the same model. Throws "E_INVALID" for other models, "E_FORMAT" for damaged bytes. */
    load(bytes: Uint8Array): Promise<void> {
        return this.remote.call("restore", [this.id, bytes]);
    }

    /** Frees the session. */
    close(): Promise<void> {
        return this.remote.call("closeSession", [this.id]);
    }
}

/** The name under which the file of a URL is stored. */
export const storedName = (url: string | URL): string => nameOf(new URL(url, globalThis.location?.href).href);
