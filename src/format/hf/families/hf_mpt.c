// SPDX-License-Identifier: MIT
// MPT. ALiBi if attn_config enables it; GELU is the exact one, whatever the configuration says.
#include "format/hf/hf_rows.h"

static frit_status complete(const frit_hf *hf)
{
    const json_t *attn = json_object_get(hf->config, "attn_config");
    double ratio = 0, clip = 0, bias = 8, scale = 0;
    bool alibi = true, qk_norm = false;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "expansion_ratio", FRIT_HF_COUNT, &ratio));
    FRIT_TRY(frit_hf_get_number(hf, attn, "attn_config.", "clip_qkv", FRIT_HF_FACTOR, &clip));
    FRIT_TRY(frit_hf_get_number(hf, attn, "attn_config.", "alibi_bias_max", FRIT_HF_FACTOR, &bias));
    FRIT_TRY(frit_hf_get_flag(hf, attn, "attn_config.", "alibi", &alibi));
    FRIT_TRY(frit_hf_get_flag(hf, attn, "attn_config.", "qk_ln", &qk_norm));
    FRIT_TRY(frit_hf_get_number(hf, attn, "attn_config.", "softmax_scale", FRIT_HF_FACTOR, &scale));
    if (scale != 0) FRIT_TRY(frit_hf_add_number(hf, "attention.scale", FRIT_HF_FACTOR, scale));
    if (qk_norm)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: attn_config.qk_ln is set, which is not supported", hf->path);
    FRIT_TRY(
        frit_hf_set_number(hf, "feed_forward_length", FRIT_HF_WIDTH, ratio * frit_hf_written(hf, "embedding_length")));
    if (clip != 0) FRIT_TRY(frit_hf_add_number(hf, "attention.clamp_kqv", FRIT_HF_FACTOR, clip));
    if (alibi) FRIT_TRY(frit_hf_add_number(hf, "attention.max_alibi_bias", FRIT_HF_FACTOR, bias));
    return frit_meta_add_text(&hf->ckpt->meta, "frit.act", "gelu");
}

// clang-format off
static const frit_hf_key mpt_keys[] = {
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"max_seq_len", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"d_model", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"n_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED},
    {NULL, "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_4_EMBD},
    {"n_heads", "attention.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    FRIT_HF_KEYS_EQUAL_HEADS,
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

static const frit_hf_tensor mpt_tensors[] = {
    {.name = "transformer.wte", .gguf = "token_embd"},
    {.name = "lm_head", .gguf = "output", .may_be_tied = true},
    {.name = "transformer.wpe", .gguf = "position_embd", .may_be_absent = true},
    {.name = "transformer.blocks.*.norm_1", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_MAYBE},
    {.name = "transformer.blocks.*.attn.Wqkv", .gguf = "blk.*.attn_qkv", .bias_if = FRIT_HF_MAYBE},
    {.name = "transformer.blocks.*.attn.out_proj", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_MAYBE},
    {.name = "transformer.blocks.*.norm_2", .gguf = "blk.*.ffn_norm", .bias_if = FRIT_HF_MAYBE},
    {.name = "transformer.blocks.*.ffn.up_proj", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_MAYBE},
    {.name = "transformer.blocks.*.ffn.down_proj", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_MAYBE},
    {.name = "transformer.norm_f", .gguf = "output_norm", .bias_if = FRIT_HF_MAYBE},
};
// clang-format on

const frit_hf_family frit_hf_mpt = {
    .model_type = "mpt",
    .class_name = "MptForCausalLM",
    .arch = "mpt",
    .act = "gelu",
    .more = complete,
    .shared = &frit_hf_no_names,
    .own = {mpt_keys, FRIT_COUNT(mpt_keys), mpt_tensors, FRIT_COUNT(mpt_tensors)},
};
