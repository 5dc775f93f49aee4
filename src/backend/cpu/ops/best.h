// SPDX-License-Identifier: MIT
// backend/cpu/ops/best.h: the n best of a sequence of scores, in a heap of n items with the worst on top.
//
//     frit_best best = {.scores = ..., .ids = ..., .most = n};
//     for (...) frit_best_offer(&best, score, id);
//     frit_best_sort(&best, scratch);   // ids ascend
//
// Most scores lose against the worst at the first comparison, so the cost is little more than reading the scores. Equal
// scores are kept in the order of the partial sorts of libraries, which sift from the bottom.
#pragma once
#include <stdint.h>

typedef struct frit_best {
    float *scores;   // [most]
    int32_t *ids;    // [most]
    int64_t n, most;
} frit_best;

void frit_best_offer(frit_best *best, float score, int32_t id);
void frit_best_sort(frit_best *best, int32_t *scratch);   // scratch [most]; changes the order of scores
