// SPDX-License-Identifier: MIT
// Log-probabilities of logits: the logarithm of their softmax, with sums in double.
#include "sample/sampler.h"
#include "sample/weight.h"

#include <math.h>

typedef struct softmax {
    double max, log_sum;   // log_sum: logarithm of the sum of exp(logit)
} softmax;

// Sums e^(logit - max) in the order of picks (weight.h).
static double sum_exp(const float *logits, int64_t n, float max)
{
    const int64_t size = frit_block_size((int32_t)n);
    double sum = 0;
    for (int64_t begin = 0; begin < n; begin += size) {
        double lanes[FRIT_LANES] = {0};
        for (int64_t i = begin; i < begin + size && i < n; i += FRIT_CHUNK) {
            float rest[FRIT_CHUNK];
            for (int32_t j = 0; n - i < FRIT_CHUNK && j < FRIT_CHUNK; j++)
                rest[j] = j < n - i ? logits[i + j] : -INFINITY;
            frit_lanes_add_exp(lanes, n - i < FRIT_CHUNK ? rest : logits + i, max);
        }
        sum += frit_lanes_sum(lanes);
    }
    return sum;
}

static frit_status measure_logits(const float *logits, size_t n_vocab, softmax *out)
{
    bool good = n_vocab > 0 && n_vocab <= INT32_MAX;
    out->max = -INFINITY;
    for (size_t i = 0; i < n_vocab && good; i++) {
        good = logits[i] < INFINITY;   // false for NaN too
        if ((double)logits[i] > out->max) out->max = (double)logits[i];
    }
    if (!good || out->max == -INFINITY)
        return frit_fail(FRIT_E_INVALID,
                         n_vocab == 0 || n_vocab > INT32_MAX ? "%zu logits; expected 1 to 2^31 - 1"
                         : good                              ? "all of %zu logits are -infinity; expected a finite one"
                                : "%zu logits have a NaN or +infinity; expected finite numbers",
                         n_vocab);
    out->log_sum = out->max + log(sum_exp(logits, (int64_t)n_vocab, (float)out->max));
    return FRIT_OK;
}

static float logprob_of(const softmax *s, float logit)
{
    return (float)((double)logit - s->log_sum);
}

// True if a comes before b. `logprob` has the logit.
static bool is_before(frit_logprob a, frit_logprob b)
{
    return a.logprob > b.logprob || (a.logprob == b.logprob && a.token < b.token);
}

// Restores the heap below i. A parent comes after its children.
static void sift_down(frit_logprob *heap, size_t n, size_t i)
{
    const frit_logprob moved = heap[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && is_before(heap[child], heap[child + 1])) child++;
        if (!is_before(moved, heap[child])) break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
}

// Collects the best in a heap with the worst as root, then sorts it in place.
static void select_top(const float *logits, size_t n_vocab, frit_logprob *top, size_t n_top)
{
    for (size_t i = 0; i < n_top; i++) top[i] = (frit_logprob){(frit_token)i, logits[i]};
    for (size_t i = n_top / 2; i-- > 0;) sift_down(top, n_top, i);
    for (size_t i = n_top; i < n_vocab; i++) {
        const frit_logprob item = {(frit_token)i, logits[i]};
        if (!is_before(item, top[0])) continue;
        top[0] = item;
        sift_down(top, n_top, 0);
    }
    for (size_t end = n_top; end-- > 1;) {
        const frit_logprob worst = top[0];
        top[0] = top[end];
        top[end] = worst;
        sift_down(top, end, 0);
    }
}

frit_status frit_logprobs_top(const float *logits, size_t n_vocab, frit_logprob *top, size_t n_top)
{
    softmax s;
    FRIT_REQUIRE(logits);
    FRIT_REQUIRE_ITEMS(top, n_top);
    FRIT_TRY(measure_logits(logits, n_vocab, &s));
    if (n_top > n_vocab)
        return frit_fail(FRIT_E_INVALID, "the %zu likeliest of %zu tokens are asked for; expected at most %zu", n_top,
                         n_vocab, n_vocab);
    if (n_top == 0) return FRIT_OK;
    select_top(logits, n_vocab, top, n_top);
    for (size_t i = 0; i < n_top; i++) top[i].logprob = logprob_of(&s, top[i].logprob);
    return FRIT_OK;
}

frit_status frit_logprobs_of(const float *logits, size_t n_vocab, frit_logprob *tokens, size_t n_tokens)
{
    softmax s;
    FRIT_REQUIRE(logits);
    FRIT_REQUIRE_ITEMS(tokens, n_tokens);
    FRIT_TRY(measure_logits(logits, n_vocab, &s));
    for (size_t i = 0; i < n_tokens; i++)
        if (tokens[i].token < 0 || (size_t)tokens[i].token >= n_vocab)
            return frit_fail(FRIT_E_INVALID, "token %zu of %zu is %d; expected 0 to %zu", i, n_tokens, tokens[i].token,
                             n_vocab - 1);
    for (size_t i = 0; i < n_tokens; i++) tokens[i].logprob = logprob_of(&s, logits[tokens[i].token]);
    return FRIT_OK;
}
