// SPDX-License-Identifier: MIT
// backend/cpu/ops/fast.h: the kernels of ops.c that run on frit_kernels, and the sizes and pieces that exec.c needs.
#pragma once
#include "backend/cpu/task.h"

// The kernel of an op, and its form that is applied to another op's result (frit_fused_fn). ops.c lists which ops have
// which.
#define OP(NAME, name, ...)                                                                                      \
    void frit_fast_##name(const frit_task *task, frit_share share);                                              \
    void frit_fused_##name(const frit_kernels *k, const frit_fused_node *fused, int64_t at, int64_t o, float *y, \
                           const float *x, int64_t n);
#include "graph/ops.def"
#undef OP

// fast_linear.c
int frit_linear_pieces(const frit_task *task);
// Converts rows of source 0 to task->form, in task->shared.
void frit_fast_convert(const frit_task *task, frit_share share);
// The form of source 0 that a linear op reads for matrix source `i`.
frit_form frit_linear_form(const frit_kernels *kernels, const frit_node *node, int i);
size_t frit_linear_workspace_bytes(const frit_node *node);
size_t frit_glu_workspace_bytes(const frit_node *node);   // for a product with a second matrix (task->up)

// fast_experts.c
int frit_experts_pieces(const frit_task *task);
int frit_experts_mix_pieces(const frit_task *task);
int frit_heads_pieces(const frit_task *task);
bool frit_experts_fit(const frit_node *node);
// Stacked ops: the most rows of source 0 that are sorted by expert into task->forms, in the kernels' forms.
int64_t frit_sorted_rows(const frit_node *node);
size_t frit_dispatch_node_bytes(const frit_node *node);
void frit_fast_convert_sorted(const frit_task *task, frit_share share);
int frit_convert_sorted_pieces(const frit_task *task);
int frit_dispatch_and_convert_pieces(const frit_task *task);   // fills task->dispatch first
void frit_fast_convert_heads(const frit_task *task, frit_share share);

// attend.c
void frit_fast_kv_to_tiles(const frit_task *task, frit_share share);
void frit_fast_attend_merge(const frit_task *task, frit_share share);
int frit_kv_to_tiles_pieces(const frit_task *task);
int frit_attend_pieces(const frit_task *task);
int frit_attend_merge_pieces(const frit_task *task);
size_t frit_attend_workspace_bytes(const frit_node *node);
size_t frit_attend_shared_bytes(const frit_node *node, const frit_kernels *kernels);

// fast_choose.c
void frit_fast_choose_finish(const frit_task *task, frit_share share);
int frit_choose_pieces(const frit_task *task);
int frit_choose_finish_pieces(const frit_task *task);
size_t frit_choose_workspace_bytes(const frit_node *node);
size_t frit_choose_shared_bytes(const frit_node *node, const frit_kernels *kernels);

// fast_encoder.c
int frit_attend_uncached_pieces(const frit_task *task);
size_t frit_attend_uncached_workspace_bytes(const frit_node *node);

// fast_state.c
int frit_conv_pieces(const frit_task *task);
int frit_attend_relative_pieces(const frit_task *task);
size_t frit_attend_relative_workspace_bytes(const frit_node *node);
int frit_state_pieces(const frit_task *task);   // heads of all sequences
size_t frit_conv_workspace_bytes(const frit_node *node);
size_t frit_state_workspace_bytes(const frit_node *node);

// fast_vector.c
void frit_fast_rows(const frit_task *task, frit_share share);   // a node and those fused into it, row by row
// Writes cosines and sines of every row's position, times magnitude, to task->shared, for all nodes with one rotation.
void frit_fast_rope_table(const frit_task *task, frit_share share);
// Copies the results of the step, x[0], and checks that they are finite.
void frit_fast_results(const frit_task *task, frit_share share);
int frit_results_pieces(const frit_task *task);
size_t frit_rope_table_bytes(const frit_node *node);

// fast_vector.c: ops that are fused into other tasks.
void frit_fused_norm(const frit_kernels *k, const frit_fused_node *fused, int64_t at, int64_t o, float *y,
                     const float *x, int64_t n);
