// SPDX-License-Identifier: MIT
// Products of packed weights with AVX-VNNI: a register holds a word of eight rows.
#include "backend/cpu/x86/vec/vec_avx2.h"

static const char isa[] = "avxvnni";

FRIT_INLINE vec dot(vec sum, vec codes, x_quads x, int i)
{
    return _mm256_dpbusd_avx_epi32(sum, codes, all_words(x + 4 * i));
}

FRIT_INLINE vec dot_loaded(vec sum, vec codes, vec x)
{
    return _mm256_dpbusd_avx_epi32(sum, codes, x);
}

FRIT_INLINE vec open_wide(vec codes)
{
    return codes;
}

FRIT_INLINE vec start_wide(const int32_t *minus_128)
{
    return all_words(minus_128);
}

FRIT_INLINE vec dot_wide(vec sum, vec codes, x_quads x, int i)
{
    return dot(sum, codes, x, i);
}

#include "backend/cpu/tmpl/packed_dots_tmpl.h"

#include "backend/cpu/x86/kept_vnni_tmpl.h"
#include "backend/cpu/tmpl/packed_rows.h"
#include "backend/cpu/tmpl/packed_tmpl.h"

// Twelve chains, enough for two products a cycle; the codes change to keep a compiler from multiplying once.
static double probe_int8(int64_t n_rounds, int32_t *sink)
{
    vec codes = same_words(*sink), sums[12];
    for (int i = 0; i < 12; i++) sums[i] = all_bytes(i);
    for (int64_t r = 0; r < n_rounds; r++) {
        FRIT_UNROLL(48)
        for (int i = 0; i < 48; i++) sums[i % 12] = _mm256_dpbusd_avx_epi32(sums[i % 12], codes, codes);
        codes = add_bytes(codes, codes);
    }
    for (int i = 1; i < 12; i++) sums[0] = flip(sums[0], add_bytes(sums[i], all_bytes(i)));
    *sink ^= _mm256_extract_epi32(sums[0], 0);
    return (double)n_rounds * 48 * 32 * 2;
}

void frit_install_avxvnni(frit_kernels *k)
{
    install(k);
    k->probe_int8 = probe_int8;
}
