// SPDX-License-Identifier: MIT
// quant/hadamard.h: the Hadamard transform, which spreads every number over its whole block.
//
// Each block of `block` numbers, a power of two, is multiplied by the symmetric matrix whose elements are
// +-1 / sqrt(block). The matrix is its own inverse, so lengths and dot products are preserved, and applying it twice
// restores the numbers. An outlier is spread over many numbers, which a block with one scale rounds more precisely.
#pragma once
#include <stdint.h>

void frit_hadamard(float *x, int64_t n, int32_t block);   // n: a multiple of block
