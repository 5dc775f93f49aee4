// SPDX-License-Identifier: MIT
// DistilBERT. As BERT without token types, under names of its own.
#include "format/hf/encoders/hf_encoders.h"

// clang-format off
static const frit_hf_key distilbert_keys[] = {
    {"dim", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"n_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED},
    {"hidden_dim", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"n_heads", "attention.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    {NULL, "attention.layer_norm_epsilon", FRIT_HF_EPSILON, 1e-12},
};

static const frit_hf_tensor distilbert_tensors[] = {
    {.name = "embeddings.word_embeddings", .gguf = "token_embd"},
    {.name = "embeddings.position_embeddings", .gguf = "position_embd"},
    {.name = "embeddings.LayerNorm", .gguf = "token_embd_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.layer.*.attention.q_lin", .gguf = "blk.*.attn_q", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.layer.*.attention.k_lin", .gguf = "blk.*.attn_k", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.layer.*.attention.v_lin", .gguf = "blk.*.attn_v", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.layer.*.attention.out_lin", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.layer.*.sa_layer_norm", .gguf = "blk.*.attn_output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.layer.*.ffn.lin1", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.layer.*.ffn.lin2", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.layer.*.output_layer_norm", .gguf = "blk.*.layer_output_norm", .bias_if = FRIT_HF_ALWAYS},
    FRIT_HF_ROW_MASKED_LM("vocab_transform", "mlm.dense"),
    FRIT_HF_ROW_MASKED_LM("vocab_layer_norm", "mlm.norm"),
    FRIT_HF_ROW_MASKED_LM("vocab_projector", "output"),
};
// clang-format on

// Sinusoids, if the configuration has them, are stored in the table of positions.
const frit_hf_family frit_hf_distilbert = {
    .model_type = "distilbert",
    .class_name = "DistilBertModel",
    .arch = "bert",
    .prefix = "distilbert.",
    .ignored = "vocab_|pre_classifier.|classifier.|qa_outputs.|embeddings.position_ids",
    .act = "gelu|relu",
    .act_name = "activation",
    .shared = &frit_hf_encoder,
    .own = {distilbert_keys, FRIT_COUNT(distilbert_keys), distilbert_tensors, FRIT_COUNT(distilbert_tensors)},
    .more = frit_hf_add_encoder,
};
