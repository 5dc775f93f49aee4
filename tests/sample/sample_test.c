// SPDX-License-Identifier: MIT
// The sampler: stages against plain recomputation, statistics of draws, and refusals.
#include "support/support.h"

#include "base/time.h"
#include "frit_tools.h"
#include "sample/sampler.h"

#include <math.h>

static frit_sampler *make_sampler(int32_t n_vocab, frit_sampler_options options)
{
    frit_sampler *sampler = NULL;
    assert_ok(frit_sampler_create(&sampler, n_vocab, &options));
    return sampler;
}

static frit_token sample(frit_sampler *sampler, const float *logits)
{
    frit_token token = -1;
    assert_ok(frit_sampler_sample(sampler, logits, &token));
    return token;
}

// Counts n draws. The sampler is freed.
static void count_draws(frit_sampler_options options, const float *logits, int32_t n_vocab, int n, int *counts)
{
    memset(counts, 0, (size_t)n_vocab * sizeof *counts);
    frit_sampler *sampler = make_sampler(n_vocab, options);
    for (int i = 0; i < n; i++) {
        assert_ok(frit_sampler_set_position(sampler, (uint64_t)i));
        counts[sample(sampler, logits)]++;
    }
    frit_sampler_free(sampler);
}

static void set_option(frit_sampler_options *options, const char *name, const char *value)
{
    assert_ok(frit_sampler_set_option(options, name, value));
}

static void softmax(const float *logits, int n, double temp, double *p)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += p[i] = exp((double)logits[i] / temp);
    for (int i = 0; i < n; i++) p[i] /= sum;
}

// Pearson's statistic; cells that should be empty must be.
static double chi_square(const int *counts, const double *p, int n, int n_draws)
{
    double chi = 0;
    for (int i = 0; i < n; i++) {
        double expected = p[i] * n_draws;
        if (p[i] == 0)
            assert_int_equal(counts[i], 0);
        else
            chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    return chi;
}

// Sets dropped candidates to 0 and scales the rest to sum 1.
static void keep(double *p, const bool *kept, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += p[i] = kept[i] ? p[i] : 0;
    for (int i = 0; i < n; i++) p[i] /= sum;
}

enum { N = 10, DRAWS = 100000 };
static const float logits10[N] = {1.0f, 3.0f, 0.5f, 2.5f, -1.0f, 2.0f, 0.0f, 1.5f, -3.0f, 2.75f};
static const double chi_limit_9 = 27.88;   // 9 degrees of freedom, one in a thousand

static void greedy_takes_the_lowest_id_among_equals(void **state)
{
    (void)state;
    const float logits[6] = {0, 2, 5, -1, 5, 5};
    frit_sampler *sampler = make_sampler(6, (frit_sampler_options){0});
    assert_int_equal(sample(sampler, logits), 2);
    frit_sampler_free(sampler);
    sampler = make_sampler(6, (frit_sampler_options){.frequency_penalty = 1});
    frit_sampler_accept(sampler, 2);
    assert_int_equal(sample(sampler, logits), 4);
    frit_sampler_free(sampler);
}

static void draws_follow_the_softmax(void **state)
{
    (void)state;
    int counts[N];
    double p[N];
    const double temps[] = {0.5, 1, 2};
    for (size_t i = 0; i < FRIT_COUNT(temps); i++) {
        count_draws((frit_sampler_options){.temp = (float)temps[i], .seed = 11 + i}, logits10, N, DRAWS, counts);
        softmax(logits10, N, temps[i], p);
        assert_true(chi_square(counts, p, N, DRAWS) < chi_limit_9);
    }
}

static void a_wrong_temperature_would_be_noticed(void **state)
{
    (void)state;
    int counts[N];
    double p[N];
    count_draws((frit_sampler_options){.temp = 1.1f, .seed = 3}, logits10, N, DRAWS, counts);
    softmax(logits10, N, 1, p);
    assert_true(chi_square(counts, p, N, DRAWS) > chi_limit_9);
}

static void top_k_keeps_the_k_likeliest(void **state)
{
    (void)state;
    int counts[N];
    double p[N];
    const bool kept[N] = {[1] = true, [9] = true, [3] = true};
    count_draws((frit_sampler_options){.temp = 1, .top_k = 3, .seed = 5}, logits10, N, DRAWS, counts);
    softmax(logits10, N, 1, p);
    keep(p, kept, N);
    assert_true(chi_square(counts, p, N, DRAWS) < chi_limit_9);
}

static void top_p_keeps_the_smallest_set_with_the_probability(void **state)
{
    (void)state;
    // 0.5, 0.25, 0.125, 0.0625, 0.0625: two tokens reach 0.75, a little more needs three.
    const float logits[5] = {logf(0.125f), logf(0.5f), logf(0.0625f), logf(0.25f), logf(0.0625f)};
    int counts[5];
    count_draws((frit_sampler_options){.temp = 1, .top_p = 0.74f, .seed = 1}, logits, 5, 10000, counts);
    assert_true(counts[1] > 0 && counts[3] > 0 && counts[0] + counts[2] + counts[4] == 0);
    count_draws((frit_sampler_options){.temp = 1, .top_p = 0.76f, .seed = 1}, logits, 5, 10000, counts);
    assert_true(counts[1] > 0 && counts[3] > 0 && counts[0] > 0 && counts[2] + counts[4] == 0);
    count_draws((frit_sampler_options){.temp = 1, .top_p = 1e-6f, .seed = 1}, logits, 5, 1000, counts);
    assert_int_equal(counts[1], 1000);
}

static void min_p_drops_what_is_much_less_likely_than_the_best(void **state)
{
    (void)state;
    int counts[N];
    double p[N];
    bool kept[N];
    count_draws((frit_sampler_options){.temp = 1, .min_p = 0.2f, .seed = 9}, logits10, N, DRAWS, counts);
    softmax(logits10, N, 1, p);
    for (int i = 0; i < N; i++) kept[i] = p[i] >= 0.2 * p[1];
    keep(p, kept, N);
    assert_true(chi_square(counts, p, N, DRAWS) < chi_limit_9);
}

static void top_n_sigma_drops_what_is_far_below_the_best(void **state)
{
    (void)state;
    int counts[N];
    double p[N], mean = 0, variance = 0;
    bool kept[N];
    for (int i = 0; i < N; i++) mean += (double)logits10[i] / N;
    for (int i = 0; i < N; i++) variance += ((double)logits10[i] - mean) * ((double)logits10[i] - mean) / N;
    frit_sampler_options options = {.temp = 1, .seed = 9};
    set_option(&options, "top-n-sigma", "0.7");
    count_draws(options, logits10, N, DRAWS, counts);
    softmax(logits10, N, 1, p);
    int n_kept = 0;
    for (int i = 0; i < N; i++) n_kept += kept[i] = 3.0 - (double)logits10[i] <= 0.7 * sqrt(variance);
    assert_in_range(n_kept, 2, N - 2);
    keep(p, kept, N);
    assert_true(chi_square(counts, p, N, DRAWS) < chi_limit_9);
}

static void top_n_sigma_does_not_count_banned_tokens(void **state)
{
    (void)state;
    const float logits[5] = {2, -INFINITY, 1, -INFINITY, 0};
    frit_sampler_options options = {.temp = 5, .seed = 1};
    set_option(&options, "top-n-sigma", "1.5");   // the deviation is 0.816
    int counts[5];
    count_draws(options, logits, 5, 1000, counts);
    assert_true(counts[0] > 0 && counts[2] > 0 && counts[0] + counts[2] == 1000);
}

static void penalties_follow_their_formulas(void **state)
{
    (void)state;
    const float logits[4] = {2, -2, 1, 1};
    frit_sampler *sampler = make_sampler(
        4, (frit_sampler_options){.repeat_penalty = 2, .frequency_penalty = 0.25f, .presence_penalty = 0.5f});
    const frit_token accepted[] = {0, 1, 0, 2};
    for (size_t i = 0; i < FRIT_COUNT(accepted); i++) frit_sampler_accept(sampler, accepted[i]);
    frit_candidate items[4];
    for (int i = 0; i < 4; i++) items[i] = (frit_candidate){i, logits[i]};
    frit_candidates candidates = {.items = items, .n = 4};
    frit_penalties_apply(sampler, &candidates);
    const float expected[4] = {2 / 2.0f - 1, -4 - 0.75f, 0.5f - 0.75f, 1};
    for (int i = 0; i < 4; i++) assert_true(items[i].logit == expected[i]);
    frit_sampler_free(sampler);
}

static void the_penalty_window_forgets_older_tokens(void **state)
{
    (void)state;
    frit_sampler *sampler = make_sampler(8, (frit_sampler_options){.presence_penalty = 1, .repeat_last_n = 3});
    for (int i = 0; i < 20; i++) {
        frit_sampler_accept(sampler, i % 8);
        int n = 0;
        for (int t = 0; t < 8; t++) n += (int)sampler->counts[t];
        assert_int_equal(n, i < 2 ? i + 1 : 3);
        assert_int_equal(sampler->counts[i % 8], 1);
        if (i >= 3) assert_int_equal(sampler->counts[(i - 3) % 8], 0);
    }
    frit_sampler_reset(sampler);
    for (int t = 0; t < 8; t++) assert_int_equal(sampler->counts[t], 0);
    frit_sampler_free(sampler);

    sampler = make_sampler(8, (frit_sampler_options){.presence_penalty = 1, .repeat_last_n = -1});
    for (int i = 0; i < 1000; i++) frit_sampler_accept(sampler, 5);
    frit_sampler_accept(sampler, 99);   // not in the vocabulary, so it is ignored
    assert_int_equal(sampler->counts[5], 1000);
    frit_sampler_free(sampler);
}

static void logit_bias_moves_and_bans_tokens(void **state)
{
    (void)state;
    const char *items[] = {"1=-inf", "9=-1", "8=7.5"};
    frit_sampler *sampler = make_sampler(N, (frit_sampler_options){.logit_bias = {items, 3}});
    assert_int_equal(sample(sampler, logits10), 8);
    frit_sampler_free(sampler);
    sampler = make_sampler(N, (frit_sampler_options){.logit_bias = {items, 2}});
    assert_int_equal(sample(sampler, logits10), 3);
    frit_sampler_free(sampler);
    // After top-k, item i is no longer token i.
    int counts[N];
    count_draws((frit_sampler_options){.temp = 1, .top_k = 2, .logit_bias = {items, 1}, .samplers = "top-k,logit-bias"},
                logits10, N, 1000, counts);
    assert_int_equal(counts[9], 1000);
}

static void the_order_of_stages_is_the_callers(void **state)
{
    (void)state;
    // 0.6, 0.3, 0.1: min-p 0.4 keeps two at temperature 1, three at temperature 4.
    const float logits[3] = {logf(0.6f), logf(0.3f), logf(0.1f)};
    int counts[3];
    frit_sampler_options options = {.temp = 4, .min_p = 0.4f, .samplers = "min-p,temp", .seed = 2};
    count_draws(options, logits, 3, 10000, counts);
    assert_int_equal(counts[2], 0);
    options.samplers = "temp,min-p";
    count_draws(options, logits, 3, 10000, counts);
    assert_true(counts[2] > 0);
    options.samplers = "";
    count_draws(options, logits, 3, 10000, counts);
    assert_in_range(counts[0], 5800, 6200);   // no stage at all: temperature 1
}

static void the_same_seed_gives_the_same_tokens(void **state)
{
    (void)state;
    frit_sampler_options options = {.temp = 1.5f, .top_k = 8, .top_p = 0.9f, .min_p = 0.01f, .seed = 42};
    frit_sampler *a = make_sampler(N, options), *b = make_sampler(N, options);
    options.seed = 43;
    frit_sampler *c = make_sampler(N, options);
    frit_token first[200];
    int n_different = 0;
    for (int i = 0; i < 200; i++) {
        first[i] = sample(a, logits10);
        assert_int_equal(first[i], sample(b, logits10));
        n_different += first[i] != sample(c, logits10);
        frit_sampler_accept(a, first[i]);
        frit_sampler_accept(b, first[i]);
        frit_sampler_accept(c, first[i]);
    }
    assert_true(n_different > 50);
    frit_sampler_reset(a);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(sample(a, logits10), first[i]);
        frit_sampler_accept(a, first[i]);
    }
    frit_sampler_free(a);
    frit_sampler_free(b);
    frit_sampler_free(c);
}

static void a_draw_depends_on_its_position_alone(void **state)
{
    (void)state;
    frit_sampler *sampler = make_sampler(N, (frit_sampler_options){.temp = 1.5f, .seed = 7});
    frit_token first[100];
    int n_equal = 0;
    for (int i = 0; i < 100; i++) {
        first[i] = sample(sampler, logits10);
        assert_int_equal(sample(sampler, logits10), first[i]);   // nothing has been accepted
        n_equal += i > 0 && first[i] == first[i - 1];
        frit_sampler_accept(sampler, i % N);
    }
    assert_true(n_equal < 50);
    for (int i = 99; i >= 0; i--) {
        assert_ok(frit_sampler_set_position(sampler, (uint64_t)i));
        assert_int_equal(sample(sampler, logits10), first[i]);
    }
    frit_sampler_free(sampler);
}

static int by_rank(const void *a, const void *b)
{
    const frit_candidate *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->token < y->token ? -1 : 1;
}

static void partial_sorting_agrees_with_a_full_sort(void **state)
{
    (void)state;
    enum { MAX = 3000 };
    static frit_candidate items[MAX], sorted[MAX];
    frit_rng rng;
    frit_rng_init(&rng, 7);
    for (int round = 0; round < 400; round++) {
        int32_t n = (int32_t)random_between(&rng, 1, round % 2 ? 40 : MAX);
        int32_t k = (int32_t)random_between(&rng, 1, round % 3 ? n : (n + 9) / 10);
        int n_values = round % 5 == 0 ? 4 : 1 << 20;   // many equal logits, or few
        for (int32_t i = 0; i < n; i++) {
            float logit = (float)random_between(&rng, 0, n_values);
            if (round % 7 == 0) logit = (float)(round % 14 ? i : -i);   // sorted input
            if (logit == 3) logit = -INFINITY;
            items[i] = sorted[i] = (frit_candidate){i, logit};
        }
        qsort(sorted, (size_t)n, sizeof *sorted, by_rank);
        frit_candidates candidates = {.items = items, .n = n};
        frit_candidates_sort(&candidates, k);
        assert_memory_equal(items, sorted, (size_t)k * sizeof *items);
        assert_true(frit_candidates_max(&candidates) == sorted[0].logit);
        frit_candidates_sort(&candidates, n);
        assert_memory_equal(items, sorted, (size_t)n * sizeof *items);
    }
}

static void a_large_vocabulary_gives_the_same_set_by_every_path(void **state)
{
    (void)state;
    enum { VOCAB = 131072 };
    float *logits = malloc(VOCAB * sizeof *logits);
    frit_rng rng;
    frit_rng_init(&rng, 1);
    random_normal(&rng, logits, VOCAB, 3);
    frit_sampler *top_k = make_sampler(VOCAB, (frit_sampler_options){.temp = 1, .top_k = 40, .seed = 8});
    frit_sampler *flat = make_sampler(VOCAB, (frit_sampler_options){.temp = 1, .top_p = 0.999f, .seed = 8});
    uint64_t start = frit_time_ns();
    for (int i = 0; i < 50; i++) assert_true(logits[sample(top_k, logits)] > 9);
    uint64_t middle = frit_time_ns();
    // With p = 0.999 tens of thousands of tokens stay; all are likelier than the dropped tokens.
    for (int i = 0; i < 5; i++) assert_true(logits[sample(flat, logits)] > -5);
    print_message("%d tokens: top-k 40 takes %.0f us, top-p 0.999 of a flat distribution %.0f us\n", VOCAB,
                  (double)(middle - start) * 1e-3 / 50, (double)(frit_time_ns() - middle) * 1e-3 / 5);
    frit_sampler_free(top_k);
    frit_sampler_free(flat);
    free(logits);
}

static void extreme_logits_stay_in_range(void **state)
{
    (void)state;
    const float logits[4] = {-3e38f, 3e38f, -INFINITY, 2.9e38f};
    const frit_sampler_options all[] = {
        {.temp = 1e-30f},
        {.temp = 1000, .min_p = 1, .top_p = 1},
        {.temp = 1, .repeat_penalty = 1e-30f},
        {.temp = 0.5f, .top_k = 1000000000, .top_p = 1e-30f},
    };
    for (size_t i = 0; i < FRIT_COUNT(all); i++) {
        frit_sampler *sampler = make_sampler(4, all[i]);
        frit_sampler_accept(sampler, 1);
        for (int j = 0; j < 10; j++) assert_int_equal(sample(sampler, logits), 1);
        frit_sampler_free(sampler);
    }
}

static void logits_that_are_not_finite_are_refused(void **state)
{
    (void)state;
    float logits[4] = {1, 2, 3, 4};
    frit_token token = -1;
    for (float temp = 0; temp < 2; temp++) {
        frit_sampler *sampler = make_sampler(4, (frit_sampler_options){.temp = temp});
        const float bad[] = {NAN, INFINITY};
        for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
            logits[2] = bad[i];
            assert_fails(frit_sampler_sample(sampler, logits, &token), FRIT_E_INVALID, "not finite");
        }
        const float banned[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
        assert_fails(frit_sampler_sample(sampler, banned, &token), FRIT_E_INVALID, "no token is left");
        assert_fails(frit_sampler_sample(sampler, NULL, &token), FRIT_E_INVALID, "'logits' is NULL");
        assert_int_equal(token, -1);
        frit_sampler_free(sampler);
    }
}

// ------------------------------------------------------------------------------- a stage of the program's own

typedef struct own_stage {
    int n_calls;
    size_t n_seen;
    size_t returns;   // 0: the number of kept candidates
    float gives;      // written instead of logits, unless 0
    frit_token token;
} own_stage;

// Keeps even tokens in reverse order, and bans token 4.
static size_t keep_even(void *ctx, frit_candidate *candidates, size_t n)
{
    own_stage *own = ctx;
    size_t kept = 0;
    own->n_calls++;
    own->n_seen = n;
    for (size_t i = 0; i < n; i++)
        if (candidates[i].token % 2 == 0) candidates[kept++] = candidates[i];
    for (size_t i = 0; i < kept / 2; i++) {
        const frit_candidate swap = candidates[i];
        candidates[i] = candidates[kept - 1 - i];
        candidates[kept - 1 - i] = swap;
    }
    for (size_t i = 0; i < kept; i++)
        if (candidates[i].token == 4) candidates[i].logit = -INFINITY;
    if (own->gives != 0) candidates[0].logit = own->gives;
    if (own->token != 0) candidates[0].token = own->token;
    return own->returns ? own->returns : kept;
}

static void a_stage_of_its_own_changes_candidates(void **state)
{
    (void)state;
    static const float logits[10] = {1, 9, 2, 9, 8, 9, 3, 9, 2.5f, 9};
    own_stage own = {0};
    frit_sampler *greedy = make_sampler(10, (frit_sampler_options){.stage = keep_even, .stage_ctx = &own});
    assert_int_equal(sample(greedy, logits), 6);
    assert_int_equal(own.n_calls, 1);
    assert_int_equal(own.n_seen, 10);
    frit_sampler_free(greedy);
    int counts[10];
    count_draws((frit_sampler_options){.temp = 1, .top_k = 2, .stage = keep_even, .stage_ctx = &own, .seed = 3}, logits,
                10, 200, counts);
    assert_true(counts[6] > 0 && counts[8] > 0 && counts[6] + counts[8] == 200);
    // The order is top-k first: the two likeliest tokens are odd, so no candidate is left.
    frit_sampler *late =
        make_sampler(10, (frit_sampler_options){
                             .temp = 1, .top_k = 2, .stage = keep_even, .stage_ctx = &own, .samplers = "top-k,custom"});
    frit_token token;
    assert_fails(frit_sampler_sample(late, logits, &token), FRIT_E_INVALID, "leaves 0 of 2 candidates");
    frit_sampler_free(late);
}

static void a_stage_that_goes_wrong_is_refused(void **state)
{
    (void)state;
    static const float logits[10] = {0};
    const struct {
        own_stage own;
        const char *part;
    } cases[] = {
        {{.returns = 11}, "leaves 11 of 10 candidates; expected 1 to 10"},
        {{.returns = SIZE_MAX}, "of 10 candidates"},
        {{.gives = NAN}, "the logit"},
        {{.gives = INFINITY}, "the logit inf"},
        {{.token = 10}, "gives token 10; expected 0 to 9"},
        {{.token = -1}, "gives token -1"},
    };
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        own_stage own = cases[i].own;
        frit_token token = -7;
        frit_sampler *s = make_sampler(10, (frit_sampler_options){.temp = 1, .stage = keep_even, .stage_ctx = &own});
        assert_fails(frit_sampler_sample(s, logits, &token), FRIT_E_INVALID, cases[i].part);
        assert_int_equal(token, -7);
        own = (own_stage){0};
        assert_int_equal(sample(s, logits) % 2, 0);   // the next draw may succeed
        frit_sampler_free(s);
    }
}

// ------------------------------------------------------------------------------- log-probabilities

static void logprobs_are_those_of_the_softmax(void **state)
{
    (void)state;
    enum { VOCAB = 5000 };
    static float logits[VOCAB];
    static double p[VOCAB];
    frit_logprob top[40], some[3] = {{.token = 4999}, {.token = 0}, {.token = 17}};
    frit_rng rng;
    frit_rng_init(&rng, 5);
    random_normal(&rng, logits, VOCAB, 3);
    for (int i = 0; i < VOCAB; i++) logits[i] = floorf(logits[i] * 4) / 4;   // many logits are equal
    logits[17] = -INFINITY;
    softmax(logits, VOCAB, 1, p);
    for (int i = 0; i < VOCAB; i++) logits[i] += 1000;   // exp of these logits overflows double
    for (size_t n = 0; n <= FRIT_COUNT(top); n += 8) {
        assert_ok(frit_logprobs_top(logits, VOCAB, top, n));
        for (size_t i = 0; i < n; i++) {
            assert_true(fabs((double)top[i].logprob - log(p[top[i].token])) < 1e-5);
            size_t n_before = 0;
            for (frit_token t = 0; t < VOCAB; t++)
                n_before += logits[t] > logits[top[i].token] || (logits[t] == logits[top[i].token] && t < top[i].token);
            assert_int_equal(n_before, i);
        }
    }
    assert_ok(frit_logprobs_of(logits, VOCAB, some, 3));
    assert_true(fabs((double)some[0].logprob - log(p[4999])) < 1e-5);
    assert_true(some[2].logprob == -INFINITY);
    assert_ok(frit_logprobs_top(logits, 1, top, 1));
    assert_true(top[0].token == 0 && top[0].logprob == 0);
}

static void logprobs_of_bad_logits_are_refused(void **state)
{
    (void)state;
    const float bad[] = {1, NAN, 2}, large[] = {1, INFINITY}, none[] = {-INFINITY, -INFINITY}, good[] = {1, 2};
    frit_logprob top[4] = {{.token = 2}};
    assert_fails(frit_logprobs_top(bad, 3, top, 1), FRIT_E_INVALID, "NaN");
    assert_fails(frit_logprobs_top(large, 2, top, 1), FRIT_E_INVALID, "infinity");
    assert_fails(frit_logprobs_top(none, 2, top, 1), FRIT_E_INVALID, "-infinity");
    assert_fails(frit_logprobs_top(good, 0, top, 0), FRIT_E_INVALID, "0 logits");
    assert_fails(frit_logprobs_top(good, 2, top, 3), FRIT_E_INVALID, "3 likeliest of 2");
    assert_fails(frit_logprobs_of(good, 2, top, 1), FRIT_E_INVALID, "token 0 of 1 is 2; expected 0 to 1");
    top[0].token = -1;
    assert_fails(frit_logprobs_of(good, 2, top, 1), FRIT_E_INVALID, "is -1; expected 0 to 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_takes_the_lowest_id_among_equals),
        cmocka_unit_test(a_draw_depends_on_its_position_alone),
        cmocka_unit_test(draws_follow_the_softmax),
        cmocka_unit_test(a_wrong_temperature_would_be_noticed),
        cmocka_unit_test(top_k_keeps_the_k_likeliest),
        cmocka_unit_test(top_p_keeps_the_smallest_set_with_the_probability),
        cmocka_unit_test(min_p_drops_what_is_much_less_likely_than_the_best),
        cmocka_unit_test(top_n_sigma_drops_what_is_far_below_the_best),
        cmocka_unit_test(top_n_sigma_does_not_count_banned_tokens),
        cmocka_unit_test(penalties_follow_their_formulas),
        cmocka_unit_test(the_penalty_window_forgets_older_tokens),
        cmocka_unit_test(logit_bias_moves_and_bans_tokens),
        cmocka_unit_test(the_order_of_stages_is_the_callers),
        cmocka_unit_test(the_same_seed_gives_the_same_tokens),
        cmocka_unit_test(partial_sorting_agrees_with_a_full_sort),
        cmocka_unit_test(a_large_vocabulary_gives_the_same_set_by_every_path),
        cmocka_unit_test(extreme_logits_stay_in_range),
        cmocka_unit_test(logits_that_are_not_finite_are_refused),
        cmocka_unit_test(a_stage_of_its_own_changes_candidates),
        cmocka_unit_test(a_stage_that_goes_wrong_is_refused),
        cmocka_unit_test(logprobs_are_those_of_the_softmax),
        cmocka_unit_test(logprobs_of_bad_logits_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
