// SPDX-License-Identifier: MIT
// Finding and opening NVRTC.
#include "backend/cuda/nvrtc.h"
#include "base/buf.h"

// Newest first: a newer compiler knows more GPUs, and drivers load what it makes for theirs.
static const char *const library_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "nvrtc64_130_0.dll",
                                            "nvrtc64_120_0.dll"};

static frit_library *open_in(const char *folder, const char *name)
{
    frit_buf path = {0};
    if (folder) frit_buf_printf(&path, "%s/", folder);
    frit_buf_text(&path, name);
    frit_library *library = path.failed ? NULL : frit_library_open(path.data);
    frit_buf_free(&path);
    return library;
}

static frit_status find_functions(frit_nvrtc *nvrtc)
{
#define NVRTC(member, symbol, parameters)                                                                              \
    {                                                                                                                  \
        void *const found = frit_library_find(nvrtc->library, #symbol);                                                \
        if (!found) return frit_fail(FRIT_E_UNSUPPORTED, "NVRTC has no function %s; expected 12.0 or newer", #symbol); \
        memcpy(&nvrtc->member, &found, sizeof found);                                                                  \
    }
#include "backend/cuda/nvrtc.def"
#undef NVRTC
    if (nvrtc->version(&nvrtc->major, &nvrtc->minor) != 0)
        return frit_fail(FRIT_E_UNSUPPORTED, "NVRTC does not tell its version");
    return FRIT_OK;
}

// NVRTC loads a second library by its bare name when it first compiles. Outside the loader's folders it is only found
// if it is loaded already.
static void open_builtins(frit_nvrtc *nvrtc, const char *folder)
{
    frit_buf name = {0};
    frit_buf_printf(&name, "libnvrtc-builtins.so.%d.%d", nvrtc->major, nvrtc->minor);
    if (!name.failed) nvrtc->builtins = open_in(folder, name.data);
    frit_buf_free(&name);
}

frit_status frit_nvrtc_open(frit_nvrtc *nvrtc, const char *folder)
{
    *nvrtc = (frit_nvrtc){0};
    for (size_t i = 0; i < FRIT_COUNT(library_names) && !nvrtc->library; i++)
        nvrtc->library = open_in(folder, library_names[i]);
    if (!nvrtc->library)
        return frit_fail(FRIT_E_NOT_FOUND,
                         "%s%sNVRTC (libnvrtc.so.13 or .12) cannot be loaded; it is part of the CUDA "
                         "toolkit and of the Python package nvidia-cuda-nvrtc",
                         folder ? folder : "", folder ? ": " : "");
    const frit_status status = find_functions(nvrtc);
    if (status != FRIT_OK) {
        frit_nvrtc_close(nvrtc);
        return status;
    }
    open_builtins(nvrtc, folder);
    return FRIT_OK;
}

// The libraries stay loaded: NVRTC has memory that nothing but the end of the process gives back.
void frit_nvrtc_close(frit_nvrtc *nvrtc)
{
    *nvrtc = (frit_nvrtc){0};
}
