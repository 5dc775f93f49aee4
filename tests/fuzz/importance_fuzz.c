// SPDX-License-Identifier: MIT
// Parses any bytes as an importance file, of either format, and computes the means of every entry.
#include "convert/importance.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    frit_importance importance;
    if (frit_importance_parse(&importance, "fuzz", bytes, n_bytes) != FRIT_OK) return 0;
    for (size_t i = 0; i < importance.n; i++) {
        const frit_importance_entry *entry = &importance.entries[i];
        float *means = malloc(entry->n_values * sizeof *means);
        if (!means || frit_importance_find(&importance, entry->name) != entry) abort();
        frit_importance_means(&importance, entry, means);
        for (size_t k = 0; k < entry->n_values; k++)
            if (!(means[k] >= 0) || isinf(means[k])) abort();
        free(means);
    }
    frit_importance_deinit(&importance);
    return 0;
}
