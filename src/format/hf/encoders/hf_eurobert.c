// SPDX-License-Identifier: MIT
// EuroBERT. As Llama under shorter names.
#include "format/hf/hf.h"

// clang-format off
static const frit_hf_tensor eurobert_tensors[] = {
    {.name = "embed_tokens", .gguf = "token_embd"},
    {.name = "layers.*.input_layernorm", .gguf = "blk.*.attn_norm"},
    {.name = "layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = "attention_bias"},
    {.name = "layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = "attention_bias"},
    {.name = "layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = "attention_bias"},
    {.name = "layers.*.self_attn.o_proj", .gguf = "blk.*.attn_output", .bias_if = "attention_bias"},
    {.name = "layers.*.post_attention_layernorm", .gguf = "blk.*.ffn_norm"},
    {.name = "layers.*.mlp.gate_proj", .gguf = "blk.*.ffn_gate", .bias_if = "mlp_bias"},
    {.name = "layers.*.mlp.up_proj", .gguf = "blk.*.ffn_up", .bias_if = "mlp_bias"},
    {.name = "layers.*.mlp.down_proj", .gguf = "blk.*.ffn_down", .bias_if = "mlp_bias"},
    {.name = "norm", .gguf = "output_norm"},
    // Replaces the shared rows of the output matrix; no tensor has this name.
    {.name = "no output", .gguf = "output", .may_be_absent = true},
};
// clang-format on

static frit_status add_eurobert(const frit_hf *hf)
{
    return frit_hf_add_flag(hf, "attention.causal", false);
}

const frit_hf_family frit_hf_eurobert = {
    .model_type = "eurobert",
    .class_name = "EuroBertModel",
    .arch = "eurobert",
    .prefix = "model.",
    .ignored = "lm_head.|dense.|classifier.",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {NULL, 0, eurobert_tensors, FRIT_COUNT(eurobert_tensors)},
    .more = add_eurobert,
};
