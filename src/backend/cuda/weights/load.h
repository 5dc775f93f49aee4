// SPDX-License-Identifier: MIT
// backend/cuda/weights/load.h: weights to the GPU. Blocks travel as they are, in pieces through pinned memory, and
// become tiles there (kernels/repack.cu); host memory stays as large as two pieces. A piece is copied while tiles of
// the one before are made.
//
//     FRIT_TRY(frit_cuda_loader_open(&loader, &gpu, &compiler, pool));
//     FRIT_TRY(frit_cuda_load_tiles(&loader, FRIT_DTYPE_Q4_K, &source, address));   // returns before it is done
//     FRIT_TRY(frit_cuda_load_bytes(&loader, norm, 4096 * 4, other));
//     FRIT_TRY(frit_cuda_loader_wait(&loader));
#pragma once
#include "backend/cuda/runtime/kernel.h"
#include "backend/cuda/weights/repack.h"

enum { FRIT_CUDA_PIECES = 2, FRIT_CUDA_PIECE_BYTES = 32 << 20 };

typedef struct frit_cuda_piece {
    uint8_t *host;             // pinned
    uint64_t device;           // the same bytes there
    frit_cuda_event is_read;   // by the GPU, so that it may be filled again
    frit_cuda_stream stream;   // of its copy, and of what is made of it
    bool is_used;
} frit_cuda_piece;

typedef struct frit_cuda_loader {
    const frit_cuda_gpu *gpu;
    const frit_cuda_compiler *compiler;
    frit_pool *pool;
    frit_cuda_piece pieces[FRIT_CUDA_PIECES];
    int next;
    frit_cuda_kernel *kernels[FRIT_DTYPE_COUNT];   // made when a type is first needed
    uint64_t grids[FRIT_DTYPE_COUNT];              // what its codes index; 0: nothing
} frit_cuda_loader;

// Takes FRIT_CUDA_PIECES pieces of memory on both sides.
frit_status frit_cuda_loader_open(frit_cuda_loader *loader, const frit_cuda_gpu *gpu,
                                  const frit_cuda_compiler *compiler, frit_pool *pool);
void frit_cuda_loader_close(frit_cuda_loader *loader);
// Compiles the kernels of these types, in parallel; otherwise each is compiled when it is first needed.
frit_status frit_cuda_loader_prepare(frit_cuda_loader *loader, const frit_dtype *types, size_t n);

// Tiles of the whole matrix at `to`, frit_tile_count * frit_tile_bytes of them. Its blocks may go when this returns;
// the tiles are there after frit_cuda_loader_wait.
// FRIT_E_UNSUPPORTED: no tiles for the type, or rows that do not fit into a piece.
frit_status frit_cuda_load_tiles(frit_cuda_loader *loader, frit_dtype dtype, const frit_tile_source *source,
                                 uint64_t to);
frit_status frit_cuda_load_bytes(frit_cuda_loader *loader, const void *from, uint64_t n_bytes, uint64_t to);
frit_status frit_cuda_loader_wait(frit_cuda_loader *loader);
