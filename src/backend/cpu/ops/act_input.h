// SPDX-License-Identifier: MIT
// backend/cpu/ops/act_input.h: activation inputs: the rows that products multiply, in the form that their kernels read.
//
// The source of an input and the number of rows decide which thread computes it. Up to FRIT_PER_THREAD_ROWS rows are
// "per thread":
//
//     the prologue of a phase (graph/phase.h)   per thread: each thread for itself, when it first needs the rows; the
//                                               thread of the first piece stores a sum for later readers. More rows:
//                                               all threads by rows, before the products
//     a norm or a sum that others read too      the thread that computes a row
//     a product with fused nodes                the thread that computes 32 columns
//     any other source                          per thread: each thread for itself. More rows: all threads by rows,
//                                               before the products
//
// For few rows a barrier costs more than the redundant work. Rows that a thread computes for itself are in its
// workspace and valid for the step. The values do not depend on the thread that computed them.
#pragma once
#include "backend/cpu/task.h"

typedef struct frit_act_norm {   // a norm and its vectors
    const frit_node *node;       // NULL: no norm
    const float *w, *b;          // its weight and bias, or NULL
} frit_act_norm;

// The rows of the source that an input has. Decode rows and prefill rows have separate inputs if their kernels read
// different forms. Row 0 of an input is the first row of its class.
typedef enum frit_act_rows { FRIT_ACT_ALL, FRIT_ACT_DECODE, FRIT_ACT_PREFILL } frit_act_rows;

struct frit_act_input {
    const frit_node *source;   // the product's source 0: its rows and their width
    frit_act_norm norm;        // applied to x
    frit_act_norm sum;         // if set, x is residual + this norm of summand, computed instead of read
    const frit_task_env *env;
    const float *x, *summand, *residual;
    float *stored;   // the sum in memory, for later readers of x
    frit_form form;
    frit_act_rows kind;
    uint8_t *rows;              // for all threads
    bool is_per_thread;         // threads may compute the rows for themselves
    size_t per_thread_offset;   // offset after frit_thread_inputs
    uint32_t id;                // index in the list, from 1
};

// The part of a workspace that survives a task. Scratch for two f32 rows follows.
typedef struct frit_thread_inputs {
    uint64_t computed[FRIT_FORM_COUNT];   // run << 32 | input; anything else is stale
    uint8_t unused[128 - FRIT_FORM_COUNT * 8 % 128];
} frit_thread_inputs;

float *frit_thread_row(const frit_task_env *env, int thread);

// True if threads compute this step's rows for themselves.
bool frit_act_input_is_per_thread(const frit_act_input *input);
// The rows of this step's source that the input has.
frit_range frit_act_input_range(const frit_act_input *input);
// Address of row t of the source; NULL: the input does not have it.
uint8_t *frit_act_input_row(const frit_act_input *input, int64_t t);
// The rows, for products on thread share.thread.
const uint8_t *frit_act_input_rows(const frit_act_input *input, int thread);
// Stores the sum of the input's rows for its later readers.
void frit_act_input_store_sum(const frit_act_input *input);
// y = the norm of row x.
void frit_norm_row(const frit_kernels *kernels, const frit_node *norm, float *y, const float *x, const float *w,
                   const float *b);
