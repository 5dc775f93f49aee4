// SPDX-License-Identifier: MIT
// frit/embed.h: embeddings of texts, and scores of documents for a query.
#ifndef FRIT_EMBED_H
#define FRIT_EMBED_H

#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---------------------------------------------------------------------------------------- embeddings

typedef struct frit_embed_options {
    // How an item's hidden states become one vector: "mean", "cls" (the first token's), "last", "rank" (the scores of
    // the model's classifier), or "none": a vector for each token. NULL: the pooling that the model's files name, else
    // mean for encoders and last for others.
    const char *pooling;
    // "l2": length 1, "l1": absolute values sum to 1, "max": the largest absolute value is 1, "none". NULL: "l2", or
    // "none" for scores.
    const char *normalize;
    int32_t n_dims;   // keep the first n_dims numbers of each vector, before normalization; 0: all
    uint64_t reserved[8];
} frit_embed_options;

typedef struct frit_embed_item {   // a text, tokenized with FRIT_TEXT_SPECIAL; or tokens as they are
    const char *text;
    size_t n_bytes;
    const frit_token *tokens;   // NULL: the text counts
    size_t n_tokens;
    uint64_t reserved[8];
} frit_embed_item;

// Receives a vector of n numbers, borrowed for the call: an item's, or with pooling "none" that of token i of the item
// (otherwise i is 0). Items may end in any order. Must not change sessions or start a step.
typedef void (*frit_embed_fn)(void *ctx, size_t item, size_t i, const float *values, size_t n);

// Embeds the items, many in one step as far as the batch and the cache have room, in sessions of its own; other
// sessions of the engine run what they have queued. Works for every kind of model. FRIT_E_INVALID for an item
// without tokens or longer than the context, ids outside the vocabulary, unknown names, or more numbers than a
// vector has; FRIT_E_LIMIT where other sessions fill the cache; FRIT_E_UNSUPPORTED for "rank" without a head.
// Items that ended before a failure have been handed out.
FRIT_API frit_status frit_embed_texts(frit_engine *engine, const frit_embed_item *items, size_t n_items,
                                      const frit_embed_options *options, frit_embed_fn row, void *row_ctx);
// *n: numbers of each vector that frit_embed_texts gives with these options. Fails as it would for them.
FRIT_API frit_status frit_embed_width(const frit_model *model, const frit_embed_options *options, size_t *n);

// ---------------------------------------------------------------------------------------- reranking

typedef struct frit_rerank_options {
    bool raw_scores;   // what the model's head gives; false: a number from 0 to 1 (the logistic function of it)
    uint64_t reserved[8];
} frit_rerank_options;

// How well each document answers the query, by a model with a classification head that reads both at once: higher is
// better. The texts become one prompt as frit_rerank_tokenize says; a document may also be that prompt's tokens, and
// the query does not count then. Of a head with several scores (decoders made rerankers) it is the first one's
// probability. Runs and fails as frit_embed_texts; FRIT_E_UNSUPPORTED without such a head. scores: [n_documents].
FRIT_API frit_status frit_rerank_texts(frit_engine *engine, const char *query, size_t n_query_bytes,
                                       const frit_embed_item *documents, size_t n_documents,
                                       const frit_rerank_options *options, float *scores);
// The tokens that the model reads: by the template for it in the model's file (tokenizer.chat_template.rerank), or else
// both texts with the special tokens of a pair. Texts never become control tokens. Limits as in frit_tokenize.
FRIT_API frit_status frit_rerank_tokenize(const frit_model *model, const char *query, size_t n_query_bytes,
                                          const char *document, size_t n_document_bytes, frit_token *tokens,
                                          size_t capacity, size_t *n_tokens);

#ifdef __cplusplus
}
#endif
#endif
