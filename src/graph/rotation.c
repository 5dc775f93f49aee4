// SPDX-License-Identifier: MIT
// Walks the graph and finds for each value if it depends on positions: not at all, by one rotation, or otherwise.
#include "graph/rotation.h"

#include <math.h>
#include <stdlib.h>

typedef enum dependence { FREE, ROTATED, BOUND } dependence;

typedef struct value {
    dependence kind;
    frit_key_rotation by;   // ROTATED
    const char *why;        // BOUND: the dependence, for the error sentence
} value;

typedef struct walk {
    value *values;   // [n_nodes]
    frit_key_rotation *rotations;
    bool *values_in_keys;   // [n_layers]
    int32_t n_layers, n_ctx;
} walk;

static value bound_by(const char *why)
{
    return (value){.kind = BOUND, .why = why};
}

static const value *source_value(const walk *w, const frit_node *node, int i)
{
    return &w->values[node->src[i]->id];
}

static bool is_same(const frit_key_rotation *a, const frit_key_rotation *b)
{
    if (!a->is_rotated || !b->is_rotated) return a->is_rotated == b->is_rotated;
    return a->inv_freq == b->inv_freq && a->factors == b->factors && a->rope.style == b->rope.style &&
           a->rope.dim == b->rope.dim && a->rope.offset == b->rope.offset;
}

// ------------------------------------------------------------------------------- ops

static value of_rope(const walk *w, const frit_node *node)
{
    const frit_node *positions = node->src[1], *factors = node->n_src > 3 ? node->src[3] : NULL;
    const bool plain = positions->op == FRIT_OP_INPUT && node->rope.shift == 0 && !node->rope.is_back &&
                       positions->input == FRIT_INPUT_POSITIONS && node->src[2]->op == FRIT_OP_WEIGHT &&
                       (!factors || factors->op == FRIT_OP_WEIGHT);
    if (source_value(w, node, 0)->kind == BOUND) return *source_value(w, node, 0);
    if (source_value(w, node, 0)->kind == ROTATED || !plain) return bound_by("more than one rotation");
    return (value){.kind = ROTATED,
                   .by = {.is_rotated = true,
                          .rope = node->rope,
                          .inv_freq = node->src[2]->tensor,
                          .factors = factors ? factors->tensor : NULL}};
}

static value of_slice(const walk *w, const frit_node *node)
{
    value x = *source_value(w, node, 0);
    if (x.kind != ROTATED) return x;
    const int64_t begin = x.by.rope.offset, end = begin + x.by.rope.dim, n = frit_node_width(node);
    if (end <= node->begin || begin >= node->begin + n) return (value){.kind = FREE};
    if (begin < node->begin || end > node->begin + n) return bound_by("a part of a rotation");
    x.by.rope.offset -= (int32_t)node->begin;
    return x;
}

static value of_concat(const walk *w, const frit_node *node)
{
    const value *a = source_value(w, node, 0), *b = source_value(w, node, 1);
    if (a->kind == BOUND || b->kind == FREE) return *a;
    if (b->kind == BOUND) return *b;
    if (a->kind == ROTATED) return bound_by("more than one rotation");
    value y = *b;
    y.by.rope.offset += (int32_t)frit_node_width(node->src[0]);
    return y;
}

// NULL if attention depends on distances only, in texts of n_ctx positions; otherwise the reason.
static const char *why_not_relative(const frit_attend *attend, int32_t n_ctx)
{
    if (attend->bidirectional || attend->cross) return "attention that sees all tokens";
    if (attend->chunk > 0 && n_ctx > attend->chunk) return "attention in chunks of positions";
    if (attend->temp_scale == 0 || attend->temp_length <= 0) return NULL;
    const double length = attend->temp_length, first = (double)attend->temp_offset;
    const bool is_constant = floor(first / length) == floor((first + n_ctx - 1) / length);
    return is_constant ? NULL : "an attention temperature that depends on the position";
}

static value of_attend(const walk *w, const frit_node *node)
{
    const value *q = source_value(w, node, 0);
    const frit_attend *attend = &node->attend;
    const char *why = why_not_relative(attend, w->n_ctx);
    if (q->kind == BOUND) return *q;
    if (why) return bound_by(why);
    if (attend->layer < 0 || attend->layer >= w->n_layers) return bound_by("a cache of another graph");
    const frit_key_rotation *k = &w->rotations[attend->layer];
    if (!is_same(&q->by, k)) return bound_by("queries that are rotated otherwise than keys");
    if (k->is_rotated && w->values_in_keys[attend->layer] && k->rope.offset < frit_node_width(node))
        return bound_by("values that are rotated with keys");
    return (value){.kind = FREE};
}

// True if the op gives the rotated result for a rotated vector.
static bool commutes(const frit_node *node)
{
    switch (node->op) {
    case FRIT_OP_SCALE:
        return true;
    case FRIT_OP_RMS_NORM:
        return node->n_src == 1;
    case FRIT_OP_RESHAPE:
        return frit_node_width(node) == frit_node_width(node->src[0]);
    default:
        return false;
    }
}

static value of_others(const walk *w, const frit_node *node)
{
    for (int i = 0; i < node->n_src; i++) {
        const value *x = source_value(w, node, i);
        if (x->kind == BOUND) return *x;
        if (x->kind == ROTATED && commutes(node)) return *x;
        if (x->kind == ROTATED && (node->op == FRIT_OP_RMS_NORM || node->op == FRIT_OP_LAYER_NORM))
            return bound_by("a norm with weights after the rotation");
        if (x->kind == ROTATED) return bound_by("what is computed from rotated vectors");
    }
    return (value){.kind = FREE};
}

static value value_of(const walk *w, const frit_node *node)
{
    switch (node->op) {
    case FRIT_OP_INPUT:
        return node->input == FRIT_INPUT_POSITIONS ? bound_by("learned positions") : (value){.kind = FREE};
    case FRIT_OP_ROPE:
        return of_rope(w, node);
    case FRIT_OP_SLICE:
        return of_slice(w, node);
    case FRIT_OP_CONCAT:
        return of_concat(w, node);
    case FRIT_OP_ATTEND:
        return of_attend(w, node);
    default:
        return of_others(w, node);
    }
}

// ------------------------------------------------------------------------------- layers

static frit_status refuse_layer(int32_t layer, const char *what, const char *why)
{
    return frit_fail(FRIT_E_UNSUPPORTED, "the %s of layer %d contain %s", what, layer, why);
}

static frit_status record_write(walk *w, const frit_node *node)
{
    const value *k = source_value(w, node, 0), *v = node->n_src > 1 ? source_value(w, node, 1) : NULL;
    if (node->layer < 0 || node->layer >= w->n_layers)
        return frit_fail(FRIT_E_INTERNAL, "the graph writes to layer %d of a cache of %d", node->layer, w->n_layers);
    if (k->kind == BOUND) return refuse_layer(node->layer, "keys", k->why);
    if (v && v->kind != FREE) return refuse_layer(node->layer, "values", v->kind == BOUND ? v->why : "rotated vectors");
    w->rotations[node->layer] = k->by;
    w->values_in_keys[node->layer] = !v;
    return FRIT_OK;
}

static frit_status visit_node(walk *w, const frit_node *node)
{
    switch (node->op) {
    case FRIT_OP_KV_WRITE:
        FRIT_TRY(record_write(w, node));
        w->values[node->id] = (value){.kind = FREE};
        return FRIT_OK;
    case FRIT_OP_INDEX_WRITE:
        return frit_fail(FRIT_E_UNSUPPORTED, "layer %d chooses positions by an index", node->layer);
    case FRIT_OP_CONV:
    case FRIT_OP_SCAN:
    case FRIT_OP_DELTA:
    case FRIT_OP_COMPRESS:
    case FRIT_OP_LRU:
    case FRIT_OP_SHIFT:
    case FRIT_OP_WKV:
    case FRIT_OP_RWKV:
        return frit_fail(FRIT_E_UNSUPPORTED, "layer %d keeps a state of all tokens, which cannot forget some",
                         node->state.layer);
    default:
        w->values[node->id] = value_of(w, node);
        return FRIT_OK;
    }
}

frit_status frit_graph_find_rotations(const frit_graph *graph, int32_t n_ctx, frit_key_rotation *rotations,
                                      int32_t n_layers)
{
    walk w = {.rotations = rotations, .n_layers = n_layers, .n_ctx = n_ctx};
    w.values = calloc((size_t)graph->n_nodes + 1, sizeof *w.values);
    w.values_in_keys = calloc((size_t)n_layers + 1, sizeof *w.values_in_keys);
    frit_status status = w.values && w.values_in_keys
                             ? FRIT_OK
                             : frit_fail_memory((size_t)graph->n_nodes * sizeof *w.values, "a walk of a graph");
    for (int32_t i = 0; i < n_layers; i++) rotations[i] = (frit_key_rotation){0};
    for (int i = 0; status == FRIT_OK && i < graph->n_nodes; i++) status = visit_node(&w, graph->nodes[i]);
    free(w.values);
    free(w.values_in_keys);
    return status;
}
