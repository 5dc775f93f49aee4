// SPDX-License-Identifier: MIT
// The shape rules of recurrent ops.
#include "graph/node.h"

// Vectors are weights of the model; all other sources are rows of the step.
static frit_status check_sources(const frit_node *node, unsigned weights)
{
    for (int i = 0; i < node->n_src; i++) {
        const frit_node *x = node->src[i];
        const bool is_weight = x->op == FRIT_OP_WEIGHT, wanted = weights >> i & 1;
        if (is_weight ? wanted && x->tensor->dtype == FRIT_DTYPE_F32 : !wanted && x->rows == FRIT_SHAPE_BATCH) continue;
        return frit_node_fail_shape(node, 0, i, wanted ? "a vector of the model in f32" : "rows of the step");
    }
    return FRIT_OK;
}

static void shape_as(frit_node *node, const frit_node *x)
{
    node->rows = x->rows;
    node->n_dims = x->n_dims;
    memcpy(node->shape, x->shape, sizeof node->shape);
}

frit_status frit_shape_conv(frit_node *node)
{
    const frit_node *x = node->src[0], *w = node->src[1];
    FRIT_TRY(check_sources(node, 1 << 1 | 1 << 2));
    const int64_t n_taps = frit_node_elems(w);
    if (x->n_dims != 2 || n_taps % x->shape[1] != 0 || n_taps < x->shape[1])
        return frit_node_fail_shape(node, 0, 1, "[T, C], and as many weights for each of C");
    if (node->n_src == 3 && frit_node_elems(node->src[2]) != x->shape[1])
        return frit_node_fail_shape(node, 0, 2, "one bias for each channel");
    shape_as(node, x);
    return FRIT_OK;
}

static bool are_numbers_of_heads(const frit_node *node, int64_t n_head)
{
    return node->shape[1] == n_head && (node->n_dims == 2 || (node->n_dims == 3 && node->shape[2] == 1));
}

// Two sources of the same shape [T, G, N], for heads [T, H, P].
static frit_status check_groups(const frit_node *node, int first)
{
    const frit_node *x = node->src[0], *k = node->src[first], *q = node->src[first + 1];
    if (x->n_dims != 3 || k->n_dims != 3 || q->n_dims != 3 || x->shape[1] % k->shape[1] != 0)
        return frit_node_fail_shape(node, 0, first, "[T, heads, size], and a divisor of the heads");
    return memcmp(k->shape, q->shape, sizeof k->shape) == 0
               ? FRIT_OK
               : frit_node_fail_shape(node, first, first + 1, "the same shape");
}

frit_status frit_shape_scan(frit_node *node)
{
    const frit_node *x = node->src[0], *a = node->src[2];
    FRIT_TRY(check_sources(node, 1 << 2));
    FRIT_TRY(check_groups(node, 3));
    if (!are_numbers_of_heads(node->src[1], x->shape[1]))
        return frit_node_fail_shape(node, 0, 1, "one step for each head");
    const int64_t n = frit_node_elems(a), n_head = x->shape[1];
    if (n != n_head && n != n_head * node->src[3]->shape[2])
        return frit_node_fail_shape(node, 0, 2, "one decay for each head, or for each element of b");
    shape_as(node, x);
    return FRIT_OK;
}

frit_status frit_shape_delta(frit_node *node)
{
    const frit_node *v = node->src[0], *k = node->src[1], *g = node->src[3];
    const bool fixed = g->op == FRIT_OP_WEIGHT;
    FRIT_TRY(check_sources(node, fixed ? 1 << 3 : 0));
    FRIT_TRY(check_groups(node, 1));
    const int64_t n_head = v->shape[1];
    bool fits = fixed ? frit_node_elems(g) == n_head
                      : are_numbers_of_heads(g, n_head) ||
                            (g->n_dims == 3 && g->shape[1] == n_head && g->shape[2] == k->shape[2]);
    if (!fits) return frit_node_fail_shape(node, 0, 3, "one decay for each head, or for each element of k");
    if (node->n_src == 5 && !are_numbers_of_heads(node->src[4], n_head))
        return frit_node_fail_shape(node, 0, 4, "one value for each head");
    shape_as(node, v);
    return FRIT_OK;
}

frit_status frit_shape_compress(frit_node *node)
{
    const frit_node *x = node->src[0], *g = node->src[1], *b = node->src[2];
    const int64_t n_parts = node->state.overlaps ? 2 : 1;
    FRIT_TRY(check_sources(node, 1 << 2));
    if (x->n_dims != 2 || memcmp(x->shape, g->shape, sizeof x->shape) != 0 || x->shape[1] % n_parts != 0)
        return frit_node_fail_shape(node, 0, 1, "[T, C], both alike");
    if (node->state.block < 1 || frit_node_elems(b) != node->state.block * x->shape[1])
        return frit_node_fail_shape(node, 0, 2, "a bias for each number of a block");
    shape_as(node, x);
    node->shape[1] = x->shape[1] / n_parts;
    return FRIT_OK;
}

frit_status frit_shape_lru(frit_node *node)
{
    const frit_node *x = node->src[0];
    FRIT_TRY(check_sources(node, 0));
    if (x->n_dims != 2 || memcmp(x->shape, node->src[1]->shape, sizeof x->shape) != 0)
        return frit_node_fail_shape(node, 0, 1, "[T, C], both alike");
    shape_as(node, x);
    return FRIT_OK;
}

frit_status frit_shape_shift(frit_node *node)
{
    FRIT_TRY(check_sources(node, 0));
    if (node->src[0]->n_dims != 2) return frit_node_fail_shape(node, 0, 0, "[T, C]");
    shape_as(node, node->src[0]);
    return FRIT_OK;
}

frit_status frit_shape_wkv(frit_node *node)
{
    const frit_node *k = node->src[0];
    FRIT_TRY(check_sources(node, 1 << 2 | 1 << 3));
    if (k->n_dims != 2 || memcmp(k->shape, node->src[1]->shape, sizeof k->shape) != 0)
        return frit_node_fail_shape(node, 0, 1, "[T, C], both alike");
    for (int i = 2; i < 4; i++)
        if (frit_node_elems(node->src[i]) != k->shape[1])
            return frit_node_fail_shape(node, 0, i, "one value for each channel");
    shape_as(node, k);
    return FRIT_OK;
}

static bool is_heads(const frit_node *x, int64_t n_head, int64_t size)
{
    return x->n_dims == 3 && x->shape[1] == n_head && x->shape[2] == size;
}

frit_status frit_shape_rwkv(frit_node *node)
{
    const frit_node *v = node->src[0], *k = node->src[1], *r = node->src[2];
    FRIT_TRY(check_sources(node, node->n_src == 5 ? 1 << 4 : 0));
    if (v->n_dims != 3 || k->n_dims != 3 || v->shape[1] != k->shape[1])
        return frit_node_fail_shape(node, 0, 1, "[T, groups, size], as many groups of both");
    if (r->n_dims != 3 || r->shape[1] % k->shape[1] != 0 || r->shape[2] != k->shape[2])
        return frit_node_fail_shape(node, 1, 2, "[T, heads, size], a multiple of the groups");
    for (int i = 3; i < node->n_src; i++) {
        const frit_node *x = node->src[i];
        const bool is_vector = x->op == FRIT_OP_WEIGHT;
        if (is_vector ? frit_node_elems(x) != r->shape[1] * r->shape[2] : !is_heads(x, r->shape[1], r->shape[2]))
            return frit_node_fail_shape(node, 2, i, "numbers for each element of each head");
    }
    shape_as(node, r);
    node->shape[2] = v->shape[2];
    return FRIT_OK;
}
