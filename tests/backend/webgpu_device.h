// SPDX-License-Identifier: MIT
// backend/webgpu_device.h: the GPU of tests through WebGPU: wgpu-native that `tools/setup webgpu` has put into
// build/tools/webgpu, on whatever adapter Vulkan offers, which may be Mesa's processor (lavapipe). FRIT_TEST_WEBGPU
// names the file of another library, such as Dawn's.
#pragma once
#include "backend/webgpu/device.h"
#include "support/support.h"

static const char webgpu_path[] = FRIT_SOURCE_DIR "/build/tools/webgpu/libwgpu_native.so";

static inline const char *webgpu_library(void)
{
    const char *named = getenv("FRIT_TEST_WEBGPU");
    FILE *file = fopen(named ? named : webgpu_path, "rb");
    if (!file) return NULL;
    fclose(file);
    return named ? named : webgpu_path;
}

// Skips the test if there is no library or no adapter.
static inline void require_webgpu(void)
{
    const char *path = webgpu_library();
    frit_device *device;
    if (!path) skip_because("there is no wgpu-native; tools/setup webgpu installs it");
    frit_webgpu_use_library(path);
    const frit_status status = frit_backend_webgpu.open(&device, &(frit_device_options){.n_threads = 1});
    if (status != FRIT_OK) skip_because(frit_error());
    frit_backend_webgpu.close(device);
}
