// SPDX-License-Identifier: MIT
// Activation functions by number of frit_act. graph/graph.h has the formulas.
#pragma once
#include "ptx.cuh"

#define ACT_SILU       0
#define ACT_GELU       1
#define ACT_GELU_TANH  2
#define ACT_GELU_QUICK 3
#define ACT_RELU       4
#define ACT_RELU2      5
#define ACT_SIGMOID    6
#define ACT_TANH       7
#define ACT_SOFTPLUS   8

DEVICE float sigmoid(float x)
{
    return __fdividef(1.f, 1 + exp2_fast(-1.4426950408889634f * x));
}

// The absolute error is far below 1, which also suffices for the softcap of scores.
DEVICE float tanh_of(float x)
{
    return 1 - __fdividef(2.f, 1 + exp2_fast(2.8853900817779268f * x));
}

template <int ACT> DEVICE float activate(float x)
{
    if (ACT == ACT_SILU) return x * sigmoid(x);
    if (ACT == ACT_GELU) return 0.5f * x * (1 + erff(x * 0.70710678118654752f));
    if (ACT == ACT_GELU_TANH) return x * sigmoid(1.5957691216057308f * (x + 0.044715f * x * x * x));
    if (ACT == ACT_GELU_QUICK) return x * sigmoid(1.702f * x);
    if (ACT == ACT_RELU) return x > 0 || x != x ? x : 0;
    if (ACT == ACT_RELU2) return x > 0 || x != x ? x * x : 0;
    if (ACT == ACT_SIGMOID) return sigmoid(x);
    if (ACT == ACT_TANH) return tanh_of(x);
    return fmaxf(x, 0) + log1pf(exp2_fast(-1.4426950408889634f * fabsf(x)));   // ACT_SOFTPLUS
}
