// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_word_sums.h: macros of packed_tmpl.h for instruction sets that add every product to a 32-bit
// sum: 8-bit codes have 128 added, and types with smaller codes are biased like 8-bit or 6-bit codes.
#pragma once
#define INT16_SUMS        0
#define BIASED(code)      ((code) + 128)
#define FROM_ZERO(shift)  NULL
#define BIAS(low, others) others
#define PIN(v)            (void)(v)
