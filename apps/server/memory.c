// SPDX-License-Identifier: MIT
// glibc keeps what large requests have freed, and takes ever larger blocks from its heaps; others do neither.
#include "server/memory.h"

#include <stdlib.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { LARGE_BLOCK = 256 << 10 };

void server_memory_prepare(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
    mallopt(M_TRIM_THRESHOLD, 4 * LARGE_BLOCK);
#endif
}

void server_memory_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
