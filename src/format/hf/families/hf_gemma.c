// SPDX-License-Identifier: MIT
// Gemma 1. Its norms multiply by 1 + weight; GGUF stores the sum.
#include "format/hf/hf.h"

static frit_status refuse_bidirectional(const frit_hf *hf)
{
    bool bidirectional = false;
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "use_bidirectional_attention", &bidirectional));
    if (bidirectional)
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: use_bidirectional_attention is set, expected a causal language model", hf->path);
    return FRIT_OK;
}

// clang-format off
static const frit_hf_key keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
};

static const frit_hf_tensor tensors[] = {
    {.name = "model.layers.*.input_layernorm",          .gguf = "blk.*.attn_norm",   .rewrite = frit_hf_plus_one},
    {.name = "model.layers.*.self_attn.q_proj",         .gguf = "blk.*.attn_q",      .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.k_proj",         .gguf = "blk.*.attn_k",      .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.v_proj",         .gguf = "blk.*.attn_v",      .bias_if = "attention_bias"},
    {.name = "model.layers.*.self_attn.o_proj",         .gguf = "blk.*.attn_output", .bias_if = "attention_bias"},
    {.name = "model.layers.*.post_attention_layernorm", .gguf = "blk.*.ffn_norm",    .rewrite = frit_hf_plus_one},
    {.name = "model.norm",                              .gguf = "output_norm",       .rewrite = frit_hf_plus_one},
};
// clang-format on

const frit_hf_family frit_hf_gemma = {
    .model_type = "gemma",
    .class_name = "GemmaForCausalLM",
    .arch = "gemma",
    // Early folders say "gelu" although the model was trained with the tanh form.
    .act = "gelu_pytorch_tanh|gelu_new|gelu",
    .shared = &frit_hf_decoder,
    .own = {keys, FRIT_COUNT(keys), tensors, FRIT_COUNT(tensors)},
    .more = refuse_bidirectional,
};
