// SPDX-License-Identifier: MIT
// Types of requests and answers, in the shape of OpenAI's API.

import type { ModelOptionValues, EngineOptionValues, SamplerOptionValues } from "./options.js";

/** A part of a message's content. */
export interface ContentPart {
    type: "text";
    text: string;
}

/** A call of a tool that the model asks for. */
export interface ToolCall {
    id: string;
    type: "function";
    /** `arguments` is the text of a JSON object. */
    function: { name: string; arguments: string };
}

/** A message of a conversation. */
export interface Message {
    role: "system" | "developer" | "user" | "assistant" | "tool";
    content?: string | ContentPart[] | null;
    /** Of an assistant: its reasoning, for templates that want it. */
    reasoning_content?: string;
    tool_calls?: ToolCall[];
    /** Of a tool: the call that it answers. */
    tool_call_id?: string;
    name?: string;
}

/** A function that the model may call. */
export interface Tool {
    type: "function";
    /** `parameters` is a JSON schema; `strict`: every call obeys it. */
    function: { name: string; description?: string; parameters?: object; strict?: boolean };
}

/** The form of an answer: any text, any JSON object, or JSON that a schema allows. */
export type ResponseFormat =
    | { type: "text" }
    | { type: "json_object" }
    | { type: "json_schema"; json_schema: { name?: string; schema: object | boolean; strict?: boolean } };

/** Options that chat and text completions share. Sampling options that are left out have the model's recommended values. */
export interface GenerateOptions extends Omit<SamplerOptionValues, "logit_bias"> {
    /** Ignored: an engine has one model. */
    model?: string;
    /** Randomness of the choice: 0 picks the likeliest token. The same as `temp`. */
    temperature?: number;
    /** The same as `repeat_penalty`. */
    repetition_penalty?: number;
    /** Texts that end the answer. They are not part of it. */
    stop?: string | string[] | null;
    /** Added to the logits of tokens: an object of ids as texts and numbers from -100 to 100. */
    logit_bias?: Record<string, number>;
    /** Rules of the answer in GBNF. */
    grammar?: string;
    /** A regular expression (ECMA-262) that the whole answer matches. */
    regex?: string;
    /** Structural tags: parts of a free text with a form, as an object (docs/grammar.md). */
    structural_tag?: object;
    response_format?: ResponseFormat;
    /** True: the result is an iterator of chunks. Default: false. */
    stream?: boolean;
    /** `include_usage`: a last chunk without choices has the usage. Default: false. */
    stream_options?: { include_usage?: boolean };
    /** Chunks with `prompt_progress` while a long prompt runs. Default: false. */
    return_progress?: boolean;
}

/** A request for the answer to a conversation. */
export interface ChatRequest extends GenerateOptions {
    messages: Message[];
    tools?: Tool[];
    tool_choice?: "none" | "auto" | "required" | { type: "function"; function: { name: string } };
    /** False: at most one call an answer. Default: true. */
    parallel_tool_calls?: boolean;
    /** Tokens of the answer at most. Default: until the context is full. */
    max_completion_tokens?: number | null;
    max_tokens?: number | null;
    /** A variable of the template; "none" switches reasoning off. */
    reasoning_effort?: string;
    /** Variables of the template, as { enable_thinking: false }. */
    chat_template_kwargs?: Record<string, unknown>;
    /** The model continues the last message, an assistant's. Default: false. */
    continue_final_message?: boolean;
    add_generation_prompt?: boolean;
    /** Log-probabilities of the answer's tokens. Default: false. */
    logprobs?: boolean;
    /** The number of likeliest tokens at each place, 0 to 20. Default: 0. */
    top_logprobs?: number;
}

/** A request that continues a text. */
export interface CompletionRequest extends GenerateOptions {
    prompt: string | number[];
    /** Tokens of the answer at most. Default: 16. */
    max_tokens?: number | null;
}

export interface TokenLogprob {
    token: string;
    logprob: number;
    bytes: number[];
    top_logprobs: { token: string; logprob: number; bytes: number[] }[];
}

export type FinishReason = "stop" | "length" | "tool_calls";

/** Counts of tokens, and speeds. */
export interface Usage {
    prompt_tokens: number;
    completion_tokens: number;
    total_tokens: number;
    /** Tokens of the prompt that earlier requests had run. */
    prompt_tokens_details: { cached_tokens: number };
}

/** Times of a request, in milliseconds and tokens a second. */
export interface Timings {
    prompt_n: number;
    prompt_ms: number;
    prompt_per_second: number;
    predicted_n: number;
    predicted_ms: number;
    predicted_per_second: number;
}

export interface ChatMessage {
    role: "assistant";
    content: string | null;
    reasoning_content?: string;
    tool_calls?: ToolCall[];
}

export interface ChatCompletion {
    id: string;
    object: "chat.completion";
    created: number;
    model: string;
    choices: { index: 0; message: ChatMessage; logprobs: { content: TokenLogprob[] } | null; finish_reason: FinishReason }[];
    usage: Usage;
    timings: Timings;
}

export interface ChatDelta {
    role?: "assistant";
    content?: string;
    reasoning_content?: string;
    tool_calls?: { index: number; id: string; type: "function"; function: { name: string; arguments: string } }[];
}

export interface ChatChunk {
    id: string;
    object: "chat.completion.chunk";
    created: number;
    model: string;
    choices: { index: 0; delta: ChatDelta; logprobs: { content: TokenLogprob[] } | null; finish_reason: FinishReason | null }[];
    usage?: Usage;
    timings?: Timings;
    /** Tokens of the prompt that have run, and all. */
    prompt_progress?: { total: number; processed: number };
}

export interface Completion {
    id: string;
    object: "text_completion";
    created: number;
    model: string;
    choices: { index: 0; text: string; logprobs: null; finish_reason: FinishReason | null }[];
    usage?: Usage;
    timings?: Timings;
    prompt_progress?: { total: number; processed: number };
}

/** A request for vectors of texts. */
export interface EmbeddingRequest {
    input: string | string[];
    model?: string;
    /** The first numbers of each vector that are kept. Default: all. */
    dimensions?: number;
    /** "mean", "cls", "last", "max" and others. Default: the model's own. */
    pooling?: string;
    /** "l2", "l1", "max" or "none". Default: "l2". */
    normalize?: string;
    /** The model's prompt before each text, as "query". Default: the model's default prompt. */
    prompt_name?: string;
}

export interface Embeddings {
    object: "list";
    model: string;
    data: { object: "embedding"; index: number; embedding: number[] }[];
}

/** A request for scores of documents, for models with a classifier. */
export interface RerankRequest {
    query: string;
    documents: string[];
    /** The best documents that are returned. Default: all. */
    top_n?: number;
    /** True: the classifier's output; false: a number from 0 to 1. Default: false. */
    raw_scores?: boolean;
}

export interface Reranked {
    model: string;
    /** Best first. */
    results: { index: number; relevance_score: number }[];
}

/** Where a model's file is: a URL, a name of `stored` files, a file that the user chose, or its bytes. */
export type ModelFile = string | URL | Blob | Uint8Array | { stored: string };

/** Options of `Frit.load`. Options of the command have their names, with "_" for "-". */
export interface LoadOptions extends Omit<EngineOptionValues, "threads">, ModelOptionValues {
    /**
     * Threads of the engine. Default: the number of processors, at most 8; 1 without cross-origin isolation, where more
     * are not possible.
     */
    threads?: number;
    /** Positions of a session at most. Default: what the model was trained for, at most 4096. */
    ctx?: number;
    /** Called while a file is downloaded and while weights are packed. */
    onProgress?: (progress: LoadProgress) => void;
    /** Called with warnings about the model. Default: they are dropped. */
    onWarning?: (sentence: string) => void;
    /** Stops loading. */
    signal?: AbortSignal;
    /** SHA-256 of the file in hexadecimal, which a download is compared with. Default: not compared. */
    sha256?: string | string[];
    /** Bytes that the engine may use at most. Default: 4 GiB, the most that a module can address. */
    memory?: number;
    /** The folder of the package's files, for bundlers that do not copy them. Default: where this script is. */
    baseURL?: string | URL;
}

/** Progress of loading. */
export type LoadProgress =
    | ({ phase: "download" } & DownloadProgress)
    /** `done`: from 0 to 1. */
    | { phase: "load"; done: number };

/** Progress of a download. */
export interface DownloadProgress {
    url: string;
    /** Bytes that are stored, and all; 0 if the server does not say. */
    loaded: number;
    total: number;
    /** Bytes a second, by the last seconds; 0 at the beginning. */
    rate: number;
    /** Seconds until the end at this rate; null if it is not known. */
    secondsLeft: number | null;
}

/** What a model is, and what the engine uses. Sizes are in bytes. */
export interface ModelInfo {
    name: string;
    architecture: string;
    kind: "decoder" | "encoder" | "encoder-decoder";
    /** "q4_k_m", or the most frequent type of the weights. */
    file_type: string;
    chat_format: string;
    n_params: number;
    n_bytes: number;
    n_vocab: number;
    n_ctx_train: number;
    n_embd: number;
    n_layer: number;
    /** The engine's context, threads and instruction set. */
    n_ctx: number;
    n_threads: number;
    isa: string;
    /** Weights in memory, the cache of keys and values, and the module's whole memory now. */
    packed_bytes: number;
    kv_bytes: number;
    heap_bytes: number;
    /** The heap's size before the engine was made, and the size that it was estimated to need then. */
    needed_bytes: number;
}
