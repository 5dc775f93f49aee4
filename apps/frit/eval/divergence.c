// SPDX-License-Identifier: MIT
// Statistics of two models' predictions of a text.
#include "frit/eval/divergence.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

static double log_sum_of(const float *logits, size_t n_vocab)
{
    float largest = logits[0];
    double sum = 0;
    for (size_t v = 1; v < n_vocab; v++) largest = logits[v] > largest ? logits[v] : largest;
    for (size_t v = 0; v < n_vocab; v++) sum += exp((double)logits[v] - largest);
    return log(sum) + largest;
}

double divergence_loss(const float *logits, size_t n_vocab, frit_token next)
{
    return log_sum_of(logits, n_vocab) - logits[next];
}

void divergence_log_probs(const float *logits, size_t n_vocab, float *log_probs)
{
    const double log_sum = log_sum_of(logits, n_vocab);
    for (size_t v = 0; v < n_vocab; v++) log_probs[v] = (float)((double)logits[v] - log_sum);
}

static bool reserve(divergence *d)
{
    if (d->n < d->capacity) return true;
    const size_t capacity = d->capacity > 0 ? 2 * d->capacity : 1024;
    double *kl = realloc(d->kl, capacity * sizeof *kl);
    if (kl) d->kl = kl;
    double *change = realloc(d->change, capacity * sizeof *change);
    if (change) d->change = change;
    d->failed = !kl || !change;
    if (!d->failed) d->capacity = capacity;
    return !d->failed;
}

// Adds the sum of p log(p / q), where p is the base's.
void divergence_add(divergence *d, const float *base_log_probs, const float *logits, size_t n_vocab, frit_token next)
{
    if (!reserve(d)) return;
    const double log_sum = log_sum_of(logits, n_vocab);
    size_t top = 0, base_top = 0;
    double kl = 0;
    for (size_t v = 0; v < n_vocab; v++) {
        const double base = base_log_probs[v];
        if (base > -KL_DEEPEST) kl += exp(base) * (base - (logits[v] - log_sum));
        if (logits[v] > logits[top]) top = v;
        if (base_log_probs[v] > base_log_probs[base_top]) base_top = v;
    }
    const double loss = log_sum - logits[next], base_loss = -(double)base_log_probs[next];
    d->kl[d->n] = kl;
    d->change[d->n++] = exp(-loss) - exp(-base_loss);
    d->sum += loss;
    d->sum_squares += loss * loss;
    d->sum_base += base_loss;
    d->sum_base_squares += base_loss * base_loss;
    d->sum_products += loss * base_loss;
    d->n_same_top += top == base_top;
}

// ---------------------------------------------------------------------------------------- figures

static figure mean_of(double sum, double sum_squares, size_t n)
{
    const double mean = sum / (double)n, variance = sum_squares / (double)n - mean * mean;
    return (figure){mean, n > 1 && variance > 0 ? sqrt(variance / (double)(n - 1)) : 0};
}

static figure mean_of_powers(const double *x, size_t n, int power)
{
    double sum = 0, sum_squares = 0;
    for (size_t i = 0; i < n; i++) {
        const double y = power == 2 ? x[i] * x[i] : x[i];
        sum += y;
        sum_squares += y * y;
    }
    return mean_of(sum, sum_squares, n);
}

static double root(double x)
{
    return x > 0 ? sqrt(x) : 0;
}

static void compare_perplexities(const divergence *d, divergence_figures *f)
{
    const double n = (double)d->n;
    const figure loss = mean_of(d->sum, d->sum_squares, d->n), base = mean_of(d->sum_base, d->sum_base_squares, d->n);
    const double covariance = d->n > 1 ? (d->sum_products / n - loss.value * base.value) / (n - 1) : 0;
    f->perplexity = (figure){exp(loss.value), exp(loss.value) * loss.error};
    f->base_perplexity = (figure){exp(base.value), exp(base.value) * base.error};
    if (loss.error > 0 && base.error > 0) f->correlation = covariance / (loss.error * base.error);
    f->log_ratio.value = loss.value - base.value;
    f->log_ratio.error = root(loss.error * loss.error + base.error * base.error - 2 * covariance);
    f->ratio = (figure){exp(f->log_ratio.value), exp(f->log_ratio.value) * f->log_ratio.error};
    const double e = f->perplexity.error, b = f->base_perplexity.error;
    f->difference.value = f->perplexity.value - f->base_perplexity.value;
    f->difference.error = root(e * e + b * b - 2 * f->perplexity.value * f->base_perplexity.value * covariance);
}

static int smaller_first(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The quantile `share` of sorted values, interpolated between two positions.
static double below(const double *sorted, size_t n, double share)
{
    const double at = share * (double)(n - 1);
    const size_t i = (size_t)at, next = i + 1 < n ? i + 1 : i;
    return sorted[i] + (at - (double)i) * (sorted[next] - sorted[i]);
}

divergence_figures divergence_finish(divergence *d)
{
    divergence_figures f = {0};
    compare_perplexities(d, &f);
    f.kl = mean_of_powers(d->kl, d->n, 1);
    qsort(d->kl, d->n, sizeof *d->kl, smaller_first);
    f.kl_median = below(d->kl, d->n, 0.5);
    f.kl_90 = below(d->kl, d->n, 0.9);
    f.kl_95 = below(d->kl, d->n, 0.95);
    f.kl_99 = below(d->kl, d->n, 0.99);
    f.kl_999 = below(d->kl, d->n, 0.999);
    f.kl_largest = d->kl[d->n - 1];
    f.change = mean_of_powers(d->change, d->n, 1);
    const figure squares = mean_of_powers(d->change, d->n, 2);
    f.change_rms.value = root(squares.value);
    if (squares.value > 0) f.change_rms.error = 0.5 / f.change_rms.value * squares.error;
    const double same = (double)d->n_same_top / (double)d->n;
    f.same_top = (figure){same, d->n > 1 ? sqrt(same * (1 - same) / (double)(d->n - 1)) : 0};
    return f;
}

void divergence_free(divergence *d)
{
    free(d->kl);
    free(d->change);
    *d = (divergence){0};
}

json_t *divergence_json(const divergence_figures *f)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
                     "perplexity_base", f->base_perplexity.value, "perplexity_base_error", f->base_perplexity.error,
                     "perplexity_ratio", f->ratio.value, "perplexity_ratio_error", f->ratio.error,
                     "perplexity_correlation", f->correlation, "kl_divergence", f->kl.value, "kl_divergence_error",
                     f->kl.error, "kl_divergence_median", f->kl_median, "kl_divergence_90", f->kl_90,
                     "kl_divergence_95", f->kl_95, "kl_divergence_99", f->kl_99, "kl_divergence_99.9", f->kl_999,
                     "kl_divergence_largest", f->kl_largest, "probability_change", f->change.value,
                     "probability_change_error", f->change.error, "probability_change_rms", f->change_rms.value,
                     "probability_change_rms_error", f->change_rms.error, "same_top", f->same_top.value,
                     "same_top_error", f->same_top.error);
}
