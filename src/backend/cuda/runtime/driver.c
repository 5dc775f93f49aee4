// SPDX-License-Identifier: MIT
// Opening CUDA's driver and a GPU.
#include "backend/cuda/runtime/driver.h"

#include <string.h>

static const char *const library_names[] = {"libcuda.so.1", "nvcuda.dll", "libcuda.so"};

static frit_status find_functions(frit_cuda_driver *driver)
{
#define CUDA(member, symbol, parameters)                                                       \
    {                                                                                          \
        void *const found = frit_library_find(driver->library, #symbol);                       \
        if (!found)                                                                            \
            return frit_fail(FRIT_E_UNSUPPORTED,                                               \
                             "the CUDA driver has no function %s; expected a driver for CUDA " \
                             "12.0 or newer",                                                  \
                             #symbol);                                                         \
        memcpy(&driver->member, &found, sizeof found);                                         \
    }
#include "backend/cuda/runtime/driver.def"
#undef CUDA
    return FRIT_OK;
}

static frit_status start(frit_cuda_driver *driver)
{
    int n = 0;
    FRIT_TRY(find_functions(driver));
    FRIT_TRY(frit_cuda_check(driver, driver->init(0), "starting the CUDA driver"));
    FRIT_TRY(frit_cuda_check(driver, driver->driver_version(&driver->version), "asking the CUDA driver's version"));
    FRIT_TRY(frit_cuda_check(driver, driver->device_count(&n), "counting GPUs"));
    return n > 0 ? FRIT_OK : frit_fail(FRIT_E_NOT_FOUND, "the CUDA driver sees no GPU");
}

frit_status frit_cuda_driver_open_as(frit_cuda_driver *driver, const char *library)
{
    *driver = (frit_cuda_driver){0};
    for (size_t i = 0; i < FRIT_COUNT(library_names) && !driver->library && !library; i++)
        driver->library = frit_library_open(library_names[i]);
    if (library) driver->library = frit_library_open(library);
    if (!driver->library)
        return frit_fail(FRIT_E_NOT_FOUND, "the CUDA driver (%s) cannot be loaded",
                         library ? library : "libcuda.so.1 or nvcuda.dll");
    const frit_status status = start(driver);
    if (status != FRIT_OK) frit_cuda_driver_close(driver);
    return status;
}

frit_status frit_cuda_driver_open(frit_cuda_driver *driver)
{
    return frit_cuda_driver_open_as(driver, NULL);
}

void frit_cuda_driver_close(frit_cuda_driver *driver)
{
    frit_library_close(driver->library);
    *driver = (frit_cuda_driver){0};
}

frit_status frit_cuda_check(const frit_cuda_driver *driver, int result, const char *what)
{
    enum { OUT_OF_MEMORY = 2, NO_DEVICE = 100 };
    if (result == 0) return FRIT_OK;
    const char *text = NULL;
    if (driver->error_text(result, &text) != 0 || !text) text = "unknown error";
    const frit_status status = result == OUT_OF_MEMORY ? FRIT_E_MEMORY
                               : result == NO_DEVICE   ? FRIT_E_NOT_FOUND
                                                       : FRIT_E_UNSUPPORTED;
    return frit_fail(status, "%s: CUDA error %d: %s", what, result, text);
}

static frit_status read_attributes(frit_cuda_gpu *gpu)
{
    const frit_cuda_driver *driver = gpu->driver;
    int major = 0, minor = 0;
    size_t n_bytes = 0;
    const struct {
        int id, *to;
    } attributes[] = {{FRIT_CUDA_MAJOR, &major},
                      {FRIT_CUDA_MINOR, &minor},
                      {FRIT_CUDA_MULTIPROCESSORS, &gpu->n_multiprocessors},
                      {FRIT_CUDA_SHARED_OPTIN, &gpu->shared_bytes},
                      {FRIT_CUDA_L2_BYTES, &gpu->l2_bytes}};
    for (size_t i = 0; i < FRIT_COUNT(attributes); i++)
        FRIT_TRY(frit_cuda_check(driver, driver->device_attribute(attributes[i].to, attributes[i].id, gpu->device),
                                 "reading a GPU's attributes"));
    FRIT_TRY(frit_cuda_check(driver, driver->device_name(gpu->name, (int)sizeof gpu->name, gpu->device),
                             "reading a GPU's name"));
    FRIT_TRY(frit_cuda_check(driver, driver->device_memory(&n_bytes, gpu->device), "reading a GPU's memory size"));
    gpu->arch = 10 * major + minor;
    gpu->memory_bytes = n_bytes;
    return FRIT_OK;
}

frit_status frit_cuda_gpu_open(frit_cuda_gpu *gpu, const frit_cuda_driver *driver, int ordinal)
{
    int n = 0;
    *gpu = (frit_cuda_gpu){.driver = driver};
    FRIT_TRY(frit_cuda_check(driver, driver->device_count(&n), "counting GPUs"));
    if (ordinal < 0 || ordinal >= n)
        return frit_fail(FRIT_E_INVALID, "GPU %d does not exist; there are %d, counted from 0", ordinal, n);
    FRIT_TRY(frit_cuda_check(driver, driver->device_get(&gpu->device, ordinal), "finding a GPU"));
    FRIT_TRY(read_attributes(gpu));
    FRIT_TRY(frit_cuda_check(driver, driver->context_retain(&gpu->context, gpu->device), "opening a GPU"));
    const frit_status status = frit_cuda_check(driver, driver->context_use(gpu->context), "using a GPU");
    if (status != FRIT_OK) frit_cuda_gpu_close(gpu);
    return status;
}

void frit_cuda_gpu_close(frit_cuda_gpu *gpu)
{
    if (gpu->context) gpu->driver->context_release(gpu->device);
    *gpu = (frit_cuda_gpu){0};
}
