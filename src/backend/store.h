// SPDX-License-Identifier: MIT
// backend/store.h: weights in the form that a device reads, once for all devices that read the same form.
//
// A model has a list of stores. Its engines open devices; a device takes the store of its form, which is made for
// the first one, and gives it back when it closes. The last device frees it. Any thread may take and give back; how a
// store is filled and read beside other threads is its own matter (cpu/pack/pack_store.c).
#pragma once
#include "base/thread/thread.h"

typedef struct frit_store {   // each kind embeds this first
    struct frit_store *next;
    int n_devices;
    const char *form;   // names all that what it has depends on, beside the model
    void (*free)(struct frit_store *store);
    uint64_t (*n_bytes)(const struct frit_store *store);   // of memory that it has now
} frit_store;

typedef struct frit_stores frit_stores;
frit_status frit_stores_new(frit_stores **out);
void frit_stores_free(frit_stores *stores);   // after all devices; NULL is fine
// The store of this form. make: a new one, n_devices is set here.
frit_status frit_stores_take(frit_stores *stores, const char *form, frit_status (*make)(frit_store **out, void *ctx),
                             void *ctx, frit_store **out);
void frit_stores_give_back(frit_stores *stores, frit_store *store);
// How many there are, and their bytes.
int frit_stores_count(const frit_stores *stores, uint64_t *n_bytes);
