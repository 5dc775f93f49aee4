// SPDX-License-Identifier: MIT
// graph/graph.h: what a step computes: nodes over the op table. A graph executes nothing.
//
// The constructors below make nodes in order, each after its sources, in the graph's arena. Every activation is f32,
// contiguous, shape outermost first. The first dimension of most nodes is the rows of the batch, which differ from step
// to step: `rows` of the node says so, and shape[0] is the maximum that the plan is made for. Weights that are vectors
// (norms, biases, factors) are f32 and aligned; matrices have any type and any alignment.
//
// A constructor that fails (wrong shapes, out of memory) stores the first failure in the graph and returns NULL.
// Constructors accept NULL sources, so building code needs no branches. Call frit_graph_check at the end.
#pragma once
#include "base/arena.h"
#include "format/checkpoint.h"
#include "graph/adapt.h"
#include "graph/batch.h"

typedef enum frit_op {
#define OP(NAME, name, min_src, max_src, sources, attr, shape, rows, cut, formula) FRIT_OP_##NAME,
#include "graph/ops.def"
#undef OP
    FRIT_OP_COUNT
} frit_op;

enum { FRIT_OP_ROWS_ALL, FRIT_OP_ROWS_EACH };   // the column `rows`

typedef struct frit_op_row {
    const char *name;
    int min_sources, max_sources;
    const char *sources;   // "x w [b]": their names, in the order of src
    const char *formula;
    bool is_row_wise;   // row t of the result needs only row t of the sources
} frit_op_row;
const frit_op_row *frit_op_get(frit_op op);

typedef enum frit_shape_kind {
    FRIT_SHAPE_FIXED,   // shape[0] does not depend on the step
    FRIT_SHAPE_BATCH,   // shape[0] is the rows of the step
    FRIT_SHAPE_OUTS,    // shape[0] is the output rows of the step
} frit_shape_kind;

typedef enum frit_input {
    FRIT_INPUT_TOKENS,
    FRIT_INPUT_POSITIONS,
    FRIT_INPUT_OUT_ROWS,
    FRIT_INPUT_RESULT,    // a result of another graph (segment.h); its values are in the plan's inputs
    FRIT_INPUT_WRITTEN,   // stands for another graph's write to the cache; has no values
} frit_input;

typedef enum frit_act {
    FRIT_ACT_SILU,         // x / (1 + exp(-x))
    FRIT_ACT_GELU,         // x * (1 + erf(x / sqrt(2))) / 2
    FRIT_ACT_GELU_TANH,    // x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2
    FRIT_ACT_GELU_QUICK,   // x / (1 + exp(-1.702 x))
    FRIT_ACT_RELU,         // max(x, 0)
    FRIT_ACT_RELU2,        // max(x, 0)^2
    FRIT_ACT_SIGMOID,      // 1 / (1 + exp(-x))
    FRIT_ACT_TANH,
    FRIT_ACT_SOFTPLUS,   // log(1 + exp(x))
    FRIT_ACT_COUNT,
} frit_act;

// The elements of a head that rope rotates as a pair: interleaved (2i, 2i + 1), or NeoX style (i, i + dim / 2).
typedef enum frit_rope_style { FRIT_ROPE_INTERLEAVED, FRIT_ROPE_NEOX } frit_rope_style;

// angle(position, pair i) = position * inv_freq[i] / factor[i]. Source 2 has the frequencies, a constant of the model
// that arch/rope.c computes from the file's scaling rules. Source 3, if present, has the factors. Results are
// multiplied by `magnitude`, which is 1 except with YaRN.
typedef struct frit_rope {
    frit_rope_style style;
    int32_t dim;      // elements of each head that rotate
    int32_t offset;   // first rotated element of a head
    float magnitude;
    int32_t shift;   // is added to positions
    bool is_back;    // rotates by the negative angle
} frit_rope;

// xIELU: a parabola for positive x, an exponential for negative x, plus beta * x.
typedef struct frit_xielu {
    float positive, negative, beta, eps;
} frit_xielu;

typedef struct frit_attend {
    int32_t layer;   // layer of the cache
    float scale;
    float softcap;        // 0: none; otherwise scores become softcap * tanh(score / softcap), after the scale
    int32_t window;       // 0: none; otherwise positions p with position - p < window
    int32_t chunk;        // 0: none; otherwise positions p with p / chunk == position / chunk
    float alibi;          // 0: none; otherwise the largest slope's exponent: scores lose slope[h] * distance
    bool bidirectional;   // rows see later positions too; a window extends window / 2 to either side
    bool cross;           // rows see all positions of the encoded source, whose keys and values are in this layer
    // 0: none; otherwise source 2 [n_head, 2 * reach + 1] is added to scores by distance: the value at
    // clamp(p - position, -reach, reach) + reach.
    int32_t reach;
    // 0: none; otherwise column ends_at of source 2 [T, n] has, for each row, the end of positions that it sees though
    // they are later than its own: those of a picture see each other. They are rows of the same step.
    int32_t ends_at;
    int32_t block;   // ATTEND_BLOCKS, ATTEND_IN_BLOCKS: positions of a block
    // Attention temperature: the scale is multiplied by
    // 1 + temp_scale * log(1 + floor((position + temp_offset) / temp_length)). temp_scale 0: off.
    float temp_scale, temp_offset;
    int32_t temp_length;
} frit_attend;

// Disentangled attention (DeBERTa): scores have terms for the distance between rows, in buckets.
typedef struct frit_relate {
    float scale;
    int32_t span;          // buckets of one side; c and r have 2 * span
    int32_t n_distances;   // distances up to it share logarithmic buckets; 0: each distance up to span has its own
} frit_relate;

typedef struct frit_choose {
    int32_t layer;   // layer of the cache
    int32_t n;       // positions that each row chooses
    int32_t n_ctx;   // most positions of a session
    // CHOOSE: only the last positions of blocks of so many positions can be chosen; 0 or 1: all positions.
    // CHOOSE_BLOCKS: positions of a block.
    int32_t block;
    int32_t n_latest;   // CHOOSE_BLOCKS: blocks before the row's own, with it, that are always chosen
} frit_choose;

// Weights of hyper-connections: n residual streams, of which a branch reads a weighted sum.
typedef struct frit_hyper {
    int32_t n, n_iterations;   // of the normalization of rows and columns
    float eps;
} frit_hyper;

// The state of a recurrent op: f32 values from `offset` on in the session's state of a layer.
typedef struct frit_state {
    int32_t layer, offset;
    bool interleaved;    // DELTA: head h of v uses head h % groups of k and q; otherwise adjacent heads share one
    bool nested;         // RWKV: decays are exp(-exp(w))
    bool complemented;   // RWKV: keys are multiplied by 1 - decay
    int32_t block;       // COMPRESS: rows of a block
    bool overlaps;       // COMPRESS: a block has a part of the block before
} frit_state;

// How router scores become weights.
typedef enum frit_gating {
    FRIT_GATING_NONE,
    FRIT_GATING_SOFTMAX,   // softmax over all experts, then the best are chosen
    FRIT_GATING_SIGMOID,
    FRIT_GATING_SOFTMAX_SELECTED,   // the best are chosen, then softmax over them
    FRIT_GATING_SQRT_SOFTPLUS,
    // The best are chosen one after the other. The weight of each is its probability in a softmax over the remaining
    // experts that are at most 2 * jitter of the larger magnitude below it.
    FRIT_GATING_NEAR_BEST,
    FRIT_GATING_COUNT,
} frit_gating;

typedef struct frit_route {
    frit_gating gating;
    int32_t n_used;
    int32_t n_groups, n_groups_used;   // experts come from the groups whose two best scores have the largest sums
    bool by_sigmoid;                   // experts are chosen by sigmoid(x), whatever the gating
    bool by_logit;                     // experts are chosen by x
    bool normalize;                    // weights are divided by their sum
    float scale;                       // weights are multiplied by it
    float jitter;
    int32_t divisor;   // expert e / divisor is used; 0 means 1
} frit_route;

typedef struct frit_experts {
    int32_t begin, n;   // rows of each expert's matrix
    bool weigh;         // multiplies x[t,:] by route[t,1,k] first
} frit_experts;

typedef struct frit_experts_glu {
    frit_act act;
    int32_t gate, up, n;   // first rows of each expert's matrices, and how many
    bool weigh;
} frit_experts_glu;

// A group of ranks (shard.h), for the ops that exchange values among them. The dimension `axis` is cut into n_parts
// equal parts; rank r has part r * n_parts / n.
typedef struct frit_ranks {
    int32_t n, n_parts, axis;
} frit_ranks;

// The part of a tensor that each rank of a group reads: of `size` indices from `begin` on in the dimension `axis`, the
// n_parts equal parts number r * n_parts / n_ranks + leaf. n_ranks is 1 if all ranks read the same part.
typedef struct frit_shard_cut {
    int32_t axis, n_ranks, n_parts, leaf;   // n_parts 0: the whole tensor
    int64_t begin, size;
} frit_shard_cut;

enum { FRIT_MAX_SOURCES = 6 };

typedef struct frit_node {
    frit_op op;
    int id;          // index in graph->nodes
    int32_t depth;   // layer of the model; -1: before the first layer, n_layer: after the last
    frit_shape_kind rows;
    int n_dims;
    int64_t shape[FRIT_MAX_DIMS];   // outermost first; unused entries are 1
    struct frit_node *src[FRIT_MAX_SOURCES];
    int n_src;
    const frit_tensor *tensor;   // WEIGHT
    // Products: bit i is set if adapters add to the product of matrix i. Each set bit has one more source at the end,
    // an ADAPT_DOWN.
    unsigned adapts;
    frit_adapted adapted[2];   // by bit of `adapts`; ADAPT_DOWN and ADAPT_UP use the first
    union {
        frit_input input;     // INPUT
        frit_shard_cut cut;   // WEIGHT: shape is that of a part
        frit_ranks ranks;     // REDUCE, GATHER, PART
        float eps;            // *_NORM
        float factor;         // SCALE, SOFTCAP, GAUSSIAN_TOPK, ATTEND_UNCACHED; LINEAR: 0 means no factor
        struct {
            float low, high;
        } clamp;                        // CLAMP
        frit_xielu xielu;               // XIELU
        int64_t begin;                  // SLICE; shape has n
        int32_t n_taken;                // TAKE_BLOCKS: rows of a block
        frit_route route;               // ROUTE
        frit_relate relate;             // ATTEND_RELATIVE
        frit_experts experts;           // EXPERTS, EXPERTS_MIX
        frit_experts_glu experts_glu;   // EXPERTS_GLU
        bool plain;                     // MIX: a sum without weights
        frit_act act;                   // ACT, GLU
        frit_rope rope;                 // ROPE, ROPE_ANGLES
        int32_t layer;                  // KV_WRITE, INDEX_WRITE: layer of the cache; STEER: layer of the model
        frit_attend attend;             // ATTEND, ATTEND_SPARSE, ATTEND_BLOCKS, ATTEND_IN_BLOCKS
        frit_choose choose;             // CHOOSE, CHOOSE_BLOCKS
        frit_hyper hyper;               // HYPER
        frit_state state;               // CONV, SCAN, DELTA, COMPRESS, LRU, SHIFT, WKV, RWKV
    };
} frit_node;

typedef struct frit_graph {
    frit_arena *arena;
    frit_node **nodes;
    int n_nodes;
    size_t capacity;
    int64_t max_rows, max_outs;
    int32_t depth;         // depth of the next nodes
    frit_node *output;     // [n_outs, n] logits or hidden states; NULL in a segment without them
    frit_node **results;   // [n_results]: read after the graph has run, like the output
    int n_results;
    frit_status status;   // first failure
    char failure[256];
} frit_graph;

void frit_graph_init(frit_graph *graph, frit_arena *arena, int64_t max_rows, int64_t max_outs);
// FRIT_OK, or the first failure of a constructor with its sentence.
frit_status frit_graph_check(const frit_graph *graph);

// Makes the node a result of the graph in addition to the output. At most one.
void frit_graph_add_result(frit_graph *g, frit_node *node);

frit_node *frit_input_node(frit_graph *g, frit_input input);
frit_node *frit_given_node(frit_graph *g,
                           int64_t n);   // [T, n]: f32 values that the step brings for its rows; at most one node
frit_node *frit_weight_node(frit_graph *g, const frit_tensor *tensor);
frit_node *frit_embed(frit_graph *g, frit_node *table, frit_node *ids);   // [T, n]
// Rows of a table [N, n] times weights, added up. taps [T, 2 k]: k indices of rows as numbers, then k weights. [T, n]
frit_node *frit_embed_mix(frit_graph *g, frit_node *table, frit_node *taps);
frit_node *frit_matmul(frit_graph *g, frit_node *w, frit_node *x, frit_node *bias);   // bias may be NULL: LINEAR
frit_node *frit_rms_norm(frit_graph *g, frit_node *x, frit_node *w, float eps);       // w may be NULL
frit_node *frit_layer_norm(frit_graph *g, frit_node *x, frit_node *w, frit_node *b, float eps);
frit_node *frit_add(frit_graph *g, frit_node *a, frit_node *b);
frit_node *frit_mul(frit_graph *g, frit_node *a, frit_node *b);
frit_node *frit_scale(frit_graph *g, frit_node *x, float factor);   // x itself if factor is 1
frit_node *frit_softcap(frit_graph *g, frit_node *x, float cap);    // x itself if cap is 0
frit_node *frit_clamp(frit_graph *g, frit_node *x, float low, float high);
frit_node *frit_activate(frit_graph *g, frit_node *x, frit_act act);
frit_node *frit_xielu_node(frit_graph *g, frit_node *x, frit_xielu xielu);
frit_node *frit_glu(frit_graph *g, frit_node *gate, frit_node *up, frit_act act);
// The last dimensions become dims[0..n); the product must fit. Keeps dimension 0: [T, 64] to [T, 4, 16] is {4, 16}.
frit_node *frit_reshape(frit_graph *g, frit_node *x, int n, const int64_t *dims);
frit_node *frit_slice(frit_graph *g, frit_node *x, int64_t begin, int64_t n);
frit_node *frit_concat(frit_graph *g, frit_node *a, frit_node *b);
frit_node *frit_scale_rows(frit_graph *g, frit_node *x, frit_node *scales);
// Each head has its own matrix: x [T, H, i], w [H, o, i]. Result [T, H, o].
frit_node *frit_heads(frit_graph *g, frit_node *w, frit_node *x);
frit_node *frit_softmax(frit_graph *g, frit_node *x);
frit_node *frit_gaussian_topk(frit_graph *g, frit_node *x,
                              float factor);   // values above mean + factor * deviation
frit_node *frit_rms_match(frit_graph *g, frit_node *x, frit_node *like, float eps);   // x with the RMS of `like`
frit_node *frit_mix_streams(frit_graph *g, frit_node *x, frit_node *c);   // x [T, n, D], c [T, m, n]. Result [T, m, D]
// x [T, (2 + n) n] or [T, n]; scales [3] or [1], biases as wide as x. Result [T, n + n (n + 1)] or [T, n].
frit_node *frit_hyper_node(frit_graph *g, frit_node *x, frit_node *scales, frit_node *biases, frit_hyper hyper);
// Mixtures of experts: scores [T, E]; bias [E] or NULL is added to choose experts. Result [T, 2, k].
frit_node *frit_route_node(frit_graph *g, frit_node *scores, frit_node *bias, frit_route route);
// w [E, rows, i]; x [T, i] or [T, k, i]. Result [T, k, experts.n].
frit_node *frit_experts_node(frit_graph *g, frit_node *w, frit_node *x, frit_node *route, frit_experts experts);
frit_node *frit_gather_experts(frit_graph *g, frit_node *table, frit_node *route);   // table [E, n] or [E], f32
frit_node *frit_mix(frit_graph *g, frit_node *x, frit_node *route, bool plain);
// inv_freq and factors [dim / 2]; factors may be NULL.
frit_node *frit_rotate(frit_graph *g, frit_node *x, frit_node *positions, frit_node *inv_freq, frit_node *factors,
                       frit_rope rope);
// Rotates by angles that the step brings. turns [T, rope.dim]: cosines of the dim / 2 pairs, then their sines.
frit_node *frit_rotate_by(frit_graph *g, frit_node *x, frit_node *turns, frit_rope rope);
// v may be NULL: values are the first elements of keys.
frit_node *frit_kv_write(frit_graph *g, frit_node *k, frit_node *v, int32_t layer);
// q [T, H, k_dim]; `written` orders it after frit_kv_write of the same layer. NULL for cross attention, which reads
// keys and values of another graph. Result [T, H, v_dim].
frit_node *frit_attend_node(frit_graph *g, frit_node *q, frit_node *written, frit_attend attend, int64_t v_dim);
frit_node *frit_attend_with_sinks(frit_graph *g, frit_node *q, frit_node *written, frit_node *sinks, frit_attend attend,
                                  int64_t v_dim);   // sinks [H], or NULL
frit_node *frit_attend_with_ends(frit_graph *g, frit_node *q, frit_node *written, frit_node *ends, frit_attend attend,
                                 int64_t v_dim);   // ends [T, n], an input of the step
frit_node *frit_attend_with_gains(frit_graph *g, frit_node *q, frit_node *written, frit_node *gains, frit_attend attend,
                                  int64_t v_dim);
// Attention among the rows of a sequence in a step, without a cache. q [T, H, k_dim], k [T, G, k_dim], v [T, G, v_dim];
// segments [T, 1] or NULL: rows see rows of the same number only. Result [T, H, v_dim].
frit_node *frit_attend_uncached(frit_graph *g, frit_node *q, frit_node *k, frit_node *v, frit_node *segments,
                                float scale);
frit_node *frit_attend_relative(frit_graph *g, frit_node *q, frit_node *k, frit_node *v, frit_node *c, frit_node *r,
                                frit_relate relate);
// The index in c and r for a row that lies `distance` rows after another one.
int64_t frit_relate_bucket(const frit_relate *relate, int64_t distance);   // gains [H, 2 * attend.reach + 1]
frit_node *frit_index_write(frit_graph *g, frit_node *k, int32_t layer);   // k [T, 1, D]
// q [T, H, D], w [T, H]. Result [T, n]: positions as integers.
frit_node *frit_choose_node(frit_graph *g, frit_node *q, frit_node *w, frit_node *written, frit_choose choose);
frit_node *frit_attend_sparse(frit_graph *g, frit_node *q, frit_node *written, frit_node *chosen, frit_attend attend,
                              int64_t v_dim);
// q [T, H, D], a head for each KV head. Result [T, H * n]: blocks as integers.
frit_node *frit_choose_blocks(frit_graph *g, frit_node *q, frit_node *written, frit_choose choose);
frit_node *frit_attend_in_blocks(frit_graph *g, frit_node *q, frit_node *written, frit_node *chosen, frit_attend attend,
                                 int64_t v_dim);
// x and g [T, C]. The state has C values.
frit_node *frit_lru(frit_graph *g, frit_node *x, frit_node *decay, frit_state state);
// sinks [H]; chosen may be NULL: all blocks.
frit_node *frit_attend_blocks(frit_graph *g, frit_node *q, frit_node *written, frit_node *sinks, frit_node *chosen,
                              frit_attend attend);
// x and gates [T, C], biases [block, C]. Result [T, C], of overlapping blocks [T, C / 2]. The state has 2 C values for
// each row of a block, of two if they overlap.
frit_node *frit_compress(frit_graph *g, frit_node *x, frit_node *gates, frit_node *biases, frit_state state);
// x [T, C]; w [C * n] or [C, n]; b [C] or NULL. The state has C * (n - 1) values.
frit_node *frit_conv(frit_graph *g, frit_node *x, frit_node *w, frit_node *b, frit_state state);
// x [T, H, P], dt [T, H], a [H] or [H * N], b and c [T, G, N] with G groups of heads. The state has H * P * N values.
frit_node *frit_scan(frit_graph *g, frit_node *x, frit_node *dt, frit_node *a, frit_node *b, frit_node *c,
                     frit_state state);
// v [T, H, P], k and q [T, G, N], g [T, H], [T, H, N] or, for all rows, [H]; beta [T, H] or NULL. The state has H * P *
// N values.
frit_node *frit_delta(frit_graph *g, frit_node *v, frit_node *k, frit_node *q, frit_node *decay, frit_node *beta,
                      frit_state state);
// y[t] = x[t - 1], x [T, C]. The state has C values.
frit_node *frit_shift(frit_graph *g, frit_node *x, frit_state state);
// k and v [T, C], w and u [C]. The state has 3 C values.
frit_node *frit_wkv(frit_graph *g, frit_node *k, frit_node *v, frit_node *w, frit_node *u, frit_state state);
// v [T, G, P], k [T, G, N], r and w [T, H, N] with G groups of heads; u [H * N] or NULL; a and b [T, H, N] or NULL. The
// state has H * P * N values, the result is [T, H, P].
typedef struct frit_rwkv {
    frit_node *v, *k, *r, *w, *u, *a, *b;
} frit_rwkv;
frit_node *frit_rwkv_node(frit_graph *g, frit_rwkv sources, frit_state state);
frit_node *frit_take_rows(frit_graph *g, frit_node *x, frit_node *rows);
// x [T, n], soft [T, 1 + n]: rows of `soft` whose first number is not 0 replace those of x. [T, n]
frit_node *frit_place_rows(frit_graph *g, frit_node *x, frit_node *soft);
frit_node *frit_take_blocks(frit_graph *g, frit_node *x, frit_node *rows, int32_t n);   // x [T, m]: [rows, n m]
// x [T, n_in], for experts also [T, k, n_in], or the ids of a table. route: for experts, else NULL. Result [T, n_h],
// for experts [T, k, n_h].
frit_node *frit_adapt_down(frit_graph *g, frit_node *x, frit_node *route, frit_adapted adapted);
// y [T, n_out] or [T, k, n_out]; h is the result of frit_adapt_down.
frit_node *frit_adapt_up(frit_graph *g, frit_node *y, frit_node *h, frit_adapted adapted);
frit_node *frit_steer(frit_graph *g, frit_node *x, int32_t layer);
frit_node *frit_reduce_node(frit_graph *g, frit_node *x, int32_t n_ranks);
frit_node *frit_gather_node(frit_graph *g, frit_node *x, frit_ranks ranks);
frit_node *frit_part_node(frit_graph *g, frit_node *x, frit_ranks ranks);

// True for integer inputs of the step: token ids, positions, output rows.
bool frit_node_is_ids(const frit_node *node);
// Number of sources of a node without the ADAPT_DOWN sources.
int frit_node_n_own(const frit_node *node);
// Index among the sources of the ADAPT_DOWN for matrix i, or -1.
int frit_node_adapts(const frit_node *node, int i);
// The layer of the cache that the op reads or writes; -1: none.
int32_t frit_node_cache_layer(const frit_node *node);
// The node that stores the values: the source of a RESHAPE, which is an alias, otherwise the node itself.
const frit_node *frit_node_storage(const frit_node *node);

static inline int64_t frit_node_elems(const frit_node *node)   // number of elements
{
    int64_t n = 1;
    for (int i = 0; i < node->n_dims; i++) n *= node->shape[i];
    return n;
}

static inline int64_t frit_node_width(const frit_node *node)   // the last dimension
{
    return node->shape[node->n_dims - 1];
}

static inline int64_t frit_node_height(const frit_node *node)   // product of the other dimensions
{
    int64_t n = 1;
    for (int i = 0; i < node->n_dims - 1; i++) n *= node->shape[i];
    return n;
}

// One line per node, for people and golden tests.
void frit_graph_print(const frit_graph *graph, frit_buf *out);
