// SPDX-License-Identifier: MIT
// Norms of heads, rotations and the write to the cache as one launch (ROTATES of kernels/cache_write.wgsl).
#include "backend/webgpu/ops/rotate.h"
#include "backend/webgpu/ops/attend.h"
#include "backend/webgpu/ops/launch.h"
#include "backend/webgpu/weights/weights.h"

enum { QUERIES, KEYS, SIDES };

typedef struct rotated {
    const frit_node *ropes[SIDES], *norms[SIDES];   // norms: may be NULL
    const frit_node *write;
    int n_ropes, n_norms, n;
} rotated;

// Sorts the fusions up to the write to the cache into ropes and norms, in their order.
static bool collect(const frit_fusion *fusions, int n, rotated *out)
{
    *out = (rotated){0};
    for (int i = 0; i < n && !out->write; i++) {
        const frit_node *node = fusions[i].nodes[0];
        if (fusions[i].n_nodes != 1) return false;
        if (node->op == FRIT_OP_ROPE && out->n_ropes < SIDES)
            out->ropes[out->n_ropes++] = node;
        else if (node->op == FRIT_OP_RMS_NORM && out->n_norms < SIDES)
            out->norms[out->n_norms++] = node;
        else if (node->op == FRIT_OP_KV_WRITE)
            out->write = node;
        else
            return false;
        out->n = i + 1;
    }
    return out->write && out->n_ropes == SIDES;
}

static void swap(const frit_node **nodes)
{
    const frit_node *first = nodes[QUERIES];
    nodes[QUERIES] = nodes[KEYS];
    nodes[KEYS] = first;
}

// Moves ropes and norms to their sides. False if a norm is not of the heads that are rotated.
static bool assign_sides(rotated *r)
{
    int n_found = 0;
    if (frit_node_storage(r->write->src[0]) == r->ropes[QUERIES]) swap(r->ropes);
    if (frit_node_storage(r->write->src[0]) != r->ropes[KEYS]) return false;
    if (r->norms[0] && frit_node_storage(r->ropes[KEYS]->src[0]) == r->norms[0]) swap(r->norms);
    if (r->norms[1] && frit_node_storage(r->ropes[QUERIES]->src[0]) == r->norms[1]) swap(r->norms);
    for (int i = 0; i < SIDES; i++) n_found += r->norms[i] && frit_node_storage(r->ropes[i]->src[0]) == r->norms[i];
    return n_found == r->n_norms;
}

static int n_readers(const frit_graph *g, const frit_node *node)
{
    int n = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        if (frit_node_storage(g->nodes[i]) != g->nodes[i]) continue;   // the same numbers in another shape
        for (int k = 0; k < g->nodes[i]->n_src; k++)
            n += g->nodes[i]->src[k] && frit_node_storage(g->nodes[i]->src[k]) == node;
    }
    return n;
}

static const frit_tensor *tensor_of(const frit_node *node, int i)
{
    return i < node->n_src && node->src[i] ? frit_node_storage(node->src[i])->tensor : NULL;
}

static bool rotate_alike(const frit_node *a, const frit_node *b)
{
    return a->rope.style == b->rope.style && a->rope.dim == b->rope.dim && a->rope.offset == b->rope.offset &&
           a->rope.magnitude == b->rope.magnitude && tensor_of(a, 2) == tensor_of(b, 2) &&
           tensor_of(a, 3) == tensor_of(b, 3) && frit_node_width(a) == frit_node_width(b);
}

static bool norm_fits(const frit_node *norm, const frit_node *rope)
{
    return norm->n_dims == 3 && norm->n_src == 2 && norm->src[1] && frit_node_width(norm) == frit_node_width(rope) &&
           frit_node_storage(norm->src[1])->op == FRIT_OP_WEIGHT &&
           frit_node_elems(norm->src[1]) == frit_node_width(norm);
}

static const frit_node *source_of(const rotated *r, int side)
{
    return r->norms[side] ? r->norms[side]->src[0] : r->ropes[side]->src[0];
}

static bool overlap(const frit_exec *exec, const frit_node *a, const frit_node *b)
{
    const uint64_t x = frit_webgpu_offset(exec, a), y = frit_webgpu_offset(exec, b);
    return x < y + (uint64_t)frit_node_elems(b) && y < x + (uint64_t)frit_node_elems(a);
}

// Rotated queries lie where nothing is that other groups of threads read.
static bool is_apart(const frit_exec *exec, const rotated *r)
{
    const frit_node *result = r->ropes[QUERIES], *own = source_of(r, QUERIES);
    const bool in_place = frit_webgpu_offset(exec, result) == frit_webgpu_offset(exec, own);
    return (in_place || !overlap(exec, result, own)) && !overlap(exec, result, source_of(r, KEYS)) &&
           !overlap(exec, result, r->write->src[1]);
}

static bool fits(const frit_exec *exec, rotated *r)
{
    const frit_graph *g = exec->plan->graph;
    if (!assign_sides(r)) return false;
    const frit_node *k = r->ropes[KEYS];
    if (!rotate_alike(r->ropes[QUERIES], k) || n_readers(g, k) != 1) return false;
    if (r->ropes[QUERIES]->n_dims != 3 || k->n_dims != 3 || r->ropes[QUERIES]->shape[1] % k->shape[1] != 0)
        return false;
    for (int i = 0; i < SIDES; i++)
        if (r->norms[i] && (!norm_fits(r->norms[i], r->ropes[i]) || n_readers(g, r->norms[i]) != 1)) return false;
    return is_apart(exec, r);
}

static frit_status bind_norms(frit_exec *exec, const rotated *r, frit_webgpu_launch *l)
{
    static const char *const names[] = {"NORM_Q", "NORM_K"};
    for (int i = 0; i < SIDES; i++) {
        const frit_webgpu_tensor *weights;
        if (!r->norms[i]) continue;
        FRIT_TRY(frit_webgpu_tensor_get(exec->device, tensor_of(r->norms[i], 1), false, &weights));
        frit_webgpu_define(&l->wanted, names[i], l->n_bindings);
        frit_webgpu_bind_buffer(l, 'r', &weights->parts[0]);
        l->params[PARAM_CACHE_WRITE_EPSILON_Q + i] = frit_webgpu_float(r->norms[i]->eps);
    }
    return FRIT_OK;
}

static frit_status add_launch(frit_exec *exec, const rotated *r)
{
    const frit_node *q = r->ropes[QUERIES];
    const int64_t group = q->shape[1] / r->ropes[KEYS]->shape[1];
    const frit_gpu_buffer *revolutions;
    frit_webgpu_launch *l;
    FRIT_TRY(frit_webgpu_cache_write_new(exec, r->write, &l));
    FRIT_TRY(frit_webgpu_revolutions_get(exec->device, tensor_of(q, 2), tensor_of(q, 3), &revolutions));
    frit_webgpu_define(&l->wanted, "ROTATES", l->n_bindings);
    frit_webgpu_bind_buffer(l, 'r', revolutions);
    frit_webgpu_define(&l->wanted, "GROUP", group);
    FRIT_TRY(bind_norms(exec, r, l));
    l->params[PARAM_CACHE_WRITE_K] = frit_webgpu_offset(exec, source_of(r, KEYS));
    l->params[PARAM_CACHE_WRITE_Q] = frit_webgpu_offset(exec, source_of(r, QUERIES));
    l->params[PARAM_CACHE_WRITE_ROTATED] = frit_webgpu_offset(exec, q);
    l->params[PARAM_CACHE_WRITE_DIM] = (uint32_t)q->rope.dim;
    l->params[PARAM_CACHE_WRITE_FIRST] = (uint32_t)q->rope.offset;
    l->params[PARAM_CACHE_WRITE_IS_NEOX] = q->rope.style == FRIT_ROPE_NEOX;
    l->params[PARAM_CACHE_WRITE_MAGNITUDE] = frit_webgpu_float(q->rope.magnitude);
    l->n[1] = 2 + group;
    return FRIT_OK;
}

frit_status frit_webgpu_lower_rotated(frit_exec *exec, const frit_fusion *fusions, int n, int *n_done)
{
    rotated r;
    *n_done = 0;
    if (!collect(fusions, n, &r) || !fits(exec, &r)) return FRIT_OK;
    *n_done = r.n;
    return add_launch(exec, &r);
}
