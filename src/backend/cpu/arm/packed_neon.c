// SPDX-License-Identifier: MIT
// Products of packed weights with NEON: a register holds a word of four rows.
#include "backend/cpu/arm/neon.h"
#include "backend/cpu/arm/vec_neon.h"

#define MAX_TOKENS     4
#define MAX_TOKENS_G16 4
#define BLOCK_SUMS     768
#define TOKEN_GROUP    1
#define DIRECT_TOKENS  2
#define ACCUMULATORS   1

static const char isa[] = "neon";

typedef const int8_t *x_quads;

FRIT_INLINE x_quads four_quads(const int8_t *p)
{
    return p;
}

// Two products fit an int16: at most 2 * 128 * 127.
FRIT_INLINE vec dot(vec sum, vec codes, x_quads x, int i)
{
    const int8x16_t a = signed_bytes(codes), b = signed_bytes(broadcast_word(x + 4 * i));
    const int16x8_t pairs = vpaddq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)), vmull_high_s8(a, b));
    return vreinterpretq_u32_s32(vpadalq_s16(signed_words(sum), pairs));
}

FRIT_INLINE vec dot_int8(vec sum, vec codes, x_quads x, int i)
{
    return dot(sum, codes, x, i);
}

#include "backend/cpu/tmpl/packed_dots_tmpl.h"

#include "backend/cpu/tmpl/packed_tile_tmpl.h"
#include "backend/cpu/tmpl/packed_types.h"
#include "backend/cpu/tmpl/packed_tmpl.h"

void frit_install_neon_packed(frit_kernels *k)
{
    install(k);
}
