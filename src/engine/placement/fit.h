// SPDX-License-Identifier: MIT
// engine/placement/fit.h: chooses the context and the types of the cache that memory allows, before anything is loaded.
#pragma once
#include "base/log.h"
#include "engine/kv/kv_layout.h"

enum { FRIT_FIT_TYPES = 2 };

typedef struct frit_fit_memory {   // the needs of one memory: a device's own, or the host's
    const char *device;
    int32_t n_ranks;         // members of a group, each with memory for this; 0: one device
    int32_t n_layers;        // that run there, embedding and output included
    uint64_t weight_bytes;   // to be loaded
    uint64_t mapped_bytes;   // weights that are read from the mapped file and may leave memory
    uint64_t scratch_bytes;
    frit_kv_sizes sizes[FRIT_FIT_TYPES];      // of the cache, by its types
    uint64_t evicted_bytes[FRIT_FIT_TYPES];   // of evicted pages in host memory (kv_host.c), by cache types
    uint64_t available;                       // free memory
} frit_fit_memory;

typedef struct frit_fit {
    const char *path;
    const frit_log *log;
    bool off;        // options are used as they are: nothing is refused or reduced
    int32_t n_ctx;   // requested; 0: the largest up to n_ctx_train that fits comfortably
    int32_t n_ctx_train;
    frit_kv_types types[FRIT_FIT_TYPES];   // cache types to try, in order
    int n_types;
    frit_kv_room room;   // n_ctx is ignored
    frit_fit_memory memories[FRIT_MAX_DEVICES];
    int n_memories;
    bool places_auto;   // as many layers run on devices as fit, instead of a requested number
} frit_fit;

typedef struct frit_fit_choice {
    int32_t n_ctx;
    int types;   // index in fit->types
} frit_fit_choice;

// FRIT_E_MEMORY with numbers if the requested context, or any context, does not fit. *choice is then what does not fit.
frit_status frit_fit_choose(const frit_fit *fit, frit_fit_choice *choice);
// Logs the choice in one line, as a warning if it differs from the default.
void frit_fit_tell(const frit_fit *fit, frit_fit_choice choice);
// Bytes of the cache in one memory; UINT64_MAX: overflow.
uint64_t frit_fit_cache_bytes(const frit_fit *fit, const frit_fit_memory *memory, frit_fit_choice choice);
