// SPDX-License-Identifier: MIT
// backend/cpu/task.h: one step of a plan as its CPU kernel sees it.
//
// An op's work is cut into pieces. A kernel is called with a share, a range of pieces, by any thread and in any order.
// It writes its share of the result, takes no lock and touches no global. Results do not depend on which thread
// computed which piece. Kernels read shapes from the nodes, whose shape[0] is the rows of this step.
//
//     void frit_ref_scale(const frit_task *task, frit_share share)
//     {
//         frit_range r = frit_split(frit_node_elems(task->node), 1, share);
//         for (int64_t i = r.begin; i < r.end; i++) task->y[i] = task->x[0][i] * task->node->factor;
//     }
#pragma once
#include "backend/cpu/kernels.h"
#include "base/thread/meeting.h"
#include "graph/plan.h"

#include <math.h>

// Pieces [begin, end) of `of` equal pieces, for one thread. Pieces may be empty if there is little work.
typedef struct frit_share {
    int begin, end, of;
    int thread;
} frit_share;

// The adapters of a device, and the adapters that rows of this step use.
typedef struct frit_cpu_adapters {
    frit_adapter_table *tables;   // [n]
    int32_t *used;                // [n]
    int32_t n, n_used;
} frit_cpu_adapters;

// Shared by all tasks of one run of the plan.
typedef struct frit_task_env {
    const frit_kernels *kernels;
    const frit_kernels *decode_kernels;   // for decode rows; may be `kernels`
    const frit_batch *batch;
    frit_out_row *taken;   // as in frit_step_output
    const frit_cache *cache;
    const frit_cpu_adapters *adapters;
    const frit_rank *ranks;   // the device's place in a group; NULL: none
    uint8_t *workspaces;      // one for each thread
    size_t workspace_bytes;   // bytes of one workspace, a multiple of FRIT_CPU_ALIGN
    size_t inputs_offset;     // offset in a workspace of the part that survives a task (act_input.h)
    uint32_t run;             // number of this run of the plan, from 1
    // All matrices are f32 or f16, so no product rounds as coarsely as bf16, and attention must not either
    // (attend_bf16).
    bool fine;
} frit_task_env;

typedef struct frit_act_input frit_act_input;   // act_input.h

// A node that is applied to the results of a task before they leave the cache (graph/phase.h).
typedef struct frit_fused_node {
    const frit_node *node;
    const float *x[FRIT_MAX_SOURCES];   // its sources; NULL for the result of the task
    float *y;                           // row by row: the result, or NULL if it is not stored
} frit_fused_node;

typedef struct frit_task {
    const frit_node *node;
    const frit_task_env *env;
    float *y;                             // the result of the node; for products, the result of the last fused node
    const float *x[FRIT_MAX_SOURCES];     // sources that are activations or vectors of the model; else NULL
    const uint8_t *w[FRIT_MAX_SOURCES];   // sources that are matrices of the model: their bytes; else NULL
    const float **of_ranks;               // REDUCE and GATHER in a group: x[0] of each rank; else NULL
    frit_fused_node fused[FRIT_FUSION_NODES - 1];
    int n_fused;
    const struct frit_task *up;   // GLU: the product of the second matrix
    // Linear ops: x[0] in the forms of the matrices' kernels, for all threads. Stacked ops: rows sorted by matrix.
    uint8_t *forms[FRIT_FORM_COUNT];
    struct frit_dispatch *dispatch;                    // assignment of rows to experts (dispatch.h)
    const frit_act_input *inputs[FRIT_FORM_COUNT];     // ops with own_input: x[0] by frit_act_input_rows
    const frit_act_input *stores;                      // the thread that does the first piece stores its sum
    const frit_act_input *produced[FRIT_FORM_COUNT];   // the result in forms that other tasks read; y may then be NULL
    frit_form form;                                    // conversions: the form of the result
    uint8_t *shared;   // frit_cpu_op.shared_bytes; conversions: the result; ROPE: its table
    int64_t unit;      // products: a piece is a multiple of `unit` rows of the matrix; 0: any number
    bool continued;    // products: an epilogue continues with the columns of a piece (by_heads)
    // Nodes in an epilogue (graph/phase.h): by_heads: a share is a range of heads of all rows. KV_WRITE stores keys or
    // values.
    bool by_heads, keys, values;
} frit_task;

typedef void (*frit_task_fn)(const frit_task *task, frit_share share);
// y = the fused node applied to x: n elements of the result from column o on, whose first element has index `at`. y may
// be x.
typedef void (*frit_fused_fn)(const frit_kernels *kernels, const frit_fused_node *fused, int64_t at, int64_t o,
                              float *y, const float *x, int64_t n);
typedef int (*frit_pieces_fn)(const frit_task *task);   // FRIT_MAX_PIECES at most
enum { FRIT_MAX_PIECES = 1 << 12 };

// How the CPU runs one op.
typedef struct frit_cpu_op {
    frit_task_fn fast;       // NULL: only the reference exists
    frit_fused_fn fused;     // applies the op to another op's result; NULL: not supported
    frit_pieces_fn pieces;   // number of pieces of `fast` for the rows of this step
    frit_task_fn begin;      // runs before `fast`, or NULL
    frit_pieces_fn begin_pieces;
    frit_task_fn finish;   // runs when all of `fast` is done, or NULL
    frit_pieces_fn finish_pieces;
    bool linear;                           // reads source 0 in the forms of the matrices' kernels
    bool own_input;                        // linear: the op calls frit_act_input_rows for source 0
    bool stacked;                          // as `linear`, with source 0 sorted by matrix of a stack
    bool (*fits)(const frit_node *node);   // true if `fast` can run the node; NULL: always
    unsigned matrices;                     // bit i: source i is a matrix in the file's type
    // Bytes of a thread's workspace, and of the memory that `begin`, `fast` and `finish` share. NULL: 0.
    size_t (*workspace_bytes)(const frit_node *node);
    size_t (*shared_bytes)(const frit_node *node, const frit_kernels *kernels);
} frit_cpu_op;

extern const frit_cpu_op frit_cpu_ops[FRIT_OP_COUNT];
extern const frit_task_fn frit_cpu_references[FRIT_OP_COUNT];   // frit_ref_NAME

// ops.c: pieces of ops whose cost is reading and writing their elements; pieces of rows of source 0; pieces of
// references.
int frit_pieces_by_size(const frit_task *task);
int frit_pieces_by_row(const frit_task *task);
int frit_pieces_of_reference(const frit_task *task);

#define OP(NAME, name, ...) void frit_ref_##name(const frit_task *task, frit_share share);
#include "graph/ops.def"
#undef OP

// ops.c: pieces of norms and conversions: 0 if each thread computes the few rows for itself.
int frit_pieces_of_norm(const frit_task *task);
int frit_pieces_of_convert(const frit_task *task);

// ------------------------------------------------------------------------------- helpers

enum { FRIT_CPU_ALIGN = 128 };   // two cache lines: processors prefetch lines in pairs

typedef struct frit_range {
    int64_t begin, end;
} frit_range;

// The items of a share when n items are cut in multiples of `unit`.
static inline frit_range frit_split(int64_t n, int64_t unit, frit_share share)
{
    const int64_t n_units = (n + unit - 1) / unit;
    const int64_t begin = n_units * share.begin / share.of * unit, end = n_units * share.end / share.of * unit;
    return (frit_range){begin < n ? begin : n, end < n ? end : n};
}

// Calls fn for the rows of a share, which are consecutive; for followers, some heads of each row.
typedef void (*frit_rows_fn)(const frit_task *task, int thread, int64_t begin, int64_t end);
void frit_by_rows(const frit_task *task, frit_share share, frit_rows_fn fn);

// True if item i of an unknown number belongs to the share. Items are interleaved among the pieces.
static inline bool frit_share_has(frit_share share, int64_t i)
{
    const int64_t piece = i % share.of;
    return share.begin <= piece && piece < share.end;
}

// How many of a node's rows are decode rows in a step that mixes row classes: the first ones.
static inline int64_t frit_n_decode_rows(const frit_task_env *env, const frit_node *node)
{
    if (env->kernels == env->decode_kernels || node->rows == FRIT_SHAPE_FIXED) return 0;
    return node->rows == FRIT_SHAPE_BATCH ? env->batch->n_decode_rows : env->batch->n_decode_outs;
}

// The height (frit_node_height) of a node's decode rows in a step that mixes row classes.
static inline int64_t frit_decode_height(const frit_task_env *env, const frit_node *node)
{
    const int64_t n = frit_n_decode_rows(env, node);
    return n > 0 ? n * (frit_node_height(node) / node->shape[0]) : 0;
}

// The kernels for the rows of a sequence.
static inline const frit_kernels *frit_seq_kernels(const frit_task_env *env, const frit_seq *seq)
{
    return seq->first_row < env->batch->n_decode_rows ? env->decode_kernels : env->kernels;
}

// The route of a stacked op: its last own source.
static inline const frit_node *frit_node_route(const frit_node *node)
{
    return node->src[frit_node_n_own(node) - 1];
}

// Source i of the task: token ids, positions or output rows.
static inline const int32_t *frit_task_ids(const frit_task *task, int i)
{
    const frit_batch *batch = task->env->batch;
    switch (task->node->src[i]->input) {
    case FRIT_INPUT_TOKENS:
        return batch->tokens;
    case FRIT_INPUT_POSITIONS:
        return batch->positions;
    case FRIT_INPUT_OUT_ROWS:
        return batch->out_rows;
    case FRIT_INPUT_RESULT:
    case FRIT_INPUT_WRITTEN:
        break;   // no ids
    }
    return NULL;
}

static inline void *frit_task_workspace(const frit_task *task, frit_share share)
{
    return task->env->workspaces + task->env->workspace_bytes * (size_t)share.thread;
}

// The end of the later positions that a row at `position` of the sequence sees; 0: it sees none.
static inline int64_t frit_attend_later_end(const frit_task *task, const frit_seq *seq, int64_t position)
{
    const frit_node *node = task->node;
    if (node->attend.ends_at == 0) return 0;
    const int64_t row = seq->first_row + position - seq->n_past;
    return (int64_t)task->x[2][row * frit_node_width(node->src[2]) + node->attend.ends_at];
}

// As frit_attend_seen, with the end of later positions that the row sees, or 0.
static inline frit_range frit_attend_range(const frit_attend *attend, const frit_seq *seq, int64_t position,
                                           int64_t later_end)
{
    if (attend->cross) return (frit_range){0, seq->n_source};
    if (attend->bidirectional) {
        const int64_t end = seq->n_past + seq->n_rows, reach = attend->window > 0 ? attend->window / 2 : end;
        return (frit_range){position > reach ? position - reach : 0,
                            position + reach < end ? position + reach + 1 : end};
    }
    int64_t begin = attend->window > 0 && position >= attend->window ? position - attend->window + 1 : 0;
    if (attend->chunk > 0) begin = position / attend->chunk * attend->chunk;
    return (frit_range){begin, later_end > position ? later_end : position + 1};
}

// The positions [begin, end) that a row at `position` of the sequence looks at, the own one included. Later rows of a
// sequence have neither an earlier begin nor an earlier end.
static inline frit_range frit_attend_seen(const frit_task *task, const frit_seq *seq, int64_t position)
{
    return frit_attend_range(&task->node->attend, seq, position, frit_attend_later_end(task, seq, position));
}

// The sinks: one more score for each head, or NULL.
static inline const float *frit_attend_sinks(const frit_task *task)
{
    const frit_attend *attend = &task->node->attend;
    return task->node->op == FRIT_OP_ATTEND && attend->reach == 0 && attend->ends_at == 0 ? task->x[2] : NULL;
}

// The number that is added to the score of position `position + distance`, with attend.reach > 0.
static inline float frit_attend_gain(const frit_task *task, int64_t head, int64_t distance)
{
    const int64_t reach = task->node->attend.reach;
    const int64_t near = distance < -reach ? -reach : distance > reach ? reach : distance;
    return task->x[2][head * (2 * reach + 1) + near + reach];
}

// The factor of the scores of a row at `position`.
static inline float frit_attend_scale(const frit_attend *attend, int64_t position)
{
    if (attend->temp_scale == 0) return attend->scale;
    const double far = floor(((double)position + attend->temp_offset) / attend->temp_length);
    return (float)(attend->scale * (1 + attend->temp_scale * log(1 + far)));
}

// ALiBi's slope of one head; slope * distance is subtracted from scores. The first n heads, n a power of two, have
// powers of 2^(-alibi / n); the others have odd powers of its square root.
static inline float frit_attend_slope(const frit_attend *attend, int64_t head, int64_t n_head)
{
    if (attend->alibi == 0) return 0;
    int64_t n = 1;
    while (2 * n <= n_head) n *= 2;
    const double step = -attend->alibi / (double)n;
    return (float)exp2(head < n ? step * (double)(head + 1) : step / 2 * (double)(2 * (head - n) + 1));
}

// The state of a recurrent op at a state index: of a sequence (frit_seq.state), or of its copy (frit_seq.copy_state).
static inline float *frit_state_in(const frit_task *task, int32_t index)
{
    const frit_state *state = &task->node->state;
    const frit_cache_layer *layer = &task->env->cache->layers[state->layer];
    return layer->states + (int64_t)index * layer->spec.n_state + state->offset;
}

static inline float *frit_state_at(const frit_task *task, const frit_seq *seq)
{
    return frit_state_in(task, seq->state);
}
