// SPDX-License-Identifier: MIT
// backend/cpu/ops/dispatch.h: assigns rows to experts.
//
// A route names k experts for each row, which are k assignments. Dispatch sorts assignments by expert. The assignments
// to one expert that one kernel multiplies are a group, and their activations are consecutive, as sorted rows:
//
//     route          row 0: 2, 0     row 1: 2, 1     row 2: 0, 2
//     assignments         0  1            2  3            4  5
//     groups         expert 0: 1, 4      expert 1: 3      expert 2: 0, 2, 5
//     sorted rows              0  1                2                3  4  5
//
// With prefill kernels an expert may have two groups. A sequence's assignments to an expert are multiplied by prefill
// kernels if there are FRIT_PREFILL_ASSIGNMENTS or more of them, otherwise by decode kernels, so they do not depend on
// the other sequences. Decode rows of a step that mixes row classes are always multiplied by decode kernels. Groups are
// in the order of their experts, and a row's sum over its experts is added in this order.
#pragma once
#include "backend/cpu/task.h"

typedef struct frit_expert_group {
    int32_t expert;
    int32_t first, n;   // sorted rows; for prefill kernels `first` is a multiple of 16
    bool prefill;
} frit_expert_group;

// The first bytes of its memory; frit_dispatch_make lays out the arrays after it.
typedef struct frit_dispatch {
    frit_expert_group *groups;
    int32_t n_groups, n_assignments;
    int32_t *assignments;   // [sorted rows]: assignment of the row
    int32_t *sorted;        // [assignments]: sorted row of the assignment
    bool *prefill;          // [assignments]: its group is for prefill kernels
} frit_dispatch;

// Bytes, and the most sorted rows, for n_rows rows with n_used of n_experts experts each.
size_t frit_dispatch_bytes(int64_t n_rows, int64_t n_used, int64_t n_experts);
int64_t frit_dispatch_rows(int64_t n_rows, int64_t n_used, int64_t n_experts);
// Dispatches the assignments of the task's route (its last source) to n_experts experts, in task->dispatch.
void frit_dispatch_make(const frit_task *task, int64_t n_experts);
