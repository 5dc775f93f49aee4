// SPDX-License-Identifier: MIT
// Arcee. As Llama, without a gate.
#include "format/hf/hf_rows.h"

// clang-format off
static const frit_hf_key arcee_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
};

static const frit_hf_tensor arcee_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    {.name = "model.layers.*.mlp.up_proj", .gguf = "blk.*.ffn_up", .bias_if = "mlp_bias"},
    {.name = "model.layers.*.mlp.down_proj", .gguf = "blk.*.ffn_down", .bias_if = "mlp_bias"},
    {.gguf = "blk.*.ffn_gate", .none = true},
};
// clang-format on

const frit_hf_family frit_hf_arcee = {
    .model_type = "arcee",
    .class_name = "ArceeForCausalLM",
    .arch = "arcee",
    .act = "relu2",
    .rope_style = "neox",
    .shared = &frit_hf_decoder,
    .own = {arcee_keys, FRIT_COUNT(arcee_keys), arcee_tensors, FRIT_COUNT(arcee_tensors)},
};
