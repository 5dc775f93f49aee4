// SPDX-License-Identifier: MIT
// cuBLASLt for the emulator, in plain loops.
#include "emulator.h"

#include "backend/cuda/runtime/cublaslt.h"
#include "quant/half.h"

#include <stdlib.h>
#include <string.h>

enum { OK, INVALID = 7, R_32F = 0, R_16F = 2, R_16BF = 14, TRANS_A = 3 };

typedef struct object {   // a description of a product, or a layout of a matrix
    int type, is_transposed;
    uint64_t rows, columns;
    int64_t stride;
} object;

int cublasLtCreate(void **handle)
{
    *handle = malloc(1);
    return *handle ? OK : INVALID;
}

int cublasLtDestroy(void *handle)
{
    free(handle);
    return OK;
}

static int make(object **out, object of)
{
    *out = malloc(sizeof of);
    if (*out) **out = of;
    return *out ? OK : INVALID;
}

int cublasLtMatmulDescCreate(object **out, int compute_type, int scale_type)
{
    (void)compute_type, (void)scale_type;
    return make(out, (object){0});
}

int cublasLtMatmulDescSetAttribute(object *desc, int attribute, const void *value, size_t n_bytes)
{
    if (attribute == TRANS_A && n_bytes == sizeof(int)) memcpy(&desc->is_transposed, value, n_bytes);
    return OK;
}

int cublasLtMatmulDescDestroy(object *o)
{
    free(o);
    return OK;
}

int cublasLtMatrixLayoutCreate(object **out, int type, uint64_t rows, uint64_t columns, int64_t stride)
{
    return make(out, (object){.type = type, .rows = rows, .columns = columns, .stride = stride});
}

int cublasLtMatrixLayoutDestroy(object *o)
{
    free(o);
    return OK;
}

int cublasLtMatmulPreferenceCreate(object **out)
{
    return make(out, (object){0});
}

int cublasLtMatmulPreferenceSetAttribute(object *o, int attribute, const void *value, size_t n_bytes)
{
    (void)o, (void)attribute, (void)value, (void)n_bytes;
    return OK;
}

int cublasLtMatmulPreferenceDestroy(object *o)
{
    free(o);
    return OK;
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, object *desc, object *a, object *b, object *c, object *d,
                                   object *preference, int n_wanted, frit_cublaslt_choice *choices, int *n_found)
{
    (void)handle, (void)desc, (void)a, (void)b, (void)c, (void)d, (void)preference;
    memset(choices, 0, (size_t)n_wanted * sizeof *choices);
    *n_found = n_wanted < 2 ? n_wanted : 2;
    return OK;
}

// ------------------------------------------------------------------------------- products

typedef struct product {
    object a, b, d;
    uint64_t at_a, at_b, at_d;
    float alpha, beta;
} product;

static float number(const object *o, uint64_t at, uint64_t i)
{
    if (o->type == R_32F) return ((const float *)(uintptr_t)at)[i];
    const uint16_t bits = ((const uint16_t *)(uintptr_t)at)[i];
    return o->type == R_16F ? frit_half_to_float(bits) : frit_bf16_to_float(bits);
}

static void store(const object *o, uint64_t at, uint64_t i, float v)
{
    if (o->type == R_32F)
        ((float *)(uintptr_t)at)[i] = v;
    else
        ((uint16_t *)(uintptr_t)at)[i] = o->type == R_16F ? frit_float_to_half(v) : frit_float_to_bf16(v);
}

// Converts b once, and a one row at a time.
static void read_column(const object *o, uint64_t at, uint64_t column, float *out)
{
    for (uint64_t i = 0; i < o->rows; i++) out[i] = number(o, at, column * (uint64_t)o->stride + i);
}

enum { LANES = 16 };   // parallel sums, which the compiler vectorizes

static float dot(const float *a, const float *b, uint64_t n)
{
    float sums[LANES] = {0}, sum = 0;
    uint64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) sums[k] += a[i + (uint64_t)k] * b[i + (uint64_t)k];
    for (; i < n; i++) sum += a[i] * b[i];
    for (int k = 0; k < LANES; k++) sum += sums[k];
    return sum;
}

static void run(const emulated_work *work, void *data)
{
    (void)work;
    const product *p = data;
    const uint64_t k = p->a.rows, n = p->d.columns;
    float *b = malloc((n + 1) * k * sizeof *b), *a = b + n * k;
    if (!b) abort();
    for (uint64_t column = 0; column < n; column++) read_column(&p->b, p->at_b, column, b + column * k);
    for (uint64_t row = 0; row < p->d.rows; row++) {
        read_column(&p->a, p->at_a, row, a);
        for (uint64_t column = 0; column < n; column++) {
            const uint64_t at = column * (uint64_t)p->d.stride + row;
            const float sum = dot(a, b + column * k, k);
            store(&p->d, p->at_d, at, p->alpha * sum + (p->beta != 0 ? p->beta * number(&p->d, p->at_d, at) : 0));
        }
    }
    free(b);
}

int cublasLtMatmul(void *handle, object *desc, const float *alpha, uint64_t a, object *layout_a, uint64_t b,
                   object *layout_b, const float *beta, uint64_t c, object *layout_c, uint64_t d, object *layout_d,
                   const uint64_t *algorithm, uint64_t workspace, size_t n_bytes, emulated_stream *stream)
{
    (void)handle, (void)layout_c, (void)algorithm, (void)workspace, (void)n_bytes;
    if (!desc->is_transposed || c != d || layout_a->rows != layout_b->rows) return INVALID;
    product p = {*layout_a, *layout_b, *layout_d, a, b, d, *alpha, *beta};
    return emulated_submit(stream, &(emulated_work){.run = run, .data = &p, .n_bytes = sizeof p});
}
