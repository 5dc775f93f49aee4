// SPDX-License-Identifier: MIT
// Vector kernels for AVX2: rope and probes here, the others by vector_tmpl.h. Installs the row of isa.def.
#include "backend/cpu/x86/vec/math_avx2.h"

static void rope_interleaved(float *y, const float *x, const float *table, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const __m128 c = _mm_loadu_ps(table + i), s = _mm_loadu_ps(table + n + i);
        const __m256 cosines = _mm256_set_m128(_mm_unpackhi_ps(c, c), _mm_unpacklo_ps(c, c));
        const __m256 sines = _mm256_set_m128(_mm_unpackhi_ps(s, s), _mm_unpacklo_ps(s, s));
        const __m256 ab = _mm256_loadu_ps(x + 2 * i), ba = _mm256_permute_ps(ab, 0xb1);
        _mm256_storeu_ps(y + 2 * i, _mm256_addsub_ps(_mm256_mul_ps(ab, cosines), _mm256_mul_ps(ba, sines)));
    }
    for (; i < n; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        y[2 * i] = a * table[i] - b * table[n + i];
        y[2 * i + 1] = a * table[n + i] + b * table[i];
    }
}

#include "backend/cpu/tmpl/vector_tmpl.h"

// ------------------------------------------------------------------------------- probes

static uint64_t sum_words(__m256i v)
{
    uint64_t words[4];
    _mm256_storeu_si256((__m256i *)(void *)words, v);
    return words[0] + words[1] + words[2] + words[3];
}

static uint64_t probe_read_side_by_side(const void *bytes, size_t n)
{
    enum { STREAMS = 8 };
    const size_t stride = n / STREAMS / 64 * 64;
    __m256i sums[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (size_t i = 0; i < stride; i += 1024) {
        const size_t end = i + 1024 < stride ? i + 1024 : stride;
        for (size_t s = 0; s < STREAMS; s++) {
            const uint8_t *at = (const uint8_t *)bytes + s * stride;
            for (size_t k = i; k < end; k += 64) {
                sums[0] = _mm256_add_epi64(sums[0], load_32_bytes(at + k));
                sums[1] = _mm256_add_epi64(sums[1], load_32_bytes(at + k + 32));
            }
        }
    }
    return sum_words(_mm256_add_epi64(sums[0], sums[1]));
}

static uint64_t probe_read_in_order(const void *bytes, size_t n)
{
    enum { AHEAD = 8192 };
    __m256i sums[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (size_t i = 0; i + 64 <= n; i += 64) {
        const uint8_t *at = (const uint8_t *)bytes + i;
        _mm_prefetch((const char *)(at + (i + AHEAD < n ? AHEAD : 0)), _MM_HINT_T0);
        sums[0] = _mm256_add_epi64(sums[0], load_32_bytes(at));
        sums[1] = _mm256_add_epi64(sums[1], load_32_bytes(at + 32));
    }
    return sum_words(_mm256_add_epi64(sums[0], sums[1]));
}

// Six independent accumulators of vpmaddubsw, vpmaddwd and vpaddd. The two factors that change keep a compiler from
// hoisting the products.
static double probe_int8(int64_t n_rounds, int32_t *sink)
{
    const __m256i one = _mm256_set1_epi16(1), step = _mm256_set1_epi8((char)*sink);
    __m256i u[3], s[2], sums[3][2];
    for (int a = 0; a < 3; a++) u[a] = _mm256_set1_epi8((char)(*sink + a));
    for (int b = 0; b < 2; b++) s[b] = _mm256_set1_epi8((char)(*sink * (b + 2)));
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 2; b++) sums[a][b] = _mm256_setzero_si256();
    for (int64_t r = 0; r < n_rounds; r++) {
        for (int b = 0; b < 2; b++) {
            s[b] = _mm256_add_epi8(s[b], step);
            for (int a = 0; a < 3; a++)
                sums[a][b] = _mm256_add_epi32(sums[a][b], _mm256_madd_epi16(_mm256_maddubs_epi16(u[a], s[b]), one));
        }
    }
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 2; b++) *sink ^= _mm256_extract_epi32(sums[a][b], 0);
    return (double)n_rounds * 6 * 32 * 2;
}

void frit_install_avx2_vector(frit_kernels *k)
{
    install_vectors(k);
    k->isa = "avx2";
    k->probe_read[0] = probe_read_side_by_side;
    k->probe_read[1] = probe_read_in_order;
    k->probe_int8 = probe_int8;
}

void frit_install_avx2(frit_kernels *k)
{
    frit_install_avx2_float(k);
    frit_install_avx2_block32(k);
    frit_install_avx2_block256(k);
    frit_install_avx2_packed(k);
    frit_install_avx2_convert(k);
    frit_install_avx2_vector(k);
    frit_install_avx2_attend(k);
    frit_install_avx2_attend_tile(k);
    frit_install_avx2_state(k);
    frit_install_avx2_descend(k);
}
