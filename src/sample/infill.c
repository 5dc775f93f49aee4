// SPDX-License-Identifier: MIT
// infill: for filling in the middle, after top-k or top-p (llama.cpp, infill). It ends the text if end tokens are
// likely. Otherwise it merges pairs of tokens in which one is a prefix of the other, and drops unlikely tokens.
//
//     1. only tokens that end an answer stay if 3 n p(end) > p(others), for n candidates
//     2. if a token is a prefix of another, the likelier of both gets the probability of both
//     3. others with less than 0.2 are dropped; if none is left, the end-of-turn token stays
//     4. of the rest, others with less than 1 / (number of others + 1) are dropped
//
// Tokens that end an answer stay. Logits do not change.
#include "sample/sampler.h"
#include "text/vocab/vocab.h"

#include <math.h>

enum { MAX_PAIRED = 512 };   // most candidates whose pairs are compared: the likeliest

bool frit_infill_is_on(const frit_sampler_options *options)
{
    return options->temp > 0;
}

static bool is_end(const frit_sampler *sampler, frit_token token)
{
    return token < sampler->texts.vocab->n && sampler->texts.vocab->entries[token].is_end;
}

static frit_str piece_of(const frit_sampler *sampler, frit_token token)
{
    return token < sampler->texts.vocab->n ? sampler->texts.pieces[token] : (frit_str){"", 0};
}

static bool begins_with(frit_str text, frit_str prefix)
{
    return prefix.len > 0 && prefix.len <= text.len && memcmp(text.ptr, prefix.ptr, prefix.len) == 0;
}

// `dropped` marks tokens whose probability was added to another token.
static void join_prefixes(const frit_sampler *sampler, const frit_candidates *candidates, double *p, bool *dropped)
{
    for (int32_t i = 0; i < candidates->n; i++)
        for (int32_t k = 0; k < candidates->n && !dropped[i]; k++) {
            const frit_str a = piece_of(sampler, candidates->items[i].token);
            if (i == k || dropped[k] || !begins_with(piece_of(sampler, candidates->items[k].token), a)) continue;
            const int32_t to = p[k] > p[i] ? k : i, from = to == k ? i : k;
            p[to] += p[from];
            dropped[from] = true;
        }
}

// Drops the others with less than `least`; returns the number of others that stay.
static int32_t drop_below(const frit_sampler *sampler, frit_candidates *candidates, double *p, const bool *dropped,
                          double least)
{
    int32_t n = 0, n_others = 0;
    double sum = 0;
    for (int32_t i = 0; i < candidates->n; i++) {
        const bool ends = is_end(sampler, candidates->items[i].token);
        if ((dropped && dropped[i]) || (p[i] < least && !ends)) continue;
        n_others += !ends;
        sum += p[n] = p[i];
        candidates->items[n++] = candidates->items[i];
    }
    for (int32_t i = 0; i < n; i++) p[i] /= sum;
    candidates->n = n;
    return n_others;
}

static void keep_ends(const frit_sampler *sampler, frit_candidates *candidates)
{
    int32_t n = 0;
    for (int32_t i = 0; i < candidates->n; i++)
        if (is_end(sampler, candidates->items[i].token)) candidates->items[n++] = candidates->items[i];
    candidates->n = n;
}

static void choose_likely(const frit_sampler *sampler, frit_candidates *candidates, const frit_softmax_sums *softmax)
{
    const frit_vocab *vocab = sampler->texts.vocab;
    const frit_token end = vocab->eot >= 0 ? vocab->eot : vocab->eos;
    const frit_candidate likeliest = candidates->items[0];
    double p[MAX_PAIRED];
    bool dropped[MAX_PAIRED] = {false};
    for (int32_t i = 0; i < candidates->n; i++) p[i] = frit_softmax_probability(softmax, candidates->items[i].logit);
    join_prefixes(sampler, candidates, p, dropped);
    const int32_t n_others = drop_below(sampler, candidates, p, dropped, 0.2);
    if (n_others > 0) {
        drop_below(sampler, candidates, p, NULL, 1.0 / (n_others + 1));
    } else {
        candidates->n = 1;
        candidates->items[0] = end >= 0 ? (frit_candidate){end, 1} : likeliest;
    }
}

void frit_infill_apply(frit_sampler *sampler, frit_candidates *candidates)
{
    const frit_softmax_sums softmax = frit_candidates_softmax(candidates);
    if (softmax.max == -INFINITY) return;
    double ends = 0, others = 0;
    for (int32_t i = 0; i < candidates->n; i++) {
        const double p = frit_softmax_probability(&softmax, candidates->items[i].logit);
        *(is_end(sampler, candidates->items[i].token) ? &ends : &others) += p;
    }
    if (3 * ends * candidates->n > others) {
        keep_ends(sampler, candidates);
        return;
    }
    frit_candidates_sort(candidates, candidates->n > MAX_PAIRED ? MAX_PAIRED : candidates->n);
    if (candidates->n > MAX_PAIRED) candidates->n = MAX_PAIRED;
    candidates->sorted = true;
    choose_likely(sampler, candidates, &softmax);
    candidates->sorted = false;
}
