// SPDX-License-Identifier: MIT
// The chain of symbols and the binary heap of pairs.
#include "text/merge.h"

#include <stdlib.h>

void frit_merger_clear(frit_merger *merger)
{
    merger->n = 0;
    merger->n_pairs = 0;
}

void frit_merger_free(frit_merger *merger)
{
    free(merger->symbols);
    free(merger->heap);
    *merger = (frit_merger){0};
}

// Room for one more item in an array that doubles. False: out of memory.
static bool grow(void **items, size_t n, size_t *capacity, size_t size)
{
    if (n < *capacity) return true;
    size_t wanted = *capacity ? *capacity * 2 : 64;
    void *larger = wanted < SIZE_MAX / 2 / size ? realloc(*items, wanted * size) : NULL;
    if (!larger) return false;
    *items = larger;
    *capacity = wanted;
    return true;
}

void frit_merger_push(frit_merger *merger, uint32_t start, uint32_t len, frit_token id)
{
    void *symbols = merger->symbols;
    if (merger->n == INT32_MAX || !grow(&symbols, (size_t)merger->n, &merger->symbol_capacity, sizeof(frit_symbol))) {
        merger->failed = true;
        return;
    }
    merger->symbols = symbols;
    int32_t i = merger->n++;
    merger->symbols[i] = (frit_symbol){i - 1, -1, start, len, id};
    if (i > 0) merger->symbols[i - 1].next = i;
}

static bool before(const frit_join *a, const frit_join *b)
{
    return a->cost < b->cost || (a->cost == b->cost && a->left < b->left);
}

static void heap_push(frit_merger *merger, frit_join pair)
{
    void *pairs = merger->heap;
    if (!grow(&pairs, merger->n_pairs, &merger->pair_capacity, sizeof(frit_join))) {
        merger->failed = true;
        return;
    }
    frit_join *heap = merger->heap = pairs;
    size_t i = merger->n_pairs++;
    for (; i > 0 && before(&pair, &heap[(i - 1) / 2]); i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = pair;
}

static frit_join heap_pop(frit_merger *merger)
{
    frit_join *heap = merger->heap;
    frit_join top = heap[0], last = heap[--merger->n_pairs];
    size_t n = merger->n_pairs, i = 0;
    for (size_t child = 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && before(&heap[child + 1], &heap[child])) child++;
        if (!before(&heap[child], &last)) break;
        heap[i] = heap[child];
        i = child;
    }
    if (n > 0) heap[i] = last;
    return top;
}

static void offer(frit_merger *merger, int32_t left, int32_t right, frit_join_fn pair_fn, const void *ctx)
{
    if (left < 0 || right < 0) return;
    const frit_symbol *l = &merger->symbols[left], *r = &merger->symbols[right];
    frit_join pair = {.left = left, .right = right, .len = l->len + r->len};
    if (pair_fn(ctx, l, r, &pair.cost, &pair.merged)) heap_push(merger, pair);
}

frit_status frit_merger_run(frit_merger *merger, frit_join_fn pair_fn, const void *ctx)
{
    for (int32_t i = 1; i < merger->n; i++) offer(merger, i - 1, i, pair_fn, ctx);
    while (merger->n_pairs > 0) {
        if (merger->halt) FRIT_TRY(frit_halt_check(merger->halt, 0));
        frit_join pair = heap_pop(merger);
        frit_symbol *left = &merger->symbols[pair.left], *right = &merger->symbols[pair.right];
        // Symbols only grow or vanish, so equal length means that neither has changed.
        if (left->len == 0 || right->len == 0 || left->len + right->len != pair.len) continue;
        left->len += right->len;
        left->id = pair.merged;
        left->next = right->next;
        right->len = 0;
        if (right->next >= 0) merger->symbols[right->next].prev = pair.left;
        offer(merger, left->prev, pair.left, pair_fn, ctx);
        offer(merger, pair.left, left->next, pair_fn, ctx);
    }
    return FRIT_OK;
}
