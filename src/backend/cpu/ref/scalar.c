// SPDX-License-Identifier: MIT
// Kernels in plain C for every processor. Sums use independent lanes, which compilers vectorize.
#include "backend/cpu/kernels.h"
#include "quant/blocks.h"
#include "quant/half.h"

#include <math.h>
#include <string.h>

enum { LANES = 16 };

// ------------------------------------------------------------------------------- forms

size_t frit_form_bytes(frit_form form, int64_t n)
{
    if (form == FRIT_FORM_F32) return (size_t)n * 4;
    if (form == FRIT_FORM_Q8_LINES || form == FRIT_FORM_Q8_TRANSPOSED)
        return (size_t)(n / 32 | 1) * sizeof(frit_q8_line);   // odd: see kernels.h
    if (form == FRIT_FORM_BF16_TILES) return (size_t)n * 2;
    if (form == FRIT_FORM_BF16_PAIRS) return (size_t)((n + 31) / 32) * 128;
    return ((size_t)n + (size_t)(n / 32) * 4 + (size_t)(n / 16) * 4 + 63) / 64 * 64;
}

bool frit_form_is_tiled(frit_form form)
{
    return form == FRIT_FORM_BF16_TILES || form == FRIT_FORM_BF16_PAIRS;
}

size_t frit_form_bytes_of_rows(frit_form form, int64_t n_rows, int64_t n)
{
    if (frit_form_is_tiled(form)) n_rows = (n_rows + FRIT_TILE_ROWS - 1) / FRIT_TILE_ROWS * FRIT_TILE_ROWS;
    return (size_t)n_rows * frit_form_bytes(form, n);
}

size_t frit_form_column_bytes(frit_form form)
{
    static const size_t bytes[FRIT_FORM_COUNT] = {
        [FRIT_FORM_F32] = 32 * sizeof(float),
        [FRIT_FORM_Q8_LINES] = sizeof(frit_q8_line),
        [FRIT_FORM_Q8_TRANSPOSED] = sizeof(frit_q8_line),
        [FRIT_FORM_BF16_TILES] = FRIT_TILE_BYTES,
        [FRIT_FORM_BF16_PAIRS] = 2 * FRIT_TILE_BYTES,
    };
    return bytes[form];
}

uint8_t *frit_form_row(frit_form form, uint8_t *rows, int64_t i, int64_t n)
{
    if (!frit_form_is_tiled(form)) return rows + (size_t)i * frit_form_bytes(form, n);
    const int64_t in_tile = i % FRIT_TILE_ROWS;
    return rows + (size_t)(i - in_tile) * frit_form_bytes(form, n) + (size_t)in_tile * (FRIT_TILE_COLUMNS * 2);
}

// Codes and scale of 32 elements. A block becomes zero if the reciprocal of its scale is not finite.
static float quantize_block(const float *x, int8_t *codes)
{
    float top = 0;
    for (int i = 0; i < 32; i++) top = fmaxf(top, fabsf(x[i]));
    const float inverse = top > 0x1p-100f ? 127 / top : 0;
    for (int i = 0; i < 32; i++) codes[i] = (int8_t)lrintf(x[i] * inverse);
    return inverse > 0 ? top / 127 : 0;
}

static int sum_16(const int8_t *codes)
{
    int sum = 0;
    for (int i = 0; i < 16; i++) sum += codes[i];
    return sum;
}

static void convert_q8(const float *x, uint8_t *out, int64_t n)
{
    float *scales = (float *)(void *)(out + n), *sums = scales + n / 32;
    for (int64_t b = 0; b < n / 32; b++) {
        int8_t *codes = (int8_t *)out + b * 32;
        scales[b] = quantize_block(x + b * 32, codes);
        for (int i = 0; i < 2; i++) sums[2 * b + i] = scales[b] * (float)sum_16(codes + 16 * i);
    }
}

static void convert_q8_lines(const float *x, uint8_t *out, int64_t n)
{
    frit_q8_line *line = (void *)out;
    for (int64_t b = 0; b < n / 32; b++, line++) {
        line->scale = quantize_block(x + b * 32, line->codes);
        const int sums[2] = {sum_16(line->codes), sum_16(line->codes + 16)}, sum = sums[0] + sums[1];
        for (int i = 0; i < 2; i++) {
            line->sums_16[i] = line->scale * (float)sums[i];
            line->minus_32[i] = -32 * sums[i];
            line->sums[i] = (int16_t)sums[i];
        }
        line->sum = line->scale * (float)sum;
        line->minus_128 = -128 * sum;
    }
}

void frit_transpose_q8_lines(frit_q8_line *lines, int64_t n)
{
    for (frit_q8_line *line = lines; line < lines + n / 32; line++) {
        int8_t transposed[32];
        for (int i = 0; i < 32; i++) transposed[i % 8 * 4 + i / 8] = line->codes[i];
        memcpy(line->codes, transposed, sizeof transposed);
    }
}

static void convert_q8_transposed(const float *x, uint8_t *out, int64_t n)
{
    convert_q8_lines(x, out, n);
    frit_transpose_q8_lines((void *)out, n);
}

// Rounds to nearest even; subnormal numbers become zero, as with AVX-512.
static uint16_t bf16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if ((bits & 0x7f800000) == 0) return (uint16_t)(bits >> 16 & 0x8000);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void convert_bf16_tiles(const float *x, uint8_t *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const uint16_t number = bf16_of(x[i]);
        memcpy(out + i / FRIT_TILE_COLUMNS * FRIT_TILE_BYTES + i % FRIT_TILE_COLUMNS * 2, &number, 2);
    }
}

// Elements past the end are zeros.
static void convert_bf16_pairs(const float *x, uint8_t *out, int64_t n)
{
    for (int64_t i = 0; i < (n + 31) / 32 * 32; i++) {
        const float number = i < n ? x[i] : 0;
        const uint16_t first = bf16_of(number);
        const uint32_t bits = (uint32_t)first << 16;
        float rounded;
        memcpy(&rounded, &bits, 4);
        const uint16_t rest = bf16_of(number - rounded);
        uint8_t *at = out + i / FRIT_TILE_COLUMNS * (2 * FRIT_TILE_BYTES) + i % FRIT_TILE_COLUMNS * 2;
        memcpy(at, &first, 2);
        memcpy(at + FRIT_TILE_BYTES, &rest, 2);
    }
}

// ------------------------------------------------------------------------------- products

static float add_lanes(const float lanes[LANES])
{
    float sum = 0;
    for (int l = 0; l < LANES / 2; l++) sum += lanes[l] + lanes[l + LANES / 2];
    return sum;
}

// The packed struct allows a row to start at any byte.
static float dot_f32(const frit_block_f32 *w, const float *x, int64_t n)
{
    float lanes[LANES] = {0}, tail = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) lanes[l] += w[i + l].value * x[i + l];
    for (; i < n; i++) tail += w[i].value * x[i];
    return add_lanes(lanes) + tail;
}

static void product_f32(const frit_product *p)
{
    for (int64_t j = 0; j < p->n_x; j++) {
        const float *x = (const float *)(const void *)(p->x + (size_t)j * p->x_stride);
        for (int64_t i = 0; i < p->n_w; i++)
            p->y[(size_t)j * p->y_stride + (size_t)i] =
                dot_f32((const void *)(p->w + (size_t)i * p->w_stride), x, p->n);
    }
}

// ------------------------------------------------------------------------------- vectors

static void rms_norm(float *y, const float *x, const float *w, int64_t n, float eps)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * x[i];
    const float scale = (float)(1 / sqrt(sum / (double)n + eps));
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * scale * (w ? w[i] : 1);
}

static void layer_norm(float *y, const float *x, const float *w, const float *b, int64_t n, float eps)
{
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n; i++) mean += x[i];
    mean /= (double)n;
    for (int64_t i = 0; i < n; i++) variance += (x[i] - mean) * (x[i] - mean);
    const double scale = 1 / sqrt(variance / (double)n + eps);
    for (int64_t i = 0; i < n; i++) y[i] = (float)((x[i] - mean) * scale) * (w ? w[i] : 1) + (b ? b[i] : 0);
}

static void add(float *y, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void mul(float *y, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = a[i] * b[i];
}

static void scale(float *y, const float *x, float factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * factor;
}

static void softcap(float *y, const float *x, float cap, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = cap * tanhf(x[i] / cap);
}

static void silu(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = x[i] / (1 + expf(-x[i]));
}

static void gelu(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = 0.5f * x[i] * (1 + erff(x[i] * 0.70710678118654752440f));
}

static void gelu_tanh(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = 0.5f * x[i] * (1 + tanhf(0.79788456080286535588f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}

static void gelu_quick(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = x[i] / (1 + expf(-1.702f * x[i]));
}

static void relu(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
}

static void relu2(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i] * x[i];
}

static void sigmoid(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = 1 / (1 + expf(-x[i]));
}

static void act_tanh(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = tanhf(x[i]);
}

static void softplus(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = fmaxf(x[i], 0) + log1pf(expf(-fabsf(x[i])));
}

static void xielu(float *y, const float *x, const frit_xielu *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float bent = x[i] > 0 ? p->positive * x[i] * x[i] : p->negative * (expm1f(fminf(x[i], p->eps)) - x[i]);
        y[i] = bent + p->beta * x[i];
    }
}

static void rope_interleaved(float *y, const float *x, const float *table, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        y[2 * i] = a * table[i] - b * table[n + i];
        y[2 * i + 1] = a * table[n + i] + b * table[i];
    }
}

static void rope_neox(float *y, const float *x, const float *table, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float a = x[i], b = x[n + i];
        y[i] = a * table[i] - b * table[n + i];
        y[n + i] = a * table[n + i] + b * table[i];
    }
}

static void encode_f32(const float *x, uint8_t *y, int64_t n)
{
    memcpy(y, x, (size_t)n * sizeof(float));
}

static void decode_f32(const uint8_t *x, float *y, int64_t n)
{
    memcpy(y, x, (size_t)n * sizeof(float));
}

// ------------------------------------------------------------------------------- attention

static void scores_f32(float *s, const float *q, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim)
{
    for (int64_t i = 0; i < n_q; i++)
        for (int64_t p = 0; p < n_p; p++)
            s[i * FRIT_ATTEND_ROWS + p] = dot_f32((const void *)rows[p], q + i * dim, dim);
}

static void values_f32(float *acc, const float *s, int64_t n_q, const uint8_t *const *rows, int64_t n_p, int64_t dim)
{
    for (int64_t i = 0; i < n_q; i++)
        for (int64_t p = 0; p < n_p; p++) {
            const float *value = (const float *)(const void *)rows[p], weight = s[i * FRIT_ATTEND_ROWS + p];
            for (int64_t d = 0; d < dim; d++) acc[i * dim + d] += weight * value[d];
        }
}

static float max(const float *x, int64_t n)
{
    float top = x[0];
    for (int64_t i = 1; i < n; i++) top = x[i] > top ? x[i] : top;
    return top;
}

static float exp_sum(float *x, float top, int64_t n)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const float below = x[i] - top;
        sum += x[i] = expf(below < FRIT_LEAST_WEIGHT ? FRIT_LEAST_WEIGHT : below);
    }
    return sum;
}

static float weigh(float *s, int64_t begin, int64_t end, int64_t n, float *top, float *sum)
{
    const float now = max(s + begin, end - begin), larger = now > *top ? now : *top;
    const float below = *top - larger;
    const float shrink = now > *top ? expf(below < FRIT_LEAST_WEIGHT ? FRIT_LEAST_WEIGHT : below) : 1;
    for (int64_t i = 0; i < begin; i++) s[i] = 0;
    for (int64_t i = end; i < n; i++) s[i] = 0;
    *sum = *sum * shrink + exp_sum(s + begin, larger, end - begin);
    *top = larger;
    return shrink;
}

// ------------------------------------------------------------------------------- probes

static uint64_t probe_read(const void *bytes, size_t n)
{
    const uint64_t *words = bytes;
    uint64_t sums[8] = {0}, sum = 0;
    for (size_t i = 0; i + 8 <= n / 8; i += 8)
        for (size_t l = 0; l < 8; l++) sums[l] += words[i + l];
    for (int l = 0; l < 8; l++) sum += sums[l];
    return sum;
}

static double probe_int8(int64_t n_rounds, int32_t *sink)
{
    int8_t a[64], b[64];
    int32_t sums[16] = {0};
    for (int i = 0; i < 64; i++) a[i] = (int8_t)(*sink + i), b[i] = (int8_t)(i - *sink);
    for (int64_t r = 0; r < n_rounds; r++)
        for (int i = 0; i < 64; i++) sums[i / 4] += a[i] * b[(i + r) & 63];
    for (int i = 0; i < 16; i++) *sink += sums[i];
    return (double)n_rounds * 64 * 2;
}

static double probe_float(int64_t n_rounds, int32_t *sink)
{
    float a[16], sums[16] = {0};
    for (int i = 0; i < 16; i++) a[i] = (float)(*sink % 16 + i);
    for (int64_t r = 0; r < n_rounds; r++)
        for (int i = 0; i < 16; i++) sums[i] += a[i] * a[15 - i];
    for (int i = 0; i < 16; i++) *sink += sums[i] > 1;
    return (double)n_rounds * 16 * 2;
}

void frit_install_scalar(frit_kernels *k)
{
    *k = (frit_kernels){
        .isa = "scalar",
        .product[FRIT_DTYPE_F32] = {product_f32, FRIT_FORM_F32, "scalar", NULL},
        .convert[FRIT_FORM_Q8] = convert_q8,
        .convert[FRIT_FORM_Q8_LINES] = convert_q8_lines,
        .convert[FRIT_FORM_Q8_TRANSPOSED] = convert_q8_transposed,
        .convert[FRIT_FORM_BF16_TILES] = convert_bf16_tiles,
        .convert[FRIT_FORM_BF16_PAIRS] = convert_bf16_pairs,
        .rms_norm = rms_norm,
        .layer_norm = layer_norm,
        .add = add,
        .mul = mul,
        .scale = scale,
        .softcap = softcap,
        .act = {[FRIT_ACT_SILU] = silu,
                [FRIT_ACT_GELU] = gelu,
                [FRIT_ACT_GELU_TANH] = gelu_tanh,
                [FRIT_ACT_GELU_QUICK] = gelu_quick,
                [FRIT_ACT_RELU] = relu,
                [FRIT_ACT_RELU2] = relu2,
                [FRIT_ACT_SIGMOID] = sigmoid,
                [FRIT_ACT_TANH] = act_tanh,
                [FRIT_ACT_SOFTPLUS] = softplus},
        .xielu = xielu,
        .rope = {[FRIT_ROPE_INTERLEAVED] = rope_interleaved, [FRIT_ROPE_NEOX] = rope_neox},
        .encode[FRIT_DTYPE_F32] = encode_f32,
        .decode[FRIT_DTYPE_F32] = decode_f32,
        .attend_scores[FRIT_DTYPE_F32] = scores_f32,
        .attend_values[FRIT_DTYPE_F32] = values_f32,
        .attend_weigh = weigh,
        .max = max,
        .exp_sum = exp_sum,
        .probe_read = {probe_read, probe_read},
        .probe_int8 = probe_int8,
        .probe_float = probe_float,
    };
    frit_install_scalar_state(k);
    frit_install_scalar_descend(k);
}
