// SPDX-License-Identifier: MIT
// SmolLM3. As Llama; the configuration lists the layers with RoPE.
#include "format/hf/hf_rows.h"

// clang-format off
static const frit_hf_key smollm3_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
};

static const frit_hf_tensor smollm3_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    {.name = "model.layers.*.mlp.gate_proj", .gguf = "blk.*.ffn_gate", .bias_if = "mlp_bias"},
    {.name = "model.layers.*.mlp.up_proj", .gguf = "blk.*.ffn_up", .bias_if = "mlp_bias"},
    {.name = "model.layers.*.mlp.down_proj", .gguf = "blk.*.ffn_down", .bias_if = "mlp_bias"},
};
// clang-format on

const frit_hf_family frit_hf_smollm3 = {
    .model_type = "smollm3",
    .class_name = "SmolLM3ForCausalLM",
    .arch = "smollm3",
    .act = "silu|swish",
    .more = frit_hf_add_rope_layers,
    .rope_style = "neox",
    .shared = &frit_hf_decoder,
    .own = {smollm3_keys, FRIT_COUNT(smollm3_keys), smollm3_tensors, FRIT_COUNT(smollm3_tensors)},
};
