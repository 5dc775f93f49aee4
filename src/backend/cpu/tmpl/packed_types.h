// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_types.h: the types of packed.def, for packed_tmpl.h.
#pragma once
#define PACKED_TYPES         "backend/cpu/pack/packed.def"
#define PACKED_LAYOUT(dtype) frit_interleave_get(dtype)
