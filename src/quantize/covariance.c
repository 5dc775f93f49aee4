// SPDX-License-Identifier: MIT
// Sums of x x^T over the rows that matrices read.
#include "base/grow.h"
#include "quantize/covariance.h"
#include "backend/cpu/pack/memory.h"
#include "base/time.h"
#include "base/minmax.h"

#include <stdlib.h>
#include <string.h>

enum {
    TILE = 64,               // rows and columns of H at a time
    COVARIANCE_ROWS = 512,   // summed at a time
    MANY_ROWS = 2048,        // summed at a time if rows are gathered: sums of a wide matrix do not fit a cache
    GAP = 32,                // between columns, so that neighbours do not share cache sets
    TILES_FROM = 1024,       // for narrower matrices making the forms costs more than tiles gain
};

frit_status frit_covariance_new(frit_covariance **out, const frit_covariance_options *options)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE_UNUSED(options);
    *out = calloc(1, sizeof **out);
    if (!*out) return frit_fail_memory(sizeof **out, "covariance");
    if (options) (*out)->options = *options;
    frit_dense_init(&(*out)->dense);
    (*out)->tiles_from = TILES_FROM;
    return FRIT_OK;
}

static uint64_t sums_bytes(const frit_covariance_entry *entry)
{
    return (uint64_t)(entry->width * entry->width * entry->n_each) * sizeof(float);
}

static void free_sums(const frit_covariance_entry *entry)
{
    frit_cpu_memory_free(entry->sums, sums_bytes(entry));
    frit_cpu_memory_free(entry->cross, sums_bytes(entry));
}

void frit_covariance_free(frit_covariance *covariance)
{
    if (!covariance) return;
    for (int64_t i = 0; i < covariance->n; i++) {
        free(covariance->entries[i].kept);
        free_sums(&covariance->entries[i]);
    }
    free(covariance->entries);
    free(covariance->scratch);
    free(covariance->tiles);
    frit_map_free(&covariance->index);
    frit_arena_free(&covariance->arena);
    free(covariance);
}

// ------------------------------------------------------------------------------------- entries

static frit_covariance_entry *own_entry(const frit_covariance *covariance, const char *name)
{
    int64_t i;
    return frit_map_get(&covariance->index, frit_str_of(name), &i) ? &covariance->entries[i] : NULL;
}

const frit_covariance_entry *frit_covariance_find(const frit_covariance *covariance, const char *name)
{
    const frit_covariance_entry *entry = own_entry(covariance, name);
    return entry ? &covariance->entries[entry->source] : NULL;
}

void frit_covariance_set_against(frit_covariance *covariance, frit_covariance *other)
{
    covariance->against = other;
    other->keeps_rows = true;
}

void frit_covariance_free_sums(frit_covariance *covariance, const float *matrix)
{
    for (int64_t i = 0; i < covariance->n; i++) {
        frit_covariance_entry *entry = &covariance->entries[i];
        float **at = entry->sums == matrix ? &entry->sums : entry->cross == matrix ? &entry->cross : NULL;
        if (!at || entry->n_each > 1) continue;
        frit_cpu_memory_free(*at, sums_bytes(entry));
        *at = NULL;
        return;
    }
}

void frit_covariance_drop_rows(frit_covariance *covariance)
{
    for (int64_t i = 0; i < covariance->n; i++) covariance->entries[i].n_kept = covariance->entries[i].n_taken = 0;
}

static frit_status allocate_sums(frit_covariance *covariance, frit_covariance_entry *entry)
{
    const bool has_cross = covariance->against && entry->n_each == 1;
    const uint64_t n_bytes = (has_cross ? 2 : 1) * sums_bytes(entry), limit = covariance->options.max_bytes;
    if (limit > 0 && covariance->n_bytes + n_bytes > limit)
        return frit_fail(FRIT_E_MEMORY,
                         "the covariance of '%s' and of the matrices before it needs %llu bytes, at most "
                         "%llu are allowed: take fewer matrices at a time",
                         entry->name, (unsigned long long)(covariance->n_bytes + n_bytes), (unsigned long long)limit);
    entry->counts = frit_arena_new(&covariance->arena, int64_t, (size_t)entry->n_each);
    entry->sums = entry->counts ? frit_cpu_memory_new(sums_bytes(entry)) : NULL;   // huge pages, zeroed
    entry->cross = entry->sums && has_cross ? frit_cpu_memory_new(sums_bytes(entry)) : NULL;
    if (!entry->sums || (has_cross && !entry->cross)) {
        free_sums(entry);
        return frit_fail_memory((size_t)n_bytes, entry->name);
    }
    covariance->n_bytes += n_bytes;
    return FRIT_OK;
}

frit_status frit_covariance_enter(frit_covariance *covariance, const char *name, int64_t width, int64_t n_each,
                                  int64_t same, int64_t *index)
{
    const frit_covariance_options *options = &covariance->options;
    *index = -1;
    if (options->wants && !options->wants(options->wants_ctx, name)) return FRIT_OK;
    const frit_covariance_entry *known = own_entry(covariance, name);
    if (known) {
        *index = known - covariance->entries;
        if (known->width == width && known->n_each == n_each) return FRIT_OK;
        return frit_fail(FRIT_E_INVALID, "covariance of '%s' has %lld columns of %lld matrices, expected %lld of %lld",
                         name, (long long)known->width, (long long)known->n_each, (long long)width, (long long)n_each);
    }
    FRIT_TRY(FRIT_GROW(covariance->entries, covariance->capacity, covariance->n + 1, "the entries of covariance"));
    frit_covariance_entry entry = {.name = frit_arena_text(&covariance->arena, name, strlen(name)),
                                   .width = width,
                                   .n_each = n_each,
                                   .source = same >= 0 ? covariance->entries[same].source : covariance->n};
    if (!entry.name) return frit_fail_memory(strlen(name), "the entries of covariance");
    if (same < 0 && !covariance->keeps_rows) FRIT_TRY(allocate_sums(covariance, &entry));
    *index = covariance->n;
    covariance->entries[covariance->n++] = entry;
    if (!frit_map_put(&covariance->index, frit_str_of(entry.name), *index))
        return frit_fail_memory(sizeof entry, "the entries of covariance");
    return FRIT_OK;
}

bool frit_covariance_get_info(const frit_covariance *covariance, size_t i, frit_covariance_info *info)
{
    FRIT_REQUIRE_OR(false, info);
    *info = (frit_covariance_info){0};
    FRIT_REQUIRE_OR(false, covariance);
    if (i >= (size_t)covariance->n) return false;
    const frit_covariance_entry *entry = &covariance->entries[i], *source = &covariance->entries[entry->source];
    *info = (frit_covariance_info){.name = entry->name,
                                   .width = entry->width,
                                   .n_each = entry->n_each,
                                   .source = (size_t)entry->source,
                                   .sums = source->sums,
                                   .counts = source->counts};
    return true;
}

// Sums (E H) * E over tiles of rows and columns.
double frit_covariance_error(const frit_covariance *covariance, const frit_covariance_info *info, int64_t each,
                             const float *errors, int64_t n_rows)
{
    double sum = 0;
    FRIT_REQUIRE_OR(0, covariance);
    FRIT_REQUIRE_OR(0, info);
    FRIT_REQUIRE_ITEMS_OR(0, errors, n_rows);
    if (each < 0 || each >= info->n_each) return 0;
    const int64_t width = info->width;
    const float *sums = info->sums + each * width * width;
    for (int64_t i = 0; i < n_rows; i += TILE)
        for (int64_t j = 0; j < width; j += TILE) {
            float tile[TILE][TILE];
            const frit_dense_rows rows = {errors + i * width, frit_min_i64(TILE, n_rows - i), width};
            const frit_dense_rows columns = {sums + j * width, frit_min_i64(TILE, width - j), width};
            frit_dense_dots(&covariance->dense, rows, columns, width, tile[0], TILE);
            for (int64_t k = 0; k < rows.n; k++)
                for (int64_t l = 0; l < columns.n; l++)
                    sum += (double)tile[k][l] * (double)errors[(i + k) * width + j + l];
        }
    return sum;
}

// ------------------------------------------------------------------------------------- adding up

typedef struct turning {
    const float *x, *z;
    const int64_t *rows;   // of x; NULL: all rows in sequence
    int64_t first, n;      // column of the first row in the result
    frit_covariance_columns to;
} transposing;

static void transpose_rows(const transposing *t, int64_t begin, int64_t end)
{
    for (int64_t i = 0; i < t->n; i++) {
        const float *row = t->x + (t->rows ? t->rows[i] : i) * t->to.width;
        float *out = t->to.x + t->first + i;
        for (int64_t c = begin; c < end; c++) out[c * t->to.stride] = row[c];
    }
}

static void transpose_differences(const transposing *t, int64_t begin, int64_t end)
{
    for (int64_t i = 0; i < t->n; i++) {
        const float *x = t->x + i * t->to.width, *z = t->z + i * t->to.width;
        float *out = t->to.z + t->first + i;
        for (int64_t c = begin; c < end; c++) out[c * t->to.stride] = z[c] - x[c];
    }
}

// Transposes sixteen columns at a time, so that writes stay in the cache.
static void transpose_part(void *ctx, int thread, int n_threads)
{
    const transposing *t = ctx;
    const int64_t n_blocks = (t->to.width + 15) / 16;
    for (int64_t b = n_blocks * thread / n_threads; b < n_blocks * (thread + 1) / n_threads; b++) {
        const int64_t begin = 16 * b, end = frit_min_i64(begin + 16, t->to.width);
        transpose_rows(t, begin, end);
        if (t->z) transpose_differences(t, begin, end);
    }
}

typedef struct adding {
    const frit_dense *dense;
    frit_covariance_columns columns;
} adding;

static frit_dense_rows column_rows(const adding *a, const float *columns_at, int64_t begin)
{
    const frit_covariance_columns *c = &a->columns;
    return (frit_dense_rows){columns_at + begin * c->stride, frit_min_i64(TILE, c->width - begin), c->stride};
}

static void add_tile(const adding *a, int64_t i, int64_t j)
{
    float tile[TILE][TILE];
    const frit_covariance_columns *c = &a->columns;
    const frit_dense_rows rows = column_rows(a, c->x, i), columns = column_rows(a, c->x, j);
    frit_dense_dots(a->dense, rows, columns, c->n, tile[0], TILE);
    for (int64_t k = 0; k < rows.n; k++)
        for (int64_t l = 0; l < columns.n && j + l <= i + k; l++) {
            float *at = c->sums + (i + k) * c->width + j + l;
            *at += tile[k][l];
            c->sums[(j + l) * c->width + i + k] = *at;
        }
}

static void add_cross_tile(const adding *a, int64_t i, int64_t j)
{
    float tile[TILE][TILE];
    const frit_covariance_columns *c = &a->columns;
    const frit_dense_rows rows = column_rows(a, c->x, i), columns = column_rows(a, c->z, j);
    frit_dense_dots(a->dense, rows, columns, c->n, tile[0], TILE);
    for (int64_t k = 0; k < rows.n; k++)
        for (int64_t l = 0; l < columns.n; l++) c->cross[(i + k) * c->width + j + l] += tile[k][l];
}

static void add_part(void *ctx, int thread, int n_threads)
{
    const adding *a = ctx;
    const int64_t width = a->columns.width;
    int64_t n = 0;
    for (int64_t i = 0; i < width; i += TILE)
        for (int64_t j = 0; j < width; j += TILE) {
            if (j <= i && n++ % n_threads == thread) add_tile(a, i, j);
            if (a->columns.z && n++ % n_threads == thread) add_cross_tile(a, i, j);
        }
}

static frit_status reserve_scratch(frit_covariance *covariance, size_t n)
{
    if (n <= covariance->n_scratch) return FRIT_OK;
    float *scratch = realloc(covariance->scratch, n * sizeof *scratch);
    if (!scratch) return frit_fail_memory(n * sizeof *scratch, "rows of products");
    covariance->scratch = scratch;
    covariance->n_scratch = n;
    return FRIT_OK;
}

static bool uses_tiles(const frit_covariance *covariance, int64_t index)
{
    return covariance->dense.run_tiles && covariance->entries[index].width >= covariance->tiles_from;
}

// Returns how many rows are summed at a time; in tiles many rows take less memory.
static int64_t most_rows(const frit_covariance *covariance)
{
    return covariance->gathers && !uses_tiles(covariance, covariance->rest.entry) ? MANY_ROWS : COVARIANCE_ROWS;
}

// Returns the gathered rows as columns.
static frit_covariance_columns columns_of(const frit_covariance *covariance)
{
    const frit_covariance_rest *rest = &covariance->rest;
    const frit_covariance_entry *entry = &covariance->entries[rest->entry];
    const int64_t stride = most_rows(covariance) + GAP;
    return (frit_covariance_columns){.x = covariance->scratch,
                                     .z = entry->cross ? covariance->scratch + entry->width * stride : NULL,
                                     .n = rest->n,
                                     .stride = stride,
                                     .width = entry->width,
                                     .sums = entry->sums + rest->each * entry->width * entry->width,
                                     .cross = entry->cross};
}

// Adds the gathered rows to the sums, or to the rows in tiles.
static frit_status add_rest(frit_covariance *covariance, frit_pool *pool)
{
    if (covariance->rest.n == 0) return FRIT_OK;
    adding a = {.dense = &covariance->dense, .columns = columns_of(covariance)};
    if (uses_tiles(covariance, covariance->rest.entry))
        FRIT_TRY(frit_covariance_form_tiles(covariance, &a.columns, pool));
    else
        frit_pool_run(pool, add_part, &a);
    covariance->rest.n = 0;
    return FRIT_OK;
}

// Adds all rows of the current expert or head.
static frit_status add_all(frit_covariance *covariance, frit_pool *pool)
{
    FRIT_TRY(add_rest(covariance, pool));
    if (covariance->n_formed == 0) return FRIT_OK;
    const frit_covariance_columns columns = columns_of(covariance);
    frit_covariance_add_tiles(covariance, &columns, pool);
    if (!covariance->gathers) frit_covariance_mirror(columns.sums, columns.width, pool);
    return FRIT_OK;
}

static void mirror_all(const frit_covariance *covariance, frit_pool *pool)
{
    for (int64_t i = 0; i < covariance->n; i++) {
        const frit_covariance_entry *entry = &covariance->entries[i];
        for (int64_t k = 0; k < entry->n_each && entry->source == i && uses_tiles(covariance, i); k++)
            frit_covariance_mirror(entry->sums + k * entry->width * entry->width, entry->width, pool);
    }
}

frit_status frit_covariance_finish(frit_covariance *covariance, frit_pool *pool)
{
    FRIT_TRY(add_all(covariance, pool));
    if (covariance->gathers) mirror_all(covariance, pool);
    free(covariance->scratch);
    free(covariance->tiles);
    covariance->scratch = NULL;
    covariance->tiles = NULL;
    covariance->n_scratch = covariance->tiles_bytes = 0;
    return FRIT_OK;
}

// Makes room for rows of an expert or head.
static frit_status begin_rows(frit_covariance *covariance, int64_t index, int64_t each, frit_pool *pool)
{
    frit_covariance_rest *rest = &covariance->rest;
    const bool is_same = rest->entry == index && rest->each == each;
    if (rest->n > 0 && is_same && rest->n < most_rows(covariance)) return FRIT_OK;
    FRIT_TRY(is_same ? add_rest(covariance, pool) : add_all(covariance, pool));
    *rest = (frit_covariance_rest){index, each, 0};
    return reserve_scratch(covariance, (size_t)(2 * covariance->entries[index].width * (most_rows(covariance) + GAP)));
}

static frit_status add_rows(frit_covariance *covariance, int64_t index, int64_t each, const float *x, const float *z,
                            const int64_t *rows, int64_t n, frit_pool *pool)
{
    frit_covariance_entry *entry = &covariance->entries[index];
    for (int64_t i = 0, n_now; i < n; i += n_now) {
        FRIT_TRY(begin_rows(covariance, index, each, pool));
        n_now = frit_min_i64(n - i, most_rows(covariance) - covariance->rest.n);
        transposing t = {.x = rows ? x : x + i * entry->width,
                         .z = z ? z + i * entry->width : NULL,
                         .rows = rows ? rows + i : NULL,
                         .first = covariance->rest.n,
                         .n = n_now,
                         .to = columns_of(covariance)};
        frit_pool_run(pool, transpose_part, &t);
        covariance->rest.n += n_now;
    }
    entry->counts[each] += n;
    return covariance->gathers ? FRIT_OK : add_all(covariance, pool);
}

static frit_status store_rows(frit_covariance_entry *entry, const float *x, int64_t n, frit_pool *pool)
{
    const int64_t n_kept = entry->n_kept + n;
    if (n_kept > entry->kept_capacity) {
        float *kept = realloc(entry->kept, (size_t)(2 * n_kept * entry->width) * sizeof *kept);
        if (!kept) return frit_fail_memory((size_t)(2 * n_kept * entry->width) * sizeof *kept, entry->name);
        entry->kept = kept;
        entry->kept_capacity = 2 * n_kept;
    }
    frit_pool_copy(pool, entry->kept + entry->n_kept * entry->width, x, (size_t)(n * entry->width) * sizeof *x);
    entry->n_kept = n_kept;
    return FRIT_OK;
}

// Finds the other engine's rows of the same tokens.
static frit_status find_other_rows(const frit_covariance *covariance, frit_covariance_entry *entry, int64_t n,
                                   const float **z)
{
    const frit_covariance_entry *other = frit_covariance_find(covariance->against, entry->name);
    if (!other || other->width != entry->width || other->n_kept < entry->n_taken + n)
        return frit_fail(FRIT_E_INVALID, "'%s' has read %lld rows that the other engine has not read", entry->name,
                         (long long)(entry->n_taken + n));
    *z = other->kept + entry->n_taken * entry->width;
    entry->n_taken += n;
    return FRIT_OK;
}

static frit_status add_input_rows(frit_covariance *covariance, int64_t index, const frit_input_rows *rows,
                                  frit_pool *pool)
{
    frit_covariance_entry *entry = &covariance->entries[index];
    if (!rows->each) {
        const float *z = NULL;
        if (covariance->keeps_rows) return store_rows(entry, rows->x, rows->n, pool);
        if (entry->cross) FRIT_TRY(find_other_rows(covariance, entry, rows->n, &z));
        return add_rows(covariance, index, 0, rows->x, z, NULL, rows->n, pool);
    }
    if (covariance->keeps_rows) return FRIT_OK;
    int64_t *own = malloc((size_t)(rows->n > 0 ? rows->n : 1) * sizeof *own);
    if (!own) return frit_fail_memory((size_t)rows->n * sizeof *own, "rows of experts");
    frit_status status = FRIT_OK;
    for (int64_t e = 0; e < entry->n_each && status == FRIT_OK; e++) {
        int64_t n = 0;
        for (int64_t i = 0; i < rows->n; i++)
            if (rows->each[i] == e) own[n++] = rows->rows[i];
        if (n > 0) status = add_rows(covariance, index, e, rows->x, NULL, own, n, pool);
    }
    free(own);
    return status;
}

frit_status frit_covariance_add(frit_covariance *covariance, int64_t index, const frit_input_rows *rows,
                                frit_pool *pool)
{
    if (covariance->entries[index].source != index) return FRIT_OK;   // another matrix has the same input
    const uint64_t start = frit_time_ns();
    const frit_status status = add_input_rows(covariance, index, rows, pool);
    covariance->spent_ns += frit_time_ns() - start;
    return status;
}

// ------------------------------------------------------------------------------------- engines

static frit_status enter_input(void *ctx, const char *name, int64_t width, int64_t n_each, int64_t same, int64_t *index)
{
    return frit_covariance_enter(ctx, name, width, n_each, same, index);
}

static frit_status add_input(void *ctx, int64_t index, const frit_input_rows *rows, frit_pool *pool)
{
    return frit_covariance_add(ctx, index, rows, pool);
}

frit_status frit_engine_observe_covariance(frit_engine *engine, frit_covariance *covariance)
{
    FRIT_REQUIRE(engine);
    const frit_input_observer inputs = {.enter = enter_input, .add = add_input, .ctx = covariance};
    return frit_observe_inputs(engine, covariance ? &inputs : NULL);
}
