// SPDX-License-Identifier: MIT
// Errors without a compiler, a driver or cuBLASLt, and the files of cubins. Nothing here needs NVRTC.
#include "backend/cuda/runtime/cublaslt.h"
#include "backend/cuda/runtime/cubin_cache.h"
#include "backend/cuda/runtime/kernel.h"
#include "base/file/file.h"
#include "support/support.h"

// ------------------------------------------------------------------------------- without NVRTC

static void without_a_compiler_the_error_says_what_is_missing(void **state)
{
    (void)state;
    frit_pool *pool;
    frit_nvrtc nvrtc;
    assert_fails(frit_nvrtc_open(&nvrtc, "/nowhere", 75), FRIT_E_NOT_FOUND, "/nowhere: NVRTC (libnvrtc.so.13 or .12)");
    assert_fails(frit_nvrtc_open(&nvrtc, "/nowhere", 70), FRIT_E_NOT_FOUND, "/nowhere: NVRTC (libnvrtc.so.12)");
    assert_ok(frit_pool_new(&pool, 1));
    const frit_cuda_compiler compiler = {.arch = 90};
    frit_cuda_program program = {.file = "embed_rows.cu"};
    assert_fails(frit_cuda_compile(&compiler, pool, &program, 1), FRIT_E_NOT_FOUND, "there is no NVRTC");
    frit_pool_free(pool);
}

static void without_a_driver_the_error_names_the_library(void **state)
{
    (void)state;
    frit_cuda_driver driver;
    assert_fails(frit_cuda_driver_open_as(&driver, "libnothing.so.7"), FRIT_E_NOT_FOUND, "libnothing.so.7");
    assert_null(driver.library);
    assert_fails(frit_cuda_driver_open_as(&driver, "libm.so.6"), FRIT_E_UNSUPPORTED, "no function cuInit");
}

static void without_cublaslt_the_error_names_the_library(void **state)
{
    (void)state;
    frit_cublaslt blas;
    assert_fails(frit_cublaslt_open(&blas, "/nowhere"), FRIT_E_NOT_FOUND,
                 "/nowhere: cuBLASLt (libcublasLt.so.13 or .12)");
    assert_null(blas.library);
}

// ------------------------------------------------------------------------------- the files of cubins

static const frit_cubin_key key = {{1, 2}};
static const uint8_t code[] = "code of a kernel";

static char *kept_file(const char *folder)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%016x%016x.cubin", folder, 1, 2);
    return path;
}

static void count_warning(void *ctx, frit_log_level level, const char *text)
{
    (void)level, (void)text;
    ++*(int *)ctx;
}

static void a_damaged_file_is_a_warning_and_never_code(void **state)
{
    (void)state;
    const char *folder = temp_path("damaged");
    int n_warnings = 0;
    const frit_log log = {count_warning, &n_warnings};
    const frit_cubin_cache cache = {folder, 7, &log};
    size_t n, n_bytes, at;
    assert_null(frit_cubin_cache_read(&cache, key, &n_bytes));
    assert_int_equal(n_warnings, 0);   // nothing is cached yet
    frit_cubin_cache_write(&cache, key, code, sizeof code);
    uint8_t *found = frit_cubin_cache_read(&cache, key, &n_bytes);
    assert_non_null(found);
    assert_int_equal(n_bytes, sizeof code);
    assert_memory_equal(found, code, sizeof code);
    free(found);

    char *bytes = read_file(kept_file(folder), &n);
    for (size_t i = 0; i < n; i++) {   // every bit counts
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] = (char)(bytes[i] ^ 1 << bit);
            assert_non_null(frit_cubin_file_check((const uint8_t *)bytes, n, key, &at));
            bytes[i] = (char)(bytes[i] ^ 1 << bit);
        }
        assert_non_null(frit_cubin_file_check((const uint8_t *)bytes, i, key, &at));
    }
    assert_null(frit_cubin_file_check((const uint8_t *)bytes, n, key, &at));
    assert_non_null(frit_cubin_file_check((const uint8_t *)bytes, n, (frit_cubin_key){{1, 3}}, &at));
    write_file(kept_file(folder), bytes, n - 1);
    assert_null(frit_cubin_cache_read(&cache, key, &n_bytes));
    assert_int_equal(n_warnings, 1);
    frit_cubin_cache_write(&cache, key, code, sizeof code);   // replaces it
    found = frit_cubin_cache_read(&cache, key, &n_bytes);
    assert_non_null(found);
    free(found);
    free(bytes);
}

typedef struct writers {
    const char *folder;
    frit_log log;
} writers;

static void write_and_read(void *ctx, int thread, int n_threads)
{
    (void)n_threads;
    const writers *w = ctx;
    const frit_cubin_cache cache = {w->folder, 7, &w->log};
    uint8_t own[4096];
    memset(own, 'a' + thread, sizeof own);
    for (int i = 0; i < 50; i++) {
        size_t n;
        frit_cubin_cache_write(&cache, key, own, sizeof own - (size_t)thread);
        uint8_t *found = frit_cubin_cache_read(&cache, key, &n);
        for (size_t j = 1; found && j < n; j++)
            if (found[j] != found[0] || n != sizeof own - (size_t)(found[0] - 'a')) found[0] = 0;
        if (!found || found[0] == 0) w->log.fn(w->log.ctx, FRIT_LOG_WARNING, "a file of two writers");
        free(found);
    }
}

static void several_writers_leave_the_file_of_one(void **state)
{
    (void)state;
    int n_warnings = 0;
    writers w = {.folder = temp_path("writers"), .log = {count_warning, &n_warnings}};
    frit_pool *pool;
    assert_ok(frit_folder_make(w.folder));
    assert_ok(frit_pool_new(&pool, 4));
    frit_pool_run(pool, write_and_read, &w);
    assert_int_equal(n_warnings, 0);
    frit_pool_free(pool);
}

static void kernels_of_other_compilers_serve_machines_without_one(void **state)
{
    (void)state;
    int n_warnings = 0;
    size_t n;
    const frit_log log = {count_warning, &n_warnings};
    const frit_cubin_cache cache = {temp_path("makers"), 7, &log}, newer = {cache.folder, 8, &log},
                           none = {cache.folder, 0, &log};
    frit_cubin_cache_write(&cache, key, code, sizeof code);
    assert_null(frit_cubin_cache_read(&newer, key, &n));
    uint8_t *found = frit_cubin_cache_read(&none, key, &n);
    assert_non_null(found);
    assert_int_equal(n, sizeof code);
    assert_int_equal(n_warnings, 0);
    free(found);
}

static void a_folder_that_cannot_be_made_is_a_warning(void **state)
{
    (void)state;
    int n_warnings = 0;
    size_t n;
    const frit_log log = {count_warning, &n_warnings};
    const char *file = temp_path("file");
    const frit_cubin_cache cache = {file, 7, &log};
    write_file(file, "x", 1);
    frit_cubin_cache_write(&cache, key, code, sizeof code);
    assert_int_equal(n_warnings, 1);
    assert_null(frit_cubin_cache_read(&cache, key, &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_compiler_the_error_says_what_is_missing),
        cmocka_unit_test(without_a_driver_the_error_names_the_library),
        cmocka_unit_test(without_cublaslt_the_error_names_the_library),
        cmocka_unit_test(a_damaged_file_is_a_warning_and_never_code),
        cmocka_unit_test(several_writers_leave_the_file_of_one),
        cmocka_unit_test(kernels_of_other_compilers_serve_machines_without_one),
        cmocka_unit_test(a_folder_that_cannot_be_made_is_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
