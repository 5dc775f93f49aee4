// SPDX-License-Identifier: MIT
// Memory by VirtualAlloc: zeroed, committed, backed when touched.
#include "backend/cpu/pack/memory.h"

#include <windows.h>

void *frit_cpu_memory_new(uint64_t n_bytes)
{
    if (n_bytes > SIZE_MAX / 2) return NULL;
    return VirtualAlloc(NULL, n_bytes ? (SIZE_T)n_bytes : 1, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

void frit_cpu_memory_free(void *memory, uint64_t n_bytes)
{
    (void)n_bytes;
    if (memory) VirtualFree(memory, 0, MEM_RELEASE);
}

void frit_cpu_memory_sparse(void *memory, uint64_t n_bytes)
{
    (void)memory;
    (void)n_bytes;
}

// The system drops the pages of files itself when memory is short.
void frit_cpu_memory_drop(const void *mapped, uint64_t n_bytes)
{
    (void)mapped;
    (void)n_bytes;
}

bool frit_cpu_memory_has_huge_pages(void)
{
    return false;
}
