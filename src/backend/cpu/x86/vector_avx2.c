// SPDX-License-Identifier: MIT
// Vector kernels for AVX2: norms, elementwise ops, activation functions, rope, conversion, probes; and the row itself.
#include "backend/cpu/x86/math_avx2.h"

#include <math.h>

// ------------------------------------------------------------------------------- norms

static void rms_norm(float *y, const float *x, const float *w, int64_t n, float eps)
{
    __m256 sums[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + i + 8);
        sums[0] = _mm256_fmadd_ps(a, a, sums[0]);
        sums[1] = _mm256_fmadd_ps(b, b, sums[1]);
    }
    for (; i < n; i += 8) {
        const __m256 a = n - i >= 8 ? _mm256_loadu_ps(x + i) : load_part(x + i, n - i);
        sums[0] = _mm256_fmadd_ps(a, a, sums[0]);
    }
    const float mean = sum_8(_mm256_add_ps(sums[0], sums[1])) / (float)n;
    const __m256 scale = _mm256_set1_ps(1 / sqrtf(mean + eps));
    for (i = 0; i + 8 <= n; i += 8) {
        const __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x + i), scale);
        _mm256_storeu_ps(y + i, w ? _mm256_mul_ps(v, _mm256_loadu_ps(w + i)) : v);
    }
    if (i == n) return;
    const __m256 v = _mm256_mul_ps(load_part(x + i, n - i), scale);
    store_part(y + i, w ? _mm256_mul_ps(v, load_part(w + i, n - i)) : v, n - i);
}

static float sum_of_squares_from(const float *x, float mean, int64_t n)
{
    const __m256 m = _mm256_set1_ps(mean);
    __m256 sum = _mm256_setzero_ps();
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 d = _mm256_sub_ps(_mm256_loadu_ps(x + i), m);
        sum = _mm256_fmadd_ps(d, d, sum);
    }
    float rest = 0;
    for (; i < n; i++) rest += (x[i] - mean) * (x[i] - mean);
    return sum_8(sum) + rest;
}

static float sum_of(const float *x, int64_t n)
{
    __m256 sum = _mm256_setzero_ps();
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) sum = _mm256_add_ps(sum, _mm256_loadu_ps(x + i));
    if (i < n) sum = _mm256_add_ps(sum, load_part(x + i, n - i));
    return sum_8(sum);
}

static void layer_norm(float *y, const float *x, const float *w, const float *b, int64_t n, float eps)
{
    const float mean = sum_of(x, n) / (float)n;
    const float scale = 1 / sqrtf(sum_of_squares_from(x, mean, n) / (float)n + eps);
    for (int64_t i = 0; i < n; i += 8) {
        const int64_t left = n - i < 8 ? n - i : 8;
        __m256 v = _mm256_sub_ps(load_part(x + i, left), _mm256_set1_ps(mean));
        v = _mm256_mul_ps(v, _mm256_set1_ps(scale));
        if (w) v = _mm256_mul_ps(v, load_part(w + i, left));
        if (b) v = _mm256_add_ps(v, load_part(b + i, left));
        store_part(y + i, v, left);
    }
}

// ------------------------------------------------------------------------------- elementwise

typedef __m256 (*unary_op)(__m256 x);

FRIT_INLINE void map(float *y, const float *x, int64_t n, unary_op op)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, op(_mm256_loadu_ps(x + i)));
    if (i < n) store_part(y + i, op(load_part(x + i, n - i)), n - i);
}

static void add(float *y, const float *a, const float *b, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)));
    if (i < n) store_part(y + i, _mm256_add_ps(load_part(a + i, n - i), load_part(b + i, n - i)), n - i);
}

static void mul(float *y, const float *a, const float *b, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)));
    if (i < n) store_part(y + i, _mm256_mul_ps(load_part(a + i, n - i), load_part(b + i, n - i)), n - i);
}

static void scale(float *y, const float *x, float factor, int64_t n)
{
    const __m256 f = _mm256_set1_ps(factor);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), f));
    if (i < n) store_part(y + i, _mm256_mul_ps(load_part(x + i, n - i), f), n - i);
}

static void softcap(float *y, const float *x, float cap, int64_t n)
{
    const __m256 c = _mm256_set1_ps(cap);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_mul_ps(c, tanh_8(_mm256_div_ps(_mm256_loadu_ps(x + i), c))));
    if (i < n) store_part(y + i, _mm256_mul_ps(c, tanh_8(_mm256_div_ps(load_part(x + i, n - i), c))), n - i);
}

static void silu(float *y, const float *x, int64_t n)
{
    map(y, x, n, silu_8);
}

static void gelu(float *y, const float *x, int64_t n)
{
    map(y, x, n, gelu_8);
}

static void gelu_tanh(float *y, const float *x, int64_t n)
{
    map(y, x, n, gelu_tanh_8);
}

static void gelu_quick(float *y, const float *x, int64_t n)
{
    map(y, x, n, gelu_quick_8);
}

static void relu(float *y, const float *x, int64_t n)
{
    map(y, x, n, relu_8);
}

static void relu2(float *y, const float *x, int64_t n)
{
    map(y, x, n, relu2_8);
}

static void sigmoid(float *y, const float *x, int64_t n)
{
    map(y, x, n, sigmoid_8);
}

static void act_tanh(float *y, const float *x, int64_t n)
{
    map(y, x, n, tanh_8);
}

// ------------------------------------------------------------------------------- rope

static void rope_neighbours(float *y, const float *x, const float *turn, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const __m128 c = _mm_loadu_ps(turn + i), s = _mm_loadu_ps(turn + n + i);
        const __m256 cosines = _mm256_set_m128(_mm_unpackhi_ps(c, c), _mm_unpacklo_ps(c, c));
        const __m256 sines = _mm256_set_m128(_mm_unpackhi_ps(s, s), _mm_unpacklo_ps(s, s));
        const __m256 ab = _mm256_loadu_ps(x + 2 * i), ba = _mm256_permute_ps(ab, 0xb1);
        _mm256_storeu_ps(y + 2 * i, _mm256_addsub_ps(_mm256_mul_ps(ab, cosines), _mm256_mul_ps(ba, sines)));
    }
    for (; i < n; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        y[2 * i] = a * turn[i] - b * turn[n + i];
        y[2 * i + 1] = a * turn[n + i] + b * turn[i];
    }
}

static void rope_halves(float *y, const float *x, const float *turn, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 c = _mm256_loadu_ps(turn + i), s = _mm256_loadu_ps(turn + n + i);
        const __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + n + i);
        _mm256_storeu_ps(y + i, _mm256_sub_ps(_mm256_mul_ps(a, c), _mm256_mul_ps(b, s)));
        _mm256_storeu_ps(y + n + i, _mm256_add_ps(_mm256_mul_ps(a, s), _mm256_mul_ps(b, c)));
    }
    for (; i < n; i++) {
        const float a = x[i], b = x[n + i];
        y[i] = a * turn[i] - b * turn[n + i];
        y[n + i] = a * turn[n + i] + b * turn[i];
    }
}

// ------------------------------------------------------------------------------- probes

// Reads eight places at once, as products of single tokens do: one stream of memory is slower.
static uint64_t probe_read(const void *bytes, size_t n)
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
    uint64_t words[4];
    _mm256_storeu_si256((__m256i *)(void *)words, _mm256_add_epi64(sums[0], sums[1]));
    return words[0] + words[1] + words[2] + words[3];
}

// Six chains of vpmaddubsw, vpmaddwd, vpaddd; the two factors that change keep a compiler from hoisting the products.
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
    k->isa = "avx2";
    k->rms_norm = rms_norm;
    k->layer_norm = layer_norm;
    k->add = add;
    k->mul = mul;
    k->scale = scale;
    k->softcap = softcap;
    k->act[FRIT_ACT_SILU] = silu;
    k->act[FRIT_ACT_GELU] = gelu;
    k->act[FRIT_ACT_GELU_TANH] = gelu_tanh;
    k->act[FRIT_ACT_GELU_QUICK] = gelu_quick;
    k->act[FRIT_ACT_RELU] = relu;
    k->act[FRIT_ACT_RELU2] = relu2;
    k->act[FRIT_ACT_SIGMOID] = sigmoid;
    k->act[FRIT_ACT_TANH] = act_tanh;
    k->rope[FRIT_ROPE_NEIGHBOURS] = rope_neighbours;
    k->rope[FRIT_ROPE_HALVES] = rope_halves;
    k->probe_read = probe_read;
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
}
