// SPDX-License-Identifier: MIT
// Granite 3, dense and MoE. As Llama, with scales.
#include "format/hf/hf_rows.h"

// clang-format off
static const frit_hf_key granite_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"embedding_multiplier", "embedding_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"residual_multiplier", "residual_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"attention_multiplier", "attention.scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"logits_scaling", "logit_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
};

static const frit_hf_tensor granite_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    {.name = "model.layers.*.mlp.gate_proj", .gguf = "blk.*.ffn_gate", .bias_if = "mlp_bias"},
    {.name = "model.layers.*.mlp.up_proj", .gguf = "blk.*.ffn_up", .bias_if = "mlp_bias"},
    {.name = "model.layers.*.mlp.down_proj", .gguf = "blk.*.ffn_down", .bias_if = "mlp_bias"},
};

static const frit_hf_key granitemoe_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_local_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"embedding_multiplier", "embedding_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"residual_multiplier", "residual_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"attention_multiplier", "attention.scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"logits_scaling", "logit_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
};

static const frit_hf_tensor granitemoe_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    FRIT_HF_ROWS_NO_FEED_FORWARD,
    {.name = "model.layers.*.block_sparse_moe.input_linear", .gguf = "blk.*.ffn_gate_up_exps"},
    {.name = "model.layers.*.block_sparse_moe.output_linear", .gguf = "blk.*.ffn_down_exps"},
    {.name = "model.layers.*.block_sparse_moe.router.layer", .gguf = "blk.*.ffn_gate_inp"},
};
// clang-format on

const frit_hf_family frit_hf_granite = {
    .model_type = "granite",
    .class_name = "GraniteForCausalLM",
    .arch = "granite",
    .act = "silu|swish",
    .rope_style = "halves",
    .shared = &frit_hf_decoder,
    .own = {granite_keys, FRIT_COUNT(granite_keys), granite_tensors, FRIT_COUNT(granite_tensors)},
};

const frit_hf_family frit_hf_granitemoe = {
    .model_type = "granitemoe",
    .class_name = "GraniteMoeForCausalLM",
    .arch = "granitemoe",
    .act = "silu|swish",
    .rope_style = "halves",
    .shared = &frit_hf_decoder,
    .own = {granitemoe_keys, FRIT_COUNT(granitemoe_keys), granitemoe_tensors, FRIT_COUNT(granitemoe_tensors)},
};
