// SPDX-License-Identifier: MIT
// The worker of an engine, or of a download: answers calls of the page.

import { Engine, type EngineSetup } from "./engine.js";
import { ChatAnswer, makeSampler, TextAnswer, type Control } from "./generate.js";
import { FritError, LIMIT, Scope, type Value } from "./library.js";
import { download, type DownloadJob } from "./download.js";
import type { ChatRequest, CompletionRequest, EmbeddingRequest, RerankRequest } from "./types.js";

/** A call, or the end of one. */
export type ToWorker = { id: number; method: keyof typeof methods; args: never[] } | { cancel: number };
/** The result of a call, its error, or something before the result. */
export type FromWorker = { id: number } & ({ result: unknown } | { error: { message: string; status: string; code: string | null; param: string | null } } | { event: unknown });

let engine: Engine | null = null;
const cancelled = new Set<number>();

function loaded(): Engine {
    if (!engine) throw new FritError("no model is loaded", "E_INVALID");
    return engine;
}

interface Call {
    id: number;
    emit(event: unknown): void;
    stopped(): boolean;
}

function exclusive<T>(call: Call, task: (engine: Engine) => T | Promise<T>): Promise<T> {
    return loaded().exclusive(() => {
        if (call.stopped()) throw new FritError("the request was stopped", "E_CANCELLED");
        return task(loaded());
    });
}

function control(call: Call): Control {
    return { emit: (chunk) => call.emit(chunk), stopped: call.stopped };
}

// Tokens that the sampler picks after the session's last one, which stay in the session.
async function next(engine: Engine, call: Call, id: number, n: number, sampling: Record<string, Value>): Promise<number[]> {
    const { library } = engine, { module } = library, session = engine.session(id), scope = new Scope(library), tokens: number[] = [];
    const sampler = makeSampler(engine, sampling, scope), at = scope.alloc(4);
    try {
        for (const token of engine.tokens(session)) library.check(module._frit_sampler_accept!(sampler, token));
        while (tokens.length < n && (await engine.run(session, call.stopped))) {
            const status = module._frit_session_next!(session, sampler, at);
            if (status === LIMIT) break;
            library.check(status);
            tokens.push(library.i32[at >>> 2]!);
            if (module._frit_token_is_end!(engine.model, tokens.at(-1)!)) break;
        }
        return tokens;
    } finally {
        module._frit_sampler_free!(sampler);
        scope.free();
    }
}

const methods = {
    async load(call: Call, setup: EngineSetup) {
        const progress = (done: number) => call.emit({ progress: done });
        engine = await Engine.open(setup, progress, (sentence) => call.emit({ warning: sentence }));
        return engine.info;
    },
    chat: (call: Call, request: ChatRequest) => exclusive(call, (e) => new ChatAnswer(e, request, control(call)).run()),
    complete: (call: Call, request: CompletionRequest) => exclusive(call, (e) => new TextAnswer(e, request, control(call)).run()),
    embed: (call: Call, request: EmbeddingRequest) => exclusive(call, (e) => e.embed(request)),
    rerank: (call: Call, request: RerankRequest) => exclusive(call, (e) => e.rerank(request)),
    tokenize: (_call: Call, text: string, special: boolean, parse: boolean) => loaded().tokenize(text, special, parse),
    detokenize: (_call: Call, tokens: number[], special: boolean) => loaded().detokenize(tokens, special),
    count: (_call: Call, request: ChatRequest) => new ChatAnswer(loaded(), request, { emit() {}, stopped: () => false }).count(),
    memory: () => loaded().library.u8.length,
    newSession: (call: Call) => exclusive(call, (e) => e.newSession()),
    push: (call: Call, id: number, tokens: number[]) => exclusive(call, (e) => e.push(e.session(id), tokens)),
    next: (call: Call, id: number, n: number, sampling: Record<string, Value>) => exclusive(call, (e) => next(e, call, id, n, sampling)),
    logits: (call: Call, id: number) => exclusive(call, async (e) => {
        await e.run(e.session(id), call.stopped);
        return e.logits(e.session(id));
    }),
    tokens: (call: Call, id: number) => exclusive(call, (e) => e.tokens(e.session(id))),
    truncate: (call: Call, id: number, n: number) => exclusive(call, (e) =>
        e.library.check(e.library.module._frit_session_truncate!(e.session(id), n))),
    fork: (call: Call, id: number) => exclusive(call, (e) =>
        e.addSession(e.library.made((out) => e.library.module._frit_session_fork!(out, e.session(id))))),
    save: (call: Call, id: number) => exclusive(call, async (e) => {
        await e.run(e.session(id), call.stopped);
        return e.save(e.session(id));
    }),
    restore: (call: Call, id: number, bytes: Uint8Array) => exclusive(call, (e) => e.load(e.session(id), bytes)),
    closeSession: (call: Call, id: number) => exclusive(call, (e) => {
        e.library.module._frit_session_free!(e.session(id));
        e.sessions.delete(id);
    }),
    download: (call: Call, job: DownloadJob) => download(job, (progress) => call.emit(progress), call.stopped),
};

function describe(error: unknown): { message: string; status: string; code: string | null; param: string | null } {
    if (error instanceof FritError) return { message: error.message, status: error.status, code: error.code, param: error.param };
    const { message, stack } = error instanceof Error ? error : new Error(String(error));
    return { message: error instanceof WebAssembly.RuntimeError ? `the engine failed: ${stack}` : message, status: "E_INTERNAL", code: null, param: null };
}

async function answer(message: ToWorker, post: (message: FromWorker) => void): Promise<void> {
    if ("cancel" in message) {
        cancelled.add(message.cancel);
        return;
    }
    const { id, method, args } = message;
    const call: Call = { id, emit: (event) => post({ id, event }), stopped: () => cancelled.has(id) };
    try {
        const run = methods[method] as (call: Call, ...args: unknown[]) => unknown;
        post({ id, result: await run(call, ...args) });
    } catch (error) {
        post({ id, error: describe(error) });
    } finally {
        cancelled.delete(id);
    }
}

if (typeof (globalThis as { WorkerGlobalScope?: unknown }).WorkerGlobalScope === "undefined") {   // Node
    const NODE_WORKERS = "node:worker_threads";
    const { parentPort } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ NODE_WORKERS)) as typeof import("node:worker_threads");
    parentPort!.on("message", (message: ToWorker) => void answer(message, (reply) => parentPort!.postMessage(reply)));
} else {
    const scope = globalThis as unknown as { onmessage: (event: MessageEvent<ToWorker>) => void; postMessage(message: FromWorker): void };
    scope.onmessage = ({ data }) => void answer(data, (reply) => scope.postMessage(reply));
}
