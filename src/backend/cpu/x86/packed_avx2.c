// SPDX-License-Identifier: MIT
// Products of packed weights with AVX2: a register holds a word of eight rows.
#include "backend/cpu/x86/vec/avx2.h"
#include "backend/cpu/x86/vec/vec_avx2.h"

// Makes the compiler compute v here. Otherwise it reorders sums and codes and spills registers.
FRIT_INLINE void pin(vec *v)
{
    __asm__("" : "+x"(*v));
}

// Spills v to memory here. Otherwise the compiler keeps it in a register and reloads the codes for each token.
FRIT_INLINE void leave_in_memory(vec *v)
{
    __asm__("" : "+m"(*v));
}

#define INT16_SUMS        1
#define BIASED(code)      ((uint8_t)(code))
#define FROM_ZERO(shift)  shift
#define BIAS(low, others) low
#define PIN               pin

static const char isa[] = "avx2";

FRIT_INLINE vec add_int16_pairs(vec sum, vec pairs)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

// The sums of pairs fit int16: 8 * 2 * 15 * 128, 4 * 2 * 31 * 128 and 2 * 2 * 63 * 128 are below 2^15.
#define QUADS_4BIT 8
#define QUADS_5BIT 4
#define QUADS_6BIT 2

// Products of n quads, added as pairs of int16. Codes are below 128.
FRIT_INLINE vec pairs_of(const vec *codes, x_quads x, int i, int n)
{
    vec pairs = _mm256_maddubs_epi16(codes[0], broadcast_in_order(x + 4 * i));
    FRIT_UNROLL(8)
    for (int q = 1; q < n; q++) {
        pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(codes[q], broadcast_in_order(x + 4 * (i + q))));
        keep_order(&pairs);
    }
    return pairs;
}

FRIT_INLINE vec dots_of(vec sum, const vec *codes, x_quads x, int i, int n)
{
    return add_int16_pairs(sum, pairs_of(codes, x, i, n));
}

// Bytes i and j of each word, zero-extended, as two int16.
FRIT_INLINE vec bytes_to_int16(vec v, int i, int j)
{
    const __m128i bytes = _mm_setr_epi8(0, -1, 0, -1, 4, -1, 4, -1, 8, -1, 8, -1, 12, -1, 12, -1);
    const __m128i from = _mm_add_epi8(bytes, _mm_set1_epi32(i | j << 16));
    return _mm256_shuffle_epi8(v, _mm256_broadcastsi128_si256(from));
}

FRIT_INLINE vec as_words(vec_f bits)
{
    return _mm256_castps_si256(bits);
}

FRIT_INLINE vec dot_int16(vec a, vec b)   // a[2 i] * b[2 i] + a[2 i + 1] * b[2 i + 1] of int16
{
    return _mm256_madd_epi16(a, b);
}

FRIT_INLINE vec bias_to_signed(vec codes)   // signed already
{
    return codes;
}

FRIT_INLINE vec start_int8(const int32_t *minus_128)
{
    (void)minus_128;
    return zero();
}

// |codes| times x with the signs of the codes, because maddubs needs one unsigned factor.
FRIT_INLINE vec dot_int8_by(vec sum, vec codes, vec x)
{
    return add_int16_pairs(sum, _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(x, codes)));
}

FRIT_INLINE vec dot_int8(vec sum, vec codes, x_quads x, int i)
{
    return dot_int8_by(sum, codes, broadcast_in_order(x + 4 * i));
}

#include "backend/cpu/x86/packed_tile_avx2_tmpl.h"
#include "backend/cpu/tmpl/packed_types.h"
#include "backend/cpu/tmpl/packed_tmpl.h"

void frit_install_avx2_packed(frit_kernels *k)
{
    install(k);
}
