// SPDX-License-Identifier: MIT
// engine/placement/fit.h: chooses the context and the types of the cache that memory allows, before anything is loaded.
#pragma once
#include "base/log.h"
#include "engine/kv/kv_layout.h"

enum { FRIT_FIT_TYPES = 2 };

typedef struct frit_fit_part {   // what is needed of one memory: a device's own, or the host's
    const char *device;
    int32_t n_layers;        // that run there, embedding and output counted
    uint64_t weight_bytes;   // to be loaded
    uint64_t mapped_bytes;   // weights that are read where the file is mapped: they may leave memory and come back
    uint64_t scratch_bytes;
    frit_kv_sizes sizes[FRIT_FIT_TYPES];      // of the cache, by its types
    uint64_t evicted_bytes[FRIT_FIT_TYPES];   // of pages that devices had no room for (kv_host.c), by the same
    uint64_t available;                       // memory that can be used
} frit_fit_part;

typedef struct frit_fit {
    const char *path;
    const frit_log *log;
    bool off;        // what was asked for is taken as it is: nothing is refused or made smaller
    int32_t n_ctx;   // asked for; 0: the largest up to n_ctx_train that fits comfortably
    int32_t n_ctx_train;
    frit_kv_types types[FRIT_FIT_TYPES];   // of the cache: the first ones that leave a context long enough
    int n_types;
    frit_kv_room room;   // but for n_ctx
    frit_fit_part parts[FRIT_MAX_DEVICES];
    int n_parts;
    bool places_auto;   // as many layers run on the devices as fit, not as many as were asked for
} frit_fit;

typedef struct frit_fit_choice {
    int32_t n_ctx;
    int types;   // of fit->types
} frit_fit_choice;

// FRIT_E_MEMORY with numbers if what was asked for, or anything at all, does not fit: *choice is then what does not.
frit_status frit_fit_choose(const frit_fit *fit, frit_fit_choice *choice);
// Logs the choice in one line: a warning where it differs from the default.
void frit_fit_tell(const frit_fit *fit, frit_fit_choice choice);
// Of the cache in one part; UINT64_MAX: no number.
uint64_t frit_fit_cache_bytes(const frit_fit *fit, const frit_fit_part *part, frit_fit_choice choice);
