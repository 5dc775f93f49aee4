// SPDX-License-Identifier: MIT
// backend/gpu.h: the GPU of tests: the emulated one of tests/emulator or, with FRIT_TEST_GPU=FOLDER, the machine's.
// Compiled kernels are cached in the folder.
#pragma once
#include "backend/cuda/runtime/libraries.h"
#include "support/support.h"

static const char folder[] = FRIT_BUILD_DIR "/tests/emulator", cubins[] = FRIT_BUILD_DIR "/tests/emulator/kernels",
                  driver_path[] = FRIT_BUILD_DIR "/tests/emulator/libcuda.so.1";

static inline bool is_real(void)
{
    return getenv("FRIT_TEST_GPU");
}

static inline bool has_emulator(void)
{
    FILE *file = fopen(driver_path, "rb");
    if (file) fclose(file);
    return file;
}

static inline int use_emulator(void **state)
{
    (void)state;
    if (is_real()) frit_cuda_use_libraries(&(frit_cuda_libraries){.cubins = getenv("FRIT_TEST_GPU")});
    if (is_real() || !has_emulator()) return 0;
    frit_cuda_use_libraries(
        &(frit_cuda_libraries){.driver = driver_path, .nvrtc = folder, .blas = folder, .cubins = cubins});
    return 0;
}

static inline int use_no_emulator(void **state)
{
    (void)state;
    frit_cuda_use_libraries(NULL);
    return 0;
}

static inline void require_gpu(void)
{
    if (!is_real() && !has_emulator())
        skip_because("this build has no emulator for GPUs (tests/CMakeLists.txt says why)");
}
