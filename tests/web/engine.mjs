// SPDX-License-Identifier: MIT
// Drives the module as docs/dev/web.md describes: opens a model from bytes, generates tokens, measures. Runs in a worker
// of a browser and in Node.

const SPECIAL = 1;   // FRIT_TEXT_SPECIAL
const E_LIMIT = -7;

// The number of threads that an engine can have: one on a page without cross-origin isolation.
export function possibleThreads(wanted) {
    return typeof crossOriginIsolated === "undefined" || crossOriginIsolated ? wanted : 1;
}

// Instantiates a module for engines of at most nThreads threads.
export async function load(url, nThreads) {
    const { default: create } = await import(url);
    return create({ threads: nThreads - 1 });
}

class Failure extends Error {}

function check(frit, status, what) {
    if (status !== 0) throw new Failure(`${what}: ${frit.UTF8ToString(frit._frit_error()) || `status ${status}`}`);
}

function text(frit, string) {
    const size = frit.lengthBytesUTF8(string) + 1;
    const at = frit._malloc(size);
    frit.stringToUTF8(string, at, size);
    return at;
}

// Calls make(pointer to the result) and returns the result.
function made(frit, what, make) {
    const out = frit._malloc(4);
    frit.HEAP32[out >> 2] = 0;
    const status = make(out);
    const object = frit.HEAP32[out >> 2] >>> 0;
    frit._free(out);
    check(frit, status, what);
    return object;
}

// The structs of frit.h: { frit_model_info: { n_bytes, fields: { n_vocab: { offset, n_bytes, kind } } } }.
export function layout(frit) {
    const row = frit._malloc(20);
    const structs = {};
    for (let i = 0; frit._frit_web_get_field(i, row); i++) {
        const [type, field, kind, offset, n_bytes] = frit.HEAP32.subarray(row >> 2, (row >> 2) + 5);
        const name = frit.UTF8ToString(type), fieldName = frit.UTF8ToString(field);
        if (!fieldName) structs[name] = { n_bytes, fields: {} };
        else structs[name].fields[fieldName] = { offset, n_bytes, kind: frit.UTF8ToString(kind) };
    }
    frit._free(row);
    return structs;
}

// A struct of options; `values` are options of the command by their names. Texts stay allocated.
function options(frit, kind, values) {
    const name = text(frit, kind);
    const size = layout(frit)[`frit_${kind}_options`].n_bytes;
    const at = frit._malloc(size);
    frit.HEAPU8.fill(0, at, at + size);
    for (const [key, value] of Object.entries(values))
        check(frit, frit._frit_web_set_option(name, at, text(frit, key), text(frit, String(value))), key);
    return at;
}

export class Engine {
    // bytes: the model's file, a Uint8Array or an array of such
    constructor(frit, bytes, engineOptions = {}) {
        this.frit = frit;
        const parts = Array.isArray(bytes) ? bytes : [bytes];
        this.size = parts.reduce((n, part) => n + part.length, 0);
        this.file = frit._malloc(this.size) >>> 0;
        if (!this.file) throw new Failure(`the heap has no room for a file of ${this.size} bytes`);
        let at = this.file;
        for (const part of parts) {
            frit.HEAPU8.set(part, at);
            at += part.length;
        }
        this.model = made(frit, "model", (out) => frit._frit_model_open_memory(out, this.file, this.size, 0));
        const made_options = options(frit, "engine", engineOptions);
        this.engine = made(frit, "engine", (out) => frit._frit_engine_new(out, this.model, made_options));
    }

    tokenize(string) {
        const { frit } = this;
        const at = text(frit, string);
        const nBytes = frit.lengthBytesUTF8(string);
        const capacity = nBytes + 16;
        const tokens = frit._malloc(4 * capacity);
        const n = frit._malloc(4);
        check(frit, frit._frit_tokenize(this.model, at, nBytes, SPECIAL, tokens, capacity, n), "tokenize");
        const found = frit.HEAP32.slice(tokens >> 2, (tokens >> 2) + frit.HEAP32[n >> 2]);
        for (const each of [at, tokens, n]) frit._free(each);
        return found;
    }

    detokenize(tokens) {
        const { frit } = this;
        const capacity = 64 * tokens.length + 64;
        const from = frit._malloc(4 * tokens.length + 4), to = frit._malloc(capacity), n = frit._malloc(4);
        frit.HEAP32.set(tokens, from >> 2);
        check(frit, frit._frit_detokenize(this.model, from, tokens.length, 0, to, capacity, n), "detokenize");
        const bytes = frit.HEAPU8.slice(to, to + frit.HEAP32[n >> 2]);
        for (const each of [from, to, n]) frit._free(each);
        return new TextDecoder().decode(bytes);
    }

    // The likeliest nTokens tokens after a prompt, with seconds of the prompt and of the answer.
    generate(prompt, nTokens) {
        const { frit } = this;
        const session = made(frit, "session", (out) => frit._frit_session_new(out, this.engine));
        const sampler = made(frit, "sampler", (out) => frit._frit_sampler_new(out, this.model, 0));
        const token = frit._malloc(4);
        const at = frit._malloc(4 * prompt.length);
        frit.HEAP32.set(prompt, at >> 2);
        const answer = [], times = [performance.now()];
        check(frit, frit._frit_session_push(session, at, prompt.length, 0), "push");
        while (answer.length < nTokens) {
            const status = frit._frit_session_next(session, sampler, token);
            if (status === E_LIMIT) break;
            check(frit, status, "next");
            if (answer.length === 0) times.push(performance.now());
            answer.push(frit.HEAP32[token >> 2]);
            if (frit._frit_token_is_end(this.model, answer.at(-1))) break;
        }
        times.push(performance.now());
        for (const each of [token, at]) frit._free(each);
        frit._frit_sampler_free(sampler);
        frit._frit_session_free(session);
        return { answer, prompt: (times[1] - times[0]) / 1000, decode: (times[2] - times[1]) / 1000 };
    }

    // A hash of the bits of the logits after the tokens, which run as a prompt.
    bits(tokens) {
        const { frit } = this;
        const session = made(frit, "session", (out) => frit._frit_session_new(out, this.engine));
        const at = frit._malloc(4 * tokens.length);
        frit.HEAP32.set(tokens, at >> 2);
        check(frit, frit._frit_session_push(session, at, tokens.length, 0), "push");
        while (frit._frit_session_pending(session) > 0) check(frit, frit._frit_engine_step(this.engine, 0), "step");
        const logits = frit._frit_session_logits(session) >>> 0;
        let hash = 0x811c9dc5;   // FNV-1a, word by word
        for (const word of frit.HEAP32.subarray(logits >> 2, (logits >> 2) + this.nVocab()))
            hash = Math.imul(hash ^ word, 0x01000193);
        frit._frit_session_free(session);
        frit._free(at);
        return hash >>> 0;
    }

    nVocab() {
        const { frit } = this;
        const { n_bytes, fields } = layout(frit).frit_model_info;
        const info = frit._malloc(n_bytes);
        frit.HEAPU8.fill(0, info, info + n_bytes);
        check(frit, frit._frit_model_get_info(this.model, info), "info");
        const n = frit.HEAP32[(info + fields.n_vocab.offset) >> 2];
        frit._free(info);
        return n;
    }

    free() {
        this.frit._frit_engine_free(this.engine);
        this.frit._frit_model_free(this.model);
        this.frit._free(this.file);
    }
}

// Generates text: { text, tokens, prompt and decode in tokens a second, heap in bytes }.
export async function answer({ url, model, prompt, nTokens, threads: wanted = 1, cpu, nCtx = 512 }) {
    const threads = possibleThreads(wanted);
    const frit = await load(url, threads);
    const settings = { threads, ctx: nCtx };
    if (cpu) settings.cpu = cpu;
    const engine = new Engine(frit, model, settings);
    const tokens = engine.tokenize(prompt);
    const made = engine.generate(tokens, nTokens);
    const result = {
        text: engine.detokenize(made.answer),
        tokens: made.answer,
        prompt: tokens.length / made.prompt,
        decode: (made.answer.length - 1) / made.decode,
        bits: engine.bits([...tokens, ...made.answer]),
        heap: frit.HEAPU8.length,
    };
    engine.free();
    return result;
}
