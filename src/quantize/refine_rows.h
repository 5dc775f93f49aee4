// SPDX-License-Identifier: MIT
// quantize/refine_rows.h: rounding a matrix with the whole covariance of its inputs, in its type and with its scales.
//
// An encoder with importance rounds each number to the nearest level: errors in two columns count by themselves. But
// where inputs belong together, the error of one column can take back that of another. For a row with the error e
// what counts is e H e^T, H being the covariance plus 1 % of its mean diagonal:
//
//     1. The target: what the row should be for the inputs as the quantized model has them, where half (alpha) of the
//        errors that earlier layers have made is taken back: w + alpha H^-1 D w, with D the covariance between these
//        inputs (rows) and what those of the model itself differ by.
//     2. Column by column, each is rounded to make up for the errors of those before it (GPTQ, LDLQ): with H = U D U^T,
//        U triangular with ones on its diagonal, column k aims at w[k] + sum of e[j] U[j, k] over j < k.
//     3. Coordinate descent, some rounds: each code in turn becomes what is best while all others stay; then each group
//        takes the neighbouring scale and min with which, its codes rounded anew, it is best; then d and dmin of each
//        super-block.
//
// Where codes are rows of a grid, eight columns take the place of one in 2 and 3 (refine_eight.h).
//
// Rows do not depend on each other, so results do not depend on the number of threads.
#pragma once
#include "base/thread/thread.h"
#include "quantize/dense.h"
#include "quant/block_format.h"

enum { FRIT_REFINE_TILES_FROM = 1024 };

// The matrices in tiles of bfloat16 (quantize/dense.h), where the processor has these and rows are long: what rows are
// multiplied by, but for the factor. NULL: not in tiles.
typedef struct frit_refine_tiles {
    uint8_t *sums, *cross, *held, *held_cross;
    uint64_t n_bytes;   // of each
} frit_refine_tiles;

typedef struct frit_refine_input {
    frit_dense dense;
    int64_t width;
    const float *sums;                // [width, width]: H without the 1 %
    const float *cross;               // D; NULL: no compensation
    const float *held, *held_cross;   // the same of tokens that are held out, to compare by; NULL: not compared
    float alpha;                      // of the compensation
    int rounds;                       // of the descent
    float damping;                    // what is added to the diagonal; frit_refine_factor sets it
    float *factor;                    // [width, width]: U and its transpose
    float *diagonal;                  // [width]: D
    frit_refine_tiles tiles;
    int64_t tiles_from;   // the shortest rows that use tiles; 0: FRIT_REFINE_TILES_FROM
    // Called with cross, held and held_cross when they are in tiles, which take half as much memory: they are not read
    // again, and become NULL here. NULL: they stay.
    void (*drop)(void *ctx, const float *matrix);
    void *drop_ctx;
} frit_refine_input;

// Finds U and D, and makes tiles; frees nothing, and frit_refine_input_free frees them.
frit_status frit_refine_factor(frit_refine_input *input, frit_pool *pool);
void frit_refine_input_free(frit_refine_input *input);

typedef struct frit_refine_rows {
    frit_dtype type;        // with a format (quant/block_format.h)
    const float *weights;   // [n, width]
    const uint8_t *start;   // rows of blocks: the encoder's
    uint8_t *blocks;        // the result
    int64_t n;
    double change;   // of the squared error of results over the tokens that are held out: below 0 is better
} frit_refine_rows;

frit_status frit_refine_run(const frit_refine_input *input, frit_refine_rows *rows, frit_pool *pool);
