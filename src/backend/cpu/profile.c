// SPDX-License-Identifier: MIT
// The rows of a profile: what an action is called, what it reads and calculates, and adding it up.
#include "backend/cpu/fast.h"
#include "backend/cpu/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double min_double(double a, double b)
{
    return a < b ? a : b;
}

// Matrices are read once a run, tables by the row, experts at most once each: how often tokens share one is not known.
static void count_matrix(const frit_node *node, const frit_tensor *w, frit_profile_row *row)
{
    const double n_rows = (double)node->shape[0], n_elems = (double)frit_tensor_n_elems(w);
    if (node->op == FRIT_OP_EMBED) {
        row->n_bytes += n_rows * (double)w->n_bytes / (double)w->shape[0];
    } else if (node->op == FRIT_OP_EXPERTS) {
        const double n_experts = (double)w->shape[0], n_used = n_rows * (double)node->shape[1];
        const double part = (double)node->experts.n / (double)w->shape[1];
        row->n_bytes += min_double(n_used, n_experts) * part * (double)w->n_bytes / n_experts;
        row->n_ops += 2 * n_used * part * n_elems / n_experts;
    } else {
        row->n_bytes += (double)w->n_bytes;
        row->n_ops += 2 * n_rows * n_elems;
    }
}

static void count_attend(const frit_task *task, frit_profile_row *row)
{
    const frit_attend *attend = &task->node->attend;
    const frit_cache_layer *layer = &task->env->cache->layers[attend->layer];
    const frit_batch *batch = task->env->batch;
    const double position_bytes = (double)(layer->k_page_bytes + layer->v_page_bytes) / FRIT_PAGE_TOKENS;
    const double ops = 2.0 * (double)task->node->shape[1] * (layer->spec.k_dim + layer->spec.v_dim);
    const double window = attend->window > 0 ? attend->window : 1e18;
    for (int32_t r = 0; r < batch->n_runs; r++) {
        const frit_run *run = &batch->runs[r];
        row->n_bytes += min_double(run->n_past + run->n_rows, window + run->n_rows) * position_bytes;
        for (int32_t i = 0; i < run->n_rows; i++) row->n_ops += ops * min_double(run->n_past + i + 1, window);
    }
    row->type = frit_dtype_get(layer->dtype)->name;
}

void frit_profile_describe(const frit_task *task, frit_task_fn run, char name[40], frit_profile_row *row)
{
    const frit_node *node = task->node;
    const frit_cpu_op *op = &frit_cpu_ops[node->op];
    *row = (frit_profile_row){.type = "", .n_calls = 1};
    if (run == frit_fast_convert || run == frit_fast_rope_turns) {
        snprintf(name, 40, "%s", run == frit_fast_convert ? "convert" : "rope turns");
        return;
    }
    snprintf(name, 40, "%s%s", frit_op_get(node->op)->name, run == op->finish ? " merge" : "");
    if (run == op->finish) return;
    if (node->op == FRIT_OP_ATTEND) count_attend(task, row);
    for (int i = 0; i < node->n_src; i++) {
        const frit_node *source = node->src[i] ? frit_node_storage(node->src[i]) : NULL;
        if (!(op->matrices >> i & 1) || !source || source->op != FRIT_OP_WEIGHT) continue;
        if (!row->type[0]) row->type = frit_dtype_get(source->tensor->dtype)->name;
        count_matrix(node, source->tensor, row);
    }
}

frit_status frit_profile_reserve(frit_profile *profile, int n_threads, size_t n_actions)
{
    if (profile->n_threads == n_threads && profile->n_notes >= n_actions) return FRIT_OK;
    free(profile->notes);
    profile->notes = calloc((size_t)n_threads * n_actions + 1, sizeof *profile->notes);
    profile->n_notes = profile->notes ? n_actions : 0;
    profile->n_threads = n_threads;
    return profile->notes ? FRIT_OK : frit_fail_memory((size_t)n_threads * n_actions, "a profile");
}

void frit_profile_add(frit_profile *profile, const char *name, const frit_profile_row *row)
{
    int i = 0;
    while (i < profile->n_rows &&
           (strcmp(profile->rows[i].op, name) != 0 || strcmp(profile->rows[i].type, row->type) != 0))
        i++;
    if (i == FRIT_PROFILE_ROWS) i--;   // there are fewer ops and types than that; then all else shares the last row
    frit_profile_row *sum = &profile->rows[i];
    if (i == profile->n_rows) {
        snprintf(profile->names[i], sizeof profile->names[i], "%s", name);
        *sum = (frit_profile_row){.op = profile->names[i], .type = row->type};
        profile->n_rows++;
    }
    sum->n_calls += row->n_calls;
    sum->run_s += row->run_s;
    sum->wait_s += row->wait_s;
    sum->n_bytes += row->n_bytes;
    sum->n_ops += row->n_ops;
}

void frit_profile_free(frit_profile *profile)
{
    if (!profile) return;
    free(profile->notes);
    free(profile);
}
