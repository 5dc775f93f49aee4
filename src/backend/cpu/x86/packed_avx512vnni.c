// SPDX-License-Identifier: MIT
// Products of packed weights with AVX-512 VNNI: a register holds a word of sixteen rows.
#include "backend/cpu/x86/dot_avx512vnni.h"
#include "backend/cpu/tmpl/packed_dots_tmpl.h"
#include "backend/cpu/x86/packed_tile_vnni_tmpl.h"

static const char isa[] = "avx512vnni";

#include "backend/cpu/tmpl/packed_types.h"
#include "backend/cpu/tmpl/packed_tmpl.h"

// Twelve accumulators keep two products a cycle busy. The codes change so that the compiler cannot hoist the products.
static double probe_int8(int64_t n_rounds, int32_t *sink)
{
    int32_t x = *sink;
    vec codes = _mm512_set1_epi32(x), sums[12];
    for (int i = 0; i < 12; i++) sums[i] = splat_bytes(i);
    for (int64_t r = 0; r < n_rounds; r++) {
        FRIT_UNROLL(48)
        for (int i = 0; i < 48; i++) sums[i % 12] = _mm512_dpbusd_epi32(sums[i % 12], codes, codes);
        codes = _mm512_add_epi8(codes, codes);
    }
    for (int i = 1; i < 12; i++) sums[0] = bit_xor(sums[0], add_bytes(sums[i], splat_bytes(i)));
    *sink ^= _mm512_reduce_add_epi32(sums[0]);
    return (double)n_rounds * 48 * 64 * 2;
}

void frit_install_avx512vnni(frit_kernels *k)
{
    install(k);
    k->probe_int8 = probe_int8;
}
