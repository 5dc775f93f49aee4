// SPDX-License-Identifier: MIT
// sample/samplers_of.h: samplers of options that are written as one text.
#pragma once
#include "frit_tools.h"
#include "sample/sampler.h"
#include "support/support.h"

// "temp=1 tfs-z=0.5": options by name.
static inline frit_sampler_options options_of(const char *text)
{
    frit_sampler_options options = {.seed = 5};
    static char copy[512];   // text options point into it
    snprintf(copy, sizeof copy, "%s", text);
    for (char *at = copy; *at;) {
        char *end = at + strcspn(at, " "), *value = strchr(at, '=');
        const bool is_last = *end == 0;
        *end = 0;
        *value = 0;
        assert_ok(frit_sampler_set_option(&options, at, value + 1));
        at = is_last ? end : end + 1;
    }
    return options;
}

static inline frit_sampler *make(int32_t n_vocab, const frit_sampler_texts *texts, const char *text)
{
    frit_sampler *sampler;
    const frit_sampler_options options = options_of(text);
    assert_ok(frit_sampler_create_with(&sampler, n_vocab, texts, &options));
    return sampler;
}

static inline frit_token sample(frit_sampler *sampler, const float *logits)
{
    frit_token token = -1;
    assert_ok(frit_sampler_sample(sampler, logits, &token));
    return token;
}
