// SPDX-License-Identifier: MIT
// engine/session/pooling.h: how the hidden states of a text become one vector.
//
//     FRIT_TRY(frit_pooling_of(&list, model, "cls+mean"));            NULL: what the model's files say
//     FRIT_TRY(frit_pooler_init(&pooler, &list, n_embd));
//     for (i = 0; i < n_rows; i++) frit_pooler_add(&pooler, i, row);
//     frit_pooler_finish(&pooler, n_rows);                            pooler.values [list.n * n_embd]
#pragma once
#include "engine/model/model.h"

typedef enum frit_pooling {   // the first ones are numbered as in the metadata ARCH.pooling_type
    FRIT_POOLING_NONE,
    FRIT_POOLING_MEAN,
    FRIT_POOLING_CLS,
    FRIT_POOLING_LAST,
    FRIT_POOLING_RANK,
    FRIT_POOLING_MAX,
    FRIT_POOLING_MEAN_SQRT_LEN,   // the sum, divided by the root of the number of tokens
    FRIT_POOLING_WEIGHTED_MEAN,   // the weight of token i is i + 1
    FRIT_POOLING_SPLADE,          // the largest log(1 + max(x, 0)) of the tokens' logits
    FRIT_POOLING_SPLADE_SUM,      // the sum of log(1 + max(x, 0))
    FRIT_POOLING_COUNT,
} frit_pooling;

enum { FRIT_POOLING_MOST = 6 };

typedef struct frit_pooling_list {   // vectors that are concatenated in this order
    frit_pooling kinds[FRIT_POOLING_MOST];
    int n;
} frit_pooling_list;

// Parses names with '+' between them; NULL: the model's default. FRIT_E_INVALID for unknown names, or kinds that give
// no vector of n_embd numbers beside others.
frit_status frit_pooling_of(frit_pooling_list *list, const frit_model *model, const char *names);
// Writes the model's default, as frit_pooling_of reads it. FRIT_E_FORMAT for unknown names in its file.
frit_status frit_model_pooling(const frit_model *model, char names[96]);
static inline bool frit_pooling_is(const frit_pooling_list *list, frit_pooling kind)
{
    return list->n == 1 && list->kinds[0] == kind;
}
static inline bool frit_pooling_is_sparse(const frit_pooling_list *list)
{
    return frit_pooling_is(list, FRIT_POOLING_SPLADE) || frit_pooling_is(list, FRIT_POOLING_SPLADE_SUM);
}

typedef struct frit_pooler {
    frit_pooling_list list;
    bool log_twice;   // log(1 + log(1 + max(x, 0))) in SPLADE
    size_t width;     // numbers of a row
    double *sums;     // [list.n, width]
    float *values;    // [list.n, width]
} frit_pooler;

frit_status frit_pooler_init(frit_pooler *pooler, const frit_pooling_list *list, const frit_model *model);
void frit_pooler_deinit(frit_pooler *pooler);
void frit_pooler_reset(frit_pooler *pooler);
void frit_pooler_add(frit_pooler *pooler, size_t i, const float *row);   // row i of the text
void frit_pooler_finish(frit_pooler *pooler, size_t n_rows);
