// SPDX-License-Identifier: MIT
// Conversion of activations to the forms Q8, Q8_LINES and Q8_TRANSPOSED for AVX2: the same bits as the scalar
// conversion.
#include "backend/cpu/x86/vec/avx2.h"

// Lane i: the largest magnitude of elements i, i + 8, i + 16, i + 24.
FRIT_INLINE __m256 max_abs_32(const float *x)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    const __m256 a = _mm256_andnot_ps(sign, _mm256_loadu_ps(x)), b = _mm256_andnot_ps(sign, _mm256_loadu_ps(x + 8));
    const __m256 c = _mm256_andnot_ps(sign, _mm256_loadu_ps(x + 16)),
                 d = _mm256_andnot_ps(sign, _mm256_loadu_ps(x + 24));
    return _mm256_max_ps(_mm256_max_ps(a, b), _mm256_max_ps(c, d));
}

// Codes of 32 elements: round(x * inverse).
FRIT_INLINE __m256i round_32(const float *x, __m256 inverse)
{
    const __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse));
    const __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8), inverse));
    const __m256i c = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 16), inverse));
    const __m256i d = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 24), inverse));
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    return _mm256_permutevar8x32_epi32(bytes,
                                       _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));   // packs works within 128 bits
}

// Codes of 32 elements, their scale, and in lanes 0 and 4 the sums of 16 codes.
typedef struct quantized {
    __m256i codes, sums;
    float scale;
} quantized;

FRIT_INLINE quantized quantize_line(const float *x)
{
    const float top = max_8(max_abs_32(x)), inverse = top > 0x1p-100f ? 127 / top : 0;
    quantized q = {.codes = round_32(x, _mm256_set1_ps(inverse)), .scale = inverse > 0 ? top / 127 : 0};
    const __m256i quads = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), q.codes), _mm256_set1_epi16(1));
    const __m256i pairs = _mm256_add_epi32(quads, _mm256_shuffle_epi32(quads, 0x4e));
    q.sums = _mm256_add_epi32(pairs, _mm256_shuffle_epi32(pairs, 0xb1));
    return q;
}

static void convert_q8(const float *x, uint8_t *out, int64_t n)
{
    float *scales = (float *)(void *)(out + n), *sums = scales + n / 32;
    for (int64_t b = 0; b < n / 32; b++) {
        const quantized q = quantize_line(x + b * 32);
        const __m256 s = _mm256_mul_ps(_mm256_cvtepi32_ps(q.sums), _mm256_set1_ps(q.scale));
        _mm256_storeu_si256((__m256i *)(void *)(out + b * 32), q.codes);
        scales[b] = q.scale;
        sums[2 * b] = _mm256_cvtss_f32(s);
        sums[2 * b + 1] = _mm_cvtss_f32(_mm256_extractf128_ps(s, 1));
    }
}

static void convert_q8_lines(const float *x, uint8_t *out, int64_t n)
{
    frit_q8_line *line = (void *)out;
    for (int64_t b = 0; b < n / 32; b++, line++) {
        const quantized q = quantize_line(x + b * 32);
        const int sums[2] = {_mm256_cvtsi256_si32(q.sums), _mm256_extract_epi32(q.sums, 4)}, sum = sums[0] + sums[1];
        _mm256_storeu_si256((__m256i *)(void *)line->codes, q.codes);
        line->scale = q.scale;
        line->sum = q.scale * (float)sum;
        for (int i = 0; i < 2; i++) {
            line->sums_16[i] = q.scale * (float)sums[i];
            line->minus_32[i] = -32 * sums[i];
            line->sums[i] = (int16_t)sums[i];
        }
        line->minus_128 = -128 * sum;
    }
}

static void convert_q8_transposed(const float *x, uint8_t *out, int64_t n)
{
    convert_q8_lines(x, out, n);
    frit_transpose_q8_lines((void *)out, n);
}

void frit_install_avx2_convert(frit_kernels *k)
{
    k->convert[FRIT_FORM_Q8] = convert_q8;
    k->convert[FRIT_FORM_Q8_LINES] = convert_q8_lines;
    k->convert[FRIT_FORM_Q8_TRANSPOSED] = convert_q8_transposed;
}
