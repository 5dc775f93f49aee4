// SPDX-License-Identifier: MIT
// The list of symbols, the lanes of pairs, and the binary heap.
#include "text/tokenizer/merge.h"

#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

void frit_merger_clear(frit_merger *merger)
{
    if (merger->lanes && (merger->n_heap > 0 || merger->failed))
        memset(merger->lanes, 0, FRIT_N_LANES * sizeof *merger->lanes);   // the last call ended early
    merger->n = 0;
    merger->n_joins = merger->n_heap = 0;
    merger->free_join = -1;
}

void frit_merger_free(frit_merger *merger)
{
    free(merger->symbols);
    free(merger->joins);
    free(merger->heap);
    free(merger->lanes);
    *merger = (frit_merger){0};
}

void frit_merger_push(frit_merger *merger, uint32_t start, uint32_t len, frit_token id)
{
    if (merger->n == INT32_MAX ||
        FRIT_GROW(merger->symbols, merger->symbol_capacity, merger->n + 1, "symbols") != FRIT_OK) {
        merger->failed = true;
        return;
    }
    int32_t i = merger->n++;
    merger->symbols[i] = (frit_symbol){i - 1, -1, start, len, id};
    if (i > 0) merger->symbols[i - 1].next = i;
}

static bool before(const frit_heap_item *a, const frit_heap_item *b)
{
    return a->cost < b->cost || (a->cost == b->cost && a->left < b->left);
}

static void heap_push(frit_merger *merger, frit_heap_item item)
{
    if (FRIT_GROW(merger->heap, merger->heap_capacity, merger->n_heap + 1, "a heap of joins") != FRIT_OK) {
        merger->failed = true;
        return;
    }
    frit_heap_item *heap = merger->heap;
    size_t i = merger->n_heap++;
    for (; i > 0 && before(&item, &heap[(i - 1) / 2]); i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = item;
}

// Replaces the first item.
static void heap_replace(frit_heap_item *heap, size_t n, frit_heap_item item)
{
    size_t i = 0;
    for (size_t child = 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && before(&heap[child + 1], &heap[child])) child++;
        if (!before(&heap[child], &item)) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = item;
}

static int32_t lane_of(double cost)
{
    uint64_t bits;
    memcpy(&bits, &cost, sizeof bits);
    return (int32_t)((bits * 0x9e3779b97f4a7c15u) >> 52);
}

// Removes the first pair.
static frit_join take_first(frit_merger *merger)
{
    frit_heap_item item = merger->heap[0];
    const frit_join join = merger->joins[item.join];
    merger->joins[item.join].next = merger->free_join;
    merger->free_join = item.join;
    if (join.next >= 0) {
        item.join = join.next;
        item.left = merger->joins[join.next].left;
        heap_replace(merger->heap, merger->n_heap, item);
        return join;
    }
    if (item.lane >= 0) merger->lanes[item.lane].last = 0;
    merger->n_heap--;
    if (merger->n_heap > 0) heap_replace(merger->heap, merger->n_heap, merger->heap[merger->n_heap]);
    return join;
}

// The index of a new join; -1: out of memory.
static int32_t add_join(frit_merger *merger, const frit_join *join)
{
    int32_t i = merger->free_join;
    if (i >= 0) {
        merger->free_join = merger->joins[i].next;
    } else {
        if (merger->n_joins == INT32_MAX ||
            FRIT_GROW(merger->joins, merger->join_capacity, merger->n_joins + 1, "joins") != FRIT_OK) {
            merger->failed = true;
            return -1;
        }
        i = (int32_t)merger->n_joins++;
    }
    merger->joins[i] = *join;
    return i;
}

// Appends a pair to the lane of its cost if it is to the right of the last pair there.
static void add_pair(frit_merger *merger, const frit_join *join, double cost)
{
    const int32_t i = add_join(merger, join), n = lane_of(cost);
    if (i < 0) return;
    frit_lane *lane = &merger->lanes[n];
    const bool is_free = lane->last == 0;
    const bool follows = !is_free && lane->cost == cost && merger->joins[lane->last - 1].left <= join->left;
    if (follows)
        merger->joins[lane->last - 1].next = i;
    else
        heap_push(merger, (frit_heap_item){cost, join->left, i, is_free ? n : -1});
    if (follows || is_free) *lane = (frit_lane){cost, i + 1};
}

static void offer(frit_merger *merger, int32_t left, int32_t right, frit_join_fn pair_fn, const void *ctx)
{
    if (left < 0 || right < 0) return;
    const frit_symbol *l = &merger->symbols[left], *r = &merger->symbols[right];
    frit_join join = {.left = left, .right = right, .len = l->len + r->len, .next = -1};
    double cost;
    if (pair_fn(ctx, l, r, &cost, &join.merged)) add_pair(merger, &join, cost);
}

frit_status frit_merger_run(frit_merger *merger, frit_join_fn pair_fn, const void *ctx)
{
    if (!merger->lanes) merger->lanes = calloc(FRIT_N_LANES, sizeof *merger->lanes);
    if (!merger->lanes) return frit_fail_memory(FRIT_N_LANES * sizeof *merger->lanes, "the pairs of a word");
    for (int32_t i = 1; i < merger->n; i++) offer(merger, i - 1, i, pair_fn, ctx);
    while (merger->n_heap > 0) {
        if (merger->halt) FRIT_TRY(frit_halt_check(merger->halt, 0));
        const frit_join pair = take_first(merger);
        frit_symbol *left = &merger->symbols[pair.left], *right = &merger->symbols[pair.right];
        // Symbols only grow or vanish, so an equal length means that neither has changed.
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
