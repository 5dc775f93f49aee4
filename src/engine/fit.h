// SPDX-License-Identifier: MIT
// engine/fit.h: chooses the context that memory allows.
#pragma once
#include "base/log.h"
#include "engine/kv_layout.h"

typedef struct frit_fit {
    const char *path;
    const frit_log *log;
    int32_t n_ctx;   // asked for; 0: the largest up to n_ctx_train that fits comfortably
    int32_t n_ctx_train;
    frit_kv_sizes sizes;
    frit_kv_room room;       // but for n_ctx
    uint64_t weight_bytes;   // of weights that are not in memory yet, or may leave it, as mapped ones may
    uint64_t scratch_bytes;
    uint64_t available;   // memory that can be used, in bytes
} frit_fit;

// Chooses the context. FRIT_E_MEMORY with numbers if what was asked for, or anything at all, does not fit.
frit_status frit_fit_context(const frit_fit *fit, int32_t *n_ctx);
