# SPDX-License-Identifier: MIT
# Made by bindings/python/generate.py from include/frit.h and include/frit_tools.h: do not edit.
"""Types and functions of libfrit for ctypes. Opaque objects and buffers are addresses (c_void_p)."""

from __future__ import annotations

from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    Union,
    c_bool,
    c_char,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

VERSION = "0.2.0"

FRIT_OK = 0
FRIT_E_INVALID = -1
FRIT_E_MEMORY = -2
FRIT_E_IO = -3
FRIT_E_NOT_FOUND = -4
FRIT_E_FORMAT = -5
FRIT_E_UNSUPPORTED = -6
FRIT_E_LIMIT = -7
FRIT_E_CANCELLED = -8
FRIT_E_INTERNAL = -9
FRIT_E_TIMEOUT = -10

class frit_option_list(Structure):
    items: Any
    n: int
    _fields_ = [
        ("items", POINTER(c_void_p)),
        ("n", c_size_t),
    ]

FRIT_LOG_ERROR = 0
FRIT_LOG_WARNING = 1
FRIT_LOG_INFO = 2
FRIT_LOG_DEBUG = 3

frit_log_fn = CFUNCTYPE(None, c_void_p, c_int, c_char_p)

frit_progress_fn = CFUNCTYPE(c_bool, c_void_p, c_double)

class frit_model_options(Structure):
    no_mmap: bool
    vocab_only: bool
    type: bytes | None
    chat_template: bytes | None
    progress: Any
    progress_ctx: int | None
    log: Any
    log_ctx: int | None
    rope_scaling: bytes | None
    rope_scale: float
    rope_freq_scale: float
    rope_freq_base: float
    yarn_ext_factor: float
    yarn_attn_factor: float
    yarn_beta_fast: float
    yarn_beta_slow: float
    yarn_orig_ctx: int
    mmproj: bytes | None
    reserved: Any
    _fields_ = [
        ("no_mmap", c_bool),
        ("vocab_only", c_bool),
        ("type", c_char_p),
        ("chat_template", c_char_p),
        ("progress", frit_progress_fn),
        ("progress_ctx", c_void_p),
        ("log", frit_log_fn),
        ("log_ctx", c_void_p),
        ("rope_scaling", c_char_p),
        ("rope_scale", c_float),
        ("rope_freq_scale", c_float),
        ("rope_freq_base", c_float),
        ("yarn_ext_factor", c_float),
        ("yarn_attn_factor", c_float),
        ("yarn_beta_fast", c_float),
        ("yarn_beta_slow", c_float),
        ("yarn_orig_ctx", c_int32),
        ("mmproj", c_char_p),
        ("reserved", c_uint64 * 2),
    ]

class frit_model_files(Structure):
    n_bytes: Any
    n_files: int
    read: Any
    ctx: int | None
    reserved: Any
    _fields_ = [
        ("n_bytes", POINTER(c_uint64)),
        ("n_files", c_size_t),
        ("read", CFUNCTYPE(c_bool, c_void_p, c_size_t, c_uint64, c_void_p, c_size_t)),
        ("ctx", c_void_p),
        ("reserved", c_uint64 * 4),
    ]

FRIT_KIND_DECODER = 0
FRIT_KIND_ENCODER = 1
FRIT_KIND_ENCODER_DECODER = 2

class frit_model_info(Structure):
    kind: int
    pooling: bytes | None
    path: bytes | None
    format: bytes | None
    architecture: bytes | None
    name: bytes | None
    file_type: bytes | None
    tokenizer: bytes | None
    chat_format: bytes | None
    n_params: int
    n_bytes: int
    bytes_per_token: int
    ops_per_token: int
    decoder_start: int
    n_vocab: int
    n_ctx_train: int
    n_embd: int
    n_layer: int
    n_head: int
    n_head_kv: int
    n_ff: int
    n_tensors: int
    n_meta: int
    adds_bos: bool
    adds_eos: bool
    n_layer_next: int
    n_embed_tokens: int
    reserved: Any
    _fields_ = [
        ("kind", c_int),
        ("pooling", c_char_p),
        ("path", c_char_p),
        ("format", c_char_p),
        ("architecture", c_char_p),
        ("name", c_char_p),
        ("file_type", c_char_p),
        ("tokenizer", c_char_p),
        ("chat_format", c_char_p),
        ("n_params", c_int64),
        ("n_bytes", c_uint64),
        ("bytes_per_token", c_uint64),
        ("ops_per_token", c_uint64),
        ("decoder_start", c_int32),
        ("n_vocab", c_int32),
        ("n_ctx_train", c_int32),
        ("n_embd", c_int32),
        ("n_layer", c_int32),
        ("n_head", c_int32),
        ("n_head_kv", c_int32),
        ("n_ff", c_int32),
        ("n_tensors", c_size_t),
        ("n_meta", c_size_t),
        ("adds_bos", c_bool),
        ("adds_eos", c_bool),
        ("n_layer_next", c_int32),
        ("n_embed_tokens", c_int64),
        ("reserved", c_uint64 * 7),
    ]

class frit_tensor_info(Structure):
    name: bytes | None
    type: bytes | None
    n_dims: int
    shape: Any
    n_bytes: int
    reserved: Any
    _fields_ = [
        ("name", c_char_p),
        ("type", c_char_p),
        ("n_dims", c_int),
        ("shape", c_int64 * 4),
        ("n_bytes", c_uint64),
        ("reserved", c_uint64 * 8),
    ]

FRIT_META_BOOL = 0
FRIT_META_INT = 1
FRIT_META_FLOAT = 2
FRIT_META_TEXT = 3

class frit_meta_info(Structure):
    type: int
    is_array: bool
    n_items: int
    reserved: Any
    _fields_ = [
        ("type", c_int),
        ("is_array", c_bool),
        ("n_items", c_uint64),
        ("reserved", c_uint64 * 8),
    ]

class frit_planned_tensor(Structure):
    name: bytes | None
    to: bytes | None
    n_dims: int
    shape: Any
    n_bytes: int
    needs_importance: bool
    has_importance: bool
    reserved: Any
    _fields_ = [
        ("name", c_char_p),
        ("from", c_char_p),
        ("to", c_char_p),
        ("n_dims", c_int32),
        ("shape", c_int64 * 4),
        ("n_bytes", c_uint64),
        ("needs_importance", c_bool),
        ("has_importance", c_bool),
        ("reserved", c_uint64 * 8),
    ]

class frit_quantize_options(Structure):
    mix: bytes | None
    importance: bytes | None
    keep: frit_option_list
    output_type: bytes | None
    embedding_type: bytes | None
    pure: bool
    plan: Any
    plan_ctx: int | None
    reuse: bytes | None
    reserved: Any
    _fields_ = [
        ("mix", c_char_p),
        ("importance", c_char_p),
        ("keep", frit_option_list),
        ("output_type", c_char_p),
        ("embedding_type", c_char_p),
        ("pure", c_bool),
        ("plan", CFUNCTYPE(None, c_void_p, POINTER(frit_planned_tensor))),
        ("plan_ctx", c_void_p),
        ("reuse", c_char_p),
        ("reserved", c_uint64 * 7),
    ]

class frit_convert_options(Structure):
    type: bytes | None
    split_max_size: bytes | None
    base: bytes | None
    n_threads: int
    progress: Any
    progress_ctx: int | None
    log: Any
    log_ctx: int | None
    quantize: Any
    reserved: Any
    _fields_ = [
        ("type", c_char_p),
        ("split_max_size", c_char_p),
        ("base", c_char_p),
        ("n_threads", c_int32),
        ("progress", frit_progress_fn),
        ("progress_ctx", c_void_p),
        ("log", frit_log_fn),
        ("log_ctx", c_void_p),
        ("quantize", POINTER(frit_quantize_options)),
        ("reserved", c_uint64 * 7),
    ]

FRIT_TEXT_SPECIAL = 1
FRIT_TEXT_PARSE_SPECIAL = 2
FRIT_TEXT_BYTES = 4

class frit_tokenize_limits(Structure):
    max_tokens: int
    cancelled: Any
    ctx: int | None
    reserved: Any
    _fields_ = [
        ("max_tokens", c_size_t),
        ("cancelled", CFUNCTYPE(c_bool, c_void_p)),
        ("ctx", c_void_p),
        ("reserved", c_uint64 * 8),
    ]

FRIT_TOKEN_NORMAL = 1
FRIT_TOKEN_UNKNOWN = 2
FRIT_TOKEN_CONTROL = 3
FRIT_TOKEN_USER = 4
FRIT_TOKEN_UNUSED = 5
FRIT_TOKEN_BYTE = 6

class frit_token_info(Structure):
    kind: int
    is_end: bool
    score: float
    text: int | None
    n_bytes: int
    reserved: Any
    _fields_ = [
        ("kind", c_int),
        ("is_end", c_bool),
        ("score", c_double),
        ("text", c_void_p),
        ("n_bytes", c_size_t),
        ("reserved", c_uint64 * 8),
    ]

FRIT_ROLE_BOS = 0
FRIT_ROLE_EOS = 1
FRIT_ROLE_EOT = 2
FRIT_ROLE_UNKNOWN = 3
FRIT_ROLE_SEPARATOR = 4
FRIT_ROLE_PAD = 5
FRIT_ROLE_MASK = 6
FRIT_ROLE_NEWLINE = 7
FRIT_ROLE_FIM_PREFIX = 8
FRIT_ROLE_FIM_SUFFIX = 9
FRIT_ROLE_FIM_MIDDLE = 10
FRIT_ROLE_FIM_PAD = 11
FRIT_ROLE_FIM_REPO = 12
FRIT_ROLE_FIM_SEPARATOR = 13

class frit_message(Structure):
    role: bytes | None
    content: bytes | None
    reserved: Any
    _fields_ = [
        ("role", c_char_p),
        ("content", c_char_p),
        ("reserved", c_uint64 * 8),
    ]

class frit_chat_options(Structure):
    no_generation_prompt: bool
    reserved: Any
    _fields_ = [
        ("no_generation_prompt", c_bool),
        ("reserved", c_uint64 * 8),
    ]

FRIT_PART_TEXT = 0
FRIT_PART_REASONING = 1
FRIT_PART_CALL = 2

class frit_part(Structure):
    kind: int
    text: int | None
    n_bytes: int
    name: bytes | None
    id: bytes | None
    reserved: Any
    _fields_ = [
        ("kind", c_int),
        ("text", c_void_p),
        ("n_bytes", c_size_t),
        ("name", c_char_p),
        ("id", c_char_p),
        ("reserved", c_uint64 * 8),
    ]

class frit_engine_options(Structure):
    n_ctx: int
    n_sessions: int
    n_threads: int
    n_batch: int
    n_threads_batch: int
    cpu: bytes | None
    cache_type_k: bytes | None
    cache_type_v: bytes | None
    numa: bytes | None
    weights_cache: bytes | None
    no_fuse: bool
    n_state_copies: int
    progress: Any
    progress_ctx: int | None
    prompt_budget: int
    device: bytes | None
    gpu_layers: bytes | None
    override_tensor: bytes | None
    deterministic: bool
    full_windows: bool
    no_prefix_cache: bool
    prefix_host_mib: int
    fit: bytes | None
    prefix_disk: bytes | None
    split: bytes | None
    _fields_ = [
        ("n_ctx", c_int32),
        ("n_sessions", c_int32),
        ("n_threads", c_int32),
        ("n_batch", c_int32),
        ("n_threads_batch", c_int32),
        ("cpu", c_char_p),
        ("cache_type_k", c_char_p),
        ("cache_type_v", c_char_p),
        ("numa", c_char_p),
        ("weights_cache", c_char_p),
        ("no_fuse", c_bool),
        ("n_state_copies", c_int32),
        ("progress", frit_progress_fn),
        ("progress_ctx", c_void_p),
        ("prompt_budget", c_int32),
        ("device", c_char_p),
        ("gpu_layers", c_char_p),
        ("override_tensor", c_char_p),
        ("deterministic", c_bool),
        ("full_windows", c_bool),
        ("no_prefix_cache", c_bool),
        ("prefix_host_mib", c_int32),
        ("fit", c_char_p),
        ("prefix_disk", c_char_p),
        ("split", c_char_p),
    ]

class frit_engine_info(Structure):
    backend: bytes | None
    isa: bytes | None
    n_ctx: int
    n_threads: int
    n_batch: int
    n_threads_batch: int
    kv_bytes: int
    kv_token_bytes: int
    scratch_bytes: int
    weight_bytes: int
    packed_bytes: int
    reserved: Any
    _fields_ = [
        ("backend", c_char_p),
        ("isa", c_char_p),
        ("n_ctx", c_int32),
        ("n_threads", c_int32),
        ("n_batch", c_int32),
        ("n_threads_batch", c_int32),
        ("kv_bytes", c_uint64),
        ("kv_token_bytes", c_uint64),
        ("scratch_bytes", c_uint64),
        ("weight_bytes", c_uint64),
        ("packed_bytes", c_uint64),
        ("reserved", c_uint64 * 6),
    ]

class frit_estimate_info(Structure):
    why_not: bytes | None
    n_ctx: int
    n_ctx_train: int
    n_sessions: int
    cache_type_k: bytes | None
    cache_type_v: bytes | None
    kv_token_bytes: int
    n_devices: int
    reserved: Any
    _fields_ = [
        ("why_not", c_char_p),
        ("n_ctx", c_int32),
        ("n_ctx_train", c_int32),
        ("n_sessions", c_int32),
        ("cache_type_k", c_char_p),
        ("cache_type_v", c_char_p),
        ("kv_token_bytes", c_uint64),
        ("n_devices", c_size_t),
        ("reserved", c_uint64 * 8),
    ]

class frit_estimate_device(Structure):
    name: bytes | None
    n_layers: int
    packed_bytes: int
    mapped_bytes: int
    kv_bytes: int
    scratch_bytes: int
    free_bytes: int
    reserved: Any
    _fields_ = [
        ("name", c_char_p),
        ("n_layers", c_int32),
        ("packed_bytes", c_uint64),
        ("mapped_bytes", c_uint64),
        ("kv_bytes", c_uint64),
        ("scratch_bytes", c_uint64),
        ("free_bytes", c_uint64),
        ("reserved", c_uint64 * 8),
    ]

FRIT_OUTPUT_LAST = 0
FRIT_OUTPUT_NONE = 1
FRIT_OUTPUT_ALL = 2
FRIT_OUTPUT_EMBEDDINGS = 3

frit_row_fn = CFUNCTYPE(None, c_void_p, c_size_t, POINTER(c_float), c_size_t)

class frit_push_options(Structure):
    output: int
    row: Any
    row_ctx: int | None
    media: Any
    n_media: int
    reserved: Any
    _fields_ = [
        ("output", c_int),
        ("row", frit_row_fn),
        ("row_ctx", c_void_p),
        ("media", POINTER(c_void_p)),
        ("n_media", c_size_t),
        ("reserved", c_uint64 * 6),
    ]

class frit_shift_options(Structure):
    n_keep: int
    n_drop: int
    reserved: Any
    _fields_ = [
        ("n_keep", c_int32),
        ("n_drop", c_int32),
        ("reserved", c_uint64 * 8),
    ]

class frit_shift_info(Structure):
    on: bool
    n_keep: int
    n_drop: int
    n_dropped: int
    reserved: Any
    _fields_ = [
        ("on", c_bool),
        ("n_keep", c_int32),
        ("n_drop", c_int32),
        ("n_dropped", c_size_t),
        ("reserved", c_uint64 * 8),
    ]

class frit_extend_options(Structure):
    n_group: int
    width: int
    reserved: Any
    _fields_ = [
        ("n_group", c_int32),
        ("width", c_int32),
        ("reserved", c_uint64 * 8),
    ]

class frit_logprob(Structure):
    token: int
    logprob: float
    _fields_ = [
        ("token", c_int32),
        ("logprob", c_float),
    ]

class frit_pick_options(Structure):
    n_drafts: int
    logprobs: bool
    n_top: int
    late: bool
    reserved: Any
    _fields_ = [
        ("n_drafts", c_size_t),
        ("logprobs", c_bool),
        ("n_top", c_int32),
        ("late", c_bool),
        ("reserved", c_uint64 * 7),
    ]

class frit_picked(Structure):
    token: int
    n_accepted: int
    logprob: float
    top: Any
    n_top: int
    reserved: Any
    _fields_ = [
        ("token", c_int32),
        ("n_accepted", c_int32),
        ("logprob", c_float),
        ("top", POINTER(frit_logprob)),
        ("n_top", c_size_t),
        ("reserved", c_uint64 * 8),
    ]

class frit_speculate_options(Structure):
    kind: bytes | None
    draft: int | None
    min_p: float
    max_drafts: int
    always: bool
    reserved: Any
    _fields_ = [
        ("kind", c_char_p),
        ("draft", c_void_p),
        ("min_p", c_float),
        ("max_drafts", c_int32),
        ("always", c_bool),
        ("reserved", c_uint64 * 8),
    ]

class frit_draft_item(Structure):
    session: int | None
    sampler: int | None
    max_drafts: int
    n_drafts: int
    reserved: Any
    _fields_ = [
        ("session", c_void_p),
        ("sampler", c_void_p),
        ("max_drafts", c_size_t),
        ("n_drafts", c_size_t),
        ("reserved", c_uint64 * 8),
    ]

class frit_speculation_info(Structure):
    n_drafted: int
    n_accepted: int
    why_not: bytes | None
    reserved: Any
    _fields_ = [
        ("n_drafted", c_uint64),
        ("n_accepted", c_uint64),
        ("why_not", c_char_p),
        ("reserved", c_uint64 * 8),
    ]

class frit_image_limits(Structure):
    max_bytes: int
    max_pixels: int
    max_side: int
    reserved: Any
    _fields_ = [
        ("max_bytes", c_uint64),
        ("max_pixels", c_uint64),
        ("max_side", c_uint32),
        ("reserved", c_uint64 * 8),
    ]

class frit_media_options(Structure):
    min_tokens: int
    max_tokens: int
    salt: bytes | None
    reserved: Any
    _fields_ = [
        ("min_tokens", c_uint32),
        ("max_tokens", c_uint32),
        ("salt", c_char_p),
        ("reserved", c_uint64 * 7),
    ]

class frit_engine_media_options(Structure):
    cache_bytes: int
    reserved: Any
    _fields_ = [
        ("cache_bytes", c_uint64),
        ("reserved", c_uint64 * 8),
    ]

class frit_engine_media_info(Structure):
    n_encoded: int
    cache_bytes: int
    reserved: Any
    _fields_ = [
        ("n_encoded", c_uint64),
        ("cache_bytes", c_uint64),
        ("reserved", c_uint64 * 8),
    ]

class frit_adapter_options(Structure):
    first_layer: int
    last_layer: int
    reserved: Any
    _fields_ = [
        ("first_layer", c_int32),
        ("last_layer", c_int32),
        ("reserved", c_uint64 * 8),
    ]

class frit_adapter_info(Structure):
    path: bytes | None
    name: bytes | None
    format: bytes | None
    kind: bytes | None
    n_tensors: int
    rank: int
    alpha: float
    n_bytes: int
    reserved: Any
    _fields_ = [
        ("path", c_char_p),
        ("name", c_char_p),
        ("format", c_char_p),
        ("kind", c_char_p),
        ("n_tensors", c_int32),
        ("rank", c_int32),
        ("alpha", c_float),
        ("n_bytes", c_uint64),
        ("reserved", c_uint64 * 8),
    ]

class frit_embed_options(Structure):
    pooling: bytes | None
    normalize: bytes | None
    n_dims: int
    prompt_name: bytes | None
    reserved: Any
    _fields_ = [
        ("pooling", c_char_p),
        ("normalize", c_char_p),
        ("n_dims", c_int32),
        ("prompt_name", c_char_p),
        ("reserved", c_uint64 * 7),
    ]

class frit_embed_item(Structure):
    text: bytes | None
    n_bytes: int
    tokens: Any
    n_tokens: int
    reserved: Any
    _fields_ = [
        ("text", c_char_p),
        ("n_bytes", c_size_t),
        ("tokens", POINTER(c_int32)),
        ("n_tokens", c_size_t),
        ("reserved", c_uint64 * 8),
    ]

frit_embed_fn = CFUNCTYPE(None, c_void_p, c_size_t, c_size_t, POINTER(c_float), c_size_t)

class frit_rerank_options(Structure):
    raw_scores: bool
    reserved: Any
    _fields_ = [
        ("raw_scores", c_bool),
        ("reserved", c_uint64 * 8),
    ]

class frit_beam_options(Structure):
    n_beams: int
    n_predict: int
    reserved: Any
    _fields_ = [
        ("n_beams", c_int32),
        ("n_predict", c_int32),
        ("reserved", c_uint64 * 8),
    ]

class frit_beam(Structure):
    tokens: Any
    n_tokens: int
    logprob: float
    ended: bool
    reserved: Any
    _fields_ = [
        ("tokens", POINTER(c_int32)),
        ("n_tokens", c_size_t),
        ("logprob", c_double),
        ("ended", c_bool),
        ("reserved", c_uint64 * 8),
    ]

class frit_sampler_value(Union):
    number: float
    integer: int
    flag: bool
    _fields_ = [
        ("number", c_float),
        ("integer", c_int32),
        ("flag", c_bool),
    ]

FRIT_SAMPLER_VALUES = 32

class frit_candidate(Structure):
    token: int
    logit: float
    _fields_ = [
        ("token", c_int32),
        ("logit", c_float),
    ]

frit_stage_fn = CFUNCTYPE(c_size_t, c_void_p, POINTER(frit_candidate), c_size_t)

class frit_sampler_options(Structure):
    temp: float
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    frequency_penalty: float
    presence_penalty: float
    repeat_last_n: int
    seed: int
    logit_bias: frit_option_list
    samplers: bytes | None
    more: Any
    stage: Any
    stage_ctx: int | None
    dry_breakers: frit_option_list
    sampler_seq: bytes | None
    reserved: Any
    _fields_ = [
        ("temp", c_float),
        ("top_k", c_int32),
        ("top_p", c_float),
        ("min_p", c_float),
        ("repeat_penalty", c_float),
        ("frequency_penalty", c_float),
        ("presence_penalty", c_float),
        ("repeat_last_n", c_int32),
        ("seed", c_uint64),
        ("logit_bias", frit_option_list),
        ("samplers", c_char_p),
        ("more", frit_sampler_value * 32),
        ("stage", frit_stage_fn),
        ("stage_ctx", c_void_p),
        ("dry_breakers", frit_option_list),
        ("sampler_seq", c_char_p),
        ("reserved", c_uint64 * 5),
    ]

FRIT_GRAMMAR_GBNF = 0
FRIT_GRAMMAR_SCHEMA = 1
FRIT_GRAMMAR_REGEX = 2
FRIT_GRAMMAR_TAGS = 3

class frit_grammar_options(Structure):
    kind: int
    any_order: bool
    cancelled: Any
    ctx: int | None
    open_objects: bool
    reserved: Any
    _fields_ = [
        ("kind", c_int),
        ("any_order", c_bool),
        ("cancelled", CFUNCTYPE(c_bool, c_void_p)),
        ("ctx", c_void_p),
        ("open_objects", c_bool),
        ("reserved", c_uint64 * 5),
    ]

class frit_turn_grammar_options(Structure):
    format: bytes | None
    n_format: int
    kind: int
    any_order: bool
    one_call: bool
    cancelled: Any
    ctx: int | None
    open_objects: bool
    reserved: Any
    _fields_ = [
        ("format", c_char_p),
        ("n_format", c_size_t),
        ("kind", c_int),
        ("any_order", c_bool),
        ("one_call", c_bool),
        ("cancelled", CFUNCTYPE(c_bool, c_void_p)),
        ("ctx", c_void_p),
        ("open_objects", c_bool),
        ("reserved", c_uint64 * 5),
    ]

FRIT_OPTION_FLAG = 0
FRIT_OPTION_INT = 1
FRIT_OPTION_SEED = 2
FRIT_OPTION_FLOAT = 3
FRIT_OPTION_TEXT = 4
FRIT_OPTION_CHOICE = 5
FRIT_OPTION_LIST = 6

class frit_option(Structure):
    name: bytes | None
    letter: int
    type: int
    offset: int
    min: float
    max: float
    choices: bytes | None
    fallback: bytes | None
    metavar: bytes | None
    help: bytes | None
    letters: bytes | None
    aliases: bytes | None
    reserved: Any
    _fields_ = [
        ("name", c_char_p),
        ("letter", c_char),
        ("type", c_int),
        ("offset", c_size_t),
        ("min", c_double),
        ("max", c_double),
        ("choices", c_char_p),
        ("fallback", c_char_p),
        ("metavar", c_char_p),
        ("help", c_char_p),
        ("letters", c_char_p),
        ("aliases", c_char_p),
        ("reserved", c_uint64 * 8),
    ]

class frit_model_file(Structure):
    path: bytes | None
    n_bytes: int
    reserved: Any
    _fields_ = [
        ("path", c_char_p),
        ("n_bytes", c_uint64),
        ("reserved", c_uint64 * 4),
    ]

class frit_random_shape(Structure):
    name: bytes | None
    arch: bytes | None
    title: bytes | None
    n_layers: int
    reserved: Any
    _fields_ = [
        ("name", c_char_p),
        ("arch", c_char_p),
        ("title", c_char_p),
        ("n_layers", c_int32),
        ("reserved", c_uint64 * 8),
    ]

class frit_random_options(Structure):
    shape: bytes | None
    type: bytes | None
    n_layers: int
    n_threads: int
    progress: Any
    progress_ctx: int | None
    reserved: Any
    _fields_ = [
        ("shape", c_char_p),
        ("type", c_char_p),
        ("n_layers", c_int32),
        ("n_threads", c_int32),
        ("progress", frit_progress_fn),
        ("progress_ctx", c_void_p),
        ("reserved", c_uint64 * 8),
    ]

class frit_kernels_gpu(Structure):
    name: bytes | None
    arch: int
    n_multiprocessors: int
    reserved: Any
    _fields_ = [
        ("name", c_char_p),
        ("arch", c_int32),
        ("n_multiprocessors", c_int32),
        ("reserved", c_uint64 * 4),
    ]

class frit_kernels_options(Structure):
    folder: bytes | None
    gpu: bytes | None
    progress: Any
    progress_ctx: int | None
    reserved: Any
    _fields_ = [
        ("folder", c_char_p),
        ("gpu", c_char_p),
        ("progress", frit_progress_fn),
        ("progress_ctx", c_void_p),
        ("reserved", c_uint64 * 8),
    ]

class frit_kernels_report(Structure):
    path: Any
    n_kernels: int
    n_added: int
    n_bytes: int
    reserved: Any
    _fields_ = [
        ("path", c_char * 1024),
        ("n_kernels", c_uint64),
        ("n_added", c_uint64),
        ("n_bytes", c_uint64),
        ("reserved", c_uint64 * 4),
    ]

class frit_importance_info(Structure):
    name: bytes | None
    n_values: int
    n_counts: int
    n_counts_zero: int
    n_tokens: int
    sum: float
    min: float
    max: float
    mean: float
    deviation: float
    active: float
    entropy: float
    reserved: Any
    _fields_ = [
        ("name", c_char_p),
        ("n_values", c_uint64),
        ("n_counts", c_uint64),
        ("n_counts_zero", c_uint64),
        ("n_tokens", c_int64),
        ("sum", c_double),
        ("min", c_double),
        ("max", c_double),
        ("mean", c_double),
        ("deviation", c_double),
        ("active", c_double),
        ("entropy", c_double),
        ("reserved", c_uint64 * 8),
    ]

class frit_importance_file(Structure):
    legacy: bool
    dataset: bytes | None
    n_chunks: int
    chunk_size: int
    reserved: Any
    _fields_ = [
        ("legacy", c_bool),
        ("dataset", c_char_p),
        ("n_chunks", c_int32),
        ("chunk_size", c_int32),
        ("reserved", c_uint64 * 8),
    ]

class frit_covariance_options(Structure):
    wants: Any
    wants_ctx: int | None
    max_bytes: int
    reserved: Any
    _fields_ = [
        ("wants", CFUNCTYPE(c_bool, c_void_p, c_char_p)),
        ("wants_ctx", c_void_p),
        ("max_bytes", c_uint64),
        ("reserved", c_uint64 * 8),
    ]

class frit_covariance_info(Structure):
    name: bytes | None
    width: int
    n_each: int
    source: int
    sums: Any
    counts: Any
    reserved: Any
    _fields_ = [
        ("name", c_char_p),
        ("width", c_int64),
        ("n_each", c_int64),
        ("source", c_size_t),
        ("sums", POINTER(c_float)),
        ("counts", POINTER(c_int64)),
        ("reserved", c_uint64 * 8),
    ]

class frit_refine_options(Structure):
    tokens: Any
    n_tokens: int
    n_threads: int
    progress: Any
    progress_ctx: int | None
    log: Any
    log_ctx: int | None
    reserved: Any
    _fields_ = [
        ("tokens", POINTER(c_int32)),
        ("n_tokens", c_size_t),
        ("n_threads", c_int32),
        ("progress", frit_progress_fn),
        ("progress_ctx", c_void_p),
        ("log", frit_log_fn),
        ("log_ctx", c_void_p),
        ("reserved", c_uint64 * 8),
    ]

class frit_profile_row(Structure):
    op: bytes | None
    type: bytes | None
    n_calls: int
    run_s: float
    wait_s: float
    n_bytes: float
    n_ops: float
    reserved: Any
    _fields_ = [
        ("op", c_char_p),
        ("type", c_char_p),
        ("n_calls", c_uint64),
        ("run_s", c_double),
        ("wait_s", c_double),
        ("n_bytes", c_double),
        ("n_ops", c_double),
        ("reserved", c_uint64 * 8),
    ]

class frit_allocate_options(Structure):
    size: bytes | None
    bits: float
    types: bytes | None
    text: bytes | None
    n_text: int
    n_windows: int
    state: bytes | None
    phase: Any
    phase_ctx: int | None
    plan: Any
    plan_ctx: int | None
    reuse: bytes | None
    tokens: Any
    tokens_ctx: int | None
    reserved: Any
    _fields_ = [
        ("size", c_char_p),
        ("bits", c_float),
        ("types", c_char_p),
        ("text", c_char_p),
        ("n_text", c_size_t),
        ("n_windows", c_int32),
        ("state", c_char_p),
        ("phase", CFUNCTYPE(None, c_void_p, c_char_p)),
        ("phase_ctx", c_void_p),
        ("plan", CFUNCTYPE(None, c_void_p, POINTER(frit_planned_tensor), c_double)),
        ("plan_ctx", c_void_p),
        ("reuse", c_char_p),
        ("tokens", CFUNCTYPE(None, c_void_p, POINTER(c_int32), c_size_t)),
        ("tokens_ctx", c_void_p),
        ("reserved", c_uint64 * 13),
    ]

class frit_samples_options(Structure):
    n_windows: int
    n_ctx: int
    n_threads: int
    progress: Any
    progress_ctx: int | None
    reserved: Any
    _fields_ = [
        ("n_windows", c_size_t),
        ("n_ctx", c_size_t),
        ("n_threads", c_int32),
        ("progress", frit_progress_fn),
        ("progress_ctx", c_void_p),
        ("reserved", c_uint64 * 8),
    ]

class frit_machine(Structure):
    cpu_name: bytes | None
    isa: bytes | None
    cores_by: bytes | None
    n_cores: int
    read_gbps: float
    int8_tops: float
    float_tops: float
    n_nodes: int
    reserved: Any
    _fields_ = [
        ("cpu_name", c_char_p),
        ("isa", c_char_p),
        ("cores_by", c_char_p),
        ("n_cores", c_int32),
        ("read_gbps", c_double),
        ("int8_tops", c_double),
        ("float_tops", c_double),
        ("n_nodes", c_int64),
        ("reserved", c_uint64 * 7),
    ]

class frit_machine_device(Structure):
    name: bytes | None
    is_usable: bool
    kind: Any
    free_bytes: int
    reaches: int
    reserved: Any
    _fields_ = [
        ("name", c_char_p),
        ("is_usable", c_bool),
        ("kind", c_char * 512),
        ("free_bytes", c_uint64),
        ("reaches", c_uint64),
        ("reserved", c_uint64 * 3),
    ]

class frit_op_info(Structure):
    name: bytes | None
    formula: bytes | None
    cpu: bytes | None
    reserved: Any
    _fields_ = [
        ("name", c_char_p),
        ("formula", c_char_p),
        ("cpu", c_char_p),
        ("reserved", c_uint64 * 8),
    ]

class frit_architecture_info(Structure):
    name: bytes | None
    title: bytes | None
    reserved: Any
    _fields_ = [
        ("name", c_char_p),
        ("title", c_char_p),
        ("reserved", c_uint64 * 8),
    ]

FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "frit_status_text": (c_char_p, [c_int]),
    "frit_error": (c_char_p, []),
    "frit_error_field": (c_char_p, []),
    "frit_error_code": (c_char_p, []),
    "frit_model_open": (c_int, [POINTER(c_void_p), c_char_p, POINTER(frit_model_options)]),
    "frit_model_open_memory": (c_int, [POINTER(c_void_p), c_void_p, c_size_t, POINTER(frit_model_options)]),
    "frit_model_open_files": (c_int, [POINTER(c_void_p), POINTER(frit_model_files), POINTER(frit_model_options)]),
    "frit_model_open_next": (c_int, [POINTER(c_void_p), c_void_p]),
    "frit_model_free": (None, [c_void_p]),
    "frit_model_get_info": (c_int, [c_void_p, POINTER(frit_model_info)]),
    "frit_model_get_tensor": (c_bool, [c_void_p, c_size_t, POINTER(frit_tensor_info)]),
    "frit_model_kv_bytes": (c_uint64, [c_void_p, c_char_p, c_char_p]),
    "frit_model_get_meta": (c_char_p, [c_void_p, c_size_t, c_char_p, c_size_t, c_int]),
    "frit_model_get_meta_json": (c_char_p, [c_void_p, c_size_t, c_char_p, c_size_t, c_int, POINTER(c_size_t)]),
    "frit_model_find_meta": (c_int, [c_void_p, c_char_p, POINTER(frit_meta_info)]),
    "frit_model_meta_int": (c_int, [c_void_p, c_char_p, c_uint64, POINTER(c_int64)]),
    "frit_model_meta_float": (c_int, [c_void_p, c_char_p, c_uint64, POINTER(c_double)]),
    "frit_model_meta_text": (c_int, [c_void_p, c_char_p, c_uint64, POINTER(c_void_p), POINTER(c_size_t)]),
    "frit_convert": (c_int, [c_char_p, c_char_p, POINTER(frit_convert_options)]),
    "frit_tokenize": (c_int, [c_void_p, c_char_p, c_size_t, c_uint, POINTER(c_int32), c_size_t, POINTER(c_size_t)]),
    "frit_tokenize_within": (c_int, [c_void_p, c_char_p, c_size_t, c_uint, POINTER(frit_tokenize_limits), POINTER(c_int32), c_size_t, POINTER(c_size_t)]),
    "frit_detokenize": (c_int, [c_void_p, POINTER(c_int32), c_size_t, c_uint, c_char_p, c_size_t, POINTER(c_size_t)]),
    "frit_token_piece": (c_void_p, [c_void_p, c_int32, POINTER(c_size_t)]),
    "frit_token_is_end": (c_bool, [c_void_p, c_int32]),
    "frit_token_get_info": (c_int, [c_void_p, c_int32, POINTER(frit_token_info)]),
    "frit_token_of_role": (c_int32, [c_void_p, c_int]),
    "frit_text_stream_new": (c_int, [POINTER(c_void_p), c_void_p, c_uint]),
    "frit_text_stream_push": (c_int, [c_void_p, c_int32, POINTER(c_void_p), POINTER(c_size_t)]),
    "frit_text_stream_flush": (c_int, [c_void_p, POINTER(c_void_p), POINTER(c_size_t)]),
    "frit_text_stream_free": (None, [c_void_p]),
    "frit_chat_render_json": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t, c_char_p, c_size_t, POINTER(c_size_t)]),
    "frit_chat_render": (c_int, [c_void_p, POINTER(frit_message), c_size_t, POINTER(frit_chat_options), c_char_p, c_size_t, POINTER(c_size_t)]),
    "frit_chat_tokenize": (c_int, [c_void_p, POINTER(frit_message), c_size_t, POINTER(frit_chat_options), POINTER(c_int32), c_size_t, POINTER(c_size_t)]),
    "frit_turn_new": (c_int, [POINTER(c_void_p), c_void_p, c_char_p, c_size_t]),
    "frit_turn_prompt": (c_char_p, [c_void_p, POINTER(c_size_t)]),
    "frit_turn_tokenize": (c_int, [c_void_p, POINTER(frit_tokenize_limits), POINTER(c_int32), c_size_t, POINTER(c_size_t)]),
    "frit_turn_push": (c_int, [c_void_p, c_char_p, c_size_t]),
    "frit_turn_end": (c_int, [c_void_p]),
    "frit_turn_next": (c_bool, [c_void_p, POINTER(frit_part)]),
    "frit_turn_shows": (c_bool, [c_void_p, c_int32]),
    "frit_turn_is_thinking": (c_bool, [c_void_p]),
    "frit_turn_free": (None, [c_void_p]),
    "frit_engine_new": (c_int, [POINTER(c_void_p), c_void_p, POINTER(frit_engine_options)]),
    "frit_engine_free": (None, [c_void_p]),
    "frit_engine_prepare": (c_int, [c_void_p, frit_progress_fn, c_void_p]),
    "frit_engine_get_info": (c_int, [c_void_p, POINTER(frit_engine_info)]),
    "frit_estimate_new": (c_int, [POINTER(c_void_p), c_void_p, POINTER(frit_engine_options)]),
    "frit_estimate_free": (None, [c_void_p]),
    "frit_estimate_get_info": (c_int, [c_void_p, POINTER(frit_estimate_info)]),
    "frit_estimate_get_device": (c_bool, [c_void_p, c_size_t, POINTER(frit_estimate_device)]),
    "frit_engine_step": (c_int, [c_void_p, POINTER(c_int32)]),
    "frit_engine_submit": (c_int, [c_void_p, POINTER(c_uint64), POINTER(c_int32)]),
    "frit_engine_poll": (c_int, [c_void_p, c_uint64, POINTER(c_bool)]),
    "frit_engine_wait": (c_int, [c_void_p, c_uint64]),
    "frit_engine_advance": (c_int, [c_void_p, POINTER(c_int32)]),
    "frit_session_new": (c_int, [POINTER(c_void_p), c_void_p]),
    "frit_session_free": (None, [c_void_p]),
    "frit_session_status": (c_int, [c_void_p]),
    "frit_session_fork": (c_int, [POINTER(c_void_p), c_void_p]),
    "frit_session_cached": (c_size_t, [c_void_p]),
    "frit_session_set_salt": (c_int, [c_void_p, c_char_p, c_size_t]),
    "frit_session_set_share": (c_int, [c_void_p, c_int32, c_int32]),
    "frit_session_push": (c_int, [c_void_p, POINTER(c_int32), c_size_t, POINTER(frit_push_options)]),
    "frit_session_encode": (c_int, [c_void_p, POINTER(c_int32), c_size_t, POINTER(frit_push_options)]),
    "frit_session_pending": (c_size_t, [c_void_p]),
    "frit_session_length": (c_size_t, [c_void_p]),
    "frit_session_truncate": (c_int, [c_void_p, c_size_t]),
    "frit_session_logits": (POINTER(c_float), [c_void_p]),
    "frit_session_tokens": (POINTER(c_int32), [c_void_p]),
    "frit_session_source": (POINTER(c_int32), [c_void_p, POINTER(c_size_t)]),
    "frit_session_save": (c_int, [c_void_p, c_char_p]),
    "frit_session_load": (c_int, [c_void_p, c_char_p]),
    "frit_session_save_memory": (c_int, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "frit_session_load_memory": (c_int, [c_void_p, c_void_p, c_size_t]),
    "frit_session_set_note": (c_int, [c_void_p, c_char_p, c_size_t]),
    "frit_session_note": (c_void_p, [c_void_p, POINTER(c_size_t)]),
    "frit_session_next": (c_int, [c_void_p, c_void_p, POINTER(c_int32)]),
    "frit_session_set_shift": (c_int, [c_void_p, POINTER(frit_shift_options)]),
    "frit_session_get_shift": (c_int, [c_void_p, POINTER(frit_shift_info)]),
    "frit_session_set_extend": (c_int, [c_void_p, POINTER(frit_extend_options)]),
    "frit_session_pick": (c_int, [c_void_p, c_void_p, POINTER(frit_pick_options)]),
    "frit_session_picked": (c_int, [c_void_p, POINTER(frit_picked)]),
    "frit_session_push_picked": (c_int, [c_void_p]),
    "frit_session_has_picked": (c_bool, [c_void_p]),
    "frit_session_pick_ahead": (c_int, [c_void_p, c_void_p, POINTER(frit_pick_options), POINTER(c_bool)]),
    "frit_session_complete_pick": (c_int, [c_void_p, c_void_p]),
    "frit_session_stop": (c_int, [c_void_p]),
    "frit_session_speculate": (c_int, [c_void_p, POINTER(frit_speculate_options)]),
    "frit_session_next_tokens": (c_int, [c_void_p, c_void_p, POINTER(c_int32), c_size_t, POINTER(c_size_t)]),
    "frit_session_draft": (c_int, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    "frit_sessions_draft": (c_int, [POINTER(frit_draft_item), c_size_t]),
    "frit_session_predict": (c_int, [c_void_p, POINTER(c_int32), c_size_t]),
    "frit_session_get_speculation": (c_int, [c_void_p, POINTER(frit_speculation_info)]),
    "frit_session_push_forced": (c_int, [c_void_p, c_void_p, POINTER(c_int32)]),
    "frit_logprobs_top": (c_int, [POINTER(c_float), c_size_t, POINTER(frit_logprob), c_size_t]),
    "frit_logprobs_of": (c_int, [POINTER(c_float), c_size_t, POINTER(frit_logprob), c_size_t]),
    "frit_image_open": (c_int, [POINTER(c_void_p), c_char_p, POINTER(frit_image_limits)]),
    "frit_image_open_memory": (c_int, [POINTER(c_void_p), c_void_p, c_size_t, POINTER(frit_image_limits)]),
    "frit_image_from_rgb": (c_int, [POINTER(c_void_p), c_uint32, c_uint32, c_void_p]),
    "frit_image_free": (None, [c_void_p]),
    "frit_image_retain": (c_int, [c_void_p]),
    "frit_image_get_size": (c_int, [c_void_p, POINTER(c_uint32), POINTER(c_uint32)]),
    "frit_image_pixels": (POINTER(c_uint8), [c_void_p]),
    "frit_media_new": (c_int, [POINTER(c_void_p), c_void_p, c_void_p, POINTER(frit_media_options)]),
    "frit_media_prepare": (c_int, [POINTER(c_void_p), c_void_p, c_void_p, POINTER(frit_media_options)]),
    "frit_media_bytes": (c_uint64, [c_void_p]),
    "frit_media_free": (None, [c_void_p]),
    "frit_media_tokens": (POINTER(c_int32), [c_void_p, POINTER(c_size_t)]),
    "frit_engine_set_media": (c_int, [c_void_p, POINTER(frit_engine_media_options)]),
    "frit_engine_get_media_info": (c_int, [c_void_p, POINTER(frit_engine_media_info)]),
    "frit_turn_new_with_media": (c_int, [POINTER(c_void_p), c_void_p, c_char_p, c_size_t, POINTER(c_void_p), c_size_t]),
    "frit_adapter_open": (c_int, [POINTER(c_void_p), c_void_p, c_char_p, POINTER(frit_adapter_options)]),
    "frit_adapter_free": (None, [c_void_p]),
    "frit_adapter_get_info": (c_int, [c_void_p, POINTER(frit_adapter_info)]),
    "frit_session_set_adapters": (c_int, [c_void_p, POINTER(c_void_p), POINTER(c_float), c_size_t]),
    "frit_embed_texts": (c_int, [c_void_p, POINTER(frit_embed_item), c_size_t, POINTER(frit_embed_options), frit_embed_fn, c_void_p]),
    "frit_embed_prompt": (c_int, [c_void_p, c_void_p, POINTER(c_void_p), POINTER(c_size_t)]),
    "frit_embed_cut": (c_int, [c_void_p, c_size_t, POINTER(c_int32), POINTER(c_size_t)]),
    "frit_embed_width": (c_int, [c_void_p, POINTER(frit_embed_options), POINTER(c_size_t)]),
    "frit_rerank_texts": (c_int, [c_void_p, c_char_p, c_size_t, POINTER(frit_embed_item), c_size_t, POINTER(frit_rerank_options), POINTER(c_float)]),
    "frit_rerank_tokenize": (c_int, [c_void_p, c_char_p, c_size_t, c_char_p, c_size_t, POINTER(c_int32), c_size_t, POINTER(c_size_t)]),
    "frit_beam_search": (c_int, [POINTER(c_void_p), c_void_p, POINTER(frit_beam_options)]),
    "frit_beams_get": (c_bool, [c_void_p, c_size_t, POINTER(frit_beam)]),
    "frit_beams_free": (None, [c_void_p]),
    "frit_sampler_recommend": (c_int, [c_void_p, POINTER(frit_sampler_options)]),
    "frit_sampler_set_option": (c_int, [POINTER(frit_sampler_options), c_char_p, c_char_p]),
    "frit_sampler_new": (c_int, [POINTER(c_void_p), c_void_p, POINTER(frit_sampler_options)]),
    "frit_sampler_free": (None, [c_void_p]),
    "frit_sampler_sample": (c_int, [c_void_p, POINTER(c_float), POINTER(c_int32)]),
    "frit_sampler_accept": (c_int, [c_void_p, c_int32]),
    "frit_sampler_reset": (c_int, [c_void_p]),
    "frit_sampler_set_position": (c_int, [c_void_p, c_uint64]),
    "frit_sampler_heal": (c_int, [c_void_p, c_void_p, POINTER(c_int32), c_size_t, POINTER(c_size_t)]),
    "frit_grammar_new": (c_int, [POINTER(c_void_p), c_void_p, c_char_p, c_size_t, POINTER(frit_grammar_options)]),
    "frit_grammar_begin": (c_int, [POINTER(c_void_p), c_void_p, c_char_p, c_size_t, POINTER(frit_grammar_options)]),
    "frit_grammar_finish": (c_int, [c_void_p, POINTER(c_void_p)]),
    "frit_grammar_free": (None, [c_void_p]),
    "frit_grammar_retain": (c_int, [c_void_p]),
    "frit_sampler_set_grammar": (c_int, [c_void_p, c_void_p]),
    "frit_turn_grammar": (c_int, [POINTER(c_void_p), c_void_p, POINTER(frit_turn_grammar_options)]),
    "frit_sampler_is_over": (c_bool, [c_void_p]),
    "frit_version": (c_char_p, []),
    "frit_option_set": (c_int, [POINTER(frit_option), c_void_p, c_char_p]),
    "frit_name_nearest": (c_char_p, [c_char_p, POINTER(c_void_p), c_size_t]),
    "frit_sha256_of": (c_bool, [c_void_p, c_size_t, c_void_p]),
    "frit_model_option_rows": (POINTER(frit_option), [POINTER(c_size_t)]),
    "frit_convert_option_rows": (POINTER(frit_option), [POINTER(c_size_t)]),
    "frit_quantize_option_rows": (POINTER(frit_option), [POINTER(c_size_t)]),
    "frit_engine_option_rows": (POINTER(frit_option), [POINTER(c_size_t)]),
    "frit_embed_option_rows": (POINTER(frit_option), [POINTER(c_size_t)]),
    "frit_sampler_option_rows": (POINTER(frit_option), [POINTER(c_size_t)]),
    "frit_model_get_file": (c_bool, [c_void_p, c_size_t, POINTER(frit_model_file)]),
    "frit_session_file_note": (c_int, [c_char_p, c_char_p, c_size_t, POINTER(c_size_t)]),
    "frit_random_shape_get": (POINTER(frit_random_shape), [c_size_t]),
    "frit_random_write": (c_int, [c_char_p, POINTER(frit_random_options)]),
    "frit_model_open_random": (c_int, [POINTER(c_void_p), POINTER(frit_random_options), POINTER(frit_model_options)]),
    "frit_kernels_get_gpu": (c_bool, [c_size_t, POINTER(frit_kernels_gpu)]),
    "frit_kernels_write": (c_int, [c_void_p, POINTER(frit_engine_options), POINTER(frit_kernels_options), POINTER(frit_kernels_report)]),
    "frit_importance_new": (c_int, [POINTER(c_void_p)]),
    "frit_importance_read": (c_int, [POINTER(c_void_p), c_char_p]),
    "frit_importance_free": (None, [c_void_p]),
    "frit_importance_merge": (c_int, [c_void_p, c_void_p]),
    "frit_importance_write": (c_int, [c_void_p, c_char_p, POINTER(frit_importance_file)]),
    "frit_importance_get_info": (c_bool, [c_void_p, c_size_t, POINTER(frit_importance_info)]),
    "frit_engine_observe": (c_int, [c_void_p, c_void_p]),
    "frit_covariance_new": (c_int, [POINTER(c_void_p), POINTER(frit_covariance_options)]),
    "frit_covariance_free": (None, [c_void_p]),
    "frit_covariance_get_info": (c_bool, [c_void_p, c_size_t, POINTER(frit_covariance_info)]),
    "frit_engine_observe_covariance": (c_int, [c_void_p, c_void_p]),
    "frit_covariance_error": (c_double, [c_void_p, POINTER(frit_covariance_info), c_int64, POINTER(c_float), c_int64]),
    "frit_refine": (c_int, [c_char_p, c_char_p, POINTER(frit_refine_options)]),
    "frit_refine_check": (c_int, [c_void_p, c_size_t]),
    "frit_engine_profile": (c_int, [c_void_p, c_bool]),
    "frit_engine_get_profile": (c_bool, [c_void_p, c_size_t, POINTER(frit_profile_row)]),
    "frit_allocate": (c_int, [c_char_p, c_char_p, POINTER(frit_convert_options), POINTER(frit_allocate_options)]),
    "frit_samples_write": (c_int, [c_void_p, POINTER(frit_samples_options), POINTER(c_int32)]),
    "frit_machine_probe": (c_int, [POINTER(frit_machine), c_int32]),
    "frit_machine_get_device": (c_bool, [c_size_t, POINTER(frit_machine_device)]),
    "frit_op_get_info": (c_bool, [c_size_t, POINTER(frit_op_info)]),
    "frit_architecture_get_info": (c_bool, [c_size_t, POINTER(frit_architecture_info)]),
}
