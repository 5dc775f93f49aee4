// SPDX-License-Identifier: MIT
// backend/webgpu/weights/weights.h: the model's tensors on the GPU, as tiles (tiles.h) or as they are. Each is loaded
// once, whatever number of plans read it.
#pragma once
#include "backend/webgpu/device.h"

typedef struct frit_webgpu_matrices {
    const frit_tensor *list[FRIT_WEBGPU_STACK];
    int n;
    bool is_gated;
    frit_webgpu_cut cut;
} frit_webgpu_matrices;

// Loads the tensor if no plan has.
frit_status frit_webgpu_tensor_get(frit_webgpu_device *device, const frit_tensor *tensor, bool is_tiled,
                                   const frit_webgpu_tensor **out);
// Loads tiles of matrices of one type and width.
frit_status frit_webgpu_matrices_get(frit_webgpu_device *device, const frit_webgpu_matrices *matrices,
                                     const frit_webgpu_tensor **out);
// True if kernels read tiles of the type.
bool frit_webgpu_has_tiles(frit_dtype dtype);
// True if the tiles of all matrices fit into one buffer.
bool frit_webgpu_fits_one(const frit_webgpu_device *device, const frit_webgpu_matrices *matrices);
// Returns the revolutions (kernels/rope.wgsl) of frequencies [n], divided by factors [n], which may be NULL.
frit_status frit_webgpu_revolutions_get(frit_webgpu_device *device, const frit_tensor *frequencies,
                                        const frit_tensor *factors, const frit_gpu_buffer **out);
// `weight_bytes` of frit_backend.
frit_status frit_webgpu_weight_bytes(frit_device *device, const frit_weight_uses *uses, frit_weight_bytes *out);
void frit_webgpu_tensors_free(frit_webgpu_device *device);
