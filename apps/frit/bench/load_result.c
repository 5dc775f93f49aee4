// SPDX-License-Identifier: MIT
// Times, counts and percentiles of a measurement.
#include "frit/bench/load.h"

#include "common/grow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool load_series_add(load_series *series, double value)
{
    if (!APP_GROW(series->items, series->capacity, series->n + 1)) return false;
    series->items[series->n++] = value;
    return true;
}

static void free_series(load_series *series)
{
    free(series->items);
    *series = (load_series){0};
}

static int smaller_first(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double load_percentile(const double *sorted, size_t n, double q)
{
    if (n == 0) return 0;
    const double at = q / 100 * (double)(n - 1);
    const size_t below = (size_t)at, above = below + 1 < n ? below + 1 : below;
    return sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
}

load_summary load_summarize(load_series *series)
{
    load_summary s = {0};
    const size_t n = series->n;
    if (n == 0) return s;
    qsort(series->items, n, sizeof *series->items, smaller_first);
    for (size_t i = 0; i < n; i++) s.mean += series->items[i] / (double)n;
    for (size_t i = 0; i < n; i++) s.sd += pow(series->items[i] - s.mean, 2) / (double)n;
    s.sd = sqrt(s.sd);
    s.median = load_percentile(series->items, n, 50);
    s.p90 = load_percentile(series->items, n, 90);
    s.p95 = load_percentile(series->items, n, 95);
    s.p99 = load_percentile(series->items, n, 99);
    s.max = series->items[n - 1];
    return s;
}

// ---------------------------------------------------------------------------------------- one answer

void load_answer_begin(load_answer *answer, double now)
{
    const load_series gaps = answer->gaps;   // its memory is used again
    const bool is_structured = answer->is_structured;
    *answer = (load_answer){.sent = now, .is_structured = is_structured, .n_in = -1, .n_out = -1, .n_cached = -1};
    answer->gaps = (load_series){gaps.items, 0, gaps.capacity};
}

bool load_answer_note(load_answer *answer, double now)
{
    const double last = answer->last;
    answer->last = now;
    if (answer->n_events++ > 0) return load_series_add(&answer->gaps, now - last);
    answer->first = now;
    return true;
}

void load_answer_free(load_answer *answer)
{
    free_series(&answer->gaps);
}

// ---------------------------------------------------------------------------------------- all answers

// Each event has an equal part of the answer's tokens.
static bool add_events(load_result *result, const load_answer *answer, int64_t n_out)
{
    const double weight = (double)n_out / (double)answer->n_events;
    double at = answer->first;
    bool good = load_series_add(&result->events, at) && load_series_add(&result->n_arrived, weight);
    for (size_t i = 0; i < answer->gaps.n && good; i++) {
        at += answer->gaps.items[i];
        good = load_series_add(&result->itl, answer->gaps.items[i]) && load_series_add(&result->events, at) &&
               load_series_add(&result->n_arrived, weight);
    }
    return good;
}

bool load_result_add(load_result *result, const load_case *load, const load_answer *answer)
{
    const int64_t n_out = answer->n_out >= 0 ? answer->n_out : answer->n_events;
    const double total = answer->last - answer->sent, first = answer->first - answer->sent;
    result->n_done++;
    result->n_out += n_out;
    result->n_in += answer->n_in >= 0 ? answer->n_in : load->n_in;
    result->n_cached += answer->n_cached > 0 ? answer->n_cached : 0;
    result->n_short += n_out < load->n_out;
    *(answer->n_out >= 0 ? &result->n_by_usage : &result->n_by_events) += 1;
    bool good = load_series_add(&result->e2el, total);
    if (answer->n_events == 0) return good;
    good = good && load_series_add(&result->ttft, first) && add_events(result, answer, n_out);
    if (n_out < 2) return good;
    const double tpot = (total - first) / (double)(n_out - 1);
    return good && load_series_add(&result->tpot, tpot) &&
           load_series_add(&result->tpot_of[answer->is_structured], tpot);
}

void load_result_fail(load_result *result, const char *kind, const char *example)
{
    int i = 0;
    result->n_failed++;
    while (i < result->n_errors && strcmp(result->errors[i].kind, kind) != 0) i++;
    if (i == LOAD_MAX_ERRORS) i--;
    load_error *error = &result->errors[i];
    if (i == result->n_errors) {
        result->n_errors++;
        snprintf(error->kind, sizeof error->kind, "%s", kind);
        snprintf(error->example, sizeof error->example, "%s", example);
    }
    error->n++;
}

double load_result_peak(load_result *result)
{
    double last = 0, most = 0;
    for (size_t i = 0; i < result->events.n; i++)
        if (result->events.items[i] > last) last = result->events.items[i];
    double *seconds = calloc((size_t)last + 1, sizeof *seconds);
    for (size_t i = 0; i < result->events.n && seconds; i++)
        seconds[(size_t)result->events.items[i]] += result->n_arrived.items[i];
    for (size_t i = 0; i <= (size_t)last && seconds; i++)
        if (seconds[i] > most) most = seconds[i];
    free(seconds);
    return most;
}

void load_result_free(load_result *result)
{
    free_series(&result->ttft);
    free_series(&result->tpot);
    for (int i = 0; i < 2; i++) free_series(&result->tpot_of[i]);
    free_series(&result->itl);
    free_series(&result->e2el);
    free_series(&result->events);
    free_series(&result->n_arrived);
    *result = (load_result){0};
}
