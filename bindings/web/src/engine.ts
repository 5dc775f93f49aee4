// SPDX-License-Identifier: MIT
// The engine in its worker: opens a model, and answers requests one after the other. Between two steps it returns to the
// event loop, so that a request can be stopped.

import { FritError, Library, Scope, type Module, type Value } from "./library.js";
import { OPTIONS } from "./options.js";
import { openSource, type FileSource, type OpenFile } from "./sources.js";
import type { EmbeddingRequest, Embeddings, ModelInfo, Reranked, RerankRequest } from "./types.js";

/** What the page asks of a new engine. */
export interface EngineSetup {
    moduleURL: string;
    wasmURL: string;
    threads: number;
    files: FileSource[];
    options: Record<string, Value>;
    ctx: number | undefined;
    memory: number;
}

type Kind = keyof typeof OPTIONS;

const KINDS = ["decoder", "encoder", "encoder-decoder"] as const;
const KNOWN: Kind[] = ["model", "engine"];
const TEXT_SPECIAL = 1, TEXT_PARSE_SPECIAL = 2, OUTPUT_LAST = 0;
const DEFAULT_CTX = 4096, BATCH = 128, N_OVERHEAD = 16 << 20;

const mib = (n: number) => `${(n / 2 ** 20).toFixed(0)} MiB`;

// Returns to the event loop, so that messages arrive. Timers would wait for 4 ms.
const channel = new MessageChannel();
const waiting: (() => void)[] = [];
channel.port1.onmessage = () => waiting.shift()?.();
export function turn(): Promise<void> {
    return new Promise((resolve) => {
        waiting.push(resolve);
        channel.port2.postMessage(0);
    });
}

// Node ends although a port is open.
(channel.port1 as unknown as { unref?: () => void }).unref?.();

/** An opened model with its engine. */
export class Engine {
    readonly sessions = new Map<number, number>();
    private lock: Promise<unknown> = Promise.resolve();
    private nSessions = 0;

    private constructor(readonly library: Library, readonly model: number, readonly engine: number, readonly info: ModelInfo,
                        private readonly files: OpenFile[]) {}

    static async open(setup: EngineSetup, progress: (done: number) => void, warn: (sentence: string) => void): Promise<Engine> {
        for (const name of Object.keys(setup.options))
            if (!KNOWN.some((kind) => name.replaceAll("_", "-") in OPTIONS[kind]))
                throw new FritError(`${name}: is not an option of a model or an engine`, "E_INVALID", "unsupported_parameter", name);
        const { default: create } = await import(/* @vite-ignore */ /* webpackIgnore: true */ setup.moduleURL);
        const module: Module = await create({
            threads: setup.threads - 1,
            locateFile: () => setup.wasmURL,
            ...threadScript(setup.moduleURL),
        });
        const library = new Library(module);
        const files = await Promise.all(setup.files.map(openSource));
        const opened = new Files(library, files);
        const options = new OptionSetter(library, opened.kept);
        const log = module.addFunction((_ctx: number, level: number, sentence: number) => {
            if (level <= 1) warn(library.text(sentence));
        }, "viii");
        const report = module.addFunction((_ctx: number, done: number) => {
            progress(done);
            return 1;
        }, "iid");
        const modelOptions = options.make("model", setup.options, { log });
        const model = library.made((out) => module._frit_model_open_files!(out, opened.at, modelOptions));
        const known = library.scoped((s) => {
            const at = s.struct("frit_model_info");
            library.check(module._frit_model_get_info!(model, at));
            return library.read("frit_model_info", at);
        });
        const engineOptions = options.make("engine", { batch: BATCH, ...setup.options, threads: setup.threads, ctx: contextOf(setup.ctx, known) },
                                           { progress: report });
        const needed = estimate(library, model, engineOptions, setup.memory);
        const engine = library.made((out) => module._frit_engine_new!(out, model, engineOptions));
        return new Engine(library, model, engine, infoOf(library, engine, known, needed), files);
    }

    /** Runs a task after all that wait. */
    exclusive<T>(task: () => T | Promise<T>): Promise<T> {
        const done = this.lock.then(task);
        this.lock = done.catch(() => {});
        return done;
    }

    tokenize(text: string, special: boolean, parseSpecial: boolean): number[] {
        const { library, model } = this;
        const flags = (special ? TEXT_SPECIAL : 0) | (parseSpecial ? TEXT_PARSE_SPECIAL : 0);
        return library.scoped((s) => {
            const { at, n } = s.text(text);
            return intsOf(library.sized((buffer, capacity, count) =>
                library.module._frit_tokenize!(model, at, n, flags, buffer, capacity, count), 4, n + 16));
        });
    }

    detokenize(tokens: number[], special: boolean): string {
        return new TextDecoder().decode(this.bytesOf(tokens, special));
    }

    bytesOf(tokens: number[], special: boolean): Uint8Array {
        const { library, model } = this;
        return library.scoped((s) => {
            const at = s.ints(tokens);
            return library.sized((buffer, capacity, n) =>
                library.module._frit_detokenize!(model, at, tokens.length, special ? TEXT_SPECIAL : 0, buffer, capacity, n), 1,
                16 * tokens.length + 64);
        });
    }

    embed(request: EmbeddingRequest): Embeddings {
        const { library, engine, info } = this;
        const texts = [request.input].flat(), data: Embeddings["data"] = [];
        library.scoped((s) => {
            const { options, items } = this.embedArguments(s, request, texts);
            const row = library.module.addFunction((_ctx: number, item: number, _i: number, values: number, n: number) => {
                const at = (values >>> 0) >>> 2;
                data[item] = { object: "embedding", index: item, embedding: Array.from(library.f32.subarray(at, at + n)) };
            }, "viiiii");
            try {
                library.check(library.module._frit_embed_texts!(engine, items, texts.length, options, row, 0));
            } finally {
                library.module.removeFunction(row);
            }
        });
        return { object: "list", model: info.name, data };
    }

    private embedArguments(s: Scope, request: EmbeddingRequest, texts: string[]): { options: number; items: number } {
        const text = (value: string | undefined) => (value === undefined ? 0 : s.text(value).at);
        const options = s.struct("frit_embed_options", {
            pooling: text(request.pooling), normalize: text(request.normalize), prompt_name: text(request.prompt_name),
            n_dims: request.dimensions ?? 0,
        });
        return { options, items: this.itemsOf(s, texts) };
    }

    private itemsOf(s: Scope, texts: string[]): number {
        const { library } = this;
        const { size } = library.struct("frit_embed_item"), items = s.alloc(size * texts.length);
        texts.forEach((each, i) => {
            const { at, n } = s.text(each);
            library.set("frit_embed_item", items + i * size, "text", at);
            library.set("frit_embed_item", items + i * size, "n_bytes", n);
        });
        return items;
    }

    rerank({ query, documents, top_n: nTop = documents.length, raw_scores: raw = false }: RerankRequest): Reranked {
        const { library, engine, info } = this;
        const scores = library.scoped((s) => {
            const { at, n } = s.text(query), out = s.alloc(4 * documents.length);
            const options = s.struct("frit_rerank_options", { raw_scores: raw });
            library.check(library.module._frit_rerank_texts!(engine, at, n, this.itemsOf(s, documents), documents.length, options, out));
            return Array.from(library.f32.subarray(out >>> 2, (out >>> 2) + documents.length));
        });
        const results = scores.map((score, index) => ({ index, relevance_score: score }));
        results.sort((a, b) => b.relevance_score - a.relevance_score || a.index - b.index);
        return { model: info.name, results: results.slice(0, nTop) };
    }

    // -------------------------------------------------------------------------------- sessions of the caller

    newSession(): number {
        return this.addSession(this.library.made((out) => this.library.module._frit_session_new!(out, this.engine)));
    }

    addSession(session: number): number {
        this.sessions.set(++this.nSessions, session);
        return this.nSessions;
    }

    session(id: number): number {
        const session = this.sessions.get(id);
        if (!session) throw new FritError("the session is closed", "E_INVALID");
        return session;
    }

    push(session: number, tokens: number[]): void {
        this.library.scoped((s) => {
            const options = s.struct("frit_push_options", { output: OUTPUT_LAST });
            this.library.check(this.library.module._frit_session_push!(session, s.ints(tokens), tokens.length, options));
        });
    }

    /** Runs the session's tokens. `stopped` is asked between steps; false: it was stopped. */
    async run(session: number, stopped: () => boolean, progress?: (pending: number) => void): Promise<boolean> {
        const { module } = this.library;
        for (let pending; (pending = module._frit_session_pending!(session)) > 0;) {
            progress?.(pending);
            await turn();
            if (stopped()) return false;
            this.library.check(module._frit_engine_step!(this.engine, 0));
        }
        this.library.check(module._frit_session_status!(session));
        return true;
    }

    logits(session: number): Float32Array {
        const at = this.library.module._frit_session_logits!(session) >>> 0;
        if (at === 0) throw new FritError("the session has no logits: push tokens first", "E_INVALID");
        return this.library.f32.slice(at >>> 2, (at >>> 2) + this.info.n_vocab);
    }

    tokens(session: number): number[] {
        const n = this.library.module._frit_session_length!(session);
        const at = (this.library.module._frit_session_tokens!(session) >>> 0) >>> 2;
        return Array.from(this.library.i32.subarray(at, at + n));
    }

    save(session: number): Uint8Array {
        return this.library.sized((buffer, capacity, n) =>
            this.library.module._frit_session_save_memory!(session, buffer, capacity, n), 1, 1 << 16);
    }

    load(session: number, bytes: Uint8Array): void {
        this.library.scoped((s) =>
            this.library.check(this.library.module._frit_session_load_memory!(session, s.bytes(bytes), bytes.length)));
    }

    close(): void {
        const { module } = this.library;
        for (const session of this.sessions.values()) module._frit_session_free!(session);
        this.sessions.clear();
        module._frit_engine_free!(this.engine);
        module._frit_model_free!(this.model);
        for (const file of this.files) file.close();
    }
}

// Workers of threads load a script of this origin, which imports a module of another one.
function threadScript(url: string): { threadScript?: () => string } {
    if (!url.startsWith("http") || new URL(url).origin === globalThis.origin) return {};
    return { threadScript: () => URL.createObjectURL(new Blob([`import ${JSON.stringify(url)};`], { type: "text/javascript" })) };
}

function intsOf(bytes: Uint8Array): number[] {
    return Array.from(new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2));
}

function contextOf(wanted: number | undefined, known: Record<string, Value>): number {
    const trained = Number(known.n_ctx_train);
    return wanted ?? (trained > 0 && trained < DEFAULT_CTX ? trained : DEFAULT_CTX);
}

// Memory that lives as long as the model: its files and their sizes.
class Files {
    readonly at: number;
    readonly kept: Scope;
    constructor(library: Library, files: OpenFile[]) {
        this.kept = new Scope(library);
        const sizes = this.kept.alloc(8 * files.length);
        const data = new DataView(library.module.wasmMemory.buffer);
        files.forEach((file, i) => data.setBigUint64(sizes + 8 * i, BigInt(file.size), true));
        const read = library.module.addFunction((_ctx: number, file: number, at: bigint, bytes: number, n: number) =>
            Number(readInto(library, files[file], Number(at), bytes >>> 0, n >>> 0)), "iiijii");
        this.at = this.kept.struct("frit_model_files", { n_bytes: sizes, n_files: files.length, read });
    }
}

function readInto(library: Library, file: OpenFile | undefined, at: number, address: number, n: number): boolean {
    try {
        if (!file) return false;
        return file.read(at, library.u8.subarray(address, address + n));
    } catch {
        return false;
    }
}

// Makes structs of options from options by their names on the command line.
export class OptionSetter {
    constructor(private readonly library: Library, private readonly scope: Scope) {}

    make(kind: Kind, values: Record<string, Value>, fields: Record<string, Value> = {}): number {
        const at = this.scope.struct(`frit_${kind}_options`, fields);
        for (const [name, value] of Object.entries(values)) {
            const option = name.replaceAll("_", "-");
            if (option in OPTIONS[kind] && value !== undefined && value !== null) this.set(kind, at, option, value);
        }
        return at;
    }

    set(kind: Kind, at: number, option: string, value: Value): void {
        const text = value === true ? "on" : value === false ? "off" : String(value);
        const status = this.library.module._frit_web_set_option!(this.scope.text(kind).at, at, this.scope.text(option).at,
                                                                 this.scope.text(text).at);
        this.library.check(status);
    }
}

// Refuses an engine that does not fit, before weights are read. Returns the bytes that it needs.
function estimate(library: Library, model: number, options: number, memory: number): number {
    const { module } = library;
    const handle = library.made((out) => module._frit_estimate_new!(out, model, options));
    try {
        return library.scoped((s) => {
            const info = s.struct("frit_estimate_info"), device = s.struct("frit_estimate_device");
            library.check(module._frit_estimate_get_info!(handle, info));
            const why = library.get("frit_estimate_info", info, "why_not");
            if (why) throw new FritError(String(why), "E_MEMORY");
            if (!module._frit_estimate_get_device!(handle, 0, device)) return 0;
            const part = (name: string) => Number(library.get("frit_estimate_device", device, name));
            const needed = part("packed_bytes") + part("kv_bytes") + part("scratch_bytes") + N_OVERHEAD;
            if (needed > memory)
                throw new FritError(`the model needs ${mib(needed)} (weights ${mib(part("packed_bytes"))}, cache ${mib(part("kv_bytes"))}, ` +
                    `scratch ${mib(part("scratch_bytes"))}), at most ${mib(memory)} may be used; a smaller ctx or weights of fewer bits need less`,
                    "E_MEMORY");
            return needed;
        });
    } finally {
        module._frit_estimate_free!(handle);
    }
}

function infoOf(library: Library, engine: number, known: Record<string, Value>, needed: number): ModelInfo {
    return library.scoped((s) => {
        const at = s.struct("frit_engine_info");
        library.check(library.module._frit_engine_get_info!(engine, at));
        const own = library.read("frit_engine_info", at);
        const text = (name: string) => String(known[name] ?? ""), number = (name: string) => Number(known[name] ?? own[name]);
        return {
            name: text("name"), architecture: text("architecture"), kind: KINDS[Number(known.kind)] ?? "decoder",
            file_type: text("file_type"), chat_format: text("chat_format"), n_params: number("n_params"), n_bytes: number("n_bytes"),
            n_vocab: number("n_vocab"), n_ctx_train: number("n_ctx_train"), n_embd: number("n_embd"), n_layer: number("n_layer"),
            n_ctx: Number(own.n_ctx), n_threads: Number(own.n_threads), isa: String(own.isa), packed_bytes: Number(own.packed_bytes),
            kv_bytes: Number(own.kv_bytes), heap_bytes: library.u8.length, needed_bytes: needed,
        };
    });
}
