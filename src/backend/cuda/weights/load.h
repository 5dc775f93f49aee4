// SPDX-License-Identifier: MIT
// backend/cuda/weights/load.h: copying weights to the GPU. Blocks of the file are copied in pieces through pinned
// memory and become tiles on the GPU (kernels/repack.cu). While a piece is copied, the one before is repacked.
//
//     FRIT_TRY(frit_cuda_loader_open(&loader, &gpu, &compiler, pool));
//     FRIT_TRY(frit_cuda_load_tiles(&loader, FRIT_DTYPE_Q4_K, &source, address));   // asynchronous
//     FRIT_TRY(frit_cuda_load_bytes(&loader, norm, 4096 * 4, other));
//     FRIT_TRY(frit_cuda_loader_wait(&loader));
#pragma once
#include "backend/cuda/runtime/kernel.h"
#include "backend/cuda/weights/repack.h"

enum { FRIT_CUDA_PIECES = 2, FRIT_CUDA_PIECE_BYTES = 32 << 20 };

typedef struct frit_cuda_piece {
    uint8_t *host;             // pinned
    uint64_t device;           // memory for the piece on the GPU
    frit_cuda_event is_read;   // recorded when the GPU has read the piece, which may then be filled again
    frit_cuda_stream stream;   // of the copy and the repacking
    bool is_used;
} frit_cuda_piece;

typedef struct frit_cuda_loader {
    const frit_cuda_gpu *gpu;
    const frit_cuda_compiler *compiler;
    frit_pool *pool;
    frit_cuda_piece pieces[FRIT_CUDA_PIECES];
    int next;
    frit_cuda_kernel *kernels[FRIT_DTYPE_COUNT];   // compiled when a type is first needed
    uint64_t grids[FRIT_DTYPE_COUNT];              // table that the type's codes index; 0: none
} frit_cuda_loader;

// Allocates FRIT_CUDA_PIECES pieces on the host and on the GPU.
frit_status frit_cuda_loader_open(frit_cuda_loader *loader, const frit_cuda_gpu *gpu,
                                  const frit_cuda_compiler *compiler, frit_pool *pool);
void frit_cuda_loader_close(frit_cuda_loader *loader);
// Compiles the kernels of these types in parallel. Types that were not prepared are compiled at their first use.
frit_status frit_cuda_loader_prepare(frit_cuda_loader *loader, const frit_dtype *types, size_t n);

// Writes the matrix as frit_tile_count * frit_tile_bytes bytes of tiles to `to`. The blocks may be freed when this
// returns; the tiles are complete after frit_cuda_loader_wait. FRIT_E_UNSUPPORTED: the type has no tiles, or rows do
// not fit into a piece.
frit_status frit_cuda_load_tiles(frit_cuda_loader *loader, frit_dtype dtype, const frit_tile_source *source,
                                 uint64_t to);
frit_status frit_cuda_load_bytes(frit_cuda_loader *loader, const void *from, uint64_t n_bytes, uint64_t to);
frit_status frit_cuda_loader_wait(frit_cuda_loader *loader);
