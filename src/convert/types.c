// SPDX-License-Identifier: MIT
// Number formats of the written tensors; and writing tensors.
#include "convert/convert.h"
#include "format/rows.h"

#include <stdio.h>
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

static bool is_number(const frit_tensor *tensor)
{
    return frit_dtype_get(tensor->dtype)->encode != NULL;
}

bool frit_convert_is_matrix(const frit_tensor *tensor)
{
    return is_number(tensor) && !is_small(tensor);
}

frit_dtype frit_convert_type(const frit_tensor *tensor, frit_dtype wanted, bool is_gguf)
{
    if (!is_number(tensor)) return tensor->dtype;
    if (is_small(tensor)) return is_gguf ? tensor->dtype : FRIT_DTYPE_F32;
    if (wanted == FRIT_DTYPE_COUNT) return tensor->dtype;
    return frit_convert_fit(wanted, tensor->shape[tensor->n_dims - 1]);
}

frit_dtype frit_convert_main_type(const frit_checkpoint *ckpt)
{
    uint64_t n_elems[FRIT_DTYPE_COUNT] = {0};
    frit_dtype best = FRIT_DTYPE_F32;
    for (size_t i = 0; i < ckpt->n_tensors; i++)
        n_elems[ckpt->tensors[i].dtype] += (uint64_t)frit_tensor_n_elems(&ckpt->tensors[i]);
    for (int type = 0; type < FRIT_DTYPE_COUNT; type++)
        if (n_elems[type] > n_elems[best]) best = (frit_dtype)type;
    return best;
}

// As they are listed: fine ones first, families together.
static const struct {
    frit_dtype dtype;
    int id;   // general.file_type
} writable[] = {
    {FRIT_DTYPE_F32, 0},      {FRIT_DTYPE_F16, 1},     {FRIT_DTYPE_BF16, 32},   {FRIT_DTYPE_Q8_0, 7},
    {FRIT_DTYPE_Q6_K, 18},    {FRIT_DTYPE_Q5_K, 16},   {FRIT_DTYPE_Q5_1, 9},    {FRIT_DTYPE_Q5_0, 8},
    {FRIT_DTYPE_Q4_K, 14},    {FRIT_DTYPE_Q4_1, 3},    {FRIT_DTYPE_Q4_0, 2},    {FRIT_DTYPE_Q3_K, 11},
    {FRIT_DTYPE_Q2_K, 10},    {FRIT_DTYPE_IQ4_NL, 25}, {FRIT_DTYPE_IQ4_XS, 30}, {FRIT_DTYPE_IQ3_S, 26},
    {FRIT_DTYPE_IQ3_XXS, 23}, {FRIT_DTYPE_IQ2_S, 28},  {FRIT_DTYPE_IQ2_XS, 20}, {FRIT_DTYPE_IQ2_XXS, 19},
    {FRIT_DTYPE_IQ1_M, 31},   {FRIT_DTYPE_IQ1_S, 24},  {FRIT_DTYPE_TQ2_0, 37},  {FRIT_DTYPE_TQ1_0, 36},
    {FRIT_DTYPE_MXFP4, 38},   {FRIT_DTYPE_NVFP4, 39},
};

int frit_file_type_id(frit_dtype dtype)
{
    for (size_t i = 0; i < FRIT_COUNT(writable); i++)
        if (writable[i].dtype == dtype) return writable[i].id;
    return -1;
}

frit_status frit_convert_find_type(const char *name, frit_dtype *dtype)
{
    *dtype = FRIT_DTYPE_COUNT;
    if (!name || (frit_dtype_from_name(name, dtype) && frit_file_type_id(*dtype) >= 0)) return FRIT_OK;
    char names[256];
    size_t n = 0;
    for (size_t i = 0; i < FRIT_COUNT(writable) && n < sizeof names; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i > 0 ? ", " : "",
                              frit_dtype_get(writable[i].dtype)->name);
    return frit_fail(FRIT_E_INVALID, "type is '%.40s', expected one of %s", name, names);
}

// ------------------------------------------------------------------------------------- writing

// For each thread, written between two reports: half a second of work for the slowest types, so that a conversion that
// is cancelled ends soon.
enum { CHUNK_BYTES = 64 << 10 };

typedef struct chunk {   // rows [first, first + n)
    const frit_tensor *tensor;
    int64_t first, n;
    uint8_t *rows, *scratch;   // scratch: [parts, scratch_bytes]
    size_t scratch_bytes;
} chunk;

static void make_part(void *ctx, int part, int parts)
{
    const chunk *c = ctx;
    const int64_t begin = c->n * part / parts, end = c->n * (part + 1) / parts;
    frit_tensor_read(c->tensor, c->first + begin, end - begin,
                     c->rows + (uint64_t)begin * frit_tensor_row_bytes(c->tensor),
                     c->scratch + (size_t)part * c->scratch_bytes);
}

static frit_status write_chunks(chunk *c, int64_t n_at_once, frit_pool *pool, frit_file_writer *writer,
                                frit_convert_report_fn report, void *ctx)
{
    const int64_t n_rows = frit_tensor_n_rows(c->tensor);
    for (c->first = 0; c->first < n_rows; c->first += c->n) {
        c->n = n_rows - c->first < n_at_once ? n_rows - c->first : n_at_once;
        const size_t n_bytes = (size_t)c->n * (size_t)frit_tensor_row_bytes(c->tensor);
        frit_pool_run(pool, make_part, c);
        FRIT_TRY(frit_file_writer_write(writer, c->rows, n_bytes));
        FRIT_TRY(report(ctx, n_bytes));
    }
    return FRIT_OK;
}

frit_status frit_convert_write(const frit_tensor *tensor, frit_pool *pool, frit_file_writer *writer,
                               frit_convert_report_fn report, void *ctx)
{
    if (tensor->n_bytes == 0) return FRIT_OK;
    const uint64_t row_bytes = frit_tensor_row_bytes(tensor);
    const int64_t n_rows = frit_tensor_n_rows(tensor);
    const uint64_t chunk_bytes = (uint64_t)CHUNK_BYTES * (uint64_t)frit_pool_size(pool);
    const int64_t most = row_bytes < chunk_bytes ? (int64_t)(chunk_bytes / row_bytes) : 1;
    const int64_t n_at_once = n_rows < most ? n_rows : most;
    chunk c = {.tensor = tensor, .scratch_bytes = (frit_tensor_scratch_bytes(tensor) + 63) / 64 * 64};
    c.rows = malloc((size_t)n_at_once * (size_t)row_bytes);
    c.scratch = malloc((size_t)frit_pool_size(pool) * c.scratch_bytes + 1);
    frit_status status = c.rows && c.scratch
                             ? write_chunks(&c, n_at_once, pool, writer, report, ctx)
                             : frit_fail_memory((size_t)n_at_once * (size_t)row_bytes + c.scratch_bytes, tensor->name);
    free(c.rows);
    free(c.scratch);
    return status;
}
