// SPDX-License-Identifier: MIT
// backend/cpu/lower.h: makes an executable of a plan. Private to lower*.c.
//
//     lower.c           phases to actions
//     lower_inputs.c    activation inputs (act_input.h), and the fusions that compute them
//     lower_memory.c    sizes and addresses of all memory
#pragma once
#include "backend/cpu/exec.h"
#include "backend/cpu/pack/matrix.h"
#include "format/rows.h"

enum { FRIT_NONE = -1 };

typedef struct input_info {   // an activation input during lowering
    int first, last;          // phases in which its buffer is used
    int producer;             // the fusion that computes it with its result, or FRIT_NONE
    int buffer;
} input_info;

typedef struct input_buffer {   // memory of inputs with disjoint lifetimes
    frit_form form;
    uint64_t offset, n_bytes;
    int last;   // phase
} input_buffer;

typedef struct fusion_info {
    int n_reads, n_produced;   // reads of the result; reads by products in a form that the fusion computes
    int root[2];               // epilogues: the products that they continue
    int last_action;           // products: their action, or the action of their last epilogue so far
    int64_t unit;              // products that are continued: the elements of a head
    bool stores_sum;           // a sum in a prologue that no product stores for others yet
} fusion_info;

// Rows sorted by expert, or the dispatch of a route. Later phases reuse the memory.
typedef struct sorted_rows {
    uint64_t offset, n_bytes;
    const frit_node *rows, *route;   // current contents: source and route
    bool busy;                       // read or written since the last barrier
} sorted_rows;

typedef struct rope_table {   // cosines and sines of every row, for all ROPE nodes with one rotation
    const frit_node *first;
    int fusion;   // fusion of `first`
    uint64_t offset, n_bytes;
} rope_table;

typedef struct lowering {
    frit_cpu_device *device;
    frit_plan *plan;
    frit_exec *exec;
    fusion_info *infos;   // [n_fusions]
    input_info *inputs;   // [exec->n_inputs]
    input_buffer *buffers;
    rope_table *ropes;
    int n_buffers, n_ropes, n_ups, n_exchanges;
    uint64_t n_bytes;   // all memory so far
    uint64_t per_thread_bytes[FRIT_FORM_COUNT], thread_row_bytes;
    uint64_t per_thread_offsets[FRIT_FORM_COUNT];
    uint64_t shared_offset, shared_bytes;
    bool shared_busy, ropes_busy;   // read or written since the last barrier
    sorted_rows sorted[FRIT_FORM_COUNT], dispatch;
} lowering;

static inline const frit_fusion *frit_lower_fusion(const lowering *l, int k)
{
    return &l->plan->phases.fusions[k];
}

static inline uint64_t frit_align(uint64_t n_bytes)
{
    return (n_bytes + FRIT_CPU_ALIGN - 1) / FRIT_CPU_ALIGN * FRIT_CPU_ALIGN;
}

static inline void frit_widen(uint64_t *n_bytes, uint64_t at_least)
{
    if (*n_bytes < at_least) *n_bytes = at_least;
}

// lower.c
const frit_task_env *frit_lower_env(const lowering *l, const frit_node *node);
bool frit_lower_runs_fast(const lowering *l, const frit_node *node);
bool frit_lower_is_product(const lowering *l, const frit_node *node);   // a product of its rows and matrices
// True if the node reads source 0 in the form of source i, a matrix or an ADAPT_DOWN.
bool frit_lower_asks_form(const frit_node *node, int i);
const float *frit_lower_activations(const lowering *l, const frit_node *read);
rope_table *frit_lower_find_rope(lowering *l, const frit_node *node);
// Forms of rows sorted by matrix: of the decode kernels, and of the node's kernels.
void frit_lower_stack_forms(const lowering *l, const frit_node *node, frit_form forms[2]);

// lower_inputs.c
void frit_lower_list_inputs(lowering *l);
void frit_lower_point_inputs(lowering *l);   // after frit_lower_memory
// The forms in which a product reads the rows that its matrix source i multiplies: of the plan's class, then, if it
// differs, of decode rows in a step that mixes row classes. Returns the number of forms.
int frit_lower_forms(const lowering *l, const frit_node *node, int i, frit_form forms[2]);
// The input of a product in this form; NULL: it reads its rows in f32.
const frit_act_input *frit_lower_find_input(const lowering *l, const frit_node *node, frit_form form);
// Sets the inputs that a task of fusion k reads, and the forms of its result that it computes for others.
void frit_lower_set_inputs(const lowering *l, int k, frit_task *task);

// lower_memory.c
void frit_lower_measure(lowering *l);   // sizes of all memory, at the largest number of rows
frit_status frit_lower_memory(lowering *l, int n_threads);
