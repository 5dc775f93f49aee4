// SPDX-License-Identifier: MIT
// Cosine and sine of a rotation.
#pragma once
#include "ptx.cuh"

// Computed in double, because a float angle loses its fraction at large positions.
DEVICE float2 rotation_of(int position, double frequency, float magnitude)
{
    const double cycles = position * frequency * 0.15915494309189535;
    const float angle = (float)(cycles - floor(cycles)) * 2;   // in units of pi
    float sine, cosine;
    sincospif(angle, &sine, &cosine);
    return make_float2(cosine * magnitude, sine * magnitude);
}
