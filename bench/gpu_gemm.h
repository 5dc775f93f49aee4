// SPDX-License-Identifier: MIT
// gpu_gemm.h: the products of an 8B model, which the measurements of gemms take, and the types of their weights.
#pragma once
#include "gpu.h"

// clang-format off
static const struct shape { const char *name; int n_rows, k; } shapes[] = {
    {"8b qkv",     6144,  4096},
    {"8b o",       4096,  4096},
    {"8b gate-up", 28672, 4096},
    {"8b down",    4096, 14336},
    {"8b head",  128256,  4096},
};

static const frit_dtype types[] = {FRIT_DTYPE_Q4_K, FRIT_DTYPE_Q6_K, FRIT_DTYPE_Q8_0, FRIT_DTYPE_BF16};
// clang-format on
