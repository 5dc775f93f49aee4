// SPDX-License-Identifier: MIT
// sample/random_picks.h: logits and samplers of many kinds, for tests of picks.
#pragma once
#include "sample/sampler.h"
#include "support/support.h"

#include <math.h>

// Makes logits of many shapes: peaked, flat, with equal values, with banned tokens, zeros of both signs, and extreme
// values.
static inline void random_logits(frit_rng *rng, float *logits, int32_t n, int shape)
{
    random_normal(rng, logits, (size_t)n, shape % 3 == 0 ? 0.3f : shape % 3 == 1 ? 3 : 12);
    for (int32_t i = 0; i < n; i++) {
        if (shape % 4 == 1) logits[i] = floorf(logits[i] * 2) / 2;
        if (shape % 7 == 2) logits[i] = logits[i] > 1 ? 1 : logits[i] < 0 ? -0.0f : 0;
        if (shape % 5 == 3 && random_between(rng, 0, 2) > 0) logits[i] = -INFINITY;
        if (shape % 11 == 4) logits[i] *= 1e37f;
        if (shape % 13 == 5) logits[i] = 2.5f;
    }
    if (shape % 5 == 3) logits[random_between(rng, 0, n - 1)] = 0.5f;
}

static inline float one_of(frit_rng *rng, const float *values, int n)
{
    return values[random_between(rng, 0, n - 1)];
}
#define ONE_OF(...) one_of(rng, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

static inline frit_sampler *random_sampler(frit_rng *rng, int32_t n_vocab)
{
    static char text[4][32];
    static const char *biases[4] = {text[0], text[1], text[2], text[3]};
    for (int i = 0; i < 4; i++)
        snprintf(text[i], sizeof text[i], i < 3 ? "%d=%d" : "%d=-inf", (int)random_between(rng, 0, n_vocab - 1),
                 (int)random_between(rng, -5, 12));
    frit_sampler_options options = {
        .temp = ONE_OF(0, 1, 0.8f, 0.8f, 2, 1e-30f, 1000, 0.1f),
        .top_k = (int32_t)ONE_OF(0, 0, 1, 40, 40, 256, 257, 1000, 1e9f),
        .top_p = ONE_OF(0, 0.95f, 0.5f, 0.999f, 1, 1e-6f, 0.9999999f),
        .min_p = ONE_OF(0, 0, 0.05f, 0.5f, 1e-6f, 1),
        .repeat_penalty = ONE_OF(0, 0, 1.3f, 1e-30f),
        .frequency_penalty = ONE_OF(0, 0, 0.5f, -1),
        .presence_penalty = ONE_OF(0, 0, 1, -100),
        .repeat_last_n = (int32_t)ONE_OF(0, 1, 5, 300, -1),
        .seed = frit_rng_next(rng),
        .logit_bias = {biases, random_between(rng, 0, 2) == 0 ? 4 : 0},
    };
    options.more[FRIT_STAGE_VALUE_top_n_sigma].number = ONE_OF(0, 0, 0, 1, 0.3f, 3);
    frit_sampler *sampler;
    assert_ok(frit_sampler_create(&sampler, n_vocab, &options));
    assert_true(sampler->is_pick);
    for (int64_t i = random_between(rng, 0, 400); i > 0; i--)
        assert_ok(frit_sampler_accept(sampler, (frit_token)random_between(rng, 0, n_vocab - 1)));
    return sampler;
}

// Token t has the text 'a' + t % 3, or no text.
static inline void force(frit_sampler *sampler, frit_str *pieces, int32_t n_vocab)
{
    for (int32_t t = 0; t < n_vocab; t++)
        pieces[t] = (frit_str){t % 5 == 4 ? "" : (const char *)"a\0b\0c" + t % 3 * 2, t % 5 == 4 ? 0 : 1};
    assert_ok(frit_sampler_force_prefix(sampler, pieces, frit_str_of("cab")));
}
