// SPDX-License-Identifier: MIT
// Sorting documents by their scores.
#include "common/ranking.h"

#include <stdlib.h>

static int by_score(const void *a, const void *b)
{
    const app_ranked *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

void app_rank(app_ranked *documents, size_t n)
{
    qsort(documents, n, sizeof *documents, by_score);
}
