// SPDX-License-Identifier: MIT
// Made by generate.mjs from the tables of the library: do not edit.

/** Kinds of failures. */
export type Status = "OK" | "E_INVALID" | "E_MEMORY" | "E_IO" | "E_NOT_FOUND" | "E_FORMAT" | "E_UNSUPPORTED" | "E_LIMIT" | "E_CANCELLED" | "E_INTERNAL" | "E_TIMEOUT";

export const STATUSES: Record<string, Status> = {
    "0": "OK",
    "-1": "E_INVALID",
    "-2": "E_MEMORY",
    "-3": "E_IO",
    "-4": "E_NOT_FOUND",
    "-5": "E_FORMAT",
    "-6": "E_UNSUPPORTED",
    "-7": "E_LIMIT",
    "-8": "E_CANCELLED",
    "-9": "E_INTERNAL",
    "-10": "E_TIMEOUT",
};

export const GRAMMARS = { GBNF: 0, SCHEMA: 1, REGEX: 2, TAGS: 3 } as const;
export const PARTS = { TEXT: 0, REASONING: 1, CALL: 2 } as const;

/** Options of the model, by their names on the command line with "_" for "-". */
export interface ModelOptionValues {
    /** Use the chat template in this file, or the model's own of this name. */
    chat_template?: string;
    /** How positions beyond the original context are rotated; else as the file says. */
    rope_scaling?: "none" | "linear" | "yarn";
    /** The context is N times the original one (give -c too); 0: as the file says; 0 to 1000000. */
    rope_scale?: number;
    /** As --rope-scale 1/N; 0 to 1000000. */
    rope_freq_scale?: number;
    /** Base of the frequencies of rotation; 0: as the file says; 0 to 1000000000000000. */
    rope_freq_base?: number;
    /** YaRN: the original context; 0: as the file says; 0 to 1073741824. */
    yarn_orig_ctx?: number;
    /** YaRN: share of extrapolation; 0: as the file says, else 1; 0 to 1000000. */
    yarn_ext_factor?: number;
    /** YaRN: factor of the magnitude; 0: as the file says, else 1; 0 to 1000000. */
    yarn_attn_factor?: number;
    /** YaRN: pairs that turn more often than this stay; 0: as the file says, else 32; 0 to 1000000. */
    yarn_beta_fast?: number;
    /** YaRN: pairs that turn less often are scaled whole; 0: as the file says, else 1; 0 to 1000000. */
    yarn_beta_slow?: number;
}

/** Options of the engine, by their names on the command line with "_" for "-". */
export interface EngineOptionValues {
    /** Context: tokens that one session can hold; 0: what the model was trained for, if memory allows; 0 to 134217728. */
    ctx?: number;
    /** Threads; 0: one for each core that this process may use, or fewer where memory gives no more; 0 to 1024. */
    threads?: number;
    /** Threads for prompts; 0: as many as for the rest, or one for each core; 0 to 1024. */
    threads_batch?: number;
    /** Tokens that one step runs at most; 0: 512, on GPUs with much memory 2048; 0 to 65536. */
    batch?: number;
    /** Best instruction set to use (scalar, avx2, ...), or reference for plain code. */
    cpu?: string;
    /** Type of cached keys: f16, or f32 with the reference. */
    cache_type_k?: "f32" | "f16" | "bf16" | "fp8" | "q8_0" | "q4_0" | "q4_1" | "iq4_nl" | "q5_0" | "q5_1";
    /** Type of cached values; f16, or f32 with the reference. */
    cache_type_v?: "f32" | "f16" | "bf16" | "fp8" | "q8_0" | "q4_0" | "q4_1" | "iq4_nl" | "q5_0" | "q5_1";
    /** Models with states or windows: places that a session can go back to; 0: 2, -1: its beginning; -1 to 8. */
    state_copies?: number;
    /** Layers with a window keep all positions (more memory; sessions can go back to any of them). */
    full_windows?: boolean;
    /** Run every prompt from its beginning, also where another session has run the same tokens. */
    no_prefix_cache?: boolean;
    /** Tokens of prompts in a step while others generate; 0: by the time they take, -1: any number; -1 to 65536. */
    prompt_budget?: number;
    /** On: context, layers on devices and cache types that are not given are what free memory allows. */
    fit?: "on" | "off";
    /** Give equal numbers however a prompt is cut into steps; on the CPU: without AMX. */
    deterministic?: boolean;
    /** Run the graph as it is, without fused operations (slower). */
    no_fuse?: boolean;
}

/** Options of the sampler, by their names on the command line with "_" for "-". */
export interface SamplerOptionValues {
    /** Temperature: higher is more varied; 0 always takes the likeliest token; 0 to 1000. Default: 0.8. */
    temp?: number;
    /** Dynamic temperature: between T - R and T + R, by the entropy; 0: off; 0 to 1000. Default: 0. */
    dynatemp_range?: number;
    /** Dynamic temperature: exponent of the entropy; 0 to 100. Default: 1.0. */
    dynatemp_exponent?: number;
    /** Choose among the K likeliest tokens; 0: off; 0 to 2147483647. Default: 40. */
    top_k?: number;
    /** Choose among the fewest tokens that together have probability P; 0 or 1: off; 0 to 1. Default: 0.95. */
    top_p?: number;
    /** Leave out tokens less likely than P times the likeliest; 0: off; 0 to 1. Default: 0.05. */
    min_p?: number;
    /**
     * Leave out tokens whose logit is more than N standard deviations below the largest; 0: off; 0 to 1000. Default:
     * 0.
     */
    top_n_sigma?: number;
    /**
     * Choose among the tokens nearest to the expected information that together have probability P; 0 or 1: off; 0 to
     * 1. Default: 1.0.
     */
    typical_p?: number;
    /**
     * Leave out the tail, where the curvature of the sorted probabilities has summed to Z; 0 or 1: off; 0 to 1.
     * Default: 1.0.
     */
    tfs_z?: number;
    /**
     * With probability P, leave out all but the least likely of the tokens above --xtc-threshold; 0: off; 0 to 1.
     * Default: 0.
     */
    xtc_probability?: number;
    /** Probability from which XTC leaves tokens out; above 0.5: off; 0 to 1. Default: 0.1. */
    xtc_threshold?: number;
    /** Divide the logits of recent tokens; 0 or 1: off; 0 to 100. Default: 1.0. */
    repeat_penalty?: number;
    /** Subtract F from a logit for each recent occurrence; 0: off; -100 to 100. Default: 0. */
    frequency_penalty?: number;
    /** Subtract F from the logits of all recent tokens; 0: off; -100 to 100. Default: 0. */
    presence_penalty?: number;
    /** How many tokens count as recent; -1: all; -1 to 1048576. Default: 64. */
    repeat_last_n?: number;
    /** Leave newlines out of the penalties. */
    no_penalize_nl?: boolean;
    /**
     * Subtract M B^(n - L) from the logit of a token that would repeat n tokens and itself; 0: off; 0 to 1000.
     * Default: 0.
     */
    dry_multiplier?: number;
    /** DRY: base of the penalty; 1 to 100. Default: 1.75. */
    dry_base?: number;
    /** DRY: repetitions shorter than L are free; 1 to 1048576. Default: 2. */
    dry_allowed_length?: number;
    /** DRY: how many tokens are searched for repetitions; -1: all; -1 to 1048576. Default: 64. */
    dry_penalty_last_n?: number;
    /** DRY: no repetition goes over this text; replaces newline, colon, quote and asterisk; none: no text. */
    dry_sequence_breaker?: string[];
    /** Prefer tokens of probability P, adapted to those before; 0 or less: off; -1 to 1. Default: 0. */
    adaptive_target?: number;
    /** Adaptive-p: weight of earlier tokens; 0.9 looks back about 10 tokens; 0 to 0.99. Default: 0.9. */
    adaptive_decay?: number;
    /**
     * Keep the surprise of tokens near --mirostat-tau by mirostat 1 or 2, instead of the other stages; 0: off; 0 to
     * 2. Default: 0.
     */
    mirostat?: number;
    /** Mirostat: surprise wanted, in bits; 0 to 100. Default: 5.0. */
    mirostat_tau?: number;
    /** Mirostat: how fast it adapts; 0 to 1. Default: 0.1. */
    mirostat_eta?: number;
    /** Equal seeds give equal texts; -1: a random one. Default: -1. */
    seed?: number;
    /** Add BIAS to the logit of token ID; -inf bans it. */
    logit_bias?: string[];
    /** Order of the stages, a letter for each, as in edskypmxt. */
    sampler_seq?: string;
    /**
     * Order of the stages, with , or ; between them; by default, but for infill: logit-bias penalties custom dry
     * top-n-sigma top-k typical tfs top-p min-p xtc infill temp adaptive-p mirostat.
     */
    samplers?: string;
}

/** Options of the embed, by their names on the command line with "_" for "-". */
export interface EmbedOptionValues {
    /**
     * How tokens' vectors become one: mean, cls, last, max, mean_sqrt_len, weighted_mean, several joined by '+',
     * splade, rank; none: one for each token; by default what the model's files say.
     */
    pooling?: string;
    /** Put the model's prompt of this name, such as query, before each text. */
    prompt_name?: string;
    /** Make vectors comparable: length 1 (the default, but for scores), sum 1 or largest number 1. */
    normalize?: "l2" | "l1" | "max" | "none";
    /** Keep the first N numbers of each vector, for models that were trained for it; 0: all; 0 to 1048576. */
    dims?: number;
}

/** The options that there are, with the command's defaults; null: the value 0, false or none. */
export const OPTIONS: Record<"model" | "engine" | "sampler" | "embed", Record<string, { fallback: string | null }>> = {
    model: {
        "chat-template": { fallback: null },
        "rope-scaling": { fallback: null },
        "rope-scale": { fallback: null },
        "rope-freq-scale": { fallback: null },
        "rope-freq-base": { fallback: null },
        "yarn-orig-ctx": { fallback: null },
        "yarn-ext-factor": { fallback: null },
        "yarn-attn-factor": { fallback: null },
        "yarn-beta-fast": { fallback: null },
        "yarn-beta-slow": { fallback: null },
    },
    engine: {
        "ctx": { fallback: null },
        "threads": { fallback: null },
        "threads-batch": { fallback: null },
        "batch": { fallback: null },
        "cpu": { fallback: null },
        "cache-type-k": { fallback: null },
        "cache-type-v": { fallback: null },
        "state-copies": { fallback: null },
        "full-windows": { fallback: null },
        "no-prefix-cache": { fallback: null },
        "prompt-budget": { fallback: null },
        "fit": { fallback: null },
        "deterministic": { fallback: null },
        "no-fuse": { fallback: null },
    },
    sampler: {
        "temp": { fallback: "0.8" },
        "dynatemp-range": { fallback: "0" },
        "dynatemp-exponent": { fallback: "1.0" },
        "top-k": { fallback: "40" },
        "top-p": { fallback: "0.95" },
        "min-p": { fallback: "0.05" },
        "top-n-sigma": { fallback: "0" },
        "typical-p": { fallback: "1.0" },
        "tfs-z": { fallback: "1.0" },
        "xtc-probability": { fallback: "0" },
        "xtc-threshold": { fallback: "0.1" },
        "repeat-penalty": { fallback: "1.0" },
        "frequency-penalty": { fallback: "0" },
        "presence-penalty": { fallback: "0" },
        "repeat-last-n": { fallback: "64" },
        "no-penalize-nl": { fallback: null },
        "dry-multiplier": { fallback: "0" },
        "dry-base": { fallback: "1.75" },
        "dry-allowed-length": { fallback: "2" },
        "dry-penalty-last-n": { fallback: "64" },
        "dry-sequence-breaker": { fallback: null },
        "adaptive-target": { fallback: "0" },
        "adaptive-decay": { fallback: "0.9" },
        "mirostat": { fallback: "0" },
        "mirostat-tau": { fallback: "5.0" },
        "mirostat-eta": { fallback: "0.1" },
        "seed": { fallback: "-1" },
        "logit-bias": { fallback: null },
        "sampler-seq": { fallback: null },
        "samplers": { fallback: null },
    },
    embed: {
        "pooling": { fallback: null },
        "prompt-name": { fallback: null },
        "normalize": { fallback: null },
        "dims": { fallback: null },
    },
};
