// SPDX-License-Identifier: MIT
// Falcon. One KV head; or q of a group of heads, then k and v, interleaved by group.
#include "format/hf/hf_rows.h"

static frit_status complete(const frit_hf *hf)
{
    bool alibi = false, is_new = false, shares = true, parallel = true;
    double n_kv = frit_hf_written(hf, "attention.head_count");
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "alibi", &alibi));
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "new_decoder_architecture", &is_new));
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "multi_query", &shares));
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "parallel_attn", &parallel));
    if (alibi || !(parallel || is_new))
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: Falcon with alibi, or without parallel_attn, is not supported",
                              hf->path);
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "num_kv_heads", FRIT_HF_HEADS, &n_kv));
    if (!is_new) n_kv = shares ? 1 : frit_hf_written(hf, "attention.head_count");
    return frit_hf_set_number(hf, "attention.head_count_kv", FRIT_HF_HEADS, n_kv);
}

// clang-format off
static const frit_hf_key falcon_keys[] = {
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"hidden_size", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_hidden_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED},
    {"ffn_hidden_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_4_EMBD},
    {"num_attention_heads", "attention.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    FRIT_HF_KEYS_EQUAL_HEADS,
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

static const frit_hf_tensor falcon_tensors[] = {
    {.name = "transformer.word_embeddings", .gguf = "token_embd"},
    {.name = "lm_head", .gguf = "output", .may_be_tied = true},
    {.name = "transformer.h.*.input_layernorm", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS, .may_be_absent = true},
    {.name = "transformer.h.*.ln_mlp", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS, .may_be_absent = true},
    {.name = "transformer.h.*.ln_attn", .gguf = "blk.*.attn_norm_2", .bias_if = FRIT_HF_ALWAYS, .may_be_absent = true},
    {.name = "transformer.h.*.self_attention.query_key_value", .gguf = "blk.*.attn_qkv", .bias_if = FRIT_HF_MAYBE, .rewrite = frit_hf_ungroup_qkv},
    {.name = "transformer.h.*.self_attention.dense", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_MAYBE},
    {.name = "transformer.h.*.mlp.dense_h_to_4h", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_MAYBE},
    {.name = "transformer.h.*.mlp.dense_4h_to_h", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_MAYBE},
    {.name = "transformer.ln_f", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
};
// clang-format on

const frit_hf_family frit_hf_falcon = {
    .model_type = "falcon",
    .class_name = "FalconForCausalLM",
    .arch = "falcon",
    .act = "gelu!|gelu_new|gelu_pytorch_tanh",
    .act_name = "activation",
    .more = complete,
    .shared = &frit_hf_no_names,
    .own = {falcon_keys, FRIT_COUNT(falcon_keys), falcon_tensors, FRIT_COUNT(falcon_tensors)},
};
