// SPDX-License-Identifier: MIT
// jina-embeddings v2 and jina-reranker v1: BERT with ALiBi and a gated feed-forward, under BERT's model_type. Models
// for code have other names in a layer, norms of queries and keys, and a second sum and norm after attention.
#include "format/hf/encoders/hf_encoders.h"
#include "format/rows.h"

static bool has_alibi(const json_t *config)
{
    const char *kind = json_string_value(json_object_get(config, "position_embedding_type"));
    return kind && strcmp(kind, "alibi") == 0;
}

static frit_status add_jina(const frit_hf *hf)
{
    const char *kind = "original";
    FRIT_TRY(frit_hf_get_text(hf, hf->config, "", "feed_forward_type", &kind));
    if (strcmp(kind, "geglu") != 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: feed_forward_type is '%.40s', a model with ALiBi is supported with geglu", hf->path,
                              kind);
    return frit_hf_add_bidirectional(hf);
}

// clang-format off
static const frit_hf_tensor jina_tensors[] = {
    {.gguf = "position_embd", .none = true},
    {.gguf = "mlm.dense", .none = true},
    {.gguf = "mlm.norm", .none = true},
    {.gguf = "output", .none = true},
    {.gguf = "output.bias", .none = true},
    {.name = "encoder.layer.*.mlp.gated_layers", .gguf = "blk.*.ffn_up", .may_be_absent = true},
    {.name = "encoder.layer.*.mlp.wo", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS, .may_be_absent = true},
    {.name = "encoder.layer.*.mlp.layernorm", .gguf = "blk.*.layer_output_norm", .bias_if = FRIT_HF_ALWAYS, .may_be_absent = true},
    // of models for code
    {.name = "encoder.layer.*.attention.self.layer_norm_q", .gguf = "blk.*.attn_q_norm", .bias_if = FRIT_HF_ALWAYS, .may_be_absent = true},
    {.name = "encoder.layer.*.attention.self.layer_norm_k", .gguf = "blk.*.attn_k_norm", .bias_if = FRIT_HF_ALWAYS, .may_be_absent = true},
    {.name = "encoder.layer.*.layer_norm_1", .gguf = "blk.*.attn_norm_2", .bias_if = FRIT_HF_ALWAYS, .may_be_absent = true},
    {.name = "encoder.layer.*.mlp.up_gated_layer", .gguf = "blk.*.ffn_up", .may_be_absent = true, .rewrite = frit_hf_swap_halves},
    {.name = "encoder.layer.*.mlp.down_layer", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS, .may_be_absent = true},
    {.name = "encoder.layer.*.layer_norm_2", .gguf = "blk.*.layer_output_norm", .bias_if = FRIT_HF_ALWAYS, .may_be_absent = true},
};
// clang-format on

const frit_hf_family frit_hf_bert_alibi = {
    .model_type = "bert",
    .class_name = "JinaBertModel",
    .arch = "jina-bert-v2",
    .prefix = "bert.",
    .ignored = "pooler.|cls.|lm_head.",
    .act = "gelu",
    .fits = has_alibi,
    .shared = &frit_hf_bert_names,
    .own = {NULL, 0, jina_tensors, FRIT_COUNT(jina_tensors)},
    .more = add_jina,
};
