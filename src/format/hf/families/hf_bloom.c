// SPDX-License-Identifier: MIT
// BLOOM. q, k and v interleaved by head.
#include "format/hf/hf_rows.h"

// clang-format off
static const frit_hf_key bloom_keys[] = {
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"seq_length", "context_length", FRIT_HF_TOKENS, 2048},
    {"hidden_size", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"n_layer", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED},
    {"n_inner", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_4_EMBD},
    {"n_head", "attention.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    FRIT_HF_KEYS_EQUAL_HEADS,
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

static const frit_hf_tensor bloom_tensors[] = {
    {.name = "transformer.word_embeddings", .gguf = "token_embd"},
    {.name = "lm_head", .gguf = "output", .may_be_tied = true},
    {.name = "transformer.word_embeddings_layernorm", .gguf = "token_embd_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.h.*.input_layernorm", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.h.*.self_attention.query_key_value", .gguf = "blk.*.attn_qkv", .bias_if = FRIT_HF_ALWAYS, .rewrite = frit_hf_ungroup_qkv},
    {.name = "transformer.h.*.self_attention.dense", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.h.*.post_attention_layernorm", .gguf = "blk.*.ffn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.h.*.mlp.dense_h_to_4h", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.h.*.mlp.dense_4h_to_h", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.ln_f", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
};
// clang-format on

const frit_hf_family frit_hf_bloom = {
    .model_type = "bloom",
    .class_name = "BloomForCausalLM",
    .arch = "bloom",
    .act = "gelu",
    .shared = &frit_hf_no_names,
    .own = {bloom_keys, FRIT_COUNT(bloom_keys), bloom_tensors, FRIT_COUNT(bloom_tensors)},
};
