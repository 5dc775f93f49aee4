// SPDX-License-Identifier: MIT
// Finding and opening NVRTC.
#include "backend/cuda/runtime/nvrtc.h"
#include "base/buf.h"

enum { OLDEST_OF_13 = 75 };   // oldest kind of GPU that version 13 compiles for

// Newest first: a newer version compiles for newer GPUs. Version 13 dropped GPUs before sm_75, which need version 12.
// major: 0 if the name does not tell.
static const struct {
    const char *name;
    int major;
} libraries[] = {{"libnvrtc.so.13", 13},
                 {"libnvrtc.so.12", 12},
                 {"libnvrtc.so", 0},
                 {"nvrtc64_130_0.dll", 13},
                 {"nvrtc64_120_0.dll", 12}};

static bool knows(int major, int arch)
{
    return major < 13 || arch >= OLDEST_OF_13;
}

static frit_library *open_in(const char *folder, const char *name)
{
    frit_buf path = {0};
    if (folder) frit_buf_printf(&path, "%s/", folder);
    frit_buf_text(&path, name);
    frit_library *library = path.failed ? NULL : frit_library_open(path.data);
    frit_buf_free(&path);
    return library;
}

static frit_status find_functions(frit_nvrtc *nvrtc, int arch)
{
#define NVRTC(member, symbol, parameters)                                                                              \
    {                                                                                                                  \
        void *const found = frit_library_find(nvrtc->library, #symbol);                                                \
        if (!found) return frit_fail(FRIT_E_UNSUPPORTED, "NVRTC has no function %s; expected 12.0 or newer", #symbol); \
        memcpy(&nvrtc->member, &found, sizeof found);                                                                  \
    }
#include "backend/cuda/runtime/nvrtc.def"
#undef NVRTC
    if (nvrtc->version(&nvrtc->major, &nvrtc->minor) != 0)
        return frit_fail(FRIT_E_UNSUPPORTED, "NVRTC does not report its version");
    if (!knows(nvrtc->major, arch))
        return frit_fail(FRIT_E_UNSUPPORTED, "NVRTC %d.%d does not compile for sm_%d; expected version 12",
                         nvrtc->major, nvrtc->minor, arch);
    return FRIT_OK;
}

// NVRTC loads a second library by its bare name when it first compiles. It is found outside of the loader's folders
// only if it is loaded already.
static void open_builtins(frit_nvrtc *nvrtc, const char *folder)
{
    frit_buf name = {0};
    frit_buf_printf(&name, "libnvrtc-builtins.so.%d.%d", nvrtc->major, nvrtc->minor);
    if (!name.failed) nvrtc->builtins = open_in(folder, name.data);
    frit_buf_free(&name);
}

frit_status frit_nvrtc_open(frit_nvrtc *nvrtc, const char *folder, int arch)
{
    *nvrtc = (frit_nvrtc){0};
    for (size_t i = 0; i < FRIT_COUNT(libraries) && !nvrtc->library; i++)
        if (knows(libraries[i].major, arch)) nvrtc->library = open_in(folder, libraries[i].name);
    if (!nvrtc->library)
        return frit_fail(FRIT_E_NOT_FOUND,
                         "%s%sNVRTC (%s) cannot be loaded; it is part of the CUDA toolkit and of the "
                         "Python package %s",
                         folder ? folder : "", folder ? ": " : "",
                         knows(13, arch) ? "libnvrtc.so.13 or .12" : "libnvrtc.so.12",
                         knows(13, arch) ? "nvidia-cuda-nvrtc" : "nvidia-cuda-nvrtc-cu12");
    const frit_status status = find_functions(nvrtc, arch);
    if (status != FRIT_OK) {
        frit_nvrtc_close(nvrtc);
        return status;
    }
    open_builtins(nvrtc, folder);
    return FRIT_OK;
}

// The libraries stay loaded, because NVRTC never frees some of its memory.
void frit_nvrtc_close(frit_nvrtc *nvrtc)
{
    *nvrtc = (frit_nvrtc){0};
}
