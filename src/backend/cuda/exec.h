// SPDX-License-Identifier: MIT
// backend/cuda/exec.h: a plan as a list of launches. A launch has a kernel, its arguments, of which addresses are
// named by what lies there, and how its grid follows from the rows of a step.
#pragma once
#include "backend/cuda/device.h"
#include "backend/cuda/ops/matmul.h"

typedef enum frit_cuda_where {
    FRIT_CUDA_NOWHERE,    // address 0
    FRIT_CUDA_FIXED,      // an address: of weights and constants, the cache
    FRIT_CUDA_SCRATCH,    // an offset in the device's scratch memory
    FRIT_CUDA_GIVEN,      // an offset in the plan's inputs
    FRIT_CUDA_STEP,       // one of frit_cuda_step's arrays
    FRIT_CUDA_WORK,       // an offset in the device's work memory
    FRIT_CUDA_STREAMED,   // an offset in the executable's slot (weight_stream.c)
} frit_cuda_where;

typedef enum frit_cuda_step_array {   // a step's input on the GPU
    FRIT_CUDA_TOKENS,
    FRIT_CUDA_POSITIONS,   // [n_rows]: the place of each row's key and value
    FRIT_CUDA_ANGLES,      // [n_rows]: batch->positions, which rotations read
    FRIT_CUDA_OUT_ROWS,
    FRIT_CUDA_SEQ_OF,      // [n_rows]: the sequence of each row
    FRIT_CUDA_SEQS,        // frit_gpu_seq
    FRIT_CUDA_PAGES,       // all groups
    FRIT_CUDA_ROW_TILES,   // frit_row_tile: rows of a sequence, 64 at a time
    FRIT_CUDA_PICKS,       // frit_gpu_pick
    FRIT_CUDA_LISTS,       // that picks share
    FRIT_CUDA_SCALES,      // f32 [n_seqs, n_adapters]
    FRIT_CUDA_STEP_ARRAYS
} frit_cuda_step_array;

typedef struct frit_cuda_address {
    frit_cuda_where where;
    uint64_t at;
} frit_cuda_address;

typedef struct frit_cuda_launch frit_cuda_launch;

typedef struct frit_cuda_step {   // what a launch needs to know of the step
    const frit_batch *batch;
    uint64_t arrays[FRIT_CUDA_STEP_ARRAYS];
    int32_t page_stride;   // of the GPU's page tables: a power of two
    int32_t n_row_tiles;
    int32_t n_picks, n_passes;   // that are launched with the rest of the step
    uint64_t scratch, given, work, picked, streamed;
} frit_cuda_step;

// The launches of a step as one graph of the driver's. It can be launched again while all that they depend on is the
// same; a change of the key makes it anew.
typedef struct frit_cuda_graph_key {
    int32_t n_rows, n_outs, n_seqs, page_stride, n_row_tiles, n_picks, n_passes, pad;
    uint64_t input, scratch, work, picked;
} frit_cuda_graph_key;

typedef struct frit_cuda_recording {
    frit_cuda_graph_key key;
    frit_cuda_graph_exec graph;   // NULL: the key was seen once
} frit_cuda_recording;

// Rows of a plan from which rows become f16 for products (gemm.c). And rows of a step that may be long parts of a
// text.
enum { FRIT_CUDA_MANY_FROM = 17, FRIT_CUDA_LONG_FROM = 17 };
enum { FRIT_CUDA_MATRICES = 3, FRIT_CUDA_OPERANDS = 6, FRIT_CUDA_VARIANTS = 5, FRIT_CUDA_SOME_VARIANTS = 4 };

// Products that read the same rows, and what is done to their results.
typedef struct frit_cuda_products {
    const frit_node *node;                           // LINEAR: a step has as many rows of it
    const frit_node *norm;                           // of the rows, computed by the product; NULL: no norm
    int k, n;                                        // columns; rows of the matrices
    frit_cuda_segment segments[FRIT_GPU_SEGMENTS];   // the second may be empty
    frit_cuda_epilogue epilogue;
    frit_cuda_heads heads;   // FRIT_GPU_QKV
} frit_cuda_products;

// One product for so many rows.
typedef struct frit_cuda_variant {
    frit_cuda_kernel *kernel;
    int rows;
} frit_cuda_variant;

// A product of a few rows (product.h). Operands: 0 rows, 1 tiles, 2 norm, 3 residual, 4 tiles of the second segment,
// 5 the rope table (FRIT_GPU_QKV).
typedef struct frit_cuda_few {
    frit_cuda_variant variants[FRIT_CUDA_VARIANTS];   // the fewest rows first
    int n_variants;
    bool has_many_rows;       // a launch takes any number of rows
    int k, n;                 // columns; numbers of a row of results
    int rotated, row_bytes;   // FRIT_GPU_QKV: dimensions of a head; bytes of a row of queries
    float epsilon, query_scale;
    uint64_t keys, values;   // FRIT_GPU_QKV: this layer's part of page 0
    uint64_t arrived;        // counters of blocks that share a row tile
} frit_cuda_few;

typedef struct frit_cuda_some_variant {
    frit_cuda_kernel *kernel;
    int rows, n_parts;   // n_parts: of the results, to be added
    bool is_gated;       // these are gates times values already
} frit_cuda_some_variant;

// Rows that products of many rows read: f16, each row times a power of two, and what a number of each row is worth.
typedef struct frit_cuda_halves {
    frit_cuda_address rows, scales;   // scales.where is FRIT_CUDA_NOWHERE: numbers are worth what they are
    frit_cuda_address squares;        // sums of the squares of rows; FRIT_CUDA_NOWHERE: not known
} frit_cuda_halves;

// A norm of the results of a product of many rows, as halves.
typedef struct frit_cuda_many_norm {
    frit_cuda_kernel *kernel;    // NULL: none
    frit_cuda_kernel *for_few;   // the same, for steps of up to FRIT_CUDA_SOME_ROWS
    frit_cuda_address weight, bias;
    frit_cuda_halves y;
    float epsilon;
} frit_cuda_many_norm;

// A product of many rows (matmul.h), and of some (gemm_small.h). Operands: 0 rows, 1 tiles, 3 residual, 4 tiles of the
// second segment.
typedef struct frit_cuda_many {
    frit_cuda_matmul *matmul;
    frit_cuda_some_variant some[FRIT_CUDA_SOME_VARIANTS];   // the fewest rows first
    int n_some;
    frit_cuda_kernel *precise;              // multiplies in f32 (precise.h); NULL: the others do
    frit_cuda_kernel *convert;              // of gemm.cu; NULL: the rows are halves already
    frit_cuda_kernel *finish, *gate;        // gate: results become halves; neither: they stay
    int k, n;                               // columns; rows of the tiles
    bool is_gated;                          // rows of the tiles are gates and values
    frit_cuda_halves x, gated;              // what is multiplied; what `gate` makes
    frit_cuda_many_norm norm;               // that finishes the results too
    uint64_t weights, product, workspace;   // offsets in the device's work memory
    frit_cuda_kernel *measure;              // of bounds.cu, run when the plan is prepared; NULL: no kernel wants them
    uint64_t bounds;                        // f32 [2]
} frit_cuda_many;

// Bias, norm, rotation and cache of heads (heads_rows.cu). Operands: 0 results of the product, 1 a scale for each row
// of them, 2 and 3 norms of queries and keys, 4 the rope table.
typedef struct frit_cuda_heads_args {
    bool follows_many;   // the launch before is the product, of many rows
    uint64_t bias[3];    // of queries, keys, values; 0: none
    uint64_t keys, values;
    float epsilon, query_scale;
} frit_cuda_heads_args;

// Attention with queries in f16: kernels for rows one by one, for so many of them, near the beginning of a text and far
// from it, and one for 64 rows of a sequence at a time. Operands: 0 queries, 1 parts, 2 how many of them have arrived,
// 3 sinks.
typedef struct frit_cuda_attend_variant {
    frit_cuda_kernel *kernel, *far;   // far: copies pages ahead; NULL: not on this GPU
    int rows, n_splits, n_far_splits;
} frit_cuda_attend_variant;

typedef struct frit_cuda_attend_fast {
    frit_cuda_attend_variant variants[FRIT_CUDA_VARIANTS];
    int n_variants;
    frit_cuda_kernel *rows;   // NULL: no step of the plan is that long
    uint64_t keys, values;
} frit_cuda_attend_fast;

// A route, and its assignments sorted by expert (dispatch.cu) for the plan's steps of many rows.
typedef struct frit_cuda_dispatch {
    const frit_node *route;
    uint64_t groups, order;   // 0: the plan has no such steps
    int group_rows;           // at most, of a group
} frit_cuda_dispatch;

// Products with matrices of experts (experts.cu, experts_rows.cu). Operands: 0 rows, 1 tiles, 2 route, 3 residual.
typedef struct frit_cuda_experts {
    frit_cuda_kernel *each;       // for assignments one by one, or if is_sum, rows
    frit_cuda_kernel *groups;     // for groups of assignments; NULL: none
    frit_cuda_kernel *rows;       // for groups of assignments in f16, always taken if there is one; NULL: none
    frit_cuda_kernel *convert;    // of gemm.cu, for `rows`
    uint64_t converted, scales;   // its results: offsets in the device's work memory
    int k;                        // columns
    bool has_own_rows;
    frit_cuda_kernel *mix;      // sums of what assignments give; NULL: these are the results
    bool is_sum;                // `each` sums up
    int n_used, parts, width;   // parts of a group; numbers of a row of results
    uint64_t expert_bytes;
    frit_cuda_dispatch dispatch;
} frit_cuda_experts;

struct frit_cuda_launch {
    // Launches the kernel for the rows of the step.
    frit_status (*run)(frit_cuda_device *device, const frit_cuda_launch *launch, const frit_cuda_step *step);
    const frit_node *node;
    frit_cuda_kernel *kernel;
    const frit_tensor *matrices[FRIT_CUDA_MATRICES];   // that products read as a whole; for profiles
    frit_cuda_address x[FRIT_CUDA_OPERANDS], y;
    int64_t each;   // numbers, or rows, that a row of the step has
    union {
        frit_plain_args plain;
        frit_embed_rows_args embed;
        frit_cache_args cache;
        frit_attend_plain_args attend;
        frit_choose_args choose;
        frit_recurrent_args recurrent;
        frit_adapt_args adapt;
        frit_cuda_few few;
        frit_cuda_many many;
        frit_cuda_many_norm norm;
        frit_cuda_heads_args heads;
        frit_cuda_attend_fast attend_fast;
        frit_cuda_experts experts;
    };
    int group;   // of page tables
};

typedef struct frit_cuda_rope_table {   // cosines and sines of a step's positions
    uint64_t frequency, factor;
    int rotated;
    float magnitude;
    uint64_t table;   // f32 [rows, rotated / 2, 2]
} frit_cuda_rope_table;

struct frit_exec {
    frit_cuda_device *device;
    frit_plan *plan;
    const frit_cache *cache;
    frit_cuda_launch *launches;
    int n_launches, launches_room;
    frit_cuda_matmul **matmuls;   // [n_matmuls], of launches
    int n_matmuls;
    frit_cuda_rope_table *rope_tables;   // [n_rope_tables]: for the step's positions
    int n_rope_tables;
    frit_cuda_dispatch *dispatches;   // [n_dispatches]: a route each
    int n_dispatches;
    frit_cuda_buffer *buffers;   // [n_buffers], that live as long as the plan
    int n_buffers;
    bool *is_f16;          // [plan->graph->n_nodes]: queries that are f16 where the node's f32 would be
    bool *is_halves;       // [plan->graph->n_nodes]: so are rows that products of many rows alone read (f16_input.c)
    uint64_t work_bytes;   // that its launches need
    bool is_precise;       // products are in f32 (precise.h)
    uint64_t counters;     // of products of few rows: u32 [multiprocessors], zero between launches; 0: none yet
    frit_cuda_recording recordings[FRIT_CUDA_FLIGHTS];   // steps of few rows, by the flight whose input they read
    frit_cuda_memory given;
    frit_cuda_tensor *streamed;   // [n_streamed]: what its slot holds, at offsets
    size_t n_streamed;
    uint64_t streamed_bytes;
    int slot;
    frit_exec *follower;   // runs after it, as far as is known; NULL: not known
    frit_exec *older;      // in the device's list
};

static inline uint64_t frit_cuda_resolve(const frit_cuda_step *step, frit_cuda_address a)
{
    switch (a.where) {
    case FRIT_CUDA_FIXED:
        return a.at;
    case FRIT_CUDA_SCRATCH:
        return step->scratch + a.at;
    case FRIT_CUDA_GIVEN:
        return step->given + a.at;
    case FRIT_CUDA_STEP:
        return step->arrays[a.at];
    case FRIT_CUDA_WORK:
        return step->work + a.at;
    case FRIT_CUDA_STREAMED:
        return step->streamed + a.at;
    default:
        return 0;
    }
}

// The page tables of the launch's group.
static inline uint64_t frit_cuda_pages_of(const frit_cuda_launch *l, const frit_cuda_step *step)
{
    const uint64_t before = (uint64_t)l->group * (uint64_t)(step->batch->n_seqs * step->page_stride);
    return step->arrays[FRIT_CUDA_PAGES] + before * sizeof(int32_t);
}

// Rows of the node in the step.
static inline int64_t frit_cuda_rows(const frit_node *node, const frit_batch *batch)
{
    return node->rows == FRIT_ROWS_BATCH  ? batch->n_rows
           : node->rows == FRIT_ROWS_OUTS ? batch->n_outs
                                          : node->shape[0];
}

// Whether gemm.c multiplies in the plan that the node is of. Numbers in f32 would lose half of their bits in f16;
// where files have them, matrices are small: what chooses experts.
static inline bool frit_cuda_is_many(const frit_exec *exec, const frit_node *linear)
{
    if (exec->is_precise) return true;
    return linear->shape[0] >= FRIT_CUDA_MANY_FROM && exec->device->blas.library &&
           frit_node_storage(linear->src[1])->tensor->dtype != FRIT_DTYPE_F32;
}

// The launches of a node by itself, and of a phase, in order (ops.c, products.c).
frit_status frit_cuda_lower(frit_exec *exec, const frit_node *node);
frit_status frit_cuda_lower_phase(frit_exec *exec, const frit_phase *phase);
// ops.c
int64_t frit_cuda_width(const frit_node *node);
int64_t frit_cuda_each(const frit_node *node);   // numbers that a row of the step has
frit_status frit_cuda_launch_new(frit_exec *exec, const frit_node *node, frit_cuda_launch **out);
frit_status frit_cuda_address_of(frit_exec *exec, const frit_node *node, bool is_tiled, frit_cuda_address *out);
frit_status frit_cuda_add_plain(frit_exec *exec, const frit_node *node, const char *name, frit_cuda_launch **out);
// A kernel without defines, made with the plan's others.
frit_status frit_cuda_take_kernel(frit_exec *exec, const char *file, const char *name, unsigned threads,
                                  unsigned shared, frit_cuda_kernel **out);
frit_status frit_cuda_run_kernel(frit_cuda_device *device, const frit_cuda_kernel *kernel, unsigned x, unsigned y,
                                 const void *args);
// products.c
bool frit_cuda_linear_fits(const frit_node *node);
frit_status frit_cuda_lower_linear(frit_exec *exec, const frit_node *node);
// gemv.c: products of up to 16 rows at a time. FRIT_E_UNSUPPORTED: not even of one row.
frit_status frit_cuda_lower_few(frit_exec *exec, const frit_cuda_products *products, int64_t max_rows,
                                frit_cuda_launch *launch);
bool frit_cuda_can_few(const frit_exec *exec, const frit_cuda_products *products, int64_t n_rows);
// gemm.c: of more rows, by cuBLASLt or gemm_small.h. Results stay in the work memory, so many parts to be added and
// multiplied with the scale of their row, if `result` is NULL; otherwise they become its numbers, or its halves.
frit_status frit_cuda_lower_many(frit_exec *exec, const frit_cuda_products *products, int64_t max_rows,
                                 const frit_node *result, frit_cuda_launch *launch);
int frit_cuda_many_parts(const frit_cuda_launch *launch, int64_t n_rows);
// Runs once what kernels are to know of their weights; when all are made.
frit_status frit_cuda_many_measure(frit_exec *exec);
void frit_cuda_matmuls_free(frit_exec *exec);
// Whether the launch can compute this norm of its results beside them.
bool frit_cuda_many_takes_norm(const frit_cuda_launch *launch, const frit_node *norm);
// f16_input.c: whether products of many rows alone read a node's rows. Then the lowering of the node sets
// exec->is_halves.
bool frit_cuda_feeds_many(const frit_exec *exec, const frit_node *node);
frit_cuda_halves frit_cuda_halves_of(const frit_exec *exec, const frit_node *node);
const frit_cuda_kernel *frit_cuda_norm_for(const frit_cuda_many_norm *norm, int64_t n_rows);
frit_status frit_cuda_lower_halves_norm(frit_exec *exec, const frit_node *norm);
// heads.c: queries, keys and values of a layer with all that is done to them before attention.
typedef struct frit_cuda_heads_phase {
    const frit_node *products[3];           // LINEAR: of queries, keys, values
    const frit_node *norms[2], *ropes[2];   // of queries, keys; NULL: none
    const frit_node *write, *query, *attend;
    int n_heads, n_kv_heads, head_size;
} frit_cuda_heads_phase;
bool frit_cuda_is_heads(const frit_exec *exec, const frit_phase *phase, frit_cuda_heads_phase *heads);
bool frit_cuda_is_of_heads(const frit_cuda_heads_phase *heads, const frit_fusion *fusion);
// The products of the phase with this norm.
void frit_cuda_describe_heads(const frit_exec *exec, const frit_cuda_heads_phase *heads, const frit_node *norm,
                              frit_cuda_products *out);
frit_status frit_cuda_lower_heads(frit_exec *exec, const frit_cuda_heads_phase *heads, const frit_node *norm);
// attend.c: attention of queries in f16, rows one by one or 64 of a sequence at a time. Whether there are kernels.
bool frit_cuda_can_attend(const frit_exec *exec, const frit_node *attend);
frit_status frit_cuda_lower_attend(frit_exec *exec, const frit_node *attend);
// cache.c: what reads and writes the cache, in any of its types.
int frit_cuda_cache_kind(frit_dtype dtype);   // FRIT_GPU_CACHE_F16 ...; -1: none
bool frit_cuda_cache_fits(const frit_node *node);
frit_status frit_cuda_lower_cache_write(frit_exec *exec, const frit_node *node);
frit_status frit_cuda_lower_cache_attend(frit_exec *exec, const frit_node *node);
uint64_t frit_cuda_choose_bytes(const frit_node *choose);   // that its plan keeps
frit_status frit_cuda_lower_choose(frit_exec *exec, const frit_node *node);
// adapt.c: adapters.
bool frit_cuda_adapt_fits(const frit_node *node);
frit_status frit_cuda_lower_adapt(frit_exec *exec, const frit_node *node);
frit_status frit_cuda_lower_adapted(frit_exec *exec, const frit_node *linear);   // what a product gains by them
// recurrent.c: ops with a state.
bool frit_cuda_recurrent_fits(const frit_node *node);
frit_status frit_cuda_lower_recurrent(frit_exec *exec, const frit_node *node);
// experts.c: mixtures of experts.
bool frit_cuda_route_fits(const frit_node *node);
uint64_t frit_cuda_route_bytes(const frit_node *route);    // that its plan keeps
uint64_t frit_cuda_experts_bytes(const frit_node *node);   // of work memory
bool frit_cuda_experts_fit(const frit_node *node);
frit_status frit_cuda_lower_heads_product(frit_exec *exec, const frit_node *node);   // HEADS
frit_status frit_cuda_lower_route(frit_exec *exec, const frit_node *node);
frit_status frit_cuda_lower_experts(frit_exec *exec, const frit_node *node);
// The same, added to `residual` (NULL: to nothing), as the numbers of `result`.
frit_status frit_cuda_lower_experts_to(frit_exec *exec, const frit_node *node, const frit_node *residual,
                                       const frit_node *result);
// weights.c: where a tensor lies, as tiles or its numbers as they are: loaded if it is not there yet. Tiles of a plan
// that streams get a place in its slot.
frit_status frit_cuda_tensor_take(frit_exec *exec, const frit_tensor *tensor, bool is_tiled, frit_cuda_address *out);
frit_status frit_cuda_tiles_take(frit_exec *exec, const frit_cuda_pair *pair, frit_cuda_address *out);
// weight_stream.c: a place in the slot of an executable for a tensor; the slot, once all have one; filling it for a
// step, with which the launches wait; and telling that these have read it.
frit_status frit_cuda_stream_add(frit_exec *exec, const frit_cuda_tensor *tensor, frit_cuda_address *out);
frit_status frit_cuda_stream_open(frit_exec *exec);
frit_status frit_cuda_stream_begin(frit_exec *exec, uint64_t *address);
frit_status frit_cuda_stream_end(frit_exec *exec);
void frit_cuda_stream_forget(frit_exec *exec);
void frit_cuda_slots_close(frit_cuda_device *device);
// Bytes that live as long as the plan.
frit_status frit_cuda_keep_bytes(frit_exec *exec, uint64_t n_bytes, bool clears, uint64_t *address);
