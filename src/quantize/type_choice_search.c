// SPDX-License-Identifier: MIT
// Searches types with the smallest sum of predicted KL within a number of bytes.
//
// A price per byte gives a choice: for each matrix the type with the smallest kl + price x bytes. Bisection finds the
// lowest price whose choice fits. The bytes that are left are spent step by step: each step takes the type that lowers
// KL most, as long as one fits. Then pairs are exchanged: one matrix gives up bytes for another one that gains more
// from them.
#include "quantize/type_choice.h"

#include <math.h>
#include <string.h>

// A matrix whose KL is 0 was not reached by the text, such as an expert that was never chosen. Its value is unknown, so
// it gets about four bits, or stays as it is.
static void keep_unreached(frit_type_choice_matrix *m)
{
    int kept = m->n_types - 1;
    for (int t = 0; t < m->n_types; t++) {
        if (m->types[t].kl > 0) return;
        if (m->types[t].type == FRIT_DTYPE_Q5_0 && m->types[kept].type != FRIT_DTYPE_Q4_K) kept = t;
        if (m->types[t].type == FRIT_DTYPE_Q4_K) kept = t;
    }
    m->types[0] = m->types[kept];
    m->n_types = 1;
}

static uint64_t bytes_of(const frit_type_choice *a)
{
    uint64_t n = 0;
    for (size_t k = 0; k < a->n; k++) n += a->list[k].types[a->list[k].chosen].n_bytes;
    return n;
}

static void choose_by_price(frit_type_choice *a, double price)
{
    for (size_t k = 0; k < a->n; k++) {
        frit_type_choice_matrix *m = &a->list[k];
        m->chosen = 0;
        for (int t = 1; t < m->n_types; t++) {
            const double cost = m->types[t].kl + price * (double)m->types[t].n_bytes;
            const frit_type_price *best = &m->types[m->chosen];
            if (cost < best->kl + price * (double)best->n_bytes) m->chosen = t;
        }
    }
}

// With equal costs the type of fewer bytes wins, so a price of 0 gives the least bytes at the least KL.
static void choose_by_best_price(frit_type_choice *a, uint64_t n_bytes)
{
    double low = 0, high = 1e-12;   // KL per byte
    choose_by_price(a, 0);
    if (bytes_of(a) <= n_bytes) return;
    for (choose_by_price(a, high); bytes_of(a) > n_bytes && high < 1e12; choose_by_price(a, high)) high *= 4;
    for (int i = 0; i < 100; i++) {
        const double middle = 0.5 * (low + high);
        choose_by_price(a, middle);
        *(bytes_of(a) > n_bytes ? &low : &high) = middle;
    }
    choose_by_price(a, high);
}

typedef struct exchange {
    size_t from, to;   // matrices; equal: one changes
    int from_type, to_type;
    double gain;
} exchange;

static double gain_of(const frit_type_choice_matrix *m, int t)
{
    return m->types[m->chosen].kl - m->types[t].kl;
}

static int64_t growth_of(const frit_type_choice_matrix *m, int t)
{
    return (int64_t)(m->types[t].n_bytes - m->types[m->chosen].n_bytes);
}

// Finds the single change that lowers KL most and fits into `left` bytes.
static void find_change(const frit_type_choice *a, int64_t left, exchange *best)
{
    for (size_t k = 0; k < a->n; k++)
        for (int t = 0; t < a->list[k].n_types; t++) {
            const double gain = gain_of(&a->list[k], t);
            if (growth_of(&a->list[k], t) <= left && gain > best->gain) *best = (exchange){k, k, t, t, gain};
        }
}

// Finds the best pair: matrix k gets type t, another matrix another type.
static void find_exchange(const frit_type_choice *a, int64_t left, size_t k, int t, exchange *best)
{
    const double gain = gain_of(&a->list[k], t);
    const int64_t rest = left - growth_of(&a->list[k], t);
    for (size_t j = 0; j < a->n; j++)
        for (int u = 0; u < a->list[j].n_types && j != k; u++)
            if (growth_of(&a->list[j], u) <= rest && gain + gain_of(&a->list[j], u) > best->gain)
                *best = (exchange){k, j, t, u, gain + gain_of(&a->list[j], u)};
}

static bool improve_choice(frit_type_choice *a, uint64_t n_bytes, bool pairs)
{
    const int64_t left = (int64_t)(n_bytes - bytes_of(a));
    exchange best = {.gain = 1e-15};
    const double none = best.gain;
    find_change(a, left, &best);
    for (size_t k = 0; k < a->n && pairs && best.gain <= none; k++)
        for (int t = 0; t < a->list[k].n_types; t++)
            if (gain_of(&a->list[k], t) > 0) find_exchange(a, left, k, t, &best);
    if (best.gain <= none) return false;
    a->list[best.from].chosen = best.from_type;
    a->list[best.to].chosen = best.to_type;
    return true;
}

// Estimates the standard error of the prediction from the differences between windows.
static double estimate_error(const frit_type_choice *a)
{
    double kl[FRIT_PRICED_WINDOWS] = {0}, mean = 0, variance = 0;
    int n = 0;
    for (bool is_known = a->window_kl != NULL; is_known && n < FRIT_PRICED_WINDOWS; n += is_known)
        for (size_t k = 0; k < a->n && is_known; k++) {
            const double in_window = a->window_kl[k * FRIT_PRICED_WINDOWS + (size_t)n];
            const frit_type_choice_matrix *m = &a->list[k];
            is_known = in_window >= 0 || m->is_kept;
            if (m->probe_kl > 0 && !m->is_kept) kl[n] += m->types[m->chosen].kl * in_window / m->probe_kl;
        }
    if (n < 2) return 0;
    for (int w = 0; w < n; w++) mean += kl[w] / n;
    for (int w = 0; w < n; w++) variance += (kl[w] - mean) * (kl[w] - mean) / (n - 1);
    return sqrt(variance / n);
}

static frit_status store_choice(frit_type_choice *a)
{
    a->kl = 0;
    a->kl_error = estimate_error(a);
    for (size_t k = 0; k < a->n; k++) {
        const frit_type_choice_matrix *m = &a->list[k];
        a->kl += m->types[m->chosen].kl;
        if (!frit_map_put(&a->types, frit_str_of(m->name), (int64_t)m->types[m->chosen].type))
            return frit_fail_memory(a->n * sizeof m->chosen, "the types of matrices");
    }
    return FRIT_OK;
}

frit_status frit_type_choice_check_size(const frit_type_choice *a, uint64_t n_bytes)
{
    uint64_t least = 0;
    for (size_t k = 0; k < a->n; k++) least += a->list[k].types[0].n_bytes;
    if (least <= n_bytes) return FRIT_OK;
    const bool all = a->options->types && strcmp(a->options->types, "all") == 0;
    return frit_fail_file(FRIT_E_INVALID,
                          "%s: the matrices have %llu bytes at least, but the size leaves %llu for them; expected a "
                          "larger size%s",
                          a->source, (unsigned long long)least, (unsigned long long)n_bytes,
                          all ? "" : ", or types all");
}

frit_status frit_type_choice_search(frit_type_choice *a, uint64_t n_bytes)
{
    enum { MOST_EXCHANGES = 2000, MOST_PAIRED = 1000 };
    for (size_t k = 0; k < a->n; k++) keep_unreached(&a->list[k]);
    FRIT_TRY(frit_type_choice_check_size(a, n_bytes));
    choose_by_best_price(a, n_bytes);
    for (int i = 0; i < MOST_EXCHANGES && improve_choice(a, n_bytes, a->n <= MOST_PAIRED); i++) continue;
    return store_choice(a);
}
