// SPDX-License-Identifier: MIT
// How ops are cut: one function for each name in the column `cut` of the op table. A function is called when the
// sources of the node have their values.
#include "graph/shard_rules.h"

enum { LEAVES = 8 };

static bool is_sliced(frit_sharding *s, const frit_node *node)
{
    return frit_shard_value_of(s, node)->sliced != NULL;
}

static bool is_whole(frit_sharding *s, const frit_node *node)
{
    return frit_shard_value_of(s, node)->whole != NULL;
}

static bool is_weight(const frit_node *node)
{
    return node->op == FRIT_OP_WEIGHT && node->cut.n_parts == 0;
}

void frit_cut_whole(frit_sharding *s, frit_node *node)
{
    for (int i = 0; i < node->n_src; i++) node->src[i] = frit_shard_whole(s, node->src[i]);
    frit_shard_set_whole(s, node);
}

// The node follows source 0, whose cut it has; its other sources are whole.
static void follow(frit_sharding *s, frit_node *node, int32_t axis)
{
    const frit_shard_value v = *frit_shard_value_of(s, node->src[0]);
    node->src[0] = v.sliced;
    for (int i = 1; i < node->n_src; i++) node->src[i] = frit_shard_whole(s, node->src[i]);
    frit_shard_set_sliced(s, node, axis, v.n_parts);
}

void frit_cut_elements(frit_sharding *s, frit_node *node)
{
    if (is_whole(s, node->src[0]) || !is_sliced(s, node->src[0]))
        frit_cut_whole(s, node);
    else
        follow(s, node, frit_shard_value_of(s, node->src[0])->axis);
}

// The op works along the last dimension, so a cut of another dimension does not touch it.
void frit_cut_last(frit_sharding *s, frit_node *node)
{
    const frit_shard_value v = *frit_shard_value_of(s, node->src[0]);
    if (v.whole || !v.sliced || v.axis >= node->src[0]->n_dims - 1)
        frit_cut_whole(s, node);
    else
        follow(s, node, v.axis);
}

// ------------------------------------------------------------------------------- pairs

// True if the dimensions before the last are the same.
static bool has_same_dims(const frit_sharding *s, const frit_node *a, const frit_node *b)
{
    if (a->n_dims != b->n_dims || a->rows != b->rows) return false;
    for (int i = 1; i < a->n_dims - 1; i++)
        if (frit_shard_dim(s, a, i) != frit_shard_dim(s, b, i)) return false;
    return true;
}

// Sums of partial values are partial, unless the order of additions is fixed.
static bool adds_partial(frit_sharding *s, const frit_node *node)
{
    for (int i = 0; i < 2; i++) {
        const frit_shard_value *v = frit_shard_value_of(s, node->src[i]);
        if (!v->partial || v->whole || v->bias || v->factor != 0) return false;
    }
    return node->op == FRIT_OP_ADD && !s->options->is_exact;
}

static void add_partial(frit_sharding *s, frit_node *node)
{
    for (int i = 0; i < 2; i++) node->src[i] = frit_shard_value_of(s, node->src[i])->partial;
    frit_node *sum = frit_shard_add(s, node);
    if (sum) frit_shard_value_of(s, node)->whole = NULL;
    frit_shard_set_partial(s, node, sum);
}

// Source 1 is one row, which all rows of source 0 are combined with.
static void cut_pair_with_row(frit_sharding *s, frit_node *node)
{
    const frit_shard_value v = *frit_shard_value_of(s, node->src[0]);
    const bool is_along = v.axis == node->src[0]->n_dims - 1;
    if (v.whole || !v.sliced || (is_along && !is_weight(node->src[1]))) {
        frit_cut_whole(s, node);
        return;
    }
    frit_node *row = node->src[1];
    if (is_along) {
        node->src[1] = frit_shard_weight(
            s, row, (frit_shard_cut){.n_ranks = s->n_ranks, .n_parts = v.n_parts, .size = row->shape[0]});
        node->src[0] = v.sliced;
        frit_shard_set_sliced(s, node, v.axis, v.n_parts);
    } else {
        follow(s, node, v.axis);
    }
}

static void cut_both(frit_sharding *s, frit_node *node, const frit_shard_value *like)
{
    const int32_t axis = like->axis, n_parts = like->n_parts;
    for (int i = 0; i < 2; i++) node->src[i] = frit_shard_sliced(s, node->src[i], axis, n_parts);
    frit_shard_set_sliced(s, node, axis, n_parts);
}

// If both sources exist whole, the result is whole. Otherwise both are cut like the first one that is cut.
void frit_cut_pair(frit_sharding *s, frit_node *node)
{
    if (!has_same_dims(s, node->src[0], node->src[1])) {
        cut_pair_with_row(s, node);
        return;
    }
    const frit_shard_value a = *frit_shard_value_of(s, node->src[0]), b = *frit_shard_value_of(s, node->src[1]);
    if (adds_partial(s, node))
        add_partial(s, node);
    else if ((a.whole && b.whole) || (!a.sliced && !b.sliced) || a.partial || b.partial)
        frit_cut_whole(s, node);
    else
        cut_both(s, node, a.sliced ? &a : &b);
}

static bool cuts_before_last(frit_sharding *s, const frit_node *node)
{
    const frit_shard_value *a = frit_shard_value_of(s, node->src[0]);
    return a->sliced && !a->whole && a->axis < node->n_dims - 1 && has_same_dims(s, node->src[0], node->src[1]);
}

void frit_cut_pair_last(frit_sharding *s, frit_node *node)
{
    if (cuts_before_last(s, node))
        cut_both(s, node, frit_shard_value_of(s, node->src[0]));
    else
        frit_cut_whole(s, node);
}

// One head of source 1 repeats for all heads of source 0.
void frit_cut_concat(frit_sharding *s, frit_node *node)
{
    const bool repeats =
        node->n_dims == 3 && frit_shard_dim(s, node->src[1], 1) == 1 && frit_shard_dim(s, node->src[0], 1) > 1;
    const frit_shard_value *a = frit_shard_value_of(s, node->src[0]);
    if (repeats && a->sliced && !a->whole && a->axis == 1)
        follow(s, node, 1);
    else
        frit_cut_pair_last(s, node);
}

// Parts of the first dimension after the rows are contiguous, so they stay parts if the new dimension has them too.
void frit_cut_reshape(frit_sharding *s, frit_node *node)
{
    const frit_shard_value v = *frit_shard_value_of(s, node->src[0]);
    if (v.whole || !v.sliced || v.axis != 1 || node->rows == FRIT_SHAPE_FIXED || node->shape[1] % v.n_parts != 0) {
        frit_cut_whole(s, node);
        return;
    }
    node->src[0] = v.sliced;
    frit_shard_set_sliced(s, node, 1, v.n_parts);
}

// ------------------------------------------------------------------------------- products

static int64_t width_unit(const frit_node *weight)
{
    return frit_dtype_get(weight->tensor->dtype)->block_elems;
}

// Number of leaves of a sum over n columns; 1: the columns cannot be cut.
static int32_t leaves_of(const frit_node *weight)
{
    const int64_t n = weight->shape[weight->n_dims - 1], unit = width_unit(weight);
    int32_t leaves = LEAVES;
    while (leaves > 1 && n % (leaves * unit) != 0) leaves /= 2;
    return leaves;
}

// True if the columns of the weight can be cut for all ranks. Exact sums over ranks are sums of leaves.
static bool can_cut_columns(const frit_sharding *s, const frit_node *weight, bool has_leaves)
{
    const int64_t n = weight->shape[weight->n_dims - 1];
    if (!is_weight(weight) || (s->options->is_exact && !has_leaves)) return false;
    if (has_leaves) return leaves_of(weight) % s->n_ranks == 0;
    return n % (s->n_ranks * width_unit(weight)) == 0;
}

static frit_node *slice_last(frit_sharding *s, frit_node *x, int64_t begin, int64_t n)
{
    frit_node *slice = frit_slice(s->g, x, begin, n);
    return slice == x ? x : frit_shard_add(s, slice);
}

// The node's product over one leaf: columns of x, which is local, and of the weight, by `cut`.
static frit_node *leaf_of(frit_sharding *s, const frit_node *node, frit_node *x, int32_t i, int32_t n,
                          frit_shard_cut cut)
{
    const int64_t width = x->shape[x->n_dims - 1] / n;
    frit_node leaf = *node;
    leaf.src[0] = slice_last(s, x, i * width, width);
    leaf.src[1] = frit_shard_weight(s, node->src[1], cut);
    return leaf.src[0] && leaf.src[1] ? frit_shard_add(s, frit_node_copy(s->g, &leaf)) : NULL;
}

// Sums neighbours, then sums of neighbours, and so on. n is a power of two.
static frit_node *add_as_tree(frit_sharding *s, frit_node **terms, int32_t n)
{
    for (; n > 1; n /= 2)
        for (int32_t i = 0; i < n / 2; i++)
            terms[i] = frit_shard_add(s, frit_add(s->g, terms[2 * i], terms[2 * i + 1]));
    return terms[0];
}

// The product as a tree of n_local leaves. x and the leaves are those of a rank if n_ranks > 1.
static frit_node *sum_leaves(frit_sharding *s, const frit_node *node, frit_node *x, int32_t n_ranks, int32_t n_leaves)
{
    const frit_node *w = node->src[1];
    frit_node *terms[LEAVES];
    const int32_t n = n_leaves / n_ranks;
    for (int32_t i = 0; i < n; i++)
        terms[i] = leaf_of(s, node, x, i, n,
                           (frit_shard_cut){.axis = w->n_dims - 1,
                                            .n_ranks = n_ranks,
                                            .n_parts = n_leaves,
                                            .leaf = i,
                                            .size = w->shape[w->n_dims - 1]});
    return add_as_tree(s, terms, n);
}

// The columns of the matrix are cut as x is: the ranks' products are added.
static void cut_columns(frit_sharding *s, frit_node *node)
{
    const frit_shard_value v = *frit_shard_value_of(s, node);
    const int32_t n_leaves = v.has_leaves ? leaves_of(node->src[1]) : s->n_ranks;
    const int32_t axis = node->src[0]->n_dims - 1;
    frit_node *x = frit_shard_sliced(s, node->src[0], axis, s->n_ranks);
    frit_node plain = *node;
    if (node->op == FRIT_OP_LINEAR) {
        if (node->n_src > 2) frit_shard_value_of(s, node)->bias = frit_shard_whole(s, node->src[2]);
        frit_shard_value_of(s, node)->factor = node->factor;
        plain.factor = 0;
        plain.src[2] = NULL;
        plain.n_src = 2;
    } else {
        plain.src[2] = frit_shard_whole(s, node->src[2]);
    }
    if (x) frit_shard_set_partial(s, node, sum_leaves(s, &plain, x, s->n_ranks, n_leaves));
}

// The whole product, as a tree of leaves.
static void add_leaves(frit_sharding *s, frit_node *node)
{
    frit_node *x = frit_shard_whole(s, node->src[0]);
    frit_node plain = *node, *bias = NULL;
    if (node->op == FRIT_OP_LINEAR) {
        if (node->n_src > 2) bias = frit_shard_whole(s, node->src[2]);
        plain.factor = 0;
        plain.src[2] = NULL;
        plain.n_src = 2;
    } else {
        plain.src[2] = frit_shard_whole(s, node->src[2]);
    }
    frit_node *sum = x ? sum_leaves(s, &plain, x, 1, leaves_of(node->src[1])) : NULL;
    if (sum && bias) sum = frit_shard_add(s, frit_add(s->g, sum, bias));
    if (sum && node->op == FRIT_OP_LINEAR && node->factor != 0 && node->factor != 1)
        sum = frit_shard_add(s, frit_scale(s->g, sum, node->factor));
    frit_shard_set_other(s, node, sum);
}

// How many parts the rows of the matrix are cut into; 1: they stay whole.
static int32_t row_parts(frit_sharding *s, const frit_node *node)
{
    const frit_shard_value *v = frit_shard_value_of(s, node);
    const frit_node *w = node->src[1];
    if (s->n_ranks == 1 || !is_weight(w) || (node->n_src > 2 && !is_weight(node->src[2]))) return 1;
    if (!v->is_read_sliced && frit_node_elems(w) < s->options->least_elems) return 1;
    const int32_t n_parts = v->heads > 0 ? frit_shard_parts_of_heads(s, v->heads) : s->n_ranks;
    return w->shape[0] % n_parts == 0 ? n_parts : 1;
}

static void cut_rows(frit_sharding *s, frit_node *node, int32_t n_parts)
{
    const frit_shard_cut cut = {.n_ranks = s->n_ranks, .n_parts = n_parts, .size = node->src[1]->shape[0]};
    node->src[0] = frit_shard_whole(s, node->src[0]);
    for (int i = 1; i < node->n_src; i++) node->src[i] = frit_shard_weight(s, node->src[i], cut);
    frit_shard_set_sliced(s, node, node->n_dims - 1, n_parts);
}

// The ranks' parts of a value that all have whole. Readers follow the cut, as if the ranks had computed their parts.
static void set_parts(frit_sharding *s, frit_node *node, frit_node *whole, int32_t axis, int32_t n_parts)
{
    frit_node *part = frit_shard_add(s, frit_part_node(s->g, whole, (frit_ranks){s->n_ranks, n_parts, axis}));
    frit_shard_value *v = frit_shard_value_of(s, node);
    v->sliced = part;
    v->before = whole;
    v->axis = axis;
    v->n_parts = n_parts;
    v->is_set = true;
}

// Adapters add to the whole product: linear, then adapt_up, then the factor. The result is cut as the product is, so
// that graphs with adapters and graphs without read the same parts of the weights.
static void cut_adapted(frit_sharding *s, frit_node *node)
{
    frit_node plain = *node;
    const int n = frit_node_n_own(node);
    frit_node *h = frit_shard_whole(s, node->src[n]);
    plain.adapts = 0;
    plain.factor = 0;
    plain.src[n] = NULL;
    plain.n_src = n;
    frit_node *product = frit_node_copy(s->g, &plain);
    if (!product || !frit_shard_add(s, product)) return;
    s->n_order--;   // the rule adds it to the order
    *frit_shard_value_of(s, product) = *frit_shard_value_of(s, node);
    frit_cut_linear(s, product);
    frit_node *sum = frit_shard_add(s, frit_adapt_up(s->g, frit_shard_whole(s, product), h, node->adapted[0]));
    if (sum && node->factor != 0 && node->factor != 1) sum = frit_shard_add(s, frit_scale(s->g, sum, node->factor));
    const frit_shard_value v = *frit_shard_value_of(s, product);
    if (sum && v.sliced)
        set_parts(s, node, sum, v.axis, v.n_parts);
    else
        frit_shard_set_other(s, node, sum);
}

void frit_cut_linear(frit_sharding *s, frit_node *node)
{
    const frit_shard_value x = *frit_shard_value_of(s, node->src[0]);
    const bool has_leaves = frit_shard_value_of(s, node)->has_leaves;
    if (node->adapts) {
        cut_adapted(s, node);
        return;
    }
    if (x.sliced && x.axis == node->n_dims - 1 && x.n_parts == s->n_ranks && s->n_ranks > 1 &&
        can_cut_columns(s, node->src[1], has_leaves)) {
        cut_columns(s, node);
        return;
    }
    if (has_leaves) {
        add_leaves(s, node);
        return;
    }
    if (x.sliced && !x.whole && x.axis < node->n_dims - 1) {
        follow(s, node, x.axis);
        return;
    }
    const int32_t n_parts = row_parts(s, node);
    if (n_parts > 1)
        cut_rows(s, node, n_parts);
    else
        frit_cut_whole(s, node);
}

// Each head has its own matrix.
void frit_cut_heads(frit_sharding *s, frit_node *node)
{
    const frit_shard_value v = *frit_shard_value_of(s, node->src[0]);
    if (!v.sliced || v.whole || v.axis != 1 || !is_weight(node->src[1])) {
        frit_cut_whole(s, node);
        return;
    }
    node->src[0] = v.sliced;
    node->src[1] = frit_shard_weight(
        s, node->src[1], (frit_shard_cut){.n_ranks = s->n_ranks, .n_parts = v.n_parts, .size = node->src[1]->shape[0]});
    frit_shard_set_sliced(s, node, 1, v.n_parts);
}

// ------------------------------------------------------------------------------- experts

// True if rows of each expert's matrix can be cut: products with adapters stay whole.
static bool can_cut_experts(frit_sharding *s, const frit_node *node, int64_t n_rows)
{
    return s->n_ranks > 1 && !node->adapts && is_weight(node->src[1]) && n_rows % s->n_ranks == 0 &&
           frit_shard_value_of(s, node)->is_read_sliced;
}

// Rows [begin, begin + n) of each expert's matrix, cut for the ranks.
static frit_node *rows_of_experts(frit_sharding *s, frit_node *w, int64_t begin, int64_t n)
{
    return frit_shard_weight(
        s, w, (frit_shard_cut){.axis = 1, .n_ranks = s->n_ranks, .n_parts = s->n_ranks, .begin = begin, .size = n});
}

// True if x has the columns of a rank for each expert, and the matrices can be cut like it.
static bool can_add_experts(frit_sharding *s, const frit_node *node)
{
    const frit_shard_value *x = frit_shard_value_of(s, node->src[0]);
    return !node->adapts && x->sliced && x->axis == 2 && x->n_parts == s->n_ranks && s->n_ranks > 1 &&
           can_cut_columns(s, node->src[1], frit_shard_value_of(s, node)->has_leaves);
}

// Cuts columns, or adds leaves, if the op's products are summed. Returns false if neither was done.
static bool add_experts(frit_sharding *s, frit_node *node)
{
    if (can_add_experts(s, node))
        cut_columns(s, node);
    else if (frit_shard_value_of(s, node)->has_leaves)
        add_leaves(s, node);
    else
        return false;
    return true;
}

void frit_cut_experts(frit_sharding *s, frit_node *node)
{
    frit_experts *e = &node->experts;
    if (add_experts(s, node)) return;
    if (!can_cut_experts(s, node, e->n)) {
        frit_cut_whole(s, node);
        return;
    }
    node->src[0] = frit_shard_whole(s, node->src[0]);
    node->src[1] = rows_of_experts(s, node->src[1], e->begin, e->n);
    node->src[2] = frit_shard_whole(s, node->src[2]);
    e->begin = 0;
    e->n /= s->n_ranks;
    frit_shard_set_sliced(s, node, 2, s->n_ranks);
}

// The rows of gates are cut only if the sum that reads them can cut its columns.
static bool reader_cuts_columns(frit_sharding *s, const frit_node *node)
{
    for (int i = 0; i < s->n_old; i++) {
        const frit_node *reader = s->old[i];
        if ((reader->op == FRIT_OP_EXPERTS_MIX || reader->op == FRIT_OP_EXPERTS) && reader->src[0] == node)
            return !reader->adapts && can_cut_columns(s, reader->src[1], frit_shard_value_of(s, reader)->has_leaves);
    }
    return true;
}

void frit_cut_experts_glu(frit_sharding *s, frit_node *node)
{
    frit_experts_glu *e = &node->experts_glu;
    if (!can_cut_experts(s, node, e->n) || !is_weight(node->src[2]) || !reader_cuts_columns(s, node)) {
        frit_cut_whole(s, node);
        return;
    }
    node->src[0] = frit_shard_whole(s, node->src[0]);
    node->src[1] = rows_of_experts(s, node->src[1], e->gate, e->n);
    node->src[2] = rows_of_experts(s, node->src[2], e->up, e->n);
    node->src[3] = frit_shard_whole(s, node->src[3]);
    e->gate = e->up = 0;
    e->n /= s->n_ranks;
    frit_shard_set_sliced(s, node, 2, s->n_ranks);
}

void frit_cut_experts_mix(frit_sharding *s, frit_node *node)
{
    if (!add_experts(s, node)) frit_cut_whole(s, node);
}

void frit_cut_mix(frit_sharding *s, frit_node *node)
{
    const frit_shard_value *x = frit_shard_value_of(s, node->src[0]);
    if (x->sliced && !x->whole && x->axis == 2)
        follow(s, node, 1);
    else
        frit_cut_whole(s, node);
}

// ------------------------------------------------------------------------------- attention

// True if the query heads can be cut. Slopes of ALiBi depend on the number of the head, and keys of a source are
// written by another graph.
static bool can_cut_attend(const frit_sharding *s, const frit_node *node)
{
    const frit_attend *a = &node->attend;
    return s->n_ranks > 1 && node->op == FRIT_OP_ATTEND && node->n_src >= 2 && a->alibi == 0 && !a->cross &&
           node->shape[1] % s->n_ranks == 0 && (node->n_src < 3 || a->ends_at != 0 || is_weight(node->src[2]));
}

// True if the graph attends to the layer, and all that read it can be cut.
static bool all_readers_cut(const frit_sharding *s, int32_t layer)
{
    int n = 0;
    for (int i = 0; i < s->n_old; i++) {
        const frit_node *node = s->old[i];
        if (frit_node_is_write(node) || frit_node_cache_layer(node) != layer) continue;
        if (!can_cut_attend(s, node)) return false;
        n++;
    }
    return n > 0;
}

static int32_t parts_of_cache(const frit_sharding *s, const frit_node *node)
{
    int8_t *decided = s->options->cache_parts ? &s->options->cache_parts[node->layer] : NULL;
    if (decided && *decided > 0) return *decided;
    const int32_t n_parts =
        all_readers_cut(s, node->layer) ? frit_shard_parts_of_heads(s, frit_shard_dim(s, node->src[0], 1)) : 1;
    if (decided) *decided = (int8_t)n_parts;
    return n_parts;
}

void frit_cut_kv_write(frit_sharding *s, frit_node *node)
{
    const int32_t n_parts = parts_of_cache(s, node);
    if (n_parts == 1) {
        frit_cut_whole(s, node);
        return;
    }
    for (int i = 0; i < node->n_src; i++) node->src[i] = frit_shard_sliced(s, node->src[i], 1, n_parts);
    frit_shard_set_sliced(s, node, 1, n_parts);
}

// True if each rank has the keys of its query heads: parts of them, or one head that all query heads share.
static bool has_keys(frit_sharding *s, const frit_node *node)
{
    const frit_node *written = node->src[1];
    if (written->op == FRIT_OP_KV_WRITE) return is_sliced(s, written) || written->src[0]->shape[1] == 1;
    return s->options->cache_parts && s->options->cache_parts[node->attend.layer] > 1;
}

static frit_node *as_read(frit_sharding *s, frit_node *written)
{
    return is_sliced(s, written) ? frit_shard_value_of(s, written)->sliced : frit_shard_whole(s, written);
}

void frit_cut_attend(frit_sharding *s, frit_node *node)
{
    const bool is_cut = can_cut_attend(s, node) && has_keys(s, node);
    if (node->n_src > 1) node->src[1] = as_read(s, node->src[1]);
    if (node->n_src > 2) {
        const frit_shard_cut cut = {.n_ranks = s->n_ranks, .n_parts = s->n_ranks, .size = node->src[2]->shape[0]};
        const bool is_of_heads = is_cut && node->attend.ends_at == 0;
        node->src[2] = is_of_heads ? frit_shard_weight(s, node->src[2], cut) : frit_shard_whole(s, node->src[2]);
    }
    if (is_cut) {
        node->src[0] = frit_shard_sliced(s, node->src[0], 1, s->n_ranks);
        frit_shard_set_sliced(s, node, 1, s->n_ranks);
    } else {
        node->src[0] = frit_shard_whole(s, node->src[0]);
        frit_shard_set_whole(s, node);
    }
}
