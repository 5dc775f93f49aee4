// SPDX-License-Identifier: MIT
// Answers to chat and text completions, in the worker: prompt, sampler and grammar from a request; chunks from tokens.

import { OptionSetter, turn as nextTask, type Engine } from "./engine.js";
import { FritError, LIMIT, Scope, type Library, type Value } from "./library.js";
import { GRAMMARS, OPTIONS, PARTS } from "./options.js";
import type { ChatChunk, ChatDelta, ChatRequest, Completion, CompletionRequest, FinishReason, GenerateOptions, TokenLogprob,
              Timings, Usage } from "./types.js";

export type Chunk = ChatChunk | Completion;

/** What a request needs of the page while it runs. */
export interface Control {
    emit(chunk: Chunk): void;
    stopped(): boolean;
}

// Names of OpenAI's API for options of the command.
const ALIASES: Record<string, string> = { temperature: "temp", repetition_penalty: "repeat-penalty" };
const LISTS = ["logit-bias", "dry-sequence-breaker"];
const PROGRESS_MS = 100;

const invalid = (param: string, sentence: string) => new FritError(`${param}: ${sentence}`, "E_INVALID", "invalid_value", param);

function isStopList(stop: unknown): stop is string[] {
    return Array.isArray(stop) && stop.every((text) => typeof text === "string");
}

function stopsOf(request: GenerateOptions): string[] {
    const stop = request.stop ?? [];
    const list = typeof stop === "string" ? [stop] : stop;
    if (!isStopList(list)) throw invalid("stop", "expected a text or a list of texts");
    return list.filter((text) => text.length > 0);
}

function limitOf(value: number | null | undefined, name: string): number {
    if (value === undefined || value === null || value === -1) return Infinity;
    if (!Number.isInteger(value) || value < 0) throw invalid(name, `found ${value}, expected a whole number`);
    return value;
}

/** A grammar of an answer: its kind and its text. */
interface Form {
    kind: number;
    text: string;
}

function formOf(request: GenerateOptions): Form | null {
    const { response_format: format } = request, found: Form[] = [];
    if (request.grammar) found.push({ kind: GRAMMARS.GBNF, text: request.grammar });
    if (request.regex) found.push({ kind: GRAMMARS.REGEX, text: request.regex });
    if (request.structural_tag) found.push({ kind: GRAMMARS.TAGS, text: JSON.stringify(request.structural_tag) });
    if (format?.type === "json_object") found.push({ kind: GRAMMARS.SCHEMA, text: '{"type":"object"}' });
    else if (format?.type === "json_schema") found.push({ kind: GRAMMARS.SCHEMA, text: JSON.stringify(format.json_schema.schema) });
    else if (format && format.type !== "text") throw invalid("response_format.type", `'${(format as { type: unknown }).type}' is not supported`);
    if (found.length > 1) throw invalid("response_format", "an answer has one grammar at most, and several were given");
    return found[0] ?? null;
}

// Makes the sampler: the command's defaults, then what the model's files recommend, then the request's own options.
export function makeSampler(engine: Engine, request: GenerateOptions, scope: Scope): number {
    const { library, model } = engine, { module } = library;
    const setter = new OptionSetter(library, scope), options = setter.make("sampler", {});
    for (const [name, { fallback }] of Object.entries(OPTIONS.sampler))
        if (fallback !== null && !LISTS.includes(name)) setter.set("sampler", options, name, fallback);
    library.check(module._frit_sampler_recommend!(model, options));
    let seed: Value = crypto.getRandomValues(new Uint32Array(1))[0]!;
    for (const [key, value] of Object.entries(request) as [string, Value | undefined][]) {
        const name = ALIASES[key] ?? key.replaceAll("_", "-");
        if (value === undefined || value === null || !(name in OPTIONS.sampler) || LISTS.includes(name)) continue;
        if (name === "seed") seed = Number(value) === -1 ? seed : value;
        else setter.set("sampler", options, name, value);
    }
    setter.set("sampler", options, "seed", seed);
    const biases = Object.entries(request.logit_bias ?? {}).map(([token, bias]) => `${token}=${bias <= -100 ? "-inf" : bias}`);
    setList(library, scope, options, "logit_bias", biases);
    setList(library, scope, options, "dry_breakers", request.dry_sequence_breaker ?? []);
    return library.made((out) => module._frit_sampler_new!(out, model, options));
}

function setList(library: Library, scope: Scope, options: number, field: string, items: string[]): void {
    if (items.length === 0) return;
    const { offset } = library.struct("frit_sampler_options").fields.get(field)!;
    library.i32.set([scope.ints(items.map((item) => scope.text(item).at)), items.length], (options + offset) >>> 2);
}

/** The answer's text as it grows: pieces of tokens, texts that end it, parts of a chat. */
class Text {
    private held = "";
    private readonly stream: number;
    private readonly piece: number;
    stopped = false;

    constructor(private readonly library: Library, model: number, private readonly stops: string[], isChat: boolean, scope: Scope) {
        this.stream = library.made((out) => library.module._frit_text_stream_new!(out, model, isChat ? 1 : 0));
        this.piece = scope.alloc(8);
    }

    private take(status: number): string {
        this.library.check(status);
        const [at, n] = this.library.u32s(this.piece, 2) as [number, number];
        return this.library.text(at, n);
    }

    /** Takes a token of the prompt: the answer's first word keeps the space before it. */
    follow(token: number): void {
        this.take(this.library.module._frit_text_stream_push!(this.stream, token, this.piece, this.piece + 4));
    }

    push(token: number): string {
        return this.release(this.take(this.library.module._frit_text_stream_push!(this.stream, token, this.piece, this.piece + 4)), false);
    }

    end(): string {
        if (this.stopped) return "";
        return this.release(this.take(this.library.module._frit_text_stream_flush!(this.stream, this.piece, this.piece + 4)), true);
    }

    // Holds text back that may become one of the texts that end the answer.
    private release(text: string, isLast: boolean): string {
        if (this.stops.length === 0) return text;
        const whole = this.held + text;
        const found = this.stops.map((stop) => whole.indexOf(stop)).filter((at) => at >= 0);
        if (found.length > 0) {
            this.stopped = true;
            this.held = "";
            return whole.slice(0, Math.min(...found));
        }
        let keep = 0;
        for (const stop of isLast ? [] : this.stops)
            for (let n = Math.min(stop.length - 1, whole.length); n > keep; n--)
                if (whole.endsWith(stop.slice(0, n))) keep = n;
        this.held = whole.slice(whole.length - keep);
        return whole.slice(0, whole.length - keep);
    }

    free(): void {
        this.library.module._frit_text_stream_free!(this.stream);
    }
}

/** One answer: what runs, and what the chunks say. */
abstract class Answer {
    protected readonly library: Library;
    protected readonly scope: Scope;
    protected sampler = 0;
    protected session = 0;
    protected grammar = 0;
    protected text!: Text;
    protected prompt: number[] = [];
    protected nAnswer = 0;
    protected times = { start: 0, first: 0, end: 0 };
    protected readonly id: string;
    protected readonly created = Math.floor(Date.now() / 1000);

    constructor(protected readonly engine: Engine, protected readonly request: GenerateOptions, protected readonly control: Control, prefix: string) {
        this.library = engine.library;
        this.scope = new Scope(this.library);
        this.id = `${prefix}-${[...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
    }

    protected abstract readonly limit: number;
    protected abstract prepare(): void;
    protected abstract begin(): void;
    protected abstract give(text: string, logprob: TokenLogprob | null): void;
    protected abstract finish(reason: FinishReason, usage: Usage, timings: Timings): void;
    protected abstract progress(processed: number, total: number): void;
    protected abstract isHidden(token: number): boolean;
    protected readonly wantsLogprobs: boolean = false;
    protected readonly nTop: number = 0;

    // Log probabilities of the token that the sampler will pick, while the session has logits.
    private logprobOf(at: number): TokenLogprob {
        const { engine, library, session, sampler, nTop } = this, { module } = library;
        const logits = module._frit_session_logits!(session) >>> 0;
        library.check(module._frit_sampler_set_position!(sampler, BigInt(module._frit_session_length!(session))));
        library.check(module._frit_sampler_sample!(sampler, logits, at));
        return library.scoped((s) => {
            const { size } = library.struct("frit_logprob"), top = s.alloc(size * Math.max(nTop, 1));
            const own = s.struct("frit_logprob", { token: library.i32[at >>> 2]! });
            library.check(module._frit_logprobs_of!(logits, engine.info.n_vocab, own, 1));
            library.check(module._frit_logprobs_top!(logits, engine.info.n_vocab, top, nTop));
            const item = (where: number) => {
                const bytes = engine.bytesOf([Number(library.get("frit_logprob", where, "token"))], true);
                return { token: new TextDecoder().decode(bytes), logprob: Number(library.get("frit_logprob", where, "logprob")), bytes: [...bytes] };
            };
            return { ...item(own), top_logprobs: Array.from({ length: nTop }, (_, i) => item(top + i * size)) };
        });
    }

    /** Generates the answer. */
    async run(): Promise<void> {
        const { module } = this.library;
        try {
            this.prepare();
            if (this.prompt.length === 0) throw new FritError("the prompt has no tokens", "E_INVALID", "invalid_value", "prompt");
            if (this.prompt.length >= this.engine.info.n_ctx)
                throw new FritError(`the prompt has ${this.prompt.length} tokens, and the context has room for ${this.engine.info.n_ctx}`,
                                    "E_LIMIT", "context_length_exceeded", "messages");
            this.sampler = makeSampler(this.engine, this.request, this.scope);
            for (const token of this.prompt) this.library.check(module._frit_sampler_accept!(this.sampler, token));
            if (this.grammar) this.library.check(module._frit_sampler_set_grammar!(this.sampler, this.grammar));
            this.session = this.library.made((out) => module._frit_session_new!(out, this.engine.engine));
            this.engine.push(this.session, this.prompt);
            this.times.start = performance.now();
            const reason = (await this.runPrompt()) ? await this.runTokens() : null;
            this.times.end = performance.now();
            if (reason) this.end(reason);
        } finally {
            this.free();
        }
    }

    private async runPrompt(): Promise<boolean> {
        const total = this.prompt.length;
        let shown = performance.now();
        return this.engine.run(this.session, this.control.stopped, (pending) => {
            if (!this.request.return_progress || performance.now() - shown < PROGRESS_MS) return;
            shown = performance.now();
            this.progress(total - pending, total);
        });
    }

    // Returns the reason of the answer's end; null: it was stopped.
    private async runTokens(): Promise<FinishReason | null> {
        const { module } = this.library, at = this.scope.alloc(4), { model } = this.engine;
        this.begin();
        while (this.nAnswer < this.limit) {
            if (this.wantsLogprobs && !(await this.engine.run(this.session, this.control.stopped))) return null;
            const logprob = this.wantsLogprobs ? this.logprobOf(at) : null;
            const status = module._frit_session_next!(this.session, this.sampler, at);
            if (status === LIMIT) return "length";
            this.library.check(status);
            const token = this.library.i32[at >>> 2]!;
            if (this.nAnswer++ === 0) this.times.first = performance.now();
            if (module._frit_token_is_end!(model, token)) return "stop";
            const text = this.isHidden(token) ? "" : this.text.push(token);
            if (text || logprob) this.give(text, logprob);
            if (this.text.stopped || (this.grammar && module._frit_sampler_is_over!(this.sampler))) return "stop";
            await nextTask();
            if (this.control.stopped()) return null;
        }
        return "length";
    }

    private end(reason: FinishReason): void {
        const rest = this.text.end();
        if (rest) this.give(rest, null);
        const n = this.prompt.length, { start, first, end } = this.times;
        const promptMs = (first || end) - start, answerMs = first ? end - first : 0, nLater = Math.max(this.nAnswer - 1, 0);
        this.finish(reason, {
            prompt_tokens: n, completion_tokens: this.nAnswer, total_tokens: n + this.nAnswer,
            prompt_tokens_details: { cached_tokens: this.library.module._frit_session_cached!(this.session) },
        }, {
            prompt_n: n, prompt_ms: promptMs, prompt_per_second: promptMs > 0 ? (1000 * n) / promptMs : 0,
            predicted_n: this.nAnswer, predicted_ms: answerMs, predicted_per_second: answerMs > 0 ? (1000 * nLater) / answerMs : 0,
        });
    }

    protected free(): void {
        const { module } = this.library;
        if (this.session) module._frit_session_free!(this.session);
        if (this.sampler) module._frit_sampler_free!(this.sampler);
        if (this.grammar) module._frit_grammar_free!(this.grammar);
        this.text?.free();
        this.scope.free();
    }

    protected base<T extends string>(object: T) {
        return { id: this.id, object, created: this.created, model: this.engine.info.name };
    }
}

/** An answer to a conversation. */
export class ChatAnswer extends Answer {
    protected readonly limit: number;
    protected override readonly wantsLogprobs: boolean;
    protected override readonly nTop: number;
    private turn = 0;
    private part = 0;
    private nPiece = 0;
    private nCalls = 0;
    private logprobs: TokenLogprob[] = [];

    constructor(engine: Engine, private readonly chat: ChatRequest, control: Control) {
        super(engine, chat, control, "chatcmpl");
        this.limit = limitOf(chat.max_completion_tokens ?? chat.max_tokens, "max_completion_tokens");
        this.wantsLogprobs = chat.logprobs ?? false;
        this.nTop = chat.top_logprobs ?? 0;
        if (!Number.isInteger(this.nTop) || this.nTop < 0 || this.nTop > 20) throw invalid("top_logprobs", `found ${chat.top_logprobs}, expected 0 to 20`);
    }

    protected prepare(): void {
        const { library, scope, chat, engine } = this, { module } = library;
        const conversation: Record<string, unknown> = {};
        for (const key of ["messages", "tools", "tool_choice", "chat_template_kwargs", "reasoning_effort", "add_generation_prompt",
                           "continue_final_message"] as const)
            if (chat[key] !== undefined) conversation[key] = chat[key];
        const { at, n } = scope.text(JSON.stringify(conversation));
        this.turn = library.made((out) => module._frit_turn_new!(out, engine.model, at, n));
        this.part = scope.struct("frit_part");
        this.nPiece = scope.alloc(4);
        this.text = new Text(library, engine.model, stopsOf(chat), true, scope);
        const bytes = library.sized((buffer, capacity, count) => module._frit_turn_tokenize!(this.turn, 0, buffer, capacity, count), 4, 1024);
        this.prompt = Array.from(new Int32Array(bytes.buffer));
        const form = formOf(chat), format = form ? scope.text(form.text) : { at: 0, n: 0 };
        const options = scope.struct("frit_turn_grammar_options", {
            format: format.at, n_format: format.n, kind: form?.kind ?? 0, one_call: chat.parallel_tool_calls === false,
        });
        this.grammar = library.made((out) => module._frit_turn_grammar!(out, this.turn, options));
    }

    /** The number of the prompt's tokens. */
    count(): number {
        try {
            this.prepare();
            return this.prompt.length;
        } finally {
            this.free();
        }
    }

    protected begin(): void {
        this.emit({ role: "assistant", content: "" }, null);
    }

    protected isHidden(token: number): boolean {
        const { module } = this.library;
        module._frit_token_piece!(this.engine.model, token, this.nPiece);
        return this.library.pointer(this.nPiece) === 0 && !module._frit_turn_shows!(this.turn, token);
    }

    protected give(text: string, logprob: TokenLogprob | null): void {
        const { library } = this, { module } = library;
        if (logprob) this.logprobs.push(logprob);
        library.scoped((s) => {
            const { at, n } = s.text(text);
            library.check(module._frit_turn_push!(this.turn, at, n));
        });
        this.takeParts();
    }

    private takeParts(): void {
        const { library } = this;
        while (library.module._frit_turn_next!(this.turn, this.part)) {
            const field = (name: string) => library.get("frit_part", this.part, name);
            const at = library.pointer(this.part + library.struct("frit_part").fields.get("text")!.offset);
            const text = library.text(at, Number(field("n_bytes"))), kind = field("kind");
            if (kind === PARTS.TEXT) this.emit({ content: text }, null);
            else if (kind === PARTS.REASONING) this.emit({ reasoning_content: text }, null);
            else this.emit({ tool_calls: [{ index: this.nCalls++, id: String(field("id")), type: "function",
                                            function: { name: String(field("name")), arguments: text } }] }, null);
        }
    }

    private emit(delta: ChatDelta, reason: FinishReason | null, more: Partial<ChatChunk> = {}): void {
        const logprobs = this.chat.logprobs ? { content: this.logprobs } : null;
        this.logprobs = [];
        this.control.emit({ ...this.base("chat.completion.chunk"), choices: [{ index: 0, delta, logprobs, finish_reason: reason }], ...more });
    }

    protected progress(processed: number, total: number): void {
        this.control.emit({ ...this.base("chat.completion.chunk"), choices: [], prompt_progress: { total, processed } });
    }

    protected finish(reason: FinishReason, usage: Usage, timings: Timings): void {
        this.library.check(this.library.module._frit_turn_end!(this.turn));
        this.takeParts();
        this.emit({}, reason === "stop" && this.nCalls > 0 ? "tool_calls" : reason);
        this.control.emit({ ...this.base("chat.completion.chunk"), choices: [], usage, timings });
    }

    protected override free(): void {
        if (this.turn) this.library.module._frit_turn_free!(this.turn);
        super.free();
    }
}

/** A text that continues a prompt. */
export class TextAnswer extends Answer {
    protected readonly limit: number;

    constructor(engine: Engine, private readonly completion: CompletionRequest, control: Control) {
        super(engine, completion, control, "cmpl");
        this.limit = limitOf(completion.max_tokens === undefined ? 16 : completion.max_tokens, "max_tokens");
    }

    protected prepare(): void {
        const { library, engine, completion, scope } = this;
        this.text = new Text(library, engine.model, stopsOf(completion), false, scope);
        this.prompt = typeof completion.prompt === "string" ? engine.tokenize(completion.prompt, true, false) : completion.prompt;
        const form = formOf(completion);
        if (!form) return;
        const { at, n } = scope.text(form.text), options = scope.struct("frit_grammar_options", { kind: form.kind });
        this.grammar = library.made((out) => library.module._frit_grammar_new!(out, engine.model, at, n, options));
    }

    protected begin(): void {
        for (const token of this.prompt) this.text.follow(token);
    }

    protected isHidden(): boolean { return false; }

    protected give(text: string): void {
        this.emit(text, null);
    }

    private emit(text: string, reason: FinishReason | null, more: Partial<Completion> = {}): void {
        this.control.emit({ ...this.base("text_completion"), choices: [{ index: 0, text, logprobs: null, finish_reason: reason }], ...more });
    }

    protected progress(processed: number, total: number): void {
        this.control.emit({ ...this.base("text_completion"), choices: [], prompt_progress: { total, processed } });
    }

    protected finish(reason: FinishReason, usage: Usage, timings: Timings): void {
        this.emit("", reason);
        this.control.emit({ ...this.base("text_completion"), choices: [], usage, timings });
    }
}
