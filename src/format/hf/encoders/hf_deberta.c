// SPDX-License-Identifier: MIT
// DeBERTa v2 and v3, with both terms of disentangled attention and logarithmic buckets of distances.
#include "format/hf/encoders/hf_encoders.h"

// pos_att_type is a list, or text with '|' between the names.
static bool has_term(const frit_hf *hf, const char *term)
{
    const json_t *types = json_object_get(hf->config, "pos_att_type"), *item;
    const char *text = json_string_value(types);
    size_t i;
    json_array_foreach(types, i, item)
    {
        const char *name = json_string_value(item);
        if (name && strcmp(name, term) == 0) return true;
    }
    return text && strstr(text, term);
}

static frit_status expect_text(const frit_hf *hf, const char *name, const char *value)
{
    const char *text = json_string_value(json_object_get(hf->config, name));
    if (text && strcmp(text, value) == 0) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %s is '%.40s', only '%s' is supported", hf->path, name,
                          text ? text : "no text", value);
}

static frit_status expect_true(const frit_hf *hf, const char *name)
{
    if (json_is_true(json_object_get(hf->config, name))) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %s is not true, only true is supported", hf->path, name);
}

static frit_status check_terms(const frit_hf *hf)
{
    FRIT_TRY(frit_hf_expect(hf, "conv_kernel_size", 0));
    FRIT_TRY(expect_true(hf, "relative_attention"));
    FRIT_TRY(expect_true(hf, "share_att_key"));
    FRIT_TRY(expect_text(hf, "norm_rel_ebd", "layer_norm"));
    if (frit_hf_is_classifier(hf)) FRIT_TRY(expect_text(hf, "pooler_hidden_act", "gelu"));
    if (has_term(hf, "c2p") && has_term(hf, "p2c")) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: pos_att_type lacks a term, expected c2p and p2c", hf->path);
}

// Numbers below 1 mean that the key is not set.
static frit_status get_positive(const frit_hf *hf, const char *name, double *out)
{
    const json_t *value = json_object_get(hf->config, name);
    if (json_is_integer(value) && json_integer_value(value) < 1) return FRIT_OK;
    return frit_hf_get_number(hf, hf->config, "", name, FRIT_HF_TOKENS, out);
}

static frit_status add_deberta(const frit_hf *hf)
{
    const double n_embd = frit_hf_written(hf, "embedding_length");
    double n_buckets = 0, distance = frit_hf_written(hf, "context_length");
    FRIT_TRY(check_terms(hf));
    if (json_object_get(hf->config, "embedding_size")) FRIT_TRY(frit_hf_expect(hf, "embedding_size", n_embd));
    FRIT_TRY(get_positive(hf, "position_buckets", &n_buckets));
    FRIT_TRY(get_positive(hf, "max_relative_positions", &distance));
    if (n_buckets < 4 || distance <= n_buckets || distance > 1 << 16)
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: position_buckets is %.0f for distances up to %.0f, expected 4 or more and less than "
                              "the distances, which end at 65536",
                              hf->path, n_buckets, distance);
    FRIT_TRY(frit_hf_add_number(hf, "attention.relative_buckets_count", FRIT_HF_COUNT, 2 * n_buckets));
    FRIT_TRY(frit_meta_add_u64(&hf->ckpt->meta, "frit.attention.relative_distance", (uint64_t)distance));
    return frit_hf_add_encoder(hf);
}

// clang-format off
static const frit_hf_tensor deberta_tensors[] = {
    {.name = "embeddings.word_embeddings", .gguf = "token_embd"},
    {.name = "embeddings.token_type_embeddings", .gguf = "token_types", .may_be_absent = true},
    {.name = "embeddings.position_embeddings", .gguf = "position_embd", .may_be_absent = true},
    {.name = "embeddings.LayerNorm", .gguf = "token_embd_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.rel_embeddings", .gguf = "rel_embd"},
    {.name = "encoder.LayerNorm", .gguf = "rel_embd_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.attention.self.query_proj", .gguf = "blk.*.attn_q", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.attention.self.key_proj", .gguf = "blk.*.attn_k", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.attention.self.value_proj", .gguf = "blk.*.attn_v", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.attention.output.dense", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.attention.output.LayerNorm", .gguf = "blk.*.attn_output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.intermediate.dense", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.output.dense", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    {.name = "encoder.layer.*.output.LayerNorm", .gguf = "blk.*.layer_output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "pooler.dense", .gguf = "cls", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true, .of_classifier = true},
    {.name = "classifier", .gguf = "cls.output", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true, .of_classifier = true},
};
// clang-format on

const frit_hf_family frit_hf_deberta_v2 = {
    .model_type = "deberta-v2",
    .class_name = "DebertaV2Model",
    .arch = "deberta",
    .prefix = "deberta.",
    .ignored = "pooler.|classifier.|cls.|lm_predictions.|mask_predictions.|qa_outputs.|embeddings.position_ids",
    .act = FRIT_HF_ENCODER_ACTS,
    .shared = &frit_hf_encoder,
    .own = {NULL, 0, deberta_tensors, FRIT_COUNT(deberta_tensors)},
    .more = add_deberta,
};
