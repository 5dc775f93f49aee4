// SPDX-License-Identifier: MIT
// Reading rows, and the recipes that sources share.
#include "format/rows.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

int64_t frit_tensor_width(const frit_tensor *tensor)
{
    return tensor->n_dims > 0 ? tensor->shape[tensor->n_dims - 1] : 1;
}

int64_t frit_tensor_n_rows(const frit_tensor *tensor)
{
    return frit_tensor_n_elems(tensor) / frit_tensor_width(tensor);
}

uint64_t frit_tensor_row_bytes(const frit_tensor *tensor)
{
    return frit_dtype_row_bytes(tensor->dtype, frit_tensor_width(tensor));
}

size_t frit_tensor_scratch_bytes(const frit_tensor *tensor)
{
    return tensor->data ? 0 : tensor->recipe->scratch_bytes;
}

const uint8_t *frit_tensor_rows(const frit_tensor *tensor, int64_t begin, int64_t n, void *rows, void *scratch)
{
    if (tensor->data) return (const uint8_t *)tensor->data + (uint64_t)begin * frit_tensor_row_bytes(tensor);
    if (n > 0) tensor->recipe->make(tensor->recipe, tensor->first_row + begin, n, rows, scratch);
    return rows;
}

void frit_tensor_read(const frit_tensor *tensor, int64_t begin, int64_t n, void *rows, void *scratch)
{
    const uint8_t *bytes = frit_tensor_rows(tensor, begin, n, rows, scratch);
    const size_t n_bytes = (size_t)((uint64_t)n * frit_tensor_row_bytes(tensor));
    if (bytes != rows && n_bytes > 0) memcpy(rows, bytes, n_bytes);
}

bool frit_tensor_is_same(const frit_tensor *a, const frit_tensor *b)
{
    return a->data == b->data && a->recipe == b->recipe && a->first_row == b->first_row && a->dtype == b->dtype &&
           frit_tensor_width(a) == frit_tensor_width(b) && frit_tensor_n_rows(a) == frit_tensor_n_rows(b);
}

frit_tensor frit_tensor_cut(const frit_tensor *whole, int64_t begin, int64_t n)
{
    const uint64_t n_bytes = whole->n_bytes / (uint64_t)whole->shape[0];   // of one part
    frit_tensor part = *whole;
    part.shape[0] = n;
    part.n_bytes = (uint64_t)n * n_bytes;
    if (whole->data)
        part.data = (const uint8_t *)whole->data + (uint64_t)begin * n_bytes;
    else
        part.first_row += frit_tensor_n_rows(whole) / whole->shape[0] * begin;
    return part;
}

static size_t aligned(size_t n_bytes)
{
    return (n_bytes + 15) / 16 * 16;
}

static void become(frit_tensor *tensor, const frit_recipe *recipe)
{
    tensor->recipe = recipe;
    tensor->first_row = 0;
    tensor->data = NULL;
    tensor->is_mapped = false;
    tensor->n_bytes = (uint64_t)frit_tensor_n_rows(tensor) * frit_tensor_row_bytes(tensor);
}

// Allocates `size` bytes that begin with a recipe, whose part is the current `tensor`.
static void *new_recipe(frit_arena *arena, const frit_tensor *tensor, size_t size)
{
    frit_recipe *recipe = frit_arena_alloc(arena, 1, size);
    frit_tensor *part = frit_arena_new(arena, frit_tensor, 1);
    if (!recipe || !part) return NULL;
    *part = *tensor;
    recipe->parts = part;
    recipe->n_parts = 1;
    return recipe;
}

// ------------------------------------------------------------------------------------------------- stacks

static void make_stack(const frit_recipe *recipe, int64_t begin, int64_t n, uint8_t *rows, uint8_t *scratch)
{
    const int64_t height = frit_tensor_n_rows(&recipe->parts[0]);
    const uint64_t row_bytes = frit_tensor_row_bytes(&recipe->parts[0]);
    for (int64_t done = 0, now; done < n; done += now) {
        const int64_t i = begin + done, rest = height - i % height;
        now = n - done < rest ? n - done : rest;
        frit_tensor_read(&recipe->parts[i / height], i % height, now, rows + (uint64_t)done * row_bytes, scratch);
    }
}

frit_status frit_stack_new(frit_arena *arena, frit_tensor *tensor, const frit_tensor *part, int64_t n)
{
    assert(part->n_dims < FRIT_MAX_DIMS && n > 0);
    frit_recipe *recipe = frit_arena_new(arena, frit_recipe, 1);
    if (!recipe || !(recipe->parts = frit_arena_new(arena, frit_tensor, (size_t)n)))
        return frit_fail_memory((size_t)n * sizeof *recipe->parts, tensor->name);
    recipe->make = make_stack;
    recipe->n_parts = (size_t)n;
    recipe->is_stack = true;
    tensor->dtype = part->dtype;
    tensor->n_dims = part->n_dims + 1;
    for (int i = 0; i < FRIT_MAX_DIMS; i++) tensor->shape[i] = i == 0 ? n : part->shape[i - 1];
    become(tensor, recipe);
    return FRIT_OK;
}

frit_status frit_stack_set(const frit_tensor *stack, int64_t i, const frit_tensor *part)
{
    frit_recipe *recipe = (frit_recipe *)(uintptr_t)stack->recipe;
    bool fits = i >= 0 && i < stack->shape[0] && part->dtype == stack->dtype && part->n_dims + 1 == stack->n_dims;
    for (int d = 0; fits && d < part->n_dims; d++) fits = part->shape[d] == stack->shape[d + 1];
    if (!fits)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' of expert %lld has another shape or type than other experts",
                         stack->name, (long long)i);
    const size_t n_bytes = frit_tensor_scratch_bytes(part);
    if (n_bytes > recipe->scratch_bytes) recipe->scratch_bytes = n_bytes;
    recipe->parts[i] = *part;
    return FRIT_OK;
}

bool frit_stack_is_whole(const frit_tensor *stack)
{
    for (size_t i = 0; i < stack->recipe->n_parts; i++)
        if (!stack->recipe->parts[i].name) return false;
    return true;
}

const uint8_t *frit_stack_row(const frit_tensor *tensor, int64_t row)
{
    if (tensor->data || !tensor->recipe->is_stack) return NULL;
    const frit_tensor *parts = tensor->recipe->parts;
    const int64_t height = frit_tensor_n_rows(parts), i = tensor->first_row + row;
    const frit_tensor *part = &parts[i / height];
    return part->data ? (const uint8_t *)part->data + (uint64_t)(i % height) * frit_tensor_row_bytes(part) : NULL;
}

// ------------------------------------------------------------------------------------------------- other orders

typedef struct reordered {
    frit_recipe base;
    frit_row_source_fn source;
    const void *order;
    int64_t group;
} reordered;

// Rows are computed in groups, because many formats pack several rows into one word.
static void make_reordered(const frit_recipe *recipe, int64_t begin, int64_t n, uint8_t *rows, uint8_t *scratch)
{
    const reordered *r = (const reordered *)recipe;
    const frit_tensor *part = recipe->parts;
    const size_t row_bytes = (size_t)frit_tensor_row_bytes(part);
    const int64_t group = part->data ? 0 : r->group;
    uint8_t *below = scratch + aligned((size_t)r->group * row_bytes);
    for (int64_t i = begin, made = -1; i < begin + n; i++, rows += row_bytes) {
        const int64_t from = r->source(r->order, i);
        if (group == 0) {
            frit_tensor_read(part, from, 1, rows, below);
            continue;
        }
        if (from / group != made) frit_tensor_read(part, from / group * group, group, scratch, below);
        made = from / group;
        memcpy(rows, scratch + (size_t)(from % group) * row_bytes, row_bytes);
    }
}

frit_status frit_reorder(frit_arena *arena, frit_tensor *tensor, frit_row_source_fn source, const void *order,
                         int64_t n_rows, int64_t group)
{
    reordered *r = new_recipe(arena, tensor, sizeof *r);
    if (!r) return frit_fail_memory(sizeof *r, tensor->name);
    if (group > 0 && frit_tensor_n_rows(tensor) % group != 0) group = 0;
    r->base.make = make_reordered;
    r->base.scratch_bytes =
        aligned((size_t)group * (size_t)frit_tensor_row_bytes(tensor)) + frit_tensor_scratch_bytes(tensor);
    r->source = source;
    r->order = order;
    r->group = group;
    if (n_rows != frit_tensor_n_rows(tensor)) {
        const int at = tensor->n_dims - 2;
        tensor->shape[at] = tensor->shape[at] * n_rows / frit_tensor_n_rows(tensor);
    }
    become(tensor, &r->base);
    return FRIT_OK;
}

// Reorders columns. The scratch has room for a row in its source form.
static void make_columns(const frit_recipe *recipe, int64_t begin, int64_t n, uint8_t *rows, uint8_t *scratch)
{
    const reordered *r = (const reordered *)recipe;
    const frit_tensor *part = recipe->parts;
    const int64_t width = frit_tensor_width(part);
    const size_t size = (size_t)frit_dtype_row_bytes(part->dtype, 1), row_bytes = (size_t)width * size;
    for (int64_t i = begin; i < begin + n; i++, rows += row_bytes) {
        const uint8_t *row = frit_tensor_rows(part, i, 1, scratch, scratch + aligned(row_bytes));
        for (int64_t k = 0; k < width; k++)
            memcpy(rows + (size_t)k * size, row + (size_t)r->source(r->order, k) * size, size);
    }
}

frit_status frit_reorder_columns(frit_arena *arena, frit_tensor *tensor, frit_row_source_fn source, const void *order)
{
    if (tensor->dtype == FRIT_DTYPE_FP8_128) FRIT_TRY(frit_encode(arena, tensor, FRIT_DTYPE_F32));
    if (frit_dtype_get(tensor->dtype)->block_elems != 1)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' is not in a plain number format", tensor->name);
    reordered *r = new_recipe(arena, tensor, sizeof *r);
    if (!r) return frit_fail_memory(sizeof *r, tensor->name);
    r->base.make = make_columns;
    r->base.scratch_bytes = aligned((size_t)frit_tensor_row_bytes(tensor)) + frit_tensor_scratch_bytes(tensor);
    r->source = source;
    r->order = order;
    become(tensor, &r->base);
    return FRIT_OK;
}

frit_status frit_reorder_numbers(frit_arena *arena, frit_tensor *tensor, frit_row_source_fn source, const void *order,
                                 int64_t n)
{
    if (!tensor->data || frit_dtype_get(tensor->dtype)->block_elems != 1)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' is not in a plain number format", tensor->name);
    const size_t size = (size_t)frit_dtype_row_bytes(tensor->dtype, 1);
    uint8_t *copy = frit_arena_alloc(arena, (size_t)n, size);
    if (!copy) return frit_fail_memory((size_t)n * size, tensor->name);
    for (int64_t i = 0; i < n; i++)
        memcpy(copy + (size_t)i * size, (const uint8_t *)tensor->data + (size_t)source(order, i) * size, size);
    int64_t *last = &tensor->shape[tensor->n_dims - 1];
    *last = *last * n / frit_tensor_n_elems(tensor);
    tensor->data = copy;
    tensor->is_mapped = false;
    tensor->n_bytes = (uint64_t)n * size;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------------------- ranges

typedef struct ranged {
    frit_recipe base;
    int64_t begin, n;      // rows of each matrix
    uint64_t first_byte;   // of each row of the part
} ranged;

// Rows of a range of each matrix.
static void make_row_range(const frit_recipe *recipe, int64_t begin, int64_t n, uint8_t *rows, uint8_t *scratch)
{
    const ranged *r = (const ranged *)recipe;
    const frit_tensor *part = recipe->parts;
    const uint64_t row_bytes = frit_tensor_row_bytes(part);
    const int64_t height = part->shape[part->n_dims - 2];
    for (int64_t done = 0, now; done < n; done += now) {
        const int64_t matrix = (begin + done) / r->n, i = (begin + done) % r->n;
        now = n - done < r->n - i ? n - done : r->n - i;
        frit_tensor_read(part, matrix * height + r->begin + i, now, rows + (uint64_t)done * row_bytes, scratch);
    }
}

// A range of the columns of each row.
static void make_column_range(const frit_recipe *recipe, int64_t begin, int64_t n, uint8_t *rows, uint8_t *scratch)
{
    const ranged *r = (const ranged *)recipe;
    const frit_tensor *part = recipe->parts;
    const size_t n_bytes = (size_t)frit_dtype_row_bytes(part->dtype, r->n);
    uint8_t *below = scratch + aligned((size_t)frit_tensor_row_bytes(part));
    for (int64_t i = 0; i < n; i++)
        memcpy(rows + (size_t)i * n_bytes, frit_tensor_rows(part, begin + i, 1, scratch, below) + r->first_byte,
               n_bytes);
}

frit_status frit_tensor_range(frit_arena *arena, frit_tensor *tensor, int axis, int64_t begin, int64_t n)
{
    const int last = tensor->n_dims - 1, block = frit_dtype_get(tensor->dtype)->block_elems;
    const bool is_columns = axis == last;
    assert(axis >= 1 && axis >= last - 1 && begin >= 0 && n > 0 && begin + n <= tensor->shape[axis]);
    if (is_columns && (begin % block != 0 || n % block != 0))
        return frit_fail(FRIT_E_INVALID, "tensor '%s': columns %lld to %lld are not whole blocks of %d", tensor->name,
                         (long long)begin, (long long)(begin + n), block);
    ranged *r = new_recipe(arena, tensor, sizeof *r);
    if (!r) return frit_fail_memory(sizeof *r, tensor->name);
    r->begin = begin;
    r->n = n;
    r->first_byte = is_columns ? frit_dtype_row_bytes(tensor->dtype, begin) : 0;
    r->base.make = is_columns ? make_column_range : make_row_range;
    r->base.scratch_bytes = frit_tensor_scratch_bytes(tensor);
    if (is_columns) r->base.scratch_bytes += aligned((size_t)frit_tensor_row_bytes(tensor));
    tensor->shape[axis] = n;
    become(tensor, &r->base);
    return FRIT_OK;
}

static void make_transposed(const frit_recipe *recipe, int64_t begin, int64_t n, uint8_t *rows, uint8_t *scratch)
{
    (void)scratch;
    const frit_tensor *part = recipe->parts;
    const int64_t n_in = part->shape[part->n_dims - 2], n_out = frit_tensor_width(part);
    const size_t size = (size_t)frit_dtype_row_bytes(part->dtype, 1);
    for (int64_t done = 0, now; done < n; done += now) {
        const int64_t matrix = (begin + done) / n_out, o = (begin + done) % n_out;
        const uint8_t *from = (const uint8_t *)part->data + (size_t)(matrix * n_in * n_out + o) * size;
        now = n - done < n_out - o ? n - done : n_out - o;
        for (int64_t i = 0; i < n_in; i++, from += (size_t)n_out * size)
            for (int64_t k = 0; k < now; k++)
                memcpy(rows + (size_t)((done + k) * n_in + i) * size, from + (size_t)k * size, size);
    }
}

frit_status frit_transpose(frit_arena *arena, frit_tensor *tensor)
{
    if (!tensor->data || tensor->n_dims < 2 || frit_dtype_get(tensor->dtype)->block_elems != 1)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' is not a matrix in a plain number format", tensor->name);
    frit_recipe *recipe = new_recipe(arena, tensor, sizeof *recipe);
    if (!recipe) return frit_fail_memory(sizeof *recipe, tensor->name);
    recipe->make = make_transposed;
    int64_t *last = &tensor->shape[tensor->n_dims - 1], width = *last;
    *last = last[-1];
    last[-1] = width;
    become(tensor, recipe);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------------------- number formats

enum { ENCODED_ROWS = 32 };   // computed together, where the source has a recipe

static void make_encoded(const frit_recipe *recipe, int64_t begin, int64_t n, uint8_t *rows, uint8_t *scratch);
static frit_status check_encoded(const frit_recipe *recipe, const char *name);

typedef struct encoded {
    frit_recipe base;
    const frit_dtype_info *to;
    const float *factors;   // one for each row, or one for all; NULL: no factor
    int64_t n_factors;
    const float *importance;   // [n_rows / height, width]; NULL: columns are equal
    int64_t height;
    _Atomic int64_t first_bad;   // index + 1 of the first element that encoding cannot represent; 0: none
} encoded;

static frit_status encode(frit_arena *arena, frit_tensor *tensor, frit_dtype dtype, const float *factors, int64_t n)
{
    encoded *e = new_recipe(arena, tensor, sizeof *e);
    if (!e) return frit_fail_memory(sizeof *e, tensor->name);
    e->base.make = make_encoded;
    e->base.check = check_encoded;
    e->base.scratch_bytes = 2 * aligned((size_t)frit_tensor_width(tensor) * sizeof(float));
    if (!tensor->data)
        e->base.scratch_bytes +=
            aligned(ENCODED_ROWS * (size_t)frit_tensor_row_bytes(tensor)) + frit_tensor_scratch_bytes(tensor);
    e->to = frit_dtype_get(dtype);
    e->factors = factors;
    e->n_factors = n;
    tensor->dtype = dtype;
    become(tensor, &e->base);
    return FRIT_OK;
}

frit_status frit_encode(frit_arena *arena, frit_tensor *tensor, frit_dtype dtype)
{
    return tensor->dtype == dtype ? FRIT_OK : encode(arena, tensor, dtype, NULL, 0);
}

frit_status frit_encode_weighted(frit_arena *arena, frit_tensor *tensor, frit_dtype dtype, const float *importance,
                                 int64_t n_matrices)
{
    if (tensor->dtype == dtype) return FRIT_OK;
    FRIT_TRY(encode(arena, tensor, dtype, NULL, 0));
    encoded *e = (encoded *)(uintptr_t)tensor->recipe;
    e->importance = importance;
    e->height = frit_tensor_n_rows(tensor) / n_matrices;
    return FRIT_OK;
}

bool frit_tensor_get_origin(const frit_tensor *tensor, frit_encode_origin *out)
{
    if (tensor->data || !tensor->recipe || tensor->recipe->make != make_encoded) return false;
    const encoded *e = (const encoded *)tensor->recipe;
    if (e->factors) return false;
    const int64_t n = e->importance ? frit_tensor_n_rows(tensor) / e->height * frit_tensor_width(tensor) : 0;
    *out = (frit_encode_origin){e->base.parts, e->importance, n};
    return true;
}

frit_status frit_multiply_rows(frit_arena *arena, frit_tensor *tensor, const float *factors, int64_t n)
{
    const int64_t n_rows = frit_tensor_n_rows(tensor);
    if (n != 1 && n != n_rows)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' has %lld rows and %lld multipliers, expected one each",
                         tensor->name, (long long)n_rows, (long long)n);
    return encode(arena, tensor, FRIT_DTYPE_F32, factors, n);
}

static void note(const encoded *e, int64_t element)
{
    _Atomic int64_t *first = (_Atomic int64_t *)(uintptr_t)&e->first_bad;
    int64_t before = atomic_load(first);
    while ((before == 0 || element + 1 < before) && !atomic_compare_exchange_weak(first, &before, element + 1)) {
    }
}

static float factor_of(const encoded *e, int64_t row)
{
    return e->factors[e->n_factors == 1 ? 0 : row];
}

static void make_encoded(const frit_recipe *recipe, int64_t begin, int64_t n, uint8_t *rows, uint8_t *scratch)
{
    const encoded *e = (const encoded *)recipe;
    const frit_tensor *part = recipe->parts;
    const int64_t width = frit_tensor_width(part);
    const size_t from_bytes = (size_t)frit_tensor_row_bytes(part);
    const size_t to_bytes = (size_t)(width / e->to->block_elems) * (size_t)e->to->block_bytes;
    const size_t values_bytes = aligned((size_t)width * sizeof(float));
    float *values = (float *)(void *)scratch, *again = (float *)(void *)(scratch + values_bytes);
    uint8_t *read = scratch + 2 * values_bytes;
    uint8_t *below = read + aligned(ENCODED_ROWS * from_bytes);
    for (int64_t i = 0, now; i < n; i += now) {
        now = n - i < ENCODED_ROWS ? n - i : ENCODED_ROWS;
        const uint8_t *from = frit_tensor_rows(part, begin + i, now, read, below);
        for (int64_t k = 0; k < now; k++, from += from_bytes, rows += to_bytes) {
            const int64_t row = begin + i + k;
            frit_dtype_get(part->dtype)->decode(from, values, width);
            const float factor = e->factors ? factor_of(e, row) : 1;
            for (int64_t c = 0; c < width && e->factors; c++) values[c] *= factor;
            const float *importance = e->importance ? e->importance + row / e->height * width : NULL;
            const int64_t bad = frit_encode_checked(e->to, values, rows, width, importance, again);
            if (bad < width) note(e, row * width + bad);
        }
    }
}

frit_status frit_tensor_fail_number(const char *name, int64_t at, int64_t width, float value,
                                    const frit_dtype_info *type)
{
    const long long row = (long long)(at / width), column = (long long)(at % width);
    if (!isfinite(value))
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' has %s in row %lld, column %lld, expected finite numbers", name,
                         isnan(value) ? "NaN" : "infinity", row, column);
    return frit_fail(
        FRIT_E_UNSUPPORTED,
        "tensor '%s' has %g in row %lld, column %lld, which %s cannot hold; expected another type, such as bf16", name,
        (double)value, row, column, type->name);
}

static frit_status fail_encoded(const encoded *e, const char *name, int64_t at)
{
    const frit_tensor *part = e->base.parts;
    const int64_t width = frit_tensor_width(part);
    float *values = malloc((size_t)width * sizeof *values);
    if (!values) return frit_fail_memory((size_t)width * sizeof *values, name);
    frit_status status = frit_tensor_decode_rows(part, at / width, 1, values);
    const float value = values[at % width] * (e->factors ? factor_of(e, at / width) : 1);
    free(values);
    return status == FRIT_OK ? frit_tensor_fail_number(name, at, width, value, e->to) : status;
}

static frit_status check_encoded(const frit_recipe *recipe, const char *name)
{
    const encoded *e = (const encoded *)recipe;
    const int64_t first = atomic_load(&e->first_bad);
    return first > 0 ? fail_encoded(e, name, first - 1) : FRIT_OK;
}

static frit_status check_tensor(const frit_tensor *tensor, const char *name)
{
    const frit_recipe *recipe = tensor->data ? NULL : tensor->recipe;
    for (size_t i = 0; recipe && i < recipe->n_parts; i++) FRIT_TRY(check_tensor(&recipe->parts[i], name));
    return recipe && recipe->check ? recipe->check(recipe, name) : FRIT_OK;
}

frit_status frit_tensor_check(const frit_tensor *tensor)
{
    return check_tensor(tensor, tensor->name);
}

bool frit_tensor_is_by_caller(const frit_tensor *tensor)
{
    const frit_recipe *recipe = tensor->data ? NULL : tensor->recipe;
    bool is_by_caller = recipe && recipe->by_caller;
    for (size_t i = 0; recipe && i < recipe->n_parts && !is_by_caller; i++)
        is_by_caller = frit_tensor_is_by_caller(&recipe->parts[i]);
    return is_by_caller;
}
