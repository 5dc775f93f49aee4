// SPDX-License-Identifier: MIT
// Launches of products, and their input.
#include "backend/webgpu/ops/product.h"
#include "backend/webgpu/ops/experts.h"
#include "backend/webgpu/ops/launch.h"
#include "backend/webgpu/ops/linear.h"

enum { BLOCK = FRIT_TILE_COLUMNS, UNIT = 32, MOST_PARTS = 8, TILES_AT_ONCE = 4 };
// Products of up to so many rows have two groups of threads for each row tile (docs/log/webgpu.md).
enum { SPLIT_ROWS = 2 };

int64_t frit_webgpu_most_rows(const frit_exec *exec, const frit_node *node)
{
    return node->rows == FRIT_SHAPE_BATCH  ? exec->plan->graph->max_rows
           : node->rows == FRIT_SHAPE_OUTS ? exec->plan->graph->max_outs
                                           : node->shape[0];
}

void frit_webgpu_define_type(frit_webgpu_kernel *kernel, frit_dtype dtype)
{
    const frit_tile_format *f = frit_tile_format_of(dtype);
    frit_webgpu_define(kernel, "TYPE", frit_dtype_get(dtype)->gguf_id);
    frit_webgpu_define(kernel, "LOW", f->low_bits);
    frit_webgpu_define(kernel, "HIGH", f->high_bits);
    frit_webgpu_define(kernel, "HEAD", f->head_bytes);
    frit_webgpu_define(kernel, "TAIL", f->tail_bytes);
    frit_webgpu_define(kernel, "TILE", f->tile_bytes / 16);
}

// ------------------------------------------------------------------------------- input

bool frit_webgpu_is_int_product(const frit_exec *exec, const frit_node *node)
{
    const bool fits = node->op == FRIT_OP_LINEAR ? frit_webgpu_linear_fits(node) : frit_webgpu_experts_fit(node);
    return !exec->is_precise && fits &&
           frit_tile_format_of(frit_node_storage(node->src[1])->tensor->dtype)->low_bits < 16;
}

const frit_node *frit_webgpu_input_of_products(const frit_exec *exec, const frit_node *node)
{
    const frit_graph *g = exec->plan->graph;
    for (int i = 0; i < g->n_nodes; i++) {
        const frit_node *reader = g->nodes[i];
        const bool is_product =
            reader->op == FRIT_OP_LINEAR || reader->op == FRIT_OP_EXPERTS || reader->op == FRIT_OP_EXPERTS_GLU;
        if (is_product && reader->src[0]->n_dims == 2 && frit_node_storage(reader->src[0]) == node &&
            frit_webgpu_is_int_product(exec, reader))
            return reader->src[0];
    }
    return NULL;
}

static int64_t rows_of_row(const frit_node *x)   // rows of the input for each row of the batch
{
    return x->n_dims == 3 ? x->shape[1] : 1;
}

int64_t frit_webgpu_input_reserve(frit_exec *exec, const frit_node *node, bool is_int)
{
    enum { INT_UNITS = 40, FLOAT_UNITS = 64, UNIT_BYTES = 16 };
    const int64_t n_blocks = (frit_node_width(node) + BLOCK - 1) / BLOCK;
    const int64_t n_rows = frit_webgpu_most_rows(exec, node) * rows_of_row(node);
    const uint64_t n_bytes = (uint64_t)(n_rows * n_blocks * (is_int ? INT_UNITS : FLOAT_UNITS) * UNIT_BYTES);
    if (n_bytes > exec->acts_bytes) exec->acts_bytes = n_bytes;
    exec->input_of = frit_node_storage(node);
    exec->input_width = frit_node_width(node);
    exec->input_is_int = is_int;
    return n_blocks;
}

frit_status frit_webgpu_add_input(frit_exec *exec, const frit_node *x, bool is_int)
{
    frit_webgpu_launch *l;
    if (exec->input_of == frit_node_storage(x) && exec->input_width == frit_node_width(x) &&
        exec->input_is_int == is_int)
        return FRIT_OK;
    const int64_t n_blocks = frit_webgpu_input_reserve(exec, x, is_int);
    FRIT_TRY(frit_webgpu_launch_new(exec, x, "quantize.wgsl", &l));
    frit_webgpu_bind_shared(l, 'w', FRIT_WEBGPU_ACTS);
    frit_webgpu_define(&l->wanted, "IS_INT", is_int);
    l->params[PARAM_QUANTIZE_X] = frit_webgpu_offset(exec, x);
    l->params[PARAM_QUANTIZE_WIDTH] = (uint32_t)frit_node_width(x);
    l->params[PARAM_QUANTIZE_BLOCKS] = (uint32_t)n_blocks;
    l->n[0] = n_blocks;
    l->n[1] = rows_of_row(x);
    l->grid = frit_webgpu_grid_rows;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- launches

// Row tiles of a matrix, of which a stack has several in a buffer.
static int64_t tiles_of(const frit_webgpu_product *p)
{
    const frit_webgpu_tensor *w = p->weights;
    const int64_t left = w->n_rows - p->part * w->part_rows, n = left < w->part_rows ? left : w->part_rows;
    return w->cut.n_matrices > 0 ? w->n_rows / w->cut.n_matrices : n;
}

frit_status frit_webgpu_product_new(frit_exec *exec, const frit_webgpu_product *p, frit_webgpu_launch **out)
{
    const int64_t n_blocks = (p->n_in + BLOCK - 1) / BLOCK, n_tiles = tiles_of(p);
    const frit_gpu_buffer *buffer = &p->weights->parts[p->part];
    const int64_t n_splits = p->n_at_once <= SPLIT_ROWS ? 2 : 1;
    int64_t n_parts = MOST_PARTS;
    while (n_parts > n_blocks) n_parts /= 2;
    FRIT_TRY(frit_webgpu_launch_new(exec, p->node, p->by_tiles ? "matrix.wgsl" : "product.wgsl", out));
    frit_webgpu_launch *l = *out;
    frit_webgpu_bind_shared(l, 'r', FRIT_WEBGPU_ACTS);
    frit_webgpu_bind_buffer(l, 'r', buffer);
    frit_webgpu_bind_buffer(l, 'r', buffer);
    frit_webgpu_define_type(&l->wanted, p->weights->tensors[0].dtype);
    frit_webgpu_define(&l->wanted, "NR", p->n_at_once);
    if (!p->by_tiles) frit_webgpu_define(&l->wanted, "PARTS", n_parts);
    if (!p->by_tiles) frit_webgpu_define(&l->wanted, "SPLIT", n_splits);
    frit_webgpu_define(&l->wanted, "IS_INT", p->is_int);
    if (p->routed) frit_webgpu_define(&l->wanted, "ROUTED", p->routed);
    l->params[PARAM_STORE_Y] = p->result;
    l->params[PARAM_STORE_N_OUT] = (uint32_t)p->n_out;
    l->params[PARAM_STORE_BLOCKS] = (uint32_t)n_blocks;
    l->params[PARAM_STORE_BEGIN] = p->routed ? 0 : (uint32_t)(p->part * p->weights->part_rows);
    l->params[PARAM_STORE_UNITS] = (uint32_t)((p->n_in + UNIT - 1) / UNIT);
    l->params[PARAM_STORE_TILES] = (uint32_t)n_tiles;
    l->n[0] = p->by_tiles ? (n_tiles + TILES_AT_ONCE - 1) / TILES_AT_ONCE : n_tiles * n_splits;
    return FRIT_OK;
}
