// SPDX-License-Identifier: MIT
// Types of written tensors, and writing tensors.
#include "convert/convert.h"
#include "format/rows.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Matrices that mixes leave unchanged. Other engines read some of them as f32.
static const struct {
    const char *part;
    bool is_f32;
} unchanged[] = {
    {"_norm.weight", true},
    {"ffn_gate_inp.weight", true},
    {"ssm_conv1d.weight", true},
    {"shortconv.conv.weight", true},
    {"time_mix_first.weight", true},
    {"time_mix_w1.weight", true},
    {"time_mix_w2.weight", true},
    {"time_mix_decay_w1.weight", true},
    {"time_mix_decay_w2.weight", true},
    {"time_mix_lerp_fused.weight", true},
    {"token_types.weight", true},
    {"position_embd.weight", true},
    {"attn_rel_b.weight", true},
    {"ssm_conv1d", false},   // "ssm_conv1d_k.weight" too
    {"ffn_gate_tid2eid.weight", false},
    {"altup", false},
    {"laurel", false},
    {"per_layer_model_proj", false},
    {"indexer.k_proj.weight", false},
    {"indexer.q_proj.weight", false},
    {"time_mix_w0.weight", false},
    {"time_mix_v0.weight", false},
    {"time_mix_v1.weight", false},
    {"time_mix_v2.weight", false},
    {"time_mix_a0.weight", false},
    {"time_mix_a1.weight", false},
    {"time_mix_a2.weight", false},
    {"time_mix_g1.weight", false},
    {"time_mix_g2.weight", false},
    {".position_embd", false},
    {"sam.pos_embd", false},
    {"sam.neck.", false},
    {"sam.net_", false},
    {".rel_pos", false},
    {".patch_embd", false},
    {".patch_merger", false},
    {"a.rvq.codebook", false},
    {"mm.a.code_embd", false},
};

// True for small tensors, which other engines read as f32.
static bool is_small(const frit_tensor *tensor)
{
    const size_t n = strlen(tensor->name);
    if (tensor->n_dims < 2 || n < 7 || strcmp(tensor->name + n - 7, ".weight") != 0) return true;
    for (size_t i = 0; i < FRIT_COUNT(unchanged); i++)
        if (unchanged[i].is_f32 && strstr(tensor->name, unchanged[i].part)) return true;
    return false;
}

bool frit_convert_is_mixed(const frit_tensor *tensor)
{
    bool is_vector = true;
    for (int i = 0; i + 1 < tensor->n_dims; i++) is_vector &= tensor->shape[i] == 1;
    if (is_vector || !frit_convert_is_matrix(tensor)) return false;
    for (size_t i = 0; i < FRIT_COUNT(unchanged); i++)
        if (strstr(tensor->name, unchanged[i].part)) return false;
    return true;
}

static bool is_number(const frit_tensor *tensor)
{
    return frit_dtype_get(tensor->dtype)->encode != NULL;
}

bool frit_convert_is_matrix(const frit_tensor *tensor)
{
    return is_number(tensor) && !is_small(tensor);
}

// True for the token table and the output matrix, which folders of fp8 weights have in another type.
static bool is_text_matrix(const char *name)
{
    return strcmp(name, "token_embd.weight") == 0 || strcmp(name, "output.weight") == 0;
}

frit_dtype frit_convert_type(const frit_tensor *tensor, frit_dtype wanted, bool is_gguf)
{
    if (!is_number(tensor)) return tensor->dtype;
    if (is_small(tensor)) return is_gguf ? tensor->dtype : FRIT_DTYPE_F32;
    if (wanted == FRIT_DTYPE_FP8_128 && is_text_matrix(tensor->name)) return tensor->dtype;
    if (wanted == FRIT_DTYPE_COUNT) return frit_dtype_is_of_files(tensor->dtype) ? tensor->dtype : FRIT_DTYPE_BF16;
    return frit_convert_fit(wanted, tensor->shape[tensor->n_dims - 1], false);
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

// In the order of listings: fine types first, families together.
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

bool frit_convert_is_fp8(const char *name, bool *has_inputs)
{
    *has_inputs = name && strcmp(name, "fp8") == 0;
    return *has_inputs || (name && strcmp(name, "fp8_weights") == 0);
}

frit_status frit_convert_find_types(const char *name, frit_convert_types *types)
{
    *types = (frit_convert_types){.wanted = FRIT_DTYPE_COUNT};
    types->mix.output = types->mix.table = FRIT_DTYPE_COUNT;
    bool has_inputs;
    if (frit_convert_is_fp8(name, &has_inputs)) {   // for models in memory; the writer of GGUF refuses it
        types->wanted = FRIT_DTYPE_FP8_128;
        return FRIT_OK;
    }
    const frit_status status = frit_convert_find_type(name, &types->wanted);
    if (status == FRIT_OK) return FRIT_OK;
    types->wanted = FRIT_DTYPE_COUNT;
    types->mix.mix = frit_mix_find(name);
    return types->mix.mix ? FRIT_OK : frit_fail(status, "%s, or a mix like q4_k_m", frit_error());
}

bool frit_convert_changes(const frit_convert_types *types)
{
    return types->mix.mix || types->wanted != FRIT_DTYPE_COUNT;
}

// ------------------------------------------------------------------------------------- writing

// Bytes per thread between two reports: half a second of work for the slowest types, so that a cancelled conversion
// ends soon.
enum { CHUNK_BYTES = 64 << 10 };

typedef struct chunk {   // rows [first, first + n)
    const frit_tensor *tensor;
    int64_t first, n;
    uint8_t *rows, *scratch;   // scratch: [parts, scratch_bytes]
    size_t scratch_bytes;
    float *values;   // [parts, width]; NULL: encoding checks the numbers
    _Atomic bool is_bad;
} chunk;

static void make_part(void *ctx, int thread, int n_threads)
{
    chunk *c = ctx;
    const frit_dtype_info *type = frit_dtype_get(c->tensor->dtype);
    const int64_t begin = c->n * thread / n_threads, end = c->n * (thread + 1) / n_threads;
    const int64_t width = frit_tensor_width(c->tensor);
    const uint64_t row_bytes = frit_tensor_row_bytes(c->tensor);
    frit_tensor_read(c->tensor, c->first + begin, end - begin, c->rows + (uint64_t)begin * row_bytes,
                     c->scratch + (size_t)thread * c->scratch_bytes);
    float *values = c->values ? c->values + (int64_t)thread * width : NULL;
    for (int64_t i = begin; values && i < end; i++) {
        type->decode(c->rows + (uint64_t)i * row_bytes, values, width);
        if (frit_first_beyond(values, width, FLT_MAX) < width) c->is_bad = true;
    }
}

// Fails with the first number of the chunk that is not finite.
static frit_status fail_copied(const chunk *c)
{
    const int64_t width = frit_tensor_width(c->tensor);
    const frit_dtype_info *type = frit_dtype_get(c->tensor->dtype);
    for (int64_t i = 0; i < c->n; i++) {
        type->decode(c->rows + (uint64_t)i * frit_tensor_row_bytes(c->tensor), c->values, width);
        const int64_t at = frit_first_beyond(c->values, width, FLT_MAX);
        if (at < width)
            return frit_tensor_fail_number(c->tensor->name, (c->first + i) * width + at, width, c->values[at], type);
    }
    return FRIT_OK;
}

static frit_status write_chunks(chunk *c, int64_t n_at_once, frit_pool *pool, frit_file_writer *writer,
                                frit_convert_report_fn report, void *ctx)
{
    const int64_t n_rows = frit_tensor_n_rows(c->tensor);
    for (c->first = 0; c->first < n_rows; c->first += c->n) {
        c->n = n_rows - c->first < n_at_once ? n_rows - c->first : n_at_once;
        const size_t n_bytes = (size_t)c->n * (size_t)frit_tensor_row_bytes(c->tensor);
        frit_pool_run(pool, make_part, c);
        FRIT_TRY(c->is_bad ? fail_copied(c) : frit_tensor_check(c->tensor));
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
    frit_encode_origin origin;
    const bool is_encoded = frit_tensor_get_origin(tensor, &origin);
    const size_t n_values = is_encoded ? 0 : (size_t)frit_pool_size(pool) * (size_t)frit_tensor_width(tensor);
    if (!is_encoded) c.values = calloc(n_values, sizeof *c.values);
    frit_status status = c.rows && c.scratch && (is_encoded || c.values)
                             ? write_chunks(&c, n_at_once, pool, writer, report, ctx)
                             : frit_fail_memory((size_t)n_at_once * (size_t)row_bytes + c.scratch_bytes, tensor->name);
    free(c.values);
    free(c.rows);
    free(c.scratch);
    return status;
}
