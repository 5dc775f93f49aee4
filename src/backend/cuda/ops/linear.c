// SPDX-License-Identifier: MIT
// Products with what they run with: a norm before, a residual or a gate after. Plans of up to 16 rows use gemv.h;
// larger plans use gemm.h, or gemv.h for 16 rows at a time if cuBLASLt is not installed. All plans of a deterministic
// device use gemv.h.
#include "backend/cuda/ops/linear.h"
#include "backend/cuda/exec.h"
#include "backend/cuda/group/exchange.h"
#include "backend/cuda/ops/adapt.h"
#include "backend/cuda/ops/ops.h"
#include "backend/cuda/weights/weights.h"

enum { MOST_ROWS = 16 };

// One or two products of the same input, and what is done to their results.
typedef struct products {
    const frit_node *node, *second;   // LINEAR; second: the values of gates, or NULL
    const frit_node *result;          // the node whose numbers are stored
    const frit_node *norm;            // of the input, computed by the product; NULL: no norm
    const frit_node *residual;        // NULL: none
} products;

static const frit_tensor *matrix_of(const frit_node *linear)
{
    return frit_node_storage(linear->src[1])->tensor;
}

bool frit_cuda_linear_fits(const frit_node *node)
{
    const frit_node *w = frit_node_storage(node->src[1]);
    return w->op == FRIT_OP_WEIGHT && w->n_dims == 2 && frit_tile_format_of(w->tensor->dtype) && w->shape[1] % 32 == 0;
}

static bool is_plain(const frit_node *linear)
{
    return linear->op == FRIT_OP_LINEAR && frit_cuda_linear_fits(linear) && linear->factor == 0 && !linear->adapts &&
           (linear->n_src < 3 || !linear->src[2]);
}

static frit_cuda_products describe_products(const products *p)
{
    const frit_tensor *w = matrix_of(p->node);
    const int n = (int)frit_cuda_width(p->node) * (p->second ? 2 : 1);
    return (frit_cuda_products){.node = p->node,
                                .norm = p->norm,
                                .k = (int)w->shape[1],
                                .n = n,
                                .epilogue = p->second     ? FRIT_GPU_GLU
                                            : p->residual ? FRIT_GPU_ADD
                                                          : FRIT_GPU_STORE,
                                .segments = {{w->dtype, (n + FRIT_TILE_ROWS - 1) / FRIT_TILE_ROWS}}};
}

// ------------------------------------------------------------------------------- lowering

static frit_status lower_products(frit_exec *exec, const products *p)
{
    frit_cuda_launch *l;
    const frit_node *x = p->norm ? p->norm->src[0] : p->node->src[0];
    FRIT_TRY(frit_cuda_launch_new(exec, p->result, &l));
    FRIT_TRY(frit_cuda_address_of(exec, x, false, &l->x[0]));
    l->matrices[0] = matrix_of(p->node);
    l->matrices[1] = p->second ? matrix_of(p->second) : NULL;
    if (p->second)
        FRIT_TRY(frit_cuda_tiles_get(exec,
                                     &(frit_cuda_pair){.first = matrix_of(p->node),
                                                       .second = matrix_of(p->second),
                                                       .order = FRIT_CUDA_ORDER_GATED},
                                     &l->x[1]));
    else
        FRIT_TRY(frit_cuda_tensor_get(exec, matrix_of(p->node), true, &l->x[1]));
    if (p->norm) FRIT_TRY(frit_cuda_address_of(exec, p->norm->src[1], false, &l->x[2]));
    if (p->residual) FRIT_TRY(frit_cuda_address_of(exec, p->residual, false, &l->x[3]));
    FRIT_TRY(frit_cuda_address_of(exec, p->result, false, &l->y));
    const frit_cuda_products wanted = describe_products(p);
    return frit_cuda_is_gemm(exec, p->node) ? frit_cuda_lower_gemm(exec, &wanted, p->node->shape[0], p->result, l)
                                            : frit_cuda_lower_gemv(exec, &wanted, p->node->shape[0], l);
}

// Adds bias and adapters to the results of a product, and multiplies them by its factor.
static frit_status lower_rest(frit_exec *exec, const frit_node *node)
{
    frit_cuda_launch *l;
    if (frit_node_n_own(node) > 2 && node->src[2]) {
        FRIT_TRY(frit_cuda_add_plain(exec, node, "plain_add", &l));
        l->x[0] = l->y;
        l->x[1] = l->x[2];
        l->plain.size[0] = (int)frit_cuda_width(node);
    }
    FRIT_TRY(frit_cuda_lower_adapted(exec, node));
    if (node->factor == 0) return FRIT_OK;
    FRIT_TRY(frit_cuda_add_plain(exec, node, "plain_scale", &l));
    l->x[0] = l->y;
    l->plain.factor[0] = node->factor;
    return FRIT_OK;
}

frit_status frit_cuda_lower_linear(frit_exec *exec, const frit_node *node)
{
    FRIT_TRY(lower_products(exec, &(products){.node = node, .result = node}));
    return lower_rest(exec, node);
}

static const frit_node *other_source(const frit_node *pair, const frit_node *one)
{
    return pair->src[0] == one ? pair->src[1] : pair->src[0];
}

// Adds `more` to `result`.
static frit_status add_more(frit_exec *exec, const frit_node *result, const frit_node *more)
{
    frit_cuda_launch *l;
    FRIT_TRY(frit_cuda_add_plain(exec, result, "plain_add", &l));
    l->x[0] = l->y;
    FRIT_TRY(frit_cuda_address_of(exec, more, false, &l->x[1]));
    l->plain.size[0] = INT32_MAX;
    return FRIT_OK;
}

// The sum over experts, with the residuals that are added to it.
static frit_status lower_mix(frit_exec *exec, const frit_fusion *fusion)
{
    const frit_node *result = frit_fusion_result(fusion);
    FRIT_TRY(
        frit_cuda_lower_experts_to(exec, fusion->nodes[0], other_source(fusion->nodes[1], fusion->nodes[0]), result));
    for (int i = 2; i < fusion->n_nodes; i++)
        FRIT_TRY(add_more(exec, result, other_source(fusion->nodes[i], fusion->nodes[i - 1])));
    return FRIT_OK;
}

static frit_status lower_fusion(frit_exec *exec, const frit_fusion *fusion, const frit_node *norm)
{
    const frit_node *first = fusion->nodes[0];
    if (first->op == FRIT_OP_EXPERTS_MIX && fusion->n_nodes > 1) return lower_mix(exec, fusion);
    if (first->op == FRIT_OP_REDUCE && fusion->n_nodes > 1)
        return frit_cuda_lower_reduce(exec, first, fusion->nodes[1], other_source(fusion->nodes[1], first));
    if (first->op != FRIT_OP_LINEAR || (fusion->n_nodes == 1 && !is_plain(first))) return frit_cuda_lower(exec, first);
    products p = {.node = first, .result = frit_fusion_result(fusion)};
    if (norm && first->src[0] == norm) p.norm = norm;
    int next = 1;
    if (fusion->n_products == 2) {
        const frit_node *glu = fusion->nodes[2];
        p.node = glu->src[0];
        p.second = glu->src[1];
        next = 3;
    } else if (fusion->n_nodes > 1) {
        p.residual = other_source(fusion->nodes[1], first);
        next = 2;
    }
    FRIT_TRY(lower_products(exec, &p));
    for (; next < fusion->n_nodes; next++)
        FRIT_TRY(add_more(exec, p.result, other_source(fusion->nodes[next], fusion->nodes[next - 1])));
    return FRIT_OK;
}

// The norm of the phase if all products of the phase can compute it themselves; otherwise NULL.
static const frit_node *folded_norm(const frit_exec *exec, const frit_phase *phase, const frit_cuda_heads_phase *heads)
{
    if (exec->is_precise || phase->n_prologue != 1 || phase->prologue[0].n_nodes != 1) return NULL;
    const frit_node *norm = phase->prologue[0].nodes[0];
    if (norm->op != FRIT_OP_RMS_NORM || norm->n_src < 2 || norm->n_dims != 2) return NULL;
    if (norm->shape[0] > MOST_ROWS && !exec->device->is_deterministic) return NULL;
    if (heads) {
        frit_cuda_products wanted;
        frit_cuda_describe_heads(exec, heads, norm, &wanted);
        if (!frit_cuda_can_gemv(exec, &wanted, norm->shape[0])) return NULL;
    }
    for (int i = 0; i < phase->n_products; i++) {
        const frit_fusion *fusion = &phase->products[i];
        if (heads && frit_cuda_is_of_heads(heads, fusion)) continue;
        if (fusion->nodes[0]->op == FRIT_OP_TAKE_ROWS && frit_node_storage(fusion->nodes[0]->src[0]) != norm) continue;
        for (int k = 0; k < fusion->n_products; k++)
            if (!is_plain(fusion->nodes[k]) || fusion->nodes[k]->src[0] != norm) return NULL;
        const products p = {
            .node = fusion->nodes[0], .second = fusion->n_products == 2 ? fusion->nodes[1] : NULL, .norm = norm};
        const frit_cuda_products wanted = describe_products(&p);
        if (!frit_cuda_can_gemv(exec, &wanted, norm->shape[0])) return NULL;
    }
    return norm;
}

frit_status frit_cuda_lower_phase(frit_exec *exec, const frit_phase *phase)
{
    frit_cuda_heads_phase heads;
    const bool is_heads = frit_cuda_is_heads(exec, phase, &heads);
    const frit_node *norm = folded_norm(exec, phase, is_heads ? &heads : NULL);
    for (int i = 0; i < phase->n_prologue && !norm; i++) FRIT_TRY(lower_fusion(exec, &phase->prologue[i], NULL));
    if (is_heads) FRIT_TRY(frit_cuda_lower_heads(exec, &heads, norm));
    for (int i = 0; i < phase->n_products; i++)
        if (!is_heads || !frit_cuda_is_of_heads(&heads, &phase->products[i]))
            FRIT_TRY(lower_fusion(exec, &phase->products[i], norm));
    if (is_heads) return FRIT_OK;
    for (int i = 0; i < phase->n_epilogue; i++) FRIT_TRY(lower_fusion(exec, &phase->epilogue[i], NULL));
    return FRIT_OK;
}

static bool is_residual(const frit_node *add)
{
    const frit_node *a = add->src[0], *b = add->src[1];
    return a->n_dims == b->n_dims && a->rows == b->rows && a->shape[a->n_dims - 1] == b->shape[b->n_dims - 1];
}

bool frit_cuda_can_join(const void *device, frit_join join, const frit_node *node, const frit_node *other)
{
    (void)device;
    if (join == FRIT_JOIN_HEADS)   // after a product, or after what follows it: a norm, a rotation
        return other->op == FRIT_OP_LINEAR ? frit_cuda_linear_fits(other)
                                           : other->op == FRIT_OP_RMS_NORM || other->op == FRIT_OP_ROPE;
    if (join == FRIT_JOIN_PROLOGUE)
        return node->op == FRIT_OP_RMS_NORM && node->n_src > 1 && node->n_dims == 2 && other->op == FRIT_OP_LINEAR &&
               frit_cuda_linear_fits(other);
    if (join == FRIT_JOIN_ELEMENTS && other->op == FRIT_OP_EXPERTS_MIX)
        return node->op == FRIT_OP_ADD && is_residual(node) && frit_cuda_experts_fit(other);
    if (join == FRIT_JOIN_ROWS)
        return node->op == FRIT_OP_ADD && is_residual(node) && other->op == FRIT_OP_REDUCE &&
               frit_cuda_exchange_fits(other);
    if (join != FRIT_JOIN_ELEMENTS || !is_plain(other)) return false;
    if (node->op == FRIT_OP_ADD) return is_residual(node);
    return node->op == FRIT_OP_GLU && node->act == FRIT_ACT_SILU && is_plain(node->src[0]) && is_plain(node->src[1]) &&
           matrix_of(node->src[0])->dtype == matrix_of(node->src[1])->dtype && frit_cuda_width(node) % 8 == 0;
}
