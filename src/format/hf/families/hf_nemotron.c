// SPDX-License-Identifier: MIT
// Nemotron 4, Minitron. Norms multiply by 1 + weight; GGUF stores the sum. RoPE on half of each head.
#include "format/hf/hf_rows.h"

// clang-format off
static const frit_hf_key nemotron_keys[] = {
    FRIT_HF_KEYS_NO_RMS_NORM,
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"norm_eps", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

static const frit_hf_tensor nemotron_tensors[] = {
    {.name = "model.layers.*.input_layernorm", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS, .rewrite = frit_hf_plus_one},
    {.name = "model.layers.*.post_attention_layernorm", .gguf = "blk.*.ffn_norm", .bias_if = FRIT_HF_ALWAYS, .rewrite = frit_hf_plus_one},
    {.name = "model.norm", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS, .rewrite = frit_hf_plus_one},
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    {.name = "model.layers.*.mlp.up_proj", .gguf = "blk.*.ffn_up", .bias_if = "mlp_bias"},
    {.name = "model.layers.*.mlp.down_proj", .gguf = "blk.*.ffn_down", .bias_if = "mlp_bias"},
    {.gguf = "blk.*.ffn_gate", .none = true},
};
// clang-format on

const frit_hf_family frit_hf_nemotron = {
    .model_type = "nemotron",
    .class_name = "NemotronForCausalLM",
    .arch = "nemotron",
    .act = "relu2",
    .shared = &frit_hf_decoder,
    .own = {nemotron_keys, FRIT_COUNT(nemotron_keys), nemotron_tensors, FRIT_COUNT(nemotron_tensors)},
};
