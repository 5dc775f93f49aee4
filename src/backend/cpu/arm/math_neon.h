// SPDX-License-Identifier: MIT
// backend/cpu/arm/math_neon.h: exponential, hyperbolic tangent and activation functions of four numbers.
#pragma once
#include "backend/cpu/arm/floats_neon.h"

#include "backend/cpu/tmpl/math_tmpl.h"
