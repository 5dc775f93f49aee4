// SPDX-License-Identifier: MIT
// The best of many scores: best.h.
#include "backend/cpu/ops/best.h"

static void put_entry(frit_best *best, int64_t i, float score, int32_t id)
{
    best->scores[i] = score;
    best->ids[i] = id;
}

static void move_entry(frit_best *best, int64_t to, int64_t from)
{
    put_entry(best, to, best->scores[from], best->ids[from]);
}

// Puts an entry into the heap below the free entry `top`. The hole sinks to a leaf along the worse children (the right
// one of equals), then rises past entries that are better than the new one.
static void sift_down(frit_best *best, int64_t top, float score, int32_t id)
{
    int64_t hole = top, child;
    while ((child = 2 * hole + 2) < best->n) {
        if (best->scores[child] > best->scores[child - 1]) child--;
        move_entry(best, hole, child);
        hole = child;
    }
    if (child == best->n) {   // a left child without a right one
        move_entry(best, hole, child - 1);
        hole = child - 1;
    }
    for (int64_t parent; hole > top && best->scores[parent = (hole - 1) / 2] > score; hole = parent)
        move_entry(best, hole, parent);
    put_entry(best, hole, score, id);
}

void frit_best_offer(frit_best *best, float score, int32_t id)
{
    if (best->n == best->most) {
        if (score > best->scores[0]) sift_down(best, 0, score, id);
        return;
    }
    put_entry(best, best->n++, score, id);
    if (best->n < best->most) return;
    for (int64_t i = best->n / 2 - 1; i >= 0; i--) sift_down(best, i, best->scores[i], best->ids[i]);
}

// Radix sort by bytes, lowest first. Ids are not negative.
void frit_best_sort(frit_best *best, int32_t *scratch)
{
    int32_t *from = best->ids, *to = scratch;
    for (int shift = 0; shift < 32; shift += 8) {
        int64_t at[257] = {0};
        for (int64_t i = 0; i < best->n; i++) at[(from[i] >> shift & 255) + 1]++;
        for (int i = 0; i < 256; i++) at[i + 1] += at[i];
        for (int64_t i = 0; i < best->n; i++) to[at[from[i] >> shift & 255]++] = from[i];
        int32_t *const other = from;
        from = to;
        to = other;
    }
    // After an even number of passes the result is in best->ids.
}
