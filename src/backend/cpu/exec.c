// SPDX-License-Identifier: MIT
// Running executables: phases of pieces on all threads, and their profile.
#include "backend/cpu/exec.h"
#include "backend/cpu/pack/memory.h"
#include "backend/cpu/pack/pack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct walk {
    frit_exec *exec;
    frit_profile *profile;   // NULL: off
    int n_threads;
} walk;

// True for a product with a matrix of the model.
static bool is_product(const frit_action *a)
{
    return frit_cpu_ops[a->task.node->op].linear && a->task.w[1];
}

static size_t row_bytes(const frit_task *task)
{
    const frit_tensor *w = task->node->src[1]->tensor;
    const int64_t n = w->shape[w->n_dims - 1];
    const frit_kernels *kernels = task->env->kernels;
    if (task->w[1] == w->data || !frit_packs_needs(kernels, w)) return (size_t)frit_dtype_row_bytes(w->dtype, n);
    return frit_pack_row_bytes(kernels->packed[w->dtype].layout, n);
}

// How many pieces a thread claims at once: several of small matrices. 0: pieces are long (frit_walk.open).
static int grain_of(const frit_action *a)
{
    enum { GRAIN_BYTES = 32 << 10 };
    const frit_op op = a->task.node->op;
    if ((op == FRIT_OP_ATTEND || op == FRIT_OP_ATTEND_SPARSE) && a->task.node->shape[0] >= FRIT_COMPUTE_BOUND_ROWS)
        return 0;
    if (!is_product(a) || a->n_pieces == 0) return 1;
    const int64_t n_rows = frit_node_height(a->task.node);
    if (n_rows >= FRIT_COMPUTE_BOUND_ROWS) return 0;
    const size_t bytes = row_bytes(&a->task) * (size_t)frit_node_width(a->task.node) / (size_t)a->n_pieces;
    const size_t work = bytes * (size_t)(1 + n_rows / 4);
    if (work > 0 && work < GRAIN_BYTES) return (int)(GRAIN_BYTES / work);
    return n_rows >= FRIT_LONG_PIECE_ROWS ? 0 : 1;
}

static int pieces_of(const frit_action *a, const frit_exec_phase *p)
{
    const int wanted = a->pieces ? a->pieces(&a->task) : 0, room = FRIT_WALK_MAX_PIECES / p->n;
    return wanted < room ? wanted : room;
}

// Ops whose cost is reading and writing their elements.
static bool is_short(const frit_action *a)
{
    return a->pieces == frit_pieces_by_size || a->pieces == frit_pieces_by_row || a->pieces == frit_pieces_of_norm ||
           a->pieces == frit_pieces_of_convert || a->pieces == frit_pieces_of_reference;
}

// Waits until all ranks have what the exchange reads. If one of them failed, the step fails, and results do not count.
static void exchange(const frit_task *task)
{
    const frit_rank *at = task->env->ranks;
    if (frit_meeting_join(at->meeting, at->rank, task->x[0], (const void **)task->of_ranks)) return;
    for (int i = 0; i < at->n; i++) task->of_ranks[i] = task->x[0];
}

// Threads claim pieces by number: a hundred short pieces beside a few pieces of a product would leave the product to
// one thread.
static int open_phase(void *ctx, int i, int *grain)
{
    const walk *w = ctx;
    frit_exec *exec = w->exec;
    const frit_exec_phase *p = &exec->phases[i];
    int n = 0;
    bool all_short = true;
    for (int k = p->first; k < p->first + p->n; k++)
        all_short = all_short && (!exec->actions[k].pieces || is_short(&exec->actions[k]));
    for (int k = p->first; k < p->first + p->n; k++) {
        frit_action *a = &exec->actions[k];
        if (a->task.of_ranks) exchange(&a->task);
        a->n_pieces = pieces_of(a, p);
        if (!all_short && is_short(a) && a->n_pieces > w->n_threads) a->n_pieces = w->n_threads;
        n += a->n_pieces;
        if (k == p->first) *grain = grain_of(a);
    }
    exec->n_open += n > 0;
    return n;
}

// Runs a share of an action's pieces, and all its followers.
static void run_share(const walk *w, int k, frit_share share)
{
    for (; k != FRIT_NO_ACTION; k = w->exec->actions[k].follower) {
        const frit_action *a = &w->exec->actions[k];
        if (w->profile) frit_profile_begin(w->profile, share.thread);
        if (a->task.stores && share.begin == 0) frit_act_input_store_sum(a->task.stores);
        a->run(&a->task, share);
        if (w->profile) frit_profile_end(w->profile, share.thread, k);
    }
}

static void work_on_phase(void *ctx, int i, int begin, int end, int thread)
{
    const walk *w = ctx;
    const frit_exec_phase *p = &w->exec->phases[i];
    for (int k = p->first; k < p->first + p->n && end > 0; k++) {
        const frit_action *a = &w->exec->actions[k];
        const int first = begin > 0 ? begin : 0, last = end < a->n_pieces ? end : a->n_pieces;
        if (first < last) run_share(w, k, (frit_share){first, last, a->n_pieces, thread});
        begin -= a->n_pieces;
        end -= a->n_pieces;
    }
}

// Address of the weights that the thread's pieces of a later phase read first, if there are any. Only the pieces of
// products may be counted before the phase begins: pieces of other ops may depend on results.
static bool own_rows(const walk *w, const frit_exec_phase *p, int thread, frit_prefetch *out)
{
    enum { MOST_BYTES = 64 << 10 };
    int64_t n = 0;
    for (int k = p->first; k < p->first + p->n; k++) {
        if (!is_product(&w->exec->actions[k])) return false;
        n += pieces_of(&w->exec->actions[k], p);
    }
    int64_t mine = n * thread / w->n_threads;
    for (int k = p->first; k < p->first + p->n; k++) {
        const frit_action *a = &w->exec->actions[k];
        const int64_t n_pieces = pieces_of(a, p), n_out = frit_node_width(a->task.node);
        if (mine < n_pieces && frit_node_height(a->task.node) <= FRIT_PREFETCH_ROWS) {
            const int64_t row = n_out * mine / n_pieces / FRIT_PANEL_ROWS * FRIT_PANEL_ROWS;
            *out = (frit_prefetch){a->task.w[1] + (size_t)row * row_bytes(&a->task), MOST_BYTES};
            return true;
        }
        mine -= n_pieces;
        if (mine < 0) return false;
    }
    return false;
}

static frit_prefetch next_rows(void *ctx, int i, int thread)
{
    enum { PHASES = 4 };
    const walk *w = ctx;
    frit_prefetch memory = {0};
    for (int k = i + 1; k < w->exec->n_phases && k <= i + PHASES; k++)
        if (own_rows(w, &w->exec->phases[k], thread, &memory)) break;
    return memory;
}

// Adds the times of a run that took run_ns to the rows of their kinds.
static void add_up(frit_profile *profile, const frit_exec *exec, uint64_t run_ns)
{
    const double scale = 1e-9 / profile->n_threads;
    double rest = 1e-9 * (double)run_ns;
    for (int i = 0; i < exec->n_actions; i++) {
        frit_profile_row row;
        char name[40];
        frit_profile_describe(&exec->actions[i].task, exec->actions[i].run, name, &row);
        for (int t = 0; t < profile->n_threads; t++) {
            const frit_profile_time *time = &profile->times[(size_t)t * (size_t)profile->n_actions + (size_t)i];
            row.run_s += scale * (double)time->run_ns;
            row.wait_s += scale * (double)time->wait_ns;
        }
        rest -= row.run_s + row.wait_s;
        frit_profile_add(profile, name, &row);
    }
    frit_profile_add(profile, "start and end", &(frit_profile_row){.type = "", .n_calls = 1, .wait_s = rest});
}

frit_address frit_cpu_value(frit_exec *exec, const frit_node *node)
{
    const frit_node *storage = frit_node_storage(node);
    return (frit_address){frit_node_is_result_input(storage) ? &exec->given.base : &exec->scratch.base,
                          exec->plan->offsets[storage->id]};
}

static frit_status run(frit_device *base, frit_exec *exec, const frit_batch *input, frit_step_output *output,
                       frit_ticket *ticket)
{
    frit_cpu_device *device = (frit_cpu_device *)base;
    frit_profile *profile = device->profile;
    frit_batch *batch = &exec->batch;
    frit_pool *pool = input->n_rows < FRIT_COMPUTE_BOUND_ROWS ? device->decode_pool : device->prefill_pool;
    assert(input->n_rows <= exec->plan->graph->max_rows && input->n_outs <= exec->plan->graph->max_outs);

    *batch = *input;
    FRIT_TRY(frit_packs_check(device->packs));
    FRIT_TRY(frit_cpu_find_tokens(device, batch));
    frit_plan_set_rows(exec->plan, batch->n_rows, batch->n_outs);
    exec->decode.batch = exec->prefill.batch = batch;
    exec->decode.taken = exec->prefill.taken = output->taken;
    exec->decode.run = exec->prefill.run = exec->decode.run + 1;   // inputs that an earlier run computed are stale
    frit_cpu_find_adapters(&device->adapters, batch);
    exec->n_open = 0;
    if (profile) FRIT_TRY(frit_profile_start(profile, frit_pool_size(pool), exec->n_actions));
    const uint64_t start = profile ? frit_time_ns() : 0;
    walk w = {exec, profile, frit_pool_size(pool)};
    frit_pool_walk(pool, &(frit_walk){&w, exec->n_phases, open_phase, work_on_phase, next_rows});
    if (profile) add_up(profile, exec, frit_time_ns() - start);
    frit_cpu_give_output(device, exec, pool, output);
    *ticket = ++device->n_runs;
    return FRIT_OK;
}

// A run of a rank ends when all ranks have read its results.
frit_status frit_cpu_submit(frit_device *base, frit_exec *exec, const frit_batch *input, frit_step_output *output,
                            frit_ticket *ticket)
{
    const frit_rank *at = &((const frit_cpu_device *)base)->rank;
    const frit_status status = run(base, exec, input, output, ticket);
    const void *all[FRIT_MEETING_MAX];
    if (!at->meeting) return status;
    if (status != FRIT_OK)
        frit_meeting_break(at->meeting, at->rank);
    else if (!frit_meeting_join(at->meeting, at->rank, NULL, all))
        return frit_fail(FRIT_E_INTERNAL, "cpu: another rank of the group failed");
    return status;
}

int frit_cpu_exec_n_phases(const frit_exec *exec)
{
    return exec->n_open;
}

void frit_cpu_exec_fill(frit_exec *exec, uint8_t byte)
{
    memset(exec->scratch.bytes, byte, (size_t)exec->scratch.base.n_bytes);
    memset(exec->workspaces.bytes, byte, (size_t)exec->workspaces.base.n_bytes);
}

void frit_cpu_exec_free(frit_device *base, frit_exec *exec)
{
    if (!exec) return;
    if (exec->shares_scratch)
        ((frit_cpu_device *)base)->n_sharing--;
    else
        frit_cpu_memory_free(exec->scratch.bytes, exec->scratch.base.n_bytes);
    frit_cpu_memory_free(exec->workspaces.bytes, exec->workspaces.base.n_bytes);
    frit_cpu_memory_free(exec->given.bytes, exec->given.base.n_bytes);
    free(exec->actions);
    free(exec->phases);
    free(exec->ups);
    free(exec->of_ranks);
    free(exec->inputs);
    free(exec->layers);
    free(exec);
}
