// SPDX-License-Identifier: MIT
// The op table of the CPU. An op without a row here, or without `fast`, runs on its reference kernel.
#include "backend/cpu/ops/adapt.h"
#include "backend/cpu/ops/fast.h"
#include "backend/cpu/ops/act_input.h"
#include "backend/cpu/pack/matrix.h"
#include "backend/cpu/ref/ref.h"

static size_t attend_workspace_bytes(const frit_node *node)
{
    const size_t reference = frit_ref_attend_workspace_bytes(node), fast = frit_attend_workspace_bytes(node);
    return reference > fast ? reference : fast;
}

// Workspace for one key or value.
static size_t kv_write_workspace_bytes(const frit_node *node)
{
    const int64_t k_dim = frit_node_width(node->src[0]), v_dim = frit_node_width(node->src[node->n_src - 1]);
    return (size_t)(k_dim > v_dim ? k_dim : v_dim) * sizeof(float);
}

// Workspace of the reference: one or two rows of weights.
static size_t stacked_workspace_bytes(const frit_node *node)
{
    return frit_matrix_workspace_bytes(frit_node_width(node->src[0]));
}

static size_t experts_mix_workspace_bytes(const frit_node *node)
{
    const size_t reference = frit_ref_experts_mix_workspace_bytes(node), fast = stacked_workspace_bytes(node);
    return reference > fast ? reference : fast;
}

// Workspace for probabilities, scores, sums of groups and the chosen experts.
static size_t route_workspace_bytes(const frit_node *node)
{
    return (size_t)frit_node_width(node->src[0]) * 3 * sizeof(double);
}

int frit_pieces_by_size(const frit_task *task)
{
    enum { SMALLEST = 2048 };   // elements: cutting smaller pieces costs more than it gains
    const int64_t n = (frit_node_elems(task->node) + SMALLEST - 1) / SMALLEST;
    return n < FRIT_MAX_PIECES ? (int)n : FRIT_MAX_PIECES;
}

int frit_pieces_by_row(const frit_task *task)
{
    const int64_t n = frit_node_height(task->node->src[0]);
    return n < FRIT_MAX_PIECES ? (int)n : FRIT_MAX_PIECES;
}

int frit_pieces_of_norm(const frit_task *task)
{
    for (int form = 0; form < FRIT_FORM_COUNT; form++)
        if (task->inputs[form] && frit_act_input_is_per_thread(task->inputs[form])) return 0;
    return frit_pieces_by_size(task);
}

int frit_pieces_of_convert(const frit_task *task)
{
    const frit_act_input *input = task->inputs[task->form];
    if (frit_act_input_is_per_thread(input)) return 0;
    const frit_range r = frit_act_input_range(input);
    return r.end - r.begin < FRIT_MAX_PIECES ? (int)(r.end - r.begin) : FRIT_MAX_PIECES;
}

void frit_by_rows(const frit_task *task, frit_share share, frit_rows_fn fn)
{
    const int64_t n_rows = task->node->shape[0], height = frit_node_height(task->node);
    if (n_rows == 0) return;
    const frit_range mine = frit_split(task->by_heads ? height / n_rows : height, 1, share);
    for (int64_t t = 0; task->by_heads && t < n_rows; t++)
        fn(task, share.thread, t * (height / n_rows) + mine.begin, t * (height / n_rows) + mine.end);
    if (!task->by_heads) fn(task, share.thread, mine.begin, mine.end);
}

int frit_pieces_of_reference(const frit_task *task)
{
    enum { MOST = 64 };
    const int64_t n = frit_node_elems(task->node);
    return n < MOST ? (int)n : MOST;
}

const frit_task_fn frit_cpu_references[FRIT_OP_COUNT] = {
#define OP(NAME, name, ...) frit_ref_##name,
#include "graph/ops.def"
#undef OP
};

#define BY_SIZE(name)   .fast = frit_fast_##name, .pieces = frit_pieces_by_size
#define FAST(name, cut) .fast = frit_fast_##name, .pieces = cut
#define PRODUCT(name) \
    FAST(name, frit_linear_pieces), .linear = true, .own_input = true, .workspace_bytes = frit_linear_workspace_bytes
#define STACKED(name, cut) FAST(name, cut), .stacked = true

// clang-format off
const frit_cpu_op frit_cpu_ops[FRIT_OP_COUNT] = {
    [FRIT_OP_EMBED]      = {.matrices = 1 << 0},
    [FRIT_OP_EMBED_MIX]  = {.matrices = 1 << 0, .workspace_bytes = frit_ref_embed_mix_workspace_bytes},
    [FRIT_OP_LINEAR]     = {PRODUCT(linear), .matrices = 1 << 1},
    [FRIT_OP_RMS_NORM]   = {FAST(rms_norm, frit_pieces_of_norm), .fused = frit_fused_norm},
    [FRIT_OP_LAYER_NORM] = {FAST(layer_norm, frit_pieces_of_norm), .fused = frit_fused_norm},
    [FRIT_OP_ADD]        = {BY_SIZE(add), .fused = frit_fused_add},
    [FRIT_OP_MUL]        = {BY_SIZE(mul), .fused = frit_fused_mul},
    [FRIT_OP_SCALE]      = {BY_SIZE(scale), .fused = frit_fused_scale},
    [FRIT_OP_SOFTCAP]    = {BY_SIZE(softcap), .fused = frit_fused_softcap},
    [FRIT_OP_ACT]        = {BY_SIZE(act), .fused = frit_fused_act},
    [FRIT_OP_CLAMP]      = {BY_SIZE(clamp), .fused = frit_fused_clamp},
    [FRIT_OP_XIELU]      = {BY_SIZE(xielu), .fused = frit_fused_xielu},
    [FRIT_OP_GLU]        = {BY_SIZE(glu)},
    [FRIT_OP_SOFTMAX]    = {BY_SIZE(softmax)},
    [FRIT_OP_GAUSSIAN_TOPK]     = {BY_SIZE(gaussian_topk)},
    [FRIT_OP_RMS_MATCH]      = {BY_SIZE(rms_match)},
    [FRIT_OP_MIX_STREAMS]      = {BY_SIZE(mix_streams)},
    [FRIT_OP_HEADS]      = {STACKED(heads, frit_heads_pieces), .matrices = 1 << 1,
                            .workspace_bytes = stacked_workspace_bytes},
    [FRIT_OP_ROUTE]      = {FAST(route, frit_pieces_by_row), .workspace_bytes = route_workspace_bytes},
    [FRIT_OP_EXPERTS]    = {STACKED(experts, frit_experts_pieces), .matrices = 1 << 1,
                            .fits = frit_experts_fit, .workspace_bytes = stacked_workspace_bytes},
    [FRIT_OP_MIX]        = {BY_SIZE(mix)},
    [FRIT_OP_ROPE]       = {BY_SIZE(rope)},
    [FRIT_OP_KV_WRITE]   = {FAST(kv_write, frit_pieces_by_row), .workspace_bytes = kv_write_workspace_bytes},
    [FRIT_OP_ATTEND]     = {FAST(attend, frit_attend_pieces), .begin = frit_fast_kv_to_tiles,
                            .begin_pieces = frit_kv_to_tiles_pieces, .finish = frit_fast_attend_merge,
                            .finish_pieces = frit_attend_merge_pieces, .workspace_bytes = attend_workspace_bytes,
                            .shared_bytes = frit_attend_shared_bytes},
    [FRIT_OP_INDEX_WRITE] = {FAST(index_write, frit_pieces_by_row), .workspace_bytes = kv_write_workspace_bytes},
    [FRIT_OP_CHOOSE]     = {FAST(choose, frit_choose_pieces), .finish = frit_fast_choose_finish,
                            .finish_pieces = frit_choose_finish_pieces, .workspace_bytes = frit_choose_workspace_bytes,
                            .shared_bytes = frit_choose_shared_bytes},
    [FRIT_OP_ATTEND_SPARSE] = {FAST(attend_sparse, frit_attend_pieces), .begin = frit_fast_kv_to_tiles,
                             .begin_pieces = frit_kv_to_tiles_pieces, .finish = frit_fast_attend_merge,
                             .finish_pieces = frit_attend_merge_pieces, .workspace_bytes = attend_workspace_bytes,
                             .shared_bytes = frit_attend_shared_bytes},
    [FRIT_OP_CHOOSE_BLOCKS] = {.workspace_bytes = frit_ref_choose_blocks_workspace_bytes},
    [FRIT_OP_ATTEND_IN_BLOCKS] = {.workspace_bytes = frit_ref_attend_workspace_bytes},
    [FRIT_OP_ATTEND_BLOCKS] = {.workspace_bytes = frit_ref_attend_blocks_workspace_bytes},
    [FRIT_OP_ATTEND_RELATIVE] = {FAST(attend_relative, frit_attend_relative_pieces),
                             .workspace_bytes = frit_attend_relative_workspace_bytes},
    [FRIT_OP_ATTEND_UNCACHED] = {FAST(attend_uncached, frit_attend_uncached_pieces),
                            .workspace_bytes = frit_attend_uncached_workspace_bytes},
    [FRIT_OP_CONV]       = {FAST(conv, frit_conv_pieces), .workspace_bytes = frit_conv_workspace_bytes},
    [FRIT_OP_SCAN]       = {FAST(scan, frit_state_pieces), .workspace_bytes = frit_state_workspace_bytes},
    [FRIT_OP_DELTA]      = {FAST(delta, frit_state_pieces), .workspace_bytes = frit_state_workspace_bytes},
    [FRIT_OP_ADAPT_DOWN] = {FAST(adapt_down, frit_adapt_down_pieces), .linear = true, .own_input = true,
                            .fits = frit_adapt_down_fits, .workspace_bytes = frit_adapt_down_workspace_bytes},
    [FRIT_OP_ADAPT_UP]   = {FAST(adapt_up, frit_pieces_by_row)},
    [FRIT_OP_STEER]      = {FAST(steer, frit_pieces_by_row)},
    [FRIT_OP_EXPERTS_GLU] = {STACKED(experts_glu, frit_experts_pieces), .matrices = 1 << 1 | 1 << 2,
                             .fits = frit_experts_fit, .workspace_bytes = stacked_workspace_bytes},
    [FRIT_OP_EXPERTS_MIX] = {STACKED(experts_mix, frit_experts_mix_pieces), .matrices = 1 << 1,
                             .fits = frit_experts_fit, .workspace_bytes = experts_mix_workspace_bytes},
};
// clang-format on
