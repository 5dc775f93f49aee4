// SPDX-License-Identifier: MIT
// backend/cpu/pack/memory.h: large zeroed memory straight from the system, in huge pages where they are to be had.
#pragma once
#include "base/status.h"

// Aligned to at least 4096. Pages are backed when touched, where the system allows it. NULL when memory is short.
void *frit_cpu_memory_new(uint64_t n_bytes);
void frit_cpu_memory_free(void *memory, uint64_t n_bytes);   // NULL is fine
bool frit_cpu_memory_has_huge_pages(void);                   // whether large memory gets them
// Perhaps only a little of it is ever touched: no huge pages. n_bytes as it was asked for, before anything was touched.
void frit_cpu_memory_sparse(void *memory, uint64_t n_bytes);
// For bytes of a mapped file only: they need no memory until they are read again.
void frit_cpu_memory_drop(const void *mapped, uint64_t n_bytes);
