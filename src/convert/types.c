// SPDX-License-Identifier: MIT
// Types of tensors: which become what, and the rows that change.
#include "convert/convert.h"

#include <stdlib.h>
#include <string.h>

// Small, and read as f32 by other engines.
static bool is_small(const frit_tensor *tensor)
{
    static const char *const parts[] = {
        "ffn_gate_inp.weight",        "ssm_conv1d.weight",  "shortconv.conv.weight",    "time_mix_first.weight",
        "time_mix_w1.weight",         "time_mix_w2.weight", "time_mix_decay_w1.weight", "time_mix_decay_w2.weight",
        "time_mix_lerp_fused.weight", "token_types.weight", "position_embd.weight",     "attn_rel_b.weight",
    };
    const size_t n = strlen(tensor->name);
    if (tensor->n_dims < 2 || n < 7 || strcmp(tensor->name + n - 7, ".weight") != 0) return true;
    if (strstr(tensor->name, "_norm.weight")) return true;
    for (size_t i = 0; i < FRIT_COUNT(parts); i++) {
        const size_t m = strlen(parts[i]);
        if (n >= m && strcmp(tensor->name + n - m, parts[i]) == 0) return true;
    }
    return false;
}

frit_dtype frit_convert_type(const frit_tensor *tensor, frit_dtype wanted, bool is_gguf)
{
    const bool is_number = frit_dtype_get(tensor->dtype)->encode != NULL;
    if (!is_number) return tensor->dtype;
    if (is_small(tensor)) return is_gguf ? tensor->dtype : FRIT_DTYPE_F32;
    if (wanted == FRIT_DTYPE_COUNT) return tensor->dtype;
    const bool fits = tensor->shape[tensor->n_dims - 1] % frit_dtype_get(wanted)->block_elems == 0;
    return fits ? wanted : FRIT_DTYPE_F16;
}

int frit_file_type_id(frit_dtype dtype)
{
    static const struct {
        frit_dtype dtype;
        int id;
    } ids[] = {
        {FRIT_DTYPE_F32, 0},      {FRIT_DTYPE_F16, 1},     {FRIT_DTYPE_Q4_0, 2},     {FRIT_DTYPE_Q4_1, 3},
        {FRIT_DTYPE_Q8_0, 7},     {FRIT_DTYPE_Q5_0, 8},    {FRIT_DTYPE_Q5_1, 9},     {FRIT_DTYPE_Q2_K, 10},
        {FRIT_DTYPE_Q3_K, 11},    {FRIT_DTYPE_Q4_K, 14},   {FRIT_DTYPE_Q5_K, 16},    {FRIT_DTYPE_Q6_K, 18},
        {FRIT_DTYPE_IQ2_XXS, 19}, {FRIT_DTYPE_IQ2_XS, 20}, {FRIT_DTYPE_IQ3_XXS, 23}, {FRIT_DTYPE_IQ1_S, 24},
        {FRIT_DTYPE_IQ4_NL, 25},  {FRIT_DTYPE_IQ3_S, 26},  {FRIT_DTYPE_IQ2_S, 28},   {FRIT_DTYPE_IQ4_XS, 30},
        {FRIT_DTYPE_IQ1_M, 31},   {FRIT_DTYPE_BF16, 32},   {FRIT_DTYPE_TQ1_0, 36},   {FRIT_DTYPE_TQ2_0, 37},
        {FRIT_DTYPE_MXFP4, 38},
    };
    for (size_t i = 0; i < FRIT_COUNT(ids); i++)
        if (ids[i].dtype == dtype) return ids[i].id;
    return -1;
}

// ------------------------------------------------------------------------------------- rows

enum { CHUNK_BYTES = 16 << 20 };   // of numbers, as floats

typedef struct chunk {   // rows [first, first + n) of the result
    const frit_tensor *from, *to;
    const frit_row_order *order;
    int64_t width, first, n;   // width: numbers of a row; vectors have rows of one
    float *values;             // [parts, width]
    uint8_t *out;
    size_t out_bytes;   // of a row
} chunk;

static void convert_part(void *ctx, int part, int parts)
{
    const chunk *c = ctx;
    const frit_dtype_info *from = frit_dtype_get(c->from->dtype), *to = frit_dtype_get(c->to->dtype);
    const size_t in_bytes = (size_t)frit_dtype_row_bytes(c->from->dtype, c->width);
    float *values = c->values + (size_t)part * (size_t)c->width;
    for (int64_t i = c->n * part / parts; i < c->n * (part + 1) / parts; i++) {
        const int64_t source = frit_row_order_source(c->order, c->first + i);
        const uint8_t *row = (const uint8_t *)c->from->data + (size_t)source * in_bytes;
        uint8_t *out = c->out + (size_t)i * c->out_bytes;
        if (c->from->dtype == c->to->dtype) {
            memcpy(out, row, in_bytes);
            continue;
        }
        from->decode(row, values, c->width);
        to->encode(values, out, c->width, NULL);
    }
}

static frit_status write_rows(chunk *c, int64_t n_rows, int64_t n_at_once, frit_pool *pool, frit_file_writer *writer,
                              frit_convert_report_fn report, void *ctx)
{
    const uint64_t in_bytes = frit_dtype_row_bytes(c->from->dtype, c->width);
    for (c->first = 0; c->first < n_rows; c->first += c->n) {
        c->n = n_rows - c->first < n_at_once ? n_rows - c->first : n_at_once;
        frit_pool_run(pool, convert_part, c);
        FRIT_TRY(frit_file_writer_write(writer, c->out, (size_t)c->n * c->out_bytes));
        FRIT_TRY(report(ctx, (uint64_t)c->n * in_bytes));
    }
    return FRIT_OK;
}

frit_status frit_convert_rows(const frit_tensor *from, const frit_tensor *to, const frit_row_order *order,
                              frit_pool *pool, frit_file_writer *writer, frit_convert_report_fn report, void *ctx)
{
    const int64_t n = frit_tensor_n_elems(to);
    if (n == 0) return FRIT_OK;
    const int64_t width = order->of_numbers ? 1 : from->shape[from->n_dims > 0 ? from->n_dims - 1 : 0];
    chunk c = {.from = from, .to = to, .order = order, .width = width};
    const int64_t n_rows = n / c.width, most = CHUNK_BYTES / 4 / c.width > 1 ? CHUNK_BYTES / 4 / c.width : 1;
    const int64_t n_at_once = n_rows < most ? n_rows : most;
    c.out_bytes = (size_t)frit_dtype_row_bytes(to->dtype, c.width);
    c.values = malloc((size_t)frit_pool_size(pool) * (size_t)c.width * sizeof *c.values);
    c.out = malloc((size_t)n_at_once * c.out_bytes);
    frit_status status = c.values && c.out ? write_rows(&c, n_rows, n_at_once, pool, writer, report, ctx)
                                           : frit_fail_memory((size_t)n_at_once * c.out_bytes, to->name);
    free(c.values);
    free(c.out);
    return status;
}
