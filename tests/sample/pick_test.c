// SPDX-License-Identifier: MIT
// Picks against the sampler chain, which defines them: the same tokens for random logits and options, with any number
// of threads; log-probabilities; drafts. With --bench: times of picks.
#include "sample/random_picks.h"

#include "base/philox.h"
#include "base/thread/thread.h"
#include "base/time.h"
#include "sample/sampler.h"
#include "sample/weight.h"

#include <math.h>

static const int n_threads[] = {1, 2, 3, 7};

typedef struct fixture {
    frit_pool *pools[FRIT_COUNT(n_threads)];
    frit_pick_runner *runs[FRIT_COUNT(n_threads)];
} fixture;

static int set_up(void **state)
{
    static fixture f;
    for (size_t i = 0; i < FRIT_COUNT(n_threads); i++) {
        assert_ok(frit_pool_new(&f.pools[i], n_threads[i]));
        assert_ok(frit_pick_runner_new(&f.runs[i], n_threads[i], FRIT_PICK_BATCH));
    }
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < FRIT_COUNT(n_threads); i++) {
        frit_pick_runner_free(f->runs[i]);
        frit_pool_free(f->pools[i]);
    }
    return 0;
}

static int open_phase(void *ctx, int phase, int *grain)
{
    *grain = 1;
    return frit_pick_open(ctx, phase);
}

static void work_on(void *ctx, int phase, int begin, int end, int thread)
{
    frit_pick_work(ctx, phase, begin, end, thread);
}

static void run_all(const fixture *f, size_t i, const frit_pick_job *job)
{
    for (int32_t first = 0; first < job->n_picks;) {
        first = frit_pick_begin(f->runs[i], job, first);
        frit_pool_walk(f->pools[i], &(frit_walk){f->runs[i], FRIT_PICK_PHASES, open_phase, work_on, NULL});
    }
}

// ------------------------------------------------------------------------------- random cases

enum { MAX_VOCAB = 9000, N_PICKS = 20 };

static void check_round(const fixture *f, frit_rng *rng, int round)
{
    static float rows[N_PICKS * MAX_VOCAB], before[N_PICKS * MAX_VOCAB];
    static frit_str pieces[MAX_VOCAB];
    const int32_t n_vocab = (int32_t)random_between(rng, 1, round % 4 ? 600 : MAX_VOCAB);
    const size_t n_bytes = (size_t)n_vocab * N_PICKS * sizeof *rows;
    frit_sampler *samplers[N_PICKS];
    frit_pick picks[N_PICKS];
    frit_picked_token picked[N_PICKS], expected[N_PICKS];
    frit_pick_lists lists = {.n_vocab = n_vocab};
    for (int32_t i = 0; i < N_PICKS; i++) {
        float *row = rows + (size_t)i * (size_t)n_vocab;
        frit_sampler *s = samplers[i] = random_sampler(rng, n_vocab);
        random_logits(rng, row, n_vocab, (int)random_between(rng, 0, 1000));
        if (random_between(rng, 0, 5) == 0) force(s, pieces, n_vocab);
        if (random_between(rng, 0, 40) == 0) row[random_between(rng, 0, n_vocab - 1)] = i % 2 ? NAN : INFINITY;
        assert_ok(frit_sampler_add_pick(s, &lists, &picks[i]));
        picks[i].row = i;
        expected[i].token = -1;
        const frit_status status = frit_sampler_run_chain(s, row, &expected[i].token);
        frit_token sampled = -1;
        assert_int_equal(frit_sampler_sample(s, row, &sampled), status);
        assert_int_equal(sampled, expected[i].token);
    }
    memcpy(before, rows, n_bytes);
    for (size_t t = 0; t < FRIT_COUNT(n_threads); t++) {
        memset(picked, 0xff, sizeof picked);
        run_all(f, t, &(frit_pick_job){rows, picks, N_PICKS, &lists, picked});
        assert_memory_equal(rows, before, n_bytes);
        for (int32_t i = 0; i < N_PICKS; i++) {
            if (picked[i].token != expected[i].token)
                print_message(
                    "round %d, pick %d of %d tokens: temp %g top-k %d top-p %g min-p %g sigma %g, %d threads\n", round,
                    i, n_vocab, (double)picks[i].temp, picks[i].top_k, (double)picks[i].top_p, (double)picks[i].min_p,
                    (double)picks[i].top_n_sigma, n_threads[t]);
            assert_int_equal(picked[i].token, expected[i].token);
            assert_int_equal(picked[i].status != FRIT_PICK_DONE, expected[i].token < 0);
        }
    }
    for (int32_t i = 0; i < N_PICKS; i++) frit_sampler_free(samplers[i]);
    frit_pick_lists_free(&lists);
}

static void picks_are_what_the_chain_picks(void **state)
{
    frit_rng rng;
    frit_rng_init(&rng, 21);
    for (int round = 0; round < 400 / FRIT_TEST_STRIDE; round++) check_round(*state, &rng, round);
}

// ------------------------------------------------------------------------------- log-probabilities

static void log_probabilities_are_those_of_the_logits_as_they_came(void **state)
{
    const fixture *f = *state;
    enum { VOCAB = 5000 };
    static float row[VOCAB];
    frit_rng rng;
    frit_rng_init(&rng, 4);
    for (int round = 0; round < 30; round++) {
        const int32_t n_vocab = (int32_t)random_between(&rng, 1, round % 2 ? 50 : VOCAB);
        const int32_t n_top = (int32_t)random_between(&rng, 0,
                                                      n_vocab < 20 ? n_vocab
                                                      : round % 5  ? 20
                                                                   : FRIT_PICK_MAX_TOP);
        frit_sampler *sampler = random_sampler(&rng, n_vocab);
        frit_pick_lists lists = {.n_vocab = n_vocab};
        frit_pick pick;
        frit_picked_token picked;
        frit_logprob top[FRIT_PICK_MAX_TOP], own;
        random_normal(&rng, row, (size_t)n_vocab, 3);
        for (int32_t i = 0; i < n_vocab; i++) row[i] = round % 3 ? row[i] : floorf(row[i]);
        assert_ok(frit_sampler_add_pick(sampler, &lists, &pick));
        assert_ok(frit_pick_lists_reserve(&lists, &(frit_pick_room){.n_tops = n_top}));
        pick.n_top = n_top < n_vocab ? n_top : n_vocab;
        pick.first_top = 0;
        assert_ok(frit_logprobs_top(row, (size_t)n_vocab, top, (size_t)pick.n_top));
        assert_ok(frit_sampler_run_chain(sampler, row, &own.token));
        assert_ok(frit_logprobs_of(row, (size_t)n_vocab, &own, 1));
        for (size_t t = 0; t < FRIT_COUNT(n_threads); t++) {
            run_all(f, t, &(frit_pick_job){row, &pick, 1, &lists, &picked});
            assert_int_equal(picked.token, own.token);
            assert_true(picked.logprob == own.logprob);
            assert_memory_equal(lists.tops, top, (size_t)pick.n_top * sizeof *top);
        }
        frit_pick_lists_free(&lists);
        frit_sampler_free(sampler);
    }
}

// ------------------------------------------------------------------------------- tokens that are not known yet

enum { FEW_TOKENS = 20 };

// Two picks after the same tokens: picks[0] is made before the first of them is known, picks[1] after all of them were
// accepted.
static void add_both(frit_sampler *sampler, const frit_token *tokens, int n, frit_pick_lists *lists, frit_pick *picks)
{
    frit_sampler_mark marks[4];
    const uint64_t position = sampler->position + (uint64_t)n;
    frit_sampler_try_count(sampler, -1, &marks[0]);
    for (int i = 1; i < n; i++) assert_true(frit_sampler_try(sampler, tokens[i], &marks[i]));
    assert_ok(frit_sampler_set_position(sampler, position));
    assert_ok(frit_sampler_add_pick(sampler, lists, &picks[0]));
    for (int i = n; i-- > 0;) frit_sampler_go_back(sampler, &marks[i]);
    for (int i = 0; i < n; i++) assert_ok(frit_sampler_accept(sampler, tokens[i]));
    assert_ok(frit_sampler_add_pick(sampler, lists, &picks[1]));
    assert_int_equal(sampler->position, position);
}

// Counts that are not 0.
static int32_t n_penalties(const frit_pick_lists *lists, const frit_pick *pick)
{
    int32_t n = 0;
    for (int32_t i = 0; i < pick->n_counts; i++) n += lists->counts[pick->first_count + i].count > 0;
    return n;
}

static void a_token_counts_before_it_is_known(void **state)
{
    const fixture *f = *state;
    static float row[FEW_TOKENS];
    frit_rng rng;
    int n_unknown = 0, n_left = 0;
    frit_rng_init(&rng, 11);
    for (int round = 0; round < 4000; round++) {
        frit_sampler *sampler = random_sampler(&rng, FEW_TOKENS);
        frit_pick_lists lists = {.n_vocab = FEW_TOKENS};
        frit_pick picks[2];
        frit_picked_token picked[2];
        frit_token tokens[3];
        for (int i = 0; i < 3; i++) tokens[i] = (frit_token)random_between(&rng, 0, FEW_TOKENS - 1);
        add_both(sampler, tokens, 1 + round % 3, &lists, picks);
        const bool is_unknown = frit_pick_unknown(&lists, &picks[0]) != NULL;
        n_unknown += is_unknown;
        n_left += !is_unknown && frit_penalties_is_on(&sampler->options);
        assert_null(frit_pick_unknown(&lists, &picks[1]));
        frit_pick_resolve(&lists, &picks[0], tokens[0]);
        assert_null(frit_pick_unknown(&lists, &picks[0]));
        assert_true(frit_sampler_has_counts(sampler, &lists, &picks[0], n_penalties(&lists, &picks[1])));
        random_logits(&rng, row, FEW_TOKENS, round);
        for (int i = 0; i < 2; i++)
            run_all(f, (size_t)round % FRIT_COUNT(n_threads), &(frit_pick_job){row, &picks[i], 1, &lists, &picked[i]});
        assert_int_equal(picked[0].status, picked[1].status);
        assert_int_equal(picked[0].token, picked[1].token);
        frit_pick_lists_free(&lists);
        frit_sampler_free(sampler);
    }
    assert_in_range(n_unknown, 1000, 4000);
    assert_in_range(n_left, 50, 4000);   // later tokens have pushed it out of a short window
}

// ------------------------------------------------------------------------------- drafts

enum { DRAFT_VOCAB = 50, N_DRAFTS = 6 };

// Runs the chain row by row, without drafts, until a token differs.
static int32_t run_plainly(frit_sampler *sampler, const float *rows, const frit_token *drafts, frit_token *next)
{
    for (int32_t i = 0;; i++) {
        assert_ok(frit_sampler_run_chain(sampler, rows + (size_t)i * DRAFT_VOCAB, next));
        assert_ok(frit_sampler_accept(sampler, *next));
        if (i == N_DRAFTS || *next != drafts[i]) return i;
    }
}

static void drafts_are_accepted_while_they_are_what_is_picked(void **state)
{
    const fixture *f = *state;
    static float rows[(N_DRAFTS + 1) * DRAFT_VOCAB];
    int32_t n_with[N_DRAFTS + 1] = {0};
    frit_rng rng;
    frit_rng_init(&rng, 8);
    for (int round = 0; round < 300; round++) {
        const frit_sampler_options options = {.temp = round % 3 ? 0.7f : 0,
                                              .top_k = round % 2 ? 10 : 0,
                                              .frequency_penalty = 0.3f,
                                              .repeat_last_n = 4,
                                              .seed = (uint64_t)round};
        frit_sampler *plain, *drafted;
        frit_pick_lists lists = {.n_vocab = DRAFT_VOCAB};
        frit_pick picks[N_DRAFTS + 2];
        frit_picked_token picked[N_DRAFTS + 2];
        frit_token drafts[N_DRAFTS];
        assert_ok(frit_sampler_create(&plain, DRAFT_VOCAB, &options));
        assert_ok(frit_sampler_create(&drafted, DRAFT_VOCAB, &options));
        random_normal(&rng, rows, (N_DRAFTS + 1) * DRAFT_VOCAB, 2);
        assert_ok(frit_pick_lists_reserve(&lists, &(frit_pick_room){.n_drafts = N_DRAFTS}));
        for (int32_t i = 0; i <= N_DRAFTS; i++) {
            assert_ok(frit_sampler_add_pick(drafted, &lists, &picks[i]));
            picks[i].row = i;
            if (i == N_DRAFTS) break;
            assert_ok(frit_sampler_run_chain(drafted, rows + (size_t)i * DRAFT_VOCAB, &drafts[i]));
            if (random_between(&rng, 0, 5) == 0) drafts[i] = (drafts[i] + 1) % DRAFT_VOCAB;
            lists.drafts[lists.n_drafts++] = drafts[i];
            assert_ok(frit_sampler_accept(drafted, drafts[i]));
        }
        picks[0].n_drafts = N_DRAFTS;
        frit_token next;
        const int32_t n = run_plainly(plain, rows, drafts, &next);
        n_with[n]++;
        run_all(f, (size_t)round % FRIT_COUNT(n_threads), &(frit_pick_job){rows, picks, N_DRAFTS + 1, &lists, picked});
        frit_pick_verify(picks, N_DRAFTS + 1, &lists, picked);
        assert_int_equal(picked[0].n_accepted, n);
        assert_int_equal(picked[0].token, next);
        frit_pick_lists_free(&lists);
        frit_sampler_free(plain);
        frit_sampler_free(drafted);
    }
    for (int i = 0; i <= N_DRAFTS; i++) assert_true(n_with[i] > 0);
}

static void a_row_that_cannot_be_sampled_ends_a_verification(void **state)
{
    (void)state;
    const frit_pick picks[4] = {{.n_drafts = 3}};
    frit_token drafts[3] = {5, 6, 7};
    const frit_pick_lists lists = {.drafts = drafts};
    frit_picked_token picked[4] = {{.token = 5}, {.token = -1, .status = FRIT_PICK_EMPTY}, {.token = 7}, {.token = 8}};
    frit_pick_verify(picks, 4, &lists, picked);
    assert_int_equal(picked[0].n_accepted, 1);
    assert_int_equal(picked[0].status, FRIT_PICK_EMPTY);
}

// ------------------------------------------------------------------------------- what exists as a pick

static size_t keep_all(void *ctx, frit_candidate *candidates, size_t n)
{
    (void)ctx, (void)candidates;
    return n;
}

static void chains_in_another_order_are_no_picks(void **state)
{
    (void)state;
    static const struct {
        frit_sampler_options options;
        bool is_pick;
    } rows[] = {
        {{0}, true},
        {{.temp = 1, .top_k = 5, .top_p = 0.5f, .min_p = 0.1f, .presence_penalty = 1}, true},
        {{.temp = 2, .top_k = 5, .samplers = "top-k,temp"}, true},
        {{.temp = 2, .top_k = 5, .samplers = "temp,top-k"}, false},
        {{.temp = 1, .top_k = 5, .samplers = "temp,top-k"}, true},   // temperature 1 switches temp off
        {{.temp = 2, .top_p = 0.5f, .min_p = 0.1f, .samplers = "min-p,top-p"}, false},
        {{.temp = 1, .stage = keep_all}, false},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_sampler *sampler;
        assert_ok(frit_sampler_create(&sampler, 10, &rows[i].options));
        assert_int_equal(sampler->is_pick, rows[i].is_pick);
        frit_sampler_free(sampler);
    }
}

// ------------------------------------------------------------------------------- weights

static void weights_are_those_of_the_exponential(void **state)
{
    (void)state;
    assert_true(frit_exp(0) == 1 && frit_weight(0) == 1 << 30);
    assert_true(frit_weight(-INFINITY) == 0 && frit_weight(-22) == 0 && frit_weight(-21) == 1);
    for (double x = -86.99; x <= 0; x += 1.0 / 1024 / 3) {
        const double e = exp((double)(float)x);
        assert_true(fabs((double)frit_exp((float)x) - e) <= 2e-7 * e);
    }
}

// ------------------------------------------------------------------------------- --bench

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// Medians of 101 microseconds: the chain on one thread, and picks with some numbers of threads.
static void bench(const fixture *f)
{
    enum { VOCAB = 131072, N_ROWS = 8, N_TIMES = 101 };
    static const struct {
        const char *name;
        frit_sampler_options options;
        int n_top;
    } rows[] = {
        {"greedy", {.temp = 0}, -1},
        {"temp 0.8, top-k 40, top-p 0.95", {.temp = 0.8f, .top_k = 40, .top_p = 0.95f}, -1},
        {"the same with min-p 0.05, penalties",
         {.temp = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .presence_penalty = 1},
         -1},
        {"the same with 20 log-probabilities", {.temp = 0.8f, .top_k = 40, .top_p = 0.95f}, 20},
        {"temp 0.8, top-p 0.95", {.temp = 0.8f, .top_p = 0.95f}, -1},
        {"temp 0.8, top-k 1000", {.temp = 0.8f, .top_k = 1000}, -1},
        {"temp 1", {.temp = 1}, -1},
    };
    float *logits = malloc((size_t)VOCAB * N_ROWS * sizeof *logits);
    double us[N_TIMES];
    frit_rng rng;
    frit_rng_init(&rng, 1);
    random_normal(&rng, logits, (size_t)VOCAB * N_ROWS, 3);
    printf("| %d tokens, microseconds | chain | 1 thread | 2 | 3 | 7 |\n| --- | ---: | ---: | ---: | ---: | ---: |\n",
           VOCAB);
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_sampler *sampler;
        frit_pick_lists lists = {.n_vocab = VOCAB};
        frit_pick pick;
        frit_picked_token picked;
        assert_ok(frit_sampler_create(&sampler, VOCAB, &rows[i].options));
        for (int k = 0; k < 200; k++)
            assert_ok(frit_sampler_accept(sampler, (frit_token)random_between(&rng, 0, VOCAB - 1)));
        assert_ok(frit_sampler_add_pick(sampler, &lists, &pick));
        if (rows[i].n_top >= 0) pick.first_top = 0, pick.n_top = rows[i].n_top;
        assert_ok(frit_pick_lists_reserve(&lists, &(frit_pick_room){.n_tops = 20}));
        printf("| %s", rows[i].name);
        for (int column = -1; column < (int)FRIT_COUNT(n_threads); column++) {
            for (int k = 0; k < N_TIMES; k++) {
                float *row = logits + (size_t)(k % N_ROWS) * VOCAB;
                const uint64_t start = frit_time_ns();
                if (column < 0) {
                    frit_logprob top[20];
                    assert_ok(frit_sampler_run_chain(sampler, row, &picked.token));
                    if (rows[i].n_top >= 0) assert_ok(frit_logprobs_top(row, VOCAB, top, (size_t)rows[i].n_top));
                } else {
                    run_all(f, (size_t)column, &(frit_pick_job){row, &pick, 1, &lists, &picked});
                }
                us[k] = (double)(frit_time_ns() - start) * 1e-3;
            }
            qsort(us, N_TIMES, sizeof *us, by_value);
            printf(" | %.0f", us[N_TIMES / 2]);
        }
        printf(" |\n");
        frit_pick_lists_free(&lists);
        frit_sampler_free(sampler);
    }
    free(logits);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        void *state;
        set_up(&state);
        bench(state);
        return tear_down(&state);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picks_are_what_the_chain_picks),
        cmocka_unit_test(log_probabilities_are_those_of_the_logits_as_they_came),
        cmocka_unit_test(a_token_counts_before_it_is_known),
        cmocka_unit_test(drafts_are_accepted_while_they_are_what_is_picked),
        cmocka_unit_test(a_row_that_cannot_be_sampled_ends_a_verification),
        cmocka_unit_test(chains_in_another_order_are_no_picks),
        cmocka_unit_test(weights_are_those_of_the_exponential),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
