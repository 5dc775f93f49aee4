// SPDX-License-Identifier: MIT
// backend/cpu/wasm/math_simd128.h: exponential, hyperbolic tangent and activation functions of four numbers.
#pragma once
#include "backend/cpu/wasm/floats_simd128.h"

#include "backend/cpu/tmpl/math_tmpl.h"
