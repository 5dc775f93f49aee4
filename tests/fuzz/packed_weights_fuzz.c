// SPDX-License-Identifier: MIT
// Any bytes as a file of packed weights; the first three words are the expected key and size.
#include "backend/store_cache.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    uint64_t asked[3], panels_at;
    if (n_bytes < sizeof asked) return 0;
    memcpy(asked, bytes, sizeof asked);
    const size_t n = n_bytes - sizeof asked;
    uint8_t *file = malloc(n + 1);   // aligned, and asan detects reads past its end
    if (!file) return 0;
    memcpy(file, bytes + sizeof asked, n);
    const frit_store_key key = {{asked[0], asked[1]}};
    if (!frit_store_file_check(file, n, key, asked[2], &panels_at) && panels_at + asked[2] != n) abort();
    free(file);
    return 0;
}
