// SPDX-License-Identifier: MIT
// The shape rules of ops of encoders of pictures and sounds.
#include "graph/node.h"

static bool is_rows(const frit_node *node, int n_dims)
{
    return node->op != FRIT_OP_WEIGHT && !frit_node_is_ids(node) && node->n_dims == n_dims;
}

frit_status frit_shape_embed_mix(frit_node *node)
{
    const frit_node *table = node->src[0], *taps = node->src[1];
    if (table->op != FRIT_OP_WEIGHT || table->n_dims != 2 || !is_rows(taps, 2) || taps->shape[1] % 2 != 0)
        return frit_node_fail_shape(node, 0, 1, "a matrix of the model, and [T, 2 k]: k indices and k weights");
    node->rows = taps->rows;
    node->n_dims = 2;
    node->shape[0] = taps->shape[0];
    node->shape[1] = table->shape[1];
    return FRIT_OK;
}

frit_status frit_shape_rope_angles(frit_node *node)
{
    const frit_node *x = node->src[0], *turns = node->src[1];
    const frit_rope *rope = &node->rope;
    FRIT_TRY(frit_shape_like_0(node));
    if (!is_rows(x, 3) || !is_rows(turns, 2) || turns->rows != x->rows || turns->shape[1] != rope->dim)
        return frit_node_fail_shape(node, 0, 1, "[T, heads, head size], and a cosine and a sine for each pair");
    if (rope->dim >= 2 && rope->dim % 2 == 0 && rope->offset >= 0 && rope->dim + (int64_t)rope->offset <= x->shape[2])
        return FRIT_OK;
    return frit_fail(FRIT_E_INVALID,
                     "op rope_angles: %d elements from %d on rotate, expected an even number in a head of %lld",
                     (int)rope->dim, (int)rope->offset, (long long)x->shape[2]);
}

frit_status frit_shape_attend_uncached(frit_node *node)
{
    const frit_node *q = node->src[0], *k = node->src[1], *v = node->src[2];
    FRIT_TRY(frit_shape_like_0(node));
    if (!is_rows(q, 3) || !is_rows(k, 3) || k->rows != q->rows || k->shape[2] != q->shape[2] ||
        q->shape[1] % k->shape[1] != 0)
        return frit_node_fail_shape(node, 0, 1, "rows of heads of one size, and a divisor of their number");
    if (!is_rows(v, 3) || v->rows != q->rows || v->shape[1] != k->shape[1])
        return frit_node_fail_shape(node, 1, 2, "keys, and values of as many heads");
    const frit_node *segments = node->n_src > 3 ? node->src[3] : NULL;
    if (segments && (!is_rows(segments, 2) || segments->rows != q->rows || segments->shape[1] != 1))
        return frit_node_fail_shape(node, 0, 3, "one number for each row");
    node->shape[2] = v->shape[2];
    return FRIT_OK;
}

frit_status frit_shape_place_rows(frit_node *node)
{
    const frit_node *x = node->src[0], *soft = node->src[1];
    FRIT_TRY(frit_shape_like_0(node));
    if (is_rows(x, 2) && is_rows(soft, 2) && soft->rows == x->rows && soft->shape[1] == x->shape[1] + 1) return FRIT_OK;
    return frit_node_fail_shape(node, 0, 1, "[T, n], and a flag and n numbers for each row");
}

frit_status frit_shape_take_blocks(frit_node *node)
{
    const frit_node *x = node->src[0], *rows = node->src[1];
    if (!is_rows(x, 2) || !frit_node_is_ids(rows))
        return frit_node_fail_shape(node, 0, 1, "[T, m], and indices of rows");
    if (node->n_taken < 1) return frit_fail(FRIT_E_INVALID, "op take_blocks: blocks of %d rows", (int)node->n_taken);
    node->rows = rows->rows;
    node->n_dims = 2;
    node->shape[0] = rows->shape[0];
    node->shape[1] = x->shape[1] * node->n_taken;
    return FRIT_OK;
}
