// SPDX-License-Identifier: MIT
// backend/store.h: weights in the form that a device reads, shared by all devices that read this form.
//
// A model has a list of stores. A device acquires the store of its form when it opens, which makes the store for the
// first device, and releases it when it closes; the last release frees it. Any thread may acquire and release. Each
// kind of store defines how threads fill and read it (cpu/pack/pack_store.c).
#pragma once
#include "base/thread/thread.h"

typedef struct frit_store {   // each kind embeds this first
    struct frit_store *next;
    int n_devices;
    const char *form;   // names everything, besides the model, that its contents depend on
    void (*free)(struct frit_store *store);
    uint64_t (*n_bytes)(const struct frit_store *store);   // memory of the store now
} frit_store;

typedef struct frit_stores frit_stores;
frit_status frit_stores_new(frit_stores **out);
void frit_stores_free(frit_stores *stores);   // call it after closing all devices; NULL is allowed
// Acquires the store of this form. `make` makes a new one; n_devices is set here.
frit_status frit_stores_acquire(frit_stores *stores, const char *form, frit_status (*make)(frit_store **out, void *ctx),
                                void *ctx, frit_store **out);
void frit_stores_release(frit_stores *stores, frit_store *store);
// Returns the number of stores, and sets their bytes.
int frit_stores_count(const frit_stores *stores, uint64_t *n_bytes);
