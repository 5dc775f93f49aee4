// SPDX-License-Identifier: MIT
// backend/cpu/ops/best.h: the n best of many scores, one after the other, in memory for n: a heap with the worst on
// top.
//
//     frit_best best = {.scores = ..., .ids = ..., .most = n};
//     for (...) frit_best_offer(&best, score, id);
//     frit_best_sort(&best, scratch);   // ids ascend
//
// Most scores lose against the worst at the first look, so many cost little more than reading them. Which of equals
// stay is what falls out of sifting from the bottom, as libraries' partial sorts do.
#pragma once
#include <stdint.h>

typedef struct frit_best {
    float *scores;   // [most]
    int32_t *ids;    // [most]
    int64_t n, most;
} frit_best;

void frit_best_offer(frit_best *best, float score, int32_t id);
void frit_best_sort(frit_best *best, int32_t *scratch);   // scratch [most]; scores are not kept
