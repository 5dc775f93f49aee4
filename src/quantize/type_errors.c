// SPDX-License-Identifier: MIT
// Measures the error of each type in a matrix's output, weighted by the matrix's input. Sampled rows are enough,
// because only ratios count.
#include "quantize/type_choice.h"
#include "format/rows.h"

#include <stdlib.h>
#include <string.h>

enum { SAMPLED_ROWS = 1024, FEWEST_ROWS = 256, SAMPLED_NUMBERS = 2 << 20 };

typedef struct sampling {
    const frit_tensor *tensor;
    const float *means;   // [n_matrices, width]; NULL: equal weights
    frit_dtype types[FRIT_TYPE_CHOICE_TYPES + 1];
    int n_types;
    int64_t n_rows, n_sampled, height;
    double *errors;   // [n_sampled][n_types]
    bool failed;
} sampling;

static double error_of(const float *values, const float *again, const float *weights, int64_t n)
{
    double sum = 0;
    for (int64_t c = 0; c < n; c++) {
        const double error = (double)values[c] - (double)again[c];
        sum += (weights ? (double)weights[c] : 1) * error * error;
    }
    return sum;
}

typedef struct row_buffers {   // buffers of a thread
    float *values, *again;
    uint8_t *blocks, *row, *scratch;
} row_buffers;

static bool open_buffers(row_buffers *r, const sampling *s)
{
    const size_t width = (size_t)frit_tensor_width(s->tensor);
    *r = (row_buffers){.values = malloc(width * sizeof(float)),
                       .again = malloc(width * sizeof(float)),
                       .blocks = malloc(width * sizeof(float) + 64),
                       .row = malloc((size_t)frit_tensor_row_bytes(s->tensor)),
                       .scratch = malloc(frit_tensor_scratch_bytes(s->tensor) + 16)};
    return r->values && r->again && r->blocks && r->row && r->scratch;
}

static void close_buffers(row_buffers *r)
{
    free(r->values);
    free(r->again);
    free(r->blocks);
    free(r->row);
    free(r->scratch);
}

static void sample_row(const sampling *s, row_buffers *r, int64_t i)
{
    const int64_t width = frit_tensor_width(s->tensor), row = i * s->n_rows / s->n_sampled;
    const float *weights = s->means ? s->means + row / s->height * width : NULL;
    const uint8_t *from = frit_tensor_rows(s->tensor, row, 1, r->row, r->scratch);
    frit_dtype_get(s->tensor->dtype)->decode(from, r->values, width);
    for (int t = 0; t < s->n_types; t++) {
        const frit_dtype_info *type = frit_dtype_get(s->types[t]);
        double error = 0;
        if (s->types[t] != s->tensor->dtype) {
            type->encode(r->values, r->blocks, width, weights);
            type->decode(r->blocks, r->again, width);
            error = error_of(r->values, r->again, weights, width);
        }
        s->errors[i * s->n_types + t] = error;
    }
}

static void sample_rows(void *ctx, int thread, int n_threads)
{
    sampling *s = ctx;
    row_buffers r;
    if (open_buffers(&r, s))
        for (int64_t i = thread; i < s->n_sampled; i += n_threads) sample_row(s, &r, i);
    else
        s->failed = true;
    close_buffers(&r);
}

frit_status frit_type_choice_column_means(const frit_type_choice *a, const frit_tensor *tensor, float **means)
{
    const frit_importance_entry *entry = frit_importance_find(a->importance, tensor->name);
    const int64_t n_matrices = tensor->n_dims > 2 ? tensor->shape[tensor->n_dims - 3] : 1;
    *means = NULL;
    if (!entry || entry->n_values != (size_t)(frit_tensor_width(tensor) * n_matrices)) return FRIT_OK;
    *means = malloc(entry->n_values * sizeof **means);
    if (!*means) return frit_fail_memory(entry->n_values * sizeof **means, tensor->name);
    frit_importance_means(a->importance, entry, *means);
    return FRIT_OK;
}

static frit_status measure_types(const frit_type_choice *a, const frit_type_choice_matrix *m, double *errors)
{
    const frit_tensor *tensor = &a->ckpt->tensors[m->i];
    float *means;
    sampling s = {.tensor = tensor, .n_types = m->n_types + 1, .n_rows = frit_tensor_n_rows(tensor)};
    FRIT_TRY(frit_type_choice_column_means(a, tensor, &means));
    s.means = means;
    s.n_sampled = SAMPLED_NUMBERS / frit_tensor_width(tensor);
    s.n_sampled = s.n_sampled < FEWEST_ROWS ? FEWEST_ROWS : s.n_sampled > SAMPLED_ROWS ? SAMPLED_ROWS : s.n_sampled;
    if (s.n_sampled > s.n_rows) s.n_sampled = s.n_rows;
    s.height = tensor->n_dims > 2 ? tensor->shape[tensor->n_dims - 2] : s.n_rows;
    for (int t = 0; t < m->n_types; t++) s.types[t] = m->types[t].type;
    s.types[m->n_types] = m->probe;
    s.errors = calloc((size_t)s.n_sampled * (size_t)s.n_types, sizeof *s.errors);
    if (s.errors) frit_pool_run(a->pool, sample_rows, &s);
    for (int t = 0; s.errors && t < s.n_types; t++) {
        errors[s.types[t]] = 0;
        for (int64_t i = 0; i < s.n_sampled; i++) errors[s.types[t]] += s.errors[i * s.n_types + t];
    }
    const bool failed = !s.errors || s.failed;
    free(s.errors);
    free(means);
    return failed ? frit_fail_memory((size_t)s.n_sampled * sizeof(double), tensor->name) : FRIT_OK;
}

static bool is_measured(const frit_type_choice_matrix *m, const double *errors)
{
    bool is = errors[m->probe] >= 0;
    for (int t = 0; t < m->n_types; t++) is &= errors[m->types[t].type] >= 0;
    return is;
}

// If the probe type has no error, neither has any type with a predicted KL.
frit_status frit_type_choice_measure_errors(frit_type_choice *a)
{
    frit_type_choice_begin(a, "encoding");
    for (size_t k = 0; k < a->n; k++) {
        frit_type_choice_matrix *m = &a->list[k];
        double *errors = a->errors + k * FRIT_DTYPE_COUNT;
        if (m->is_kept) continue;
        if (!is_measured(m, errors)) FRIT_TRY(measure_types(a, m, errors));
        m->probe_error = errors[m->probe];
        for (int t = 0; t < m->n_types; t++) m->types[t].error = errors[m->types[t].type];
        for (int t = 0; t < m->n_types; t++)
            m->types[t].kl = m->probe_error > 0 ? m->probe_kl * (m->types[t].error / m->probe_error) : 0;
        FRIT_TRY(frit_type_choice_save_sometimes(a));
        FRIT_TRY(frit_type_choice_report(a, (double)(k + 1) / (double)a->n));
    }
    return FRIT_OK;
}
