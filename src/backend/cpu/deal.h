// SPDX-License-Identifier: MIT
// backend/cpu/deal.h: which rows each expert multiplies.
//
// A route names k experts for each row: these are slots. Dealing sorts them by expert. Slots of one expert that the
// same kernel multiplies are a group, and their activations lie one behind the other, in places:
//
//     route      row 0: 2, 0     row 1: 2, 1     row 2: 0, 2
//     slots      0       1       2       3       4       5
//     groups     expert 0: slots 1, 4     expert 1: slot 3     expert 2: slots 0, 2, 5
//     places               0  1                     2                     3  4  5
//
// In nodes of many rows an expert may have two groups. What a run of the batch gives to an expert is multiplied by the
// kernels for many rows where it is FRIT_WIDE_SLOTS or more, by those for few rows otherwise: so it does not depend on
// the other runs. Groups come in the order of their experts, and a row's sum over its experts is made in this order.
#pragma once
#include "backend/cpu/task.h"

enum { FRIT_WIDE_SLOTS = 16 };

typedef struct frit_group {
    int32_t expert;
    int32_t first, n;   // places; the first of wide ones is a multiple of 16
    bool wide;
} frit_group;

// At the front of its own memory, which frit_deal_make lays out.
typedef struct frit_deal {
    frit_group *groups;
    int32_t n_groups, n_slots;
    int32_t *slots;    // [places]: what is in each
    int32_t *places;   // [slots]
    bool *wide;        // [slots]: whether its group is
} frit_deal;

// For n_rows rows by n_used of n_experts experts.
size_t frit_deal_bytes(int64_t n_rows, int64_t n_used, int64_t n_experts);
int64_t frit_deal_places(int64_t n_rows, int64_t n_used, int64_t n_experts);   // at most
// Deals the slots of the task's route (its last source) to n_experts experts, in task->deal.
void frit_deal_make(const frit_task *task, int64_t n_experts);
