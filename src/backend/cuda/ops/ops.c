// SPDX-License-Identifier: MIT
// The table of ops that a GPU runs: which shapes it supports, and how a node becomes launches. Other nodes run on
// another device (graph/segment.h).
#include "backend/cuda/ops/ops.h"
#include "backend/cuda/exec.h"
#include "backend/cuda/group/exchange.h"
#include "backend/cuda/ops/adapt.h"
#include "backend/cuda/ops/cache.h"
#include "backend/cuda/ops/linear.h"
#include "backend/cuda/ops/recurrent.h"
#include "backend/cuda/ops/rows.h"

#include <math.h>
#include <stdlib.h>

enum { THREADS = 256, WARPS = THREADS / 32 };

typedef struct op_row {
    bool (*fits)(const frit_node *node);                            // NULL: all shapes
    frit_status (*lower)(frit_exec *exec, const frit_node *node);   // NULL: GPUs do not run the op
    const char *kernel;                                             // of plain.cu
    unsigned tiled;                                                 // bit i: source i is a matrix in tiles
    bool has_tensor_products;                                       // the op needs frit_cuda_has_tensor_products
} op_row;

static frit_status set_addresses(frit_exec *exec, frit_cuda_launch *l)
{
    const frit_node *node = l->node;
    for (int i = 0; i < node->n_src && i < FRIT_CUDA_OPERANDS; i++)
        if (node->src[i]) FRIT_TRY(frit_cuda_address_of(exec, node->src[i], frit_cuda_is_tiled(node, i), &l->x[i]));
    l->y = (frit_cuda_address){FRIT_CUDA_SCRATCH, exec->plan->offsets[frit_node_storage(node)->id]};
    l->each = frit_cuda_row_elems(node);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- plain kernels

static void fill_plain(const frit_cuda_launch *l, const frit_cuda_step *step, frit_plain_args *args)
{
    *args = l->plain;
    for (int i = 0; i < 4; i++) args->x[i] = frit_cuda_resolve(step, l->x[i]);
    args->y = frit_cuda_resolve(step, l->y);
}

static frit_status run_numbers(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    frit_plain_args args;
    fill_plain(l, step, &args);
    args.n = frit_cuda_rows(l->node, step->batch) * (l->node->rows == FRIT_SHAPE_FIXED ? 1 : l->each);
    if (l->node->rows == FRIT_SHAPE_FIXED) args.n = l->each;
    return args.n == 0 ? FRIT_OK
                       : frit_cuda_run_kernel(d, l->kernel, (unsigned)((args.n + THREADS - 1) / THREADS), 1, &args);
}

// A warp for each row of the last dimension.
static frit_status run_rows(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    frit_plain_args args;
    fill_plain(l, step, &args);
    const int64_t width = frit_cuda_width(l->node);
    args.n = (l->node->rows == FRIT_SHAPE_FIXED ? l->each : frit_cuda_rows(l->node, step->batch) * l->each) / width;
    return args.n == 0 ? FRIT_OK
                       : frit_cuda_run_kernel(d, l->kernel, (unsigned)((args.n + WARPS - 1) / WARPS), 1, &args);
}

frit_status frit_cuda_add_plain(frit_exec *exec, const frit_node *node, const char *name, frit_cuda_launch **out)
{
    FRIT_TRY(frit_cuda_launch_new(exec, node, out));
    FRIT_TRY(set_addresses(exec, *out));
    (*out)->run = run_numbers;
    return frit_cuda_kernel_get_named(exec, "plain.cu", name, THREADS, 0, &(*out)->kernel);
}

static const op_row rows[FRIT_OP_COUNT];

static frit_status lower_numbers(frit_exec *exec, const frit_node *node)
{
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_add_plain(exec, node, rows[node->op].kernel, &l));
    switch (node->op) {
    case FRIT_OP_SCALE:
    case FRIT_OP_SOFTCAP:
        l->plain.factor[0] = node->factor;
        break;
    case FRIT_OP_CLAMP:
        l->plain.factor[0] = node->clamp.low, l->plain.factor[1] = node->clamp.high;
        break;
    case FRIT_OP_ACT:
    case FRIT_OP_GLU:
        l->plain.size[0] = (int)node->act;
        break;
    case FRIT_OP_XIELU:
        l->plain.factor[0] = node->xielu.positive, l->plain.factor[1] = node->xielu.negative;
        l->plain.factor[2] = node->xielu.beta, l->plain.factor[3] = node->xielu.eps;
        break;
    default:
        l->plain.size[0] = (int)frit_cuda_width(node);
    }
    return FRIT_OK;
}

// x1 is one row that repeats, or has as many rows as x0.
static frit_status lower_pair(frit_exec *exec, const frit_node *node)
{
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_add_plain(exec, node, rows[node->op].kernel, &l));
    const frit_node *other = node->src[1];
    int64_t n = 1;
    for (int d = 0; d < other->n_dims; d++) n *= other->shape[d];
    l->plain.size[0] = (int)(other->rows == FRIT_SHAPE_FIXED ? n : INT32_MAX);
    return FRIT_OK;
}

static frit_status lower_take_rows(frit_exec *exec, const frit_node *node)
{
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_add_plain(exec, node, "plain_take_rows", &l));
    l->plain.size[0] = (int)frit_cuda_row_elems(node);
    return FRIT_OK;
}

static frit_status lower_slice(frit_exec *exec, const frit_node *node)
{
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_add_plain(exec, node, "plain_slice", &l));
    l->plain.size[0] = (int)frit_cuda_width(node);
    l->plain.size[1] = (int)frit_cuda_width(node->src[0]);
    l->plain.size[2] = (int)node->begin;
    return FRIT_OK;
}

static frit_status lower_by_route(frit_exec *exec, const frit_node *node)
{
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_add_plain(exec, node, rows[node->op].kernel, &l));
    l->plain.size[0] = (int)frit_cuda_width(node);
    l->plain.size[1] = (int)frit_cuda_width(node->src[1]);
    l->plain.size[2] = node->op == FRIT_OP_MIX && node->plain;
    return FRIT_OK;
}

static frit_status lower_concat(frit_exec *exec, const frit_node *node)
{
    frit_cuda_launch *l;
    const frit_node *a = node->src[0], *b = node->src[1];
    FRIT_TRY(frit_cuda_add_plain(exec, node, "plain_concat", &l));
    l->plain.size[0] = (int)frit_cuda_width(a);
    l->plain.size[1] = (int)frit_cuda_width(b);
    l->plain.size[2] = a->n_dims == 3 && b->shape[1] == 1 ? (int)a->shape[1] : 1;
    return FRIT_OK;
}

static frit_status run_norm(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const frit_norm_args args = {.x = frit_cuda_resolve(step, l->x[0]),
                                 .y = frit_cuda_resolve(step, l->y),
                                 .weight = frit_cuda_resolve(step, l->x[1]),
                                 .bias = frit_cuda_resolve(step, l->x[2]),
                                 .epsilon = l->plain.factor[0]};
    frit_cuda_kernel one = *l->kernel;
    one.grid[0] = (unsigned)frit_cuda_rows(l->node, step->batch);
    if (one.grid[0] == 0) return FRIT_OK;
    return frit_cuda_kernel_launch(&d->gpu, &one, d->stream, &args, FRIT_CUDA_OVERLAPPING);
}

// A block of threads for each row. Short rows, such as heads, use plain_norm.
static frit_status lower_long_norm(frit_exec *exec, const frit_node *node)
{
    const frit_cuda_norm norm = {.width = (int)frit_cuda_width(node),
                                 .is_layer = node->op == FRIT_OP_LAYER_NORM,
                                 .has_weight = node->n_src > 1 && node->src[1],
                                 .has_bias = node->n_src > 2 && node->src[2]};
    frit_cuda_kernel kernel;
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_norm_kernel(&norm, &kernel));
    FRIT_TRY(frit_cuda_launch_new(exec, node, &l));
    FRIT_TRY(set_addresses(exec, l));
    l->run = run_norm;
    l->plain.factor[0] = node->eps;
    return frit_cuda_kernel_get(exec->device, &kernel, &l->kernel);
}

static frit_status lower_norm(frit_exec *exec, const frit_node *node)
{
    enum { LONG = 512 };
    const int64_t width = frit_cuda_width(node);
    if (node->n_dims == 2 && width % 4 == 0 && frit_cuda_feeds_gemm(exec, node))
        return frit_cuda_lower_f16_norm(exec, node);
    if (node->n_dims == 2 && width >= LONG && width % 4 == 0) return lower_long_norm(exec, node);
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_add_plain(exec, node, "plain_norm", &l));
    l->run = run_rows;
    l->plain.size[0] = (int)frit_cuda_width(node);
    l->plain.size[1] = node->op == FRIT_OP_LAYER_NORM;
    l->plain.factor[0] = node->eps;
    return FRIT_OK;
}

// A warp for each row of the last dimension.
static frit_status lower_warps(frit_exec *exec, const frit_node *node)
{
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_add_plain(exec, node, rows[node->op].kernel, &l));
    l->run = run_rows;
    l->plain.size[0] = (int)frit_cuda_width(node);
    if (node->op == FRIT_OP_GAUSSIAN_TOPK) l->plain.factor[0] = node->factor;
    if (node->op == FRIT_OP_RMS_MATCH) l->plain.factor[0] = node->eps;
    return FRIT_OK;
}

static frit_status lower_mix_streams(frit_exec *exec, const frit_node *node)
{
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_add_plain(exec, node, "plain_mix_streams", &l));
    for (int i = 0; i < 2; i++) l->plain.size[i] = (int)(i ? node : node->src[0])->shape[1];
    l->plain.size[2] = (int)frit_cuda_width(node);
    return FRIT_OK;
}

static bool rope_fits(const frit_node *node)
{
    return node->rope.shift == 0 && !node->rope.is_back;
}

static frit_status lower_rope(frit_exec *exec, const frit_node *node)
{
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_add_plain(exec, node, rows[node->op].kernel, &l));
    const frit_rope *rope = &node->rope;
    l->plain.size[0] = (int)(frit_cuda_row_elems(node) / frit_cuda_width(node));
    l->plain.size[1] = (int)frit_cuda_width(node);
    l->plain.size[2] = rope->dim;
    l->plain.size[3] = rope->offset;
    l->plain.size[4] = rope->style == FRIT_ROPE_NEOX;
    l->plain.factor[0] = rope->magnitude;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- token rows

static bool embed_fits(const frit_node *node)
{
    const frit_node *table = frit_node_storage(node->src[0]);
    return table->op == FRIT_OP_WEIGHT && frit_tile_format_of(table->tensor->dtype) &&
           frit_cuda_width(node) % 32 == 0 && frit_cuda_width(node) <= 65536 && node->rows == FRIT_SHAPE_BATCH;
}

static frit_status run_embed(frit_cuda_device *d, const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const frit_embed_rows_args args = {.table = frit_cuda_resolve(step, l->x[0]),
                                       .tokens = frit_cuda_resolve(step, l->x[1]),
                                       .picked = step->picked,
                                       .positions = step->arrays[FRIT_CUDA_ANGLES],
                                       .x = frit_cuda_resolve(step, l->y),
                                       .scale = 1};
    return frit_cuda_run_kernel(d, l->kernel, (unsigned)step->batch->n_rows, 1, &args);
}

static frit_status lower_embed(frit_exec *exec, const frit_node *node)
{
    frit_cuda_launch *l;
    frit_cuda_kernel kernel;
    FRIT_TRY(frit_cuda_launch_new(exec, node, &l));
    FRIT_TRY(set_addresses(exec, l));
    l->run = run_embed;
    FRIT_TRY(frit_cuda_embed_kernel(&(frit_cuda_embed){.dtype = frit_node_storage(node->src[0])->tensor->dtype,
                                                       .width = (int)frit_cuda_width(node)},
                                    &kernel));
    return frit_cuda_kernel_get(exec->device, &kernel, &l->kernel);
}

// ------------------------------------------------------------------------------- the table

static const op_row rows[FRIT_OP_COUNT] = {
    [FRIT_OP_EMBED] = {.fits = embed_fits, .lower = lower_embed, .tiled = 1},
    [FRIT_OP_LINEAR] = {.fits = frit_cuda_linear_fits, .lower = frit_cuda_lower_linear, .tiled = 2},
    [FRIT_OP_RMS_NORM] = {.lower = lower_norm},
    [FRIT_OP_LAYER_NORM] = {.lower = lower_norm},
    [FRIT_OP_ADD] = {.lower = lower_pair, .kernel = "plain_add"},
    [FRIT_OP_MUL] = {.lower = lower_pair, .kernel = "plain_mul"},
    [FRIT_OP_SCALE] = {.lower = lower_numbers, .kernel = "plain_scale"},
    [FRIT_OP_SOFTCAP] = {.lower = lower_numbers, .kernel = "plain_softcap"},
    [FRIT_OP_CLAMP] = {.lower = lower_numbers, .kernel = "plain_clamp"},
    [FRIT_OP_ACT] = {.lower = lower_numbers, .kernel = "plain_act"},
    [FRIT_OP_XIELU] = {.lower = lower_numbers, .kernel = "plain_xielu"},
    [FRIT_OP_GLU] = {.lower = lower_numbers, .kernel = "plain_glu"},
    [FRIT_OP_SLICE] = {.lower = lower_slice},
    [FRIT_OP_CONCAT] = {.lower = lower_concat},
    [FRIT_OP_SCALE_ROWS] = {.lower = lower_numbers, .kernel = "plain_scale_rows"},
    [FRIT_OP_SOFTMAX] = {.lower = lower_warps, .kernel = "plain_softmax"},
    [FRIT_OP_GAUSSIAN_TOPK] = {.lower = lower_warps, .kernel = "plain_gaussian_topk"},
    [FRIT_OP_RMS_MATCH] = {.lower = lower_warps, .kernel = "plain_rms_match"},
    [FRIT_OP_MIX_STREAMS] = {.lower = lower_mix_streams},
    [FRIT_OP_ROUTE] = {.fits = frit_cuda_route_fits, .lower = frit_cuda_lower_route, .has_tensor_products = true},
    [FRIT_OP_EXPERTS] = {.fits = frit_cuda_experts_fit,
                         .lower = frit_cuda_lower_experts,
                         .tiled = 2,
                         .has_tensor_products = true},
    [FRIT_OP_EXPERTS_GLU] = {.fits = frit_cuda_experts_fit,
                             .lower = frit_cuda_lower_experts,
                             .tiled = 6,
                             .has_tensor_products = true},
    [FRIT_OP_EXPERTS_MIX] = {.fits = frit_cuda_experts_fit,
                             .lower = frit_cuda_lower_experts,
                             .tiled = 2,
                             .has_tensor_products = true},
    [FRIT_OP_HEADS] = {.fits = frit_cuda_experts_fit,
                       .lower = frit_cuda_lower_heads_product,
                       .tiled = 2,
                       .has_tensor_products = true},
    [FRIT_OP_GATHER_EXPERTS] = {.lower = lower_by_route, .kernel = "plain_gather_experts"},
    [FRIT_OP_MIX] = {.lower = lower_by_route, .kernel = "plain_mix"},
    [FRIT_OP_ROPE] = {.fits = rope_fits, .lower = lower_rope, .kernel = "plain_rope"},
    [FRIT_OP_ROPE_ANGLES] = {.lower = lower_rope, .kernel = "plain_rope_angles"},
    [FRIT_OP_KV_WRITE] = {.fits = frit_cuda_cache_fits, .lower = frit_cuda_lower_cache_write},
    [FRIT_OP_ATTEND] = {.fits = frit_cuda_cache_fits, .lower = frit_cuda_lower_cache_attend},
    [FRIT_OP_INDEX_WRITE] = {.fits = frit_cuda_cache_fits, .lower = frit_cuda_lower_cache_write},
    [FRIT_OP_CHOOSE] = {.fits = frit_cuda_cache_fits, .lower = frit_cuda_lower_choose},
    [FRIT_OP_ATTEND_SPARSE] = {.fits = frit_cuda_cache_fits, .lower = frit_cuda_lower_cache_attend},
    [FRIT_OP_CONV] = {.fits = frit_cuda_recurrent_fits, .lower = frit_cuda_lower_recurrent},
    [FRIT_OP_SCAN] = {.fits = frit_cuda_recurrent_fits, .lower = frit_cuda_lower_recurrent},
    [FRIT_OP_DELTA] = {.fits = frit_cuda_recurrent_fits, .lower = frit_cuda_lower_recurrent},
    [FRIT_OP_SHIFT] = {.fits = frit_cuda_recurrent_fits, .lower = frit_cuda_lower_recurrent},
    [FRIT_OP_WKV] = {.fits = frit_cuda_recurrent_fits, .lower = frit_cuda_lower_recurrent},
    [FRIT_OP_ADAPT_DOWN] = {.fits = frit_cuda_adapt_fits, .lower = frit_cuda_lower_adapt},
    [FRIT_OP_ADAPT_UP] = {.fits = frit_cuda_adapt_fits, .lower = frit_cuda_lower_adapt},
    [FRIT_OP_STEER] = {.fits = frit_cuda_adapt_fits, .lower = frit_cuda_lower_adapt},
    [FRIT_OP_TAKE_ROWS] = {.lower = lower_take_rows},
    [FRIT_OP_PLACE_ROWS] = {.lower = lower_numbers, .kernel = "plain_place_rows"},
    [FRIT_OP_REDUCE] = {.fits = frit_cuda_exchange_fits, .lower = frit_cuda_lower_exchange},
    [FRIT_OP_GATHER] = {.fits = frit_cuda_exchange_fits, .lower = frit_cuda_lower_exchange},
    [FRIT_OP_PART] = {.fits = frit_cuda_exchange_fits, .lower = frit_cuda_lower_exchange},
};

bool frit_cuda_is_tiled(const frit_node *node, int source)
{
    return rows[node->op].tiled >> source & 1;
}

bool frit_cuda_runs(const frit_device *device, const frit_node *node)
{
    const frit_cuda_gpu *gpu = &((const frit_cuda_device *)device)->gpu;
    const op_row *row = &rows[node->op];
    return row->lower && (!row->fits || row->fits(node)) &&
           (!row->has_tensor_products || frit_cuda_has_tensor_products(gpu));
}

frit_status frit_cuda_lower(frit_exec *exec, const frit_node *node)
{
    const op_row *row = &rows[node->op];
    if (row->lower) return row->lower(exec, node);
    return frit_fail(FRIT_E_INTERNAL, "op %s has no kernel for GPUs", frit_op_get(node->op)->name);
}
