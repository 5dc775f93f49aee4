// SPDX-License-Identifier: MIT
// Memory by mmap: anonymous, private, backed when touched; whole huge pages from 2 MiB on.
#include "backend/cpu/pack/memory.h"
#include "base/check.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(MAP_ANONYMOUS)
#define MAP_ANONYMOUS MAP_ANON
#endif
#if !defined(MAP_NORESERVE)
#define MAP_NORESERVE 0
#endif

#define HUGE_PAGE ((uint64_t)2 << 20)

// Every mapping is a multiple of the page size that all systems share.
static bool mapped_bytes(uint64_t n_bytes, uint64_t *out)
{
    return frit_align_u64(n_bytes ? n_bytes : 1, n_bytes >= HUGE_PAGE ? HUGE_PAGE : 65536, out) && *out <= SIZE_MAX / 2;
}

// Maps at a multiple of HUGE_PAGE: maps one huge page more, and unmaps the rest on both sides.
static void *map_aligned(uint64_t n_bytes)
{
    const uint64_t with_margin = n_bytes + HUGE_PAGE;
    uint8_t *start =
        mmap(NULL, (size_t)with_margin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return NULL;
    const uint64_t before = (HUGE_PAGE - (uintptr_t)start % HUGE_PAGE) % HUGE_PAGE, after = HUGE_PAGE - before;
    if (before) munmap(start, (size_t)before);
    if (after) munmap(start + before + n_bytes, (size_t)after);
#if defined(MADV_HUGEPAGE)
    madvise(start + before, (size_t)n_bytes, MADV_HUGEPAGE);   // advice: if it fails, memory is only slower
#endif
    return start + before;
}

// Linux writes "always [madvise] never", with the current mode in brackets.
bool frit_cpu_memory_has_huge_pages(void)
{
    char choice[64] = "[never]";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    if (!file) return false;
    const bool is_read = fgets(choice, sizeof choice, file) != NULL;
    fclose(file);
    return is_read && !strstr(choice, "[never]");
}

void *frit_cpu_memory_new(uint64_t n_bytes)
{
    uint64_t n_mapped;
    if (!mapped_bytes(n_bytes, &n_mapped)) return NULL;
    if (n_mapped >= HUGE_PAGE) return map_aligned(n_mapped);
    void *memory = mmap(NULL, (size_t)n_mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void frit_cpu_memory_sparse(void *memory, uint64_t n_bytes)
{
    uint64_t n_mapped;
    if (!memory || !mapped_bytes(n_bytes, &n_mapped) || n_mapped < HUGE_PAGE) return;
#if defined(MADV_NOHUGEPAGE)
    madvise(memory, (size_t)n_mapped, MADV_NOHUGEPAGE);   // advice: if it fails, more memory is used
#endif
}

void frit_cpu_memory_free(void *memory, uint64_t n_bytes)
{
    uint64_t n_mapped;
    if (memory && mapped_bytes(n_bytes, &n_mapped)) munmap(memory, (size_t)n_mapped);
}

// Only whole pages inside the range; pages at its ends may have other data.
void frit_cpu_memory_drop(const void *mapped, uint64_t n_bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)mapped;
    const uintptr_t begin = (start + page - 1) / page * page, end = (start + (uintptr_t)n_bytes) / page * page;
    if (begin < end) madvise((uint8_t *)(uintptr_t)mapped + (begin - start), end - begin, MADV_DONTNEED);
}
