// SPDX-License-Identifier: MIT
// Seed-OSS. As Llama; the bias of the output projection has its own key.
#include "format/hf/hf_rows.h"

// clang-format off
static const frit_hf_key seed_oss_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
};

static const frit_hf_tensor seed_oss_tensors[] = {
    FRIT_HF_ROWS_BIASED_QKV("model.layers.*.self_attn"),
    {.name = "model.layers.*.self_attn.o_proj", .gguf = "blk.*.attn_output", .bias_if = "attention_out_bias"},
    {.name = "model.layers.*.post_attention_layernorm", .gguf = "blk.*.post_attention_norm"},
    {.gguf = "blk.*.ffn_norm", .none = true},
    {.name = "model.layers.*.mlp.gate_proj", .gguf = "blk.*.ffn_gate", .bias_if = "mlp_bias"},
    {.name = "model.layers.*.mlp.up_proj", .gguf = "blk.*.ffn_up", .bias_if = "mlp_bias"},
    {.name = "model.layers.*.mlp.down_proj", .gguf = "blk.*.ffn_down", .bias_if = "mlp_bias"},
};
// clang-format on

const frit_hf_family frit_hf_seed_oss = {
    .model_type = "seed_oss",
    .class_name = "SeedOssForCausalLM",
    .arch = "seed_oss",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {seed_oss_keys, FRIT_COUNT(seed_oss_keys), seed_oss_tensors, FRIT_COUNT(seed_oss_tensors)},
};
