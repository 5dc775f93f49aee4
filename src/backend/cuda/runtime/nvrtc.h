// SPDX-License-Identifier: MIT
// backend/cuda/runtime/nvrtc.h: NVRTC, CUDA's compiler as a library, opened at run time.
//
//     frit_nvrtc nvrtc;
//     FRIT_TRY(frit_nvrtc_open(&nvrtc, NULL, 90));    // NULL: where the system's loader looks; or a folder
#pragma once
#include "base/library.h"
#include "base/status.h"

typedef struct frit_nvrtc_program_ *frit_nvrtc_program;

typedef struct frit_nvrtc {
    frit_library *library, *builtins;
    int major, minor;
#define NVRTC(member, symbol, parameters) int(*member) parameters;
#include "backend/cuda/runtime/nvrtc.def"
#undef NVRTC
} frit_nvrtc;

// Opens a version that compiles for GPUs of kind `arch` (90: sm_90). FRIT_E_NOT_FOUND: not installed.
// FRIT_E_UNSUPPORTED: the library lacks a function, or does not compile for the GPU.
frit_status frit_nvrtc_open(frit_nvrtc *nvrtc, const char *folder, int arch);
void frit_nvrtc_close(frit_nvrtc *nvrtc);
