// SPDX-License-Identifier: MIT
// backend/cpu/ops/fast.h: the kernels of ops.c that run on frit_kernels, and what exec.c must know of them.
#pragma once
#include "backend/cpu/task.h"

// Of ops that have them (ops.c): the kernel, and how it is applied to what another op has computed (frit_part_fn).
#define OP(NAME, name, ...)                                                                                   \
    void frit_fast_##name(const frit_task *task, frit_share share);                                           \
    void frit_part_##name(const frit_kernels *k, const frit_task_part *part, int64_t at, int64_t o, float *y, \
                          const float *x, int64_t n);
#include "graph/ops.def"
#undef OP

// fast_linear.c
int frit_linear_pieces(const frit_task *task);
// Rows of source 0 in task->form, to task->shared.
void frit_fast_convert(const frit_task *task, frit_share share);
// The form in which a linear op wants its source 0 for matrix source `i`.
frit_form frit_linear_form(const frit_kernels *kernels, const frit_node *node, int i);
size_t frit_linear_workspace_bytes(const frit_node *node);
size_t frit_glu_workspace_bytes(const frit_node *node);   // of a product with another one (task->up)

// fast_experts.c
int frit_experts_pieces(const frit_task *task);
int frit_experts_mix_pieces(const frit_task *task);
int frit_heads_pieces(const frit_task *task);
bool frit_experts_fit(const frit_node *node);
// Rows of source 0, in the kernels' forms, sorted by expert in task->forms: of stacked ops. What a node needs at most.
int64_t frit_sorted_rows(const frit_node *node);
size_t frit_dispatch_node_bytes(const frit_node *node);
void frit_fast_convert_sorted(const frit_task *task, frit_share share);
int frit_convert_sorted_pieces(const frit_task *task);
int frit_dispatch_and_convert_pieces(const frit_task *task);   // makes task->dispatch first
void frit_fast_convert_heads(const frit_task *task, frit_share share);

// fast_attend.c
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

// fast_state.c
int frit_conv_pieces(const frit_task *task);
int frit_state_pieces(const frit_task *task);   // heads of all sequences
size_t frit_conv_workspace_bytes(const frit_node *node);
size_t frit_state_workspace_bytes(const frit_node *node);

// fast_vector.c
void frit_fast_rows(const frit_task *task, frit_share share);   // a node and its parts, row by row
// Cosines and sines of every row's position, times magnitude, to task->shared; before all nodes that rotate alike.
void frit_fast_rope_table(const frit_task *task, frit_share share);
// The results of the step, x[0]: copied and checked for values that are not finite.
void frit_fast_results(const frit_task *task, frit_share share);
int frit_results_pieces(const frit_task *task);
size_t frit_rope_table_bytes(const frit_node *node);

// fast_vector.c: ops as parts of other tasks.
void frit_part_norm(const frit_kernels *k, const frit_task_part *part, int64_t at, int64_t o, float *y, const float *x,
                    int64_t n);
