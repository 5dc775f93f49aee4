// SPDX-License-Identifier: MIT
// The order of ranked documents.
#include "support/support.h"

#include "common/ranking.h"

static void the_best_come_first_and_equal_ones_keep_their_order(void **state)
{
    (void)state;
    enum { N = 200 };
    app_ranked documents[N];
    frit_rng rng;
    frit_rng_init(&rng, 7);
    for (size_t i = 0; i < N; i++) documents[i] = (app_ranked){i, (float)random_between(&rng, -3, 3)};
    app_rank(documents, N);
    for (size_t i = 1; i < N; i++) {
        const app_ranked *a = &documents[i - 1], *b = &documents[i];
        assert_true(a->score > b->score || (a->score == b->score && a->index < b->index));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_best_come_first_and_equal_ones_keep_their_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
