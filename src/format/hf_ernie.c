// SPDX-License-Identifier: MIT
// ERNIE 4.5, dense and MoE. RoPE on neighbouring elements, as in GGUF files.
#include "format/hf_rows.h"

// clang-format off
static const frit_hf_key ernie4_5_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, 131072, 131072},
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, 128, FRIT_HF_DIVIDED},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, 1e-5, 1e-5},
};

static const frit_hf_key ernie4_5_moe_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, 131072, 131072},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, 1e-5, 1e-5},
    {"moe_num_experts", "expert_count", FRIT_HF_COUNT, 64, 64},
    {"moe_k", "expert_used_count", FRIT_HF_COUNT, 6, 6},
    {"moe_num_shared_experts", "expert_shared_count", FRIT_HF_COUNT, 2, 2},
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, 1536, 1536},
    {"moe_layer_start_index", "leading_dense_block_count", FRIT_HF_COUNT, 1, 1},
    {"moe_layer_interval", "interleave_moe_layer_step", FRIT_HF_COUNT, 1, 1},
};

static const frit_hf_tensor ernie4_5_moe_tensors[] = {
    FRIT_HF_ROWS_DENSE_AND_EXPERTS("model.layers.*.mlp"),
    {.name = "model.layers.*.mlp.moe_statics.e_score_correction_bias", .gguf = "blk.*.exp_probs_b.bias", .may_be_absent = true, .whole = true},
};
// clang-format on

const frit_hf_family frit_hf_ernie4_5 = {
    .model_type = "ernie4_5",
    .class_name = "Ernie4_5ForCausalLM",
    .arch = "ernie4_5",
    .act = "silu|swish",
    .is_tied = true,
    .shared = &frit_hf_decoder,
    .own = {ernie4_5_keys, FRIT_COUNT(ernie4_5_keys), NULL, 0},
};

const frit_hf_family frit_hf_ernie4_5_moe = {
    .model_type = "ernie4_5_moe",
    .class_name = "Ernie4_5_MoeForCausalLM",
    .arch = "ernie4_5-moe",
    .act = "silu|swish",
    .is_tied = true,
    .shared = &frit_hf_decoder,
    .own = {ernie4_5_moe_keys, FRIT_COUNT(ernie4_5_moe_keys), ernie4_5_moe_tensors, FRIT_COUNT(ernie4_5_moe_tensors)},
};
