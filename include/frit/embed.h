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
    // The pooling of an item's hidden states to one vector: "mean", "cls" (the first token), "last", "max",
    // "mean_sqrt_len" (the sum divided by the root of the number of tokens), "weighted_mean" (token i has the weight
    // i + 1), or several of these joined by "+", whose vectors are concatenated. The model's dense layers follow.
    // "splade" and "splade_sum" give a number for each token of the vocabulary, most of them 0, by a masked-LM head.
    // "rank" gives the scores of the model's classifier, "none" a vector for each token. NULL: the pooling that the
    // model's files name, otherwise mean for encoders and last for other models.
    const char *pooling;
    // "l2": length 1, "l1": absolute values sum to 1, "max": the largest absolute value is 1, "none". NULL: "l2", or
    // "none" for scores and splade.
    const char *normalize;
    int32_t n_dims;   // keep the first n_dims numbers of each vector, before normalization; 0: as the model's files say
    // The model's prompt that is put before each text (frit_embed_prompt); NULL: its default prompt, if it has one.
    // Items that are tokens get none.
    const char *prompt_name;
    uint64_t reserved[7];
} frit_embed_options;

typedef struct frit_embed_item {   // a text, tokenized with FRIT_TEXT_SPECIAL; or tokens
    const char *text;
    size_t n_bytes;
    const frit_token *tokens;   // NULL: the text is used
    size_t n_tokens;
    uint64_t reserved[8];
} frit_embed_item;

// Receives a vector of n numbers, borrowed for the call. It is the item's vector, or with pooling "none" the vector of
// token i of the item (otherwise i is 0). Items may end in any order. Must not change sessions or start a step.
typedef void (*frit_embed_fn)(void *ctx, size_t item, size_t i, const float *values, size_t n);

// Embeds the items in sessions of its own, many in one step if the batch and the cache have room; queued tokens of
// other sessions run too. Works for every kind of model. FRIT_E_INVALID for an item without tokens or longer than the
// context, ids outside the vocabulary, unknown names, or n_dims above the size of a vector; FRIT_E_LIMIT if other
// sessions fill the cache; FRIT_E_UNSUPPORTED for "rank" without a classifier and
// "splade" without a masked-LM head. Items that ended before a failure have
// been passed to the function.
FRIT_API frit_status frit_embed_texts(frit_engine *engine, const frit_embed_item *items, size_t n_items,
                                      const frit_embed_options *options, frit_embed_fn row, void *row_ctx);
// Finds the text that the model's files want before texts of a kind, such as "query" or "document". NULL: the default,
// which is empty in most models. The text lives as long as the model. FRIT_E_INVALID, with the names that there are, if
// the model has no such prompt.
FRIT_API frit_status frit_embed_prompt(const frit_model *model, const char *name, const char **text, size_t *n_bytes);
// Cuts the tokens of a text to `most` (0: no limit), and to the number that the model's files name if that is less.
// Special tokens at the end of every text stay. frit_embed_texts cuts texts to the number of the files; items that are
// tokens stay whole.
FRIT_API frit_status frit_embed_cut(const frit_model *model, size_t most, frit_token *tokens, size_t *n_tokens);
// Sets *n to the size of the vectors that frit_embed_texts gives with these options. Fails as frit_embed_texts would.
FRIT_API frit_status frit_embed_width(const frit_model *model, const frit_embed_options *options, size_t *n);

// ---------------------------------------------------------------------------------------- reranking

typedef struct frit_rerank_options {
    bool raw_scores;   // true: the classifier's output; false: a number from 0 to 1 (its logistic function)
    uint64_t reserved[8];
} frit_rerank_options;

// Scores documents by how well they answer the query, with a model whose classifier reads both at once; a higher score
// is better. frit_rerank_tokenize makes the prompt of the texts. A document may also be the tokens of the whole prompt;
// the query is then ignored. If the classifier has several scores (decoders used as rerankers), the result is the
// probability of the first one. Runs and fails as frit_embed_texts; FRIT_E_UNSUPPORTED without a classifier. scores:
// [n_documents].
FRIT_API frit_status frit_rerank_texts(frit_engine *engine, const char *query, size_t n_query_bytes,
                                       const frit_embed_item *documents, size_t n_documents,
                                       const frit_rerank_options *options, float *scores);
// Makes the tokens that the model reads: by the template for it in the model's file (tokenizer.chat_template.rerank),
// otherwise both texts with the special tokens of a pair. Texts never become control tokens. Limits as in
// frit_tokenize.
FRIT_API frit_status frit_rerank_tokenize(const frit_model *model, const char *query, size_t n_query_bytes,
                                          const char *document, size_t n_document_bytes, frit_token *tokens,
                                          size_t capacity, size_t *n_tokens);

#ifdef __cplusplus
}
#endif
#endif
