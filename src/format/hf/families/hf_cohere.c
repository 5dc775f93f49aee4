// SPDX-License-Identifier: MIT
// Command R and its successors. RoPE on neighbouring elements, as in GGUF files.
#include "format/hf/hf_rows.h"

static frit_status complete_moe(const frit_hf *hf)
{
    const bool is_sigmoid = frit_hf_expect_text(hf, "expert_selection_fn", "sigmoid") == FRIT_OK;
    if (!is_sigmoid) FRIT_TRY(frit_hf_expect_text(hf, "expert_selection_fn", "softmax"));
    FRIT_TRY(frit_hf_expect_text(hf, "shared_expert_combination_strategy", "average"));
    FRIT_TRY(frit_hf_add_number(hf, "expert_gating_func", FRIT_HF_COUNT, is_sigmoid ? 2 : 1));
    return frit_hf_add_dense_layers(hf);
}

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

static const frit_hf_key cohere2_moe_keys[] = {
    FRIT_HF_KEYS_NO_RMS_NORM,
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"layer_norm_eps", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
    {"logit_scale", "logit_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"prefix_dense_intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_shared_experts", "expert_shared_count", FRIT_HF_COUNT, FRIT_HF_FALSE},
    {"norm_topk_prob", "expert_weights_norm", FRIT_HF_FLAG, FRIT_HF_NEEDED},
    {"first_k_dense_replace", "leading_dense_block_count", FRIT_HF_COUNT, FRIT_HF_FALSE},
};

static const frit_hf_tensor cohere2_moe_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    {.gguf = "blk.*.ffn_norm", .none = true},
    FRIT_HF_ROWS_DENSE_AND_EXPERTS("model.layers.*.mlp"),
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

const frit_hf_family frit_hf_cohere2_moe = {
    .model_type = "cohere2_moe",
    .class_name = "Cohere2MoeForCausalLM",
    .arch = "cohere2moe",
    .act = "silu|swish",
    .has_windows = true,
    .needs_types = true,
    .more = complete_moe,
    .shared = &frit_hf_decoder,
    .own = {cohere2_moe_keys, FRIT_COUNT(cohere2_moe_keys), cohere2_moe_tensors, FRIT_COUNT(cohere2_moe_tensors)},
};
