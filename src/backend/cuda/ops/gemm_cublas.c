// SPDX-License-Identifier: MIT
// Converting tiles to f16 or bf16, and multiplying by cuBLASLt.
#include "backend/cuda/ops/gemm_cublas.h"
#include "backend/cuda/kernels/args.h"

static int n_tiles_of(const frit_cuda_matmul *m)
{
    return m->segments[0].n_tiles + m->segments[1].n_tiles;
}

frit_status frit_cuda_matmul_describe(frit_cuda_matmul *m)
{
    if (m->k < 32 || m->k % 32)
        return frit_fail(FRIT_E_UNSUPPORTED, "a product has %d columns; expected a multiple of 32", m->k);
    m->n_kernels = 0;
    for (int i = 0; i < FRIT_GPU_SEGMENTS && m->segments[i].n_tiles > 0; i++) {
        const frit_cuda_segment *segment = &m->segments[i];
        if (!frit_tile_format_of(segment->dtype))
            return frit_fail(FRIT_E_UNSUPPORTED, "type %s has no tiles for GPUs", frit_dtype_get(segment->dtype)->name);
        const unsigned n_blocks = (unsigned)(m->k + FRIT_TILE_COLUMNS - 1) / FRIT_TILE_COLUMNS;
        frit_cuda_kernel *kernel = &m->dequantize[m->n_kernels++];
        *kernel = (frit_cuda_kernel){.file = "dequantize.cu",
                                     .name = "dequantize",
                                     .grid = {(unsigned)segment->n_tiles * n_blocks, 1, 1},
                                     .threads = 256};
        frit_cuda_define(kernel, "TYPE0", frit_dtype_get(segment->dtype)->gguf_id);
        frit_cuda_define(kernel, "K", m->k);
        frit_cuda_define(kernel, "IS_F16", m->in == FRIT_CUDA_F16);
    }
    return FRIT_OK;
}

uint64_t frit_cuda_matmul_scratch(const frit_cuda_matmul *m)
{
    return (uint64_t)n_tiles_of(m) * FRIT_TILE_ROWS * (uint64_t)m->k * 2;
}

frit_status frit_cuda_matmul_prepare(const frit_cuda_matmul *m, const frit_cublaslt *blas, int n_rows, int choice,
                                     frit_cublaslt_product *product)
{
    return frit_cublaslt_prepare(blas,
                                 &(frit_cublaslt_shape){.n_tokens = n_rows,
                                                        .n_rows = n_tiles_of(m) * FRIT_TILE_ROWS,
                                                        .k = m->k,
                                                        .is_f16 = m->in == FRIT_CUDA_F16,
                                                        .is_out_f32 = m->out == FRIT_CUDA_F32,
                                                        .adds = m->adds,
                                                        .choice = choice},
                                 product);
}

frit_status frit_cuda_matmul_run(const frit_cuda_matmul *m, const frit_cuda_gpu *gpu,
                                 const frit_cublaslt_product *product, const frit_cuda_matmul_args *args,
                                 frit_cuda_stream stream)
{
    uint64_t out = args->scratch;
    for (int i = 0; i < m->n_kernels; i++) {
        const frit_dequantize_args own = {.tiles = args->weights[i], .out = out};
        const frit_cuda_kernel *kernel = m->shared[i] ? m->shared[i] : &m->dequantize[i];
        FRIT_TRY(frit_cuda_kernel_launch(gpu, kernel, stream, &own, FRIT_CUDA_IN_ORDER));
        out += (uint64_t)m->segments[i].n_tiles * FRIT_TILE_ROWS * (uint64_t)m->k * 2;
    }
    return frit_cublaslt_run(product, args->x, args->scratch, args->y, args->workspace, stream);
}
