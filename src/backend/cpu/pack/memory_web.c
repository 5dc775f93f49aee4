// SPDX-License-Identifier: MIT
// Memory of the WebAssembly heap, which has no pages of its own.
#include "backend/cpu/pack/memory.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 4096 };

void *frit_cpu_memory_new(uint64_t n_bytes)
{
    void *memory;
    if (n_bytes > SIZE_MAX - 2 * ALIGNMENT || posix_memalign(&memory, ALIGNMENT, (size_t)n_bytes + 1) != 0) return NULL;
    return memset(memory, 0, (size_t)n_bytes);
}

void frit_cpu_memory_free(void *memory, uint64_t n_bytes)
{
    (void)n_bytes;
    free(memory);
}

bool frit_cpu_memory_has_huge_pages(void)
{
    return false;
}

void frit_cpu_memory_sparse(void *memory, uint64_t n_bytes)
{
    (void)memory;
    (void)n_bytes;
}

void frit_cpu_memory_drop(const void *mapped, uint64_t n_bytes)
{
    (void)mapped;
    (void)n_bytes;
}
