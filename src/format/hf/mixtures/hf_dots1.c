// SPDX-License-Identifier: MIT
// dots.llm1. As Qwen 3, with experts; sigmoid router with a selection bias.
#include "format/hf/hf_rows.h"

// clang-format off
static const frit_hf_key dots1_keys[] = {
    FRIT_HF_KEY_SIGMOID_ROUTER,
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {"n_routed_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NO_KEY},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NO_KEY},
    {"n_shared_experts", "expert_shared_count", FRIT_HF_COUNT, FRIT_HF_NO_KEY},
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"first_k_dense_replace", "leading_dense_block_count", FRIT_HF_COUNT, FRIT_HF_FALSE},
    {"norm_topk_prob", "expert_weights_norm", FRIT_HF_FLAG, FRIT_HF_FALSE},
    {"routed_scaling_factor", "expert_weights_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"n_group", "expert_group_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"topk_group", "expert_group_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
};

static const frit_hf_tensor dots1_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    FRIT_HF_ROWS_DEEPSEEK_EXPERTS("model.layers.*.mlp"),
    FRIT_HF_ROWS_HEAD_NORMS("model.layers.*.self_attn"),
};
// clang-format on

const frit_hf_family frit_hf_dots1 = {
    .model_type = "dots1",
    .class_name = "Dots1ForCausalLM",
    .arch = "dots1",
    .act = "silu|swish",
    .has_windows = true,
    .window_first = 62,   // all layers of dots.llm1: by default none has a window
    .shared = &frit_hf_decoder,
    .own = {dots1_keys, FRIT_COUNT(dots1_keys), dots1_tensors, FRIT_COUNT(dots1_tensors)},
};
