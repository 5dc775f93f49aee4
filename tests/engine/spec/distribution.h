// SPDX-License-Identifier: MIT
// engine/spec/distribution.h: checks that texts with drafts have the distribution of the model's logits.
#pragma once
#include "support/support.h"
#include "support/tiny_model.h"

#include "frit.h"
#include "sample/sampler.h"

#include <math.h>

enum { DRAWN_PROMPT = 5 };

// Computes the probabilities of the token after the prompt or, if `more` is not negative, after one more token.
static void probabilities(frit_engine *engine, frit_session *session, const frit_token *prompt, frit_token more,
                          double *p)
{
    double sum = 0;
    assert_ok(frit_session_truncate(session, 0));
    assert_ok(frit_session_push(session, prompt, DRAWN_PROMPT, NULL));
    if (more >= 0) assert_ok(frit_session_push(session, &more, 1, NULL));
    while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(engine, NULL));
    const float *logits = frit_session_logits(session);
    for (int t = 0; t < TINY_VOCAB; t++) sum += p[t] = exp((double)logits[t] / 0.5);
    for (int t = 0; t < TINY_VOCAB; t++) p[t] /= sum;
}

// Finds the x most likely to continue in "5 x 5 x 5 x": drafts from the text are then usually right.
static void find_prompt(frit_engine *engine, frit_session *session, frit_token prompt[DRAWN_PROMPT])
{
    double most = 0, p[TINY_VOCAB];
    frit_token best = 9;
    for (frit_token x = 4; x < TINY_VOCAB; x++) {
        probabilities(engine, session, (const frit_token[DRAWN_PROMPT]){5, x, 5, x, 5}, -1, p);
        if (p[x] > most) best = x, most = p[x];
    }
    for (int i = 0; i < DRAWN_PROMPT; i++) prompt[i] = i % 2 ? best : 5;
}

static void draw(frit_session *session, const frit_token *prompt, int n_draws, int *counts)
{
    for (int i = 0; i < n_draws; i++) {
        frit_sampler *sampler;
        frit_token tokens[3];
        assert_ok(frit_sampler_create(&sampler, TINY_VOCAB,
                                      &(frit_sampler_options){.temp = 0.5f, .seed = (uint64_t)i * 7919 + 1}));
        assert_ok(frit_session_truncate(session, DRAWN_PROMPT - 1));
        assert_ok(frit_session_push(session, prompt + DRAWN_PROMPT - 1, 1, NULL));
        for (size_t n = 0, n_more; n < 2; n += n_more)
            assert_ok(frit_session_next_tokens(session, sampler, tokens + n, 3 - n, &n_more));
        counts[tokens[1]]++;
        frit_sampler_free(sampler);
    }
}

// Compares the second token of 20,000 texts that begin with a prompt with the model's logits, by chi-square. The draws
// are the same in every run.
static void expect_distribution(frit_engine *engine, const frit_speculate_options *options)
{
    enum { DRAWS = 20000 / FRIT_TEST_STRIDE, LEAST = 8 };
    double expected[TINY_VOCAB] = {0}, first[TINY_VOCAB], second[TINY_VOCAB], chi = 0, rest = 0, n_rest = 0;
    int counts[TINY_VOCAB] = {0}, n_classes = 0;
    frit_speculate_options all = *options;
    frit_token prompt[DRAWN_PROMPT];
    frit_session *session;
    frit_speculation_info info;
    assert_ok(frit_session_new(&session, engine));
    find_prompt(engine, session, prompt);
    probabilities(engine, session, prompt, -1, first);
    for (frit_token a = 0; a < TINY_VOCAB; a++) {
        probabilities(engine, session, prompt, a, second);
        for (int t = 0; t < TINY_VOCAB; t++) expected[t] += first[a] * second[t];
    }
    all.always = true;
    all.max_drafts = 2;
    assert_ok(frit_session_truncate(session, 0));
    assert_ok(frit_session_speculate(session, &all));
    assert_ok(frit_session_push(session, prompt, DRAWN_PROMPT, NULL));
    draw(session, prompt, DRAWS, counts);
    for (int t = 0; t < TINY_VOCAB; t++) {
        const double n = DRAWS * expected[t];
        if (n < LEAST) {
            rest += n, n_rest += counts[t];
            continue;
        }
        chi += (counts[t] - n) * (counts[t] - n) / n;
        n_classes++;
    }
    if (rest > 0) chi += (n_rest - rest) * (n_rest - rest) / rest;
    assert_ok(frit_session_get_speculation(session, &info));
    print_message("%d draws, chi-square %.1f of %d classes, %d of %d drafts right\n", DRAWS, chi, n_classes,
                  (int)info.n_accepted, (int)info.n_drafted);
    assert_true(n_classes > 10);
    assert_true(chi < n_classes + 5 * sqrt(2.0 * n_classes));   // five deviations above the expected value
    assert_true(info.n_accepted > DRAWS / 100 && info.n_accepted < info.n_drafted);
    frit_session_free(session);
}
