// SPDX-License-Identifier: MIT
// The list of tensors on the GPU, and loading them: rows become tiles on the CPU's threads, in pieces.
#include "backend/webgpu/weights/weights.h"
#include "backend/webgpu/ops/ops.h"
#include "backend/webgpu/weights/tiles.h"
#include "base/grow.h"
#include "format/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 8 << 20 };

static uint64_t row_tile_bytes(const frit_tensor *tensor)
{
    const int64_t n_blocks = (frit_tensor_width(tensor) + FRIT_TILE_COLUMNS - 1) / FRIT_TILE_COLUMNS;
    return (uint64_t)n_blocks * (uint64_t)frit_tile_format_of(tensor->dtype)->tile_bytes;
}

static uint64_t bytes_of(const frit_tensor *tensor, bool is_tiled)
{
    const uint64_t n_rows = (uint64_t)frit_tensor_n_rows(tensor);
    if (is_tiled) return (n_rows + FRIT_TILE_ROWS - 1) / FRIT_TILE_ROWS * row_tile_bytes(tensor);
    return n_rows * frit_tensor_row_bytes(tensor);
}

static bool is_same(const frit_webgpu_tensor *t, const frit_webgpu_matrices *m, bool is_tiled)
{
    if (t->is_tiled != is_tiled || t->n_tensors != m->n || t->is_gated != m->is_gated) return false;
    const frit_webgpu_cut *a = &t->cut, *b = &m->cut;
    if (a->n_matrices != b->n_matrices || a->n != b->n || a->begin[0] != b->begin[0] || a->begin[1] != b->begin[1])
        return false;
    for (int i = 0; i < m->n; i++)
        if (!frit_tensor_is_same(&t->tensors[i], m->list[i])) return false;
    return true;
}

// Row tiles of each matrix of a stack.
static int64_t cut_tiles(const frit_webgpu_cut *cut, bool is_gated)
{
    return (cut->n * (is_gated ? 2 : 1) + FRIT_TILE_ROWS - 1) / FRIT_TILE_ROWS;
}

// Row tiles of the matrices: each begins a tile, unless the rows of two alternate.
static int64_t row_tiles(const frit_webgpu_matrices *m)
{
    int64_t n = 0;
    if (m->cut.n_matrices > 0) return m->cut.n_matrices * cut_tiles(&m->cut, m->is_gated);
    for (int i = 0; i < m->n; i++) {
        const int64_t n_rows = frit_tensor_n_rows(m->list[i]) * (m->is_gated ? 2 : 1);
        if (!m->is_gated || i == 0) n += (n_rows + FRIT_TILE_ROWS - 1) / FRIT_TILE_ROWS;
    }
    return n;
}

// ------------------------------------------------------------------------------- packing

typedef struct pack_job {
    const frit_tile_format *format;
    frit_web_tile_source source;
    int64_t begin, end;
    uint64_t row_bytes;   // of a row tile
    uint8_t *out;
} pack_job;

static void pack_part(void *ctx, int part, int parts)
{
    const pack_job *job = ctx;
    const int64_t n = job->end - job->begin, a = n * part / parts, b = n * (part + 1) / parts;
    frit_web_tile_pack(job->format, &job->source, job->begin + a, job->begin + b,
                       job->out + (uint64_t)a * job->row_bytes);
}

typedef struct rows_in_memory {
    uint8_t *made;
    const uint8_t *rows;
} rows_in_memory;

typedef struct read_job {
    const frit_tensor *tensor;
    uint8_t *rows;
    uint8_t *scratch;   // for each part
    size_t scratch_bytes;
} read_job;

static void read_part(void *ctx, int part, int parts)
{
    const read_job *job = ctx;
    const int64_t n = frit_tensor_n_rows(job->tensor), a = n * part / parts, b = n * (part + 1) / parts;
    if (b > a)
        frit_tensor_read(job->tensor, a, b - a, job->rows + (uint64_t)a * frit_tensor_row_bytes(job->tensor),
                         job->scratch + (size_t)part * job->scratch_bytes);
}

// The tensor's rows: in memory, or computed.
static frit_status read_rows(frit_pool *pool, const frit_tensor *tensor, rows_in_memory *out)
{
    *out = (rows_in_memory){.rows = tensor->data};
    if (tensor->data || !tensor->recipe) return FRIT_OK;
    const uint64_t n_bytes = bytes_of(tensor, false);
    read_job job = {.tensor = tensor, .scratch_bytes = (frit_tensor_scratch_bytes(tensor) + 63) / 64 * 64};
    job.scratch = malloc(job.scratch_bytes * (size_t)frit_pool_size(pool) + 1);
    out->rows = out->made = job.rows = malloc((size_t)n_bytes + 1);
    if (job.rows && job.scratch) frit_pool_run(pool, read_part, &job);
    free(job.scratch);
    return job.rows && job.scratch ? FRIT_OK : frit_fail_memory((size_t)n_bytes, "rows of a tensor");
}

// Packs the row tiles of one source, which are row tiles `first` and following of the tensor.
static frit_status write_tiles(frit_webgpu_device *d, const frit_webgpu_tensor *t, int64_t first, pack_job *job)
{
    const int64_t most = PIECE_BYTES / (int64_t)job->row_bytes, step = most > 0 ? most : 1;
    const int64_t n = frit_web_tile_rows(&job->source);
    for (int64_t at = 0; at < n; at = job->end) {
        const int part = (int)((first + at) / t->part_rows);
        const int64_t left = (part + 1) * t->part_rows - first - at;
        job->begin = at;
        job->end = at + (step < left ? step : left);
        if (job->end > n) job->end = n;
        frit_pool_run(d->pool, pack_part, job);
        FRIT_TRY(frit_gpu_write(&d->gpu, &t->parts[part], (uint64_t)(first + at - part * t->part_rows) * job->row_bytes,
                                job->out, (uint64_t)(job->end - job->begin) * job->row_bytes));
    }
    return FRIT_OK;
}

// The tiles of all matrices of stacks.
static frit_status write_stacks(frit_webgpu_device *d, const frit_webgpu_tensor *t, const rows_in_memory *rows,
                                pack_job *job)
{
    const frit_webgpu_cut *cut = &t->cut;
    const uint64_t row_bytes = frit_tensor_row_bytes(&t->tensors[0]);
    for (int64_t i = 0; i < cut->n_matrices; i++) {
        const uint8_t *sources[2] = {0};
        for (int k = 0; k < t->n_tensors; k++)
            sources[k] = rows[k].rows + (uint64_t)(i * t->tensors[k].shape[1] + cut->begin[k]) * row_bytes;
        job->source = (frit_web_tile_source){.blocks = sources[0],
                                             .second = t->is_gated ? sources[1] : NULL,
                                             .n_rows = cut->n,
                                             .n_columns = frit_tensor_width(&t->tensors[0])};
        FRIT_TRY(write_tiles(d, t, i * cut_tiles(cut, t->is_gated), job));
    }
    return FRIT_OK;
}

static frit_status write_matrices(frit_webgpu_device *d, const frit_webgpu_tensor *t, const rows_in_memory *rows,
                                  pack_job *job)
{
    int64_t at = 0;
    for (int i = 0; i < (t->is_gated ? 1 : t->n_tensors); i++) {
        job->source = (frit_web_tile_source){.blocks = rows[i].rows,
                                             .second = t->is_gated ? rows[1].rows : NULL,
                                             .n_rows = frit_tensor_n_rows(&t->tensors[i]),
                                             .n_columns = frit_tensor_width(&t->tensors[0])};
        FRIT_TRY(write_tiles(d, t, at, job));
        at += frit_web_tile_rows(&job->source);
    }
    return FRIT_OK;
}

static frit_status fill_tiles(frit_webgpu_device *d, const frit_webgpu_tensor *t, const rows_in_memory *rows)
{
    const frit_tensor *first = &t->tensors[0];
    pack_job job = {.format = frit_tile_format_of(first->dtype), .row_bytes = row_tile_bytes(first)};
    const size_t room = job.row_bytes > PIECE_BYTES ? (size_t)job.row_bytes : PIECE_BYTES;
    job.out = malloc(room);
    if (!job.out) return frit_fail_memory(room, "tiles of a tensor");
    const frit_status status =
        t->cut.n_matrices > 0 ? write_stacks(d, t, rows, &job) : write_matrices(d, t, rows, &job);
    free(job.out);
    return status;
}

static frit_status fill_plain(frit_webgpu_device *d, frit_webgpu_tensor *t, const uint8_t *rows)
{
    const uint64_t whole = t->n_bytes / 4 * 4, rest = t->n_bytes - whole;
    uint32_t last = 0;
    FRIT_TRY(frit_gpu_write(&d->gpu, &t->parts[0], 0, rows, whole));
    if (rest == 0) return FRIT_OK;
    memcpy(&last, rows + whole, (size_t)rest);
    return frit_gpu_write(&d->gpu, &t->parts[0], whole, &last, 4);
}

static frit_status fill_tensor(frit_webgpu_device *d, frit_webgpu_tensor *t)
{
    rows_in_memory rows[FRIT_WEBGPU_STACK] = {0};
    frit_status status = FRIT_OK;
    for (int i = 0; i < t->n_tensors && status == FRIT_OK; i++) status = read_rows(d->pool, &t->tensors[i], &rows[i]);
    if (status == FRIT_OK) status = t->is_tiled ? fill_tiles(d, t, rows) : fill_plain(d, t, rows[0].rows);
    for (int i = 0; i < t->n_tensors; i++) free(rows[i].made);
    return status;
}

// ------------------------------------------------------------------------------- the list

static void free_tensor(frit_webgpu_device *d, frit_webgpu_tensor *t)
{
    for (int i = 0; t->parts && i < t->n_parts; i++) frit_gpu_buffer_free(&d->gpu, &t->parts[i]);
    free(t->parts);
    free(t);
}

static uint64_t most_bytes(const frit_webgpu_device *d)   // of a buffer that kernels read
{
    const frit_wgpu_limits *limits = &d->gpu.limits;
    return limits->storage_binding_bytes < limits->buffer_bytes ? limits->storage_binding_bytes : limits->buffer_bytes;
}

bool frit_webgpu_has_tiles(frit_dtype dtype)
{
    return frit_tile_format_of(dtype) && dtype != FRIT_DTYPE_FP8_128;
}

bool frit_webgpu_fits_one(const frit_webgpu_device *d, const frit_webgpu_matrices *m)
{
    return (uint64_t)row_tiles(m) * row_tile_bytes(m->list[0]) <= most_bytes(d);
}

// Cuts the tensor into as few buffers as bindings allow.
static frit_status alloc_parts(frit_webgpu_device *d, frit_webgpu_tensor *t)
{
    const uint64_t most = most_bytes(d);
    const uint64_t row_bytes = t->is_tiled ? row_tile_bytes(&t->tensors[0]) : t->n_bytes + 1;
    t->n_parts = 1;
    if (t->is_tiled) {
        t->n_rows = (int64_t)(t->n_bytes / row_bytes);
        const int64_t whole = t->cut.n_matrices > 0 ? cut_tiles(&t->cut, t->is_gated) : 1;
        t->part_rows = (int64_t)(most / row_bytes) / whole * whole;
        if (t->part_rows == 0)
            return frit_fail(FRIT_E_UNSUPPORTED, "%s: %d rows of %s have %.1f MB, more than a binding", d->gpu.name,
                             (int)whole * FRIT_TILE_ROWS, t->tensors[0].name, (double)row_bytes * (double)whole / 1e6);
        t->n_parts = (int)((t->n_rows + t->part_rows - 1) / t->part_rows);
    }
    t->parts = calloc((size_t)t->n_parts, sizeof *t->parts);
    if (!t->parts) return frit_fail_memory((size_t)t->n_parts * sizeof *t->parts, "parts of a tensor");
    for (int i = 0; i < t->n_parts; i++) {
        const int64_t left = t->n_rows - i * t->part_rows;
        const uint64_t n_bytes =
            t->is_tiled ? (uint64_t)(left < t->part_rows ? left : t->part_rows) * row_bytes : t->n_bytes;
        FRIT_TRY(frit_gpu_buffer_new(&d->gpu, n_bytes, FRIT_GPU_STORAGE, t->tensors[0].name, &t->parts[i]));
    }
    return FRIT_OK;
}

static frit_status load_tensor(frit_webgpu_device *d, const frit_webgpu_matrices *m, bool is_tiled,
                               frit_webgpu_tensor **out)
{
    frit_webgpu_tensor *t = calloc(1, sizeof *t);
    if (!t) return frit_fail_memory(sizeof *t, "a tensor");
    for (int i = 0; i < m->n; i++) t->tensors[i] = *m->list[i];
    t->n_tensors = m->n;
    t->is_tiled = is_tiled;
    t->is_gated = m->is_gated;
    t->cut = m->cut;
    t->n_bytes = is_tiled ? (uint64_t)row_tiles(m) * row_tile_bytes(m->list[0]) : bytes_of(m->list[0], false);
    frit_status status = alloc_parts(d, t);
    if (status == FRIT_OK) status = fill_tensor(d, t);
    if (status != FRIT_OK)
        free_tensor(d, t);
    else
        *out = t;
    return status;
}

static frit_status get_tensor(frit_webgpu_device *d, const frit_webgpu_matrices *m, bool is_tiled,
                              const frit_webgpu_tensor **out)
{
    for (size_t i = 0; i < d->n_tensors; i++) {
        *out = d->tensors[i];
        if (is_same(*out, m, is_tiled)) return FRIT_OK;
    }
    FRIT_TRY(FRIT_GROW(d->tensors, d->tensors_capacity, d->n_tensors + 1, "the list of weights"));
    FRIT_TRY(load_tensor(d, m, is_tiled, &d->tensors[d->n_tensors]));
    d->used_bytes += d->tensors[d->n_tensors]->n_bytes;
    *out = d->tensors[d->n_tensors++];
    return FRIT_OK;
}

frit_status frit_webgpu_tensor_get(frit_webgpu_device *d, const frit_tensor *tensor, bool is_tiled,
                                   const frit_webgpu_tensor **out)
{
    return get_tensor(d, &(frit_webgpu_matrices){.list = {tensor}, .n = 1}, is_tiled, out);
}

frit_status frit_webgpu_matrices_get(frit_webgpu_device *d, const frit_webgpu_matrices *matrices,
                                     const frit_webgpu_tensor **out)
{
    return get_tensor(d, matrices, true, out);
}

// ------------------------------------------------------------------------------- rotations

static void compute_revolutions(const float *frequencies, const float *factors, int64_t n, uint32_t *words)
{
    const double two_pi = 6.283185307179586476925;
    for (int64_t i = 0; i < n; i++) {
        const double revolutions = (double)frequencies[i] / (factors ? factors[i] : 1) / two_pi;
        const double fraction = revolutions - floor(revolutions), high = floor(fraction * 4294967296.0);
        words[2 * i + 1] = (uint32_t)high;
        words[2 * i] = (uint32_t)((fraction * 4294967296.0 - high) * 4294967295.0);
    }
}

static frit_status fill_table(frit_webgpu_device *d, frit_webgpu_table *table)
{
    rows_in_memory frequencies, factors = {0};
    const int64_t n = frit_tensor_width(&table->frequencies);
    uint32_t *words = malloc((size_t)n * 8);
    frit_status status =
        words ? read_rows(d->pool, &table->frequencies, &frequencies) : frit_fail_memory((size_t)n * 8, "revolutions");
    if (words && status == FRIT_OK && table->has_factors) status = read_rows(d->pool, &table->factors, &factors);
    if (words && status == FRIT_OK) {
        compute_revolutions((const float *)(const void *)frequencies.rows, (const float *)(const void *)factors.rows, n,
                            words);
        status = frit_gpu_buffer_new(&d->gpu, (uint64_t)n * 8, FRIT_GPU_STORAGE, "rotations", &table->buffer);
    }
    if (words && status == FRIT_OK) status = frit_gpu_write(&d->gpu, &table->buffer, 0, words, (uint64_t)n * 8);
    if (words) free(frequencies.made), free(factors.made);
    free(words);
    return status;
}

static bool is_table_of(const frit_webgpu_table *table, const frit_tensor *frequencies, const frit_tensor *factors)
{
    return frit_tensor_is_same(&table->frequencies, frequencies) && table->has_factors == (factors != NULL) &&
           (!factors || frit_tensor_is_same(&table->factors, factors));
}

frit_status frit_webgpu_revolutions_get(frit_webgpu_device *d, const frit_tensor *frequencies,
                                        const frit_tensor *factors, const frit_gpu_buffer **out)
{
    for (size_t i = 0; i < d->n_tables; i++) {
        *out = &d->tables[i]->buffer;
        if (is_table_of(d->tables[i], frequencies, factors)) return FRIT_OK;
    }
    FRIT_TRY(FRIT_GROW(d->tables, d->tables_capacity, d->n_tables + 1, "the list of rotations"));
    frit_webgpu_table *table = calloc(1, sizeof *table);
    if (!table) return frit_fail_memory(sizeof *table, "a rotation");
    table->frequencies = *frequencies;
    table->has_factors = factors;
    if (factors) table->factors = *factors;
    const frit_status status = fill_table(d, table);
    if (status != FRIT_OK) {
        frit_gpu_buffer_free(&d->gpu, &table->buffer);
        free(table);
        return status;
    }
    d->tables[d->n_tables++] = table;
    *out = &table->buffer;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- bytes

static bool is_there(const frit_webgpu_device *d, const frit_tensor *tensor, bool is_tiled)
{
    for (size_t i = 0; i < d->n_tensors; i++) {
        const frit_webgpu_tensor *t = d->tensors[i];
        if (t->is_tiled != is_tiled) continue;
        for (int k = 0; k < t->n_tensors; k++)
            if (frit_tensor_is_same(&t->tensors[k], tensor)) return true;
    }
    return false;
}

static bool is_listed(const frit_weight_uses *uses, size_t n, const frit_weight_use *use)
{
    const bool is_tiled = frit_webgpu_is_tiled(use->node, use->source);
    for (size_t i = 0; i < n; i++)
        if (frit_webgpu_is_tiled(uses->list[i].node, uses->list[i].source) == is_tiled &&
            frit_tensor_is_same(uses->list[i].tensor, use->tensor))
            return true;
    return false;
}

frit_status frit_webgpu_weight_bytes(frit_device *base, const frit_weight_uses *uses, frit_weight_bytes *out)
{
    const frit_webgpu_device *d = (const frit_webgpu_device *)base;
    *out = (frit_weight_bytes){0};
    for (size_t i = 0; i < uses->n; i++) {
        const frit_weight_use *use = &uses->list[i];
        const bool is_tiled = frit_webgpu_is_tiled(use->node, use->source);
        if (is_listed(uses, i, use)) continue;
        const uint64_t n_bytes = bytes_of(use->tensor, is_tiled);
        out->stored += n_bytes;
        if (!is_there(d, use->tensor, is_tiled)) out->missing += n_bytes;
    }
    return FRIT_OK;
}

void frit_webgpu_tensors_free(frit_webgpu_device *d)
{
    for (size_t i = 0; i < d->n_tensors; i++) {
        d->used_bytes -= d->tensors[i]->n_bytes;
        free_tensor(d, d->tensors[i]);
    }
    for (size_t i = 0; i < d->n_tables; i++) {
        frit_gpu_buffer_free(&d->gpu, &d->tables[i]->buffer);
        free(d->tables[i]);
    }
    free(d->tensors);
    free(d->tables);
    d->tensors = NULL;
    d->tables = NULL;
    d->n_tensors = d->n_tables = 0;
    d->tensors_capacity = d->tables_capacity = 0;
}
