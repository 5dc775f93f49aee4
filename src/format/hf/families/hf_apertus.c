// SPDX-License-Identifier: MIT
// Apertus. The activation's learned parameters are tensors of one number in folders, keys in GGUF.
#include "format/hf/hf_rows.h"

// clang-format off
static const frit_hf_key apertus_keys[] = {
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

static const frit_hf_tensor apertus_tensors[] = {
    {.name = "model.layers.*.attention_layernorm", .gguf = "blk.*.attn_norm"},
    {.name = "model.layers.*.feedforward_layernorm", .gguf = "blk.*.ffn_norm"},
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    FRIT_HF_ROWS_HEAD_NORMS("model.layers.*.self_attn"),
    {.name = "model.layers.*.mlp.act_fn.alpha_p", .gguf = "xielu.alpha_p", .is_key = true},
    {.name = "model.layers.*.mlp.act_fn.alpha_n", .gguf = "xielu.alpha_n", .is_key = true},
    {.name = "model.layers.*.mlp.act_fn.beta", .gguf = "xielu.beta", .is_key = true},
    {.name = "model.layers.*.mlp.act_fn.eps", .gguf = "xielu.eps", .is_key = true},
    {.gguf = "blk.*.ffn_gate", .none = true},
};
// clang-format on

const frit_hf_family frit_hf_apertus = {
    .model_type = "apertus",
    .class_name = "ApertusForCausalLM",
    .arch = "apertus",
    .act = "xielu",
    .shared = &frit_hf_decoder,
    .own = {apertus_keys, FRIT_COUNT(apertus_keys), apertus_tensors, FRIT_COUNT(apertus_tensors)},
};
