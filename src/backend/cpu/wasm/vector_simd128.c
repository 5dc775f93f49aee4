// SPDX-License-Identifier: MIT
// Vector kernels for WebAssembly: rope and probes here, the others by vector_tmpl.h. Installs the row of isa.def.
#include "backend/cpu/wasm/math_simd128.h"
#include "backend/cpu/wasm/simd128.h"

static void rope_interleaved(float *y, const float *x, const float *table, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const vec_f c = load_f(table + i), s = load_f(table + n + i);
        const vec_f v = load_f(x + 2 * i), w = load_f(x + 2 * i + 4);
        const vec_f a = wasm_i32x4_shuffle(v, w, 0, 2, 4, 6), b = wasm_i32x4_shuffle(v, w, 1, 3, 5, 7);
        const vec_f first = sub_f(mul_f(a, c), mul_f(b, s)), second = add_f(mul_f(a, s), mul_f(b, c));
        store_f(y + 2 * i, wasm_i32x4_shuffle(first, second, 0, 4, 1, 5));
        store_f(y + 2 * i + 4, wasm_i32x4_shuffle(first, second, 2, 6, 3, 7));
    }
    for (; i < n; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        y[2 * i] = a * table[i] - b * table[n + i];
        y[2 * i + 1] = a * table[n + i] + b * table[i];
    }
}

#include "backend/cpu/tmpl/vector_tmpl.h"

// ------------------------------------------------------------------------------- probes

FRIT_INLINE uint64_t sum_words(const v128_t sums[4])
{
    const v128_t all = wasm_i64x2_add(wasm_i64x2_add(sums[0], sums[1]), wasm_i64x2_add(sums[2], sums[3]));
    return (uint64_t)wasm_i64x2_extract_lane(all, 0) + (uint64_t)wasm_i64x2_extract_lane(all, 1);
}

static uint64_t probe_read_side_by_side(const void *bytes, size_t n)
{
    enum { STREAMS = 8 };
    const size_t stride = n / STREAMS / 64 * 64;
    v128_t sums[4] = {zero_f(), zero_f(), zero_f(), zero_f()};
    for (size_t i = 0; i < stride; i += 1024) {
        const size_t end = i + 1024 < stride ? i + 1024 : stride;
        for (size_t s = 0; s < STREAMS; s++) {
            const uint8_t *at = (const uint8_t *)bytes + s * stride;
            for (size_t k = i; k < end; k += 64)
                for (int j = 0; j < 4; j++) sums[j] = wasm_i64x2_add(sums[j], wasm_v128_load(at + k + 16 * j));
        }
    }
    return sum_words(sums);
}

static uint64_t probe_read_in_order(const void *bytes, size_t n)
{
    v128_t sums[4] = {zero_f(), zero_f(), zero_f(), zero_f()};
    for (size_t i = 0; i + 64 <= n; i += 64)
        for (int j = 0; j < 4; j++)
            sums[j] = wasm_i64x2_add(sums[j], wasm_v128_load((const uint8_t *)bytes + i + 16 * j));
    return sum_words(sums);
}

// Six independent accumulators. The factors change so that the compiler cannot hoist the products.
static double probe_int8(int64_t n_rounds, int32_t *sink)
{
    const v128_t step = wasm_i16x8_splat((int16_t)*sink);
    v128_t u[3], s[2], sums[3][2];
    for (int a = 0; a < 3; a++) u[a] = wasm_i16x8_splat((int16_t)(*sink + a));
    for (int b = 0; b < 2; b++) s[b] = wasm_i16x8_splat((int16_t)(*sink * (b + 2)));
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 2; b++) sums[a][b] = zero_f();
    for (int64_t r = 0; r < n_rounds; r++)
        for (int b = 0; b < 2; b++) {
            s[b] = wasm_i16x8_add(s[b], step);
            for (int a = 0; a < 3; a++) sums[a][b] = wasm_i32x4_add(sums[a][b], wasm_i32x4_dot_i16x8(u[a], s[b]));
        }
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 2; b++) *sink ^= wasm_i32x4_extract_lane(sums[a][b], 0);
    return (double)n_rounds * 6 * 8 * 2;
}

void frit_install_simd128(frit_kernels *k)
{
    frit_install_simd128_float(k);
    frit_install_simd128_packed(k);
    frit_install_simd128_convert(k);
    frit_install_simd128_attend(k);
    frit_install_simd128_attend_tile(k);
    frit_install_simd128_state(k);
    frit_install_simd128_descend(k);
    install_vectors(k);
    k->isa = "simd128";
    k->probe_read[0] = probe_read_side_by_side;
    k->probe_read[1] = probe_read_in_order;
    k->probe_int8 = probe_int8;
}
