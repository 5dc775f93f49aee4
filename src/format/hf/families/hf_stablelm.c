// SPDX-License-Identifier: MIT
// StableLM. LayerNorm; RoPE on part of each head; some models have QK norms with separate weights for each head.
#include "format/hf/hf_rows.h"

// clang-format off
static const frit_hf_key stablelm_keys[] = {
    FRIT_HF_KEYS_NO_RMS_NORM,
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"layer_norm_eps", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

static const frit_hf_tensor stablelm_tensors[] = {
    {.name = "model.layers.*.input_layernorm", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.post_attention_layernorm", .gguf = "blk.*.ffn_norm", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true},
    {.name = "model.norm", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "model.layers.*.self_attn.q_layernorm.norms.@", .gguf = "blk.*.attn_q_norm", .may_be_absent = true},
    {.name = "model.layers.*.self_attn.k_layernorm.norms.@", .gguf = "blk.*.attn_k_norm", .may_be_absent = true},
    {.name = "model.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = "use_qkv_bias"},
    {.name = "model.layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = "use_qkv_bias"},
    {.name = "model.layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = "use_qkv_bias"},
};
// clang-format on

const frit_hf_family frit_hf_stablelm = {
    .model_type = "stablelm",
    .class_name = "StableLmForCausalLM",
    .arch = "stablelm",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {stablelm_keys, FRIT_COUNT(stablelm_keys), stablelm_tensors, FRIT_COUNT(stablelm_tensors)},
};
