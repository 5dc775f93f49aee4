// SPDX-License-Identifier: MIT
// Merging, against a search of all pairs for each merge.
#include "support/support.h"

#include "text/tokenizer/merge.h"

#include <stdlib.h>
#include <string.h>

enum { N_TOKENS = 24, MAX_SYMBOLS = 300 };

// The cost and the result of each pair of tokens; a cost of -1: the pair is not joined. There are few different costs,
// so that many are equal, and some merges make pairs that are cheaper than themselves.
typedef struct table {
    int cost[N_TOKENS][N_TOKENS];
    frit_token merged[N_TOKENS][N_TOKENS];
} table;

static table random_table(frit_rng *rng, int64_t n_costs)
{
    table made;
    for (int i = 0; i < N_TOKENS; i++)
        for (int k = 0; k < N_TOKENS; k++) {
            made.cost[i][k] = random_between(rng, 0, 3) == 0 ? -1 : (int)random_between(rng, 0, n_costs - 1);
            made.merged[i][k] = (frit_token)random_between(rng, 0, N_TOKENS - 1);
        }
    return made;
}

static bool find_pair(const void *ctx, const frit_symbol *left, const frit_symbol *right, double *cost,
                      frit_token *merged)
{
    const table *t = ctx;
    *cost = t->cost[left->id][right->id];
    *merged = t->merged[left->id][right->id];
    return *cost >= 0;
}

// Joins the cheapest pair, the leftmost of equal ones, until there is no pair. Returns the number of symbols left.
static int merge_simply(const table *t, frit_token *ids, int n)
{
    for (;;) {
        int best = -1, least = -1;
        for (int i = 0; i + 1 < n; i++) {
            const int cost = t->cost[ids[i]][ids[i + 1]];
            if (cost >= 0 && (best < 0 || cost < least)) best = i, least = cost;
        }
        if (best < 0) return n;
        ids[best] = t->merged[ids[best]][ids[best + 1]];
        memmove(ids + best + 1, ids + best + 2, (size_t)(n - best - 2) * sizeof *ids);
        n--;
    }
}

static void push_all(frit_merger *merger, const frit_token *ids, int n)
{
    frit_merger_clear(merger);
    for (int i = 0; i < n; i++) frit_merger_push(merger, (uint32_t)i, 1, ids[i]);
}

static void check_merges(frit_merger *merger, const table *t, frit_token *ids, int n)
{
    push_all(merger, ids, n);
    assert_ok(frit_merger_run(merger, find_pair, t));
    const int n_expected = merge_simply(t, ids, n);
    int found = 0;
    uint32_t at = 0;
    for (int32_t i = 0; i < merger->n; i++) {
        const frit_symbol *symbol = &merger->symbols[i];
        if (symbol->len == 0) continue;
        assert_true(found < n_expected);
        assert_int_equal(symbol->id, ids[found]);
        assert_int_equal(symbol->start, at);
        at += symbol->len;
        found++;
    }
    assert_int_equal(found, n_expected);
    assert_int_equal(at, n);
}

static void merges_are_those_of_a_search_of_all_pairs(void **state)
{
    (void)state;
    static const int64_t costs[] = {1, 3, 20, 5000};   // more than the number of lanes, so some share one
    frit_rng rng;
    frit_rng_init(&rng, 1);
    frit_merger merger = {0};
    for (int round = 0; round < 400; round++) {
        const table t = random_table(&rng, costs[round % 4]);
        frit_token ids[MAX_SYMBOLS];
        const int n = (int)random_between(&rng, 1, MAX_SYMBOLS);
        const int64_t most = round % 3 == 0 ? 0 : random_between(&rng, 1, N_TOKENS - 1);   // 0: a sequence of one
                                                                                           // symbol
        for (int i = 0; i < n; i++) ids[i] = (frit_token)random_between(&rng, 0, most);
        check_merges(&merger, &t, ids, n);
    }
    frit_merger_free(&merger);
}

static bool always(void *ctx)
{
    (void)ctx;
    return true;
}

static void a_merger_that_was_cancelled_merges_the_next_word(void **state)
{
    (void)state;
    frit_rng rng;
    frit_rng_init(&rng, 2);
    frit_halt halt = {.cancelled = always};
    frit_merger merger = {.halt = &halt};
    table t = {0};   // all pairs become token 0
    frit_token ids[MAX_SYMBOLS] = {0};
    push_all(&merger, ids, MAX_SYMBOLS);
    assert_fails(frit_merger_run(&merger, find_pair, &t), FRIT_E_CANCELLED, "no longer wanted");
    merger.halt = NULL;
    t = random_table(&rng, 3);
    for (int i = 0; i < MAX_SYMBOLS; i++) ids[i] = (frit_token)random_between(&rng, 0, 5);
    check_merges(&merger, &t, ids, MAX_SYMBOLS);
    frit_merger_free(&merger);
}

static void a_run_of_one_symbol_needs_no_large_heap(void **state)
{
    (void)state;
    enum { N = 1 << 17 };
    table t;
    for (int i = 0; i < N_TOKENS; i++)
        for (int k = 0; k < N_TOKENS; k++) {   // token i is 2^i symbols; pairs of equal ones join
            t.cost[i][k] = i == k && i + 1 < N_TOKENS ? i : -1;
            t.merged[i][k] = i + 1;
        }
    frit_merger merger = {0};
    frit_merger_clear(&merger);
    for (int i = 0; i < N; i++) frit_merger_push(&merger, (uint32_t)i, 1, 0);
    assert_ok(frit_merger_run(&merger, find_pair, &t));
    assert_int_equal(merger.symbols[0].len, N);
    assert_true(merger.heap_capacity <= 64);
    frit_merger_free(&merger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_are_those_of_a_search_of_all_pairs),
        cmocka_unit_test(a_merger_that_was_cancelled_merges_the_next_word),
        cmocka_unit_test(a_run_of_one_symbol_needs_no_large_heap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
