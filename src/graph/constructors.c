// SPDX-License-Identifier: MIT
// The constructors: one per op. Each passes a template to frit_node_new.
#include "graph/node.h"

#include <math.h>

frit_node *frit_input_node(frit_graph *g, frit_input input)
{
    bool outs = input == FRIT_INPUT_OUT_ROWS;
    return frit_node_new(g, (frit_node){.op = FRIT_OP_INPUT,
                                        .input = input,
                                        .rows = outs ? FRIT_SHAPE_OUTS : FRIT_SHAPE_BATCH,
                                        .n_dims = 1,
                                        .shape = {outs ? g->max_outs : g->max_rows}});
}

frit_node *frit_given_node(frit_graph *g, int64_t n)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_INPUT,
                                        .input = FRIT_INPUT_RESULT,
                                        .rows = FRIT_SHAPE_BATCH,
                                        .n_dims = 2,
                                        .shape = {g->max_rows, n}});
}

void frit_graph_add_result(frit_graph *g, frit_node *node)
{
    g->results = node ? frit_arena_new(g->arena, frit_node *, 1) : NULL;
    if (!g->results) return;   // the graph has the error
    g->results[0] = node;
    g->n_results = 1;
}

frit_node *frit_weight_node(frit_graph *g, const frit_tensor *tensor)
{
    if (!tensor) return NULL;
    frit_node node = {.op = FRIT_OP_WEIGHT, .tensor = tensor, .n_dims = tensor->n_dims};
    memcpy(node.shape, tensor->shape, sizeof node.shape);
    return frit_node_new(g, node);
}

frit_node *frit_embed(frit_graph *g, frit_node *table, frit_node *ids)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_EMBED, .src = {table, ids}});
}

frit_node *frit_embed_mix(frit_graph *g, frit_node *table, frit_node *taps)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_EMBED_MIX, .src = {table, taps}});
}

frit_node *frit_matmul(frit_graph *g, frit_node *w, frit_node *x, frit_node *bias)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_LINEAR, .src = {x, w, bias}});
}

frit_node *frit_rms_norm(frit_graph *g, frit_node *x, frit_node *w, float eps)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_RMS_NORM, .src = {x, w}, .eps = eps});
}

frit_node *frit_layer_norm(frit_graph *g, frit_node *x, frit_node *w, frit_node *b, float eps)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_LAYER_NORM, .src = {x, w, b}, .eps = eps});
}

frit_node *frit_add(frit_graph *g, frit_node *a, frit_node *b)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_ADD, .src = {a, b}});
}

frit_node *frit_mul(frit_graph *g, frit_node *a, frit_node *b)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_MUL, .src = {a, b}});
}

frit_node *frit_scale(frit_graph *g, frit_node *x, float factor)
{
    if (factor == 1) return x;
    return frit_node_new(g, (frit_node){.op = FRIT_OP_SCALE, .src = {x}, .factor = factor});
}

frit_node *frit_softcap(frit_graph *g, frit_node *x, float cap)
{
    if (cap == 0) return x;
    return frit_node_new(g, (frit_node){.op = FRIT_OP_SOFTCAP, .src = {x}, .factor = cap});
}

frit_node *frit_clamp(frit_graph *g, frit_node *x, float low, float high)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_CLAMP, .src = {x}, .clamp = {low, high}});
}

frit_node *frit_activate(frit_graph *g, frit_node *x, frit_act act)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_ACT, .src = {x}, .act = act});
}

frit_node *frit_xielu_node(frit_graph *g, frit_node *x, frit_xielu xielu)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_XIELU, .src = {x}, .xielu = xielu});
}

frit_node *frit_glu(frit_graph *g, frit_node *gate, frit_node *up, frit_act act)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_GLU, .src = {gate, up}, .act = act});
}

frit_node *frit_reshape(frit_graph *g, frit_node *x, int n, const int64_t *dims)
{
    frit_node node = {.op = FRIT_OP_RESHAPE, .src = {x}, .n_dims = n + 1};
    if (n < 0 || n >= FRIT_MAX_DIMS) node.n_dims = 0;   // the shape rule refuses it
    if (x) node.shape[0] = x->shape[0];
    for (int i = 1; i < node.n_dims; i++) node.shape[i] = dims[i - 1];
    bool same = x && x->n_dims == node.n_dims;
    for (int i = 0; same && i < node.n_dims; i++) same = x->shape[i] == node.shape[i];
    return same ? x : frit_node_new(g, node);
}

frit_node *frit_slice(frit_graph *g, frit_node *x, int64_t begin, int64_t n)
{
    if (x && begin == 0 && n == x->shape[x->n_dims - 1]) return x;
    frit_node node = {.op = FRIT_OP_SLICE, .src = {x}, .begin = begin};
    if (x) {
        node.n_dims = x->n_dims;
        memcpy(node.shape, x->shape, sizeof node.shape);
        node.shape[x->n_dims - 1] = n;
    }
    return frit_node_new(g, node);
}

frit_node *frit_concat(frit_graph *g, frit_node *a, frit_node *b)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_CONCAT, .src = {a, b}});
}

frit_node *frit_scale_rows(frit_graph *g, frit_node *x, frit_node *scales)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_SCALE_ROWS, .src = {x, scales}});
}

frit_node *frit_softmax(frit_graph *g, frit_node *x)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_SOFTMAX, .src = {x}});
}

frit_node *frit_gaussian_topk(frit_graph *g, frit_node *x, float factor)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_GAUSSIAN_TOPK, .src = {x}, .factor = factor});
}

frit_node *frit_rms_match(frit_graph *g, frit_node *x, frit_node *like, float eps)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_RMS_MATCH, .src = {x, like}, .eps = eps});
}

frit_node *frit_mix_streams(frit_graph *g, frit_node *x, frit_node *c)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_MIX_STREAMS, .src = {x, c}});
}

frit_node *frit_heads(frit_graph *g, frit_node *w, frit_node *x)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_HEADS, .src = {x, w}});
}

frit_node *frit_hyper_node(frit_graph *g, frit_node *x, frit_node *scales, frit_node *biases, frit_hyper hyper)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_HYPER, .src = {x, scales, biases}, .hyper = hyper});
}

frit_node *frit_route_node(frit_graph *g, frit_node *scores, frit_node *bias, frit_route route)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_ROUTE, .src = {scores, bias}, .route = route});
}

frit_node *frit_experts_node(frit_graph *g, frit_node *w, frit_node *x, frit_node *route, frit_experts experts)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_EXPERTS, .src = {x, w, route}, .experts = experts});
}

frit_node *frit_gather_experts(frit_graph *g, frit_node *table, frit_node *route)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_GATHER_EXPERTS, .src = {table, route}});
}

frit_node *frit_mix(frit_graph *g, frit_node *x, frit_node *route, bool plain)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_MIX, .src = {x, route}, .plain = plain});
}

frit_node *frit_rotate(frit_graph *g, frit_node *x, frit_node *positions, frit_node *inv_freq, frit_node *factors,
                       frit_rope rope)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_ROPE, .src = {x, positions, inv_freq, factors}, .rope = rope});
}

frit_node *frit_rotate_by(frit_graph *g, frit_node *x, frit_node *turns, frit_rope rope)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_ROPE_ANGLES, .src = {x, turns}, .rope = rope});
}

frit_node *frit_kv_write(frit_graph *g, frit_node *k, frit_node *v, int32_t layer)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_KV_WRITE, .src = {k, v}, .layer = layer});
}

frit_node *frit_attend_node(frit_graph *g, frit_node *q, frit_node *written, frit_attend attend, int64_t v_dim)
{
    return frit_attend_with_sinks(g, q, written, NULL, attend, v_dim);
}

frit_node *frit_attend_with_sinks(frit_graph *g, frit_node *q, frit_node *written, frit_node *sinks, frit_attend attend,
                                  int64_t v_dim)
{
    return frit_node_new(
        g,
        (frit_node){
            .op = FRIT_OP_ATTEND, .src = {q, written, sinks}, .attend = attend, .n_dims = 3, .shape = {0, 0, v_dim}});
}

frit_node *frit_attend_with_ends(frit_graph *g, frit_node *q, frit_node *written, frit_node *ends, frit_attend attend,
                                 int64_t v_dim)
{
    return frit_attend_with_sinks(g, q, written, ends, attend, v_dim);
}

frit_node *frit_attend_with_gains(frit_graph *g, frit_node *q, frit_node *written, frit_node *gains, frit_attend attend,
                                  int64_t v_dim)
{
    return frit_attend_with_sinks(g, q, written, gains, attend, v_dim);
}

frit_node *frit_attend_uncached(frit_graph *g, frit_node *q, frit_node *k, frit_node *v, frit_node *segments,
                                float scale)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_ATTEND_UNCACHED, .src = {q, k, v, segments}, .factor = scale});
}

frit_node *frit_attend_relative(frit_graph *g, frit_node *q, frit_node *k, frit_node *v, frit_node *c, frit_node *r,
                                frit_relate relate)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_ATTEND_RELATIVE, .src = {q, k, v, c, r}, .relate = relate});
}

// As in transformers, in floats: a bucket's edge may depend on their rounding.
static int64_t log_bucket(const frit_relate *relate, int64_t distance)
{
    const int64_t exact = relate->span / 2, far = distance < 0 ? -distance : distance;
    if (relate->n_distances == 0 || far <= exact) return distance;
    const float octaves = logf((float)(relate->n_distances - 1) / (float)exact);
    const float bucket = ceilf(logf((float)far / (float)exact) / octaves * (float)(exact - 1)) + (float)exact;
    return (int64_t)(distance < 0 ? -bucket : bucket);
}

int64_t frit_relate_bucket(const frit_relate *relate, int64_t distance)
{
    const int64_t i = log_bucket(relate, distance) + relate->span, last = 2 * (int64_t)relate->span - 1;
    return i < 0 ? 0 : i < last ? i : last;
}

frit_node *frit_index_write(frit_graph *g, frit_node *k, int32_t layer)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_INDEX_WRITE, .src = {k}, .layer = layer});
}

frit_node *frit_choose_node(frit_graph *g, frit_node *q, frit_node *w, frit_node *written, frit_choose choose)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_CHOOSE, .src = {q, w, written}, .choose = choose});
}

frit_node *frit_attend_sparse(frit_graph *g, frit_node *q, frit_node *written, frit_node *chosen, frit_attend attend,
                              int64_t v_dim)
{
    const frit_node node = {.op = FRIT_OP_ATTEND_SPARSE, .src = {q, written, chosen}, .attend = attend, .n_dims = 3};
    frit_node shaped = node;
    shaped.shape[2] = v_dim;
    return frit_node_new(g, shaped);
}

frit_node *frit_conv(frit_graph *g, frit_node *x, frit_node *w, frit_node *b, frit_state state)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_CONV, .src = {x, w, b}, .state = state});
}

frit_node *frit_scan(frit_graph *g, frit_node *x, frit_node *dt, frit_node *a, frit_node *b, frit_node *c,
                     frit_state state)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_SCAN, .src = {x, dt, a, b, c}, .state = state});
}

frit_node *frit_delta(frit_graph *g, frit_node *v, frit_node *k, frit_node *q, frit_node *decay, frit_node *beta,
                      frit_state state)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_DELTA, .src = {v, k, q, decay, beta}, .state = state});
}

frit_node *frit_shift(frit_graph *g, frit_node *x, frit_state state)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_SHIFT, .src = {x}, .state = state});
}

frit_node *frit_wkv(frit_graph *g, frit_node *k, frit_node *v, frit_node *w, frit_node *u, frit_state state)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_WKV, .src = {k, v, w, u}, .state = state});
}

frit_node *frit_choose_blocks(frit_graph *g, frit_node *q, frit_node *written, frit_choose choose)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_CHOOSE_BLOCKS, .src = {q, written}, .choose = choose});
}

frit_node *frit_attend_in_blocks(frit_graph *g, frit_node *q, frit_node *written, frit_node *chosen, frit_attend attend,
                                 int64_t v_dim)
{
    frit_node node = {.op = FRIT_OP_ATTEND_IN_BLOCKS, .src = {q, written, chosen}, .attend = attend, .n_dims = 3};
    node.shape[2] = v_dim;
    return frit_node_new(g, node);
}

frit_node *frit_lru(frit_graph *g, frit_node *x, frit_node *decay, frit_state state)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_LRU, .src = {x, decay}, .state = state});
}

frit_node *frit_attend_blocks(frit_graph *g, frit_node *q, frit_node *written, frit_node *sinks, frit_node *chosen,
                              frit_attend attend)
{
    return frit_node_new(
        g, (frit_node){.op = FRIT_OP_ATTEND_BLOCKS, .src = {q, written, sinks, chosen}, .attend = attend});
}

frit_node *frit_compress(frit_graph *g, frit_node *x, frit_node *gates, frit_node *biases, frit_state state)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_COMPRESS, .src = {x, gates, biases}, .state = state});
}

frit_node *frit_rwkv_node(frit_graph *g, frit_rwkv s, frit_state state)
{
    return frit_node_new(
        g, (frit_node){.op = FRIT_OP_RWKV, .src = {s.v, s.k, s.r, s.w, s.u ? s.u : s.a, s.b}, .state = state});
}

frit_node *frit_take_rows(frit_graph *g, frit_node *x, frit_node *rows)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_TAKE_ROWS, .src = {x, rows}});
}

frit_node *frit_adapt_down(frit_graph *g, frit_node *x, frit_node *route, frit_adapted adapted)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_ADAPT_DOWN, .src = {x, route}, .adapted = {adapted}});
}

frit_node *frit_adapt_up(frit_graph *g, frit_node *y, frit_node *h, frit_adapted adapted)
{
    frit_node *route = h && h->op == FRIT_OP_ADAPT_DOWN ? h->src[1] : NULL;
    return frit_node_new(g, (frit_node){.op = FRIT_OP_ADAPT_UP, .src = {y, h, route}, .adapted = {adapted}});
}

frit_node *frit_steer(frit_graph *g, frit_node *x, int32_t layer)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_STEER, .src = {x}, .layer = layer});
}

int frit_node_n_own(const frit_node *node)
{
    return node->n_src - (int)(node->adapts & 1) - (int)(node->adapts >> 1 & 1);
}

int frit_node_adapts(const frit_node *node, int i)
{
    if (!(node->adapts >> i & 1)) return -1;
    return frit_node_n_own(node) + (i == 1 ? (int)(node->adapts & 1) : 0);
}

frit_node *frit_reduce_node(frit_graph *g, frit_node *x, int32_t n_ranks)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_REDUCE, .src = {x}, .ranks = {n_ranks, n_ranks, 1}});
}

frit_node *frit_gather_node(frit_graph *g, frit_node *x, frit_ranks ranks)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_GATHER, .src = {x}, .ranks = ranks});
}

frit_node *frit_part_node(frit_graph *g, frit_node *x, frit_ranks ranks)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_PART, .src = {x}, .ranks = ranks});
}

frit_node *frit_place_rows(frit_graph *g, frit_node *x, frit_node *soft)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_PLACE_ROWS, .src = {x, soft}});
}

frit_node *frit_take_blocks(frit_graph *g, frit_node *x, frit_node *rows, int32_t n)
{
    return frit_node_new(g, (frit_node){.op = FRIT_OP_TAKE_BLOCKS, .src = {x, rows}, .n_taken = n});
}
