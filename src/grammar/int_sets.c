// SPDX-License-Identifier: MIT
// Sets of numbers by a hash table.
#include "grammar/dfa_build.h"

#include <stdlib.h>

static uint64_t hash_items(const int32_t *items, size_t n)
{
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) h = frit_dfa_mix(h, (uint32_t)items[i]);
    return h;
}

static void grow_sets(frit_int_sets *s)
{
    const int32_t room = s->room_sets ? s->room_sets * 2 : 32, n_buckets = room * 2;
    const size_t before = s->room_sets ? (size_t)s->room_sets + 1 : 0, after = (size_t)room + 1;
    size_t *start = frit_dfa_grow(&s->bytes, s->budget, s->start, before * sizeof *start, after * sizeof *start);
    if (start) s->start = start;
    int32_t *buckets = NULL;
    if (start)
        buckets = frit_dfa_grow(&s->bytes, s->budget, s->buckets, (size_t)s->n_buckets * sizeof *buckets,
                                (size_t)n_buckets * sizeof *buckets);
    if (!buckets) {
        s->failed = true;
        return;
    }
    if (s->room_sets == 0) start[0] = 0;
    memset(buckets, -1, (size_t)n_buckets * sizeof *buckets);
    for (int32_t i = 0; i < s->n_sets; i++) {
        size_t at = (size_t)(hash_items(s->items + start[i], start[i + 1] - start[i]) & (uint64_t)(n_buckets - 1));
        while (buckets[at] >= 0) at = (at + 1) & (size_t)(n_buckets - 1);
        buckets[at] = i;
    }
    s->buckets = buckets;
    s->n_buckets = n_buckets;
    s->room_sets = room;
}

int32_t frit_int_sets_intern(frit_int_sets *s, const int32_t *items, size_t n)
{
    if (s->n_sets >= s->room_sets) grow_sets(s);
    if (s->failed) return -1;
    size_t at = (size_t)(hash_items(items, n) & (uint64_t)(s->n_buckets - 1));
    for (; s->buckets[at] >= 0; at = (at + 1) & (size_t)(s->n_buckets - 1)) {
        const int32_t i = s->buckets[at];
        if (s->start[i + 1] - s->start[i] == n && memcmp(s->items + s->start[i], items, n * sizeof *items) == 0)
            return i;
    }
    if (s->n + n > s->room) {
        const size_t room = (s->n + n) * 2 + 16;
        int32_t *more = frit_dfa_grow(&s->bytes, s->budget, s->items, s->room * sizeof *more, room * sizeof *more);
        if (!more) {
            s->failed = true;
            return -1;
        }
        s->items = more;
        s->room = room;
    }
    if (n > 0) memcpy(s->items + s->n, items, n * sizeof *items);
    s->n += n;
    s->buckets[at] = s->n_sets;
    s->start[s->n_sets + 1] = s->n;
    return s->n_sets++;
}

void frit_int_sets_free(frit_int_sets *s)
{
    free(s->items);
    free(s->start);
    free(s->buckets);
    frit_budget_release(s->budget, s->bytes);
}
