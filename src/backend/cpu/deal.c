// SPDX-License-Identifier: MIT
// Dealing slots to experts: counting, then two walks over the slots, run by run.
#include "backend/cpu/deal.h"

#include <string.h>

typedef struct count {   // of one expert
    int32_t run;         // slots of the run at hand
    int32_t n[2];        // slots that are multiplied by the kernels for few and for many rows
    int32_t next[2];     // the next place of each
} count;

// A group for few rows and one for many for each expert, but no more than there are slots.
static int64_t max_groups(int64_t n_slots, int64_t n_experts)
{
    return 2 * n_experts < n_slots ? 2 * n_experts : n_slots;
}

int64_t frit_deal_places(int64_t n_rows, int64_t n_used, int64_t n_experts)
{
    const int64_t n_slots = n_rows * n_used, n_wide = n_slots / FRIT_WIDE_SLOTS;
    return n_slots + (FRIT_TILE_ROWS - 1) * ((n_wide < n_experts ? n_wide : n_experts) + 1);
}

size_t frit_deal_bytes(int64_t n_rows, int64_t n_used, int64_t n_experts)
{
    const int64_t n_slots = n_rows * n_used;
    return sizeof(frit_deal) + (size_t)max_groups(n_slots, n_experts) * sizeof(frit_group) +
           (size_t)n_experts * sizeof(count) + (size_t)frit_deal_places(n_rows, n_used, n_experts) * sizeof(int32_t) +
           (size_t)n_slots * (sizeof(int32_t) + sizeof(bool));
}

// The first row of the node behind those of the run that its row t belongs to; rows of the batch are in order.
static int64_t run_end(const frit_task *task, const frit_node *route, int64_t t, int64_t n_rows)
{
    const frit_batch *batch = task->env->batch;
    if (route->rows == FRIT_ROWS_FIXED || batch->n_runs < 2) return n_rows;
    const bool outs = route->rows == FRIT_ROWS_OUTS;
    const int64_t row = outs ? batch->out_rows[t] : t;
    int i = 0;
    while (i + 1 < batch->n_runs && batch->runs[i + 1].first_row <= row) i++;
    if (i + 1 == batch->n_runs) return n_rows;
    const int64_t end = batch->runs[i + 1].first_row;
    if (!outs) return end < n_rows ? end : n_rows;
    while (t < n_rows && batch->out_rows[t] < end) t++;
    return t;
}

// The expert of each slot, and how many slots each expert has; [begin, end) are those of one run.
static void count_run(const float *route, int64_t n_used, int64_t begin, int64_t end, bool may_be_wide, frit_deal *deal,
                      count *counts)
{
    for (int64_t s = begin; s < end; s++) {
        const int32_t e = (int32_t)route[s / n_used * 2 * n_used + s % n_used];
        deal->places[s] = e;
        counts[e].run++;
    }
    for (int64_t s = begin; s < end; s++) {
        count *c = &counts[deal->places[s]];
        deal->wide[s] = may_be_wide && c->run >= FRIT_WIDE_SLOTS;
        c->n[deal->wide[s]]++;
    }
    for (int64_t s = begin; s < end; s++) counts[deal->places[s]].run = 0;
}

static void lay_out_groups(frit_deal *deal, count *counts, int64_t n_experts)
{
    int32_t place = 0;
    for (int64_t e = 0; e < n_experts; e++) {
        for (int wide = 0; wide < 2; wide++) {
            const int32_t n = counts[e].n[wide];
            if (n == 0) continue;
            if (wide) place = (place + FRIT_TILE_ROWS - 1) / FRIT_TILE_ROWS * FRIT_TILE_ROWS;
            counts[e].next[wide] = place;
            deal->groups[deal->n_groups++] = (frit_group){(int32_t)e, place, n, wide};
            place += n;
        }
    }
}

void frit_deal_make(const frit_task *task, int64_t n_experts)
{
    const int source = frit_node_n_own(task->node) - 1;
    const frit_node *route = task->node->src[source];
    const int64_t n_rows = route->shape[0], n_used = route->shape[2], n_slots = n_rows * n_used;
    const bool may_be_wide = task->env->kernels != task->env->narrow;
    frit_deal *deal = task->deal;
    deal->groups = (frit_group *)(void *)(deal + 1);
    deal->n_groups = 0;
    deal->n_slots = (int32_t)n_slots;
    count *counts = (count *)(void *)(deal->groups + max_groups(n_slots, n_experts));
    deal->slots = (int32_t *)(void *)(counts + n_experts);
    deal->places = deal->slots + frit_deal_places(n_rows, n_used, n_experts);
    deal->wide = (bool *)(deal->places + n_slots);

    memset(counts, 0, (size_t)n_experts * sizeof *counts);
    for (int64_t t = 0, end; t < n_rows; t = end) {
        end = run_end(task, route, t, n_rows);
        count_run(task->x[source], n_used, t * n_used, end * n_used, may_be_wide, deal, counts);
    }
    lay_out_groups(deal, counts, n_experts);
    for (int32_t s = 0; s < n_slots; s++) {
        const int32_t place = counts[deal->places[s]].next[deal->wide[s]]++;
        deal->places[s] = place;
        deal->slots[place] = s;
    }
}
