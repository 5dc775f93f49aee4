// SPDX-License-Identifier: MIT
// The table of ops, and the launches of ops that have kernels without special shapes.
#include "backend/webgpu/ops/ops.h"
#include "backend/webgpu/ops/adapt.h"
#include "backend/webgpu/ops/attend.h"
#include "backend/webgpu/ops/experts.h"
#include "backend/webgpu/ops/launch.h"
#include "backend/webgpu/ops/linear.h"
#include "backend/webgpu/ops/product.h"
#include "backend/webgpu/ops/recurrent.h"
#include "backend/webgpu/weights/weights.h"

enum { THREADS = 256 };

typedef frit_status (*lower_fn)(frit_exec *exec, const frit_fusion *fusion);

typedef struct op_row {
    bool (*fits)(const frit_node *node);   // NULL: all shapes
    lower_fn lower;                        // NULL: GPUs do not run the op
    unsigned tiled;                        // bit i: source i is a matrix in tiles
} op_row;

// The kernels' names of ops.
static void define_ops(frit_webgpu_kernel *kernel, frit_op op)
{
    static const struct {
        frit_op op;
        const char *name;
    } names[] = {{FRIT_OP_ADD, "OP_ADD"},
                 {FRIT_OP_MUL, "OP_MUL"},
                 {FRIT_OP_SCALE, "OP_SCALE"},
                 {FRIT_OP_SOFTCAP, "OP_SOFTCAP"},
                 {FRIT_OP_CLAMP, "OP_CLAMP"},
                 {FRIT_OP_ACT, "OP_ACT"},
                 {FRIT_OP_GLU, "OP_GLU"},
                 {FRIT_OP_XIELU, "OP_XIELU"},
                 {FRIT_OP_SLICE, "OP_SLICE"},
                 {FRIT_OP_CONCAT, "OP_CONCAT"},
                 {FRIT_OP_SCALE_ROWS, "OP_SCALE_ROWS"},
                 {FRIT_OP_TAKE_ROWS, "OP_TAKE_ROWS"},
                 {FRIT_OP_PLACE_ROWS, "OP_PLACE_ROWS"},
                 {FRIT_OP_GATHER_EXPERTS, "OP_GATHER_EXPERTS"},
                 {FRIT_OP_MIX, "OP_MIX"},
                 {FRIT_OP_MIX_STREAMS, "OP_MIX_STREAMS"},
                 {FRIT_OP_LAYER_NORM, "OP_LAYER_NORM"},
                 {FRIT_OP_RMS_NORM, "OP_RMS_NORM"},
                 {FRIT_OP_GAUSSIAN_TOPK, "OP_GAUSSIAN_TOPK"},
                 {FRIT_OP_SOFTMAX, "OP_SOFTMAX"},
                 {FRIT_OP_RMS_MATCH, "OP_RMS_MATCH"}};
    for (size_t i = 0; i < FRIT_COUNT(names); i++)
        if (names[i].op == op) frit_webgpu_define(kernel, names[i].name, 1);
    frit_webgpu_define(kernel, "OP", 1);   // the other names are 0
}

static frit_status new_launch(frit_exec *exec, const frit_node *node, const char *file, frit_webgpu_launch **out)
{
    FRIT_TRY(frit_webgpu_launch_new(exec, node, file, out));
    frit_webgpu_launch *l = *out;
    define_ops(&l->wanted, node->op);
    for (int i = 0; i < node->n_src && i < 3; i++)
        if (node->src[i] && !frit_node_is_ids(node->src[i]))
            FRIT_TRY(frit_webgpu_bind_source(exec, l, i, node->src[i]));
    l->params[PARAM_Y] = frit_webgpu_offset(exec, node);
    l->params[PARAM_EACH] = (uint32_t)frit_webgpu_each(node);
    l->n[0] = frit_webgpu_each(node);
    l->n[1] = THREADS;
    l->grid = frit_webgpu_grid_numbers;
    return FRIT_OK;
}

static void set_factor(frit_webgpu_launch *l, int i, float factor)
{
    l->params[PARAM_FACTOR0 + i] = frit_webgpu_float(factor);
}

static uint32_t width_of(const frit_node *node)
{
    return (uint32_t)frit_node_width(node);
}

static void set_sizes(frit_webgpu_launch *l, const frit_node *node)
{
    uint32_t *size = l->params + PARAM_SIZE0;
    const frit_node *a = node->src[0], *b = node->n_src > 1 ? node->src[1] : NULL;
    size[0] = width_of(node);
    switch (node->op) {
    case FRIT_OP_ADD:
    case FRIT_OP_MUL:   // x1 is one row that repeats, or has as many rows as x0
        size[0] = b->rows == FRIT_SHAPE_FIXED ? (uint32_t)frit_node_elems(b) : UINT32_MAX;
        break;
    case FRIT_OP_ACT:
    case FRIT_OP_GLU:
        size[0] = (uint32_t)node->act;
        break;
    case FRIT_OP_SLICE:
        size[1] = width_of(a);
        size[2] = (uint32_t)node->begin;
        break;
    case FRIT_OP_CONCAT:
        size[0] = width_of(a);
        size[1] = width_of(b);
        size[2] = a->n_dims == 3 && b->shape[1] == 1 ? (uint32_t)a->shape[1] : 1;
        break;
    case FRIT_OP_TAKE_ROWS:
        size[0] = (uint32_t)frit_webgpu_each(node);
        break;
    case FRIT_OP_GATHER_EXPERTS:
    case FRIT_OP_MIX:
        size[1] = width_of(b);
        size[2] = node->op == FRIT_OP_MIX && node->plain;
        break;
    case FRIT_OP_MIX_STREAMS:
        size[0] = (uint32_t)a->shape[1];
        size[1] = (uint32_t)node->shape[1];
        size[2] = width_of(node);
        break;
    default:
        break;
    }
}

static void set_factors(frit_webgpu_launch *l, const frit_node *node)
{
    switch (node->op) {
    case FRIT_OP_SCALE:
    case FRIT_OP_SOFTCAP:
    case FRIT_OP_GAUSSIAN_TOPK:
        set_factor(l, 0, node->factor);
        break;
    case FRIT_OP_RMS_NORM:
    case FRIT_OP_LAYER_NORM:
    case FRIT_OP_RMS_MATCH:
        set_factor(l, 0, node->eps);
        break;
    case FRIT_OP_CLAMP:
        set_factor(l, 0, node->clamp.low), set_factor(l, 1, node->clamp.high);
        break;
    case FRIT_OP_XIELU:
        set_factor(l, 0, node->xielu.positive), set_factor(l, 1, node->xielu.negative);
        set_factor(l, 2, node->xielu.beta), set_factor(l, 3, node->xielu.eps);
        break;
    default:
        break;
    }
}

static frit_status lower_numbers(frit_exec *exec, const frit_fusion *fusion)
{
    frit_webgpu_launch *l;
    FRIT_TRY(new_launch(exec, fusion->nodes[0], "numbers.wgsl", &l));
    set_sizes(l, fusion->nodes[0]);
    set_factors(l, fusion->nodes[0]);
    return FRIT_OK;
}

frit_status frit_webgpu_lower_addition(frit_exec *exec, const frit_node *sum, int source, const frit_node *result)
{
    frit_webgpu_launch *l;
    FRIT_TRY(new_launch(exec, sum, "numbers.wgsl", &l));
    set_sizes(l, sum);
    l->params[PARAM_X0 + 1 - source] = l->params[PARAM_Y] = frit_webgpu_offset(exec, result);
    return FRIT_OK;
}

static void define_norm(frit_webgpu_kernel *kernel, const frit_node *node)
{
    frit_webgpu_define(kernel, "HAS_WEIGHT", node->n_src > 1 && node->src[1]);
    frit_webgpu_define(kernel, "HAS_BIAS", node->n_src > 2 && node->src[2]);
}

// A norm that writes the input of products too.
static frit_status lower_norm_input(frit_exec *exec, const frit_node *node)
{
    frit_webgpu_launch *l;
    const int64_t n_blocks = frit_webgpu_input_reserve(exec, node, true), n_threads = n_blocks > 2 ? 256 : 64;
    FRIT_TRY(frit_webgpu_launch_new(exec, node, "norm_input.wgsl", &l));
    frit_webgpu_bind_shared(l, 'w', FRIT_WEBGPU_ACTS);
    for (int i = 0; i < node->n_src; i++)
        if (node->src[i]) FRIT_TRY(frit_webgpu_bind_source(exec, l, i, node->src[i]));
    define_norm(&l->wanted, node);
    frit_webgpu_define(&l->wanted, "IS_LAYER", node->op == FRIT_OP_LAYER_NORM);
    frit_webgpu_define(&l->wanted, "IS_INT", 1);
    frit_webgpu_define(&l->wanted, "THREADS", n_threads);
    l->params[PARAM_Y] = frit_webgpu_offset(exec, node);
    l->params[PARAM_SIZE0] = width_of(node);
    l->params[PARAM_SIZE1] = (uint32_t)n_blocks;
    set_factor(l, 0, node->eps);
    l->n[0] = (n_blocks * 64 + n_threads - 1) / n_threads;
    l->grid = frit_webgpu_grid_rows;
    return FRIT_OK;
}

// A group of threads for each row of the last dimension.
static frit_status lower_rows(frit_exec *exec, const frit_fusion *fusion)
{
    const frit_node *node = fusion->nodes[0];
    const bool is_norm = node->op == FRIT_OP_RMS_NORM || node->op == FRIT_OP_LAYER_NORM;
    frit_webgpu_launch *l;
    if (is_norm && node->n_dims == 2 && frit_webgpu_input_of_products(exec, node)) return lower_norm_input(exec, node);
    FRIT_TRY(new_launch(exec, node, "rows.wgsl", &l));
    const uint32_t width = width_of(node);
    frit_webgpu_define(&l->wanted, "THREADS", width > 512 ? 256 : 64);
    if (is_norm) define_norm(&l->wanted, node);
    set_sizes(l, node);
    set_factors(l, node);
    l->params[PARAM_EACH] = (uint32_t)(frit_webgpu_each(node) / width);
    l->n[0] = frit_webgpu_each(node) / width;
    l->n[1] = 1;
    return FRIT_OK;
}

static bool rope_fits(const frit_node *node)
{
    const frit_node *frequencies = frit_node_storage(node->src[2]);
    const frit_node *factors = node->n_src > 3 && node->src[3] ? frit_node_storage(node->src[3]) : NULL;
    return node->rope.shift == 0 && !node->rope.is_back && frequencies->op == FRIT_OP_WEIGHT &&
           (!factors || factors->op == FRIT_OP_WEIGHT);
}

static frit_status bind_revolutions(frit_exec *exec, const frit_node *node, frit_webgpu_launch *l)
{
    const frit_node *factors = node->n_src > 3 ? node->src[3] : NULL;
    const frit_gpu_buffer *revolutions;
    FRIT_TRY(frit_webgpu_revolutions_get(exec->device, frit_node_storage(node->src[2])->tensor,
                                         factors ? frit_node_storage(factors)->tensor : NULL, &revolutions));
    frit_webgpu_define(&l->wanted, "X3_BINDING", l->n_bindings);
    frit_webgpu_bind_buffer(l, 'r', revolutions);
    return FRIT_OK;
}

static frit_status lower_rope(frit_exec *exec, const frit_fusion *fusion)
{
    const frit_node *node = fusion->nodes[0];
    const bool is_given = node->op == FRIT_OP_ROPE_ANGLES;
    frit_webgpu_launch *l;
    FRIT_TRY(frit_webgpu_launch_new(exec, node, "rope.wgsl", &l));
    FRIT_TRY(frit_webgpu_bind_source(exec, l, 0, node->src[0]));
    FRIT_TRY(is_given ? frit_webgpu_bind_source(exec, l, 1, node->src[1]) : bind_revolutions(exec, node, l));
    frit_webgpu_define(&l->wanted, "IS_GIVEN", is_given);
    uint32_t *size = l->params + PARAM_SIZE0;
    l->params[PARAM_Y] = frit_webgpu_offset(exec, node);
    l->params[PARAM_EACH] = (uint32_t)frit_webgpu_each(node);
    size[0] = (uint32_t)frit_webgpu_each(node) / width_of(node);
    size[1] = width_of(node);
    size[2] = (uint32_t)node->rope.dim;
    size[3] = (uint32_t)node->rope.offset;
    size[4] = node->rope.style == FRIT_ROPE_NEOX;
    set_factor(l, 0, node->rope.magnitude);
    l->n[0] = frit_webgpu_each(node);
    l->n[1] = THREADS;
    l->grid = frit_webgpu_grid_numbers;
    return FRIT_OK;
}

static bool take_rows_fits(const frit_node *node)
{
    const frit_node *rows = frit_node_storage(node->src[1]);
    return rows->op == FRIT_OP_INPUT && rows->input == FRIT_INPUT_OUT_ROWS;
}

// ------------------------------------------------------------------------------- the table

static const op_row rows[FRIT_OP_COUNT] = {
    [FRIT_OP_EMBED] = {.fits = frit_webgpu_embed_fits, .lower = frit_webgpu_lower_embed, .tiled = 1},
    [FRIT_OP_LINEAR] = {.fits = frit_webgpu_linear_fits, .lower = frit_webgpu_lower_linear, .tiled = 2},
    [FRIT_OP_RMS_NORM] = {.lower = lower_rows},
    [FRIT_OP_LAYER_NORM] = {.lower = lower_rows},
    [FRIT_OP_ADD] = {.lower = lower_numbers},
    [FRIT_OP_MUL] = {.lower = lower_numbers},
    [FRIT_OP_SCALE] = {.lower = lower_numbers},
    [FRIT_OP_SOFTCAP] = {.lower = lower_numbers},
    [FRIT_OP_CLAMP] = {.lower = lower_numbers},
    [FRIT_OP_ACT] = {.lower = lower_numbers},
    [FRIT_OP_XIELU] = {.lower = lower_numbers},
    [FRIT_OP_GLU] = {.lower = lower_numbers},
    [FRIT_OP_SLICE] = {.lower = lower_numbers},
    [FRIT_OP_CONCAT] = {.lower = lower_numbers},
    [FRIT_OP_SCALE_ROWS] = {.lower = lower_numbers},
    [FRIT_OP_SOFTMAX] = {.lower = lower_rows},
    [FRIT_OP_GAUSSIAN_TOPK] = {.lower = lower_rows},
    [FRIT_OP_RMS_MATCH] = {.lower = lower_rows},
    [FRIT_OP_MIX_STREAMS] = {.lower = lower_numbers},
    [FRIT_OP_GATHER_EXPERTS] = {.lower = lower_numbers},
    [FRIT_OP_MIX] = {.lower = lower_numbers},
    [FRIT_OP_ROUTE] = {.fits = frit_webgpu_route_fits, .lower = frit_webgpu_lower_route},
    [FRIT_OP_EXPERTS] = {.fits = frit_webgpu_experts_fit, .lower = frit_webgpu_lower_experts, .tiled = 2},
    [FRIT_OP_EXPERTS_GLU] = {.fits = frit_webgpu_experts_fit, .lower = frit_webgpu_lower_experts, .tiled = 6},
    [FRIT_OP_EXPERTS_MIX] = {.fits = frit_webgpu_experts_fit, .lower = frit_webgpu_lower_experts, .tiled = 2},
    [FRIT_OP_CONV] = {.fits = frit_webgpu_recurrent_fits, .lower = frit_webgpu_lower_recurrent},
    [FRIT_OP_SCAN] = {.fits = frit_webgpu_recurrent_fits, .lower = frit_webgpu_lower_recurrent},
    [FRIT_OP_DELTA] = {.fits = frit_webgpu_recurrent_fits, .lower = frit_webgpu_lower_recurrent},
    [FRIT_OP_SHIFT] = {.fits = frit_webgpu_recurrent_fits, .lower = frit_webgpu_lower_recurrent},
    [FRIT_OP_WKV] = {.fits = frit_webgpu_recurrent_fits, .lower = frit_webgpu_lower_recurrent},
    [FRIT_OP_ADAPT_DOWN] = {.fits = frit_webgpu_adapt_fits, .lower = frit_webgpu_lower_adapt},
    [FRIT_OP_ADAPT_UP] = {.fits = frit_webgpu_adapt_fits, .lower = frit_webgpu_lower_adapt},
    [FRIT_OP_STEER] = {.fits = frit_webgpu_adapt_fits, .lower = frit_webgpu_lower_adapt},
    [FRIT_OP_HEADS] = {.fits = frit_webgpu_experts_fit, .lower = frit_webgpu_lower_experts, .tiled = 2},
    [FRIT_OP_ROPE] = {.fits = rope_fits, .lower = lower_rope},
    [FRIT_OP_ROPE_ANGLES] = {.lower = lower_rope},
    [FRIT_OP_KV_WRITE] = {.fits = frit_webgpu_cache_fits, .lower = frit_webgpu_lower_cache_write},
    [FRIT_OP_ATTEND] = {.fits = frit_webgpu_cache_fits, .lower = frit_webgpu_lower_attend},
    [FRIT_OP_TAKE_ROWS] = {.fits = take_rows_fits, .lower = lower_numbers},
    [FRIT_OP_PLACE_ROWS] = {.lower = lower_numbers},
};

bool frit_webgpu_is_tiled(const frit_node *node, int source)
{
    return rows[node->op].tiled >> source & 1;
}

bool frit_webgpu_runs(const frit_device *device, const frit_node *node)
{
    const op_row *row = &rows[node->op];
    (void)device;
    return row->lower && (!row->fits || row->fits(node));
}

frit_status frit_webgpu_lower(frit_exec *exec, const frit_fusion *fusion)
{
    const op_row *row = &rows[fusion->nodes[0]->op];
    if (row->lower) return row->lower(exec, fusion);
    return frit_fail(FRIT_E_INTERNAL, "op %s has no kernel for WebGPU", frit_op_get(fusion->nodes[0]->op)->name);
}
