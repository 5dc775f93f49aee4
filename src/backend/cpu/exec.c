// SPDX-License-Identifier: MIT
// Running executables: phases of pieces on all threads, and their profile.
#include "backend/cpu/exec.h"
#include "backend/cpu/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct walk {
    frit_exec *exec;
    frit_profile *profile;   // NULL: nobody counts
} walk;

static int open_phase(void *ctx, int i)
{
    frit_exec *exec = ((const walk *)ctx)->exec;
    const frit_phase *p = &exec->phases[i];
    int n = 0;
    for (int k = p->first; k < p->first + p->n; k++) {
        frit_action *a = &exec->actions[k];
        const int wanted = a->pieces ? a->pieces(&a->task) : 0, room = FRIT_WALK_MAX_PIECES / p->n;
        n += a->n_pieces = wanted < room ? wanted : room;
    }
    exec->n_open += n > 0;
    return n;
}

// One action, and all that follow it, with a share of its pieces.
static void run_share(const walk *w, int k, frit_share share)
{
    for (; k != FRIT_NO_ACTION; k = w->exec->actions[k].follower) {
        const frit_action *a = &w->exec->actions[k];
        if (w->profile) frit_profile_begin(w->profile, share.thread);
        a->run(&a->task, share);
        if (w->profile) frit_profile_end(w->profile, share.thread, k);
    }
}

static void work_on_phase(void *ctx, int i, int begin, int end, int part)
{
    const walk *w = ctx;
    const frit_phase *p = &w->exec->phases[i];
    for (int k = p->first; k < p->first + p->n && end > 0; k++) {
        const frit_action *a = &w->exec->actions[k];
        const int first = begin > 0 ? begin : 0, last = end < a->n_pieces ? end : a->n_pieces;
        if (first < last) run_share(w, k, (frit_share){first, last, a->n_pieces, part});
        begin -= a->n_pieces;
        end -= a->n_pieces;
    }
}

// Adds the notes of a run that took so long to the rows of their kinds.
static void add_up(frit_profile *profile, const frit_exec *exec, uint64_t run_ns)
{
    const double scale = 1e-9 / profile->n_threads;
    double rest = 1e-9 * (double)run_ns;
    for (int i = 0; i < exec->n_actions; i++) {
        frit_profile_row row;
        char name[40];
        frit_profile_describe(&exec->actions[i].task, exec->actions[i].run, name, &row);
        for (int t = 0; t < profile->n_threads; t++) {
            const frit_profile_note *note = &profile->notes[(size_t)t * (size_t)profile->n_notes + (size_t)i];
            row.run_s += scale * (double)note->run_ns;
            row.wait_s += scale * (double)note->wait_ns;
        }
        rest -= row.run_s + row.wait_s;
        frit_profile_add(profile, name, &row);
    }
    frit_profile_add(profile, "start and end", &(frit_profile_row){.type = "", .n_calls = 1, .wait_s = rest});
}

frit_status frit_cpu_run(frit_device *base, frit_exec *exec, const frit_batch *batch, const frit_cache *cache,
                         const float **output)
{
    const frit_cpu_device *device = (const frit_cpu_device *)base;
    frit_profile *profile = device->profile;
    const frit_node *result = exec->plan->graph->output;
    assert(batch->n_rows <= exec->plan->graph->max_rows && batch->n_outs <= exec->plan->graph->max_outs);

    frit_plan_set_rows(exec->plan, batch->n_rows, batch->n_outs);
    exec->narrow.batch = exec->wide.batch = batch;
    exec->narrow.cache = exec->wide.cache = cache;
    exec->narrow.run = exec->wide.run = exec->narrow.run + 1;
    exec->n_open = 0;
    if (profile) FRIT_TRY(frit_profile_start(profile, frit_pool_size(device->pool), exec->n_actions));
    const uint64_t start = profile ? frit_time_ns() : 0;
    walk w = {exec, profile};
    frit_pool_walk(device->pool, &(frit_walk){&w, exec->n_phases, open_phase, work_on_phase});
    if (profile) add_up(profile, exec, frit_time_ns() - start);
    *output = (const float *)(const void *)(exec->memory + exec->plan->offsets[result->id]);
    return FRIT_OK;
}

int frit_cpu_exec_n_phases(const frit_exec *exec)
{
    return exec->n_open;
}

void frit_cpu_exec_fill(frit_exec *exec, uint8_t byte)
{
    memset(exec->memory, byte, (size_t)exec->n_bytes);
}

void frit_cpu_exec_free(frit_device *base, frit_exec *exec)
{
    (void)base;
    if (!exec) return;
    frit_cpu_memory_free(exec->memory, exec->n_bytes);
    free(exec->actions);
    free(exec->phases);
    free(exec->feeds);
    free(exec);
}
