// SPDX-License-Identifier: MIT
// Cosine and sine of a rotation.
#pragma once
#include "ptx.cuh"

// In double: at large positions a float angle has lost its fraction.
DEVICE float2 turn_of(int position, double frequency, float magnitude)
{
    const double turns = position * frequency * 0.15915494309189535;
    const float angle = (float)(turns - floor(turns)) * 2;   // in half turns
    float sine, cosine;
    sincospif(angle, &sine, &cosine);
    return make_float2(cosine * magnitude, sine * magnitude);
}
