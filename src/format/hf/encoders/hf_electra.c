// SPDX-License-Identifier: MIT
// ELECTRA and ALBERT. As BERT with narrower embeddings and a projection. ALBERT's layers share weights in groups of
// consecutive layers; the files have one layer for each group.
#include "format/hf/encoders/hf_encoders.h"

// clang-format off
static const frit_hf_key electra_keys[] = {
    {"embedding_size", "embedding_length_input", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
};

static const frit_hf_tensor electra_tensors[] = {
    {.name = "embeddings_project", .gguf = "token_embd_proj", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true},
    {.gguf = "cls", .none = true},
    {.gguf = "cls.output", .none = true},
};

#define AT "encoder.albert_layer_groups.*.albert_layers.0"
static const frit_hf_tensor albert_tensors[] = {
    {.name = "encoder.embedding_hidden_mapping_in", .gguf = "token_embd_proj", .bias_if = FRIT_HF_ALWAYS},
    {.name = "embeddings.word_embeddings", .gguf = "token_embd"},
    {.name = "embeddings.token_type_embeddings", .gguf = "token_types"},
    {.name = "embeddings.position_embeddings", .gguf = "position_embd"},
    {.name = "embeddings.LayerNorm", .gguf = "token_embd_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".attention.query", .gguf = "blk.*.attn_q", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".attention.key", .gguf = "blk.*.attn_k", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".attention.value", .gguf = "blk.*.attn_v", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".attention.dense", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".attention.LayerNorm", .gguf = "blk.*.attn_output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".ffn", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".ffn_output", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".full_layer_layer_norm", .gguf = "blk.*.layer_output_norm", .bias_if = FRIT_HF_ALWAYS},
};
// clang-format on

static frit_status add_albert(const frit_hf *hf)
{
    FRIT_TRY(frit_hf_expect(hf, "inner_group_num", 1));
    return frit_hf_add_encoder(hf);
}

const frit_hf_family frit_hf_electra = {
    .model_type = "electra",
    .class_name = "ElectraModel",
    .arch = "electra",
    .prefix = "electra.",
    .ignored = "discriminator_predictions.|generator_predictions.|generator_lm_head.|classifier.|qa_outputs.|"
               "embeddings.position_ids",
    .act = FRIT_HF_ENCODER_ACTS,
    .shared = &frit_hf_bert_names,
    .own = {electra_keys, FRIT_COUNT(electra_keys), electra_tensors, FRIT_COUNT(electra_tensors)},
    .more = frit_hf_add_encoder,
};

const frit_hf_family frit_hf_albert = {
    .model_type = "albert",
    .class_name = "AlbertModel",
    .arch = "electra",
    .prefix = "albert.",
    .ignored = "pooler.|predictions.|sop_classifier.|classifier.|qa_outputs.|embeddings.position_ids",
    .act = FRIT_HF_ENCODER_ACTS,
    .groups_key = "num_hidden_groups",
    .shared = &frit_hf_encoder,
    .own = {electra_keys, FRIT_COUNT(electra_keys), albert_tensors, FRIT_COUNT(albert_tensors)},
    .more = add_albert,
};
