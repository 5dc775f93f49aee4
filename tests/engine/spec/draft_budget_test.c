// SPDX-License-Identifier: MIT
// The budget of drafts: drafts that do not pay cost little, and drafts that do are not limited.
#include "support/support.h"

#include "engine/spec/draft_budget.h"

enum { N_SEQS = 4 };
static const double step_ns = 1e6;
// Bounds of draft_budget.c, in steps: the first budget of all drafts, and its growth in each step.
static const double first_of_all = 0.9, gain_per_step = 0.005;

// Simulates steps with a round of drafts each, if the budget allows it. `n_right` of 4 drafts are right, and the step
// takes longer by `longer`. Returns the time of all steps as a ratio to the time of the same tokens without drafts.
static double run(frit_draft_budget *budget, int n_steps, int32_t n_right, double longer, int *n_rounds)
{
    double taken = 0, n_tokens = 0;
    *n_rounds = 0;
    for (int i = 0; i < n_steps; i++) {
        const bool drafts = !budget->is_open || frit_draft_budget_allows(budget, 0, 0);
        const frit_draft_round round = {.without_ns = step_ns,
                                        .n_seqs = N_SEQS,
                                        .n_drafts = drafts ? N_SEQS : 0,
                                        .n_right = drafts ? n_right : 0,
                                        .draft_ns = drafts ? 0.3 * step_ns : 0,
                                        .step_ns = step_ns * (drafts ? 1 + longer : 1)};
        frit_draft_budget_count(budget, &round);
        taken += round.draft_ns + round.step_ns;
        n_tokens += N_SEQS + round.n_right;
        *n_rounds += drafts;
    }
    return taken / (n_tokens * step_ns / N_SEQS);
}

static void drafts_that_do_not_pay_cost_less_than_one_percent(void **state)
{
    (void)state;
    int n_rounds;
    frit_draft_budget budget = {0};
    const double ratio = run(&budget, 4000, 1, 0.4, &n_rounds);   // 0.7 more time for 0.25 more tokens
    assert_true(ratio < 1.01);
    assert_true(n_rounds >= 10);   // it tries again
    frit_draft_budget never = {0};
    assert_true(run(&never, 4000, 0, 0.1, &n_rounds) < 1.01);
}

static void drafts_that_pay_are_not_held_back(void **state)
{
    (void)state;
    int n_rounds;
    frit_draft_budget budget = {0};
    run(&budget, 500, 4, 0.4, &n_rounds);
    assert_int_equal(n_rounds, 500);
}

static void drafts_that_begin_to_pay_are_made_again(void **state)
{
    (void)state;
    int n_rounds;
    frit_draft_budget budget = {0};
    run(&budget, 4000, 0, 0.4, &n_rounds);
    assert_true(n_rounds < 100);
    run(&budget, 1000, 4, 0.4, &n_rounds);
    assert_true(n_rounds > 700);
    run(&budget, 4000, 0, 0.4, &n_rounds);   // earlier savings do not allow a long loss
    assert_true(n_rounds < 150);
}

static void a_text_in_the_draft_model_does_not_stop_drafts_that_pay(void **state)
{
    (void)state;
    int n_rounds;
    frit_draft_budget budget = {0};
    frit_draft_budget_count(&budget,
                            &(frit_draft_round){.without_ns = step_ns, .n_seqs = 1, .follow_ns = 0.8 * step_ns});
    assert_false(frit_draft_budget_allows(&budget, 0, 0.2 * step_ns));   // not a second round
    run(&budget, 500, 4, 0.2, &n_rounds);
    assert_int_equal(n_rounds, 500);
    assert_true(frit_draft_budget_allows(&budget, 0, 100 * step_ns));
}

// The loss by drafts over all steps, beyond their savings, in steps.
static double lost(double ratio, int n_steps, double n_tokens_each)
{
    return (ratio - 1) * n_steps * n_tokens_each;
}

static void what_drafts_saved_is_spent_once(void **state)
{
    (void)state;
    enum { GOOD = 300, BAD = 60 };
    int n_rounds;
    frit_draft_budget budget = {0};
    double all = lost(run(&budget, GOOD, 4, 0.4, &n_rounds), GOOD, 2);   // two tokens in each step
    assert_true(all < -80);
    const double text = budget.all_ns - 0.1 * step_ns;
    assert_true(text > 80 * step_ns && frit_draft_budget_allows(&budget, 0, text));
    frit_draft_budget_count(&budget, &(frit_draft_round){.without_ns = step_ns, .n_seqs = N_SEQS, .follow_ns = text});
    all += text / step_ns + lost(run(&budget, BAD, 0, 0.4, &n_rounds), BAD, 1);
    assert_true(all < first_of_all + gain_per_step * (GOOD + BAD) + 0.7);   // including the last round
}

static void a_few_tokens_before_each_round_count_too(void **state)
{
    (void)state;
    enum { STEPS = 2000 };
    static const double few = 0.3, each = 0.1;
    frit_draft_budget budget = {0};
    double spent = 0;
    for (int i = 0; i < STEPS; i++) {
        const bool drafts = budget.is_open && frit_draft_budget_allows(&budget, each * step_ns, few * step_ns);
        const frit_draft_round round = {.without_ns = step_ns,
                                        .n_seqs = 1,
                                        .n_drafts = drafts,
                                        .draft_ns = drafts ? each * step_ns : 0,
                                        .follow_ns = drafts ? few * step_ns : 0,
                                        .step_ns = step_ns};
        frit_draft_budget_count(&budget, &round);
        spent += round.draft_ns + round.follow_ns;
    }
    assert_true(spent > 5 * step_ns);   // it tries from time to time
    assert_true(spent <= (first_of_all + gain_per_step * STEPS) * step_ns);
}

static void useless_drafts_cost_two_percent_of_sixty_tokens(void **state)
{
    (void)state;
    frit_draft_budget budget = {0};
    frit_draft_budget_count(&budget, &(frit_draft_round){.without_ns = step_ns, .n_seqs = N_SEQS});
    const double loss = 0.3 * step_ns;   // loss of a round
    double spent = 0;
    for (int i = 1; i < 60; i++) {
        const double follow = i == 1 ? budget.all_ns - loss - 1 : 0;   // the part of the prompt that the budget allows
        const bool drafts = frit_draft_budget_allows(&budget, loss, follow);
        const frit_draft_round round = {.without_ns = step_ns,
                                        .n_seqs = N_SEQS,
                                        .n_drafts = drafts ? N_SEQS : 0,
                                        .draft_ns = drafts ? loss : 0,
                                        .follow_ns = drafts ? follow : 0,
                                        .step_ns = step_ns};
        frit_draft_budget_count(&budget, &round);
        spent += round.draft_ns + round.follow_ns;
    }
    assert_true(spent > 0.8 * step_ns && spent <= 0.02 * 60 * step_ns);
}

static void what_sessions_learn_counts_for_others(void **state)
{
    (void)state;
    frit_draft_rates own = {0}, all = {0};
    const double at_first = frit_draft_rate(&own, &all, 2);
    for (int i = 0; i < 40; i++) frit_draft_rates_count(&all, 2, false);
    const double by_others = frit_draft_rate(&own, &all, 2);
    assert_true(at_first > 0.5 && by_others < 0.1);
    for (int i = 0; i < 40; i++) frit_draft_rates_count(&own, 2, true);
    assert_true(frit_draft_rate(&own, &all, 2) > 0.7);   // its own text is easier
    assert_true(frit_draft_rate(&own, &all, 3) > 0.7);   // a class of its own
}

static void one_slow_step_says_little(void **state)
{
    (void)state;
    frit_draft_budget budget = {0};
    frit_draft_budget_count(&budget, &(frit_draft_round){.without_ns = step_ns,
                                                         .n_seqs = 1,
                                                         .n_drafts = 1,
                                                         .draft_ns = 1000 * step_ns,
                                                         .expected_ns = 0.4 * step_ns});
    assert_true(budget.round_ns > -step_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drafts_that_do_not_pay_cost_less_than_one_percent),
        cmocka_unit_test(drafts_that_pay_are_not_held_back),
        cmocka_unit_test(drafts_that_begin_to_pay_are_made_again),
        cmocka_unit_test(a_text_in_the_draft_model_does_not_stop_drafts_that_pay),
        cmocka_unit_test(what_drafts_saved_is_spent_once),
        cmocka_unit_test(a_few_tokens_before_each_round_count_too),
        cmocka_unit_test(useless_drafts_cost_two_percent_of_sixty_tokens),
        cmocka_unit_test(what_sessions_learn_counts_for_others),
        cmocka_unit_test(one_slow_step_says_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
