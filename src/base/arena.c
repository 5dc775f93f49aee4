// SPDX-License-Identifier: MIT
// A list of blocks. A large request gets a block of its own after the head, so that the head keeps its free space.
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 64 * 1024, ALIGNMENT = 16 };

typedef struct frit_arena_block {
    struct frit_arena_block *next;
    size_t used, size;
    _Alignas(ALIGNMENT) unsigned char data[];
} frit_arena_block;

static frit_arena_block *block_new(size_t size)
{
    if (size > SIZE_MAX - sizeof(frit_arena_block)) return NULL;
    frit_arena_block *block = calloc(1, sizeof *block + size);
    if (block) block->size = size;
    return block;
}

static void *take(frit_arena_block *block, size_t n_bytes)
{
    void *at = block->data + block->used;
    block->used += n_bytes;
    return at;
}

void *frit_arena_alloc(frit_arena *arena, size_t n, size_t size)
{
    if (size != 0 && n > (SIZE_MAX - ALIGNMENT) / size) {
        arena->failed = true;
        return NULL;
    }
    size_t n_bytes = (n * size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (n_bytes == 0) n_bytes = ALIGNMENT;
    frit_arena_block *head = arena->head;
    bool own_block = n_bytes > BLOCK_BYTES / 4;
    if (own_block || !head || head->size - head->used < n_bytes) {
        frit_arena_block *block = block_new(own_block ? n_bytes : BLOCK_BYTES);
        if (!block) {
            arena->failed = true;
            return NULL;
        }
        if (own_block && head) {
            block->next = head->next;
            head->next = block;
        } else {
            block->next = head;
            arena->head = block;
        }
        head = block;
    }
    arena->n_bytes += n_bytes;
    return take(head, n_bytes);
}

char *frit_arena_text(frit_arena *arena, const char *text, size_t n)
{
    char *copy = n < SIZE_MAX ? frit_arena_alloc(arena, n + 1, 1) : NULL;
    if (copy && n > 0) memcpy(copy, text, n);
    return copy;
}

bool frit_arena_failed(const frit_arena *arena)
{
    return arena->failed;
}

void frit_arena_free(frit_arena *arena)
{
    for (frit_arena_block *block = arena->head; block;) {
        frit_arena_block *next = block->next;
        free(block);
        block = next;
    }
    *arena = (frit_arena){0};
}
