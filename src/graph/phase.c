// SPDX-License-Identifier: MIT
// Makes phases of a graph (phase.h):
//
//   1. Live nodes: the nodes that the output and the cache need, and how often each result is read.
//   2. Fusions: a node joins the fusion of its source by a row of `joins`, if nothing else reads the source and the
// device
//      supports the join. Otherwise it begins a fusion.
//   3. Prologues: norms that only products read, and sums of a residual and a norm that products read first.
//   4. Stages: a fusion runs one stage after its latest source. A prologue adds no stage, and an epilogue has the stage
// of
//      its products. The fusions of a stage are a phase.
#include "graph/phase.h"
#include "graph/node.h"
#include "base/minmax.h"

#include <stdlib.h>

enum { NONE = -1 };

typedef struct grouping {
    frit_phases *phases;
    frit_graph *g;
    frit_arena *arena;   // freed after the grouping
    frit_can_join_fn can_join;
    const void *device;
    frit_fusion *fusions;   // in the order in which they began; n_nodes 0: it joined another
    int *stages, *levels;   // [n_fusions]
    bool *is_prologue;      // [n_fusions]
    int n_fusions;
    bool *is_alive;   // [n_nodes]
    int *n_reads;     // [n_nodes]: how often live nodes and the output read the result
    int *fusion_of;   // [n_nodes]; NONE for leaves and aliases
} grouping;

// ------------------------------------------------------------------------------- live nodes

static frit_status find_live(grouping *p)
{
    const size_t n = (size_t)p->g->n_nodes;
    frit_node **stack = frit_arena_new(p->arena, frit_node *, n * (FRIT_MAX_SOURCES + 2) + 1);
    p->is_alive = frit_arena_new(p->arena, bool, n);
    p->n_reads = frit_arena_new(p->arena, int, n);
    p->fusion_of = frit_arena_new(p->arena, int, n);
    if (!stack || !p->is_alive || !p->n_reads || !p->fusion_of) return frit_fail_memory(n * sizeof *stack, "planning");
    int top = 0;
    for (size_t i = 0; i < n; i++) {
        p->fusion_of[i] = NONE;
        if (p->g->nodes[i]->op == FRIT_OP_KV_WRITE) stack[top++] = p->g->nodes[i];
    }
    for (int i = -1; i < p->g->n_results; i++) {
        frit_node *root = i < 0 ? p->g->output : p->g->results[i];
        if (!root) continue;
        stack[top++] = root;
        p->n_reads[frit_node_storage(root)->id]++;
    }
    while (top > 0) {
        frit_node *node = stack[--top];
        if (p->is_alive[node->id]) continue;
        p->is_alive[node->id] = true;
        for (int i = 0; i < node->n_src; i++) {
            stack[top++] = node->src[i];
            if (node->op != FRIT_OP_RESHAPE) p->n_reads[frit_node_storage(node->src[i])->id]++;
        }
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- fusions

typedef struct join_row {
    frit_op op;
    frit_join join;
    unsigned sources;   // bit i: source i may be the result of the fusion
    bool is_shared;     // other nodes may read that source too
    bool (*fits)(const grouping *p, const frit_node *node, const frit_fusion *fusion);   // NULL: always
} join_row;

static bool is_one_row(const frit_node *pair)
{
    return pair->src[1]->n_dims != pair->n_dims || pair->src[1]->rows != pair->rows;
}

static bool is_norm(const frit_node *node)
{
    return node->op == FRIT_OP_RMS_NORM || node->op == FRIT_OP_LAYER_NORM;
}

static bool is_residual(const grouping *p, const frit_node *node, const frit_fusion *fusion)
{
    (void)p;
    const frit_node *first = fusion->nodes[0];
    return node->n_dims == 2 && !is_one_row(node) && fusion->n_nodes == 1 &&
           (is_norm(first) || first->op == FRIT_OP_REDUCE);
}

// A norm joins a sum that others read too. If only the norm reads the sum, the norm stays alone: products may take it
// into their prologue.
static bool is_norm_of_sum(const grouping *p, const frit_node *node, const frit_fusion *fusion)
{
    const frit_node *sum = fusion->nodes[0];
    return fusion->n_nodes == 1 && sum->op == FRIT_OP_ADD && !is_one_row(sum) && p->n_reads[sum->id] > 1 &&
           node->src[0] == sum;
}

// The rows are tried in order. A residual prefers to join a product: each worker adds it to its own columns.
static const join_row joins[] = {
    {FRIT_OP_ACT, FRIT_JOIN_ELEMENTS, 1, false, NULL},
    {FRIT_OP_XIELU, FRIT_JOIN_ELEMENTS, 1, false, NULL},
    {FRIT_OP_SCALE, FRIT_JOIN_ELEMENTS, 1, false, NULL},
    {FRIT_OP_SOFTCAP, FRIT_JOIN_ELEMENTS, 1, false, NULL},
    {FRIT_OP_CLAMP, FRIT_JOIN_ELEMENTS, 1, false, NULL},
    {FRIT_OP_ADD, FRIT_JOIN_ELEMENTS, 1 | 2, false, NULL},
    {FRIT_OP_MUL, FRIT_JOIN_ELEMENTS, 1 | 2, false, NULL},
    {FRIT_OP_ADD, FRIT_JOIN_ROWS, 1 | 2, false, is_residual},
    {FRIT_OP_RMS_NORM, FRIT_JOIN_ROWS, 1, true, is_norm_of_sum},
};

static bool device_can_join(const grouping *p, frit_join join, const frit_node *node, const frit_node *other)
{
    return !p->can_join || p->can_join(p->device, join, node, other);
}

// The fusion whose result is source i, without a reshape between; or NULL.
static frit_fusion *fusion_at(const grouping *p, const frit_node *node, int i)
{
    const int c = i < node->n_src ? p->fusion_of[node->src[i]->id] : NONE;
    frit_fusion *fusion = c == NONE ? NULL : &p->fusions[c];
    return fusion && frit_fusion_result(fusion) == node->src[i] ? fusion : NULL;
}

static bool is_lone(const grouping *p, const frit_node *node)
{
    return p->n_reads[node->id] == 1;
}

// True if `first` is a product, and `node` can be applied to its results element by element.
static bool makes_elements(const frit_node *first, const frit_node *node)
{
    return first->op == FRIT_OP_LINEAR || (first->op == FRIT_OP_EXPERTS_MIX && node->op == FRIT_OP_ADD);
}

static bool row_applies(const grouping *p, const join_row *row, const frit_node *node, int i)
{
    const frit_fusion *fusion = fusion_at(p, node, i);
    if (row->op != node->op || !(row->sources >> i & 1) || !fusion || fusion->n_nodes == FRIT_FUSION_NODES)
        return false;
    if (row->join == FRIT_JOIN_ELEMENTS && !makes_elements(fusion->nodes[0], node)) return false;
    if (!row->is_shared && !is_lone(p, node->src[i])) return false;
    return (!row->fits || row->fits(p, node, fusion)) && device_can_join(p, row->join, node, fusion->nodes[0]);
}

static bool join_fusion(grouping *p, frit_node *node)
{
    for (size_t r = 0; r < FRIT_COUNT(joins); r++)
        for (int i = node->n_src < 2 ? 0 : 1; i >= 0; i--) {
            if (!row_applies(p, &joins[r], node, i)) continue;
            frit_fusion *fusion = fusion_at(p, node, i);
            fusion->nodes[fusion->n_nodes++] = node;
            p->fusion_of[node->id] = (int)(fusion - p->fusions);
            return true;
        }
    return false;
}

// Gate, up and their GLU become one fusion if gate and up are plain products of the same rows.
static bool join_glu(grouping *p, frit_node *node)
{
    frit_fusion *gate = node->op == FRIT_OP_GLU ? fusion_at(p, node, 0) : NULL,
                *up = gate ? fusion_at(p, node, 1) : NULL;
    if (!up || gate == up || gate->n_nodes != 1 || up->n_nodes != 1) return false;
    if (!is_lone(p, node->src[0]) || !is_lone(p, node->src[1]) || node->src[0]->src[0] != node->src[1]->src[0])
        return false;
    for (int i = 0; i < 2; i++)
        if (node->src[i]->op != FRIT_OP_LINEAR || !device_can_join(p, FRIT_JOIN_ELEMENTS, node, node->src[i]))
            return false;
    *gate = (frit_fusion){.nodes = {gate->nodes[0], up->nodes[0], node}, .n_nodes = 3, .n_products = 2};
    up->n_nodes = 0;
    p->fusion_of[node->src[1]->id] = p->fusion_of[node->id] = (int)(gate - p->fusions);
    return true;
}

// Constructors number nodes after their sources. The exception is TAKE_ROWS that moved up (fuse.c), which nothing
// joins.
static frit_status make_fusions(grouping *p)
{
    const size_t n = (size_t)p->g->n_nodes;
    p->fusions = frit_arena_new(p->arena, frit_fusion, n);
    p->stages = frit_arena_new(p->arena, int, n);
    p->levels = frit_arena_new(p->arena, int, n);
    p->is_prologue = frit_arena_new(p->arena, bool, n);
    if (!p->fusions || !p->stages || !p->levels || !p->is_prologue)
        return frit_fail_memory(n * sizeof *p->fusions, "planning");
    for (size_t i = 0; i < n; i++) {
        frit_node *node = p->g->nodes[i];
        if (!p->is_alive[i] || frit_node_is_leaf(node) || node->op == FRIT_OP_RESHAPE) continue;
        if (join_glu(p, node) || join_fusion(p, node)) continue;
        p->fusion_of[i] = p->n_fusions;
        p->fusions[p->n_fusions++] = (frit_fusion){.nodes = {node}, .n_nodes = 1, .n_products = 1};
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- sources of fusions

// One source that a fusion reads from another fusion.
typedef struct reading {
    int node, source;   // index in the fusion, and among the node's sources
    int from;           // the other fusion
    const frit_node *node_read;
} reading;

static const reading before_all = {.source = NONE};

static bool next_reading(const grouping *p, int c, reading *r)
{
    const frit_fusion *fusion = &p->fusions[c];
    for (; r->node < fusion->n_nodes; r->node++, r->source = NONE) {
        const frit_node *node = fusion->nodes[r->node];
        while (++r->source < node->n_src) {
            r->node_read = frit_node_storage(node->src[r->source]);
            r->from = p->fusion_of[r->node_read->id];
            if (r->from != NONE && r->from != c) return true;
        }
    }
    return false;
}

// True if source 0 of the reading node is the result of fusion r->from, in whole rows.
static bool reads_rows(const grouping *p, int c, const reading *r)
{
    const frit_node *node = p->fusions[c].nodes[r->node];
    return r->source == 0 && frit_node_width(node->src[0]) == frit_node_width(r->node_read) &&
           r->node_read == frit_fusion_result(&p->fusions[r->from]);
}

// True if the reading node is a product, and multiplies the rows.
static bool is_input(const grouping *p, int c, const reading *r)
{
    const frit_node *node = p->fusions[c].nodes[r->node];
    const bool is_product = node->op == FRIT_OP_LINEAR || (node->op == FRIT_OP_ADAPT_DOWN && node->n_src == 1);
    return is_product && reads_rows(p, c, r) &&
           device_can_join(p, FRIT_JOIN_PROLOGUE, p->fusions[r->from].nodes[0], node);
}

// ------------------------------------------------------------------------------- stages

static bool is_computed(const frit_node *node)   // in this graph
{
    return !frit_node_is_leaf(frit_node_storage(node));
}

// True if the node works on single heads of products.
static bool works_by_heads(const frit_node *node)
{
    if (node->n_src == 0 || node->src[0]->n_dims != 3) return false;
    if (node->op == FRIT_OP_KV_WRITE) return node->n_src == 2 && is_computed(node->src[0]) && is_computed(node->src[1]);
    return node->n_dims == 3 && is_computed(node->src[0]) && (is_norm(node) || node->op == FRIT_OP_ROPE);
}

// Sets the stage at whose end the result of fusion c exists; for a prologue, the stage after which it can be computed.
// Returns true if the stage or level changed.
static bool set_stage(grouping *p, int c)
{
    const frit_fusion *fusion = &p->fusions[c];
    int ready = 0, level = 0, root = NONE;
    bool follows = fusion->n_nodes == 1 && !p->is_prologue[c] && works_by_heads(fusion->nodes[0]);
    for (reading r = before_all; next_reading(p, c, &r);) ready = frit_max_int(ready, p->stages[r.from]);
    for (reading r = before_all; follows && next_reading(p, c, &r);) {
        const frit_fusion *from = &p->fusions[r.from];
        const bool is_product = from->nodes[0]->op == FRIT_OP_LINEAR && from->n_products == 1;
        follows = (is_product || p->levels[r.from] > 0) && p->stages[r.from] == ready && !p->is_prologue[r.from];
        level = frit_max_int(level, p->levels[r.from] + 1);
        root = r.from;
    }
    follows = follows && level < FRIT_MAX_LEVELS && root != NONE &&
              device_can_join(p, FRIT_JOIN_HEADS, fusion->nodes[0], p->fusions[root].nodes[0]);
    const int stage = follows || p->is_prologue[c] ? ready : ready + 1;
    const bool changed = p->stages[c] != stage || p->levels[c] != (follows ? level : 0);
    p->stages[c] = stage;
    p->levels[c] = follows ? level : 0;
    return changed;
}

// Most fusions come after their sources, so a few iterations suffice.
static void set_stages(grouping *p)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int c = 0; c < p->n_fusions; c++)
            if (p->fusions[c].n_nodes > 0) changed = set_stage(p, c) || changed;
    }
}

// ------------------------------------------------------------------------------- prologues

typedef struct first_reads {   // stages of the first fusions that read a prologue
    int input;                 // products, and norms in a prologue
    int other;
} first_reads;

static void lower_to(int *first, int stage)
{
    if (stage < *first) *first = stage;
}

// Records that fusion c reads its sources at this stage.
static void note_reads(const grouping *p, int c, int stage, first_reads *first)
{
    const bool is_norm_of_rows = p->is_prologue[c] && p->fusions[c].n_nodes == 1;
    for (reading r = before_all; next_reading(p, c, &r);) {
        const bool is_first = is_norm_of_rows ? reads_rows(p, c, &r) : is_input(p, c, &r);
        lower_to(is_first ? &first[r.from].input : &first[r.from].other, stage);
    }
}

// Ordinary fusions come first. They determine the stages of norms, which determine the stages of sums.
static void find_first_reads(const grouping *p, first_reads *first)
{
    for (int c = 0; c < p->n_fusions; c++) first[c] = (first_reads){INT32_MAX, INT32_MAX};
    for (int c = 0; c < p->n_fusions; c++)
        if (!p->is_prologue[c]) note_reads(p, c, p->stages[c], first);
    for (int n_nodes = 1; n_nodes <= 2; n_nodes++)
        for (int c = p->n_fusions - 1; c >= 0; c--)
            if (p->is_prologue[c] && p->fusions[c].n_nodes == n_nodes) note_reads(p, c, first[c].input, first);
}

// Marks norms that only products read, and all sums of a residual and a norm; place_prologues unmarks some sums.
static void find_candidates(grouping *p, int *n_inputs)
{
    for (int c = 0; c < p->n_fusions; c++)
        for (reading r = before_all; next_reading(p, c, &r);) n_inputs[r.from] += is_input(p, c, &r);
    for (int c = 0; c < p->n_fusions; c++) {
        const frit_fusion *fusion = &p->fusions[c];
        if (fusion->n_nodes == 0 || !is_norm(fusion->nodes[0])) continue;
        const int n_reads = p->n_reads[frit_fusion_result(fusion)->id];
        p->is_prologue[c] = fusion->n_nodes > 1 || (n_reads > 0 && n_reads == n_inputs[c]);
    }
}

// A sum stays in a prologue only if products or norms read it before any other fusion: the others find it in memory.
// Prologues get the stage of their first readers.
static frit_status place_prologues(grouping *p)
{
    first_reads *first = frit_arena_new(p->arena, first_reads, (size_t)p->n_fusions + 1);
    int *n_inputs = frit_arena_new(p->arena, int, (size_t)p->n_fusions + 1);
    if (!first || !n_inputs) return frit_fail_memory((size_t)p->n_fusions * sizeof *first, "planning");
    find_candidates(p, n_inputs);
    for (bool again = true; again;) {
        again = false;
        set_stages(p);
        find_first_reads(p, first);
        for (int c = 0; c < p->n_fusions; c++) {
            const bool is_sum = p->is_prologue[c] && p->fusions[c].n_nodes > 1;
            if (!is_sum || first[c].input < first[c].other) continue;
            p->is_prologue[c] = false;
            again = true;
        }
    }
    for (int c = 0; c < p->n_fusions; c++)
        if (p->is_prologue[c]) p->stages[c] = first[c].input;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- the list

enum { PROLOGUE, PRODUCTS, EPILOGUE, N_ROLES };

typedef struct entry {
    int stage, role, level, id, fusion;
} entry;

static int in_order(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->stage != y->stage) return x->stage < y->stage ? -1 : 1;
    if (x->role != y->role) return x->role - y->role;
    if (x->level != y->level) return x->level - y->level;
    return x->id < y->id ? -1 : 1;
}

static int role_of(const grouping *p, int c)
{
    return p->is_prologue[c] ? PROLOGUE : p->levels[c] > 0 ? EPILOGUE : PRODUCTS;
}

static void add_to_phase(frit_phase *phase, frit_fusion *fusion, int role)
{
    frit_fusion **first[N_ROLES] = {&phase->prologue, &phase->products, &phase->epilogue};
    int *const n[N_ROLES] = {&phase->n_prologue, &phase->n_products, &phase->n_epilogue};
    if (*n[role] == 0) *first[role] = fusion;
    ++*n[role];
}

static frit_status list_phases(grouping *p)
{
    frit_phases *out = p->phases;
    entry *entries = frit_arena_new(p->arena, entry, (size_t)p->n_fusions + 1);
    out->fusions = frit_arena_new(p->g->arena, frit_fusion, (size_t)p->n_fusions + 1);
    out->list = frit_arena_new(p->g->arena, frit_phase, (size_t)p->n_fusions + 1);
    out->fusion_of = frit_arena_new(p->g->arena, int, (size_t)p->g->n_nodes);
    if (!entries || !out->fusions || !out->list || !out->fusion_of)
        return frit_fail_memory((size_t)p->n_fusions * sizeof *entries, "a plan");
    for (int c = 0; c < p->n_fusions; c++)
        if (p->fusions[c].n_nodes > 0)
            entries[out->n_fusions++] =
                (entry){p->stages[c], role_of(p, c), p->levels[c], frit_fusion_result(&p->fusions[c])->id, c};
    qsort(entries, (size_t)out->n_fusions, sizeof *entries, in_order);
    for (int i = 0; i < p->g->n_nodes; i++) out->fusion_of[i] = NONE;
    for (int k = 0; k < out->n_fusions; k++) {
        if (k == 0 || entries[k].stage != entries[k - 1].stage) out->n++;
        frit_fusion *fusion = &out->fusions[k];
        *fusion = p->fusions[entries[k].fusion];
        fusion->phase = out->n - 1;
        fusion->level = entries[k].level;
        add_to_phase(&out->list[fusion->phase], fusion, entries[k].role);
        for (int i = 0; i < fusion->n_nodes; i++) out->fusion_of[fusion->nodes[i]->id] = k;
    }
    for (int i = 0; i < p->g->n_nodes; i++)
        if (p->is_alive[i]) out->fusion_of[i] = out->fusion_of[frit_node_storage(p->g->nodes[i])->id];
    return FRIT_OK;
}

static frit_status make(grouping *p)
{
    FRIT_TRY(find_live(p));
    FRIT_TRY(make_fusions(p));
    FRIT_TRY(place_prologues(p));
    return list_phases(p);
}

frit_status frit_phases_make(frit_phases *out, frit_graph *graph, frit_can_join_fn can_join, const void *device)
{
    *out = (frit_phases){0};
    frit_arena arena = {0};
    const frit_status status =
        make(&(grouping){.phases = out, .g = graph, .arena = &arena, .can_join = can_join, .device = device});
    frit_arena_free(&arena);
    return status;
}

bool frit_phases_is_prologue(const frit_phases *phases, int fusion)
{
    const frit_phase *phase = &phases->list[phases->fusions[fusion].phase];
    return phase->n_prologue > 0 && &phases->fusions[fusion] < phase->prologue + phase->n_prologue;
}
