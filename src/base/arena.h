// SPDX-License-Identifier: MIT
// base/arena.h: memory with one lifetime. frit_arena_free frees everything that was allocated from an arena.
//
// Blocks form a list and never move:
//
//     arena -- head --> [ used .......... | free ] -- next --> [ used ...... ] --> NULL
//
// A failed allocation returns NULL and is remembered. Code that makes many allocations may check frit_arena_failed once
// at its end, if the functions that it calls accept NULL.
//
//     frit_arena arena = {0};
//     node *n = frit_arena_new(&arena, node, 1);       // zeroed
//     ...
//     frit_arena_free(&arena);
#pragma once
#include <stdbool.h>
#include <stddef.h>

typedef struct frit_arena {
    struct frit_arena_block *head;
    size_t n_bytes;   // allocated so far
    bool failed;
} frit_arena;

// Allocates `n` objects of `size` bytes, zeroed, aligned to 16; NULL on overflow or exhaustion.
void *frit_arena_alloc(frit_arena *arena, size_t n, size_t size);
// A zero-terminated copy of n bytes.
char *frit_arena_text(frit_arena *arena, const char *text, size_t n);
bool frit_arena_failed(const frit_arena *arena);
void frit_arena_free(frit_arena *arena);

#define frit_arena_new(arena, type, n) ((type *)frit_arena_alloc((arena), (n), sizeof(type)))
