// SPDX-License-Identifier: MIT
// Mixtral. As Mistral, with experts.
#include "format/hf/hf_rows.h"

// clang-format off
static const frit_hf_key mixtral_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
    {"sliding_window", "attention.sliding_window", FRIT_HF_TOKENS, FRIT_HF_NO_KEY},
    {"num_local_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
};

static const frit_hf_tensor mixtral_tensors[] = {
    FRIT_HF_ROWS_NO_FEED_FORWARD,
    FRIT_HF_ROWS_NUMBERED_EXPERTS("model.layers.*.block_sparse_moe"),
    {.name = "model.layers.*.block_sparse_moe.gate", .gguf = "blk.*.ffn_gate_inp"},
};
// clang-format on

const frit_hf_family frit_hf_mixtral = {
    .model_type = "mixtral",
    .class_name = "MixtralForCausalLM",
    .arch = "llama",
    .act = "silu|swish",
    .rope_style = "neox",
    .shared = &frit_hf_decoder,
    .own = {mixtral_keys, FRIT_COUNT(mixtral_keys), mixtral_tensors, FRIT_COUNT(mixtral_tensors)},
};
