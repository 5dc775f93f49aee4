// SPDX-License-Identifier: MIT
// Floats of files: which matrices are copied, and equal rows in the copy and the file.
#include "support/support.h"

#include "backend/cpu/pack/pack.h"
#include "format/rows.h"

enum { N_ROWS = 37, WIDTH = 129, N_TENSORS = 3 };

typedef struct fixture {
    frit_file *file;
    frit_tensor tensors[N_TENSORS];
    frit_node nodes[N_TENSORS];
    frit_weight_use list[N_TENSORS];
    frit_weight_uses uses;
    frit_stores *stores;
    frit_packs *packs;
    frit_pool *pool;
} fixture;

static const frit_dtype types[N_TENSORS] = {FRIT_DTYPE_BF16, FRIT_DTYPE_F16, FRIT_DTYPE_F32};
static const char *const names[N_TENSORS] = {"bf16", "f16", "f32"};

static uint64_t bytes_of(int i)
{
    return N_ROWS * (uint64_t)frit_dtype_row_bytes(types[i], WIDTH);
}

// Three matrices in a mapped file. Linear ops read them; rows of the first `n_looked_up` are looked up instead.
static fixture *open_fixture(uint64_t most_floats, int n_looked_up)
{
    static uint8_t bytes[4 * N_TENSORS * N_ROWS * WIDTH];
    fixture *f = calloc(1, sizeof *f);
    size_t n_bytes = 0;
    assert_non_null(f);
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 31 + i / 255);
    write_file(temp_path("floats"), bytes, sizeof bytes);
    assert_ok(frit_file_open(&f->file, temp_path("floats"), false));
    for (int i = 0; i < N_TENSORS; i++) {
        f->tensors[i] = (frit_tensor){names[i],
                                      types[i],
                                      2,
                                      {N_ROWS, WIDTH, 1, 1},
                                      frit_file_data(f->file) + n_bytes,
                                      bytes_of(i),
                                      frit_file_is_mapped(f->file),
                                      NULL,
                                      0};
        f->nodes[i] = (frit_node){.op = i < n_looked_up ? FRIT_OP_EMBED : FRIT_OP_LINEAR};
        f->list[i] = (frit_weight_use){&f->tensors[i], &f->nodes[i], i < n_looked_up ? 0 : 1};
        n_bytes += bytes_of(i);
    }
    f->uses = (frit_weight_uses){f->list, N_TENSORS, N_TENSORS};
    frit_kernels *kernels = calloc(1, sizeof *kernels);
    const frit_packs_options options = {.kernels = kernels, .most_floats = most_floats};
    assert_ok(frit_pool_new(&f->pool, 2));
    assert_ok(frit_stores_new(&f->stores));
    assert_ok(frit_packs_open(&f->packs, f->stores, &options));
    free(kernels);
    return f;
}

static void close_fixture(fixture *f)
{
    frit_stores_release(f->stores, (frit_store *)f->packs);
    frit_stores_free(f->stores);
    frit_pool_free(f->pool);
    frit_file_close(f->file);
    free(f);
}

// The rows of matrix i, copied or in the file.
static bool is_copied(const fixture *f, int i)
{
    const uint8_t *rows = frit_packs_rows(f->packs, &f->tensors[i]);
    assert_memory_equal(rows, f->tensors[i].data, bytes_of(i));
    return rows != f->tensors[i].data;
}

static frit_weight_bytes measure(const fixture *f, size_t n_uses)
{
    frit_weight_bytes out;
    const frit_weight_uses uses = {f->uses.list, n_uses, n_uses};
    assert_ok(frit_packs_measure(f->packs, &uses, &out));
    return out;
}

static void load(const fixture *f, size_t n_uses)
{
    const frit_weight_uses uses = {f->uses.list, n_uses, n_uses};
    assert_ok(frit_packs_load(f->packs, f->pool, &uses, (frit_progress){0}));
}

static void floats_of_products_are_copied_once(void **state)
{
    (void)state;
    fixture *f = open_fixture(bytes_of(1) + bytes_of(2), 1);
    const frit_weight_bytes before = measure(f, N_TENSORS);
    load(f, N_TENSORS);
    load(f, N_TENSORS);
    const frit_weight_bytes after = measure(f, N_TENSORS);
    const uint64_t least = bytes_of(1) + bytes_of(2);
    assert_in_range(before.missing, least, least + 2 * FRIT_CPU_ALIGN);
    assert_int_equal(before.stored, before.missing);
    assert_int_equal(before.in_place, bytes_of(0));
    assert_int_equal(after.missing, 0);
    assert_int_equal(after.stored, before.stored);
    assert_int_equal(after.in_place, before.in_place);
    assert_false(is_copied(f, 0));
    assert_true(is_copied(f, 1));
    assert_true(is_copied(f, 2));
    close_fixture(f);
}

// The decision for all matrices holds for a part: a plan that reads fewer matrices copies only measured ones.
static void floats_without_room_stay_in_the_file(void **state)
{
    (void)state;
    fixture *f = open_fixture(bytes_of(0) + bytes_of(1) + bytes_of(2) - 1, 0);
    const frit_weight_bytes all = measure(f, N_TENSORS), one = measure(f, 1);
    load(f, 1);
    load(f, N_TENSORS);
    assert_int_equal(all.stored, 0);
    assert_int_equal(all.in_place, bytes_of(0) + bytes_of(1) + bytes_of(2));
    assert_int_equal(one.stored, 0);
    assert_int_equal(measure(f, N_TENSORS).stored, 0);
    for (int i = 0; i < N_TENSORS; i++) assert_false(is_copied(f, i));
    close_fixture(f);
}

static void floats_in_memory_are_not_copied(void **state)
{
    (void)state;
    fixture *f = open_fixture(UINT64_MAX, 0);
    for (int i = 0; i < N_TENSORS; i++) f->tensors[i].is_mapped = i > 0;
    load(f, N_TENSORS);
    assert_false(is_copied(f, 0));
    assert_true(is_copied(f, 1));
    close_fixture(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_of_products_are_copied_once),
        cmocka_unit_test(floats_without_room_stay_in_the_file),
        cmocka_unit_test(floats_in_memory_are_not_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
