// SPDX-License-Identifier: MIT
// Archives of compiled kernels: what is written is found, and damaged files are refused.
#include "backend/cuda/runtime/cubin_archive.h"
#include "backend/cuda/runtime/target.h"
#include "base/checksum.h"
#include "base/file/file.h"
#include "support/support.h"

enum { HEAD_BYTES = 128, HASH_AT = 120, N_AT = 112, LAYOUT_AT = 8, GPUS_AT = 44, N_KERNELS = 5 };

static const frit_cubin_archive_info info = {
    .sources = {{1, 2}}, .arch = 90, .nvrtc_major = 13, .multiprocessors = {114, 132}};

static frit_cubin_key key_of(int i)
{
    char text[32];
    return frit_cubin_key_of((frit_str){text, (size_t)snprintf(text, sizeof text, "kernel %d", i)});
}

static void fill_list(frit_cubin_list *list)
{
    for (int i = 0; i < N_KERNELS; i++) {
        uint8_t code[64];
        memset(code, 'a' + i, sizeof code);
        assert_ok(frit_cubin_list_add(list, key_of(i), code, (size_t)(10 + i)));
    }
}

static const char *write_archive(void)
{
    frit_cubin_list list = {0};
    uint64_t n_bytes;
    const char *path = temp_path("sm_90.kernels");
    fill_list(&list);
    assert_ok(frit_cubin_list_add(&list, key_of(0), (const uint8_t *)"other", 5));   // the key is there
    assert_int_equal(list.n, N_KERNELS);
    assert_ok(frit_cubin_archive_write(path, &info, &list, &n_bytes));
    frit_cubin_list_free(&list);
    return path;
}

static void kernels_are_found_by_key(void **state)
{
    (void)state;
    frit_cubin_archive *archive;
    assert_fails(frit_cubin_archive_open(&archive, temp_path("none.kernels")), FRIT_E_NOT_FOUND, "there is no archive");
    assert_ok(frit_cubin_archive_open(&archive, write_archive()));
    assert_memory_equal(frit_cubin_archive_get_info(archive), &info, sizeof info);
    for (int i = 0; i < N_KERNELS + 3; i++) {
        size_t n_bytes = 0;
        bool is_damaged;
        const uint8_t *code = frit_cubin_archive_find(archive, key_of(i), &n_bytes, &is_damaged);
        assert_false(is_damaged);
        assert_int_equal(code != NULL, i < N_KERNELS);
        if (!code) continue;
        assert_int_equal(n_bytes, 10 + i);
        for (size_t k = 0; k < n_bytes; k++) assert_int_equal(code[k], 'a' + i);
    }
    frit_cubin_list all = {0};
    assert_ok(frit_cubin_list_add_archive(&all, archive));
    assert_int_equal(all.n, N_KERNELS);
    frit_cubin_list_free(&all);
    frit_cubin_archive_close(archive);
}

static void an_archive_may_be_empty(void **state)
{
    (void)state;
    frit_cubin_archive *archive;
    frit_cubin_list none = {0};
    uint64_t n_bytes;
    size_t n_code;
    bool is_damaged;
    const char *path = temp_path("empty.kernels");
    assert_ok(frit_cubin_archive_write(path, &info, &none, &n_bytes));
    assert_int_equal(n_bytes, HEAD_BYTES);
    assert_ok(frit_cubin_archive_open(&archive, path));
    assert_null(frit_cubin_archive_find(archive, key_of(0), &n_code, &is_damaged));
    frit_cubin_archive_close(archive);
}

// ------------------------------------------------------------------------------- damage

static uint64_t read_u64(const uint8_t *bytes, size_t at)
{
    uint64_t value;
    memcpy(&value, bytes + at, sizeof value);
    return value;
}

static void write_u64(uint8_t *bytes, size_t at, uint64_t value)
{
    memcpy(bytes + at, &value, sizeof value);
}

// The checksum of a forged file.
static void sign(uint8_t *bytes)
{
    frit_checksum sum = {0};
    frit_checksum_add(&sum, bytes, HASH_AT);
    frit_checksum_add(&sum, bytes + HEAD_BYTES, (size_t)read_u64(bytes, N_AT) * sizeof(frit_cubin_entry));
    write_u64(bytes, HASH_AT, frit_checksum_value(&sum));
}

static const char *check(const uint8_t *bytes, size_t n_bytes)
{
    frit_cubin_archive_info got;
    uint64_t n, index_at;
    uint8_t *exact = malloc(n_bytes ? n_bytes : 1);   // a read past its end is found by sanitizers
    memcpy(exact, bytes, n_bytes);
    const char *problem = frit_cubin_archive_check(exact, n_bytes, &got, &n, &index_at);
    free(exact);
    return problem;
}

static void damaged_heads_and_indexes_are_refused(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint64_t value;
        bool is_signed;
        const char *problem;
    } cases[] = {
        {0, 0, true, "is no archive"},
        {LAYOUT_AT, 2, true, "another layout"},
        {N_AT, 1000, false, "ends within its index"},
        {N_AT, UINT64_MAX / 40 + 2, false, "ends within its index"},   // the product would wrap around
        {HASH_AT, 0, false, "has a damaged index"},
        {HEAD_BYTES, 3, false, "has a damaged index"},
        {HEAD_BYTES, UINT64_MAX, true, "is not sorted"},
        {HEAD_BYTES + 16, 0, true, "lies outside"},            // an offset in the head
        {HEAD_BYTES + 16, UINT64_MAX, true, "lies outside"},   // offset + size would wrap around
        {HEAD_BYTES + 24, UINT64_MAX, true, "lies outside"},
        {HEAD_BYTES + 24, 0, true, "lies outside"},
        {GPUS_AT, 0, true, "names no GPU"},
        {GPUS_AT, 132 | (uint64_t)114 << 32, true, "not ascending"},
    };
    char *text;
    size_t n_bytes;
    assert_ok(frit_file_read(write_archive(), 1 << 20, &text, &n_bytes));
    uint8_t *bytes = (uint8_t *)text, *forged = malloc(n_bytes);
    assert_null(check(bytes, n_bytes));
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        memcpy(forged, bytes, n_bytes);
        write_u64(forged, cases[i].at, cases[i].value);
        if (cases[i].is_signed) sign(forged);
        const char *problem = check(forged, n_bytes);
        assert_non_null(problem);
        if (!strstr(problem, cases[i].problem)) fail_msg("case %zu: %s", i, problem);
    }
    for (size_t n = 0; n < HEAD_BYTES + N_KERNELS * sizeof(frit_cubin_entry); n++) assert_non_null(check(bytes, n));
    assert_string_equal(check(bytes, n_bytes - 1), "has a kernel that lies outside of the file");
    free(forged);
    free(text);
}

static void a_damaged_kernel_is_not_found(void **state)
{
    (void)state;
    frit_cubin_archive *archive;
    const char *path = write_archive();
    char *text;
    size_t n_bytes;
    assert_ok(frit_file_read(path, 1 << 20, &text, &n_bytes));
    text[n_bytes - 1] ^= 1;   // the code of one of the kernels
    frit_file_writer *writer;
    assert_ok(frit_file_writer_open(&writer, path));
    assert_ok(frit_file_writer_write(writer, text, n_bytes));
    assert_ok(frit_file_writer_commit(writer));
    free(text);
    assert_ok(frit_cubin_archive_open(&archive, path));
    int n_damaged = 0;
    for (int i = 0; i < N_KERNELS; i++) {
        bool is_damaged;
        size_t n;
        const uint8_t *code = frit_cubin_archive_find(archive, key_of(i), &n, &is_damaged);
        n_damaged += is_damaged;
        assert_int_equal(is_damaged, code == NULL);
    }
    assert_int_equal(n_damaged, 1);
    frit_cubin_archive_close(archive);
    assert_true(frit_file_remove(path));
    assert_ok(frit_file_writer_open(&writer, path));
    assert_ok(frit_file_writer_commit(writer));
    assert_fails(frit_cubin_archive_open(&archive, path), FRIT_E_FORMAT, "ends within its head");
}

// ------------------------------------------------------------------------------- targets

static void known_gpus_have_names_of_their_own(void **state)
{
    (void)state;
    frit_cuda_driver driver;
    frit_cuda_driver_open_target(&driver);
    for (size_t i = 0; frit_cuda_target_get(i); i++) {
        const frit_cuda_target *target = frit_cuda_target_get(i);
        frit_cuda_gpu gpu;
        assert_int_equal(frit_cuda_target_find(target->name), i);
        assert_ok(frit_cuda_gpu_open(&gpu, &driver, (int)i));
        assert_string_equal(gpu.name, target->name);
        assert_int_equal(gpu.arch, target->arch);
        assert_int_equal(gpu.n_multiprocessors, target->n_multiprocessors);
        assert_int_equal(gpu.shared_bytes, target->shared_kib << 10);
        frit_cuda_gpu_close(&gpu);
    }
    assert_int_equal(frit_cuda_target_find("h1000"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_found_by_key),
        cmocka_unit_test(an_archive_may_be_empty),
        cmocka_unit_test(damaged_heads_and_indexes_are_refused),
        cmocka_unit_test(a_damaged_kernel_is_not_found),
        cmocka_unit_test(known_gpus_have_names_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
