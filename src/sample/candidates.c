// SPDX-License-Identifier: MIT
// Partial sorting of candidates. Tokens are distinct, so (logit, token) is a total order without equals.
//
// For k at most n / 32: a heap of the best k so far with the worst as root; nearly every other candidate loses against
// the root in one well-predicted comparison. For larger k: quicksort that skips the parts after k, and heapsort if its
// depth is exhausted. Nothing is allocated, unlike in the C library's qsort.
#include "sample/sampler.h"
#include "base/philox.h"
#include "sample/weight.h"

#include <math.h>

enum { SMALL = 16 };

static inline bool is_before(frit_candidate a, frit_candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

static inline void swap(frit_candidate *a, frit_candidate *b)
{
    frit_candidate t = *a;
    *a = *b;
    *b = t;
}

// Restores the heap below i. A parent comes after its children in sorted order.
static void sift_down(frit_candidate *heap, int32_t n, int32_t i)
{
    frit_candidate moved = heap[i];
    for (int32_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && is_before(heap[child], heap[child + 1])) child++;
        if (!is_before(moved, heap[child])) break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
}

static void heap_make(frit_candidate *heap, int32_t n)
{
    for (int32_t i = n / 2 - 1; i >= 0; i--) sift_down(heap, n, i);
}

static void heap_sort(frit_candidate *items, int32_t n)
{
    heap_make(items, n);
    for (int32_t end = n - 1; end > 0; end--) {
        swap(&items[0], &items[end]);
        sift_down(items, end, 0);
    }
}

static void insertion_sort(frit_candidate *items, int32_t n)
{
    for (int32_t i = 1; i < n; i++) {
        frit_candidate moved = items[i];
        int32_t at = i;
        for (; at > 0 && is_before(moved, items[at - 1]); at--) items[at] = items[at - 1];
        items[at] = moved;
    }
}

// Splits around the median of three: items [0, split] precede items (split, n).
static int32_t partition(frit_candidate *items, int32_t n)
{
    frit_candidate *a = &items[0], *b = &items[n / 2], *c = &items[n - 1];
    if (is_before(*b, *a)) swap(a, b);
    if (is_before(*c, *b)) swap(b, c);
    if (is_before(*b, *a)) swap(a, b);
    frit_candidate pivot = *b;
    for (int32_t left = 0, right = n - 1;;) {
        do left++;
        while (is_before(items[left], pivot));
        do right--;
        while (is_before(pivot, items[right]));
        if (left >= right) return right;
        swap(&items[left], &items[right]);
    }
}

static void quick_sort(frit_candidate *items, int32_t n, int32_t k, int depth)
{
    while (n > SMALL) {
        if (depth-- == 0) {
            heap_sort(items, n);
            return;
        }
        int32_t n_left = partition(items, n) + 1;
        quick_sort(items, n_left, k, depth);
        if (k <= n_left) return;
        items += n_left;
        n -= n_left;
        k -= n_left;
    }
    insertion_sort(items, n);
}

void frit_candidates_keep(frit_candidate *best, int32_t *n, int32_t k, frit_candidate candidate)
{
    if (*n < k) {
        best[(*n)++] = candidate;
        if (*n == k) heap_make(best, k);
    } else if (is_before(candidate, best[0])) {
        best[0] = candidate;
        sift_down(best, k, 0);
    }
}

void frit_candidates_sort(frit_candidates *candidates, int32_t k)
{
    frit_candidate *items = candidates->items;
    int32_t n = candidates->n;
    if (candidates->sorted || k <= 0) return;
    if (k > n) k = n;
    if (k > n / 32) {
        int depth = 4;
        for (int32_t rest = n; rest > 1; rest /= 2) depth += 2;
        quick_sort(items, n, k, depth);
    } else {
        heap_make(items, k);
        for (int32_t i = k; i < n; i++) {
            if (items[i].logit < items[0].logit || !is_before(items[i], items[0])) continue;
            swap(&items[i], &items[0]);
            sift_down(items, k, 0);
        }
        heap_sort(items, k);
    }
    candidates->sorted = k == n;
}

float frit_candidates_max(const frit_candidates *candidates)
{
    if (candidates->sorted) return candidates->n > 0 ? candidates->items[0].logit : -INFINITY;
    float max = -INFINITY;
    for (int32_t i = 0; i < candidates->n; i++)
        if (candidates->items[i].logit > max) max = candidates->items[i].logit;
    return max;
}

frit_softmax_sums frit_candidates_softmax(const frit_candidates *candidates)
{
    const float max = frit_candidates_max(candidates);
    double sum = 0;
    for (int32_t i = 0; i < candidates->n; i++) {
        const float logit = candidates->items[i].logit;
        if (logit > -INFINITY) sum += (double)frit_exp(logit - max);
    }
    return (frit_softmax_sums){(double)max, sum};
}

double frit_softmax_probability(const frit_softmax_sums *softmax, float logit)
{
    return logit > -INFINITY ? (double)frit_exp(logit - (float)softmax->max) / softmax->sum : 0;
}

// log p = logit - max - log sum
double frit_candidates_entropy(const frit_candidates *candidates, const frit_softmax_sums *softmax)
{
    double below = 0;
    for (int32_t i = 0; i < candidates->n; i++) {
        const float logit = candidates->items[i].logit;
        if (logit > -INFINITY) below += frit_softmax_probability(softmax, logit) * (softmax->max - (double)logit);
    }
    return below + log(softmax->sum);
}

static void sort_by_token(frit_candidate *items, int32_t n)
{
    int32_t gap = 1;
    while (gap < n / 3) gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3)
        for (int32_t i = gap; i < n; i++) {
            const frit_candidate moved = items[i];
            int32_t at = i;
            for (; at >= gap && items[at - gap].token > moved.token; at -= gap) items[at] = items[at - gap];
            items[at] = moved;
        }
}

// Sorts only the block of tokens that contains the draw.
frit_token frit_candidates_draw(frit_candidates *candidates, int32_t n_vocab, uint64_t drawn)
{
    const float max = frit_candidates_max(candidates);
    const int32_t size = frit_block_size(n_vocab);
    frit_candidate *items = candidates->items;
    uint64_t sums[FRIT_BLOCKS] = {0}, total = 0;
    for (int32_t i = 0; i < candidates->n; i++) sums[items[i].token / size] += frit_weight(items[i].logit - max);
    for (int b = 0; b < FRIT_BLOCKS; b++) total += sums[b];
    uint64_t at = frit_philox_below(drawn, total);
    int block = 0;
    for (; at >= sums[block]; block++) at -= sums[block];
    int32_t n = 0;
    for (int32_t i = 0; i < candidates->n; i++)
        if (items[i].token / size == block) swap(&items[n++], &items[i]);
    sort_by_token(items, n);
    int32_t i = 0;
    for (; at >= frit_weight(items[i].logit - max); i++) at -= frit_weight(items[i].logit - max);
    return items[i].token;
}
