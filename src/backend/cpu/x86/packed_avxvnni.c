// SPDX-License-Identifier: MIT
// Products of packed weights with AVX-VNNI: a register holds a word of eight rows.
#include "backend/cpu/x86/vec/vec_avx2.h"

static const char isa[] = "avxvnni";

FRIT_INLINE vec dot(vec sum, vec codes, x_quads x, int i)
{
    return _mm256_dpbusd_avx_epi32(sum, codes, broadcast_word(x + 4 * i));
}

FRIT_INLINE vec dot_loaded(vec sum, vec codes, vec x)
{
    return _mm256_dpbusd_avx_epi32(sum, codes, x);
}

FRIT_INLINE vec bias_to_signed(vec codes)
{
    return codes;
}

FRIT_INLINE vec start_int8(const int32_t *minus_128)
{
    return broadcast_word(minus_128);
}

FRIT_INLINE vec dot_int8(vec sum, vec codes, x_quads x, int i)
{
    return dot(sum, codes, x, i);
}

#include "backend/cpu/tmpl/packed_dots_tmpl.h"

#include "backend/cpu/x86/packed_tile_vnni_tmpl.h"
#include "backend/cpu/tmpl/packed_types.h"
#include "backend/cpu/tmpl/packed_tmpl.h"

// Twelve accumulators keep two products a cycle busy. The codes change so that the compiler cannot hoist the products.
static double probe_int8(int64_t n_rounds, int32_t *sink)
{
    vec codes = splat_words(*sink), sums[12];
    for (int i = 0; i < 12; i++) sums[i] = splat_bytes(i);
    for (int64_t r = 0; r < n_rounds; r++) {
        FRIT_UNROLL(48)
        for (int i = 0; i < 48; i++) sums[i % 12] = _mm256_dpbusd_avx_epi32(sums[i % 12], codes, codes);
        codes = add_bytes(codes, codes);
    }
    for (int i = 1; i < 12; i++) sums[0] = bit_xor(sums[0], add_bytes(sums[i], splat_bytes(i)));
    *sink ^= _mm256_extract_epi32(sums[0], 0);
    return (double)n_rounds * 48 * 32 * 2;
}

void frit_install_avxvnni(frit_kernels *k)
{
    install(k);
    k->probe_int8 = probe_int8;
}
