// SPDX-License-Identifier: MIT
// Dispatches assignments to experts: counts them, then walks the assignments twice, sequence by sequence.
#include "backend/cpu/ops/dispatch.h"

#include <string.h>

typedef struct count {   // counts of one expert
    int32_t run;         // assignments of the current sequence
    int32_t n[2];        // assignments that decode kernels and prefill kernels multiply
    int32_t next[2];     // next sorted row of each group
} count;

// The most groups: two for each expert, decode and prefill, but at most one for each assignment.
static int64_t max_groups(int64_t n_assignments, int64_t n_experts)
{
    return 2 * n_experts < n_assignments ? 2 * n_experts : n_assignments;
}

int64_t frit_dispatch_rows(int64_t n_rows, int64_t n_used, int64_t n_experts)
{
    const int64_t n_assignments = n_rows * n_used, n_prefill = n_assignments / FRIT_PREFILL_ASSIGNMENTS;
    return n_assignments + (FRIT_TILE_ROWS - 1) * ((n_prefill < n_experts ? n_prefill : n_experts) + 1);
}

size_t frit_dispatch_bytes(int64_t n_rows, int64_t n_used, int64_t n_experts)
{
    const int64_t n_assignments = n_rows * n_used;
    return sizeof(frit_dispatch) + (size_t)max_groups(n_assignments, n_experts) * sizeof(frit_expert_group) +
           (size_t)n_experts * sizeof(count) + (size_t)frit_dispatch_rows(n_rows, n_used, n_experts) * sizeof(int32_t) +
           (size_t)n_assignments * (sizeof(int32_t) + sizeof(bool));
}

// The end of the rows of the sequence of row t of the node.
static int64_t run_end(const frit_task *task, const frit_node *route, int64_t t, int64_t n_rows)
{
    const frit_batch *batch = task->env->batch;
    if (route->rows == FRIT_SHAPE_FIXED || batch->n_seqs < 2) return n_rows;
    const bool outs = route->rows == FRIT_SHAPE_OUTS;
    const int64_t row = outs ? batch->out_rows[t] : t;
    int i = 0;
    while (i + 1 < batch->n_seqs && batch->seqs[i + 1].first_row <= row) i++;
    if (i + 1 == batch->n_seqs) return n_rows;
    const int64_t end = batch->seqs[i + 1].first_row;
    if (!outs) return end < n_rows ? end : n_rows;
    while (t < n_rows && batch->out_rows[t] < end) t++;
    return t;
}

// Counts the assignments of each expert. [begin, end) are the assignments of one sequence.
static void count_run(const float *route, int64_t n_used, int64_t begin, int64_t end, bool may_prefill,
                      frit_dispatch *dispatch, count *counts)
{
    for (int64_t s = begin; s < end; s++) {
        const int32_t e = (int32_t)route[s / n_used * 2 * n_used + s % n_used];
        dispatch->sorted[s] = e;
        counts[e].run++;
    }
    for (int64_t s = begin; s < end; s++) {
        count *c = &counts[dispatch->sorted[s]];
        dispatch->prefill[s] = may_prefill && c->run >= FRIT_PREFILL_ASSIGNMENTS;
        c->n[dispatch->prefill[s]]++;
    }
    for (int64_t s = begin; s < end; s++) counts[dispatch->sorted[s]].run = 0;
}

static void lay_out_groups(frit_dispatch *dispatch, count *counts, int64_t n_experts)
{
    int32_t row = 0;
    for (int64_t e = 0; e < n_experts; e++) {
        for (int prefill = 0; prefill < 2; prefill++) {
            const int32_t n = counts[e].n[prefill];
            if (n == 0) continue;
            if (prefill) row = (row + FRIT_TILE_ROWS - 1) / FRIT_TILE_ROWS * FRIT_TILE_ROWS;
            counts[e].next[prefill] = row;
            dispatch->groups[dispatch->n_groups++] = (frit_expert_group){(int32_t)e, row, n, prefill};
            row += n;
        }
    }
}

void frit_dispatch_make(const frit_task *task, int64_t n_experts)
{
    const int source = frit_node_n_own(task->node) - 1;
    const frit_node *route = task->node->src[source];
    const int64_t n_rows = route->shape[0], n_used = route->shape[2], n_assignments = n_rows * n_used;
    const bool may_prefill = task->env->kernels != task->env->decode_kernels;
    frit_dispatch *dispatch = task->dispatch;
    dispatch->groups = (frit_expert_group *)(void *)(dispatch + 1);
    dispatch->n_groups = 0;
    dispatch->n_assignments = (int32_t)n_assignments;
    count *counts = (count *)(void *)(dispatch->groups + max_groups(n_assignments, n_experts));
    dispatch->assignments = (int32_t *)(void *)(counts + n_experts);
    dispatch->sorted = dispatch->assignments + frit_dispatch_rows(n_rows, n_used, n_experts);
    dispatch->prefill = (bool *)(dispatch->sorted + n_assignments);

    memset(counts, 0, (size_t)n_experts * sizeof *counts);
    const int64_t n_decode = frit_n_decode_rows(task->env, route);
    for (int64_t t = 0, end; t < n_rows; t = end) {
        end = run_end(task, route, t, n_rows);
        count_run(task->x[source], n_used, t * n_used, end * n_used, may_prefill && t >= n_decode, dispatch, counts);
    }
    lay_out_groups(dispatch, counts, n_experts);
    for (int32_t s = 0; s < n_assignments; s++) {
        const int32_t row = counts[dispatch->sorted[s]].next[dispatch->prefill[s]]++;
        dispatch->sorted[s] = row;
        dispatch->assignments[row] = s;
    }
}
