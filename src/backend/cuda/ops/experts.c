// SPDX-License-Identifier: MIT
// Mixtures of experts: routes, and products with the matrices of the experts that a route names. Kernels read the route
// on the GPU, so the launches of a step depend on its number of rows alone.
//
// With few rows, each block serves one expert of one row, and the sum over a row's experts is one product. If rows
// share experts, assignments are sorted by expert (dispatch.cu), a block serves up to GROUP_ROWS assignments of an
// expert, and another kernel adds the results in the order of the route. Plans of FRIT_CUDA_GEMM_FROM rows or more have
// products in f16 of up to GEMM_ROWS assignments of an expert (experts_rows.cu). Heads with their own matrices (op
// HEADS) are experts that every row has.
#include "backend/cuda/ops/experts.h"
#include "backend/cuda/exec.h"
#include "backend/cuda/ops/experts_rows.h"
#include "backend/cuda/ops/ops.h"
#include "backend/cuda/ops/product.h"
#include "backend/cuda/weights/weights.h"

#include <stdlib.h>

enum { THREADS = 256, GROUP_ROWS = 8, GEMM_ROWS = 64, MOST_EXPERTS = 1024, MOST_BLOCKS = 65535 };

typedef struct experts {
    const frit_node *node, *x, *route;   // route: NULL for HEADS
    bool has_residual;
    const frit_tensor *first, *second;   // second: the values of gates, or NULL
    int k, n, n_used;                    // columns and rows of a matrix
    frit_act act;
    bool is_mix, has_own_rows, is_weighed;
} experts;

static const frit_tensor *tensor_of(const frit_node *node, int source)
{
    const frit_node *leaf = frit_node_storage(node->src[source]);
    return leaf->op == FRIT_OP_WEIGHT ? leaf->tensor : NULL;
}

static experts describe_heads(const frit_node *node)
{
    return (experts){.node = node,
                     .x = node->src[0],
                     .first = tensor_of(node, 1),
                     .k = (int)frit_cuda_width(node->src[0]),
                     .n = (int)frit_cuda_width(node),
                     .n_used = (int)node->shape[1],
                     .has_own_rows = true};
}

static experts describe_experts(const frit_node *node)
{
    if (node->op == FRIT_OP_HEADS) return describe_heads(node);
    const bool is_glu = node->op == FRIT_OP_EXPERTS_GLU;
    experts e = {.node = node,
                 .x = node->src[0],
                 .route = node->src[is_glu ? 3 : 2],
                 .first = tensor_of(node, 1),
                 .second = is_glu ? tensor_of(node, 2) : NULL,
                 .k = (int)frit_cuda_width(node->src[0]),
                 .n = is_glu ? node->experts_glu.n : node->experts.n,
                 .act = is_glu ? node->experts_glu.act : FRIT_ACT_SILU,
                 .is_mix = node->op == FRIT_OP_EXPERTS_MIX,
                 .has_own_rows = node->src[0]->n_dims == 3,
                 .is_weighed = is_glu ? node->experts_glu.weigh : node->experts.weigh};
    e.n_used = (int)frit_cuda_width(e.route);
    return e;
}

static int n_experts_of(const frit_node *route)
{
    const int divisor = route->route.divisor > 0 ? route->route.divisor : 1;
    return ((int)frit_cuda_width(route->src[0]) + divisor - 1) / divisor;
}

frit_cuda_cut frit_cuda_cut_of(const frit_node *node, int source)
{
    frit_cuda_cut cut = {0};
    if (!frit_cuda_is_tiled(node, source)) return cut;
    if (node->op == FRIT_OP_HEADS)
        cut = (frit_cuda_cut){.n = frit_cuda_width(node)};
    else if (node->op == FRIT_OP_EXPERTS || node->op == FRIT_OP_EXPERTS_MIX)
        cut = (frit_cuda_cut){.begin = {node->experts.begin}, .n = node->experts.n};
    else if (node->op == FRIT_OP_EXPERTS_GLU)
        cut = (frit_cuda_cut){.begin = {source == 1 ? node->experts_glu.gate : node->experts_glu.up},
                              .n = node->experts_glu.n};
    else
        return cut;
    cut.n_matrices = tensor_of(node, source)->shape[0];
    return cut;
}

static bool is_stack(const frit_tensor *tensor)
{
    return tensor && tensor->n_dims == 3 && tensor->shape[0] <= MOST_EXPERTS && frit_tile_format_of(tensor->dtype);
}

// Limits of k: the input and tiles must fit into shared memory together.
bool frit_cuda_experts_fit(const frit_node *node)
{
    const experts e = describe_experts(node);
    if (!is_stack(e.first) || (e.second && (!is_stack(e.second) || e.second->dtype != e.first->dtype))) return false;
    const int64_t most = frit_cuda_is_16_bits(e.first->dtype) ? 8192 : 32768;
    return node->adapts == 0 && e.k % 32 == 0 && e.k <= most &&
           e.n % (e.second ? FRIT_TILE_ROWS / 2 : FRIT_TILE_ROWS) == 0 &&
           (!e.route || n_experts_of(e.route) <= MOST_EXPERTS);
}

// ------------------------------------------------------------------------------- routes

// True if the route is in a plan whose products are gemms.
static bool is_gemm_plan(const frit_node *route)
{
    return route->shape[0] >= FRIT_CUDA_GEMM_FROM;
}

// True if assignments are sorted by expert: in gemm plans, and with enough rows that experts are shared.
static bool is_sorted(int64_t n_rows, const frit_node *route)
{
    if (n_experts_of(route) > MOST_EXPERTS) return false;
    return is_gemm_plan(route) || (n_rows > 1 && n_rows * frit_cuda_width(route) * 2 > n_experts_of(route));
}

static int group_rows_of(const frit_node *route)
{
    return is_gemm_plan(route) ? GEMM_ROWS : GROUP_ROWS;
}

// The largest number of groups of n_assignments assignments.
static int64_t most_groups(int64_t n_assignments, const frit_node *route)
{
    const int64_t n = n_experts_of(route);
    return (n < n_assignments ? n : n_assignments) + n_assignments / group_rows_of(route);
}

bool frit_cuda_route_fits(const frit_node *node)
{
    return frit_cuda_width(node->src[0]) <= 4 * MOST_EXPERTS;
}

static frit_status launch_grid(frit_cuda_device *d, const frit_cuda_kernel *kernel, unsigned x, unsigned y,
                               const void *args)
{
    frit_cuda_kernel one = *kernel;
    one.grid[0] = x;
    one.grid[1] = y;
    return frit_cuda_kernel_launch(&d->gpu, &one, d->stream, args, FRIT_CUDA_OVERLAPPING);
}

frit_status frit_cuda_route_kernel(const frit_route *r, int n_scores, frit_cuda_kernel *kernel)
{
    const int n_shared = 2 * n_scores + r->n_groups + r->n_used;
    if (r->n_used < 1 || n_scores < r->n_used || n_scores > 4 * MOST_EXPERTS)
        return frit_fail(FRIT_E_UNSUPPORTED, "a route chooses %d of %d experts; expected at most %d", (int)r->n_used,
                         n_scores, 4 * MOST_EXPERTS);
    *kernel = (frit_cuda_kernel){.file = "route.cu",
                                 .name = "route",
                                 .grid = {1, 1, 1},
                                 .threads = 32,
                                 .shared_bytes = (unsigned)n_shared * sizeof(float)};
    const struct {
        const char *name;
        int64_t value;
    } defines[] = {
        {"N_SCORES", n_scores},
        {"N_USED", r->n_used},
        {"N_GROUPS", r->n_groups},
        {"N_GROUPS_USED", r->n_groups_used},
        {"GATING", (int)r->gating},
        {"BY_SIGMOID", r->by_sigmoid},
        {"BY_LOGIT", r->by_logit},
        {"NORMALIZE", r->normalize},
        {"DIVISOR", r->divisor > 0 ? r->divisor : 1},
    };
    for (size_t i = 0; i < FRIT_COUNT(defines); i++) frit_cuda_define(kernel, defines[i].name, defines[i].value);
    return FRIT_OK;
}

static frit_status run_route(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const frit_route *r = &l->node->route;
    const int64_t n_rows = frit_cuda_rows(l->node, step->batch);
    const frit_route_args args = {.scores = frit_cuda_resolve(step, l->x[0]),
                                  .bias = frit_cuda_resolve(step, l->x[1]),
                                  .route = frit_cuda_resolve(step, l->y),
                                  .scale = r->scale,
                                  .jitter = r->jitter};
    return n_rows == 0 ? FRIT_OK : launch_grid(d, l->kernel, (unsigned)n_rows, 1, &args);
}

static frit_status run_dispatch(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const frit_node *route = l->node;
    const int64_t n_rows = frit_cuda_rows(route, step->batch), n = n_rows * frit_cuda_width(route);
    if (!is_sorted(n_rows, route)) return FRIT_OK;
    const frit_dispatch_args args = {.route = frit_cuda_resolve(step, l->y),
                                     .groups = l->experts.dispatch.groups,
                                     .order = l->experts.dispatch.order,
                                     .n_assignments = (int)n,
                                     .n_used = (int)frit_cuda_width(route),
                                     .n_groups = (int)most_groups(n, route),
                                     .group_rows = group_rows_of(route)};
    return launch_grid(d, l->kernel, 1, 1, &args);
}

uint64_t frit_cuda_route_bytes(const frit_node *route)
{
    const int64_t n = route->shape[0] * frit_cuda_width(route);
    if (!is_sorted(route->shape[0], route)) return 0;
    return (uint64_t)most_groups(n, route) * sizeof(frit_expert_group) + (uint64_t)n * sizeof(int32_t);
}

// Bytes of the results of assignments, before they are added.
static uint64_t mix_bytes(const experts *e)
{
    return e->is_mix ? (uint64_t)(e->node->shape[0] * e->n_used * e->n) * sizeof(float) : 0;
}

// Bytes of the input in f16, and of its scales.
static uint64_t converted_bytes(const experts *e)
{
    const uint64_t n_rows = (uint64_t)e->route->shape[0] * (uint64_t)(e->has_own_rows ? e->n_used : 1);
    return is_gemm_plan(e->route) ? n_rows * ((uint64_t)e->k * 2 + sizeof(float)) : 0;
}

uint64_t frit_cuda_experts_bytes(const frit_node *node)
{
    const experts e = describe_experts(node);
    return mix_bytes(&e) + converted_bytes(&e);
}

static frit_status keep_dispatch(frit_exec *exec, const frit_node *route, frit_cuda_dispatch *out)
{
    const int64_t n = route->shape[0] * frit_cuda_width(route);
    const size_t n_bytes = (size_t)(exec->n_dispatches + 1) * sizeof *exec->dispatches;
    frit_cuda_dispatch *list = realloc(exec->dispatches, n_bytes);
    if (!list) return frit_fail_memory(n_bytes, "the routes of a plan");
    exec->dispatches = list;
    *out = (frit_cuda_dispatch){.route = route, .group_rows = group_rows_of(route)};
    if (is_sorted(route->shape[0], route) && !exec->device->is_deterministic) {
        const uint64_t n_groups = (uint64_t)most_groups(n, route);
        FRIT_TRY(frit_cuda_plan_alloc(exec, n_groups * sizeof(frit_expert_group), false, &out->groups));
        FRIT_TRY(frit_cuda_plan_alloc(exec, (uint64_t)n * sizeof(int32_t), false, &out->order));
    }
    exec->dispatches[exec->n_dispatches++] = *out;
    return FRIT_OK;
}

frit_status frit_cuda_lower_route(frit_exec *exec, const frit_node *node)
{
    frit_cuda_launch *l;
    frit_cuda_dispatch dispatch;
    frit_cuda_kernel kernel;
    FRIT_TRY(frit_cuda_launch_new(exec, node, &l));
    l->run = run_route;
    for (int i = 0; i < node->n_src; i++)
        if (node->src[i]) FRIT_TRY(frit_cuda_address_of(exec, node->src[i], false, &l->x[i]));
    FRIT_TRY(frit_cuda_address_of(exec, node, false, &l->y));
    FRIT_TRY(frit_cuda_route_kernel(&node->route, (int)frit_cuda_width(node->src[0]), &kernel));
    FRIT_TRY(frit_cuda_kernel_get(exec->device, &kernel, &l->kernel));
    FRIT_TRY(keep_dispatch(exec, node, &dispatch));
    if (!dispatch.groups) return FRIT_OK;
    FRIT_TRY(frit_cuda_launch_new(exec, node, &l));
    l->run = run_dispatch;
    l->experts.dispatch = dispatch;
    FRIT_TRY(frit_cuda_address_of(exec, node, false, &l->y));
    return frit_cuda_kernel_get_named(exec, "dispatch.cu", "dispatch", 1024, 0, &l->kernel);
}

// ------------------------------------------------------------------------------- kernels

// Number of blocks that share the tiles of an expert.
static int grid_of(const experts *e, int rows, bool is_sum, int n_tiles, const frit_cuda_gpu *gpu)
{
    if (is_sum) return 0;   // chosen by product.c
    int n = gpu->n_multiprocessors / e->n_used;
    if (rows > 1 && e->route) {
        // Four blocks for each multiprocessor if all experts are used.
        n = 4 * gpu->n_multiprocessors / n_experts_of(e->route);
        if (n < 4) n = 4;
        if (n > n_tiles / 4) n = n_tiles / 4;
    }
    return n < 1 ? 1 : n < n_tiles ? n : n_tiles;
}

// Experts have few columns: uses one warp of a group for each block of columns, and more groups.
static void share_warps(frit_cuda_product *product, int n_blocks)
{
    enum { MOST_WARPS = 16, USUAL_WARPS = 8, MOST_GROUPS = 5 };   // with more groups, registers spill on sm_80
    if (n_blocks >= USUAL_WARPS) return;
    product->warps = n_blocks;
    product->groups = MOST_WARPS / n_blocks < MOST_GROUPS ? MOST_WARPS / n_blocks : MOST_GROUPS;
}

// Reduces the groups of warps until shared memory suffices.
static frit_status take_shape(frit_cuda_product *product, const frit_cuda_gpu *gpu, frit_cuda_kernel *kernel)
{
    for (;; product->groups /= 2) {
        const frit_status status = frit_cuda_product_kernel(product, gpu, kernel);
        if (status != FRIT_E_UNSUPPORTED || product->groups < 2) return status;
    }
}

frit_status frit_cuda_experts_kernel(const frit_cuda_experts_product *p, const frit_cuda_gpu *gpu,
                                     frit_cuda_kernel *kernel)
{
    const int n_blocks = (p->k + FRIT_TILE_COLUMNS - 1) / FRIT_TILE_COLUMNS;
    frit_cuda_product product = {.rows = p->rows,
                                 .k = p->is_sum ? p->n_used * n_blocks * FRIT_TILE_COLUMNS : p->k,
                                 .epilogue = p->is_gated ? FRIT_GPU_GLU
                                             : p->adds   ? FRIT_GPU_ADD
                                                         : FRIT_GPU_STORE,
                                 .segments = {{p->dtype, p->n_tiles}},
                                 .grid = p->grid};
    if (!p->is_sum) share_warps(&product, n_blocks);
    FRIT_TRY(take_shape(&product, gpu, kernel));
    kernel->file = "experts.cu";
    kernel->name = "experts";
    kernel->shared_bytes += (unsigned)(p->n_used + 1) * 8;
    if (kernel->shared_bytes > (unsigned)gpu->shared_bytes)
        return frit_fail(FRIT_E_UNSUPPORTED, "a product of experts needs %u bytes of shared memory; %s has %d",
                         kernel->shared_bytes, gpu->name, gpu->shared_bytes);
    frit_cuda_define(kernel, "N_USED", p->n_used);
    frit_cuda_define(kernel, "PART_K", p->k);
    frit_cuda_define(kernel, "PARTS", p->parts > 0 ? p->parts : 1);
    frit_cuda_define(kernel, "MIX", p->is_sum);
    frit_cuda_define(kernel, "OWN_ROWS", p->has_own_rows);
    frit_cuda_define(kernel, "WEIGHED", p->is_weighed);
    frit_cuda_define(kernel, "GLU_ACT", (int)p->act);
    frit_cuda_define(kernel, "BY_HEADS", p->is_by_heads);
    return FRIT_OK;
}

static frit_cuda_experts_product product_of(const experts *e, int rows, bool is_sum)
{
    return (frit_cuda_experts_product){.dtype = e->first->dtype,
                                       .rows = rows,
                                       .k = e->k,
                                       .n_tiles = e->n * (e->second ? 2 : 1) / FRIT_TILE_ROWS,
                                       .n_used = e->n_used,
                                       .parts = (e->route ? group_rows_of(e->route) : GROUP_ROWS) / rows,
                                       .act = e->act,
                                       .is_gated = e->second,
                                       .is_sum = is_sum,
                                       .adds = is_sum && e->has_residual,
                                       .has_own_rows = e->has_own_rows,
                                       .is_weighed = e->is_weighed,
                                       .is_by_heads = !e->route};
}

static frit_status take_product(const frit_exec *exec, const experts *e, int rows, bool is_sum, frit_cuda_kernel **out)
{
    frit_cuda_experts_product product = product_of(e, rows, is_sum);
    product.grid = grid_of(e, rows, is_sum, product.n_tiles, &exec->device->gpu);
    frit_cuda_kernel kernel;
    FRIT_TRY(frit_cuda_experts_kernel(&product, &exec->device->gpu, &kernel));
    return frit_cuda_kernel_get(exec->device, &kernel, out);
}

// Adds the kernel for groups with the most rows that fits into shared memory.
static frit_status take_groups(const frit_exec *exec, const experts *e, frit_cuda_experts *out)
{
    const int group_rows = e->route ? group_rows_of(e->route) : GROUP_ROWS;
    for (int rows = GROUP_ROWS; rows > 1; rows /= 2) {
        const frit_status status = take_product(exec, e, rows, false, &out->groups);
        out->parts = group_rows / rows;
        if (status != FRIT_E_UNSUPPORTED) return status;
    }
    out->groups = NULL;
    return FRIT_OK;
}

// Adds the f16 kernel for groups in gemm plans, if it supports the shape.
static frit_status take_rows(frit_exec *exec, const experts *e, frit_cuda_experts *out)
{
    const frit_cuda_experts_product product = product_of(e, GEMM_ROWS, false);
    const int64_t n_assignments = e->route->shape[0] * e->n_used;
    frit_cuda_kernel kernel;
    if (!is_gemm_plan(e->route) || most_groups(n_assignments, e->route) > MOST_BLOCKS ||
        frit_cuda_expert_rows_kernel(&product, &exec->device->gpu, &kernel) != FRIT_OK)
        return FRIT_OK;
    const uint64_t n_bytes = frit_cuda_experts_bytes(e->node);
    if (n_bytes > exec->work_bytes) exec->work_bytes = n_bytes;
    out->converted = mix_bytes(e);
    out->scales = n_bytes - (uint64_t)(e->has_own_rows ? n_assignments : e->route->shape[0]) * sizeof(float);
    FRIT_TRY(frit_cuda_kernel_get_named(exec, "gemm.cu", "convert_rows", THREADS, 0, &out->convert));
    return frit_cuda_kernel_get(exec->device, &kernel, &out->rows);
}

// ------------------------------------------------------------------------------- products

// Launches n blocks in y, MOST_BLOCKS at a time.
static frit_status run_blocks(frit_cuda_device *d, const frit_cuda_kernel *kernel, int64_t n, frit_experts_args *args)
{
    for (int64_t first = 0; first < n; first += MOST_BLOCKS) {
        const int64_t now = n - first < MOST_BLOCKS ? n - first : MOST_BLOCKS;
        args->first = (int)first;
        FRIT_TRY(launch_grid(d, kernel, kernel->grid[0], (unsigned)now, args));
    }
    return FRIT_OK;
}

// Computes the results of all assignments, in groups or one by one, and stores them in the order of assignments.
static frit_status run_products(frit_cuda_device *d, const frit_cuda_launch *l, bool is_grouped, int64_t n,
                                frit_experts_args *args)
{
    const frit_cuda_experts *e = &l->experts;
    const frit_cuda_kernel *kernel = is_grouped ? e->groups : e->each;
    if (is_grouped) {
        args->groups = e->dispatch.groups;
        args->order = e->dispatch.order;
        n = most_groups(n, e->dispatch.route) * e->parts;
    }
    return run_blocks(d, kernel, n, args);
}

static frit_status run_mix(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step, int64_t n_rows)
{
    const frit_cuda_experts *e = &l->experts;
    const frit_plain_args mix = {.x = {step->work, frit_cuda_resolve(step, l->x[2]), frit_cuda_resolve(step, l->x[3])},
                                 .y = frit_cuda_resolve(step, l->y),
                                 .n = n_rows * e->width,
                                 .size = {e->width, e->n_used, true}};
    return frit_cuda_run_kernel(d, e->mix, (unsigned)((mix.n + THREADS - 1) / THREADS), 1, &mix);
}

// Converts the input to f16 and runs the f16 kernel.
static frit_status run_rows(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step, int64_t n_rows)
{
    const frit_cuda_experts *e = &l->experts;
    const int64_t n = n_rows * e->n_used;
    const frit_convert_args convert = {.x = frit_cuda_resolve(step, l->x[0]),
                                       .y = step->work + e->converted,
                                       .scales = step->work + e->scales,
                                       .n = e->has_own_rows ? n : n_rows,
                                       .width = e->k};
    FRIT_TRY(frit_cuda_run_kernel(d, e->convert, (unsigned)convert.n, 1, &convert));
    const frit_expert_rows_args args = {.weights = frit_cuda_resolve(step, l->x[1]),
                                        .bytes = e->expert_bytes,
                                        .x = convert.y,
                                        .scales = convert.scales,
                                        .route = frit_cuda_resolve(step, l->x[2]),
                                        .groups = e->dispatch.groups,
                                        .order = e->dispatch.order,
                                        .out = e->mix ? step->work : frit_cuda_resolve(step, l->y)};
    FRIT_TRY(launch_grid(d, e->rows, e->rows->grid[0], (unsigned)most_groups(n, e->dispatch.route), &args));
    return e->mix ? run_mix(d, l, step, n_rows) : FRIT_OK;
}

static frit_status run_experts(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const frit_cuda_experts *e = &l->experts;
    const int64_t n_rows = frit_cuda_rows(l->node, step->batch);
    const bool is_grouped = e->groups && is_sorted(n_rows, e->dispatch.route), is_sum = e->is_sum && !is_grouped;
    frit_experts_args args = {.weights = frit_cuda_resolve(step, l->x[1]),
                              .bytes = e->expert_bytes,
                              .x = frit_cuda_resolve(step, l->x[0]),
                              .route = frit_cuda_resolve(step, l->x[2]),
                              .residual = frit_cuda_resolve(step, l->x[3]),
                              .out = e->mix && !is_sum ? step->work : frit_cuda_resolve(step, l->y)};
    if (n_rows == 0) return FRIT_OK;
    if (e->rows) return run_rows(d, l, step, n_rows);
    FRIT_TRY(run_products(d, l, is_grouped, is_sum ? n_rows : n_rows * e->n_used, &args));
    return e->mix && !is_sum ? run_mix(d, l, step, n_rows) : FRIT_OK;
}

// Rows are multiplied by their weights before, so results are added without weights.
static frit_status take_mix(frit_exec *exec, const experts *e, frit_cuda_experts *out)
{
    const uint64_t n_bytes = mix_bytes(e);
    if (n_bytes > exec->work_bytes) exec->work_bytes = n_bytes;
    return frit_cuda_kernel_get_named(exec, "plain.cu", "plain_mix", THREADS, 0, &out->mix);
}

static frit_status take_tiles(frit_exec *exec, const experts *e, frit_cuda_launch *l)
{
    frit_cuda_pair pair = {.first = e->first, .second = e->second, .cut = frit_cuda_cut_of(e->node, 1)};
    if (e->second) {
        pair.order = FRIT_CUDA_ORDER_GATED;
        pair.cut.begin[1] = frit_cuda_cut_of(e->node, 2).begin[0];
    }
    return frit_cuda_tiles_get(exec, &pair, &l->x[1]);
}

frit_status frit_cuda_lower_experts(frit_exec *exec, const frit_node *node)
{
    return frit_cuda_lower_experts_to(exec, node, NULL, node);
}

frit_status frit_cuda_lower_experts_to(frit_exec *exec, const frit_node *node, const frit_node *residual,
                                       const frit_node *result)
{
    experts e = describe_experts(node);
    e.has_residual = residual;
    const int n_tiles = e.n * (e.second ? 2 : 1) / FRIT_TILE_ROWS;
    const frit_tile_source source = {.n_rows = FRIT_TILE_ROWS, .n_columns = e.k};
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_launch_new(exec, node, &l));
    l->run = run_experts;
    FRIT_TRY(frit_cuda_address_of(exec, e.x, false, &l->x[0]));
    FRIT_TRY(frit_cuda_address_of(exec, e.route, false, &l->x[2]));
    if (residual) FRIT_TRY(frit_cuda_address_of(exec, residual, false, &l->x[3]));
    FRIT_TRY(frit_cuda_address_of(exec, result, false, &l->y));
    FRIT_TRY(take_tiles(exec, &e, l));
    l->experts = (frit_cuda_experts){.k = e.k,
                                     .n_used = e.n_used,
                                     .width = e.n,
                                     .has_own_rows = e.has_own_rows,
                                     .expert_bytes = (uint64_t)n_tiles *
                                                     frit_tile_bytes(frit_tile_format_of(e.first->dtype), &source)};
    for (int i = 0; i < exec->n_dispatches; i++)
        if (exec->dispatches[i].route == e.route) l->experts.dispatch = exec->dispatches[i];
    if (l->experts.dispatch.groups) FRIT_TRY(take_rows(exec, &e, &l->experts));
    if (l->experts.rows) return e.is_mix ? take_mix(exec, &e, &l->experts) : FRIT_OK;
    l->experts.is_sum = e.is_mix && take_product(exec, &e, 1, true, &l->experts.each) == FRIT_OK;
    if (!l->experts.is_sum) FRIT_TRY(take_product(exec, &e, 1, false, &l->experts.each));
    if (l->experts.dispatch.groups) FRIT_TRY(take_groups(exec, &e, &l->experts));
    return e.is_mix && (!l->experts.is_sum || l->experts.groups) ? take_mix(exec, &e, &l->experts) : FRIT_OK;
}

// ------------------------------------------------------------------------------- heads

static frit_status run_heads(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const frit_cuda_experts *e = &l->experts;
    const int64_t n_rows = frit_cuda_rows(l->node, step->batch);
    const bool is_grouped = e->groups && n_rows > 1;
    const int64_t rows = is_grouped ? GROUP_ROWS / e->parts : 1;
    frit_experts_args args = {.weights = frit_cuda_resolve(step, l->x[1]),
                              .bytes = e->expert_bytes,
                              .x = frit_cuda_resolve(step, l->x[0]),
                              .out = frit_cuda_resolve(step, l->y),
                              .n_rows = (int)n_rows};
    return run_blocks(d, is_grouped ? e->groups : e->each, (n_rows + rows - 1) / rows * e->n_used, &args);
}

frit_status frit_cuda_lower_heads_product(frit_exec *exec, const frit_node *node)
{
    const experts e = describe_experts(node);
    const frit_tile_source source = {.n_rows = e.n, .n_columns = e.k};
    const frit_tile_format *format = frit_tile_format_of(e.first->dtype);
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_launch_new(exec, node, &l));
    l->run = run_heads;
    FRIT_TRY(frit_cuda_address_of(exec, e.x, false, &l->x[0]));
    FRIT_TRY(frit_cuda_address_of(exec, node, false, &l->y));
    FRIT_TRY(take_tiles(exec, &e, l));
    l->experts = (frit_cuda_experts){
        .n_used = e.n_used, .expert_bytes = (uint64_t)frit_tile_count(&source) * frit_tile_bytes(format, &source)};
    FRIT_TRY(take_product(exec, &e, 1, false, &l->experts.each));
    return node->shape[0] > 1 && !exec->device->is_deterministic ? take_groups(exec, &e, &l->experts) : FRIT_OK;
}
