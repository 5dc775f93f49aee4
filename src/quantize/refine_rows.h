// SPDX-License-Identifier: MIT
// quantize/refine_rows.h: rounds a matrix again with the covariance of its inputs, in its type and with its scales.
//
// An encoder with importance rounds each number to the nearest level, as if errors of columns were independent. If
// inputs are correlated, the error of one column can compensate that of another. A row with the error e costs e H e^T,
// where H is the covariance plus 1 % of its mean diagonal:
//
//     1. The target is the row that is best for the inputs in the quantized model. It compensates half (alpha) of the
//        errors of earlier layers: w + alpha H^-1 D w. D is the covariance between these inputs (rows) and their
//        differences to the inputs in the original model.
//     2. Columns are rounded one by one, and each compensates the errors before it (GPTQ, LDLQ): with H = U D U^T and U
//        unit triangular, column k aims at w[k] + sum of e[j] U[j, k] over j < k.
//     3. Coordinate descent, some rounds: each code gets its best value while the others stay. Then each group takes
//        the adjacent scale and min that is best with newly rounded codes. Then d and dmin of each super-block follow.
//
// If codes are rows of a grid, steps 2 and 3 round eight columns together (refine_eight.h).
//
// Rows are independent, so results do not depend on the number of threads.
#pragma once
#include "base/thread/thread.h"
#include "quantize/dense.h"
#include "quant/block_format.h"

enum { FRIT_REFINE_TILES_FROM = 1024 };

// The matrices of frit_refine_input in tiles of bfloat16 (quantize/dense.h), if the processor has tiles and rows are
// long. NULL: not in tiles.
typedef struct frit_refine_tiles {
    uint8_t *sums, *cross, *held, *held_cross;
    uint64_t n_bytes;   // of each matrix
} frit_refine_tiles;

typedef struct frit_refine_input {
    frit_dense dense;
    int64_t width;
    const float *sums;                // [width, width]: H without the added 1 %
    const float *cross;               // D; NULL: no compensation
    const float *held, *held_cross;   // like sums and cross, of held-out tokens; NULL: results are not compared
    float alpha;                      // strength of the compensation
    int rounds;                       // rounds of the descent
    float damping;                    // added to the diagonal; set by frit_refine_factor
    float *factor;                    // [width, width]: U and its transpose
    float *diagonal;                  // [width]: D
    frit_refine_tiles tiles;
    int64_t tiles_from;   // shortest rows that use tiles; 0: FRIT_REFINE_TILES_FROM
    // Called with cross, held and held_cross when they are in tiles, which take half the memory. The matrices become
    // NULL here. NULL: they stay.
    void (*drop)(void *ctx, const float *matrix);
    void *drop_ctx;
} frit_refine_input;

// Computes U and D, and makes tiles. frit_refine_input_free frees them.
frit_status frit_refine_factor(frit_refine_input *input, frit_pool *pool);
void frit_refine_input_free(frit_refine_input *input);

typedef struct frit_refine_rows {
    frit_dtype type;          // with a block format (quant/block_format.h)
    const float *weights;     // [n, width]
    const uint8_t *initial;   // the encoder's blocks
    uint8_t *blocks;          // the result
    int64_t n;
    double change;   // of the squared error on held-out tokens; below 0: better
} frit_refine_rows;

frit_status frit_refine_run(const frit_refine_input *input, frit_refine_rows *rows, frit_pool *pool);
