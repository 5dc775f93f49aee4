// SPDX-License-Identifier: MIT
// backend/cpu/pack/memory.h: large zeroed memory from the system, in huge pages if the system has them.
#pragma once
#include "base/status.h"

// Aligned to at least 4096. The system backs pages when they are touched, if it can. NULL: out of memory.
void *frit_cpu_memory_new(uint64_t n_bytes);
void frit_cpu_memory_free(void *memory, uint64_t n_bytes);   // NULL is allowed
bool frit_cpu_memory_has_huge_pages(void);                   // true if large memory gets huge pages
// Turns huge pages off for memory of which little may be touched. Call it before the first touch, with the n_bytes of
// frit_cpu_memory_new.
void frit_cpu_memory_sparse(void *memory, uint64_t n_bytes);
// Frees the memory of bytes of a mapped file until they are read again.
void frit_cpu_memory_drop(const void *mapped, uint64_t n_bytes);
