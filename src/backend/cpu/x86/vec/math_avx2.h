// SPDX-License-Identifier: MIT
// backend/cpu/x86/vec/math_avx2.h: exponential, hyperbolic tangent and activation functions of eight floats.
#pragma once
#include "backend/cpu/x86/floats_avx2.h"

#include "backend/cpu/tmpl/math_tmpl.h"
