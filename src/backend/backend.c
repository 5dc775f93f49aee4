// SPDX-License-Identifier: MIT
// The list of backends, best first. A backend is a row here and a folder.
#include "backend/backend.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const frit_backend *rows[] = {
    NULL,   // the backend of a test
#if !defined(__wasm__)
    &frit_backend_cuda,
    &frit_backend_webgpu,
#endif
    &frit_backend_cpu,
};

void frit_backend_set_first(const frit_backend *backend)
{
    rows[0] = backend;
}

const frit_backend *frit_backend_get(int i)
{
    for (size_t k = 0; k < FRIT_COUNT(rows); k++)
        if (rows[k] && i-- == 0) return rows[k];
    return NULL;
}

const frit_backend *frit_backend_find(const char *name)
{
    for (size_t i = 0; i < FRIT_COUNT(rows); i++)
        if (rows[i] && strcmp(rows[i]->name, name) == 0) return rows[i];
    return NULL;
}

// Compares bits, which compilers vectorize: a vocabulary may have 100,000 logits.
static bool all_finite(const float *row, int64_t n)
{
    enum { EXPONENT = 0x7f800000 };
    uint32_t n_bad = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &row[i], sizeof bits);
        n_bad += (bits & EXPONENT) == EXPONENT;
    }
    return n_bad == 0;
}

void frit_out_row_take(frit_out_row *taken, const float *row, int64_t n)
{
    if (!all_finite(row, n)) atomic_store(&taken->bad, true);
    if (taken->copy) memcpy(taken->copy, row, (size_t)n * sizeof *row);
}

frit_status frit_backend_copy(frit_address to, frit_address from, uint64_t n_bytes)
{
    frit_device *source = from.memory->device, *target = to.memory->device;
    if (source == target) return source->backend->copy(source, to, from, n_bytes);
    if (source->backend == target->backend && target->backend->receive)
        return target->backend->receive(target, to, from, n_bytes);
    uint8_t *seen = target->backend->map(to.memory);
    if (seen) return source->backend->read(source, from, seen + to.offset, n_bytes);
    const uint8_t *given = source->backend->map(from.memory);
    if (given) return target->backend->write(target, to, given + from.offset, n_bytes);
    uint8_t *between = malloc((size_t)n_bytes + 1);
    if (!between) return frit_fail_memory((size_t)n_bytes, "a copy between devices");
    frit_status status = source->backend->read(source, from, between, n_bytes);
    if (status == FRIT_OK) status = target->backend->write(target, to, between, n_bytes);
    free(between);
    return status;
}
