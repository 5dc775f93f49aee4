// SPDX-License-Identifier: MIT
// Stages against a second, plain implementation of their formulas: the candidates that stay, the distribution of draws
// (chi-square), learning from drawn tokens, and the order of stages.
#include "sample/samplers_of.h"
#include "support/support.h"

#include "base/philox.h"
#include "frit_tools.h"
#include "sample/sampler.h"
#include "text/vocab/vocab.h"

#include <math.h>

enum { N = 10, DRAWS = 50000, MAX = 300 };
static const float logits10[N] = {1.0f, 3.0f, 0.5f, 2.5f, -1.0f, 2.0f, 0.0f, 1.5f, -3.0f, 2.75f};
static const double chi_limit_9 = 27.88;   // 9 degrees of freedom, one in a thousand

static void softmax(const float *logits, int n, double temp, double *p)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += p[i] = exp((double)logits[i] / temp);
    for (int i = 0; i < n; i++) p[i] /= sum;
}

static double entropy_of(const double *p, int n)
{
    double h = 0;
    for (int i = 0; i < n; i++)
        if (p[i] > 0) h -= p[i] * log(p[i]);
    return h;
}

static void keep(double *p, const bool *kept, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += p[i] = kept[i] ? p[i] : 0;
    for (int i = 0; i < n; i++) p[i] /= sum;
}

// Pearson's statistic of draws at many positions; cells that should be empty must be. The sampler is freed.
static double chi_square(frit_sampler *sampler, const float *logits, const double *p)
{
    int counts[N] = {0};
    double chi = 0;
    for (int i = 0; i < DRAWS; i++) {
        assert_ok(frit_sampler_set_position(sampler, (uint64_t)i));
        counts[sample(sampler, logits)]++;
    }
    for (int i = 0; i < N; i++) {
        const double expected = p[i] * DRAWS;
        if (p[i] == 0) assert_int_equal(counts[i], 0);
        if (p[i] > 0) chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    frit_sampler_free(sampler);
    return chi;
}

static void by_probability(const double *p, int n, int *order)
{
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at > 0 && p[order[at - 1]] < p[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
}

// ------------------------------------------------------------------------------- stages without a memory

static void dynamic_temperature_follows_the_entropy(void **state)
{
    (void)state;
    double p[N];
    softmax(logits10, N, 1, p);
    const double temp = 0.4 + (1.6 - 0.4) * pow(entropy_of(p, N) / log(N), 2);
    softmax(logits10, N, temp, p);
    assert_true(chi_square(make(N, NULL, "temp=1 dynatemp-range=0.6 dynatemp-exponent=2"), logits10, p) < chi_limit_9);
    softmax(logits10, N, 1, p);
    assert_true(chi_square(make(N, NULL, "temp=1 dynatemp-range=0.6 dynatemp-exponent=2"), logits10, p) > chi_limit_9);
    // A range wider than the temperature begins at 0: nearly no entropy gives nearly greedy draws.
    const float peaked[N] = {0, 12, 11.9f};
    frit_sampler *sampler = make(N, NULL, "temp=1 dynatemp-range=2 top-k=2 dynatemp-exponent=100");
    for (int i = 0; i < 50; i++) {
        frit_sampler_set_position(sampler, (uint64_t)i);
        assert_in_range(sample(sampler, peaked), 1, 2);
    }
    frit_sampler_free(sampler);
}

// By definition: the nearest to the entropy first, until the sum exceeds `wanted`.
static void typical_set(const double *p, int n, double wanted, bool *kept)
{
    const double h = entropy_of(p, n);
    double sum = 0;
    memset(kept, 0, (size_t)n * sizeof *kept);
    while (sum <= wanted) {
        int best = -1;
        for (int i = 0; i < n; i++)
            if (!kept[i] && (best < 0 || fabs(-log(p[i]) - h) < fabs(-log(p[best]) - h))) best = i;
        if (best < 0) return;
        kept[best] = true;
        sum += p[best];
    }
}

static void tail_free_set(const double *p, int n, double z, bool *kept)
{
    int order[MAX];
    double second[MAX], total = 0, sum = 0;
    by_probability(p, n, order);
    for (int i = 0; i < n; i++) kept[i] = true;
    for (int i = 0; i + 2 < n; i++)
        total += second[i] = fabs((p[order[i]] - p[order[i + 1]]) - (p[order[i + 1]] - p[order[i + 2]]));
    for (int i = 0; i + 2 < n; i++) {
        sum += second[i] / total;
        if (sum <= z || i == 0) continue;
        for (int k = i; k < n; k++) kept[order[k]] = false;
        return;
    }
}

static void check_sets(const char *format, void (*apply)(frit_sampler *, frit_candidates *),
                       void (*set)(const double *p, int n, double by, bool *kept))
{
    frit_rng rng;
    frit_rng_init(&rng, 3);
    for (int round = 0; round < 300; round++) {
        const int n = (int)random_between(&rng, 1, round % 3 ? 30 : MAX);
        float logits[MAX];
        frit_candidate items[MAX];
        double p[MAX];
        bool kept[MAX];
        char text[64];
        random_normal(&rng, logits, (size_t)n, round % 2 ? 1 : 4);
        for (int i = 0; i < n; i++) items[i] = (frit_candidate){i, logits[i]};
        const int by = (int)random_between(&rng, 1, 99);
        snprintf(text, sizeof text, format, by);
        softmax(logits, n, 1, p);
        set(p, n, by / 100.0, kept);
        frit_sampler *sampler = make(n, NULL, text);
        frit_candidates candidates = {.items = items, .n = n};
        apply(sampler, &candidates);
        int n_kept = 0;
        for (int i = 0; i < n; i++) n_kept += kept[i];
        assert_int_equal(candidates.n, n_kept);
        for (int i = 0; i < candidates.n; i++) {
            assert_true(kept[candidates.items[i].token]);
            assert_true(candidates.items[i].logit == logits[candidates.items[i].token]);
        }
        frit_sampler_free(sampler);
    }
}

static void typical_keeps_what_is_nearest_to_the_entropy(void **state)
{
    (void)state;
    double p[N];
    bool kept[N];
    softmax(logits10, N, 1, p);
    typical_set(p, N, 0.4, kept);
    assert_false(kept[1]);   // the likeliest token is not typical here
    keep(p, kept, N);
    assert_true(chi_square(make(N, NULL, "temp=1 typical-p=0.4"), logits10, p) < chi_limit_9);
    check_sets("temp=1 typical-p=0.%02d", frit_typical_apply, typical_set);
}

static void tail_free_drops_the_tail(void **state)
{
    (void)state;
    double p[N];
    bool kept[N];
    softmax(logits10, N, 1, p);
    tail_free_set(p, N, 0.5, kept);
    keep(p, kept, N);
    assert_true(chi_square(make(N, NULL, "temp=1 tfs-z=0.5"), logits10, p) < chi_limit_9);
    check_sets("temp=1 tfs-z=0.%02d", frit_tail_free_apply, tail_free_set);
}

static void xtc_sometimes_leaves_out_the_top_choices(void **state)
{
    (void)state;
    double p[N], without[N];
    bool kept[N];
    softmax(logits10, N, 1, p);
    int order[N], n_above = 0;
    by_probability(p, N, order);
    while (n_above < N && p[order[n_above]] >= 0.12) n_above++;
    assert_in_range(n_above, 3, N - 2);
    for (int i = 0; i < N; i++) kept[order[i]] = i >= n_above - 1;
    memcpy(without, p, sizeof p);
    keep(without, kept, N);
    assert_true(chi_square(make(N, NULL, "temp=1 xtc-probability=1 xtc-threshold=0.12"), logits10, without) <
                chi_limit_9);
    double mixed[N];
    for (int i = 0; i < N; i++) mixed[i] = 0.3 * without[i] + 0.7 * p[i];
    assert_true(chi_square(make(N, NULL, "temp=1 xtc-probability=0.3 xtc-threshold=0.12"), logits10, mixed) <
                chi_limit_9);
    // Off above one half, and if only one token reaches the threshold.
    assert_true(chi_square(make(N, NULL, "temp=1 xtc-probability=1 xtc-threshold=0.51"), logits10, p) < chi_limit_9);
    assert_true(chi_square(make(N, NULL, "temp=1 xtc-probability=1 xtc-threshold=0.28"), logits10, p) < chi_limit_9);
}

// ------------------------------------------------------------------------------- stages that learn

static void mirostat_2_set(const double *p, int n, double mu, bool *kept)
{
    int order[MAX];
    by_probability(p, n, order);
    for (int i = 0; i < n; i++) kept[order[i]] = i == 0 || -log2(p[order[i]]) <= mu;
}

static void mirostat_1_set(const double *p, int n, double mu, bool *kept)
{
    int order[MAX];
    double products = 0, squares = 0;
    by_probability(p, n, order);
    for (int i = 0; i < 99 && i < n - 1; i++) {
        const double t = log((double)(i + 2) / (i + 1)), b = log(p[order[i]] / p[order[i + 1]]);
        products += t * b;
        squares += t * t;
    }
    const double s = products / squares, e = s - 1;
    const double k = pow(e * pow(2, mu) / (1 - pow(n, -e)), 1 / s);
    for (int i = 0; i < n; i++) kept[order[i]] = i == 0 || i < (int)k;
}

static void check_mirostat(const char *text, void (*set)(const double *p, int n, double by, bool *kept))
{
    enum { VOCAB = 200, STEPS = 300 };
    frit_sampler *sampler = make(VOCAB, NULL, text);
    frit_rng rng;
    frit_rng_init(&rng, 2);
    double mu = 2 * 3.0, sum = 0;
    for (int i = 0; i < STEPS; i++) {
        float logits[VOCAB];
        double p[VOCAB];
        bool kept[VOCAB];
        random_normal(&rng, logits, VOCAB, 1.5f);
        softmax(logits, VOCAB, 0.9, p);
        set(p, VOCAB, mu, kept);
        keep(p, kept, VOCAB);
        const frit_token token = sample(sampler, logits);
        assert_int_equal(sample(sampler, logits), token);   // a token that was not accepted does not count
        assert_true(kept[token]);
        int n_kept = 0;
        for (int t = 0; t < VOCAB; t++) n_kept += kept[t];
        int n_seen = 0;
        for (int t = 0; t < VOCAB; t++)
            n_seen += kept[t] && fabs((double)sampler->probabilities[t] - p[t]) < 1e-5 * p[t] + 1e-9;
        assert_int_equal(n_seen, n_kept);
        assert_ok(frit_sampler_accept(sampler, token));
        mu -= 0.2 * (-log2(p[token]) - 3);
        assert_true(fabs(6 + sampler->learned - mu) < 1e-3);
        sum += -log2(p[token]);
        if (i % 10 == 0) assert_ok(frit_sampler_accept(sampler, 5));   // a token that was not sampled does not count
    }
    assert_true(fabs(sum / STEPS - 3) < 0.15);   // the mean surprise is near the target
    assert_ok(frit_sampler_reset(sampler));
    assert_true(sampler->learned == 0);
    frit_sampler_free(sampler);
}

static void mirostat_keeps_the_surprise_near_its_target(void **state)
{
    (void)state;
    check_mirostat("temp=0.9 mirostat=2 mirostat-tau=3 mirostat-eta=0.2", mirostat_2_set);
    check_mirostat("temp=0.9 mirostat=1 mirostat-tau=3 mirostat-eta=0.2", mirostat_1_set);
}

static void mirostat_draws_from_what_it_keeps(void **state)
{
    (void)state;
    double p[N];
    bool kept[N];
    softmax(logits10, N, 0.8, p);
    mirostat_2_set(p, N, 2 * 1.5, kept);
    keep(p, kept, N);
    assert_true(chi_square(make(N, NULL, "temp=0.8 mirostat=2 mirostat-tau=1.5"), logits10, p) < chi_limit_9);
}

static void adaptive_p_prefers_probabilities_near_its_target(void **state)
{
    (void)state;
    double p[N], changed[N];
    softmax(logits10, N, 1, p);
    double sum = 0;
    for (int i = 0; i < N; i++) {
        const double d = fabs(p[i] - 0.2) / 0.3;
        sum += changed[i] = exp(5 - 10 * d * d / (1 + d));
    }
    for (int i = 0; i < N; i++) changed[i] /= sum;
    assert_true(chi_square(make(N, NULL, "temp=1 adaptive-target=0.2"), logits10, changed) < chi_limit_9);
    frit_sampler *sampler = make(N, NULL, "temp=1 adaptive-target=0.2 adaptive-decay=0.75");
    double mean = 0.2;
    for (int i = 0; i < 100; i++) {
        const frit_token token = sample(sampler, logits10);
        assert_ok(frit_sampler_accept(sampler, token));
        mean = 0.75 * mean + 0.25 * p[token];
        assert_true(fabs(sampler->learned - (mean - 0.2)) < 1e-5);
    }
    frit_sampler_free(sampler);
}

// ------------------------------------------------------------------------------- stages that know texts

static void newlines_may_be_left_out_of_penalties(void **state)
{
    (void)state;
    static const frit_str lines[3] = {{"a", 1}, {"\n", 1}, {"b\n", 2}};
    static const frit_vocab three = {.n = 3};
    const float logits[3] = {1, 2, 1.5f};
    for (int on = 0; on < 2; on++) {
        frit_sampler *sampler =
            make(3, &(frit_sampler_texts){&three, lines},
                 on ? "presence-penalty=5 repeat-last-n=4 no-penalize-nl=true" : "presence-penalty=5 repeat-last-n=4");
        for (int i = 0; i < 20; i++) assert_ok(frit_sampler_accept(sampler, 1));
        assert_int_equal(sample(sampler, logits), on ? 1 : 2);
        assert_int_equal(sampler->counts[1], on ? 0 : 4);
        frit_token token;
        assert_ok(frit_sampler_run_chain(sampler, logits, &token));
        assert_int_equal(token, on ? 1 : 2);
        frit_sampler_free(sampler);
    }
}

// The newline is not counted if it turns out to be the token that was not known.
static void a_newline_may_be_the_token_that_is_not_known(void **state)
{
    (void)state;
    static const frit_str lines[3] = {{"a", 1}, {"\n", 1}, {"b\n", 2}};
    static const frit_vocab three = {.n = 3};
    for (int on = 0; on < 2; on++)
        for (frit_token unknown = 0; unknown < 3; unknown++) {
            frit_sampler *sampler = make(3, &(frit_sampler_texts){&three, lines},
                                         on ? "presence-penalty=5 no-penalize-nl=true" : "presence-penalty=5");
            frit_sampler_mark mark;
            frit_pick_lists lists = {.n_vocab = 3};
            frit_pick picks[2];
            assert_ok(frit_sampler_accept(sampler, 0));
            frit_sampler_try_count(sampler, -1, &mark);
            assert_ok(frit_sampler_add_pick(sampler, &lists, &picks[0]));
            frit_sampler_go_back(sampler, &mark);
            frit_pick_resolve(&lists, &picks[0], unknown);
            assert_ok(frit_sampler_accept(sampler, unknown));
            assert_ok(frit_sampler_add_pick(sampler, &lists, &picks[1]));
            assert_int_equal(picks[1].n_counts, 1 + (unknown == 2 || (unknown == 1 && !on)));
            assert_true(frit_sampler_has_counts(sampler, &lists, &picks[0], picks[1].n_counts));
            frit_pick_lists_free(&lists);
            frit_sampler_free(sampler);
        }
}

static void infill_ends_joins_and_drops(void **state)
{
    (void)state;
    static const frit_str words[8] = {{"<e>", 3}, {"he", 2}, {"hello", 5}, {"help", 4},
                                      {"x", 1},   {"y", 1},  {"z", 1},     {"w", 1}};
    frit_vocab_entry entries[8] = {{.is_end = true}};
    const frit_vocab vocab = {.n = 8, .entries = entries, .eot = 0, .eos = -1};
    const frit_sampler_texts texts = {&vocab, words};
    static const struct {
        float p[8];   // in thousandths
        int n, kept[3];
    } cases[] = {
        {{100, 300, 200, 200, 100, 100}, 1, {0}},    // 3 * 0.1 * 6 > 0.9
        {{1, 300, 200, 150, 200, 149}, 2, {0, 1}},   // "he" gets hello's and help's: x has 0.2, then less than a third
        {{1, 100, 250, 150, 300, 199}, 3, {0, 2, 4}},     // hello gets he's, help's stays
        {{1, 190, 1, 190, 180, 180}, 2, {0, 1}},          // he gets hello's, then help's
        {{1, 1, 166, 166, 166, 166, 166, 166}, 1, {0}},   // nothing has 0.2: the end
    };
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_candidate items[8];
        for (int t = 0; t < 8; t++) items[t] = (frit_candidate){t, logf(cases[i].p[t] / 1000)};
        frit_candidates candidates = {.items = items, .n = 8};
        frit_sampler *sampler = make(8, &texts, "temp=1 samplers=infill");
        frit_infill_apply(sampler, &candidates);
        assert_int_equal(candidates.n, cases[i].n);
        for (int k = 0; k < candidates.n; k++) {
            bool expected = false;
            for (int j = 0; j < cases[i].n; j++) expected |= candidates.items[k].token == cases[i].kept[j];
            assert_true(expected);
        }
        frit_sampler_free(sampler);
    }
}

// ------------------------------------------------------------------------------- the order

static void assert_order(const char *text, const char *expected)
{
    static const frit_str one[1] = {{"a", 1}};
    static const frit_vocab vocab = {.n = 1, .eot = -1, .eos = -1};
    static const char *const biases[] = {"0=1"};
    frit_sampler_options options = options_of(text);
    options.logit_bias = (frit_option_list){biases, 1};
    frit_sampler *sampler;
    assert_ok(frit_sampler_create_with(&sampler, 4, &(frit_sampler_texts){&vocab, one}, &options));
    char found[256] = "";
    for (int i = 0; i < sampler->n_stages; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", i ? " " : "", sampler->stages[i]->name);
    assert_string_equal(found, expected);
    frit_sampler_free(sampler);
}

#define ALL_ON                                                                                              \
    "temp=0.5 presence-penalty=1 dry-multiplier=1 top-n-sigma=1 top-k=2 typical-p=0.5 tfs-z=0.5 top-p=0.5 " \
    "min-p=0.1 xtc-probability=0.5 adaptive-target=0.1"

static void stages_run_in_the_order_of_the_list(void **state)
{
    (void)state;
    assert_order(ALL_ON, "logit-bias penalties dry top-n-sigma top-k typical tfs top-p min-p xtc temp adaptive-p");
    assert_order(ALL_ON " sampler-seq=edskypmxt",
                 "logit-bias penalties dry top-n-sigma top-k typical top-p min-p xtc temp");
    assert_order(ALL_ON " samplers=temperature;Top_K;typ_p;nucleus;infill",
                 "logit-bias temp top-k typical top-p infill");
    assert_order(ALL_ON " samplers=top_k,logit-bias,minp", "top-k logit-bias min-p");
    assert_order(ALL_ON " samplers=adaptive_p;temp;xtc", "logit-bias temp xtc adaptive-p");
    assert_order(ALL_ON " mirostat=2 samplers=top_k;penalties", "logit-bias temp mirostat");
    assert_order(ALL_ON " mirostat=1 sampler-seq=k", "logit-bias temp mirostat");
    assert_order("temp=0 mirostat=2 typical-p=0.5 tfs-z=0.5 xtc-probability=1 adaptive-target=0.5", "logit-bias");
}

static void bad_orders_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"samplers=top-k;tipical",
         "'tipical' is not the name of a stage; each of these can be given once: logit-bias,"},
        {"samplers=temp;temperature", "'temperature' occurs twice"},
        {"samplers=-", "'-' is not the name of a stage"},
        {"samplers=infill", "'infill' needs a vocabulary"},
        {"sampler-seq=kq",
         "sampler-seq: 'q' is not the letter of a stage; each of these can be given once: edskyfpmxita"},
        {"sampler-seq=kk", "'k' occurs twice"},
    };
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        const frit_sampler_options options = options_of(cases[i].text);
        frit_sampler *sampler;
        assert_fails(frit_sampler_create(&sampler, 10, &options), FRIT_E_INVALID, cases[i].part);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dynamic_temperature_follows_the_entropy),
        cmocka_unit_test(typical_keeps_what_is_nearest_to_the_entropy),
        cmocka_unit_test(tail_free_drops_the_tail),
        cmocka_unit_test(xtc_sometimes_leaves_out_the_top_choices),
        cmocka_unit_test(mirostat_keeps_the_surprise_near_its_target),
        cmocka_unit_test(mirostat_draws_from_what_it_keeps),
        cmocka_unit_test(adaptive_p_prefers_probabilities_near_its_target),
        cmocka_unit_test(newlines_may_be_left_out_of_penalties),
        cmocka_unit_test(a_newline_may_be_the_token_that_is_not_known),
        cmocka_unit_test(infill_ends_joins_and_drops),
        cmocka_unit_test(stages_run_in_the_order_of_the_list),
        cmocka_unit_test(bad_orders_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
