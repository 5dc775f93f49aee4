// SPDX-License-Identifier: MIT
// Executables of the CPU: a plan's steps as a list of actions in phases. The actions of a phase do not depend on each
// other and are cut into pieces that all threads take as they can; the next phase begins when all are done (thread.h).
//
//     step                          actions                                   slots
//     LINEAR q  (x, q4_k)           convert x -> Q8                           [Q8] holds x
//                                   -- phase -- q = product
//     LINEAR k  (x, q4_k)           k = product                               same x: nothing to convert
//     ROPE                          turns of all positions (once a run)
//                                   -- phase -- rotate
//     ATTEND                        -- phase -- parts of the positions
//                                   -- phase -- merge
//
// Memory beside the plan's own scratch is held in slots: one for each form of activations, one for the shared memory
// of two-part kernels. A slot that was read in a phase must not be written before the next one.
#include "backend/cpu/cpu.h"
#include "backend/cpu/memory.h"
#include "backend/cpu/fast.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ACTIONS = 5 };   // of one step: turns, two conversions, two halves

typedef struct action {
    frit_task_fn run;
    int (*pieces)(const frit_task *task);
    int n_pieces;   // in this run
    frit_task task;
} action;

typedef struct phase {
    int first, n;   // actions
} phase;

struct frit_exec {
    frit_plan *plan;
    frit_task_env narrow, wide;   // for nodes of few and of many rows
    action *actions;
    phase *phases;
    int n_actions, n_phases;
    uint8_t *memory;   // the plan's scratch, the slots, the workspaces
    uint64_t n_bytes;
};

// ------------------------------------------------------------------------------- building

typedef struct slot {
    uint64_t offset, n_bytes;
    const frit_node *holds;   // whose result is in it, converted
    uint64_t source;          // where that result lies: a node may have two
    int64_t width;            // of its rows when they were converted
    bool busy;                // written or read since the last barrier
} slot;

typedef struct turns {   // cosines and sines of every row, for all ROPE steps that turn alike
    frit_plan_step *first;
    slot slot;
} turns;

typedef struct builder {
    const frit_cpu_device *device;
    frit_plan *plan;
    frit_exec *exec;
    uint64_t n_bytes;   // of all memory handed out so far
    slot forms[FRIT_FORM_COUNT], shared;
    turns *turns;
    int n_turns;
} builder;

static bool turn_alike(const frit_node *a, const frit_node *b)
{
    const frit_rope *x = &a->rope, *y = &b->rope;
    return x->dim == y->dim && x->magnitude == y->magnitude && x->inv_freq == y->inv_freq && a->src[1] == b->src[1] &&
           a->src[2] == b->src[2];
}

static turns *find_turns(builder *b, const frit_node *node)
{
    for (int i = 0; i < b->n_turns; i++)
        if (turn_alike(b->turns[i].first->node, node)) return &b->turns[i];
    return NULL;
}

static uint64_t align(uint64_t n_bytes)
{
    return (n_bytes + FRIT_CPU_ALIGN - 1) / FRIT_CPU_ALIGN * FRIT_CPU_ALIGN;
}

static void widen(uint64_t *n_bytes, uint64_t at_least)
{
    if (*n_bytes < at_least) *n_bytes = at_least;
}

static void place(builder *b, slot *s)
{
    s->offset = b->n_bytes;
    b->n_bytes += align(s->n_bytes);
}

// A node has one set of kernels, whatever the rows of a run: what it reads was converted for them.
static const frit_task_env *env_of(const builder *b, const frit_node *node)
{
    return b->plan->few_rows || node->shape[0] < FRIT_WIDE_ROWS ? &b->exec->narrow : &b->exec->wide;
}

static bool runs_fast(const builder *b, const frit_node *node)
{
    return !b->device->reference && frit_cpu_ops[node->op].fast;
}

// Sizes of all memory, at the largest number of rows.
static void measure(builder *b)
{
    uint64_t workspace_bytes = 0;
    for (int i = 0; i < b->plan->n_steps; i++) {
        frit_plan_step *step = &b->plan->steps[i];
        const frit_node *node = step->node;
        const frit_cpu_op *op = &frit_cpu_ops[node->op];
        if (op->workspace_bytes) widen(&workspace_bytes, op->workspace_bytes(node));
        if (!runs_fast(b, node)) continue;
        if (op->shared_bytes) widen(&b->shared.n_bytes, op->shared_bytes(node));
        for (int s = 0; op->linear && s < node->n_src; s++) {
            if (!(op->matrices >> s & 1)) continue;
            const frit_node *x = node->src[0];
            const frit_form form = frit_linear_form(env_of(b, node)->kernels, node, s);
            if (form != FRIT_FORM_F32)
                widen(&b->forms[form].n_bytes, frit_form_bytes_of_rows(form, frit_node_height(x), frit_node_width(x)));
        }
        if (node->op == FRIT_OP_ROPE && !find_turns(b, node))
            b->turns[b->n_turns++] = (turns){step, {.n_bytes = frit_rope_turn_bytes(node)}};
    }
    b->n_bytes = align(b->plan->scratch_bytes);
    for (int form = 0; form < FRIT_FORM_COUNT; form++) place(b, &b->forms[form]);
    for (int i = 0; i < b->n_turns; i++) place(b, &b->turns[i].slot);
    place(b, &b->shared);
    b->exec->narrow.workspace_bytes = b->exec->wide.workspace_bytes = (size_t)align(workspace_bytes);
}

// Adds to the end of the list. A new phase makes all slots free again.
static void add_action(builder *b, action a, bool new_phase)
{
    frit_exec *exec = b->exec;
    new_phase = new_phase || exec->n_phases == 0;
    if (new_phase) exec->phases[exec->n_phases++] = (phase){exec->n_actions, 0};
    exec->phases[exec->n_phases - 1].n++;
    exec->actions[exec->n_actions++] = a;
    if (!new_phase) return;
    for (int form = 0; form < FRIT_FORM_COUNT; form++) b->forms[form].busy = false;
    for (int i = 0; i < b->n_turns; i++) b->turns[i].slot.busy = false;
    b->shared.busy = false;
}

static frit_task task_of(const builder *b, const frit_plan_step *step)
{
    const frit_node *node = step->node;
    const frit_cpu_op *op = &frit_cpu_ops[node->op];
    frit_task task = {.node = node, .env = env_of(b, node)};
    if (step->has_buffer) {
        task.y = (float *)(void *)(b->exec->memory + step->offset);
        task.second = (float *)(void *)(b->exec->memory + step->second_offset);
    }
    for (int i = 0; i < node->n_src; i++) {
        if (!node->src[i]) continue;
        const frit_node *root = frit_node_storage(node->src[i]);
        const uint64_t offset = b->plan->offsets[node->src[i]->id];
        const uint8_t *packed = NULL;
        if (root->op == FRIT_OP_WEIGHT && op->linear && !b->device->reference)
            packed = frit_packs_find(&b->device->packs, root->tensor);
        if (root->op == FRIT_OP_WEIGHT && op->matrices >> i & 1)
            task.w[i] = packed ? packed : root->tensor->data;
        else if (root->op == FRIT_OP_WEIGHT)
            task.x[i] = root->tensor->data;
        else if (offset != UINT64_MAX)
            task.x[i] = (const float *)(const void *)(b->exec->memory + offset);
    }
    return task;
}

// Brings source 0 into the forms that the kernels of the matrices want, where the slots do not hold them already.
// Returns whether a barrier is due before the product.
static bool add_conversions(builder *b, frit_task *task, bool barrier)
{
    const frit_node *node = task->node, *x = frit_node_storage(node->src[0]);
    const uint64_t source = b->plan->offsets[node->src[0]->id];
    const int64_t width = frit_node_width(node->src[0]);
    bool converted = false;
    for (int i = 0; i < node->n_src; i++) {
        if (!(frit_cpu_ops[node->op].matrices >> i & 1)) continue;
        const frit_form form = frit_linear_form(env_of(b, node)->kernels, node, i);
        if (form == FRIT_FORM_F32) continue;
        slot *s = &b->forms[form];
        task->forms[form] = b->exec->memory + s->offset;
        if (s->holds == x && s->source == source && s->width == width) continue;
        frit_task convert = *task;
        convert.form = form;
        convert.shared = b->exec->memory + s->offset;
        add_action(b, (action){frit_fast_convert, frit_pieces_by_row, 0, convert}, barrier || s->busy);
        *s = (slot){s->offset, s->n_bytes, x, source, width, true};
        barrier = false;
        converted = true;
    }
    return barrier || converted;
}

static void add_step(builder *b, const frit_plan_step *step)
{
    const frit_cpu_op *op = &frit_cpu_ops[step->node->op];
    frit_task task = task_of(b, step);
    bool barrier = step->barrier;
    if (!runs_fast(b, step->node)) {
        add_action(b, (action){op->reference, frit_pieces_of_reference, 0, task}, barrier);
        return;
    }
    if (op->linear) barrier = add_conversions(b, &task, barrier);
    if (step->node->op == FRIT_OP_ROPE) {
        const turns *t = find_turns(b, step->node);
        task.shared = b->exec->memory + t->slot.offset;
        barrier = barrier || t->slot.busy;
    }
    if (op->shared_bytes) {
        task.shared = b->exec->memory + b->shared.offset;
        barrier = barrier || b->shared.busy;
    }
    add_action(b, (action){op->fast, op->pieces, 0, task}, barrier);
    if (op->finish) add_action(b, (action){op->finish, op->finish_pieces, 0, task}, true);
    if (op->shared_bytes) b->shared.busy = true;
    for (int form = 0; form < FRIT_FORM_COUNT; form++)
        if (task.forms[form]) b->forms[form].busy = true;
}

static void add_turns(builder *b, turns *t)
{
    frit_task task = task_of(b, t->first);
    task.shared = b->exec->memory + t->slot.offset;
    add_action(b, (action){frit_fast_rope_turns, frit_pieces_by_row, 0, task}, false);
    t->slot.busy = true;
}

frit_status frit_cpu_prepare(frit_device *base, frit_plan *plan, frit_exec **out)
{
    frit_cpu_device *device = (frit_cpu_device *)base;
    const size_t n_steps = (size_t)plan->n_steps;
    const int n_threads = frit_pool_size(device->pool);
    *out = NULL;

    if (!device->reference) FRIT_TRY(frit_packs_add(&device->packs, device->pool, &device->narrow, plan));
    frit_plan_set_rows(plan, plan->graph->max_rows, plan->graph->max_outs);
    frit_exec *exec = calloc(1, sizeof *exec);
    turns *tables = calloc(n_steps + 1, sizeof *tables);
    action *actions = calloc(n_steps * MAX_ACTIONS + 1, sizeof *actions);
    phase *phases = calloc(n_steps * MAX_ACTIONS + 1, sizeof *phases);
    if (!exec || !tables || !actions || !phases) {
        free(exec), free(tables), free(actions), free(phases);
        return frit_fail_memory(n_steps * MAX_ACTIONS * sizeof *actions, "the list of steps");
    }
    builder b = {.device = device, .plan = plan, .exec = exec, .turns = tables};
    exec->plan = plan;
    exec->actions = actions;
    exec->phases = phases;
    exec->narrow.kernels = &device->narrow;
    exec->wide.kernels = &device->wide;
    measure(&b);
    exec->n_bytes = b.n_bytes + exec->wide.workspace_bytes * (uint64_t)n_threads;
    exec->memory = frit_cpu_memory_new(exec->n_bytes);
    if (!exec->memory) {
        const uint64_t n_bytes = exec->n_bytes;
        free(tables);
        frit_cpu_exec_free(base, exec);
        return frit_fail_memory((size_t)n_bytes, "intermediate results");
    }
    exec->narrow.workspaces = exec->wide.workspaces = exec->memory + b.n_bytes;
    for (int i = 0; i < b.n_turns; i++) add_turns(&b, &b.turns[i]);
    for (int i = 0; i < plan->n_steps; i++) add_step(&b, &plan->steps[i]);
    free(tables);
    *out = exec;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- running

typedef struct walk {
    const frit_exec *exec;
    frit_profile *profile;   // NULL: nobody counts
} walk;

static int open_phase(void *ctx, int i)
{
    const frit_exec *exec = ((const walk *)ctx)->exec;
    const phase *p = &exec->phases[i];
    int n = 0;
    for (int k = p->first; k < p->first + p->n; k++) {
        action *a = &exec->actions[k];
        const int wanted = a->pieces(&a->task), room = FRIT_WALK_MAX_PIECES / p->n;
        n += a->n_pieces = wanted < room ? wanted : room;
    }
    return n;
}

static void work_on_phase(void *ctx, int i, int begin, int end, int part)
{
    const walk *w = ctx;
    const phase *p = &w->exec->phases[i];
    for (int k = p->first; k < p->first + p->n && end > 0; k++) {
        const action *a = &w->exec->actions[k];
        const int first = begin > 0 ? begin : 0, last = end < a->n_pieces ? end : a->n_pieces;
        if (first < last) {
            if (w->profile) frit_profile_begin(w->profile, part);
            a->run(&a->task, (frit_share){first, last, a->n_pieces, part});
            if (w->profile) frit_profile_end(w->profile, part, k);
        }
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
    if (profile) FRIT_TRY(frit_profile_start(profile, frit_pool_size(device->pool), exec->n_actions));
    const uint64_t start = profile ? frit_time_ns() : 0;
    walk w = {exec, profile};
    frit_pool_walk(device->pool, &(frit_walk){&w, exec->n_phases, open_phase, work_on_phase});
    if (profile) add_up(profile, exec, frit_time_ns() - start);
    *output = (const float *)(const void *)(exec->memory + exec->plan->offsets[result->id]);
    return FRIT_OK;
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
    free(exec);
}
