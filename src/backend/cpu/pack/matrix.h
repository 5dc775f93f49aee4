// SPDX-License-Identifier: MIT
// backend/cpu/pack/matrix.h: a matrix of the model, or a stack of them, with the kernel that multiplies it: packed, in
// place, or decoded to f32 a few rows at a time.
//
//     uint8_t *workspace = frit_task_workspace(task, share);         // frit_matrix_workspace_bytes
//     frit_matrix m = frit_matrix_open(kernels, tensor, task->w[1], workspace);
//     frit_matrix_multiply(&m, o, n_w, x, n_x, y, y_stride);         // x in the form m.form
#pragma once
#include "backend/cpu/task.h"

enum {
    FRIT_MATRIX_TOKENS = 512,          // most tokens that are multiplied at once
    FRIT_MATRIX_UNPACKED_ROWS = 128,   // rows of weights in one call of a kernel that unpacks
};

typedef struct frit_matrix {
    frit_product_kernel kernel;
    frit_form form;
    const uint8_t *w;           // NULL: the matrices of the stack are at separate addresses
    const frit_tensor *stack;   // used if w is NULL
    size_t row_bytes, w_stride, x_stride;
    int64_t n_in;
    int64_t end;   // the thread will multiply the rows up to this one next; 0: unknown
    frit_dtype dtype;
    bool in_order;      // frit_product.in_order
    bool unpacks;       // the kernel blocks its work itself
    float *decoded;     // a few rows, if no kernel reads the type
    uint8_t *scratch;   // for kernels that unpack
    const frit_product_kernel *f32;
} frit_matrix;

// The form of activations that a tensor's kernel reads.
frit_form frit_matrix_form(const frit_kernels *kernels, const frit_tensor *tensor);
frit_matrix frit_matrix_open(const frit_kernels *kernels, const frit_tensor *tensor, const uint8_t *w,
                             uint8_t *workspace);
// Bytes of a thread's workspace for rows of n_in elements: scratch of the kernels, then results.
size_t frit_matrix_workspace_bytes(int64_t n_in);
float *frit_matrix_results(uint8_t *workspace);   // [FRIT_MATRIX_TOKENS, FRIT_MATRIX_UNPACKED_ROWS]
// Tokens whose activations stay in the L2 cache.
int64_t frit_matrix_block_tokens(const frit_matrix *m);
// y[j * y_stride + i] = dot(row o + i of the matrix, row j of x). For packed matrices o is a multiple of 16.
void frit_matrix_multiply(const frit_matrix *m, int64_t o, int64_t n_w, const uint8_t *x, int64_t n_x, float *y,
                          size_t y_stride);
