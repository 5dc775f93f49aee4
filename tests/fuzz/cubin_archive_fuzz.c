// SPDX-License-Identifier: MIT
// Any bytes as an archive of compiled kernels. Its entries must lie inside.
#include "backend/cuda/runtime/cubin_archive.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    frit_cubin_archive_info info;
    uint64_t n = 0, index_at = 0;
    uint8_t *file = malloc(n_bytes + 1);   // asan detects reads past its end
    if (!file) return 0;
    memcpy(file, bytes, n_bytes);
    if (!frit_cubin_archive_check(file, n_bytes, &info, &n, &index_at)) {
        for (uint64_t i = 0; i < n; i++) {
            frit_cubin_entry entry;
            memcpy(&entry, file + index_at + i * sizeof entry, sizeof entry);
            if (entry.offset > n_bytes || entry.n_bytes > n_bytes - entry.offset) abort();
        }
    }
    free(file);
    return 0;
}
