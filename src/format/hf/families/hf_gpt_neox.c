// SPDX-License-Identifier: MIT
// GPT-NeoX, Pythia. q, k and v interleaved by head.
#include "format/hf/hf_rows.h"

static frit_status add_residual(const frit_hf *hf)
{
    bool parallel = true;
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "use_parallel_residual", &parallel));
    return frit_hf_add_flag(hf, "use_parallel_residual", parallel);
}

// clang-format off
static const frit_hf_key gpt_neox_keys[] = {
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"hidden_size", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_hidden_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED},
    {"intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_attention_heads", "attention.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    FRIT_HF_KEYS_EQUAL_HEADS,
    {"layer_norm_eps", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

static const frit_hf_tensor gpt_neox_tensors[] = {
    {.name = "gpt_neox.embed_in", .gguf = "token_embd"},
    {.name = "embed_out", .gguf = "output", .may_be_tied = true},
    {.name = "gpt_neox.layers.*.input_layernorm", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "gpt_neox.layers.*.attention.query_key_value", .gguf = "blk.*.attn_qkv", .bias_if = FRIT_HF_MAYBE, .rewrite = frit_hf_ungroup_qkv},
    {.name = "gpt_neox.layers.*.attention.dense", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_MAYBE},
    {.name = "gpt_neox.layers.*.post_attention_layernorm", .gguf = "blk.*.ffn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "gpt_neox.layers.*.mlp.dense_h_to_4h", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = "gpt_neox.layers.*.mlp.dense_4h_to_h", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    {.name = "gpt_neox.final_layer_norm", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
};
// clang-format on

const frit_hf_family frit_hf_gpt_neox = {
    .model_type = "gpt_neox",
    .class_name = "GPTNeoXForCausalLM",
    .arch = "gptneox",
    .act = "gelu!|gelu_fast|gelu_new",
    .more = add_residual,
    .shared = &frit_hf_no_names,
    .own = {gpt_neox_keys, FRIT_COUNT(gpt_neox_keys), gpt_neox_tensors, FRIT_COUNT(gpt_neox_tensors)},
};
