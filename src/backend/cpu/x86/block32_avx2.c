// SPDX-License-Identifier: MIT
// Products of weights in blocks of 32 with activations in the form Q8.
//
// A type has a function that unpacks a block into 32 codes of a byte, a scale and a shift: weight = scale * code +
// shift.
//
//     dot of a block = scale * x_scale * sum(code * x_code)  +  shift * x_sum
//
// vpmaddubsw multiplies unsigned by signed bytes. For signed codes the factors are |code| and x with the sign of the
// code.
#include "backend/cpu/x86/vec/avx2.h"
#include "quant/blocks.h"
#include "quant/levels.h"
#include "quant/scales.h"

typedef struct block_32 {
    __m256i codes;
    float scale, shift;
} block_32;

typedef block_32 (*unpack_fn)(const uint8_t *block);

// ------------------------------------------------------------------------------- types

FRIT_INLINE __m256i nibbles(const uint8_t qs[16])   // low nibbles are elements 0...15, high nibbles 16...31
{
    const __m128i q = _mm_loadu_si128((const __m128i *)(const void *)qs);
    return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(q, 4), q), _mm256_set1_epi8(15));
}

FRIT_INLINE __m256i fifth_bits(const uint8_t qh[4])   // 16 where bit i of the word is set
{
    uint32_t bits;
    memcpy(&bits, qh, 4);
    const __m256i pick =
        _mm256_setr_epi64x(0x0000000000000000, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), pick);
    return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit), _mm256_set1_epi8(16));
}

FRIT_INLINE __m256i look_up_levels(const int8_t table[16], const uint8_t qs[16])
{
    const __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
    return _mm256_shuffle_epi8(t, nibbles(qs));
}

FRIT_INLINE block_32 unpack_q4_0(const uint8_t *block)
{
    const __m256i codes = nibbles(block + offsetof(frit_block_q4_0, qs));
    return (block_32){_mm256_sub_epi8(codes, _mm256_set1_epi8(8)), f16_at(block + offsetof(frit_block_q4_0, d)), 0};
}

FRIT_INLINE block_32 unpack_q4_1(const uint8_t *block)
{
    return (block_32){nibbles(block + offsetof(frit_block_q4_1, qs)), f16_at(block + offsetof(frit_block_q4_1, d)),
                      f16_at(block + offsetof(frit_block_q4_1, m))};
}

FRIT_INLINE block_32 unpack_q5_0(const uint8_t *block)
{
    const __m256i high = fifth_bits(block + offsetof(frit_block_q5_0, qh));
    const __m256i codes = _mm256_or_si256(nibbles(block + offsetof(frit_block_q5_0, qs)), high);
    return (block_32){_mm256_sub_epi8(codes, _mm256_set1_epi8(16)), f16_at(block + offsetof(frit_block_q5_0, d)), 0};
}

FRIT_INLINE block_32 unpack_q5_1(const uint8_t *block)
{
    const __m256i high = fifth_bits(block + offsetof(frit_block_q5_1, qh));
    return (block_32){_mm256_or_si256(nibbles(block + offsetof(frit_block_q5_1, qs)), high),
                      f16_at(block + offsetof(frit_block_q5_1, d)), f16_at(block + offsetof(frit_block_q5_1, m))};
}

FRIT_INLINE block_32 unpack_q8_0(const uint8_t *block)
{
    return (block_32){load_32_bytes(block + offsetof(frit_block_q8_0, qs)),
                      f16_at(block + offsetof(frit_block_q8_0, d)), 0};
}

FRIT_INLINE block_32 unpack_iq4_nl(const uint8_t *block)
{
    return (block_32){look_up_levels(frit_iq4_levels, block + offsetof(frit_block_iq4_nl, qs)),
                      f16_at(block + offsetof(frit_block_iq4_nl, d)), 0};
}

FRIT_INLINE block_32 unpack_mxfp4(const uint8_t *block)
{
    return (block_32){look_up_levels(frit_fp4_levels, block + offsetof(frit_block_mxfp4, qs)),
                      frit_e8m0_half(block[offsetof(frit_block_mxfp4, e)]), 0};
}

// ------------------------------------------------------------------------------- products

typedef struct sums {   // sums of up to four tokens
    __m256 products[4];
    float shifts[4];
} sums;

// Adds one block. n_x and is_signed are constants where this is inlined. Only unsigned codes have a shift.
FRIT_INLINE void add_block(sums *s, const frit_product *p, block_32 block, int64_t b, const uint8_t *x, int n_x,
                           bool is_signed)
{
    const __m256i codes = is_signed ? _mm256_abs_epi8(block.codes) : block.codes;
    for (int t = 0; t < n_x; t++) {
        const uint8_t *xt = x + (size_t)t * p->x_stride;
        const float *scales = (const float *)(const void *)(xt + p->n), *x_sums = scales + p->n / 32;
        __m256i xs = load_32_bytes(xt + b * 32);
        if (is_signed) xs = _mm256_sign_epi8(xs, block.codes);
        const __m256i products = _mm256_madd_epi16(_mm256_maddubs_epi16(codes, xs), _mm256_set1_epi16(1));
        const __m256 scale = _mm256_set1_ps(block.scale * scales[b]);
        s->products[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(products), scale, s->products[t]);
        if (!is_signed) s->shifts[t] += block.shift * (x_sums[2 * b] + x_sums[2 * b + 1]);
    }
}

// Multiplies one row of weights by n_x rows of activations. A single token has two accumulators, because its additions
// would wait for each other.
FRIT_INLINE void dot_row(const frit_product *p, int64_t i, int64_t j, int n_x, size_t block_bytes, unpack_fn unpack,
                         bool is_signed)
{
    const uint8_t *w = p->w + (size_t)i * p->w_stride, *x = p->x + (size_t)j * p->x_stride;
    const int64_t n_blocks = p->n / 32;
    sums even, odd;
    for (int t = 0; t < n_x; t++) {
        even.products[t] = odd.products[t] = _mm256_setzero_ps();
        even.shifts[t] = odd.shifts[t] = 0;
    }
    int64_t b = 0;
    for (; n_x == 1 && b + 2 <= n_blocks; b += 2) {
        add_block(&even, p, unpack(w + (size_t)b * block_bytes), b, x, n_x, is_signed);
        add_block(&odd, p, unpack(w + (size_t)(b + 1) * block_bytes), b + 1, x, n_x, is_signed);
    }
    for (; b < n_blocks; b++) add_block(&even, p, unpack(w + (size_t)b * block_bytes), b, x, n_x, is_signed);
    for (int t = 0; t < n_x; t++)
        p->y[(size_t)(j + t) * p->y_stride + (size_t)i] =
            sum_8(_mm256_add_ps(even.products[t], odd.products[t])) + (even.shifts[t] + odd.shifts[t]);
}

FRIT_INLINE void multiply_rows(const frit_product *p, size_t block_bytes, unpack_fn unpack, bool is_signed)
{
    int64_t j = 0;
    for (; j + 4 <= p->n_x; j += 4)
        for (int64_t i = 0; i < p->n_w; i++) dot_row(p, i, j, 4, block_bytes, unpack, is_signed);
    for (; j < p->n_x; j++)
        for (int64_t i = 0; i < p->n_w; i++) dot_row(p, i, j, 1, block_bytes, unpack, is_signed);
}

static void product_q4_0(const frit_product *p)
{
    multiply_rows(p, sizeof(frit_block_q4_0), unpack_q4_0, true);
}

static void product_q4_1(const frit_product *p)
{
    multiply_rows(p, sizeof(frit_block_q4_1), unpack_q4_1, false);
}

static void product_q5_0(const frit_product *p)
{
    multiply_rows(p, sizeof(frit_block_q5_0), unpack_q5_0, true);
}

static void product_q5_1(const frit_product *p)
{
    multiply_rows(p, sizeof(frit_block_q5_1), unpack_q5_1, false);
}

static void product_q8_0(const frit_product *p)
{
    multiply_rows(p, sizeof(frit_block_q8_0), unpack_q8_0, true);
}

static void product_iq4_nl(const frit_product *p)
{
    multiply_rows(p, sizeof(frit_block_iq4_nl), unpack_iq4_nl, true);
}

static void product_mxfp4(const frit_product *p)
{
    multiply_rows(p, sizeof(frit_block_mxfp4), unpack_mxfp4, true);
}

// ------------------------------------------------------------------------------- numbers

FRIT_INLINE void decode_row(const uint8_t *x, float *y, int64_t n, size_t block_bytes, unpack_fn unpack)
{
    for (int64_t i = 0; i < n; i += 32, x += block_bytes) {
        const block_32 block = unpack(x);
        const __m256 scale = _mm256_set1_ps(block.scale), shift = _mm256_set1_ps(block.shift);
        const __m128i parts[2] = {_mm256_castsi256_si128(block.codes), _mm256_extracti128_si256(block.codes, 1)};
        for (int q = 0; q < 4; q++) {
            const __m128i codes = q % 2 ? _mm_srli_si128(parts[q / 2], 8) : parts[q / 2];
            const __m256 values = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)), scale);
            _mm256_storeu_ps(y + i + 8 * q, _mm256_add_ps(values, shift));
        }
    }
}

static void decode_q4_0(const uint8_t *x, float *y, int64_t n)
{
    decode_row(x, y, n, sizeof(frit_block_q4_0), unpack_q4_0);
}

static void decode_q4_1(const uint8_t *x, float *y, int64_t n)
{
    decode_row(x, y, n, sizeof(frit_block_q4_1), unpack_q4_1);
}

static void decode_q5_0(const uint8_t *x, float *y, int64_t n)
{
    decode_row(x, y, n, sizeof(frit_block_q5_0), unpack_q5_0);
}

static void decode_q5_1(const uint8_t *x, float *y, int64_t n)
{
    decode_row(x, y, n, sizeof(frit_block_q5_1), unpack_q5_1);
}

static void decode_q8_0(const uint8_t *x, float *y, int64_t n)
{
    decode_row(x, y, n, sizeof(frit_block_q8_0), unpack_q8_0);
}

static void decode_iq4_nl(const uint8_t *x, float *y, int64_t n)
{
    decode_row(x, y, n, sizeof(frit_block_iq4_nl), unpack_iq4_nl);
}

void frit_install_avx2_block32(frit_kernels *k)
{
    static const struct {
        frit_dtype dtype;
        void (*run)(const frit_product *p);
        void (*decode)(const uint8_t *x, float *y, int64_t n);
    } rows[] = {
        {FRIT_DTYPE_Q4_0, product_q4_0, decode_q4_0}, {FRIT_DTYPE_Q4_1, product_q4_1, decode_q4_1},
        {FRIT_DTYPE_Q5_0, product_q5_0, decode_q5_0}, {FRIT_DTYPE_Q5_1, product_q5_1, decode_q5_1},
        {FRIT_DTYPE_Q8_0, product_q8_0, decode_q8_0}, {FRIT_DTYPE_IQ4_NL, product_iq4_nl, decode_iq4_nl},
        {FRIT_DTYPE_MXFP4, product_mxfp4, NULL},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) k->decode[rows[i].dtype] = rows[i].decode;
    for (size_t i = 0; i < FRIT_COUNT(rows); i++)
        k->product[rows[i].dtype] = (frit_product_kernel){rows[i].run, FRIT_FORM_Q8, "avx2", NULL};
}
