// SPDX-License-Identifier: MIT
// gpu_prompt.h: whole prompts on a model of gpu_model.h: norms, products by cuBLASLt, attention, the cache, and the
// logits of the last token of each sequence.
#pragma once
#include "backend/cuda/ops/gemm_cublas.h"
#include "gpu_model.h"

enum { PROMPT_PRODUCTS = 4 };   // qkv, o, gate-up, down

typedef struct prompt {
    model *m;
    const frit_cublaslt *blas;
    int n_rows, n_tiles;                             // rows of all sequences; row tiles of attention
    frit_cuda_matmul products[PROMPT_PRODUCTS][2];   // [1]: layers whose v and down are of the other type
    frit_cublaslt_product prepared[PROMPT_PRODUCTS];
    frit_cuda_kernel embed, norm, heads, attend, glu, take;
    uint64_t x, a, qkv, q, gate_up, h, scratch, workspace, rope;   // a: 16-bit input of products
    uint64_t tokens, positions, seqs, tiles, lasts, last_x;
} prompt;

// Makes a prompt with one sequence for each row of the model, of lengths[row] tokens from position 0 on. tokens:
// [row][stride].
void prompt_open(bench *b, prompt *p, model *m, const frit_cublaslt *blas, const int *lengths, const int *tokens,
                 int stride);
void prompt_close(bench *b, prompt *p);
void prompt_record(bench *b, void *p);   // a record_fn; ends with the model's logits
