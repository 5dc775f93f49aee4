// SPDX-License-Identifier: MIT
// Compiles the kernels of gemms with NVRTC: small gemms, and products of warpgroups in the shapes that are chosen.
#include "backend/cuda/ops/gemm_fp8.h"
#include "backend/cuda/ops/gemm_small.h"
#include "backend/cuda/ops/gemm_wgmma.h"
#include "support/compile_kernels.h"

static void small_gemms_compile_without_spills(void **state)
{
    (void)state;
    static const frit_cuda_gemm_small shapes[] = {
        {.rows = 32, .k = 4096, .segments = {{FRIT_DTYPE_Q4_K, 320}, {FRIT_DTYPE_Q6_K, 64}}},
        {.rows = 128, .k = 14336, .segments = {{FRIT_DTYPE_Q6_K, 256}}},
        {.rows = 64, .k = 2080, .segments = {{FRIT_DTYPE_Q8_0, 8016}}},
        {.rows = 16, .k = 4096, .segments = {{FRIT_DTYPE_Q4_K, 1792}}, .tiles = 2, .warps = 8},
        {.rows = 32, .k = 4096, .segments = {{FRIT_DTYPE_Q4_K, 1792}}, .is_exact = true},
        {.rows = 16, .k = 4096, .segments = {{FRIT_DTYPE_Q4_K, 1792}}, .is_gated = true, .splits = 1},
        {.rows = 64, .k = 4096, .segments = {{FRIT_DTYPE_Q4_K, 1792}}, .is_gated = true, .splits = 1},
        {.rows = 128, .k = 4096, .segments = {{FRIT_DTYPE_Q6_K, 1792}}, .is_gated = true, .splits = 1},
    };
    machine m;
    frit_cuda_kernel kernel;
    open_machine(&m, &hopper);
    for (size_t i = 0; i < FRIT_COUNT(shapes); i++) {
        frit_cuda_gemm_small some = shapes[i];
        assert_ok(frit_cuda_gemm_small_kernel(&some, &hopper, &kernel));
        check_kernel(&m, &kernel, "a small gemm");
    }
    close_machine(&m);
}

static void compile_wgmma(machine *m, frit_cuda_gemm_wgmma product, const char *what)
{
    frit_cuda_kernel kernel;
    assert_ok(frit_cuda_gemm_wgmma_kernel(&product, &hopper, &kernel));
    check_compiled(m, &kernel, what, product.segments[1].n_tiles ? 32 : 8);   // code of two types spills more
}

static void products_of_warpgroups_hardly_spill(void **state)
{
    (void)state;
    static const int row_counts[] = {32, 64, 96, 192, 256};
    static const frit_cuda_gemm_wgmma shapes[] = {
        {.k = 4096, .segments = {{FRIT_DTYPE_Q4_K, 320}, {FRIT_DTYPE_Q6_K, 64}}},
        {.k = 4096, .segments = {{FRIT_DTYPE_Q4_K, 256}}},
        {.k = 4096, .segments = {{FRIT_DTYPE_Q4_K, 1792}}, .is_gated = true},
        {.k = 14336, .segments = {{FRIT_DTYPE_Q6_K, 256}}},
        {.k = 2112, .segments = {{FRIT_DTYPE_Q8_0, 8016}}, .is_exact = true},
    };
    machine m;
    open_machine(&m, &hopper);
    for (size_t i = 0; i < FRIT_COUNT(shapes); i++)
        for (size_t r = 0; r < FRIT_COUNT(row_counts); r += FRIT_TEST_STRIDE) {
            frit_cuda_gemm_wgmma product = shapes[i];
            char what[64];
            snprintf(what, sizeof what, "shape %zu, %d rows", i, row_counts[r]);
            product.n_rows = row_counts[r];
            compile_wgmma(&m, product, what);
        }
    close_machine(&m);
}

static void products_of_warpgroups_have_all_types(void **state)
{
    (void)state;
    static const frit_dtype types[] = {
#define TILE(NAME, ...) FRIT_DTYPE_##NAME,
#include "backend/cuda/kernels/include/tiles.def"
#undef TILE
    };
    machine m;
    open_machine(&m, &hopper);
    for (size_t i = 0; i < FRIT_COUNT(types); i += FRIT_TEST_STRIDE)
        if (types[i] != FRIT_DTYPE_F32)
            compile_wgmma(&m, (frit_cuda_gemm_wgmma){.n_rows = 128, .k = 4096, .segments = {{types[i], 1792}}},
                          frit_dtype_get(types[i])->name);
    close_machine(&m);
}

static void products_in_fp8_do_not_spill(void **state)
{
    (void)state;
    static const int row_counts[] = {32, 64, 128, 256, 2048};
    static const frit_cuda_gemm_fp8 shapes[] = {
        {.k = 4096, .segments = {{FRIT_DTYPE_FP8_128, 320}, {FRIT_DTYPE_FP8_128, 64}}},
        {.k = 4096, .segments = {{FRIT_DTYPE_FP8_128, 1792}}, .is_gated = true},
        {.k = 14336, .segments = {{FRIT_DTYPE_FP8_128, 256}}},
        {.k = 384, .segments = {{FRIT_DTYPE_FP8_128, 8016}}},
    };
    machine m;
    frit_cuda_kernel kernel = {.file = "quantize_rows.cu"};
    open_machine(&m, &hopper);
    check_kernel(&m, &kernel, "inputs in fp8");
    for (size_t i = 0; i < FRIT_COUNT(shapes); i++)
        for (size_t r = 0; r < FRIT_COUNT(row_counts); r += FRIT_TEST_STRIDE) {
            frit_cuda_gemm_fp8 product = shapes[i];
            char what[64];
            snprintf(what, sizeof what, "shape %zu in fp8, %d rows", i, row_counts[r]);
            product.n_rows = row_counts[r];
            assert_ok(frit_cuda_gemm_fp8_kernel(&product, &hopper, &kernel));
            check_compiled(&m, &kernel, what, 32);
        }
    close_machine(&m);
}

static void shapes_without_a_kernel_are_refused(void **state)
{
    (void)state;
    const frit_cuda_gpu ampere = {
        .name = "an Ampere GPU", .arch = 80, .n_multiprocessors = 108, .shared_bytes = 166912};
    frit_cuda_kernel kernel;
    frit_cuda_gemm_wgmma product = {.n_rows = 64, .k = 256, .segments = {{FRIT_DTYPE_Q4_K, 16}}};
    assert_fails(frit_cuda_gemm_wgmma_kernel(&product, &ampere, &kernel), FRIT_E_UNSUPPORTED,
                 "an Ampere GPU has no products of warpgroups; expected sm_90");
    product.k = 96;
    assert_fails(frit_cuda_gemm_wgmma_kernel(&product, &hopper, &kernel), FRIT_E_UNSUPPORTED,
                 "a product of warpgroups has 96 columns; expected a multiple of 64");
    product.k = 40;
    assert_fails(frit_cuda_gemm_wgmma_kernel(&product, &hopper, &kernel), FRIT_E_UNSUPPORTED, "has 40 columns");
    product = (frit_cuda_gemm_wgmma){.n_rows = 64, .k = 256, .segments = {{FRIT_DTYPE_F32, 16}}};
    assert_fails(frit_cuda_gemm_wgmma_kernel(&product, &hopper, &kernel), FRIT_E_UNSUPPORTED,
                 "has weights of type f32");
    frit_cuda_gemm_fp8 fp8 = {.n_rows = 64, .k = 256, .segments = {{FRIT_DTYPE_Q8_0, 16}}};
    assert_fails(frit_cuda_gemm_fp8_kernel(&fp8, &hopper, &kernel), FRIT_E_UNSUPPORTED,
                 "a product in fp8 has 256 columns of type q8_0 on ");
    fp8 = (frit_cuda_gemm_fp8){.n_rows = 64, .k = 192, .segments = {{FRIT_DTYPE_FP8_128, 16}}};
    assert_fails(frit_cuda_gemm_fp8_kernel(&fp8, &hopper, &kernel), FRIT_E_UNSUPPORTED, "expected a multiple of 128");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_gemms_compile_without_spills),    cmocka_unit_test(products_of_warpgroups_hardly_spill),
        cmocka_unit_test(products_of_warpgroups_have_all_types), cmocka_unit_test(products_in_fp8_do_not_spill),
        cmocka_unit_test(shapes_without_a_kernel_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
