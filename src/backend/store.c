// SPDX-License-Identifier: MIT
// The list of stores of a model.
#include "backend/store.h"

#include <stdlib.h>
#include <string.h>

struct frit_stores {
    frit_lock *lock;   // protects the fields below
    frit_store *first;
};

frit_status frit_stores_new(frit_stores **out)
{
    frit_stores *stores = *out = calloc(1, sizeof *stores);
    if (!stores) return frit_fail_memory(sizeof *stores, "the list of weight stores");
    const frit_status status = frit_lock_new(&stores->lock);
    if (status == FRIT_OK) return FRIT_OK;
    free(stores);
    *out = NULL;
    return status;
}

void frit_stores_free(frit_stores *stores)
{
    if (!stores) return;
    frit_lock_free(stores->lock);
    free(stores);
}

static frit_status find_or_make(frit_stores *stores, const char *form, frit_status (*make)(frit_store **out, void *ctx),
                                void *ctx, frit_store **out)
{
    for (frit_store *s = stores->first; s; s = s->next)
        if (strcmp(s->form, form) == 0) {
            s->n_devices++;
            *out = s;
            return FRIT_OK;
        }
    FRIT_TRY(make(out, ctx));
    (*out)->n_devices = 1;
    (*out)->next = stores->first;
    stores->first = *out;
    return FRIT_OK;
}

frit_status frit_stores_acquire(frit_stores *stores, const char *form, frit_status (*make)(frit_store **out, void *ctx),
                                void *ctx, frit_store **out)
{
    *out = NULL;
    frit_lock_acquire(stores->lock);
    const frit_status status = find_or_make(stores, form, make, ctx, out);
    frit_lock_release(stores->lock);
    return status;
}

void frit_stores_release(frit_stores *stores, frit_store *store)
{
    if (!store) return;
    frit_lock_acquire(stores->lock);
    const bool is_last = --store->n_devices == 0;
    for (frit_store **at = &stores->first; is_last && *at; at = &(*at)->next)
        if (*at == store) {
            *at = store->next;
            break;
        }
    frit_lock_release(stores->lock);
    if (is_last) store->free(store);
}

int frit_stores_count(const frit_stores *stores, uint64_t *n_bytes)
{
    int n = 0;
    *n_bytes = 0;
    frit_lock_acquire(stores->lock);
    for (const frit_store *s = stores->first; s; s = s->next, n++) *n_bytes += s->n_bytes(s);
    frit_lock_release(stores->lock);
    return n;
}
