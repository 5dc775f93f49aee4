// SPDX-License-Identifier: MIT
// Model2Vec and potion, which sentence-transformers reads as its module StaticEmbedding: a table of vectors.
#include "format/hf/hf.h"

// Tokens in place of a text's context, which static embeddings do not have.
enum { N_CTX = 32768 };

// Every file has these keys, although a table has no layers.
static frit_status add_static(const frit_hf *hf)
{
    static const struct {
        const char *key;
        frit_hf_kind kind;
        double value;
    } numbers[] = {
        {"context_length", FRIT_HF_TOKENS, N_CTX},
        {"block_count", FRIT_HF_LAYERS, 1},
        {"attention.head_count", FRIT_HF_HEADS, 1},
        {"feed_forward_length", FRIT_HF_WIDTH, 1},
        {"attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, 0},
    };
    for (size_t i = 0; i < FRIT_COUNT(numbers); i++)
        FRIT_TRY(frit_hf_add_number(hf, numbers[i].key, numbers[i].kind, numbers[i].value));
    FRIT_TRY(frit_hf_add_flag(hf, "attention.causal", false));
    return frit_meta_add_bool(&hf->ckpt->meta, "frit.embed.plain_text", true);
}

// Newer files may have a smaller table, and factors of its rows.
static frit_status expect_whole(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    static const char *const others[] = {"mapping", "weights"};
    frit_tensor other;
    (void)is_bias;
    for (size_t i = 0; i < FRIT_COUNT(others); i++)
        if (hf->find(hf, others[i], &other) == FRIT_OK)
            return frit_fail_file(FRIT_E_UNSUPPORTED,
                                  "%s: tensor '%s' beside '%s' is not supported, expected a table with a row for "
                                  "each token",
                                  hf->path, others[i], tensor->name);
    return FRIT_OK;
}

// clang-format off
static const frit_hf_key static_keys[] = {
    {"hidden_dim", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
};

static const frit_hf_tensor static_tensors[] = {
    {.name = "embeddings", .gguf = "token_embd.weight", .whole = true, .may_be_absent = true, .rewrite = expect_whole},
    {.name = "embedding.weight", .gguf = "token_embd.weight", .whole = true, .may_be_absent = true},
};
// clang-format on

const frit_hf_family frit_hf_model2vec = {
    .model_type = "model2vec",
    .class_name = "StaticModel",
    .arch = "static-embedding",
    .act = "none",   // the class has none
    .shared = &frit_hf_no_names,
    .own = {static_keys, FRIT_COUNT(static_keys), static_tensors, FRIT_COUNT(static_tensors)},
    .more = add_static,
};
