// SPDX-License-Identifier: MIT
// Compiles kernels for NVIDIA GPUs with NVRTC, which needs no GPU, and tests the cache of cubins.
//
// NVRTC comes from the folder FRIT_NVRTC, from build/tools (tools/setup gpu installs it there), or from the system's
// loader. Without it, the tests that need it are skipped.
#include "backend/cuda/runtime/cublaslt.h"
#include "backend/cuda/runtime/cubin_cache.h"
#include "backend/cuda/runtime/kernel.h"
#include "backend/cuda/ops/gemm_cublas.h"
#include "backend/cuda/ops/precise.h"
#include "backend/cuda/ops/product.h"
#include "backend/cuda/ops/experts_rows.h"
#include "backend/cuda/ops/rows.h"
#include "backend/cuda/ops/gemm_small.h"
#include "backend/cuda/runtime/sources.h"
#include "base/file/file.h"
#include "support/compile_kernels.h"

static const frit_cuda_gpu ampere = {
    .name = "an Ampere GPU", .arch = 80, .n_multiprocessors = 108, .shared_bytes = 166912};

// Consumer GPUs have less shared memory.
static const frit_cuda_gpu ada = {.name = "an Ada GPU", .arch = 89, .n_multiprocessors = 128, .shared_bytes = 101376};

// GPUs without the tensor core instructions that kernels use. The second needs NVRTC 12.
static const frit_cuda_gpu oldest[] = {
    {.name = "a Turing GPU", .arch = 75, .n_multiprocessors = 40, .shared_bytes = 65536},
    {.name = "a Volta GPU", .arch = 70, .n_multiprocessors = 80, .shared_bytes = 98304},
};

// clang-format off
static const frit_cuda_heads heads = {.n_heads = 32, .n_kv_heads = 8, .head_size = 128, .page_bytes = 4 << 20};
static const frit_cuda_product products[] = {
    {.rows = 1,  .k = 4096,  .is_normed = true, .epilogue = FRIT_GPU_QKV,  .segments = {{FRIT_DTYPE_Q4_K, 320}, {FRIT_DTYPE_Q6_K, 64}}},
    {.rows = 1,  .k = 4096,  .epilogue = FRIT_GPU_ADD,                     .segments = {{FRIT_DTYPE_Q4_K, 256}}},
    {.rows = 1,  .k = 4096,  .is_normed = true, .epilogue = FRIT_GPU_GLU,  .segments = {{FRIT_DTYPE_Q4_K, 1792}}},
    {.rows = 1,  .k = 14336, .epilogue = FRIT_GPU_ADD,                     .segments = {{FRIT_DTYPE_Q6_K, 256}}},
    {.rows = 1,  .k = 4096,  .is_normed = true, .epilogue = FRIT_GPU_STORE, .segments = {{FRIT_DTYPE_Q6_K, 8016}}},
    {.rows = 1,  .k = 2048,  .is_normed = true, .epilogue = FRIT_GPU_GLU,  .segments = {{FRIT_DTYPE_Q8_0, 1024}}},
    {.rows = 1,  .k = 2048,  .epilogue = FRIT_GPU_STORE,                   .segments = {{FRIT_DTYPE_Q4_0, 128}}},
    {.rows = 1,  .k = 2048,  .is_normed = true, .epilogue = FRIT_GPU_GLU,  .segments = {{FRIT_DTYPE_BF16, 1024}}},
    {.rows = 1,  .k = 2048,  .epilogue = FRIT_GPU_STORE,                   .segments = {{FRIT_DTYPE_F16, 128}}},
    {.rows = 3,  .k = 4096,  .is_normed = true, .epilogue = FRIT_GPU_QKV,  .segments = {{FRIT_DTYPE_Q4_K, 320}, {FRIT_DTYPE_Q6_K, 64}}},
    {.rows = 8,  .k = 4096,  .is_normed = true, .epilogue = FRIT_GPU_GLU,  .segments = {{FRIT_DTYPE_Q4_K, 1792}}},
    {.rows = 16, .k = 4096,  .is_normed = true, .epilogue = FRIT_GPU_STORE, .segments = {{FRIT_DTYPE_Q6_K, 8016}}},
    {.rows = 16, .k = 2048,  .epilogue = FRIT_GPU_ADD,                     .segments = {{FRIT_DTYPE_BF16, 128}}},
    {.rows = 8,  .k = 14336, .epilogue = FRIT_GPU_ADD,                     .segments = {{FRIT_DTYPE_Q6_K, 256}}},
};
// clang-format on

static void products_of_every_type_and_epilogue_compile_without_spills(void **state)
{
    (void)state;
    const frit_cuda_gpu *const gpus[] = {&hopper, &ampere, &ada};
    for (size_t g = 0; g < FRIT_COUNT(gpus); g++) {
        machine m;
        open_machine(&m, gpus[g]);
        for (size_t i = g; i < FRIT_COUNT(products); i += (g ? 4 : 1) * FRIT_TEST_STRIDE) {
            frit_cuda_product product = products[i];
            frit_cuda_kernel kernel;
            char what[64];
            product.heads = heads;
            product.heads.is_neox = product.rows > 1;
            snprintf(what, sizeof what, "product %d for sm_%d", (int)i, gpus[g]->arch);
            if (frit_cuda_product_kernel(&product, gpus[g], &kernel) != FRIT_OK) fail_msg("%s: %s", what, frit_error());
            check_kernel(&m, &kernel, what);
        }
        close_machine(&m);
    }
}

static const frit_dtype tile_types[] = {
#define TILE(NAME, ...) FRIT_DTYPE_##NAME,
#include "backend/cuda/kernels/include/tiles.def"
#undef TILE
};

// Kernels that make tiles, multiply them (gemv, small gemm, f32), measure them, and convert them to f16.
static void kernels_of_every_weight_type_compile_without_spills(void **state)
{
    (void)state;
    machine m;
    open_machine(&m, &hopper);
    for (size_t i = 0; i < FRIT_COUNT(tile_types); i += FRIT_TEST_STRIDE) {
        const char *name = frit_dtype_get(tile_types[i])->name;
        frit_cuda_kernel kernel = {.file = "repack.cu"};
        frit_cuda_define(&kernel, "TYPE0", frit_dtype_get(tile_types[i])->gguf_id);
        check_kernel(&m, &kernel, name);
        frit_cuda_matmul matmul = {.k = 4096, .in = FRIT_CUDA_F16, .segments = {{tile_types[i], 8}}};
        assert_ok(frit_cuda_matmul_describe(&matmul));
        assert_int_equal(matmul.n_kernels, 1);
        check_kernel(&m, &matmul.dequantize[0], name);
        for (int rows = 1; rows <= 9; rows += 8) {
            const frit_cuda_product product = {.rows = rows, .k = 512, .segments = {{tile_types[i], 8}}};
            assert_ok(frit_cuda_product_kernel(&product, &hopper, &kernel));
            check_kernel(&m, &kernel, name);
        }
        assert_ok(frit_cuda_precise_kernel(tile_types[i], 512, 8, &kernel));
        check_kernel(&m, &kernel, name);
        kernel = (frit_cuda_kernel){.file = "bounds.cu"};
        frit_cuda_define(&kernel, "TYPE0", frit_dtype_get(tile_types[i])->gguf_id);
        frit_cuda_define(&kernel, "K", 512);
        check_kernel(&m, &kernel, name);
        frit_cuda_gemm_small some = {
            .rows = 64, .k = 4096, .segments = {{tile_types[i], 1792}}, .is_gated = i % 2 == 0};
        if (tile_types[i] == FRIT_DTYPE_F32) continue;
        assert_ok(frit_cuda_gemm_small_kernel(&some, &hopper, &kernel));
        check_kernel(&m, &kernel, name);
    }
    close_machine(&m);
}

static void check_oldest(machine *m, const frit_cuda_gpu *gpu)
{
    const int few = 64;   // bytes that may spill: plain_attend 4 on sm_70
    static const char *const files[] = {"plain.cu", "plain_cache.cu", "recurrent.cu", "adapt.cu", "gemm.cu", "pick.cu"};
    frit_cuda_kernel kernel;
    assert_false(frit_cuda_has_tensor_products(gpu));
    for (size_t i = 0; i < FRIT_COUNT(tile_types); i += FRIT_TEST_STRIDE) {
        const char *name = frit_dtype_get(tile_types[i])->name;
        const frit_cuda_embed embed = {.dtype = tile_types[i], .width = 4096};
        kernel = (frit_cuda_kernel){.file = "repack.cu"};
        frit_cuda_define(&kernel, "TYPE0", frit_dtype_get(tile_types[i])->gguf_id);
        check_compiled(m, &kernel, name, few);
        assert_ok(frit_cuda_precise_kernel(tile_types[i], 512, 8, &kernel));
        check_compiled(m, &kernel, name, few);
        assert_ok(frit_cuda_embed_kernel(&embed, &kernel));
        check_compiled(m, &kernel, name, few);
    }
    for (int is_layer = 0; is_layer <= 1; is_layer++) {
        const frit_cuda_norm norm = {.width = 4096, .is_layer = is_layer, .has_weight = true, .has_bias = is_layer};
        assert_ok(frit_cuda_norm_kernel(&norm, &kernel));
        check_compiled(m, &kernel, "norms of rows", few);
    }
    for (size_t i = 0; i < FRIT_COUNT(files); i++)
        check_compiled(m, &(frit_cuda_kernel){.file = files[i]}, files[i], few);
}

// Compiles the kernels that GPUs without these instructions use.
static void kernels_without_tensor_products_compile_for_older_gpus(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(oldest); i++) {
        machine m;
        frit_nvrtc nvrtc;
        if (i > 0 && !open_nvrtc(&nvrtc, oldest[i].arch)) continue;
        open_machine(&m, &oldest[i]);
        check_oldest(&m, &oldest[i]);
        close_machine(&m);
    }
}

// clang-format off
static const frit_cuda_experts_product experts[] = {
    {.rows = 1, .k = 2048, .dtype = FRIT_DTYPE_Q4_K, .n_tiles = 96,  .n_used = 8, .is_gated = true, .grid = 16},
    {.rows = 1, .k = 768,  .dtype = FRIT_DTYPE_Q6_K, .n_tiles = 128, .n_used = 8, .is_sum = true, .has_own_rows = true, .is_weighed = true},
    {.rows = 8, .k = 2048, .dtype = FRIT_DTYPE_Q4_K, .n_tiles = 96,  .n_used = 8, .is_gated = true, .parts = 1, .grid = 4},
    {.rows = 8, .k = 768,  .dtype = FRIT_DTYPE_Q4_K, .n_tiles = 128, .n_used = 8, .has_own_rows = true, .is_weighed = true, .grid = 4},
    {.rows = 4, .k = 4096, .dtype = FRIT_DTYPE_BF16, .n_tiles = 256, .n_used = 2, .is_gated = true, .act = FRIT_ACT_GELU, .parts = 2, .grid = 8},
    {.rows = 1, .k = 2880, .dtype = FRIT_DTYPE_MXFP4, .n_tiles = 180, .n_used = 4, .grid = 33},
    {.rows = 8, .k = 2880, .dtype = FRIT_DTYPE_Q8_0, .n_tiles = 180, .n_used = 4, .has_own_rows = true, .grid = 16},
    {.rows = 1, .k = 128,  .dtype = FRIT_DTYPE_BF16, .n_tiles = 32, .n_used = 128, .has_own_rows = true, .is_by_heads = true},
    {.rows = 8, .k = 512,  .dtype = FRIT_DTYPE_Q8_0, .n_tiles = 8, .n_used = 128, .has_own_rows = true, .is_by_heads = true},
};
// clang-format on

static const frit_cuda_experts_product many_experts[] = {
    {.rows = 64, .k = 2048, .dtype = FRIT_DTYPE_Q4_K, .n_tiles = 96, .n_used = 8, .is_gated = true},
    {.rows = 64,
     .k = 768,
     .dtype = FRIT_DTYPE_Q6_K,
     .n_tiles = 128,
     .n_used = 8,
     .has_own_rows = true,
     .is_weighed = true},
    {.rows = 64,
     .k = 2880,
     .dtype = FRIT_DTYPE_MXFP4,
     .n_tiles = 180,
     .n_used = 4,
     .is_gated = true,
     .act = FRIT_ACT_GELU},
    {.rows = 64, .k = 2048, .dtype = FRIT_DTYPE_IQ2_S, .n_tiles = 96, .n_used = 8, .is_gated = true},
    {.rows = 64, .k = 4096, .dtype = FRIT_DTYPE_BF16, .n_tiles = 256, .n_used = 2, .has_own_rows = true},
};

static const frit_route routes[] = {
    {.gating = FRIT_GATING_SOFTMAX, .n_used = 8, .normalize = true},
    {.gating = FRIT_GATING_SIGMOID, .n_used = 8, .n_groups = 8, .n_groups_used = 4, .normalize = true, .scale = 2.5f},
    {.gating = FRIT_GATING_NEAR_BEST, .n_used = 2, .jitter = 0.01f},
};

static void products_of_experts_compile_without_spills(void **state)
{
    (void)state;
    const frit_cuda_gpu *const gpus[] = {&hopper, &ampere};
    for (size_t g = 0; g < FRIT_COUNT(gpus); g++) {
        machine m;
        frit_cuda_kernel kernel;
        open_machine(&m, gpus[g]);
        for (size_t i = 0; i < FRIT_COUNT(routes); i++) {
            assert_ok(frit_cuda_route_kernel(&routes[i], i == 1 ? 288 : 128, &kernel));
            check_kernel(&m, &kernel, "routes");
        }
        kernel = (frit_cuda_kernel){.file = "dispatch.cu"};
        check_kernel(&m, &kernel, "assignments by expert");
        for (size_t i = 0; i < FRIT_COUNT(experts); i++) {
            assert_ok(frit_cuda_experts_kernel(&experts[i], gpus[g], &kernel));
            char what[64];
            snprintf(what, sizeof what, "product of experts %d for sm_%d", (int)i, gpus[g]->arch);
            check_kernel(&m, &kernel, what);
        }
        for (size_t i = 0; i < FRIT_COUNT(many_experts); i++) {
            assert_ok(frit_cuda_expert_rows_kernel(&many_experts[i], gpus[g], &kernel));
            check_kernel(&m, &kernel, "gemm of experts");
        }
        close_machine(&m);
    }
}

static void kernels_between_products_compile_without_spills(void **state)
{
    (void)state;
    const frit_cuda_embed embed = {.dtype = FRIT_DTYPE_Q6_K, .width = 4096, .rotated = 128};
    const frit_cuda_norm norms[] = {
        {.width = 4096, .has_weight = true, .out = FRIT_CUDA_F16},
        {.width = 2048, .is_layer = true, .has_weight = true, .has_bias = true, .out = FRIT_CUDA_BF16},
        {.width = 3584, .has_weight = true, .in = FRIT_CUDA_BF16, .is_sum = true},
        {.width = 8192, .has_weight = true, .out = FRIT_CUDA_F16, .is_scaled = true},
        {.width = 4096, .has_weight = true, .out = FRIT_CUDA_F16, .is_scaled = true, .joins = true},
    };
    const frit_cuda_glu glus[] = {
        {.width = 14336, .act = FRIT_ACT_SILU, .is_gated = true, .in = FRIT_CUDA_F16, .out = FRIT_CUDA_BF16},
        {.width = 5120, .act = FRIT_ACT_GELU, .has_bias = true},
        {.width = 9216, .act = FRIT_ACT_GELU_TANH, .is_gated = true, .out = FRIT_CUDA_BF16},
    };
    const frit_cuda_heads_rows after[] = {
        {.heads = heads, .order = FRIT_CUDA_ORDER_ADJACENT, .rotated = 128},
        {.heads = heads, .order = FRIT_CUDA_ORDER_NEOX, .rotated = 128, .style = FRIT_ROPE_NEOX, .has_norm = true},
        {.heads = heads, .rotated = 32, .style = FRIT_ROPE_NEOX, .has_bias = true, .has_f32_queries = true},
    };
    machine m;
    frit_cuda_kernel kernel;
    open_machine(&m, &hopper);
    assert_ok(frit_cuda_embed_kernel(&embed, &kernel));
    check_kernel(&m, &kernel, "rows of the token table");
    assert_ok(frit_cuda_take_rows_kernel(4096, &kernel));
    check_kernel(&m, &kernel, "taking rows");
    for (size_t i = 0; i < FRIT_COUNT(norms); i++) {
        assert_ok(frit_cuda_norm_kernel(&norms[i], &kernel));
        check_kernel(&m, &kernel, "norms of rows");
    }
    for (size_t i = 0; i < FRIT_COUNT(glus); i++) {
        assert_ok(frit_cuda_glu_kernel(&glus[i], &kernel));
        check_kernel(&m, &kernel, "activations of rows");
    }
    for (int width = 2048; width <= 14336; width += 12288) {
        assert_ok(frit_cuda_gate_kernel(width, &kernel));
        check_kernel(&m, &kernel, "gates of rows");
    }
    assert_ok(frit_cuda_rope_kernel(128, &kernel));
    check_kernel(&m, &kernel, "rotations");
    for (size_t i = 0; i < FRIT_COUNT(after); i++) {
        assert_ok(frit_cuda_heads_kernel(&after[i], &kernel));
        check_kernel(&m, &kernel, "heads of rows");
    }
    for (int size = 64; size <= 128; size += 32) {
        frit_cuda_attend attend = {
            .heads = heads, .out = size == 64 ? FRIT_CUDA_F16 : FRIT_CUDA_F32, .has_sinks = size == 64};
        attend.heads.head_size = size;
        attend.window = size == 96 ? 1024 : 0;
        attend.has_softcap = size == 96;
        assert_ok(frit_cuda_attend_rows_kernel(&attend, &hopper, &kernel));
        check_kernel(&m, &kernel, "attention of prompts");
    }
    close_machine(&m);
}

static void shapes_that_kernels_of_rows_do_not_take_are_refused(void **state)
{
    (void)state;
    frit_cuda_kernel kernel;
    const frit_cuda_norm norm = {.width = 70};
    assert_fails(frit_cuda_norm_kernel(&norm, &kernel), FRIT_E_UNSUPPORTED, "70 numbers; expected a multiple of 4");
    frit_cuda_attend attend = {.heads = heads};
    attend.heads.head_size = 80;
    assert_fails(frit_cuda_attend_rows_kernel(&attend, &hopper, &kernel), FRIT_E_UNSUPPORTED, "80 numbers");
    attend.heads.head_size = 512;
    assert_fails(frit_cuda_attend_rows_kernel(&attend, &hopper, &kernel), FRIT_E_UNSUPPORTED,
                 "262144 bytes of shared memory");
    assert_fails(frit_cuda_attend_kernel(&attend, 1, 0, &kernel), FRIT_E_UNSUPPORTED, "heads of 512 dimensions");
    assert_fails(frit_cuda_gate_kernel(65536, &kernel), FRIT_E_UNSUPPORTED, "65536 numbers; expected at most 16384");
    frit_cuda_heads_rows after = {.heads = heads, .rotated = 130};
    assert_fails(frit_cuda_heads_kernel(&after, &kernel), FRIT_E_UNSUPPORTED, "rotation of 130 of 128 dimensions");
    const frit_cuda_embed embed = {.dtype = FRIT_DTYPE_I32, .width = 64};
    assert_fails(frit_cuda_embed_kernel(&embed, &kernel), FRIT_E_UNSUPPORTED, "type i32 has no tiles");
    frit_cuda_matmul matmul = {.k = 100};
    assert_fails(frit_cuda_matmul_describe(&matmul), FRIT_E_UNSUPPORTED, "100 columns");
    frit_cuda_gemm_small some = {.rows = 136, .k = 256, .segments = {{FRIT_DTYPE_Q4_K, 16}}};
    assert_fails(frit_cuda_gemm_small_kernel(&some, &hopper, &kernel), FRIT_E_UNSUPPORTED,
                 "136 rows; expected a multiple of 8");
    some = (frit_cuda_gemm_small){.rows = 64, .k = 256, .segments = {{FRIT_DTYPE_F32, 16}}};
    assert_fails(frit_cuda_gemm_small_kernel(&some, &hopper, &kernel), FRIT_E_UNSUPPORTED, "has weights of type f32");
}

// Groups of query heads that are one query tile or several, and a last tile with fewer queries.
static void attention_of_single_rows_compiles_without_spills(void **state)
{
    (void)state;
    static const struct {
        int n_heads, head_size, warps;
        int window;
        bool has_softcap, has_sinks;
    } cases[] = {{32, 64, 4, 0, 0, 0}, {32, 128, 0, 0, 0, 0},   {64, 64, 0, 128, 0, 1},  {96, 128, 0, 0, 0, 0},
                 {16, 96, 0, 0, 1, 0}, {16, 256, 0, 512, 1, 0}, {64, 256, 0, 1024, 0, 1}};
    machine m;
    frit_cuda_kernel kernel;
    open_machine(&m, &hopper);
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_cuda_attend attend = {.heads = heads,
                                   .window = cases[i].window,
                                   .has_softcap = cases[i].has_softcap,
                                   .has_sinks = cases[i].has_sinks};
        attend.heads.n_heads = cases[i].n_heads;
        attend.heads.head_size = cases[i].head_size;
        assert_ok(frit_cuda_attend_kernel(&attend, 33, cases[i].warps, &kernel));
        check_kernel(&m, &kernel, "attention");
        attend.stages = frit_cuda_attend_stages(&attend.heads, &hopper);
        assert_int_equal(attend.stages, cases[i].head_size > 128 ? 0 : 2);
        if (!attend.stages) continue;
        assert_ok(frit_cuda_attend_kernel(&attend, 16, 0, &kernel));
        assert_true(kernel.shared_bytes < (unsigned)hopper.shared_bytes);
        check_kernel(&m, &kernel, "attention with pages copied ahead");
    }
    close_machine(&m);
}

// Pages that several sequences share, and the other pages of their rows.
static void attention_to_shared_pages_compiles_without_spills(void **state)
{
    (void)state;
    static const frit_cuda_gpu *const gpus[] = {&hopper, &ampere};
    static const struct {
        int keys, n_heads, head_size;
        bool has_softcap, has_sinks;
    } cases[] = {{FRIT_GPU_CACHE_F16, 32, 128, false, false},
                 {FRIT_GPU_CACHE_F16, 96, 64, true, true},
                 {FRIT_GPU_CACHE_Q8_0, 32, 128, false, false}};
    for (size_t g = 0; g < FRIT_COUNT(gpus); g++) {
        machine m;
        frit_cuda_kernel kernel;
        open_machine(&m, gpus[g]);
        for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
            frit_cuda_attend attend = {.heads = heads,
                                       .has_softcap = cases[i].has_softcap,
                                       .has_sinks = cases[i].has_sinks,
                                       .shared_parts = FRIT_CUDA_SHARED_PARTS,
                                       .own_parts = 1};
            attend.heads.n_heads = cases[i].n_heads;
            attend.heads.head_size = cases[i].head_size;
            attend.heads.keys = attend.heads.values = cases[i].keys;
            assert_ok(frit_cuda_attend_rows_kernel(&attend, gpus[g], &kernel));
            check_kernel(&m, &kernel, "attention to shared pages");
            if (frit_cuda_has_codes(&attend.heads)) attend.stages = frit_cuda_attend_stages(&attend.heads, gpus[g]);
            assert_ok(frit_cuda_attend_kernel(&attend, 1, attend.stages ? 0 : 4, &kernel));
            check_kernel(&m, &kernel, "attention beside shared pages");
        }
        close_machine(&m);
    }
}

// Caches that are not f16: keys and values of the same type, or of different types.
static void attention_to_caches_of_all_types_compiles_without_spills(void **state)
{
    (void)state;
    static const struct {
        int keys, values, n_heads, head_size;
    } cases[] = {
        {FRIT_GPU_CACHE_Q8_0, FRIT_GPU_CACHE_Q8_0, 32, 128}, {FRIT_GPU_CACHE_Q4_0, FRIT_GPU_CACHE_Q4_0, 32, 128},
        {FRIT_GPU_CACHE_F8, FRIT_GPU_CACHE_F8, 32, 128},     {FRIT_GPU_CACHE_BF16, FRIT_GPU_CACHE_BF16, 32, 128},
        {FRIT_GPU_CACHE_Q8_0, FRIT_GPU_CACHE_Q4_0, 64, 64},  {FRIT_GPU_CACHE_F16, FRIT_GPU_CACHE_Q8_0, 32, 96},
        {FRIT_GPU_CACHE_Q8_0, FRIT_GPU_CACHE_F16, 32, 96},   {FRIT_GPU_CACHE_Q8_0, FRIT_GPU_CACHE_Q8_0, 16, 256},
    };
    machine m;
    frit_cuda_kernel kernel;
    open_machine(&m, &hopper);
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_cuda_attend attend = {.heads = heads};
        attend.heads.n_heads = cases[i].n_heads;
        attend.heads.head_size = cases[i].head_size;
        attend.heads.keys = cases[i].keys;
        attend.heads.values = cases[i].values;
        assert_ok(frit_cuda_attend_kernel(&attend, 33, 4, &kernel));
        check_kernel(&m, &kernel, "attention to coded pages");
        attend.stages = frit_cuda_attend_stages(&attend.heads, &hopper);
        assert_true(attend.stages >= 2);
        assert_ok(frit_cuda_attend_kernel(&attend, 16, 0, &kernel));
        check_kernel(&m, &kernel, "attention to coded pages copied ahead");
        assert_ok(frit_cuda_attend_rows_kernel(&attend, &hopper, &kernel));   // f16 of 256 dimensions spills as well
        if (cases[i].head_size <= 128) check_kernel(&m, &kernel, "attention of prompts to coded pages");
        const frit_cuda_heads_rows after = {.heads = attend.heads, .rotated = 64, .has_norm = i % 2};
        assert_ok(frit_cuda_heads_kernel(&after, &kernel));
        check_kernel(&m, &kernel, "heads of rows, to coded pages");
    }
    close_machine(&m);
}

static void the_other_kernels_compile_without_spills(void **state)
{
    (void)state;
    machine m;
    open_machine(&m, &hopper);
    for (int head_size = 64; head_size <= 128; head_size *= 2) {
        frit_cuda_kernel dequantize = {.file = "dequantize.cu"};
        frit_cuda_define(&dequantize, "TYPE0", head_size == 64 ? 12 : 14);   // q4_k, q6_k
        frit_cuda_define(&dequantize, "K", 4096);
        frit_cuda_define(&dequantize, "IS_F16", head_size == 64);
        check_kernel(&m, &dequantize, "tiles to bf16");
    }
    check_kernel(&m, &(frit_cuda_kernel){.file = "plain.cu"}, "ops without a fast kernel");
    check_kernel(&m, &(frit_cuda_kernel){.file = "plain_cache.cu"}, "the cache in any type");
    check_kernel(&m, &(frit_cuda_kernel){.file = "recurrent.cu"}, "ops with a state");
    check_kernel(&m, &(frit_cuda_kernel){.file = "adapt.cu"}, "adapters");
    check_kernel(&m, &(frit_cuda_kernel){.file = "gemm.cu"}, "before and after a gemm");
    close_machine(&m);
}

static void picks_compile_without_spills(void **state)
{
    (void)state;
    const frit_cuda_gpu *const gpus[] = {&hopper, &ampere};
    for (size_t g = 0; g < FRIT_COUNT(gpus); g++) {
        machine m;
        open_machine(&m, gpus[g]);
        check_kernel(&m, &(frit_cuda_kernel){.file = "pick.cu"}, "picks");
        close_machine(&m);
    }
}

static void a_program_that_does_not_compile_is_an_error_with_the_compilers_words(void **state)
{
    (void)state;
    machine m;
    open_machine(&m, &hopper);
    const char *defines[] = {"DIM=this is no number", "ROTATED=128", "TYPE0=12"};
    frit_cuda_program programs[] = {{.file = "gemm.cu"}, {.file = "embed_rows.cu", .defines = defines, .n_defines = 3}};
    assert_fails(frit_cuda_compile(&m.compiler, m.pool, programs, 2), FRIT_E_UNSUPPORTED,
                 "kernels/embed_rows.cu for sm_90");
    assert_non_null(strstr(frit_error(), "error"));
    assert_null(programs[0].cubin);
    programs[1].file = "nothing.cu";
    assert_fails(frit_cuda_compile(&m.compiler, m.pool, programs, 2), FRIT_E_INVALID,
                 "kernels/nothing.cu does not exist");
    close_machine(&m);
}

static void compiled_programs_are_kept_and_found_again(void **state)
{
    (void)state;
    machine m;
    open_machine(&m, &hopper);
    const char *defines[] = {"DIM=64", "ROTATED=32", "TYPE0=12"};
    const char *others[] = {"DIM=128", "ROTATED=32", "TYPE0=12"};
    frit_cuda_program programs[] = {{.file = "embed_rows.cu", .defines = defines, .n_defines = 3}, {.file = "gemm.cu"}};
    m.compiler.wants_report = false;
    m.compiler.folder = temp_path("kept");
    assert_ok(frit_cuda_compile(&m.compiler, m.pool, programs, 2));
    assert_false(programs[0].was_cached || programs[1].was_cached);
    frit_cuda_program again = programs[0];
    assert_ok(frit_cuda_compile(&m.compiler, m.pool, &again, 1));
    assert_true(again.was_cached);
    assert_int_equal(again.n_bytes, programs[0].n_bytes);
    assert_memory_equal(again.cubin, programs[0].cubin, again.n_bytes);
    frit_cuda_programs_free(&again, 1);

    // Another definition or GPU makes another program, and another driver recompiles it; without NVRTC the cached cubin
    // is used.
    again.defines = others;
    assert_ok(frit_cuda_compile(&m.compiler, m.pool, &again, 1));
    assert_false(again.was_cached);
    frit_cuda_programs_free(&again, 1);
    again.defines = defines;
    m.compiler.driver_version = 13000;
    assert_ok(frit_cuda_compile(&m.compiler, m.pool, &again, 1));
    assert_false(again.was_cached);
    frit_cuda_programs_free(&again, 1);
    m.compiler.arch = 80;
    assert_ok(frit_cuda_compile(&m.compiler, m.pool, &again, 1));
    assert_false(again.was_cached);
    frit_cuda_programs_free(&again, 1);
    m.compiler.nvrtc = NULL;
    m.compiler.driver_version = 14000;
    assert_ok(frit_cuda_compile(&m.compiler, m.pool, &again, 1));
    assert_true(again.was_cached);
    frit_cuda_programs_free(&again, 1);

    frit_cuda_programs_free(programs, 2);
    close_machine(&m);
}

// Programs are collected as an archive, from which they are read without NVRTC.
static void archived_programs_need_no_compiler(void **state)
{
    (void)state;
    machine m;
    open_machine(&m, &hopper);
    const char *defines[] = {"DIM=64", "ROTATED=32", "TYPE0=12"};
    frit_cuda_program programs[] = {{.file = "embed_rows.cu", .defines = defines, .n_defines = 3}, {.file = "gemm.cu"}};
    frit_cubin_list list = {0};
    frit_cubin_archive *archive;
    uint64_t n_bytes;
    const char *path = temp_path("sm_90.kernels");
    const frit_cubin_archive_info info = {.sources = frit_cuda_sources_key(), .arch = 90, .multiprocessors = {132}};
    m.compiler.wants_report = false;
    m.compiler.collected = &list;
    assert_ok(frit_cuda_compile(&m.compiler, m.pool, programs, 2));
    assert_int_equal(list.n, 2);
    assert_int_equal(list.nvrtc_major, m.nvrtc.major);
    assert_ok(frit_cubin_archive_write(path, &info, &list, &n_bytes));
    frit_cubin_list_free(&list);
    assert_ok(frit_cubin_archive_open(&archive, path));
    m.compiler.collected = NULL;
    m.compiler.nvrtc = NULL;
    m.compiler.archive = archive;
    frit_cuda_program again = programs[0];
    assert_ok(frit_cuda_compile(&m.compiler, m.pool, &again, 1));
    assert_true(again.was_cached);
    assert_int_equal(again.n_bytes, programs[0].n_bytes);
    assert_memory_equal(again.cubin, programs[0].cubin, again.n_bytes);
    frit_cuda_programs_free(&again, 1);
    again.file = "bounds.cu";
    assert_fails(frit_cuda_compile(&m.compiler, m.pool, &again, 1), FRIT_E_NOT_FOUND, "sm_90.kernels");
    frit_cubin_archive_close(archive);
    frit_cuda_programs_free(programs, 2);
    close_machine(&m);
}

static void shapes_that_kernels_do_not_take_are_refused(void **state)
{
    (void)state;
    frit_cuda_kernel kernel;
    frit_cuda_product product = products[1];
    product.rows = 17;
    assert_fails(frit_cuda_product_kernel(&product, &hopper, &kernel), FRIT_E_UNSUPPORTED, "17 rows; expected 1 to 16");
    product = products[1];
    product.k = 4100;
    assert_fails(frit_cuda_product_kernel(&product, &hopper, &kernel), FRIT_E_UNSUPPORTED, "4100 columns");
    product = products[1];
    product.segments[0].dtype = FRIT_DTYPE_I32;
    assert_fails(frit_cuda_product_kernel(&product, &hopper, &kernel), FRIT_E_UNSUPPORTED, "i32");
    product = products[3];
    product.rows = 16;
    product.parts = 1;
    assert_fails(frit_cuda_product_kernel(&product, &hopper, &kernel), FRIT_E_UNSUPPORTED, "bytes of shared memory");
    product.parts = 0;   // with the columns in parts the product fits
    assert_ok(frit_cuda_product_kernel(&product, &hopper, &kernel));
    assert_int_equal(kernel.grid[2], 4);
    assert_int_equal(kernel.grid[0], 132 / 4);
    assert_true(frit_cuda_product_partial_bytes(&product, &hopper) == 4 * 16 * 4096 * sizeof(float));
    product.is_normed = true;   // a norm needs all columns
    assert_true(frit_cuda_product_partial_bytes(&product, &hopper) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_every_type_and_epilogue_compile_without_spills),
        cmocka_unit_test(kernels_of_every_weight_type_compile_without_spills),
        cmocka_unit_test(kernels_without_tensor_products_compile_for_older_gpus),
        cmocka_unit_test(products_of_experts_compile_without_spills),
        cmocka_unit_test(kernels_between_products_compile_without_spills),
        cmocka_unit_test(shapes_that_kernels_of_rows_do_not_take_are_refused),
        cmocka_unit_test(attention_of_single_rows_compiles_without_spills),
        cmocka_unit_test(attention_to_shared_pages_compiles_without_spills),
        cmocka_unit_test(attention_to_caches_of_all_types_compiles_without_spills),
        cmocka_unit_test(the_other_kernels_compile_without_spills),
        cmocka_unit_test(picks_compile_without_spills),
        cmocka_unit_test(a_program_that_does_not_compile_is_an_error_with_the_compilers_words),
        cmocka_unit_test(compiled_programs_are_kept_and_found_again),
        cmocka_unit_test(archived_programs_need_no_compiler),
        cmocka_unit_test(shapes_that_kernels_do_not_take_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
