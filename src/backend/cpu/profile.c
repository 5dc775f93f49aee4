// SPDX-License-Identifier: MIT
// The rows of a profile: the name of an action, the bytes it reads, the operations it computes, and the sums.
#include "backend/cpu/ops/dispatch.h"
#include "backend/cpu/ops/fast.h"
#include "backend/cpu/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double min_double(double a, double b)
{
    return a < b ? a : b;
}

// The number of distinct experts of a route, whose matrices are read.
static double count_experts(const frit_task *task)
{
    const int source = frit_node_n_own(task->node) - 1;
    const frit_node *route = task->node->src[source];
    if (task->dispatch) {
        int32_t n = 0;
        for (int32_t g = 0; g < task->dispatch->n_groups; g++)
            n += g == 0 || task->dispatch->groups[g].expert != task->dispatch->groups[g - 1].expert;
        return n;
    }
    return min_double((double)(route->shape[0] * route->shape[2]), (double)task->node->src[1]->tensor->shape[0]);
}

static bool is_experts(const frit_node *node)
{
    return node->op == FRIT_OP_EXPERTS || node->op == FRIT_OP_EXPERTS_GLU || node->op == FRIT_OP_EXPERTS_MIX;
}

// Matrices are read once a run, tables row by row, and experts only if a row has chosen them.
static void count_matrix(const frit_task *task, const frit_tensor *w, frit_profile_row *row)
{
    const frit_node *node = task->node;
    const double n_rows = (double)node->shape[0], n_elems = (double)frit_tensor_n_elems(w);
    if (node->op == FRIT_OP_EMBED) {
        row->n_bytes += n_rows * (double)w->n_bytes / (double)w->shape[0];
    } else if (is_experts(node)) {
        const double n_assignments = n_rows * (double)frit_node_route(node)->shape[2];
        const int64_t n_out = node->op == FRIT_OP_EXPERTS_GLU ? node->experts_glu.n : node->experts.n;
        const double thread = (double)n_out / (double)w->shape[1] / (double)w->shape[0];
        row->n_bytes += count_experts(task) * thread * (double)w->n_bytes;
        row->n_ops += 2 * n_assignments * thread * n_elems;
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
    const uint64_t v_bytes = layer->spec.v_in_k ? 0 : layer->v.row_bytes;
    const double position_bytes = layer->spec.n_head_kv * (double)(layer->k.row_bytes + v_bytes);
    const double ops = 2.0 * (double)task->node->shape[1] * (layer->spec.k_dim + layer->spec.v_dim);
    double window = attend->window > 0 ? attend->window : 1e18;
    if (task->node->op == FRIT_OP_ATTEND_SPARSE) window = (double)task->node->src[2]->shape[1];
    for (int32_t r = 0; r < batch->n_seqs; r++) {
        const frit_seq *seq = &batch->seqs[r];
        if (attend->cross) {
            row->n_bytes += seq->n_source * position_bytes;
            row->n_ops += ops * seq->n_rows * seq->n_source;
            continue;
        }
        row->n_bytes += min_double(seq->n_past + seq->n_rows, window + seq->n_rows) * position_bytes;
        for (int32_t i = 0; i < seq->n_rows; i++) row->n_ops += ops * min_double(seq->n_past + i + 1, window);
    }
    row->type = frit_dtype_get(layer->k.dtype)->name;
}

static void count_matrices(const frit_task *task, frit_profile_row *row)
{
    const frit_node *node = task->node;
    for (int i = 0; i < node->n_src; i++) {
        const frit_node *source = node->src[i] ? frit_node_storage(node->src[i]) : NULL;
        if (!(frit_cpu_ops[node->op].matrices >> i & 1) || !source || source->op != FRIT_OP_WEIGHT) continue;
        if (!row->type[0]) row->type = frit_dtype_get(source->tensor->dtype)->name;
        count_matrix(task, source->tensor, row);
    }
}

void frit_profile_describe(const frit_task *task, frit_task_fn run, char name[40], frit_profile_row *row)
{
    const frit_node *node = task->node;
    const frit_cpu_op *op = &frit_cpu_ops[node->op];
    *row = (frit_profile_row){.type = "", .n_calls = 1};
    const bool brings = run == frit_fast_convert_sorted || run == frit_fast_convert_heads;
    if (brings || run == frit_fast_convert || run == frit_fast_rope_table || run == frit_fast_results) {
        snprintf(name, 40, "%s",
                 run == frit_fast_results      ? "results"
                 : run == frit_fast_rope_table ? "rope table"
                                               : "convert");
        return;
    }
    const bool begins = run == op->begin, ends = run == op->finish;
    int at = snprintf(name, 40, "%s%s", frit_op_get(node->op)->name, begins ? " tiles" : ends ? " merge" : "");
    if (begins || ends) return;
    for (int i = 0; i < task->n_fused && at < 40; i++)
        at += snprintf(name + at, (size_t)(40 - at), "+%s", frit_op_get(task->fused[i].node->op)->name);
    if (node->op == FRIT_OP_ATTEND || node->op == FRIT_OP_ATTEND_SPARSE) count_attend(task, row);
    count_matrices(task, row);
    if (task->up) count_matrices(task->up, row);
}

frit_status frit_profile_start(frit_profile *profile, int n_threads, int n_actions)
{
    const size_t n = (size_t)n_threads * (size_t)n_actions;
    free(profile->times);
    free(profile->threads);
    profile->times = calloc(n + 1, sizeof *profile->times);
    profile->threads = calloc((size_t)n_threads, sizeof *profile->threads);
    profile->n_threads = n_threads;
    profile->n_actions = n_actions;
    if (!profile->times || !profile->threads) return frit_fail_memory(n * sizeof *profile->times, "a profile");
    for (int t = 0; t < n_threads; t++) profile->threads[t].last = -1;
    return FRIT_OK;
}

static frit_profile_time *time_of(const frit_profile *profile, int thread, int i_action)
{
    return &profile->times[(size_t)thread * (size_t)profile->n_actions + (size_t)i_action];
}

void frit_profile_begin(frit_profile *profile, int thread)
{
    frit_profile_thread *t = &profile->threads[thread];
    t->begin_ns = frit_time_ns();
    if (t->last >= 0) time_of(profile, thread, t->last)->wait_ns += t->begin_ns - t->end_ns;
}

void frit_profile_end(frit_profile *profile, int thread, int i_action)
{
    frit_profile_thread *t = &profile->threads[thread];
    t->end_ns = frit_time_ns();
    t->last = i_action;
    time_of(profile, thread, i_action)->run_ns += t->end_ns - t->begin_ns;
}

void frit_profile_add(frit_profile *profile, const char *name, const frit_profile_row *row)
{
    int i = 0;
    while (i < profile->n_rows &&
           (strcmp(profile->rows[i].op, name) != 0 || strcmp(profile->rows[i].type, row->type) != 0))
        i++;
    if (i == FRIT_PROFILE_ROWS) i--;   // more kinds than rows: the last row collects the rest
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
    free(profile->times);
    free(profile->threads);
    free(profile);
}
