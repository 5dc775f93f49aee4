// SPDX-License-Identifier: MIT
// Defines and launch shape of kernels/experts_rows.cu.
#include "backend/cuda/ops/experts_rows.h"
#include "backend/cuda/weights/repack.h"
#include "backend/cuda/ops/gemm_small.h"

enum { MOST_WARPS = 8 };

static frit_status check(const frit_cuda_experts_product *p)
{
    const frit_tile_format *format = frit_tile_format_of(p->dtype);
    if (p->rows < 8 || p->rows % 8)
        return frit_fail(FRIT_E_UNSUPPORTED, "a group of an expert has %d rows; expected a multiple of 8", p->rows);
    if (p->k < 32 || p->k % 32)
        return frit_fail(FRIT_E_UNSUPPORTED, "a product of experts has %d columns; expected a multiple of 32", p->k);
    if (!format || format->low_bits > 16)
        return frit_fail(FRIT_E_UNSUPPORTED, "a product of f16 has experts of type %s, for which there is no kernel",
                         frit_dtype_get(p->dtype)->name);
    return FRIT_OK;
}

frit_status frit_cuda_expert_rows_kernel(const frit_cuda_experts_product *p, const frit_cuda_gpu *gpu,
                                         frit_cuda_kernel *kernel)
{
    FRIT_TRY(check(p));
    const int tile_bytes = frit_tile_format_of(p->dtype)->tile_bytes;
    int warps = MOST_WARPS;
    while (warps > 1 && frit_cuda_gemm_small_shared(p->rows, warps, tile_bytes, 2) > gpu->shared_bytes) warps /= 2;
    const int n_shared = frit_cuda_gemm_small_shared(p->rows, warps, tile_bytes, 2);
    if (n_shared > gpu->shared_bytes)
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "a product of %d rows of experts needs %d bytes of shared memory; %s has %d", p->rows,
                         n_shared, gpu->name, gpu->shared_bytes);
    *kernel = (frit_cuda_kernel){.file = "experts_rows.cu",
                                 .name = "experts_rows",
                                 .grid = {(unsigned)((p->n_tiles + warps - 1) / warps), 1, 1},
                                 .threads = (unsigned)warps * 32,
                                 .shared_bytes = (unsigned)n_shared};
    const struct {
        const char *name;
        int64_t value;
    } defines[] = {
        {"TYPE0", frit_dtype_get(p->dtype)->gguf_id},
        {"TILES0", p->n_tiles},
        {"K", p->k},
        {"ROWS", p->rows},
        {"TILES", 1},
        {"WARPS", warps},
        {"N_USED", p->n_used},
        {"OWN_ROWS", p->has_own_rows},
        {"WEIGHED", p->is_weighed},
        {"GATED", p->is_gated},
        {"GLU_ACT", (int)p->act},
        {"SHARED_BYTES", n_shared},
    };
    for (size_t i = 0; i < FRIT_COUNT(defines); i++) frit_cuda_define(kernel, defines[i].name, defines[i].value);
    return FRIT_OK;
}
