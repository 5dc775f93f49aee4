// SPDX-License-Identifier: MIT
// backend/cpu/ops/dispatch.h: which rows each expert multiplies.
//
// A route names k experts for each row: these are assignments. Dispatch sorts them by expert. Assignments to one expert
// that the same kernel multiplies are a group, and their activations lie one after the other, as sorted rows:
//
//     route          row 0: 2, 0     row 1: 2, 1     row 2: 0, 2
//     assignments         0  1            2  3            4  5
//     groups         expert 0: 1, 4      expert 1: 3      expert 2: 0, 2, 5
//     sorted rows              0  1                2                3  4  5
//
// With prefill kernels an expert may have two groups. A sequence's assignments to an expert are multiplied by prefill
// kernels if there are FRIT_PREFILL_ASSIGNMENTS or more of them, otherwise by decode kernels, so they do not depend on
// the other sequences. Decode rows of a step that mixes row classes are always multiplied by decode kernels. Groups
// come in the order of their experts, and a row's sum over its experts is made in this order.
#pragma once
#include "backend/cpu/task.h"

typedef struct frit_expert_group {
    int32_t expert;
    int32_t first, n;   // sorted rows; the first of those for the prefill kernels is a multiple of 16
    bool prefill;
} frit_expert_group;

// At the front of its own memory, which frit_dispatch_make lays out.
typedef struct frit_dispatch {
    frit_expert_group *groups;
    int32_t n_groups, n_assignments;
    int32_t *assignments;   // [sorted rows]: the assignment of each
    int32_t *sorted;        // [assignments]: the sorted row of each
    bool *prefill;          // [assignments]: whether its group is
} frit_dispatch;

// For n_rows rows by n_used of n_experts experts.
size_t frit_dispatch_bytes(int64_t n_rows, int64_t n_used, int64_t n_experts);
int64_t frit_dispatch_rows(int64_t n_rows, int64_t n_used, int64_t n_experts);   // at most
// Dispatches the assignments of the task's route (its last source) to n_experts experts, in task->dispatch.
void frit_dispatch_make(const frit_task *task, int64_t n_experts);
