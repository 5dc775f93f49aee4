// SPDX-License-Identifier: MIT
// MPNet. As BERT without token types; all layers share a table of biases by distance. The first two rows of the table
// of positions are for padding, whatever pad_token_id is.
#include "format/hf/encoders/hf_encoders.h"

enum { FIRST_POSITION = 2 };

static frit_status add_mpnet(const frit_hf *hf)
{
    FRIT_TRY(frit_hf_expect(hf, "relative_attention_num_buckets", 32));   // the class computes no other number
    FRIT_TRY(frit_hf_skip_positions(hf, FIRST_POSITION));
    return frit_hf_add_encoder(hf);
}

static frit_status cut_positions(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    (void)is_bias;
    return frit_hf_cut_positions(hf, tensor, FIRST_POSITION);
}

// clang-format off
static const frit_hf_key mpnet_keys[] = {
    {"relative_attention_num_buckets", "attention.relative_buckets_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
};

static const frit_hf_tensor mpnet_tensors[] = {
    {.name = "embeddings.word_embeddings", .gguf = "token_embd"},
    {.name = "embeddings.position_embeddings", .gguf = "position_embd", .rewrite = cut_positions},
    {.name = "embeddings.LayerNorm", .gguf = "token_embd_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.relative_attention_bias", .gguf = "attn_rel_b"},
    {.name = "encoder.layer.*.attention.attn.q", .gguf = "blk.*.attn_q", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.attention.attn.k", .gguf = "blk.*.attn_k", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.attention.attn.v", .gguf = "blk.*.attn_v", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.attention.attn.o", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.attention.LayerNorm", .gguf = "blk.*.attn_output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.intermediate.dense", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.output.dense", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.output.LayerNorm", .gguf = "blk.*.layer_output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "classifier.dense", .gguf = "cls", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true, .of_classifier = true},
    {.name = "classifier.out_proj", .gguf = "cls.output", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true, .of_classifier = true},
};
// clang-format on

const frit_hf_family frit_hf_mpnet = {
    .model_type = "mpnet",
    .class_name = "MPNetModel",
    .arch = "mpnet",
    .prefix = "mpnet.",
    .ignored = "pooler.|lm_head.|qa_outputs.|embeddings.position_ids",
    .act = FRIT_HF_ENCODER_ACTS,
    .shared = &frit_hf_encoder,
    .own = {mpnet_keys, FRIT_COUNT(mpnet_keys), mpnet_tensors, FRIT_COUNT(mpnet_tensors)},
    .more = add_mpnet,
};
