// SPDX-License-Identifier: MIT
// Reranking: scores how well documents answer a query, by the classifier of a model that reads both at once.
//
// A model's file may have a template for both (tokenizer.chat_template.rerank, with {query} and {document}). Otherwise
// they are encoded as an encoder's pair of texts: [CLS] query [SEP] document [SEP].
#include "engine/engine.h"
#include "engine/session/classifier.h"

#include <math.h>
#include <stdlib.h>

// ------------------------------------------------------------------------------- tokens

static frit_status add_text(const frit_model *model, frit_str text, frit_ids *ids)
{
    return frit_tokenizer_encode_as(model->tokenizer, text, &(frit_encoding){0}, ids);
}

static frit_status encode_pair(const frit_model *model, frit_str query, frit_str document, frit_ids *ids)
{
    const frit_vocab *vocab = &model->vocab;
    for (int32_t i = 0; i < vocab->n_prefix; i++) frit_ids_push(ids, vocab->prefix[i]);
    FRIT_TRY(add_text(model, query, ids));
    for (int32_t i = 0; i < vocab->n_suffix; i++) frit_ids_push(ids, vocab->suffix[i]);
    if (vocab->pair_sep >= 0) frit_ids_push(ids, vocab->pair_sep);
    FRIT_TRY(add_text(model, document, ids));
    for (int32_t i = 0; i < vocab->n_suffix; i++) frit_ids_push(ids, vocab->suffix[i]);
    return FRIT_OK;
}

// Replaces {query} and {document} in the template. Only text of the template makes control tokens.
static frit_status encode_template(const frit_model *model, frit_str source, frit_str query, frit_str document,
                                   frit_ids *ids)
{
    const struct {
        const char *name;
        frit_str text;
    } parts[] = {{"{query}", query}, {"{document}", document}};
    frit_buf prompt = {0};
    frit_spans untrusted = {0};
    for (size_t i = 0; i < source.len;) {
        const frit_str rest = {source.ptr + i, source.len - i};
        size_t k = 0;
        while (k < FRIT_COUNT(parts) && !frit_str_starts(rest, parts[k].name)) k++;
        if (k == FRIT_COUNT(parts)) {
            frit_buf_char(&prompt, source.ptr[i++]);
            continue;
        }
        i += strlen(parts[k].name);
        frit_buf_append(&prompt, parts[k].text.ptr, parts[k].text.len);
        if (parts[k].text.len > 0) frit_spans_push(&untrusted, prompt.len - parts[k].text.len, prompt.len);
    }
    frit_status status = FRIT_OK;
    const frit_encoding how = frit_encoding_of(FRIT_TEXT_PARSE_SPECIAL, &untrusted, NULL);
    if (prompt.failed || untrusted.failed) status = frit_fail_memory(prompt.len, "a prompt");
    if (status == FRIT_OK)
        status = frit_tokenizer_encode_as(model->tokenizer, (frit_str){prompt.data ? prompt.data : "", prompt.len},
                                          &how, ids);
    frit_buf_free(&prompt);
    frit_spans_free(&untrusted);
    return status;
}

static frit_status encode_texts(const frit_model *model, frit_str query, frit_str document, frit_ids *ids)
{
    frit_str source;
    bool found = false;
    if (!model->tokenizer)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: has no vocabulary; reranking needs one", model->info.path);
    FRIT_TRY(frit_meta_get_text(&model->ckpt->meta, "tokenizer.chat_template.rerank", &source, &found));
    frit_status status =
        found ? encode_template(model, source, query, document, ids) : encode_pair(model, query, document, ids);
    if (status == FRIT_E_LIMIT) status = FRIT_E_INVALID;   // to the caller FRIT_E_LIMIT means a larger buffer
    return status == FRIT_OK && ids->failed ? frit_fail_memory(ids->n * sizeof(frit_token), "tokens") : status;
}

frit_status frit_rerank_tokenize(const frit_model *model, const char *query, size_t n_query_bytes, const char *document,
                                 size_t n_document_bytes, frit_token *tokens, size_t capacity, size_t *n_tokens)
{
    FRIT_REQUIRE(n_tokens);
    *n_tokens = 0;
    FRIT_REQUIRE(model);
    FRIT_REQUIRE_ITEMS(query, n_query_bytes);
    FRIT_REQUIRE_ITEMS(document, n_document_bytes);
    FRIT_REQUIRE_ITEMS(tokens, capacity);
    frit_ids ids = {0};
    frit_status status =
        encode_texts(model, (frit_str){query, n_query_bytes}, (frit_str){document, n_document_bytes}, &ids);
    if (status == FRIT_OK) {
        *n_tokens = ids.n;
        const size_t n = ids.n < capacity ? ids.n : capacity;
        if (n > 0) memcpy(tokens, ids.items, n * sizeof *tokens);
        if (ids.n > capacity)
            status = frit_fail(FRIT_E_LIMIT, "the texts have %zu tokens, there is room for %zu", ids.n, capacity);
    }
    frit_ids_free(&ids);
    return status;
}

// ------------------------------------------------------------------------------- scores

static frit_status check_classifier(const frit_model *model)
{
    frit_classifier classifier;
    FRIT_TRY(frit_classifier_find(&classifier, model));
    if (classifier.n_scores == 1 || !model->arch->is_encoder) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: its classification head has %lld scores; a reranker has one",
                          model->info.path, (long long)classifier.n_scores);
}

typedef struct scoring {
    float *scores;
    size_t n_scores;   // of the classifier
    bool raw;
} scoring;

static void store_score(void *ctx, size_t item, size_t i, const float *values, size_t n)
{
    const scoring *s = ctx;
    (void)i;
    const bool is_probability = n > 1;   // the first of several scores is the probability of relevance
    s->scores[item] = s->raw || is_probability ? values[0] : (float)(1 / (1 + exp(-(double)values[0])));
}

static frit_status score_pairs(frit_engine *engine, const frit_embed_item *pairs, size_t n, bool raw, float *scores)
{
    const frit_embed_options options = {.pooling = "rank", .normalize = "none"};
    scoring s = {.scores = scores, .raw = raw};
    return frit_embed_texts(engine, pairs, n, &options, store_score, &s);
}

frit_status frit_rerank_texts(frit_engine *engine, const char *query, size_t n_query_bytes,
                              const frit_embed_item *documents, size_t n_documents, const frit_rerank_options *options,
                              float *scores)
{
    FRIT_REQUIRE(engine);
    FRIT_REQUIRE_ITEMS(query, n_query_bytes);
    FRIT_REQUIRE_ITEMS(documents, n_documents);
    FRIT_REQUIRE_UNUSED(options);
    FRIT_REQUIRE_UNUSED_ITEMS(documents, n_documents);
    FRIT_REQUIRE_ITEMS(scores, n_documents);
    const frit_model *model = engine->model;
    FRIT_TRY(check_classifier(model));
    frit_ids *ids = calloc(n_documents + 1, sizeof *ids);
    frit_embed_item *pairs = calloc(n_documents + 1, sizeof *pairs);
    frit_status status =
        ids && pairs ? FRIT_OK : frit_fail_memory((n_documents + 1) * (sizeof *ids + sizeof *pairs), "documents");
    for (size_t i = 0; i < n_documents && status == FRIT_OK; i++) {
        const frit_embed_item *d = &documents[i];
        pairs[i] = (frit_embed_item){.tokens = d->tokens, .n_tokens = d->n_tokens};
        if (d->tokens) continue;
        status = encode_texts(model, (frit_str){query ? query : "", n_query_bytes}, (frit_str){d->text, d->n_bytes},
                              &ids[i]);
        pairs[i] = (frit_embed_item){.tokens = ids[i].items, .n_tokens = ids[i].n};
    }
    if (status == FRIT_OK) status = score_pairs(engine, pairs, n_documents, options && options->raw_scores, scores);
    for (size_t i = 0; ids && i < n_documents; i++) frit_ids_free(&ids[i]);
    free(ids);
    free(pairs);
    return status;
}
