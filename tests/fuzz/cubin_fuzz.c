// SPDX-License-Identifier: MIT
// Any bytes as a file of compiled kernels; the first two words are the expected key.
#include "backend/cuda/runtime/cubin_cache.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    frit_cubin_key key;
    size_t code_at = 0;
    if (n_bytes < sizeof key) return 0;
    memcpy(&key, bytes, sizeof key);
    const size_t n = n_bytes - sizeof key;
    uint8_t *file = malloc(n + 1);   // asan detects reads past its end
    if (!file) return 0;
    memcpy(file, bytes + sizeof key, n);
    if (!frit_cubin_file_check(file, n, key, &code_at) && code_at > n) abort();
    free(file);
    return 0;
}
