// SPDX-License-Identifier: MIT
// Launches of routes and of products with the matrices of experts.
//
// Plans of few rows multiply each assignment for itself, and the products of a row that are added are one product. In
// plans of more rows, assignments are sorted by expert (kernels/dispatch.wgsl), groups of them share the tiles of an
// expert, and the products of a row are added afterwards.
#include "backend/webgpu/ops/experts.h"
#include "backend/webgpu/ops/launch.h"
#include "backend/webgpu/ops/linear.h"
#include "backend/webgpu/ops/ops.h"
#include "backend/webgpu/ops/product.h"
#include "backend/webgpu/weights/weights.h"
#include "base/grow.h"

enum { MOST_EXPERTS = 1024, SMALL_GROUP = 8, LARGE_GROUP = 32, THREADS = 256 };

typedef struct experts {
    const frit_node *node, *x, *route, *result;   // route: NULL for HEADS
    const frit_tensor *first, *second;            // second: the values of gates, or NULL
    frit_webgpu_cut cut;
    int64_t n_in, n_out, n_used;
    frit_act act;
    bool is_mix, has_own_rows, is_weighed;
} experts;

static const frit_tensor *stack_of(const frit_node *node, int source)
{
    const frit_node *leaf = frit_node_storage(node->src[source]);
    const frit_tensor *tensor = leaf->op == FRIT_OP_WEIGHT ? leaf->tensor : NULL;
    return tensor && tensor->n_dims == 3 && tensor->shape[0] <= MOST_EXPERTS && frit_webgpu_has_tiles(tensor->dtype)
               ? tensor
               : NULL;
}

static experts describe_glu(const frit_node *node)
{
    const frit_experts_glu *glu = &node->experts_glu;
    return (experts){.route = node->src[3],
                     .second = stack_of(node, 2),
                     .cut = {.begin = {glu->gate, glu->up}, .n = glu->n},
                     .act = glu->act,
                     .is_weighed = glu->weigh};
}

static experts describe(const frit_node *node)
{
    experts e = {0};
    if (node->op == FRIT_OP_HEADS)
        e.cut.n = frit_node_width(node);
    else if (node->op == FRIT_OP_EXPERTS_GLU)
        e = describe_glu(node);
    else
        e = (experts){.route = node->src[2],
                      .cut = {.begin = {node->experts.begin}, .n = node->experts.n},
                      .is_mix = node->op == FRIT_OP_EXPERTS_MIX,
                      .is_weighed = node->experts.weigh};
    e.node = e.result = node;
    e.x = node->src[0];
    e.first = stack_of(node, 1);
    e.cut.n_matrices = e.first ? e.first->shape[0] : 0;
    e.n_in = frit_node_width(e.x);
    e.n_out = frit_node_width(node);
    e.n_used = e.route ? frit_node_width(e.route) : node->shape[1];
    e.has_own_rows = e.x->n_dims == 3;
    return e;
}

bool frit_webgpu_experts_fit(const frit_node *node)
{
    const bool is_product = node->op == FRIT_OP_EXPERTS || node->op == FRIT_OP_EXPERTS_GLU ||
                            node->op == FRIT_OP_EXPERTS_MIX || node->op == FRIT_OP_HEADS;
    if (!is_product || node->adapts || !stack_of(node, 1)) return false;
    const experts e = describe(node);
    if (node->op != FRIT_OP_EXPERTS_GLU) return true;
    return e.second && e.second->dtype == e.first->dtype && e.second->shape[0] == e.first->shape[0];
}

// ------------------------------------------------------------------------------- routes

bool frit_webgpu_route_fits(const frit_node *node)
{
    enum { MOST_SCORES = 1536 };   // which lie in workgroup memory, twice
    const frit_node *bias = node->n_src > 1 && node->src[1] ? frit_node_storage(node->src[1]) : NULL;
    return frit_node_width(node->src[0]) <= MOST_SCORES && (!bias || bias->op == FRIT_OP_WEIGHT);
}

frit_status frit_webgpu_lower_route(frit_exec *exec, const frit_fusion *fusion)
{
    const frit_node *node = fusion->nodes[0];
    const frit_route *r = &node->route;
    const bool has_bias = node->n_src > 1 && node->src[1];
    frit_webgpu_launch *l;
    FRIT_TRY(frit_webgpu_launch_new(exec, node, "route.wgsl", &l));
    for (int i = 0; i < (has_bias ? 2 : 1); i++) FRIT_TRY(frit_webgpu_bind_source(exec, l, i, node->src[i]));
    const struct {
        const char *name;
        int64_t value;
    } defines[] = {{"N_SCORES", frit_node_width(node->src[0])},
                   {"N_USED", r->n_used},
                   {"N_GROUPS", r->n_groups},
                   {"N_GROUPS_USED", r->n_groups_used},
                   {"GATING", (int)r->gating},
                   {"BY_SIGMOID", r->by_sigmoid},
                   {"BY_LOGIT", r->by_logit},
                   {"NORMALIZE", r->normalize},
                   {"DIVISOR", r->divisor > 0 ? r->divisor : 1},
                   {"HAS_BIAS", has_bias}};
    for (size_t i = 0; i < FRIT_COUNT(defines); i++) frit_webgpu_define(&l->wanted, defines[i].name, defines[i].value);
    l->params[PARAM_Y] = frit_webgpu_offset(exec, node);
    l->params[PARAM_FACTOR0] = frit_webgpu_float(r->scale);
    l->params[PARAM_FACTOR1] = frit_webgpu_float(r->jitter);
    l->n[0] = 1;
    l->grid = frit_webgpu_grid_rows;
    return FRIT_OK;
}

// Memory of the plan, in numbers from the beginning of the scratch memory.
static uint32_t own_memory(frit_exec *exec, int64_t n_numbers)
{
    const uint64_t offset = exec->own_offset + exec->own_bytes;
    exec->own_bytes += (uint64_t)n_numbers * sizeof(float);
    return (uint32_t)(offset / sizeof(float));
}

static int64_t most_groups(int64_t n_assignments, int64_t n_experts, int64_t group)
{
    return (n_experts < n_assignments ? n_experts : n_assignments) + n_assignments / group;
}

static int64_t group_of(const frit_exec *exec, const experts *e)
{
    const int64_t n_assignments = frit_webgpu_most_rows(exec, e->node) * e->n_used;
    return n_assignments >= SMALL_GROUP * e->cut.n_matrices ? LARGE_GROUP : SMALL_GROUP;
}

static void grid_one(const frit_webgpu_launch *l, const frit_webgpu_step *step, uint32_t *grid)
{
    grid[0] = frit_webgpu_rows(l->node, step->batch) > 0;
    grid[1] = grid[2] = 1;
}

// Sorts the assignments of the route, if no launch has done so.
static frit_status sort_route(frit_exec *exec, const experts *e, frit_webgpu_route *out)
{
    const int64_t n = frit_webgpu_most_rows(exec, e->route) * e->n_used, group = group_of(exec, e);
    const int64_t n_groups = most_groups(n, e->cut.n_matrices, group);
    frit_webgpu_launch *l;
    for (size_t i = 0; i < exec->n_routes; i++) {
        *out = exec->routes[i];
        if (out->route == e->route) return FRIT_OK;
    }
    FRIT_TRY(FRIT_GROW(exec->routes, exec->routes_capacity, exec->n_routes + 1, "the routes of a plan"));
    *out = (frit_webgpu_route){e->route, own_memory(exec, 3 * n_groups), own_memory(exec, n)};
    exec->routes[exec->n_routes++] = *out;
    FRIT_TRY(frit_webgpu_launch_new(exec, e->route, "dispatch.wgsl", &l));
    frit_webgpu_define(&l->wanted, "N_EXPERTS", e->cut.n_matrices);
    frit_webgpu_define(&l->wanted, "GROUP", group);
    l->params[PARAM_DISPATCH_ROUTE] = frit_webgpu_offset(exec, e->route);
    l->params[PARAM_DISPATCH_USED] = (uint32_t)e->n_used;
    l->params[PARAM_DISPATCH_LISTS] = out->lists;
    l->params[PARAM_DISPATCH_ORDER] = out->order;
    l->params[PARAM_DISPATCH_MOST] = (uint32_t)n_groups;
    l->grid = grid_one;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- products

// n[1]: experts of a row, n[2]: matrices, n[3]: assignments of a group.
static void grid_groups(const frit_webgpu_launch *l, const frit_webgpu_step *step, uint32_t *grid)
{
    const int64_t n = frit_webgpu_rows(l->node, step->batch) * l->n[1];
    grid[0] = (uint32_t)l->n[0];
    grid[1] = (uint32_t)(n > 0 ? most_groups(n, l->n[2], l->n[3]) : 0);
    grid[2] = 1;
}

// n[1]: groups of threads for each n[3] rows.
static void grid_rows(const frit_webgpu_launch *l, const frit_webgpu_step *step, uint32_t *grid)
{
    grid[0] = (uint32_t)l->n[0];
    grid[1] = (uint32_t)((frit_webgpu_rows(l->node, step->batch) + l->n[3] - 1) / l->n[3] * l->n[1]);
    grid[2] = 1;
}

static void set_grid(const experts *e, const frit_webgpu_product *p, frit_webgpu_launch *l)
{
    l->n[1] = p->routed == FRIT_WEBGPU_SUM ? 1 : e->n_used;
    l->n[2] = e->cut.n_matrices;
    l->n[3] = p->n_at_once;
    l->grid = p->routed == FRIT_WEBGPU_BY_GROUP ? grid_groups : grid_rows;
}

static frit_status add_product(frit_exec *exec, const experts *e, const frit_webgpu_product *p,
                               const frit_webgpu_route *sorted, const frit_node *residual)
{
    const frit_webgpu_tensor *w = p->weights;
    const int64_t each = w->n_rows / e->cut.n_matrices, in_part = w->part_rows / each;
    const bool is_added_later = e->is_mix && p->routed != FRIT_WEBGPU_SUM;
    frit_webgpu_launch *l;
    FRIT_TRY(frit_webgpu_product_new(exec, p, &l));
    frit_webgpu_define(&l->wanted, "OWN_ROWS", e->has_own_rows);
    frit_webgpu_define(&l->wanted, "WEIGHED", e->is_weighed && !is_added_later);
    if (e->second) frit_webgpu_define(&l->wanted, "GATED", 1), l->params[PARAM_STORE_ACT] = (uint32_t)e->act;
    if (residual)
        frit_webgpu_define(&l->wanted, "ADD", 1), l->params[PARAM_STORE_ADD] = frit_webgpu_offset(exec, residual);
    l->params[PARAM_ROUTED_ROUTE] = e->route ? frit_webgpu_offset(exec, e->route) : 0;
    l->params[PARAM_ROUTED_USED] = (uint32_t)e->n_used;
    l->params[PARAM_ROUTED_LISTS] = sorted->lists;
    l->params[PARAM_ROUTED_ORDER] = sorted->order;
    l->params[PARAM_ROUTED_FIRST] = (uint32_t)(p->part * in_part);
    l->params[PARAM_ROUTED_END] = (uint32_t)((p->part + 1) * in_part);
    set_grid(e, p, l);
    return FRIT_OK;
}

// Offset of products of assignments before they are added, which all layers use one after the other.
static uint32_t sums_of(frit_exec *exec)
{
    const frit_graph *g = exec->plan->graph;
    int64_t most = 0;
    for (int i = 0; i < g->n_nodes && exec->sums == 0; i++) {
        if (g->nodes[i]->op != FRIT_OP_EXPERTS_MIX) continue;
        const experts e = describe(g->nodes[i]);
        const int64_t n = frit_webgpu_most_rows(exec, e.node) * e.n_used * e.n_out;
        if (n > most) most = n;
    }
    if (exec->sums == 0) exec->sums = own_memory(exec, most);
    return exec->sums;
}

// Adds the products of a row (OP_MIX of kernels/numbers.wgsl).
static frit_status add_sum(frit_exec *exec, const experts *e)
{
    frit_webgpu_launch *l;
    FRIT_TRY(frit_webgpu_launch_new(exec, e->node, "numbers.wgsl", &l));
    frit_webgpu_define(&l->wanted, "OP_MIX", 1);
    frit_webgpu_define(&l->wanted, "OP", 1);
    l->params[PARAM_X0] = sums_of(exec);
    l->params[PARAM_X1] = frit_webgpu_offset(exec, e->route);
    l->params[PARAM_Y] = frit_webgpu_offset(exec, e->result);
    l->params[PARAM_EACH] = (uint32_t)e->n_out;
    l->params[PARAM_SIZE0] = (uint32_t)e->n_out;
    l->params[PARAM_SIZE1] = (uint32_t)e->n_used;
    l->params[PARAM_SIZE2] = !e->is_weighed;
    l->n[0] = e->n_out;
    l->n[1] = THREADS;
    l->grid = frit_webgpu_grid_numbers;
    return FRIT_OK;
}

static frit_webgpu_product shape_of(const frit_exec *exec, const experts *e, const frit_webgpu_tensor *w)
{
    const int64_t n_rows = frit_webgpu_most_rows(exec, e->node);
    const bool has_groups = e->route && n_rows > FRIT_WEBGPU_GEMV_ROWS;
    frit_webgpu_product p = {.node = e->node,
                             .weights = w,
                             .n_in = e->n_in,
                             .n_out = e->n_out,
                             .is_int = frit_webgpu_is_int_product(exec, e->node),
                             .n_at_once = 1,
                             .routed = FRIT_WEBGPU_BY_ASSIGNMENT};
    if (!e->route) {
        p.routed = FRIT_WEBGPU_BY_HEAD;
        while (p.n_at_once < n_rows && p.n_at_once < FRIT_WEBGPU_GEMV_ROWS) p.n_at_once *= 2;
    } else if (has_groups) {
        p.routed = FRIT_WEBGPU_BY_GROUP;
        p.n_at_once = group_of(exec, e);
        p.by_tiles = p.n_at_once == LARGE_GROUP;
    } else if (e->is_mix && w->n_parts == 1) {
        p.routed = FRIT_WEBGPU_SUM;
    }
    return p;
}

// The residual that the kernel adds itself: the first ADD of the fusion.
static const frit_node *residual_of(const frit_fusion *fusion, const frit_webgpu_product *p)
{
    if (p->routed != FRIT_WEBGPU_SUM || fusion->n_nodes < 2) return NULL;
    return fusion->nodes[1]->src[frit_webgpu_residual_of(fusion, 1)];
}

frit_status frit_webgpu_lower_experts(frit_exec *exec, const frit_fusion *fusion)
{
    experts e = describe(fusion->nodes[0]);
    const frit_webgpu_matrices matrices = {
        .list = {e.first, e.second}, .n = e.second ? 2 : 1, .is_gated = e.second, .cut = e.cut};
    const frit_webgpu_tensor *w;
    frit_webgpu_route sorted = {0};
    e.result = frit_fusion_result(fusion);
    FRIT_TRY(frit_webgpu_matrices_get(exec->device, &matrices, &w));
    frit_webgpu_product p = shape_of(exec, &e, w);
    const frit_node *residual = residual_of(fusion, &p);
    p.result = e.is_mix && p.routed != FRIT_WEBGPU_SUM ? sums_of(exec) : frit_webgpu_offset(exec, e.result);
    if (p.routed == FRIT_WEBGPU_BY_GROUP) FRIT_TRY(sort_route(exec, &e, &sorted));
    FRIT_TRY(frit_webgpu_add_input(exec, e.x, p.is_int));
    for (; p.part < w->n_parts; p.part++) FRIT_TRY(add_product(exec, &e, &p, &sorted, residual));
    if (e.is_mix && p.routed != FRIT_WEBGPU_SUM) FRIT_TRY(add_sum(exec, &e));
    for (int i = residual ? 2 : 1; i < fusion->n_nodes; i++)
        FRIT_TRY(frit_webgpu_lower_addition(exec, fusion->nodes[i], frit_webgpu_residual_of(fusion, i), e.result));
    return FRIT_OK;
}
