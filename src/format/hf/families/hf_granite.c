// SPDX-License-Identifier: MIT
// Granite 3, dense and MoE, and HyperCLOVA X SEED. As Llama, with scales.
#include "format/hf/hf_rows.h"

// The architecture divides logits by the factor, HyperCLOVA X multiplies them.
static frit_status complete_hyperclovax(const frit_hf *hf)
{
    return frit_hf_set_number(hf, "logit_scale", FRIT_HF_FACTOR, 1 / frit_hf_written(hf, "logit_scale"));
}

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

#define MOE_KEYS \
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED}, \
    {"num_local_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"embedding_multiplier", "embedding_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED}, \
    {"residual_multiplier", "residual_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED}, \
    {"attention_multiplier", "attention.scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED}, \
    {"logits_scaling", "logit_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED}

static const frit_hf_key granitemoe_keys[] = {MOE_KEYS};

#define MOE_TENSORS \
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"), \
    FRIT_HF_ROWS_NO_FEED_FORWARD, \
    {.name = "model.layers.*.block_sparse_moe.input_linear", .gguf = "blk.*.ffn_gate_up_exps"}, \
    {.name = "model.layers.*.block_sparse_moe.output_linear", .gguf = "blk.*.ffn_down_exps"}, \
    {.name = "model.layers.*.block_sparse_moe.router.layer", .gguf = "blk.*.ffn_gate_inp"}

static const frit_hf_tensor granitemoe_tensors[] = {MOE_TENSORS};

static const frit_hf_key granitemoeshared_keys[] = {
    MOE_KEYS,
    {"shared_intermediate_size", "expert_shared_feed_forward_length", FRIT_HF_COUNT, FRIT_HF_FALSE},
};

static const frit_hf_tensor granitemoeshared_tensors[] = {
    MOE_TENSORS,
    {.name = "model.layers.*.shared_mlp.input_linear", .gguf = "blk.*.ffn_gate_shexp", .may_be_absent = true, .rewrite = frit_hf_split_gate_up},
    {.name = "model.layers.*.shared_mlp.output_linear", .gguf = "blk.*.ffn_down_shexp", .may_be_absent = true},
};

static const frit_hf_key hyperclovax_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"embedding_multiplier", "embedding_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"residual_multiplier", "residual_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"attention_multiplier", "attention.scale", FRIT_HF_FACTOR, FRIT_HF_NO_KEY},
    {"logits_scaling", "logit_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
};

static const frit_hf_tensor hyperclovax_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    {.name = "model.layers.*.post_norm1", .gguf = "blk.*.post_attention_norm", .may_be_absent = true},
    {.name = "model.layers.*.mlp.gate_proj", .gguf = "blk.*.ffn_gate", .bias_if = "mlp_bias"},
    {.name = "model.layers.*.mlp.up_proj", .gguf = "blk.*.ffn_up", .bias_if = "mlp_bias"},
    {.name = "model.layers.*.mlp.down_proj", .gguf = "blk.*.ffn_down", .bias_if = "mlp_bias"},
    {.name = "model.layers.*.post_norm2", .gguf = "blk.*.post_ffw_norm", .may_be_absent = true},
};

#define SWA_ATTENTION \
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"), \
    {.name = "model.layers.*.self_attn.sinks", .gguf = "blk.*.attn_sinks.weight", .whole = true, .may_be_absent = true}

static const frit_hf_tensor granite_swa_tensors[] = {
    SWA_ATTENTION,
};

static const frit_hf_tensor granitemoe_swa_tensors[] = {
    SWA_ATTENTION,
    FRIT_HF_ROWS_NO_FEED_FORWARD,
    FRIT_HF_ROWS_STACKED_EXPERTS("model.layers.*.block_sparse_moe"),
    {.name = "model.layers.*.block_sparse_moe.router", .gguf = "blk.*.ffn_gate_inp"},
    {.name = "model.layers.*.shared_mlp.input_linear", .gguf = "blk.*.ffn_up_shexp", .may_be_absent = true},
    {.name = "model.layers.*.shared_mlp.output_linear", .gguf = "blk.*.ffn_down_shexp", .may_be_absent = true},
};
// clang-format on

const frit_hf_family frit_hf_granite = {
    .model_type = "granite",
    .class_name = "GraniteForCausalLM",
    .arch = "granite",
    .act = "silu|swish",
    .rope_style = "neox",
    .shared = &frit_hf_decoder,
    .own = {granite_keys, FRIT_COUNT(granite_keys), granite_tensors, FRIT_COUNT(granite_tensors)},
};

const frit_hf_family frit_hf_granitemoe = {
    .model_type = "granitemoe",
    .class_name = "GraniteMoeForCausalLM",
    .arch = "granitemoe",
    .act = "silu|swish",
    .rope_style = "neox",
    .shared = &frit_hf_decoder,
    .own = {granitemoe_keys, FRIT_COUNT(granitemoe_keys), granitemoe_tensors, FRIT_COUNT(granitemoe_tensors)},
};

const frit_hf_family frit_hf_granitemoeshared = {
    .model_type = "granitemoeshared",
    .class_name = "GraniteMoeSharedForCausalLM",
    .arch = "granitemoe",
    .act = "silu|swish",
    .rope_style = "neox",
    .shared = &frit_hf_decoder,
    .own = {granitemoeshared_keys, FRIT_COUNT(granitemoeshared_keys), granitemoeshared_tensors,
            FRIT_COUNT(granitemoeshared_tensors)},
};

const frit_hf_family frit_hf_hyperclovax = {
    .model_type = "hyperclovax",
    .class_name = "HyperCLOVAXForCausalLM",
    .arch = "granite",
    .act = "silu|swish",
    .rope_style = "neox",
    .more = complete_hyperclovax,
    .shared = &frit_hf_decoder,
    .own = {hyperclovax_keys, FRIT_COUNT(hyperclovax_keys), hyperclovax_tensors, FRIT_COUNT(hyperclovax_tensors)},
};

const frit_hf_family frit_hf_granite_swa = {
    .model_type = "granite_swa",
    .class_name = "GraniteSWAForCausalLM",
    .arch = "granite_swa",
    .act = "silu|swish",
    .rope_style = "neox",
    .needs_types = true,
    .has_windows = true,
    .more = frit_hf_add_rope_bases,
    .shared = &frit_hf_decoder,
    .own = {granite_keys, FRIT_COUNT(granite_keys), granite_swa_tensors, FRIT_COUNT(granite_swa_tensors)},
};

const frit_hf_family frit_hf_granitemoe_swa = {
    .model_type = "granitemoe_swa",
    .class_name = "GraniteMoeSWAForCausalLM",
    .arch = "granite_swa",
    .act = "silu|swish",
    .rope_style = "neox",
    .needs_types = true,
    .has_windows = true,
    .more = frit_hf_add_rope_bases,
    .shared = &frit_hf_decoder,
    .own = {granitemoeshared_keys, FRIT_COUNT(granitemoeshared_keys), granitemoe_swa_tensors,
            FRIT_COUNT(granitemoe_swa_tensors)},
};
