// SPDX-License-Identifier: MIT
// Segments of gemms that read weights as tiles; the cheapest candidates.
#include "backend/cuda/ops/gemm_tiles.h"
#include "backend/cuda/weights/repack.h"

#include <string.h>

frit_status frit_cuda_gemm_check(int k, const frit_cuda_segment segments[FRIT_GPU_SEGMENTS])
{
    if (k < 32 || k % 32)
        return frit_fail(FRIT_E_UNSUPPORTED, "a product has %d columns; expected a multiple of 32", k);
    for (int i = 0; i < FRIT_GPU_SEGMENTS && segments[i].n_tiles; i++) {
        const frit_tile_format *format = frit_tile_format_of(segments[i].dtype);
        if (!format || format->low_bits > 16)
            return frit_fail(FRIT_E_UNSUPPORTED,
                             "a product of f16 has weights of type %s, for which there is no kernel",
                             frit_dtype_get(segments[i].dtype)->name);
    }
    return FRIT_OK;
}

int frit_cuda_gemm_tile_bytes(const frit_cuda_segment segments[FRIT_GPU_SEGMENTS])
{
    int most = 0;
    for (int i = 0; i < FRIT_GPU_SEGMENTS && segments[i].n_tiles; i++) {
        const int n = frit_tile_format_of(segments[i].dtype)->tile_bytes;
        if (n > most) most = n;
    }
    return most;
}

int frit_cuda_gemm_groups(const frit_cuda_segment segments[FRIT_GPU_SEGMENTS], int group)
{
    int n = 0;
    for (int i = 0; i < FRIT_GPU_SEGMENTS; i++) n += (segments[i].n_tiles + group - 1) / group;
    return n;
}

void frit_cuda_gemm_define(frit_cuda_kernel *kernel, int k, const frit_cuda_segment segments[FRIT_GPU_SEGMENTS])
{
    const frit_cuda_segment *second = &segments[segments[1].n_tiles ? 1 : 0];
    frit_cuda_define(kernel, "TYPE0", frit_dtype_get(segments[0].dtype)->gguf_id);
    frit_cuda_define(kernel, "TILES0", segments[0].n_tiles);
    frit_cuda_define(kernel, "TYPE1", frit_dtype_get(second->dtype)->gguf_id);
    frit_cuda_define(kernel, "TILES1", segments[1].n_tiles);
    frit_cuda_define(kernel, "K", k);
}

void frit_cuda_cheapest_add(frit_cuda_cheapest *list, const void *item, double cost)
{
    char *items = list->items;
    const size_t size = list->item_bytes;
    const bool is_full = list->n == list->most;
    int at = is_full ? list->most - 1 : list->n;
    if (is_full && cost >= list->costs[at]) return;
    list->n += !is_full;
    for (; at > 0 && list->costs[at - 1] > cost; at--) {
        memcpy(items + (size_t)at * size, items + (size_t)(at - 1) * size, size);
        list->costs[at] = list->costs[at - 1];
    }
    memcpy(items + (size_t)at * size, item, size);
    list->costs[at] = cost;
}
