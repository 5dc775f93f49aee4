// SPDX-License-Identifier: MIT
// Products of weights in blocks of 256 with activations in the form Q8.
//
// A type has two functions: one reads the sixteen scales (int16, one for each 16 elements) and sixteen offsets of a
// block, the other unpacks the codes of 32 elements. weight = d * scale * code - d_offset * offset.
//
//     dot of a block = d * sum_32 x_scale * (sum_16 scale * sum(code * x_code))  -  d_offset * sum_16 offset * x_sum
//
// The inner sums are exact in int32: vpmaddubsw, then vpmaddwd with the scales.
#include "backend/cpu/x86/vec/avx2.h"
#include "quant/blocks.h"
#include "quant/levels.h"

typedef struct block_256 {
    __m256i scales, offsets;   // int16[16]
    float d, d_offset;
} block_256;

typedef block_256 (*scales_fn)(const uint8_t *block);
typedef __m256i (*codes_fn)(const uint8_t *block, int group);   // group: 0...7, a constant where inlined

// ------------------------------------------------------------------------------- types

FRIT_INLINE uint32_t word_at(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, 4);
    return word;
}

// Eight bytes as int16, each twice: scales for groups of 32.
FRIT_INLINE __m256i broadcast_twice(uint32_t low, uint32_t high)
{
    const __m256i v = _mm256_cvtepu8_epi32(_mm_set_epi32(0, 0, (int)high, (int)low));
    return _mm256_or_si256(v, _mm256_slli_epi32(v, 16));
}

FRIT_INLINE __m256i two_bits(const uint8_t *qs, int group)
{
    const __m256i q = load_32_bytes(qs + 32 * (group / 4));
    return _mm256_and_si256(_mm256_srli_epi16(q, 2 * (group % 4)), _mm256_set1_epi8(3));
}

FRIT_INLINE __m256i four_bits(const uint8_t *qs, int group)
{
    const __m256i q = load_32_bytes(qs + 32 * (group / 2));
    return _mm256_and_si256(_mm256_srli_epi16(q, 4 * (group % 2)), _mm256_set1_epi8(15));
}

// `value` where bit `group` of the byte is set.
FRIT_INLINE __m256i high_bit(const uint8_t *qh, int group, int value)
{
    const __m256i bit = _mm256_set1_epi8((char)(1 << group));
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(load_32_bytes(qh), bit), bit);
    return _mm256_and_si256(set, _mm256_set1_epi8((char)value));
}

FRIT_INLINE block_256 scales_q2_k(const uint8_t *block)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(block + offsetof(frit_block_q2_k, scales)));
    const __m128i low = _mm_set1_epi8(15);
    return (block_256){_mm256_cvtepu8_epi16(_mm_and_si128(bytes, low)),
                       _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(bytes, 4), low)),
                       f16_at(block + offsetof(frit_block_q2_k, d)), f16_at(block + offsetof(frit_block_q2_k, dmin))};
}

FRIT_INLINE __m256i codes_q2_k(const uint8_t *block, int group)
{
    return two_bits(block + offsetof(frit_block_q2_k, qs), group);
}

// Codes are stored from 0 and mean -4...3: the offsets are 4 scales. The packing is drawn in quant/scales.h.
FRIT_INLINE block_256 scales_q3_k(const uint8_t *block)
{
    const uint8_t *packed = block + offsetof(frit_block_q3_k, scales);
    const uint32_t a = word_at(packed), b = word_at(packed + 4), high = word_at(packed + 8);
    const uint32_t four = 0x0f0f0f0f, two = 0x03030303;
    const __m128i bytes =
        _mm_set_epi32((int)((b >> 4 & four) | (high >> 6 & two) << 4), (int)((a >> 4 & four) | (high >> 4 & two) << 4),
                      (int)((b & four) | (high >> 2 & two) << 4), (int)((a & four) | (high & two) << 4));
    const __m256i scales = _mm256_sub_epi16(_mm256_cvtepu8_epi16(bytes), _mm256_set1_epi16(32));
    const float d = f16_at(block + offsetof(frit_block_q3_k, d));
    return (block_256){scales, _mm256_slli_epi16(scales, 2), d, d};
}

FRIT_INLINE __m256i codes_q3_k(const uint8_t *block, int group)
{
    return _mm256_or_si256(two_bits(block + offsetof(frit_block_q3_k, qs), group),
                           high_bit(block + offsetof(frit_block_q3_k, qh), group, 4));
}

FRIT_INLINE block_256 scales_q4_k(const uint8_t *block)
{
    const uint8_t *packed = block + offsetof(frit_block_q4_k, scales);
    const uint32_t a = word_at(packed), b = word_at(packed + 4), c = word_at(packed + 8);
    const uint32_t six = 0x3f3f3f3f, four = 0x0f0f0f0f, two = 0x03030303;
    return (block_256){broadcast_twice(a & six, (c & four) | (a >> 6 & two) << 4),
                       broadcast_twice(b & six, (c >> 4 & four) | (b >> 6 & two) << 4),
                       f16_at(block + offsetof(frit_block_q4_k, d)), f16_at(block + offsetof(frit_block_q4_k, dmin))};
}

FRIT_INLINE __m256i codes_q4_k(const uint8_t *block, int group)
{
    return four_bits(block + offsetof(frit_block_q4_k, qs), group);
}

_Static_assert(offsetof(frit_block_q5_k, d) == offsetof(frit_block_q4_k, d) &&
                   offsetof(frit_block_q5_k, scales) == offsetof(frit_block_q4_k, scales),
               "Q5_K begins as Q4_K does");

FRIT_INLINE __m256i codes_q5_k(const uint8_t *block, int group)
{
    return _mm256_or_si256(four_bits(block + offsetof(frit_block_q5_k, qs), group),
                           high_bit(block + offsetof(frit_block_q5_k, qh), group, 16));
}

// Codes are stored from 0 and mean -32...31.
FRIT_INLINE block_256 scales_q6_k(const uint8_t *block)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(block + offsetof(frit_block_q6_k, scales)));
    const __m256i scales = _mm256_cvtepi8_epi16(bytes);
    const float d = f16_at(block + offsetof(frit_block_q6_k, d));
    return (block_256){scales, _mm256_slli_epi16(scales, 5), d, d};
}

// For each 128 elements, the first 32 bytes of ql have elements 0...31 and 64...95 in their nibbles, the next 32 the
// others.
FRIT_INLINE __m256i codes_q6_k(const uint8_t *block, int group)
{
    const int half = group / 4, quarter = group % 4;
    const __m256i ql = load_32_bytes(block + offsetof(frit_block_q6_k, ql) + 64 * half + 32 * (quarter % 2));
    const __m256i qh = load_32_bytes(block + offsetof(frit_block_q6_k, qh) + 32 * half);
    const __m256i low = _mm256_and_si256(_mm256_srli_epi16(ql, 4 * (quarter / 2)), _mm256_set1_epi8(15));
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(qh, 2 * quarter), _mm256_set1_epi8(3));
    return _mm256_or_si256(low, _mm256_slli_epi16(high, 4));
}

FRIT_INLINE block_256 scales_iq4_xs(const uint8_t *block)
{
    uint16_t high_bits;
    memcpy(&high_bits, block + offsetof(frit_block_iq4_xs, scales_high), 2);
    const uint32_t low_bits = word_at(block + offsetof(frit_block_iq4_xs, scales_low));
    const __m256i low =
        _mm256_srlv_epi32(_mm256_set1_epi32((int)low_bits), _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    const __m256i high = _mm256_srlv_epi32(_mm256_set1_epi32(high_bits), _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14));
    const __m256i six = _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi32(15)),
                                        _mm256_slli_epi32(_mm256_and_si256(high, _mm256_set1_epi32(3)), 4));
    const __m256i scales = _mm256_sub_epi16(_mm256_or_si256(six, _mm256_slli_epi32(six, 16)), _mm256_set1_epi16(32));
    return (block_256){scales, _mm256_setzero_si256(), f16_at(block + offsetof(frit_block_iq4_xs, d)), 0};
}

FRIT_INLINE __m256i codes_iq4_xs(const uint8_t *block, int group)   // signed
{
    const __m128i q =
        _mm_loadu_si128((const __m128i *)(const void *)(block + offsetof(frit_block_iq4_xs, qs) + 16 * group));
    const __m256i table = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)frit_iq4_levels));
    const __m256i nibbles = _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(q, 4), q), _mm256_set1_epi8(15));
    return _mm256_shuffle_epi8(table, nibbles);
}

// ------------------------------------------------------------------------------- products

// Scales 2g and 2g + 1 of int16[16], broadcast to the lower and upper 128 bits.
FRIT_INLINE __m256i spread(__m256i low, __m256i high, int group)
{
    const int pair = group % 4 * 0x0404 + 0x0100;   // bytes of scale 2g within its 128 bits
    const __m256i pick = _mm256_set_m128i(_mm_set1_epi16((short)(pair + 0x0202)), _mm_set1_epi16((short)pair));
    return _mm256_shuffle_epi8(group < 4 ? low : high, pick);
}

// The first or second eight of int16[16] as f32, times a factor.
FRIT_INLINE __m256 scaled_half(__m256i v, int half, float factor)
{
    const __m128i eight = half ? _mm256_extracti128_si256(v, 1) : _mm256_castsi256_si128(v);
    return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(eight)), _mm256_set1_ps(factor));
}

// Multiplies one row of weights by n_x rows of activations; n_x and is_signed are constants where this is inlined. Only
// unsigned codes have offsets. The order of additions does not depend on n_x: a difference in the last bit could round
// an 8-bit activation of the next layer differently, so that one chunk and two chunks would give different logits.
FRIT_INLINE void dot_row(const frit_product *p, int64_t i, int64_t j, int n_x, size_t block_bytes,
                         scales_fn read_scales, codes_fn unpack, bool is_signed)
{
    const uint8_t *w = p->w + (size_t)i * p->w_stride, *x = p->x + (size_t)j * p->x_stride;
    __m256 sums[4];
    for (int t = 0; t < n_x; t++) sums[t] = _mm256_setzero_ps();

    for (int64_t b = 0; b < p->n / 256; b++) {
        const uint8_t *bytes = w + (size_t)b * block_bytes;
        const block_256 block = read_scales(bytes);
        const __m256i low = _mm256_permute2x128_si256(block.scales, block.scales, 0x00);
        const __m256i high = _mm256_permute2x128_si256(block.scales, block.scales, 0x11);
        __m256 totals[4];
        for (int t = 0; t < n_x; t++) totals[t] = _mm256_setzero_ps();
        FRIT_UNROLL(8)
        for (int g = 0; g < 8; g++) {
            const __m256i codes = unpack(bytes, g), magnitudes = is_signed ? _mm256_abs_epi8(codes) : codes;
            const __m256i scale = spread(low, high, g);
            for (int t = 0; t < n_x; t++) {
                const uint8_t *xt = x + (size_t)t * p->x_stride;
                const float *x_scales = (const float *)(const void *)(xt + p->n) + b * 8;
                __m256i xs = load_32_bytes(xt + b * 256 + g * 32);
                if (is_signed) xs = _mm256_sign_epi8(xs, codes);
                const __m256i products = _mm256_madd_epi16(_mm256_maddubs_epi16(magnitudes, xs), scale);
                totals[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(products), _mm256_broadcast_ss(x_scales + g), totals[t]);
            }
        }
        for (int t = 0; t < n_x; t++) sums[t] = _mm256_fmadd_ps(totals[t], _mm256_set1_ps(block.d), sums[t]);
        for (int half = 0; half < 2 && !is_signed; half++) {
            const __m256 offsets = scaled_half(block.offsets, half, block.d_offset);
            for (int t = 0; t < n_x; t++) {
                const uint8_t *xt = x + (size_t)t * p->x_stride;
                const float *x_sums = (const float *)(const void *)(xt + p->n) + p->n / 32 + b * 16 + half * 8;
                sums[t] = _mm256_fnmadd_ps(offsets, _mm256_loadu_ps(x_sums), sums[t]);
            }
        }
    }
    for (int t = 0; t < n_x; t++) p->y[(size_t)(j + t) * p->y_stride + (size_t)i] = sum_8(sums[t]);
}

FRIT_INLINE void multiply_rows(const frit_product *p, size_t block_bytes, scales_fn read_scales, codes_fn unpack,
                               bool is_signed)
{
    int64_t j = 0;
    for (; j + 4 <= p->n_x; j += 4)
        for (int64_t i = 0; i < p->n_w; i++) dot_row(p, i, j, 4, block_bytes, read_scales, unpack, is_signed);
    for (; j < p->n_x; j++)
        for (int64_t i = 0; i < p->n_w; i++) dot_row(p, i, j, 1, block_bytes, read_scales, unpack, is_signed);
}

static void product_q2_k(const frit_product *p)
{
    multiply_rows(p, sizeof(frit_block_q2_k), scales_q2_k, codes_q2_k, false);
}

static void product_q3_k(const frit_product *p)
{
    multiply_rows(p, sizeof(frit_block_q3_k), scales_q3_k, codes_q3_k, false);
}

static void product_q4_k(const frit_product *p)
{
    multiply_rows(p, sizeof(frit_block_q4_k), scales_q4_k, codes_q4_k, false);
}

static void product_q5_k(const frit_product *p)
{
    multiply_rows(p, sizeof(frit_block_q5_k), scales_q4_k, codes_q5_k, false);
}

static void product_q6_k(const frit_product *p)
{
    multiply_rows(p, sizeof(frit_block_q6_k), scales_q6_k, codes_q6_k, false);
}

static void product_iq4_xs(const frit_product *p)
{
    multiply_rows(p, sizeof(frit_block_iq4_xs), scales_iq4_xs, codes_iq4_xs, true);
}

void frit_install_avx2_block256(frit_kernels *k)
{
    static const struct {
        frit_dtype dtype;
        void (*run)(const frit_product *p);
    } rows[] = {
        {FRIT_DTYPE_Q2_K, product_q2_k}, {FRIT_DTYPE_Q3_K, product_q3_k}, {FRIT_DTYPE_Q4_K, product_q4_k},
        {FRIT_DTYPE_Q5_K, product_q5_k}, {FRIT_DTYPE_Q6_K, product_q6_k}, {FRIT_DTYPE_IQ4_XS, product_iq4_xs},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++)
        k->product[rows[i].dtype] = (frit_product_kernel){rows[i].run, FRIT_FORM_Q8, "avx2", NULL};
}
