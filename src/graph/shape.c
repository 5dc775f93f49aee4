// SPDX-License-Identifier: MIT
// The shape rules of the op table.
#include "graph/node.h"

#include <math.h>

static frit_status fail_value(const frit_node *node, int i, const char *expected)
{
    char shape[96];
    return frit_fail(FRIT_E_INVALID, "op %s (%s): source %d is %s, expected %s", frit_op_get(node->op)->name,
                     frit_op_get(node->op)->sources, i, frit_node_shape_text(node->src[i], shape), expected);
}

static bool is_f32(const frit_node *node)
{
    return node->op == FRIT_OP_WEIGHT ? node->tensor->dtype == FRIT_DTYPE_F32 : !frit_node_is_ids(node);
}

static bool is_matrix(const frit_node *node)
{
    return node->op == FRIT_OP_WEIGHT && node->n_dims == 2;
}

// A vector [n] of f32: a norm's weight, a bias, rope factors.
static bool is_vector(const frit_node *node, int64_t n)
{
    return is_f32(node) && node->rows == FRIT_SHAPE_FIXED && node->n_dims == 1 && node->shape[0] == n;
}

static int64_t last_dim(const frit_node *node)
{
    return node->shape[node->n_dims - 1];
}

static bool same_shape(const frit_node *a, const frit_node *b)
{
    return a->n_dims == b->n_dims && a->rows == b->rows && memcmp(a->shape, b->shape, sizeof a->shape) == 0;
}

static void copy_shape(frit_node *node, const frit_node *from)
{
    node->rows = from->rows;
    node->n_dims = from->n_dims;
    memcpy(node->shape, from->shape, sizeof node->shape);
}

frit_status frit_shape_leaf(frit_node *node)
{
    for (int i = 0; i < node->n_dims; i++) {
        if (node->shape[i] < 0)
            return frit_fail(FRIT_E_INVALID, "op %s: a dimension is negative", frit_op_get(node->op)->name);
    }
    return FRIT_OK;
}

frit_status frit_shape_like_0(frit_node *node)
{
    if (!is_f32(node->src[0])) return fail_value(node, 0, "f32 values");
    copy_shape(node, node->src[0]);
    return FRIT_OK;
}

frit_status frit_shape_same(frit_node *node)
{
    FRIT_TRY(frit_shape_like_0(node));
    bool fits = is_f32(node->src[1]) && same_shape(node->src[0], node->src[1]);
    return fits ? FRIT_OK : frit_node_fail_shape(node, 0, 1, "the same shape");
}

frit_status frit_shape_pair(frit_node *node)
{
    FRIT_TRY(frit_shape_like_0(node));
    bool fits = is_f32(node->src[1]) && same_shape(node->src[0], node->src[1]);
    fits = fits || (node->src[0]->n_dims > 0 && is_vector(node->src[1], last_dim(node->src[0])));
    return fits ? FRIT_OK : frit_node_fail_shape(node, 0, 1, "the same shape, or one row [n] of the last dimension");
}

frit_status frit_shape_embed(frit_node *node)
{
    const frit_node *table = node->src[0], *ids = node->src[1];
    if (!is_matrix(table)) return fail_value(node, 0, "a matrix of the model");
    if (!frit_node_is_ids(ids)) return fail_value(node, 1, "token ids or positions");
    node->rows = ids->rows;
    node->n_dims = 2;
    node->shape[0] = ids->shape[0];
    node->shape[1] = table->shape[1];
    return FRIT_OK;
}

// The shape of x w^T: x with its last dimension replaced by the first of w.
static frit_status multiply(frit_node *node, int i_w)
{
    const frit_node *x = node->src[0], *w = node->src[i_w];
    if (!is_f32(x) || x->n_dims < 1) return fail_value(node, 0, "rows of f32 values");
    if (!is_matrix(w) || last_dim(x) != w->shape[1])
        return frit_node_fail_shape(node, 0, i_w, "a matrix with as many columns as x has");
    copy_shape(node, x);
    node->shape[node->n_dims - 1] = w->shape[0];
    return FRIT_OK;
}

static frit_status check_bias(const frit_node *node, int i)
{
    if (i >= node->n_src || is_vector(node->src[i], last_dim(node))) return FRIT_OK;
    return frit_node_fail_shape(node, 1, i, "an f32 bias with one value for each row of w");
}

frit_status frit_shape_linear(frit_node *node)
{
    FRIT_TRY(multiply(node, 1));
    return check_bias(node, 2);
}

static frit_status check_eps(const frit_node *node)
{
    if (isfinite(node->eps) && node->eps >= 0) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID, "op %s: eps is %g, expected a number from 0", frit_op_get(node->op)->name,
                     (double)node->eps);
}

frit_status frit_shape_norm(frit_node *node)
{
    FRIT_TRY(frit_shape_like_0(node));
    FRIT_TRY(check_eps(node));
    for (int i = 1; i < node->n_src; i++) {
        if (!is_vector(node->src[i], last_dim(node)))
            return frit_node_fail_shape(node, 0, i, "a vector in f32, as long as the last dimension");
    }
    return FRIT_OK;
}

frit_status frit_shape_reshape(frit_node *node)
{
    const frit_node *x = node->src[0];
    bool fits = is_f32(x) && x->n_dims >= 1 && node->n_dims >= 1;
    int64_t before = 1, after = 1;
    for (int i = 1; i < x->n_dims; i++) before *= x->shape[i];
    for (int i = 1; fits && i < node->n_dims; i++) {
        int64_t dim = node->shape[i];
        fits = dim >= 1 && dim <= before / after && before % (after * dim) == 0;   // divides, so nothing overflows
        if (fits) after *= dim;
    }
    node->rows = x->rows;
    if (fits && before == after) return FRIT_OK;
    char found[96], wanted[96];
    return frit_fail(FRIT_E_INVALID, "op reshape: %s was asked to become %s, expected as many elements in each row",
                     frit_node_shape_text(x, found), frit_node_shape_text(node, wanted));
}

frit_status frit_shape_slice(frit_node *node)
{
    const frit_node *x = node->src[0];
    int64_t n = last_dim(node);
    node->rows = x->rows;
    if (is_f32(x) && x->n_dims >= 1 && node->begin >= 0 && n >= 1 && node->begin <= last_dim(x) - n) return FRIT_OK;
    return fail_value(node, 0, "a last dimension that the slice fits into");
}

frit_status frit_shape_concat(frit_node *node)
{
    FRIT_TRY(frit_shape_like_0(node));
    const frit_node *a = node->src[0], *b = node->src[1];
    bool fits = is_f32(b) && a->n_dims == b->n_dims && a->rows == b->rows && a->shape[0] == b->shape[0];
    for (int i = 1; fits && i < a->n_dims - 1; i++)
        fits = a->shape[i] == b->shape[i] || (b->shape[i] == 1 && a->n_dims == 3);
    if (!fits) return frit_node_fail_shape(node, 0, 1, "the same shape but for the last dimension");
    node->shape[node->n_dims - 1] += last_dim(b);
    return FRIT_OK;
}

frit_status frit_shape_scale_rows(frit_node *node)
{
    FRIT_TRY(frit_shape_like_0(node));
    const frit_node *s = node->src[1];
    bool fits = is_f32(s) && s->n_dims == node->n_dims && s->rows == node->rows && last_dim(s) == 1;
    for (int i = 0; fits && i < node->n_dims - 1; i++) fits = s->shape[i] == node->shape[i];
    return fits ? FRIT_OK : frit_node_fail_shape(node, 0, 1, "one scale for each row");
}

frit_status frit_shape_rms_match(frit_node *node)
{
    FRIT_TRY(frit_shape_same(node));
    return check_eps(node);
}

frit_status frit_shape_mix_streams(frit_node *node)
{
    FRIT_TRY(frit_shape_like_0(node));
    const frit_node *x = node->src[0], *c = node->src[1];
    const bool fits = is_f32(c) && x->n_dims == 3 && c->n_dims == 3 && c->rows == x->rows &&
                      c->shape[0] == x->shape[0] && c->shape[2] == x->shape[1];
    if (!fits) return frit_node_fail_shape(node, 0, 1, "[rows, n, size] and [rows, m, n]");
    node->shape[1] = c->shape[1];
    return FRIT_OK;
}

static bool is_stack(const frit_node *node)   // a stack of matrices
{
    return node->op == FRIT_OP_WEIGHT && node->n_dims == 3;
}

frit_status frit_shape_heads(frit_node *node)
{
    FRIT_TRY(frit_shape_like_0(node));
    const frit_node *w = node->src[1];
    bool fits = node->n_dims == 3 && is_stack(w) && w->shape[0] == node->shape[1] && w->shape[2] == node->shape[2];
    if (!fits) return frit_node_fail_shape(node, 0, 1, "a matrix for each head with as many columns as x has");
    node->shape[2] = w->shape[1];
    return FRIT_OK;
}

frit_status frit_shape_hyper(frit_node *node)
{
    const frit_node *x = node->src[0];
    const int64_t n = node->hyper.n;
    if (!is_f32(x) || x->n_dims != 2 || n < 1 || n > 16 || (x->shape[1] != n && x->shape[1] != (2 + n) * n))
        return fail_value(node, 0, "numbers for n streams");
    const bool is_whole = x->shape[1] > n;
    if (!is_vector(node->src[1], is_whole ? 3 : 1)) return frit_node_fail_shape(node, 0, 1, "a scale of each part");
    if (!is_vector(node->src[2], x->shape[1])) return frit_node_fail_shape(node, 0, 2, "one bias for each number");
    node->rows = x->rows;
    node->n_dims = 2;
    node->shape[0] = x->shape[0];
    node->shape[1] = is_whole ? n + n * (n + 1) : n;
    return FRIT_OK;
}

frit_status frit_shape_route(frit_node *node)
{
    const frit_node *x = node->src[0];
    const frit_route *r = &node->route;
    if (!is_f32(x) || x->n_dims != 2) return fail_value(node, 0, "a score for each expert");
    if (node->n_src == 2 && !is_vector(node->src[1], x->shape[1]))
        return frit_node_fail_shape(node, 0, 1, "one bias for each expert");
    bool grouped = r->n_groups > 1;
    if (r->n_used < 1 || r->n_used > x->shape[1] || r->gating <= FRIT_GATING_NONE || r->gating >= FRIT_GATING_COUNT)
        return frit_fail(FRIT_E_INVALID, "op route: %d of %lld experts are to be used", (int)r->n_used,
                         (long long)x->shape[1]);
    if (grouped && (x->shape[1] % r->n_groups != 0 || x->shape[1] / r->n_groups < 2 || r->n_groups_used < 1 ||
                    r->n_groups_used > r->n_groups || r->n_used > x->shape[1] / r->n_groups * r->n_groups_used))
        return frit_fail(FRIT_E_INVALID, "op route: %d of %lld experts cannot come from %d of %d groups",
                         (int)r->n_used, (long long)x->shape[1], (int)r->n_groups_used, (int)r->n_groups);
    node->rows = x->rows;
    node->n_dims = 3;
    node->shape[0] = x->shape[0];
    node->shape[1] = 2;
    node->shape[2] = r->n_used;
    return FRIT_OK;
}

static bool is_route_for(const frit_node *route, const frit_node *x)
{
    return route->op == FRIT_OP_ROUTE && route->rows == x->rows && route->shape[0] == x->shape[0];
}

frit_status frit_shape_experts(frit_node *node)
{
    const frit_node *x = node->src[0], *w = node->src[1], *route = node->src[2];
    if (!is_f32(x) || x->n_dims < 2 || x->n_dims > 3) return fail_value(node, 0, "rows, or rows for each expert used");
    if (!is_route_for(route, x) || (x->n_dims == 3 && x->shape[1] != route->shape[2]))
        return frit_node_fail_shape(node, 0, 2, "the route of these rows");
    if (!is_stack(w) || w->shape[2] != last_dim(x))
        return frit_node_fail_shape(node, 0, 1, "a matrix for each expert with as many columns as x has");
    const frit_experts *e = &node->experts;
    if (e->begin < 0 || e->n < 1 || e->begin + (int64_t)e->n > w->shape[1])
        return fail_value(node, 1, "the rows that are asked for");
    const int64_t divisor = route->route.divisor > 0 ? route->route.divisor : 1;
    if ((route->src[0]->shape[1] - 1) / divisor >= w->shape[0])
        return frit_node_fail_shape(node, 1, 2, "a matrix for each expert that may be chosen");
    node->rows = x->rows;
    node->n_dims = 3;
    node->shape[0] = x->shape[0];
    node->shape[1] = route->shape[2];
    node->shape[2] = e->n;
    return FRIT_OK;
}

frit_status frit_shape_experts_glu(frit_node *node)
{
    const frit_experts_glu *glu = &node->experts_glu;
    for (int i = 1; i <= 2; i++) {
        frit_node half = {.src = {node->src[0], node->src[i], node->src[3]}, .n_src = 3, .op = FRIT_OP_EXPERTS};
        half.experts = (frit_experts){.begin = i == 1 ? glu->gate : glu->up, .n = glu->n};
        FRIT_TRY(frit_shape_experts(&half));
        copy_shape(node, &half);
    }
    return FRIT_OK;
}

frit_status frit_shape_experts_mix(frit_node *node)
{
    FRIT_TRY(frit_shape_experts(node));
    if (node->src[0]->n_dims != 3) return fail_value(node, 0, "rows for each expert used");
    node->n_dims = 2;
    node->shape[1] = node->shape[2];
    node->shape[2] = 1;
    return FRIT_OK;
}

frit_status frit_shape_gather_experts(frit_node *node)
{
    const frit_node *w = node->src[0], *route = node->src[1];
    if (!is_f32(w) || w->op != FRIT_OP_WEIGHT || w->n_dims > 2) return fail_value(node, 0, "f32 for each expert");
    if (route->op != FRIT_OP_ROUTE) return fail_value(node, 1, "a route");
    node->rows = route->rows;
    node->n_dims = 3;
    node->shape[0] = route->shape[0];
    node->shape[1] = route->shape[2];
    node->shape[2] = w->n_dims == 2 ? w->shape[1] : 1;
    return FRIT_OK;
}

frit_status frit_shape_mix(frit_node *node)
{
    const frit_node *x = node->src[0], *route = node->src[1];
    bool fits = is_f32(x) && x->n_dims == 3 && is_route_for(route, x) && x->shape[1] == route->shape[2];
    if (!fits) return frit_node_fail_shape(node, 0, 1, "rows for each expert used, and their route");
    node->rows = x->rows;
    node->n_dims = 2;
    node->shape[0] = x->shape[0];
    node->shape[1] = x->shape[2];
    return FRIT_OK;
}

frit_status frit_shape_rope(frit_node *node)
{
    FRIT_TRY(frit_shape_like_0(node));
    if (node->n_dims != 3) return fail_value(node, 0, "[rows, heads, head size]");
    if (!frit_node_is_ids(node->src[1]) || node->src[1]->rows != node->rows)
        return frit_node_fail_shape(node, 0, 1, "one position for each row");
    int32_t dim = node->rope.dim;
    if (dim < 2 || dim % 2 != 0 || node->rope.offset < 0 || dim + (int64_t)node->rope.offset > node->shape[2])
        return frit_fail(FRIT_E_INVALID,
                         "op rope: %d elements of a head of %lld rotate, expected an even number up to the head size",
                         (int)dim, (long long)node->shape[2]);
    if (!is_vector(node->src[2], dim / 2))
        return frit_node_fail_shape(node, 0, 2, "one frequency for each rotating pair");
    if (node->n_src == 4 && !is_vector(node->src[3], dim / 2))
        return frit_node_fail_shape(node, 0, 3, "one factor for each rotating pair");
    return FRIT_OK;
}

frit_status frit_shape_kv_write(frit_node *node)
{
    FRIT_TRY(frit_shape_like_0(node));
    const frit_node *k = node->src[0], *v = node->n_src == 2 ? node->src[1] : k;
    bool fits = is_f32(v) && k->n_dims == 3 && v->n_dims == 3 && k->rows == v->rows && k->shape[0] == v->shape[0];
    return fits && k->shape[1] == v->shape[1]
               ? FRIT_OK
               : frit_node_fail_shape(node, 0, node->n_src - 1,
                                      "[rows, heads, head size] with the same rows and heads");
}

frit_status frit_shape_index_write(frit_node *node)
{
    FRIT_TRY(frit_shape_like_0(node));
    return node->n_dims == 3 && node->shape[1] == 1 ? FRIT_OK : fail_value(node, 0, "[rows, 1, size]");
}

frit_status frit_shape_choose(frit_node *node)
{
    const frit_node *q = node->src[0], *w = node->src[1], *written = node->src[2];
    if (!is_f32(q) || q->n_dims != 3) return fail_value(node, 0, "[rows, heads, size]");
    if (written->op != FRIT_OP_INDEX_WRITE || written->layer != node->choose.layer)
        return fail_value(node, 2, "what index_write gives, of the same layer");
    if (q->rows != written->rows || q->shape[2] != written->shape[2])
        return frit_node_fail_shape(node, 0, 2, "the same rows and size");
    if (!is_f32(w) || w->n_dims != 2 || w->rows != q->rows || w->shape[1] != q->shape[1])
        return frit_node_fail_shape(node, 0, 1, "one weight for each head");
    if (node->choose.n < 1)
        return frit_fail(FRIT_E_INVALID, "op choose: %d positions are to be chosen", (int)node->choose.n);
    node->rows = q->rows;
    node->n_dims = 2;
    node->shape[0] = q->shape[0];
    node->shape[1] = node->choose.n;
    return FRIT_OK;
}

static frit_status check_attend(frit_node *node)
{
    const frit_node *q = node->src[0], *written = node->src[1];
    if (!is_f32(q) || q->n_dims != 3) return fail_value(node, 0, "[rows, heads, head size]");
    if (node->attend.cross != (node->n_src == 1))
        return frit_fail(FRIT_E_INVALID, "op attend: %s",
                         written ? "nothing is written before attention to a source"
                                 : "it must follow the kv_write of its layer");
    node->rows = q->rows;
    node->shape[0] = q->shape[0];
    node->shape[1] = q->shape[1];
    if (node->attend.cross) return FRIT_OK;
    if (written->op != FRIT_OP_KV_WRITE) return fail_value(node, 1, "what kv_write gives");
    if (written->layer != node->attend.layer)
        return frit_fail(FRIT_E_INVALID, "op attend: layer %d reads what was written for layer %d",
                         (int)node->attend.layer, (int)written->layer);
    bool fits = q->rows == written->rows && q->shape[2] == written->shape[2] && q->shape[1] % written->shape[1] == 0;
    if (!fits) return frit_node_fail_shape(node, 0, 1, "the same rows and head size, and a multiple of the heads");
    const bool apart = written->n_src == 2;   // values are not in the keys
    const int64_t v_dim = apart ? written->src[1]->shape[2] : written->shape[2];
    if (apart ? node->shape[2] != v_dim : node->shape[2] < 1 || node->shape[2] > v_dim)
        return frit_fail(FRIT_E_INVALID, "op attend: values have %lld elements, expected %lld as written",
                         (long long)node->shape[2], (long long)v_dim);
    return FRIT_OK;
}

// Devices read the ends before the step runs, so they are an input of the step.
static frit_status check_ends(const frit_node *node)
{
    const frit_node *ends = node->n_src == 3 ? node->src[2] : NULL;
    const frit_attend *a = &node->attend;
    if (!ends || ends->op != FRIT_OP_INPUT || ends->input != FRIT_INPUT_RESULT || ends->n_dims != 2 ||
        ends->rows != node->rows || a->ends_at < 0 || a->ends_at >= ends->shape[1])
        return frit_node_fail_shape(node, 0, 2, "an input of the step, with an end for each row");
    if (a->chunk == 0 && a->alibi == 0 && !a->bidirectional && !a->cross && a->reach == 0) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID, "op attend: rows see later positions, expected no chunks, ALiBi, gains or source");
}

frit_status frit_shape_attend(frit_node *node)
{
    FRIT_TRY(check_attend(node));
    if (node->attend.ends_at != 0) return check_ends(node);
    const frit_node *more = node->n_src == 3 ? node->src[2] : NULL;
    const int32_t reach = node->attend.reach;
    if (reach == 0)
        return !more || is_vector(more, node->shape[1]) ? FRIT_OK
                                                        : frit_node_fail_shape(node, 0, 2, "one sink for each head");
    const bool fits = more && is_f32(more) && more->rows == FRIT_SHAPE_FIXED && more->n_dims == 2 && reach > 0 &&
                      more->shape[0] == node->shape[1] && more->shape[1] == 2 * (int64_t)reach + 1;
    if (fits) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID, "op attend: scores gain by up to %d positions, expected gains [%lld, %lld]",
                     (int)reach, (long long)node->shape[1], 2 * (long long)reach + 1);
}

frit_status frit_shape_choose_blocks(frit_node *node)
{
    const frit_node *q = node->src[0], *written = node->src[1];
    const frit_choose *choose = &node->choose;
    if (!is_f32(q) || q->n_dims != 3) return fail_value(node, 0, "[rows, heads, size]");
    if (written->op != FRIT_OP_INDEX_WRITE || written->layer != choose->layer)
        return fail_value(node, 1, "what index_write gives, of the same layer");
    if (q->rows != written->rows || q->shape[2] != written->shape[2])
        return frit_node_fail_shape(node, 0, 1, "the same rows and size");
    if (choose->n < 1 || choose->block < 1 || choose->n_latest < 1 || choose->n_latest > choose->n)
        return frit_fail(FRIT_E_INVALID,
                         "op choose_blocks: %d blocks of %d positions are to be chosen, %d of them the "
                         "latest",
                         (int)choose->n, (int)choose->block, (int)choose->n_latest);
    node->rows = q->rows;
    node->n_dims = 2;
    node->shape[0] = q->shape[0];
    node->shape[1] = q->shape[1] * choose->n;
    return FRIT_OK;
}

frit_status frit_shape_attend_in_blocks(frit_node *node)
{
    FRIT_TRY(check_attend(node));
    const frit_node *chosen = node->src[2];
    const frit_attend *attend = &node->attend;
    if (chosen->op != FRIT_OP_CHOOSE_BLOCKS || chosen->rows != node->rows || chosen->choose.block != attend->block ||
        chosen->src[0]->shape[1] != node->src[1]->shape[1])
        return fail_value(node, 2, "what choose_blocks gives for each KV head");
    if (attend->window > 0 || attend->chunk > 0 || attend->alibi != 0 || attend->bidirectional || attend->reach != 0)
        return frit_fail(FRIT_E_INVALID, "op attend_in_blocks: blocks are chosen, so no window can cut them");
    return FRIT_OK;
}

frit_status frit_shape_attend_blocks(frit_node *node)
{
    const frit_node *q = node->src[0], *written = node->src[1];
    const frit_attend *attend = &node->attend;
    if (!is_f32(q) || q->n_dims != 3) return fail_value(node, 0, "[rows, heads, head size]");
    if (written->op != FRIT_OP_KV_WRITE || written->n_src != 1 || written->layer != attend->layer)
        return fail_value(node, 1, "keys that are values, written to the same layer");
    if (q->rows != written->rows || written->shape[1] != 2 || q->shape[2] != written->shape[2])
        return frit_node_fail_shape(node, 0, 1, "the same rows and head size, and two heads");
    if (!is_vector(node->src[2], q->shape[1])) return frit_node_fail_shape(node, 0, 2, "one sink for each head");
    if (node->n_src > 3 && (node->src[3]->op != FRIT_OP_CHOOSE || node->src[3]->rows != q->rows))
        return fail_value(node, 3, "what choose gives");
    if (attend->window < 1 || attend->block < 1)
        return frit_fail(FRIT_E_INVALID, "op attend_blocks: a window of %d and blocks of %d positions",
                         (int)attend->window, (int)attend->block);
    node->rows = q->rows;
    node->n_dims = 3;
    memcpy(node->shape, q->shape, sizeof node->shape);
    return FRIT_OK;
}

frit_status frit_shape_attend_sparse(frit_node *node)
{
    FRIT_TRY(check_attend(node));
    const frit_attend *attend = &node->attend;
    if (node->src[2]->op != FRIT_OP_CHOOSE || node->src[2]->rows != node->rows)
        return fail_value(node, 2, "what choose gives");
    if (attend->window > 0 || attend->chunk > 0 || attend->alibi != 0 || attend->bidirectional || attend->reach != 0)
        return frit_fail(FRIT_E_INVALID, "op attend_sparse: positions are chosen, so no window can cut them");
    return FRIT_OK;
}

frit_status frit_shape_attend_relative(frit_node *node)
{
    const frit_node *q = node->src[0], *k = node->src[1], *v = node->src[2];
    const frit_relate *relate = &node->relate;
    FRIT_TRY(frit_shape_like_0(node));
    bool fits = q->n_dims == 3 && is_f32(v) && v->n_dims == 3;
    for (int i = 1; i < 5 && fits; i++)
        fits = is_f32(node->src[i]) && node->src[i]->rows == q->rows && node->src[i]->n_dims == 3 &&
               node->src[i]->shape[0] == q->shape[0] && node->src[i]->shape[1] == q->shape[1];
    if (!fits || k->shape[2] != q->shape[2])
        return frit_node_fail_shape(node, 0, 1, "queries, keys and values of equal heads");
    const int64_t n = 2 * (int64_t)relate->span;
    if (relate->span < 2 || relate->n_distances < 0 || node->src[3]->shape[2] != n || node->src[4]->shape[2] != n)
        return frit_fail(FRIT_E_INVALID, "op attend_relative: %d buckets of a side, expected terms for %lld buckets",
                         (int)relate->span, (long long)n);
    node->shape[2] = v->shape[2];
    return FRIT_OK;
}

frit_status frit_shape_take_rows(frit_node *node)
{
    FRIT_TRY(frit_shape_like_0(node));
    const frit_node *rows = node->src[1];
    if (!frit_node_is_ids(rows) || node->n_dims < 1)
        return frit_node_fail_shape(node, 0, 1, "rows, and indices of some of them");
    node->rows = rows->rows;
    node->shape[0] = rows->shape[0];
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- adapters

frit_status frit_shape_adapt_down(frit_node *node)
{
    const frit_node *x = node->src[0], *route = node->n_src > 1 ? node->src[1] : NULL;
    const frit_adapted *adapted = &node->adapted[0];
    if (adapted->n_h < 1 || adapted->matrix < 0)
        return frit_fail(FRIT_E_INVALID,
                         "op adapt_down: room for ranks up to %d at matrix %d, expected at least 1 at 0",
                         (int)adapted->n_h, (int)adapted->matrix);
    if (!frit_node_is_ids(x) && (!is_f32(x) || x->n_dims < 2 || (x->n_dims > 2 && !route)))
        return fail_value(node, 0, "rows of a matrix's product, or ids");
    if (route && (!is_route_for(route, x) || (x->n_dims == 3 && x->shape[1] != route->shape[2])))
        return frit_node_fail_shape(node, 0, 1, "the route of these rows");
    node->rows = x->rows;
    node->n_dims = 0;
    node->shape[node->n_dims++] = x->shape[0];
    if (route) node->shape[node->n_dims++] = route->shape[2];
    node->shape[node->n_dims++] = adapted->n_h;
    return FRIT_OK;
}

frit_status frit_shape_adapt_up(frit_node *node)
{
    FRIT_TRY(frit_shape_like_0(node));
    const frit_node *h = node->src[1];
    bool fits = is_f32(h) && h->n_dims == node->n_dims && h->rows == node->rows && last_dim(h) == node->adapted[0].n_h;
    for (int i = 0; fits && i < node->n_dims - 1; i++) fits = h->shape[i] == node->shape[i];
    if (!fits) return frit_node_fail_shape(node, 0, 1, "the rows that adapt_down makes for this matrix");
    if (node->n_src == 3 && !is_route_for(node->src[2], h))
        return frit_node_fail_shape(node, 1, 2, "the route of these rows");
    return FRIT_OK;
}

frit_status frit_shape_steer(frit_node *node)
{
    FRIT_TRY(frit_shape_like_0(node));
    return node->n_dims == 2 ? FRIT_OK : fail_value(node, 0, "rows of hidden states");
}

static frit_status check_ranks(const frit_node *node)
{
    const frit_ranks *r = &node->ranks;
    const bool fits = is_f32(node->src[0]) && r->axis >= 1 && r->axis < node->src[0]->n_dims && r->n_parts >= 1 &&
                      r->n >= r->n_parts && r->n % r->n_parts == 0;
    return fits ? FRIT_OK : fail_value(node, 0, "a dimension to cut after the rows, and parts that divide the ranks");
}

frit_status frit_shape_gather(frit_node *node)
{
    FRIT_TRY(frit_shape_like_0(node));
    FRIT_TRY(check_ranks(node));
    node->shape[node->ranks.axis] *= node->ranks.n_parts;
    return FRIT_OK;
}

frit_status frit_shape_part(frit_node *node)
{
    FRIT_TRY(frit_shape_like_0(node));
    FRIT_TRY(check_ranks(node));
    int64_t *n = &node->shape[node->ranks.axis];
    if (*n % node->ranks.n_parts != 0) return fail_value(node, 0, "a dimension that the parts divide");
    *n /= node->ranks.n_parts;
    return FRIT_OK;
}
