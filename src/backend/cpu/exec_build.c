// SPDX-License-Identifier: MIT
// Makes executables of plans.
//
// A stage is what lies between two barriers of the plan; it becomes one phase, or more:
//
//     conversions of rows that its products read and that nobody made converted (feed.h)
//     its steps, with their followers, if these can be dealt by heads; otherwise a phase for each level
//     what comes before an op, and second halves, of those that have them
//
// Memory beside the plan's own scratch: feeds lie in slots, which are used again when their last reader's stage is
// over; each kind of rope has a table of its turns; two-part kernels share one piece of memory, which must not be used
// twice between two barriers; and each thread has a workspace.
#include "backend/cpu/exec.h"
#include "backend/cpu/matrix.h"
#include "backend/cpu/memory.h"

#include <stdlib.h>
#include <string.h>

enum { FEW_ROWS = 32 };                // so few need a little of the scratch and of the workspaces
enum { MAX_ACTIONS = 6, NONE = -1 };   // actions of one step: two conversions, three parts; both sides of KV_WRITE

typedef struct made_feed {   // what only building needs to know of an feed
    int first, last;         // stages in which its slot is used
    int maker;               // the step that makes it along with its result, or NONE
    int slot;
} made_feed;

typedef struct slot {
    frit_form form;
    uint64_t offset, n_bytes;
    int last;   // stage
} slot;

typedef struct note {   // of a step
    int stage;
    int n_reads, n_feeds;   // of the result: all, and those that are an feed of a product
    int n_made;             // of these, how many it makes in their form
    int n_own;              // of these, how many are by ops with own_feed
    int root[2];            // followers: the products that they follow
    int last_action;        // products: theirs, or that of their last follower so far
    int64_t unit;           // products that are followed: the numbers of a head
    int own_stage;          // sums that threads may make for themselves: the first stage that reads them; or NONE
    bool is_wanted;         // of these: by others too, so that one thread stores them
} note;

// Rows brought together for stacked ops, or the deal of a route. Written and read from phase to phase.
typedef struct place {
    uint64_t offset, n_bytes;
    const frit_node *holds, *route;   // which rows, by which route
    bool busy;                        // used since the last barrier
} place;

typedef struct turns {   // cosines and sines of every row, for all ROPE steps that turn alike
    frit_plan_step *first;
    uint64_t offset, n_bytes;
} turns;

typedef struct builder {
    const frit_cpu_device *device;
    frit_plan *plan;
    frit_exec *exec;
    note *notes;        // [n_steps]
    int *step_of;       // [n_nodes], NONE for leaves and aliases
    made_feed *feeds;   // [exec->n_feeds]
    slot *slots;
    turns *turns;
    int n_slots, n_turns;
    uint64_t n_bytes;   // of all memory handed out so far
    uint64_t own_bytes[FRIT_FORM_COUNT], own_row_bytes;
    uint64_t shared_offset, shared_bytes;
    bool shared_busy, turns_busy;   // used since the last barrier
    place places[FRIT_FORM_COUNT], deal;
} builder;

static int most_threads(const frit_cpu_device *device)
{
    const int few = frit_pool_size(device->few), many = frit_pool_size(device->many);
    return few > many ? few : many;
}

static uint64_t align(uint64_t n_bytes)
{
    return (n_bytes + FRIT_CPU_ALIGN - 1) / FRIT_CPU_ALIGN * FRIT_CPU_ALIGN;
}

static void widen(uint64_t *n_bytes, uint64_t at_least)
{
    if (*n_bytes < at_least) *n_bytes = at_least;
}

static uint64_t reserve(builder *b, uint64_t n_bytes)
{
    const uint64_t offset = b->n_bytes;
    b->n_bytes += align(n_bytes);
    return offset;
}

static const frit_node *node_of(const builder *b, int step)
{
    return b->plan->steps[step].node;
}

// A node has one set of kernels, whatever the rows of a run: what it reads was converted for them.
static const frit_task_env *env_of(const builder *b, const frit_node *node)
{
    return b->plan->few_rows || node->shape[0] < FRIT_WIDE_ROWS ? &b->exec->narrow : &b->exec->wide;
}

static bool runs_fast(const builder *b, const frit_node *node)
{
    const frit_cpu_op *op = &frit_cpu_ops[node->op];
    return !b->device->reference && op->fast && (!op->fits || op->fits(node));
}

static bool is_matrix(const frit_node *node, int i)
{
    return frit_cpu_ops[node->op].matrices >> i & 1;
}

// Whether it reads source 0 in the form that source i asks for: a matrix, or itself, as it is.
static bool asks_form(const frit_node *node, int i)
{
    return is_matrix(node, i) || (node->op == FRIT_OP_ADAPT_DOWN && i == 0);
}

static bool is_product(const builder *b, const frit_node *node)
{
    return frit_cpu_ops[node->op].linear && runs_fast(b, node);
}

static bool is_norm(const frit_node *node)
{
    return node->op == FRIT_OP_RMS_NORM || node->op == FRIT_OP_LAYER_NORM;
}

// True if reading `node` reads the second result of its storage.
static bool reads_second(const frit_node *node)
{
    bool second = false;
    for (; node->op == FRIT_OP_RESHAPE; node = node->src[0]) second = second || node->second;
    return second;
}

static int maker_of(const builder *b, const frit_node *read)
{
    return b->step_of[frit_node_storage(read)->id];
}

// ------------------------------------------------------------------------------- feeds

// Products whose results are made in other forms as well, 32 columns at a time.
static bool makes_columns(const frit_node *node)
{
    return node->op == FRIT_OP_LINEAR_GLU || node->op == FRIT_OP_LINEAR_ACT;
}

// Whether the step that computes `source` can give it in this form as well, a row or 32 columns at a time.
static bool makes_form(const builder *b, const frit_node *source, frit_form form)
{
    const frit_node *node = frit_node_storage(source);
    const int64_t n = frit_node_width(source);
    if (reads_second(source) || !runs_fast(b, node) || frit_node_width(node) != n || form == FRIT_FORM_F32)
        return false;
    if (makes_columns(node)) return frit_form_column_bytes(form) > 0 && n % 32 == 0;
    return is_norm(node) || node->op == FRIT_OP_ADD_NORM || node->op == FRIT_OP_NORM_ADD;
}

static void note_reads(builder *b)
{
    frit_plan *plan = b->plan;
    const int output = maker_of(b, plan->graph->output);
    if (output != NONE) b->notes[output].n_reads++;
    for (int k = 0, stage = 0; k < plan->n_steps; k++) {
        const frit_node *node = node_of(b, k);
        b->notes[k].stage = stage += plan->steps[k].barrier;
        for (int i = 0; i < node->n_src; i++) {
            const int maker = maker_of(b, node->src[i]);
            if (maker == NONE || reads_second(node->src[i])) continue;
            b->notes[maker].n_reads++;
            const bool whole = frit_node_width(node->src[i]) == frit_node_width(node_of(b, maker));
            if (i > 0 || !is_product(b, node) || !whole) continue;
            bool made = true;
            for (int m = 0; m < node->n_src; m++)
                if (asks_form(node, m))
                    made = made && makes_form(b, node->src[0], frit_linear_form(env_of(b, node)->kernels, node, m));
            b->notes[maker].n_feeds++;
            b->notes[maker].n_made += made;
            b->notes[maker].n_own += frit_cpu_ops[node->op].own_feed;
        }
    }
}

// A norm whose result only products read, which ask for it: few rows need no phase.
static bool is_lone_norm(const builder *b, int step)
{
    if (step == NONE || !is_norm(node_of(b, step)) || !runs_fast(b, node_of(b, step))) return false;
    const note *n = &b->notes[step];
    return n->n_reads > 0 && n->n_reads == n->n_own;
}

static bool is_tiled(frit_form form)
{
    return form == FRIT_FORM_BF16_TILES || form == FRIT_FORM_BF16_PAIRS;
}

// Whether the product's threads may make what it reads for themselves.
static bool can_own(const builder *b, const frit_node *node)
{
    const frit_task_env *env = env_of(b, node);
    bool can = is_product(b, node) && frit_cpu_ops[node->op].own_feed && env == &b->exec->narrow;
    for (int i = 0; can && i < node->n_src; i++)
        if (asks_form(node, i)) can = !is_tiled(frit_linear_form(env->kernels, node, i));
    return can;
}

// The first stage of products that read a step's result, and can make it for themselves; of all others in *others.
static void first_stages(const builder *b, int step, int *own, int *others)
{
    for (int k = step + 1; k < b->plan->n_steps; k++) {
        const frit_node *node = node_of(b, k);
        for (int i = 0; i < node->n_src; i++) {
            if (maker_of(b, node->src[i]) != step) continue;
            const bool whole = frit_node_width(node->src[i]) == frit_node_width(node_of(b, step));
            int *first = i == 0 && whole && can_own(b, node) ? own : others;
            if (i == 0 && is_lone_norm(b, k))
                first_stages(b, k, own, others);
            else if (*first == NONE || b->notes[k].stage < *first)
                *first = b->notes[k].stage;
        }
    }
}

// Sums that threads make for themselves: all others read them later, when they are kept.
static void note_sums(builder *b)
{
    const int output = maker_of(b, b->plan->graph->output);
    for (int k = 0; k < b->plan->n_steps; k++) {
        int own = NONE, others = NONE;
        b->notes[k].own_stage = NONE;
        if (node_of(b, k)->op != FRIT_OP_NORM_ADD || !runs_fast(b, node_of(b, k))) continue;
        first_stages(b, k, &own, &others);
        if (own == NONE || (others != NONE && others <= own)) continue;
        b->notes[k].own_stage = own;
        b->notes[k].is_wanted = others != NONE || k == output;
    }
}

static bool is_own_sum(const builder *b, int step)
{
    return step != NONE && b->notes[step].own_stage != NONE;
}

static frit_feed *find_feed(const builder *b, const frit_node *source, const frit_task_env *env, frit_form form)
{
    for (int i = 0; i < b->exec->n_feeds; i++) {
        frit_feed *feed = &b->exec->feeds[i];
        if (frit_node_storage(feed->source) == frit_node_storage(source) && feed->form == form && feed->env == env &&
            reads_second(feed->source) == reads_second(source) &&
            frit_node_width(feed->source) == frit_node_width(source))
            return feed;
    }
    return NULL;
}

static const frit_feed *find_feed_of(const builder *b, const frit_node *node, int i)
{
    const frit_task_env *env = env_of(b, node);
    return find_feed(b, node->src[0], env, frit_linear_form(env->kernels, node, i));
}

static void add_feed(builder *b, int step, frit_form form)
{
    const frit_node *node = node_of(b, step), *source = node->src[0];
    const frit_task_env *env = env_of(b, node);
    const int maker = maker_of(b, source), stage = b->notes[step].stage;
    const bool of_lone = is_lone_norm(b, maker) && !reads_second(source), of_sum = is_own_sum(b, maker);
    if (form == FRIT_FORM_F32 && !of_lone && !of_sum) return;   // read as it is
    frit_feed *feed = find_feed(b, source, env, form);
    if (!feed) {
        const bool made = of_lone || of_sum || makes_form(b, source, form);
        const int sum = of_lone ? maker_of(b, node_of(b, maker)->src[0]) : maker;
        feed = &b->exec->feeds[b->exec->n_feeds];
        *feed = (frit_feed){.source = source,
                            .norm = of_lone ? node_of(b, maker) : NULL,
                            .sum = is_own_sum(b, sum) ? node_of(b, sum) : NULL,
                            .env = env,
                            .form = form,
                            .own = env == &b->exec->narrow && (of_lone || of_sum || !made) && !is_tiled(form),
                            .id = (uint32_t)b->exec->n_feeds + 1};
        b->feeds[b->exec->n_feeds++] = (made_feed){
            .first = made ? b->notes[maker].stage : stage, .last = stage, .maker = made ? maker : NONE, .slot = NONE};
    }
    feed->own = feed->own && frit_cpu_ops[node->op].own_feed;
    b->feeds[feed - b->exec->feeds].last = stage;
}

static void take_slot(builder *b, int i)
{
    const frit_feed *feed = &b->exec->feeds[i];
    made_feed *made = &b->feeds[i];
    int s = 0;
    while (s < b->n_slots && (b->slots[s].form != feed->form || b->slots[s].last >= made->first)) s++;
    if (s == b->n_slots) b->slots[b->n_slots++] = (slot){.form = feed->form, .last = NONE};
    made->slot = s;
    b->slots[s].last = made->last;
    widen(&b->slots[s].n_bytes,
          frit_form_bytes_of_rows(feed->form, frit_node_height(feed->source), frit_node_width(feed->source)));
}

static void list_feeds(builder *b)
{
    note_reads(b);
    note_sums(b);
    for (int k = 0; k < b->plan->n_steps; k++) {
        const frit_node *node = node_of(b, k);
        for (int i = 0; is_product(b, node) && i < node->n_src; i++)
            if (asks_form(node, i)) add_feed(b, k, frit_linear_form(env_of(b, node)->kernels, node, i));
    }
    // A norm has a phase for all its feeds or for none.
    for (int i = 0; i < b->exec->n_feeds; i++)
        for (int k = 0; k < b->exec->n_feeds; k++)
            if (b->exec->feeds[i].norm && b->exec->feeds[k].norm == b->exec->feeds[i].norm)
                b->exec->feeds[k].own = b->exec->feeds[k].own && b->exec->feeds[i].own;
    for (int i = 0; i < b->exec->n_feeds; i++) {
        const frit_feed *feed = &b->exec->feeds[i];
        const int64_t n = frit_node_width(feed->source);
        if (feed->form != FRIT_FORM_F32) take_slot(b, i);
        if (b->feeds[i].maker != NONE) widen(&b->own_row_bytes, 2 * (uint64_t)n * sizeof(float));
        if (feed->own) widen(&b->own_bytes[feed->form], frit_form_bytes_of_rows(feed->form, FRIT_OWN_ROWS, n));
    }
}

static const float *activations(const builder *b, const frit_node *read)
{
    const frit_node *storage = frit_node_storage(read);
    const uint64_t offset = b->plan->offsets[read->id];
    if (storage->op == FRIT_OP_WEIGHT) return storage->tensor->data;
    return offset == UINT64_MAX ? NULL : (const float *)(const void *)(b->exec->memory + offset);
}

// When all memory has its place.
static void point_feeds(builder *b, const uint64_t own_offsets[FRIT_FORM_COUNT])
{
    for (int i = 0; i < b->exec->n_feeds; i++) {
        frit_feed *feed = &b->exec->feeds[i];
        const frit_node *norm = feed->norm, *sum = feed->sum;
        feed->x = activations(b, norm ? norm->src[0] : feed->source);
        for (int w = 1; norm && w < norm->n_src; w++) feed->w[w - 1] = activations(b, norm->src[w]);
        for (int s = 0; sum && s < 3; s++) feed->sum_of[s] = activations(b, sum->src[s]);
        if (sum) feed->kept = (float *)(void *)(b->exec->memory + b->plan->offsets[sum->id]);
        if (feed->form == FRIT_FORM_F32)
            feed->rows = b->exec->memory + b->plan->offsets[feed->source->id];
        else
            feed->rows = b->exec->memory + b->slots[b->feeds[i].slot].offset;
        feed->own_offset = (size_t)own_offsets[feed->form];
    }
}

// ------------------------------------------------------------------------------- followers

// The steps from `first` to the next barrier.
static int stage_end(const builder *b, int first)
{
    int end = first + 1;
    while (end < b->plan->n_steps && !b->plan->steps[end].barrier) end++;
    return end;
}

static bool find_root(builder *b, int step, int i)
{
    const frit_node *node = node_of(b, step), *read = node->src[i];
    const int maker = maker_of(b, read);
    const int root = b->plan->steps[maker].level > 0 ? b->notes[maker].root[0] : maker;
    const frit_node *product = node_of(b, root);
    const int64_t n = frit_node_width(read);
    note *r = &b->notes[root];
    b->notes[step].root[i] = root;
    if (!runs_fast(b, node) || product->op != FRIT_OP_LINEAR || !runs_fast(b, product)) return false;
    const bool fits = n % 16 == 0 && (r->unit == 0 || r->unit == n) && n * read->shape[1] == frit_node_width(product);
    r->unit = n;
    return fits;
}

// Whether the followers of a stage follow head by head: there are enough heads for all threads.
static bool can_follow(builder *b, int first, int end)
{
    bool fits = true;
    int64_t n_heads = 0;
    int n_followers = 0;
    for (int k = first; k < end; k++) {
        if (b->plan->steps[k].level == 0) continue;
        n_followers++;
        for (int i = 0; fits && i < (node_of(b, k)->op == FRIT_OP_KV_WRITE ? 2 : 1); i++) fits = find_root(b, k, i);
    }
    for (int k = first; k < end; k++)
        if (b->notes[k].unit > 0) n_heads += frit_node_width(node_of(b, k)) / b->notes[k].unit;
    fits = fits && n_followers > 0 && n_heads >= most_threads(b->device);
    for (int k = first; k < end && !fits; k++) b->notes[k].unit = 0;
    return fits;
}

// ------------------------------------------------------------------------------- stacked ops

// Forms of the rows: of kernels for few rows, and of the node's. Heads have no route and need the latter only.
static void forms_of_stack(const builder *b, const frit_node *node, frit_form forms[2])
{
    const frit_task_env *env = env_of(b, node);
    forms[1] = frit_matrix_form(env->kernels, node->src[1]->tensor);
    forms[0] = node->op == FRIT_OP_HEADS ? forms[1] : frit_matrix_form(env->narrow, node->src[1]->tensor);
}

static void measure_stack(builder *b, const frit_node *node)
{
    frit_form forms[2];
    forms_of_stack(b, node, forms);
    for (int i = 0; i < 2; i++)
        widen(&b->places[forms[i]].n_bytes,
              frit_form_bytes_of_rows(forms[i], frit_places(node), frit_node_width(node->src[0])));
    if (node->op != FRIT_OP_HEADS) widen(&b->deal.n_bytes, frit_places_deal_bytes(node));
}

// ------------------------------------------------------------------------------- actions

static int add_action(builder *b, frit_action a, bool new_phase)
{
    frit_exec *exec = b->exec;
    new_phase = new_phase || exec->n_phases == 0;
    if (new_phase) {
        exec->phases[exec->n_phases++] = (frit_phase){exec->n_actions, 0};
        b->shared_busy = b->turns_busy = b->deal.busy = false;
        for (int form = 0; form < FRIT_FORM_COUNT; form++) b->places[form].busy = false;
    }
    exec->phases[exec->n_phases - 1].n++;
    a.follower = FRIT_NO_ACTION;
    exec->actions[exec->n_actions] = a;
    return exec->n_actions++;
}

static turns *find_turns(builder *b, const frit_node *node)
{
    for (int i = 0; i < b->n_turns; i++) {
        const frit_node *other = b->turns[i].first->node;
        const frit_rope *x = &other->rope, *y = &node->rope;
        if (x->dim == y->dim && x->magnitude == y->magnitude && x->inv_freq == y->inv_freq &&
            other->src[1] == node->src[1] && other->src[2] == node->src[2])
            return &b->turns[i];
    }
    return NULL;
}

static frit_task task_of(builder *b, const frit_plan_step *step)
{
    const frit_node *node = step->node;
    const frit_cpu_op *op = &frit_cpu_ops[node->op];
    frit_task task = {.node = node, .env = env_of(b, node)};
    if (step->has_buffer) {
        task.y = (float *)(void *)(b->exec->memory + step->offset);
        task.second = (float *)(void *)(b->exec->memory + step->second_offset);
    }
    for (int i = 0; i < node->n_src; i++) {
        const frit_node *root = frit_node_storage(node->src[i]);
        const uint8_t *packed = NULL;
        if (root->op == FRIT_OP_WEIGHT && (op->linear || op->stacked) && runs_fast(b, node))
            packed = frit_packs_find(&b->device->packs, root->tensor);
        if (root->op == FRIT_OP_WEIGHT && is_matrix(node, i))
            task.w[i] = packed ? packed : frit_packs_rows(&b->device->packs, root->tensor);
        else
            task.x[i] = activations(b, node->src[i]);
    }
    if (node->op == FRIT_OP_ROPE && runs_fast(b, node)) task.shared = b->exec->memory + find_turns(b, node)->offset;
    if (op->shared_bytes) task.shared = b->exec->memory + b->shared_offset;
    return task;
}

// What the task reads as products do, and makes for those that read it.
static void set_feeds(const builder *b, int step, frit_task *task)
{
    const frit_node *node = task->node;
    const note *n = &b->notes[step];
    for (int i = 0; is_product(b, node) && i < node->n_src; i++) {
        const frit_feed *feed = asks_form(node, i) ? find_feed_of(b, node, i) : NULL;
        if (!feed) continue;
        task->feeds[feed->form] = feed;
        task->forms[feed->form] = feed->rows;
    }
    bool makes_f32 = false;
    for (int i = 0; i < b->exec->n_feeds; i++) {
        const frit_feed *feed = &b->exec->feeds[i];
        if (feed->sum == node) task->feeds[feed->form] = feed;
        if (b->feeds[i].maker != step) continue;
        if (feed->form == FRIT_FORM_F32)
            makes_f32 = true;
        else
            task->made[feed->form] = feed->rows;
        if (is_lone_norm(b, step)) task->feeds[feed->form] = feed;
        if (makes_columns(node)) task->unit = 32;
    }
    const bool is_read = makes_f32 || n->n_reads > n->n_made;
    if (n->n_made > 0 && !is_read && node->op != FRIT_OP_ADD_NORM) task->y = NULL;
}

// Brings the rows of source 0 together, where they are not. Dealing is part of it, unless the deal is there already.
// Returns whether a barrier is due before the product.
static bool add_places(builder *b, frit_task *task, bool barrier)
{
    const frit_node *node = task->node, *x = node->src[0];
    const frit_node *route = node->op == FRIT_OP_HEADS ? NULL : frit_node_route(node);
    const bool deals = route && b->deal.route != route;
    bool ready = route && !deals, busy = deals && b->deal.busy;
    frit_form forms[2];
    forms_of_stack(b, node, forms);
    for (int i = 0; i < 2; i++) {
        const place *p = &b->places[forms[i]];
        ready = ready && p->holds == x && p->route == route;
        busy = busy || p->busy;
        task->forms[forms[i]] = b->exec->memory + p->offset;
    }
    if (route) task->deal = (void *)(b->exec->memory + b->deal.offset);
    if (!ready) {
        frit_action convert = {frit_fast_convert_places, frit_convert_places_pieces, 0, 0, *task};
        if (deals) convert.pieces = frit_deal_and_convert_pieces;
        if (!route) convert.run = frit_fast_convert_heads;
        add_action(b, convert, barrier || busy);
    }
    return barrier || !ready;
}

// The product of a stacked op has been added.
static void note_places(builder *b, const frit_task *task)
{
    const frit_node *route = task->deal ? frit_node_route(task->node) : NULL;
    for (int form = 0; form < FRIT_FORM_COUNT; form++) {
        place *p = &b->places[form];
        if (task->forms[form]) *p = (place){p->offset, p->n_bytes, task->node->src[0], route, true};
    }
    if (route) b->deal = (place){b->deal.offset, b->deal.n_bytes, NULL, route, true};
}

// Returns whether it added any.
static bool add_conversions(builder *b, int first, bool barrier)
{
    bool any = false;
    for (int i = 0; i < b->exec->n_feeds; i++) {
        const frit_feed *feed = &b->exec->feeds[i];
        if (b->feeds[i].maker != NONE || b->feeds[i].first != b->notes[first].stage) continue;
        frit_task task = {.env = feed->env, .form = feed->form, .shared = feed->rows};
        for (int k = first; !task.node; k++)
            if (is_product(b, node_of(b, k)) && find_feed(b, node_of(b, k)->src[0], feed->env, feed->form) == feed)
                task.node = node_of(b, k);
        task.x[0] = feed->x;
        task.feeds[feed->form] = feed;
        add_action(b, (frit_action){frit_fast_convert, frit_pieces_of_convert, 0, 0, task}, barrier && !any);
        any = true;
    }
    return any;
}

static void add_follower(builder *b, frit_task task, int root)
{
    note *n = &b->notes[root];
    task.by_heads = true;
    const int k = add_action(b, (frit_action){frit_cpu_ops[task.node->op].fast, NULL, 0, 0, task}, false);
    b->exec->actions[n->last_action].follower = k;
    n->last_action = k;
}

static void add_followers(builder *b, int step)
{
    const note *n = &b->notes[step];
    frit_task task = task_of(b, &b->plan->steps[step]);
    if (task.node->op != FRIT_OP_KV_WRITE) {
        add_follower(b, task, n->root[0]);
        return;
    }
    task.keys = true;
    add_follower(b, task, n->root[0]);
    task.keys = false, task.values = true;
    add_follower(b, task, n->root[1]);
}

// The first product that reads a sum which its threads make for themselves stores it, if others want it.
static const frit_feed *kept_feed(builder *b, int step, const frit_task *task)
{
    for (int form = 0; is_product(b, task->node) && form < FRIT_FORM_COUNT; form++) {
        const frit_feed *feed = task->feeds[form];
        note *n = feed && feed->sum ? &b->notes[b->step_of[feed->sum->id]] : NULL;
        if (!n || !n->is_wanted || n->own_stage != b->notes[step].stage) continue;
        n->is_wanted = false;
        return feed;
    }
    return NULL;
}

static void add_step(builder *b, int step, bool barrier)
{
    const frit_cpu_op *op = &frit_cpu_ops[node_of(b, step)->op];
    frit_task task = task_of(b, &b->plan->steps[step]);
    if (!runs_fast(b, task.node)) {
        add_action(b, (frit_action){frit_cpu_references[task.node->op], frit_pieces_of_reference, 0, 0, task}, barrier);
        return;
    }
    set_feeds(b, step, &task);
    task.keeps = kept_feed(b, step, &task);
    if (op->stacked) barrier = add_places(b, &task, barrier);
    if (b->notes[step].unit > 0) task.unit = b->notes[step].unit;
    barrier = barrier || (op->shared_bytes && b->shared_busy) || (task.node->op == FRIT_OP_ROPE && b->turns_busy);
    if (op->begin) {
        add_action(b, (frit_action){op->begin, op->begin_pieces, 0, 0, task}, barrier);
        barrier = true;
    }
    b->notes[step].last_action = add_action(b, (frit_action){op->fast, op->pieces, 0, 0, task}, barrier);
    if (op->finish) add_action(b, (frit_action){op->finish, op->finish_pieces, 0, 0, task}, true);
    if (op->shared_bytes) b->shared_busy = true;
    if (op->stacked) note_places(b, &task);
}

static void add_stage(builder *b, int first, int end)
{
    const bool follow = can_follow(b, first, end);
    bool barrier = b->plan->steps[first].barrier || (follow && b->turns_busy);
    barrier = add_conversions(b, first, barrier) || barrier;
    for (int k = first; k < end; k++) {
        const int level = b->plan->steps[k].level;
        if (level > 0 && follow) {
            add_followers(b, k);
            continue;
        }
        add_step(b, k, barrier || (k > first && level != b->plan->steps[k - 1].level));
        barrier = false;
    }
}

static void add_turns(builder *b, const turns *t)
{
    const frit_task task = task_of(b, t->first);
    add_action(b, (frit_action){frit_fast_rope_turns, frit_pieces_by_row, 0, 0, task}, false);
    b->turns_busy = true;
}

// ------------------------------------------------------------------------------- all of it

static uint64_t place_own(builder *b, uint64_t offsets[FRIT_FORM_COUNT])
{
    uint64_t n_bytes = align(sizeof(frit_own) + b->own_row_bytes);
    for (int form = 0; form < FRIT_FORM_COUNT; form++) {
        offsets[form] = n_bytes;
        n_bytes += align(b->own_bytes[form]);
    }
    return n_bytes;
}

// Sizes of all memory, at the largest number of rows.
static void measure(builder *b, uint64_t own_offsets[FRIT_FORM_COUNT])
{
    uint64_t workspace_bytes = 0;
    for (int i = 0; i < b->plan->n_steps; i++) {
        frit_plan_step *step = &b->plan->steps[i];
        const frit_node *node = step->node;
        const frit_cpu_op *op = &frit_cpu_ops[node->op];
        if (op->workspace_bytes) widen(&workspace_bytes, op->workspace_bytes(node));
        if (!runs_fast(b, node)) continue;
        if (op->shared_bytes) widen(&b->shared_bytes, op->shared_bytes(node, env_of(b, node)->kernels));
        if (op->stacked) measure_stack(b, node);
        if (node->op == FRIT_OP_ROPE && !find_turns(b, node))
            b->turns[b->n_turns++] = (turns){.first = step, .n_bytes = frit_rope_turn_bytes(node)};
    }
    reserve(b, b->plan->scratch_bytes);
    for (int i = 0; i < b->n_slots; i++) b->slots[i].offset = reserve(b, b->slots[i].n_bytes);
    for (int i = 0; i < b->n_turns; i++) b->turns[i].offset = reserve(b, b->turns[i].n_bytes);
    for (int form = 0; form < FRIT_FORM_COUNT; form++) b->places[form].offset = reserve(b, b->places[form].n_bytes);
    b->deal.offset = reserve(b, b->deal.n_bytes);
    b->shared_offset = reserve(b, b->shared_bytes);
    frit_task_env *env = &b->exec->narrow;
    env->own_offset = (size_t)align(workspace_bytes);
    env->workspace_bytes = env->own_offset + (size_t)place_own(b, own_offsets);
    b->exec->wide.own_offset = env->own_offset;
    b->exec->wide.workspace_bytes = env->workspace_bytes;
}

// Products by at least one matrix, and by none in fewer bits than f16.
static bool is_fine(const frit_plan *plan)
{
    bool any = false;
    for (int k = 0; k < plan->n_steps; k++) {
        const frit_node *node = plan->steps[k].node;
        const frit_cpu_op *op = &frit_cpu_ops[node->op];
        for (int i = 0; (op->linear || op->stacked) && i < node->n_src; i++) {
            const frit_node *root = is_matrix(node, i) ? frit_node_storage(node->src[i]) : NULL;
            if (!root || root->op != FRIT_OP_WEIGHT) continue;
            if (root->tensor->dtype != FRIT_DTYPE_F32 && root->tensor->dtype != FRIT_DTYPE_F16) return false;
            any = true;
        }
    }
    return any;
}

static frit_status build(builder *b)
{
    frit_exec *exec = b->exec;
    const uint64_t n_threads = (uint64_t)most_threads(b->device);
    uint64_t own_offsets[FRIT_FORM_COUNT];
    for (int i = 0; i < b->plan->graph->n_nodes; i++) b->step_of[i] = NONE;
    for (int k = 0; k < b->plan->n_steps; k++) b->step_of[node_of(b, k)->id] = k;
    exec->narrow.fine = exec->wide.fine = is_fine(b->plan);
    list_feeds(b);
    measure(b, own_offsets);
    exec->n_bytes = b->n_bytes + exec->narrow.workspace_bytes * n_threads;
    exec->memory = frit_cpu_memory_new(exec->n_bytes);
    if (!exec->memory) return frit_fail_memory((size_t)exec->n_bytes, "intermediate results");
    frit_nodes_spread(&b->device->topology.nodes, exec->memory, b->n_bytes);   // not what is each thread's own
    if (b->plan->graph->max_rows < FEW_ROWS) frit_cpu_memory_sparse(exec->memory, exec->n_bytes);
    exec->narrow.workspaces = exec->wide.workspaces = exec->memory + b->n_bytes;
    point_feeds(b, own_offsets);
    for (int i = 0; i < b->n_turns; i++) add_turns(b, &b->turns[i]);
    for (int k = 0; k < b->plan->n_steps; k = stage_end(b, k)) add_stage(b, k, stage_end(b, k));
    const frit_node *output = b->plan->graph->output;
    const frit_task results = {.node = output, .env = &exec->narrow, .x = {activations(b, output)}};
    add_action(b, (frit_action){frit_fast_results, frit_results_pieces, 0, 0, results}, true);
    return FRIT_OK;
}

frit_status frit_cpu_prepare(frit_device *base, frit_plan *plan, frit_exec **out)
{
    frit_cpu_device *device = (frit_cpu_device *)base;
    const size_t n_steps = (size_t)plan->n_steps, n_actions = n_steps * MAX_ACTIONS + 2;
    *out = NULL;
    const frit_kernels *kernels = device->reference ? NULL : &device->narrow;
    FRIT_TRY(frit_packs_add(&device->packs, device->many, base, kernels, plan));
    if (device->probes) FRIT_TRY(frit_cpu_choose_threads(device));
    frit_plan_set_rows(plan, plan->graph->max_rows, plan->graph->max_outs);

    frit_arena arena = {0};   // for the time of the building
    builder b = {.device = device, .plan = plan};
    b.notes = frit_arena_new(&arena, note, n_steps + 1);
    b.step_of = frit_arena_new(&arena, int, (size_t)plan->graph->n_nodes + 1);
    b.feeds = frit_arena_new(&arena, made_feed, 2 * n_steps + 1);
    b.slots = frit_arena_new(&arena, slot, 2 * n_steps + 1);
    b.turns = frit_arena_new(&arena, turns, n_steps + 1);
    frit_exec *exec = b.exec = calloc(1, sizeof *exec);
    if (exec) {
        exec->plan = plan;
        exec->narrow.kernels = &device->narrow;
        exec->wide.kernels = base->backend->many_rows(base) > 0 ? &device->wide : &device->narrow;
        exec->narrow.narrow = exec->wide.narrow = &device->narrow;
        exec->actions = calloc(n_actions, sizeof *exec->actions);
        exec->phases = calloc(n_actions, sizeof *exec->phases);
        exec->feeds = calloc(2 * n_steps + 1, sizeof *exec->feeds);
    }
    const bool has_all = exec && exec->actions && exec->phases && exec->feeds && !frit_arena_failed(&arena);
    const frit_status status =
        has_all ? build(&b) : frit_fail_memory(n_actions * sizeof *exec->actions, "the list of steps");
    frit_arena_free(&arena);
    if (status == FRIT_OK)
        *out = exec;
    else
        frit_cpu_exec_free(base, exec);
    return status;
}
