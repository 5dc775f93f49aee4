// SPDX-License-Identifier: MIT
// Command R and its successors. RoPE on neighbouring elements, as in GGUF files.
#include "format/hf/hf_rows.h"

// clang-format off
static const frit_hf_key cohere_keys[] = {
    FRIT_HF_KEYS_NO_RMS_NORM,
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"layer_norm_eps", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
    {"logit_scale", "logit_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
};

static const frit_hf_tensor cohere_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    {.gguf = "blk.*.ffn_norm", .none = true},
    {.name = "model.layers.*.self_attn.q_norm", .gguf = "blk.*.attn_q_norm", .may_be_absent = true},
    {.name = "model.layers.*.self_attn.k_norm", .gguf = "blk.*.attn_k_norm", .may_be_absent = true},
};

static const frit_hf_tensor cohere2_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    {.gguf = "blk.*.ffn_norm", .none = true},
};
// clang-format on

const frit_hf_family frit_hf_cohere = {
    .model_type = "cohere",
    .class_name = "CohereForCausalLM",
    .arch = "command-r",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {cohere_keys, FRIT_COUNT(cohere_keys), cohere_tensors, FRIT_COUNT(cohere_tensors)},
};

const frit_hf_family frit_hf_cohere2 = {
    .model_type = "cohere2",
    .class_name = "Cohere2ForCausalLM",
    .arch = "cohere2",
    .act = "silu|swish",
    .has_windows = true,
    .window_period = 4,
    .shared = &frit_hf_decoder,
    .own = {cohere_keys, FRIT_COUNT(cohere_keys), cohere2_tensors, FRIT_COUNT(cohere2_tensors)},
};
