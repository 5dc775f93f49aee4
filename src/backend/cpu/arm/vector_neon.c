// SPDX-License-Identifier: MIT
// Vector kernels for NEON: rope and probes here, the others by vector_tmpl.h. Installs the row of isa.def.
#include "backend/cpu/arm/math_neon.h"
#include "backend/cpu/arm/neon.h"

static void rope_interleaved(float *y, const float *x, const float *table, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const vec_f c = load_f(table + i), s = load_f(table + n + i);
        const float32x4x2_t in = vld2q_f32(x + 2 * i);
        float32x4x2_t out;
        out.val[0] = sub_f(mul_f(in.val[0], c), mul_f(in.val[1], s));
        out.val[1] = add_f(mul_f(in.val[0], s), mul_f(in.val[1], c));
        vst2q_f32(y + 2 * i, out);
    }
    for (; i < n; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        y[2 * i] = a * table[i] - b * table[n + i];
        y[2 * i + 1] = a * table[n + i] + b * table[i];
    }
}

#include "backend/cpu/tmpl/vector_tmpl.h"

// ------------------------------------------------------------------------------- probes

static uint64_t probe_read_side_by_side(const void *bytes, size_t n)
{
    enum { STREAMS = 8 };
    const size_t stride = n / STREAMS / 64 * 64;
    uint64x2_t sums[4] = {vdupq_n_u64(0), vdupq_n_u64(0), vdupq_n_u64(0), vdupq_n_u64(0)};
    for (size_t i = 0; i < stride; i += 1024) {
        const size_t end = i + 1024 < stride ? i + 1024 : stride;
        for (size_t s = 0; s < STREAMS; s++) {
            const uint8_t *at = (const uint8_t *)bytes + s * stride;
            for (size_t k = i; k < end; k += 64)
                for (int j = 0; j < 4; j++)
                    sums[j] = vaddq_u64(sums[j], vreinterpretq_u64_u8(vld1q_u8(at + k + 16 * j)));
        }
    }
    return vaddvq_u64(vaddq_u64(vaddq_u64(sums[0], sums[1]), vaddq_u64(sums[2], sums[3])));
}

static uint64_t probe_read_in_order(const void *bytes, size_t n)
{
    enum { AHEAD = 8192 };
    uint64x2_t sums[4] = {vdupq_n_u64(0), vdupq_n_u64(0), vdupq_n_u64(0), vdupq_n_u64(0)};
    for (size_t i = 0; i + 64 <= n; i += 64) {
        const uint8_t *at = (const uint8_t *)bytes + i;
        __builtin_prefetch(at + (i + AHEAD < n ? AHEAD : 0));
        for (int j = 0; j < 4; j++) sums[j] = vaddq_u64(sums[j], vreinterpretq_u64_u8(vld1q_u8(at + 16 * j)));
    }
    return vaddvq_u64(vaddq_u64(vaddq_u64(sums[0], sums[1]), vaddq_u64(sums[2], sums[3])));
}

// Six independent accumulators of products, pairs and sums. The two factors that change keep a compiler from hoisting
// the products.
static double probe_int8(int64_t n_rounds, int32_t *sink)
{
    const int8x16_t step = vdupq_n_s8((int8_t)*sink);
    int8x16_t u[3], s[2];
    int32x4_t sums[3][2];
    for (int a = 0; a < 3; a++) u[a] = vdupq_n_s8((int8_t)(*sink + a));
    for (int b = 0; b < 2; b++) s[b] = vdupq_n_s8((int8_t)(*sink * (b + 2)));
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 2; b++) sums[a][b] = vdupq_n_s32(0);
    for (int64_t r = 0; r < n_rounds; r++) {
        for (int b = 0; b < 2; b++) {
            s[b] = vaddq_s8(s[b], step);
            for (int a = 0; a < 3; a++) {
                const int16x8_t low = vmull_s8(vget_low_s8(u[a]), vget_low_s8(s[b])), high = vmull_high_s8(u[a], s[b]);
                sums[a][b] = vpadalq_s16(sums[a][b], vpaddq_s16(low, high));
            }
        }
    }
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 2; b++) *sink ^= vgetq_lane_s32(sums[a][b], 0);
    return (double)n_rounds * 6 * 16 * 2;
}

static void install_own(frit_kernels *k)
{
    install_vectors(k);
    k->isa = "neon";
    k->probe_read[0] = probe_read_side_by_side;
    k->probe_read[1] = probe_read_in_order;
    k->probe_int8 = probe_int8;
}

void frit_install_neon(frit_kernels *k)
{
    frit_install_neon_float(k);
    frit_install_neon_packed(k);
    frit_install_neon_convert(k);
    frit_install_neon_attend(k);
    frit_install_neon_attend_tile(k);
    frit_install_neon_state(k);
    frit_install_neon_descend(k);
    install_own(k);
}
