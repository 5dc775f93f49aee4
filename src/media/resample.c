// SPDX-License-Identifier: MIT
// Resampling in two passes of integer sums.
#include "media/resample.h"

#include "base/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BITS = 22, N_COLORS = 3 };

// ------------------------------------------------------------------------------- filters

static double box(double x)
{
    return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

static double bilinear(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static const double pi = 3.14159265358979323846;

static double hamming(double x)
{
    x = fabs(x);
    if (x == 0.0) return 1.0;
    if (x >= 1.0) return 0.0;
    x *= pi;
    return sin(x) / x * (0.54 + 0.46 * cos(x));
}

static double bicubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
    return 0.0;
}

static double sinc(double x)
{
    if (x == 0.0) return 1.0;
    x *= pi;
    return sin(x) / x;
}

static double lanczos(double x)
{
    return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

// Weights by the distance from the place of an output pixel, 0 beyond `support` pixels.
static const struct {
    double (*weight)(double distance);
    double support;
} filters[] = {
    [FRIT_FILTER_BOX] = {box, 0.5},         [FRIT_FILTER_BILINEAR] = {bilinear, 1.0},
    [FRIT_FILTER_HAMMING] = {hamming, 1.0}, [FRIT_FILTER_BICUBIC] = {bicubic, 2.0},
    [FRIT_FILTER_LANCZOS] = {lanczos, 3.0},
};

// ------------------------------------------------------------------------------- weights

// The weights of one pass: output i is the sum of weights[i * max_weights + j] * input[first[i] + j], j < count[i].
typedef struct pass {
    uint32_t n_out, max_weights;
    uint32_t *first, *count;   // [n_out]
    int32_t *weights;          // [n_out, max_weights]
    double *exact;             // [n_out, max_weights], until they are rounded
    int n_bits;
} pass;

static void free_pass(pass *p)
{
    free(p->first);
    free(p->count);
    free(p->weights);
    free(p->exact);
}

static frit_status allocate_pass(pass *p, uint32_t n_in, uint32_t n_out, double support)
{
    const double most = ceil(support) * 2 + 1;
    p->n_out = n_out;
    p->max_weights = most < n_in ? (uint32_t)most : n_in;
    uint64_t n_weights;
    if (frit_mul_u64(n_out, (uint64_t)p->max_weights * sizeof *p->exact, &n_weights) && n_weights <= SIZE_MAX) {
        p->first = malloc(n_out * sizeof *p->first);
        p->count = malloc(n_out * sizeof *p->count);
        p->weights = malloc((size_t)n_weights / 2);
        p->exact = malloc((size_t)n_weights);
    }
    return p->first && p->count && p->weights && p->exact
               ? FRIT_OK
               : frit_fail(FRIT_E_MEMORY, "out of memory: weights of %u to %u pixels", (unsigned)n_in, (unsigned)n_out);
}

static void compute_exact(pass *p, uint32_t n_in, frit_filter filter)
{
    const double scale = (double)n_in / p->n_out, filter_scale = scale > 1.0 ? scale : 1.0;
    const double support = filters[filter].support * filter_scale, unit = 1.0 / filter_scale;
    for (uint32_t i = 0; i < p->n_out; i++) {
        const double center = (i + 0.5) * scale, from = center - support + 0.5, to = center + support + 0.5;
        const int64_t first = from < 0 ? 0 : (int64_t)from, end = to > n_in ? (int64_t)n_in : (int64_t)to;
        double *weights = p->exact + (size_t)i * p->max_weights, sum = 0.0;
        p->first[i] = (uint32_t)first;
        p->count[i] = (uint32_t)(end - first);
        for (int64_t j = 0; j < end - first; j++) {
            weights[j] = filters[filter].weight(((double)(j + first) - center + 0.5) * unit);
            sum += weights[j];
        }
        for (int64_t j = 0; j < end - first; j++)
            if (sum != 0.0) weights[j] /= sum;
    }
}

static int bits_of_largest(const pass *p)
{
    double largest = 0.0;
    for (uint32_t i = 0; i < p->n_out; i++)
        for (uint32_t j = 0; j < p->count[i]; j++) largest = fmax(largest, p->exact[(size_t)i * p->max_weights + j]);
    int n_bits = 0;
    while (n_bits < MAX_BITS && (int)(0.5 + largest * (1 << (n_bits + 1))) < 1 << 15) n_bits++;
    return n_bits;
}

static void round_weights(pass *p)
{
    for (uint32_t i = 0; i < p->n_out; i++)
        for (uint32_t j = 0; j < p->count[i]; j++) {
            const double weight = p->exact[(size_t)i * p->max_weights + j];
            p->weights[(size_t)i * p->max_weights + j] =
                (int32_t)(weight * (1 << p->n_bits) + (weight < 0 ? -0.5 : 0.5));
        }
}

static frit_status make_pass(pass *p, uint32_t n_in, uint32_t n_out, frit_filter filter, int n_bits)
{
    const double scale = (double)n_in / n_out;
    *p = (pass){0};
    FRIT_TRY(allocate_pass(p, n_in, n_out, filters[filter].support * (scale > 1.0 ? scale : 1.0)));
    compute_exact(p, n_in, filter);
    p->n_bits = n_bits ? n_bits : bits_of_largest(p);
    round_weights(p);
    free(p->exact);
    p->exact = NULL;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- sums

static uint8_t to_byte(int32_t sum, int n_bits)
{
    const int32_t value = sum >> n_bits;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void resample_row(const pass *p, const uint8_t *in, uint8_t *out)
{
    const int32_t half = 1 << (p->n_bits - 1);
    for (uint32_t i = 0; i < p->n_out; i++) {
        const int32_t *weights = p->weights + (size_t)i * p->max_weights;
        const uint8_t *from = in + (size_t)p->first[i] * N_COLORS;
        int32_t red = half, green = half, blue = half;
        for (uint32_t j = 0; j < p->count[i]; j++, from += N_COLORS) {
            red += weights[j] * from[0];
            green += weights[j] * from[1];
            blue += weights[j] * from[2];
        }
        out[N_COLORS * i] = to_byte(red, p->n_bits);
        out[N_COLORS * i + 1] = to_byte(green, p->n_bits);
        out[N_COLORS * i + 2] = to_byte(blue, p->n_bits);
    }
}

// sums [row_bytes]: scratch
static void resample_column(const pass *p, uint32_t i, const uint8_t *in, size_t row_bytes, int32_t *restrict sums,
                            uint8_t *restrict out)
{
    for (size_t x = 0; x < row_bytes; x++) sums[x] = 1 << (p->n_bits - 1);
    for (uint32_t j = 0; j < p->count[i]; j++) {
        const int32_t weight = p->weights[(size_t)i * p->max_weights + j];
        const uint8_t *restrict from = in + (p->first[i] + (size_t)j) * row_bytes;
        for (size_t x = 0; x < row_bytes; x++) sums[x] += weight * from[x];
    }
    for (size_t x = 0; x < row_bytes; x++) out[x] = to_byte(sums[x], p->n_bits);
}

static frit_status resample_rows(const uint8_t *in, uint32_t width, uint32_t height, frit_filter filter, int n_bits,
                                 uint8_t *out, uint32_t out_width)
{
    pass p;
    const frit_status status = make_pass(&p, width, out_width, filter, n_bits);
    if (status == FRIT_OK)
        for (size_t y = 0; y < height; y++) resample_row(&p, in + y * width * N_COLORS, out + y * out_width * N_COLORS);
    free_pass(&p);
    return status;
}

static frit_status resample_columns(const uint8_t *in, uint32_t width, uint32_t height, frit_filter filter, int n_bits,
                                    uint8_t *out, uint32_t out_height)
{
    pass p;
    const size_t row_bytes = (size_t)width * N_COLORS;
    int32_t *sums = malloc(row_bytes * sizeof *sums);
    if (!sums) return frit_fail_memory(row_bytes * sizeof *sums, "sums of a row of pixels");
    const frit_status status = make_pass(&p, height, out_height, filter, n_bits);
    if (status == FRIT_OK)
        for (uint32_t y = 0; y < out_height; y++)
            resample_column(&p, y, in, row_bytes, sums, out + (size_t)y * row_bytes);
    free_pass(&p);
    free(sums);
    return status;
}

static void resample_nearest(const uint8_t *in, uint32_t width, uint32_t height, uint8_t *out, uint32_t out_width,
                             uint32_t out_height)
{
    const double step_x = (double)width / out_width, step_y = (double)height / out_height;
    double at_y = step_y * 0.5;
    for (size_t y = 0; y < out_height; y++, at_y += step_y) {
        double at_x = step_x * 0.5;
        const size_t row = at_y < height ? (size_t)at_y : height - 1;
        for (size_t x = 0; x < out_width; x++, at_x += step_x) {
            const size_t column = at_x < width ? (size_t)at_x : width - 1;
            memcpy(out + (y * out_width + x) * N_COLORS, in + (row * width + column) * N_COLORS, N_COLORS);
        }
    }
}

frit_status frit_resample(const uint8_t *in, uint32_t width, uint32_t height, frit_filter filter, int n_bits,
                          uint8_t *out, uint32_t out_width, uint32_t out_height)
{
    if (filter == FRIT_FILTER_NEAREST) {
        resample_nearest(in, width, height, out, out_width, out_height);
        return FRIT_OK;
    }
    if (out_width != width && out_height != height) {
        const size_t n_bytes = (size_t)height * out_width * N_COLORS;
        uint8_t *rows = malloc(n_bytes);
        if (!rows) return frit_fail_memory(n_bytes, "a picture that is resized");
        frit_status status = resample_rows(in, width, height, filter, n_bits, rows, out_width);
        if (status == FRIT_OK) status = resample_columns(rows, out_width, height, filter, n_bits, out, out_height);
        free(rows);
        return status;
    }
    if (out_width != width) return resample_rows(in, width, height, filter, n_bits, out, out_width);
    if (out_height != height) return resample_columns(in, width, height, filter, n_bits, out, out_height);
    memcpy(out, in, (size_t)width * height * N_COLORS);
    return FRIT_OK;
}
