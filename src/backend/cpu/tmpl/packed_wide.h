// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_wide.h: for packed_codes_tmpl.h, how codes are where every product is added to words: those
// of eight bits have 128 added, and smaller ones are like them or like those of six.
#pragma once
#define LOW_CODES          0
#define WIDE(code)         ((code) + 128)
#define FROM_ZERO(shift)   NULL
#define ADDED(low, others) others
#define PIN(v)             (void)(v)
