// SPDX-License-Identifier: MIT
// Launches of products with matrices, and of embeddings.
#include "backend/webgpu/ops/linear.h"
#include "backend/webgpu/ops/adapt.h"
#include "backend/webgpu/ops/experts.h"
#include "backend/webgpu/ops/launch.h"
#include "backend/webgpu/ops/ops.h"
#include "backend/webgpu/ops/product.h"
#include "backend/webgpu/weights/weights.h"

#include <math.h>

enum { BLOCK = FRIT_TILE_COLUMNS };

static const frit_tensor *matrix_of(const frit_node *node)
{
    return frit_node_storage(node->src[1])->tensor;
}

static bool has_tiles(const frit_node *node)
{
    const frit_node *storage = frit_node_storage(node);
    return storage->op == FRIT_OP_WEIGHT && frit_webgpu_has_tiles(storage->tensor->dtype);
}

static bool has_bias(const frit_node *node)
{
    return frit_node_n_own(node) > 2 && node->src[2];
}

bool frit_webgpu_linear_fits(const frit_node *node)
{
    const bool bias_fits = !has_bias(node) || frit_node_storage(node->src[2])->op == FRIT_OP_WEIGHT;
    return node->n_dims == 2 && has_tiles(node->src[1]) && bias_fits;
}

bool frit_webgpu_embed_fits(const frit_node *node)
{
    return has_tiles(node->src[0]) && node->rows == FRIT_SHAPE_BATCH && !node->adapts;
}

static bool is_residual(const frit_node *node)
{
    return node->n_dims == 2 && node->src[0]->rows == node->rows && node->src[1]->rows == node->rows &&
           frit_node_storage(node->src[0])->op != FRIT_OP_WEIGHT &&
           frit_node_storage(node->src[1])->op != FRIT_OP_WEIGHT;
}

static bool is_plain(const frit_node *node)
{
    return node->op == FRIT_OP_LINEAR && frit_webgpu_linear_fits(node) && !node->adapts && !has_bias(node) &&
           node->factor == 0;
}

static bool is_gated(const frit_node *glu)
{
    const frit_node *gate = glu->src[0], *up = glu->src[1];
    return is_plain(gate) && is_plain(up) && matrix_of(gate)->dtype == matrix_of(up)->dtype &&
           frit_node_width(glu) % (FRIT_TILE_ROWS / 2) == 0;
}

bool frit_webgpu_can_join(const void *device, frit_join join, const frit_node *node, const frit_node *other)
{
    (void)device;
    if (join != FRIT_JOIN_ELEMENTS) return false;
    if (other->op == FRIT_OP_EXPERTS_MIX)
        return node->op == FRIT_OP_ADD && is_residual(node) && frit_webgpu_experts_fit(other);
    if (other->op != FRIT_OP_LINEAR || !frit_webgpu_linear_fits(other) || other->adapts) return false;
    if (node->op == FRIT_OP_GLU) return is_gated(node);
    return node->op == FRIT_OP_ADD && is_residual(node);
}

// ------------------------------------------------------------------------------- precision

// True if queries have a norm: follows sources over rotations and factors, up to a product or a norm.
static bool is_normed(const frit_node *heads)
{
    const frit_node *node = frit_node_storage(heads);
    while (node->op == FRIT_OP_ROPE || node->op == FRIT_OP_SCALE || node->op == FRIT_OP_MUL)
        node = frit_node_storage(node->src[0]);
    return node->op != FRIT_OP_LINEAR;
}

bool frit_webgpu_is_precise(const frit_graph *g)
{
    const float usual = 4;   // limit of scale * sqrt(head size), which usually is 1
    for (int i = 0; i < g->n_nodes; i++) {
        const frit_node *node = g->nodes[i];
        if (node->op != FRIT_OP_ATTEND || node->attend.softcap != 0 || is_normed(node->src[0])) continue;
        if (node->attend.scale * sqrtf((float)frit_node_width(node->src[0])) >= usual) return true;
    }
    return false;
}

// ------------------------------------------------------------------------------- launches

typedef struct product {   // a fusion with a product
    const frit_node *linear, *up, *glu, *result;
    const frit_node *residual;   // that the kernel adds; NULL: none
    int first_more;              // index of the fusion's further additions
} product;

int frit_webgpu_residual_of(const frit_fusion *fusion, int i)
{
    return fusion->nodes[i]->src[0] == fusion->nodes[i - 1] ? 1 : 0;
}

static product product_of(const frit_fusion *fusion)
{
    product p = {.linear = fusion->nodes[0], .result = frit_fusion_result(fusion), .first_more = fusion->n_nodes};
    for (int i = 1; i < fusion->n_nodes; i++) {
        const frit_node *node = fusion->nodes[i];
        if (node->op == FRIT_OP_LINEAR) p.up = node;
        if (node->op == FRIT_OP_GLU) p.glu = node;
        if (node->op != FRIT_OP_ADD || p.residual) continue;
        p.residual = node->src[frit_webgpu_residual_of(fusion, i)];
        p.first_more = i + 1;
    }
    return p;
}

// n[1]: rows of a group of threads. Small steps have products by rows, larger ones by tiles.
static void grid_product(const frit_webgpu_launch *l, const frit_webgpu_step *step, uint32_t *grid)
{
    const int64_t n = frit_webgpu_rows(l->node, step->batch);
    const bool is_by_tiles = l->n[1] > FRIT_WEBGPU_GEMV_ROWS, is_used = is_by_tiles == (n > FRIT_WEBGPU_GEMV_ROWS);
    grid[0] = (uint32_t)l->n[0];
    grid[1] = is_used ? (uint32_t)((n + l->n[1] - 1) / l->n[1]) : 0;
    grid[2] = 1;
}

static void bind_residual(const frit_exec *exec, const product *p, frit_webgpu_launch *l)
{
    frit_webgpu_define(&l->wanted, "ADD", 1);
    l->params[PARAM_STORE_ADD] = frit_webgpu_offset(exec, p->residual);
}

static frit_status bind_bias(frit_exec *exec, const frit_node *linear, frit_webgpu_launch *l)
{
    const frit_webgpu_tensor *bias;
    FRIT_TRY(frit_webgpu_tensor_get(exec->device, frit_node_storage(linear->src[2])->tensor, false, &bias));
    frit_webgpu_define(&l->wanted, "BIAS", 1);
    frit_webgpu_bind_buffer(l, 'r', &bias->parts[0]);
    return FRIT_OK;
}

// Matrices that follow each other in a buffer (STACK of kernels/store.wgsl).
typedef struct stack {
    const frit_fusion *fusions;
    int n;   // 0: there is one matrix
} stack;

static void set_stack(const frit_exec *exec, const stack *s, frit_webgpu_launch *l)
{
    int64_t at = 0;
    frit_webgpu_define(&l->wanted, "STACK", s->n);
    for (int i = 0; i < s->n; i++) {
        const frit_node *node = s->fusions[i].nodes[0];
        const int64_t n_out = frit_node_width(node);
        uint32_t *matrix = l->params + PARAM_STORE_STACK + 4 * i;
        matrix[0] = (uint32_t)at;
        matrix[1] = frit_webgpu_offset(exec, node);
        matrix[2] = (uint32_t)n_out;
        at += (n_out + FRIT_TILE_ROWS - 1) / FRIT_TILE_ROWS;
    }
}

static frit_status add_launch(frit_exec *exec, const product *p, const stack *s, const frit_webgpu_product *shape)
{
    const frit_node *linear = p->linear;
    frit_webgpu_launch *l;
    FRIT_TRY(frit_webgpu_product_new(exec, shape, &l));
    if (has_bias(linear)) FRIT_TRY(bind_bias(exec, linear, l));
    if (linear->factor != 0) frit_webgpu_define(&l->wanted, "TIMES", 1);
    if (p->glu) frit_webgpu_define(&l->wanted, "GATED", 1), l->params[PARAM_STORE_ACT] = (uint32_t)p->glu->act;
    if (p->residual) bind_residual(exec, p, l);
    if (s->n > 0) set_stack(exec, s, l);
    l->params[PARAM_STORE_TIMES] = frit_webgpu_float(linear->factor);
    l->n[1] = shape->n_at_once;
    l->grid = grid_product;
    return FRIT_OK;
}

// The products with the row tiles of one buffer: by rows, and by tiles if the plan has steps of many rows.
static frit_status add_part(frit_exec *exec, const product *p, const stack *s, const frit_webgpu_tensor *w, int part)
{
    enum { FEW_ROWS = 32, MANY_ROWS = 64 };
    const int64_t n_rows = frit_webgpu_most_rows(exec, p->linear);
    frit_webgpu_product shape = {.node = p->linear,
                                 .weights = w,
                                 .part = part,
                                 .n_in = frit_node_width(p->linear->src[0]),
                                 .n_out = frit_node_width(p->linear),
                                 .result = frit_webgpu_offset(exec, p->result),
                                 .is_int = frit_webgpu_is_int_product(exec, p->linear),
                                 .n_at_once = FRIT_WEBGPU_GEMV_ROWS};
    while (shape.n_at_once / 2 >= n_rows) shape.n_at_once /= 2;
    FRIT_TRY(add_launch(exec, p, s, &shape));
    if (n_rows <= FRIT_WEBGPU_GEMV_ROWS) return FRIT_OK;
    shape.by_tiles = true;
    shape.n_at_once = n_rows <= FEW_ROWS ? FEW_ROWS : MANY_ROWS;
    return add_launch(exec, p, s, &shape);
}

frit_status frit_webgpu_lower_linear(frit_exec *exec, const frit_fusion *fusion)
{
    const product p = product_of(fusion);
    const frit_webgpu_matrices matrices = {
        .list = {matrix_of(p.linear), p.up ? matrix_of(p.up) : NULL}, .n = p.up ? 2 : 1, .is_gated = p.up};
    const frit_webgpu_tensor *w;
    FRIT_TRY(frit_webgpu_matrices_get(exec->device, &matrices, &w));
    FRIT_TRY(frit_webgpu_add_input(exec, p.linear->src[0], frit_webgpu_is_int_product(exec, p.linear)));
    for (int i = 0; i < w->n_parts; i++) FRIT_TRY(add_part(exec, &p, &(stack){0}, w, i));
    FRIT_TRY(frit_webgpu_lower_adapted(exec, p.linear));
    for (int i = p.first_more; i < fusion->n_nodes; i++)
        FRIT_TRY(frit_webgpu_lower_addition(exec, fusion->nodes[i], frit_webgpu_residual_of(fusion, i), p.result));
    return FRIT_OK;
}

static bool is_stacked(const frit_fusion *fusion, const frit_node *first)
{
    const frit_node *node = fusion->nodes[0];
    return fusion->n_nodes == 1 && is_plain(node) && node->rows == first->rows &&
           frit_node_storage(node->src[0]) == frit_node_storage(first->src[0]) &&
           matrix_of(node)->dtype == matrix_of(first)->dtype;
}

frit_status frit_webgpu_lower_stack(frit_exec *exec, const frit_fusion *fusions, int n, int *n_done)
{
    const frit_node *first = fusions[0].nodes[0];
    frit_webgpu_matrices m = {0};
    *n_done = 0;
    while (m.n < n && m.n < FRIT_WEBGPU_STACK && is_stacked(&fusions[m.n], first)) {
        m.list[m.n] = matrix_of(fusions[m.n].nodes[0]);
        m.n++;
    }
    if (m.n < 2 || !frit_webgpu_fits_one(exec->device, &m)) return FRIT_OK;
    const product p = {.linear = first, .result = first};
    const frit_webgpu_tensor *w;
    FRIT_TRY(frit_webgpu_matrices_get(exec->device, &m, &w));
    FRIT_TRY(frit_webgpu_add_input(exec, first->src[0], frit_webgpu_is_int_product(exec, first)));
    FRIT_TRY(add_part(exec, &p, &(stack){fusions, m.n}, w, 0));
    *n_done = m.n;
    return FRIT_OK;
}

frit_status frit_webgpu_lower_embed(frit_exec *exec, const frit_fusion *fusion)
{
    enum { TOKENS = 4, POSITIONS = 5 };   // words of kernels/step.wgsl
    const frit_node *node = fusion->nodes[0];
    const bool by_position = frit_node_storage(node->src[1])->input == FRIT_INPUT_POSITIONS;
    const frit_webgpu_tensor *table;
    FRIT_TRY(frit_webgpu_tensor_get(exec->device, frit_node_storage(node->src[0])->tensor, true, &table));
    for (int i = 0; i < table->n_parts; i++) {
        const int64_t width = frit_node_width(node);
        frit_webgpu_launch *l;
        FRIT_TRY(frit_webgpu_launch_new(exec, node, "embed.wgsl", &l));
        frit_webgpu_bind_buffer(l, 'r', &table->parts[i]);
        frit_webgpu_bind_buffer(l, 'r', &table->parts[i]);
        frit_webgpu_define(&l->wanted, "IS_TOKENS", !by_position);
        if (!by_position) frit_webgpu_bind_shared(l, 'r', FRIT_WEBGPU_PICKED);
        frit_webgpu_define_type(&l->wanted, table->tensors[0].dtype);
        frit_webgpu_define(&l->wanted, "IDS", by_position ? POSITIONS : TOKENS);
        l->params[PARAM_EMBED_Y] = frit_webgpu_offset(exec, node);
        l->params[PARAM_EMBED_WIDTH] = (uint32_t)width;
        l->params[PARAM_EMBED_BLOCKS] = (uint32_t)((width + BLOCK - 1) / BLOCK);
        l->params[PARAM_EMBED_FIRST] = (uint32_t)(i * table->part_rows * FRIT_TILE_ROWS);
        l->params[PARAM_EMBED_END] = (uint32_t)((i + 1) * table->part_rows * FRIT_TILE_ROWS);
        l->n[0] = l->params[PARAM_EMBED_BLOCKS];
        l->grid = frit_webgpu_grid_rows;
    }
    return FRIT_OK;
}
