// SPDX-License-Identifier: MIT
// The scans of picks: pick_runner.h.
//
// A pass is a scan of the row, piece by piece on all threads, and a conclusion by one thread, which chooses the next
// pass. The tokens that stay are a range from the largest logit down to some (logit, token); stages only move the lower
// end up.
//
// The lower end is found as in a radix sort: logits become integers in the same order, of which 11, 11 and 10 bits are
// counted in bins, weighted by probability for top-p. Among equal logits the lower ids stay.
#include "sample/pick_runner.h"
#include "base/philox.h"
#include "sample/sampler.h"
#include "sample/weight.h"

#include <float.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { N_LEVELS = 3, MAX_BITS = 11, N_BINS = 1 << MAX_BITS };

static const int level_shift[N_LEVELS] = {21, 10, 0}, level_bits[N_LEVELS] = {11, 11, 10};

typedef enum pass { BEGIN, LOG_MAX, LOG_TOP, LOG_SUM, MAX, TOP, SPREAD, BINS, TIES, SUM, DONE } pass;

typedef struct work {
    const frit_pick *pick;
    const frit_pick_lists *lists;
    float *row;
    frit_picked_token *out;
    int32_t n_vocab, block_size, n_threads;
    pass pass;

    const uint32_t *mask;   // NULL: none, or not applied yet
    bool changed;           // the row has biases and penalties
    bool bad_changed;       // a changed logit was not finite
    float max;
    float least;       // logits above `least` stay,
    frit_token last;   // and equal logits with ids up to `last`
    float temp;        // temperature of weights
    double log_sum;    // log(sum of e^logit) of the unchanged row

    int32_t n_best;         // length of the lists
    frit_candidate *list;   // [n_threads, FRIT_PICK_LIST]: the best candidates of each thread
    int32_t *n_list;        // [n_threads]

    bool by_weight;      // bins add up weights, not tokens
    int level;           // level of bins
    uint32_t prefix;     // bits of earlier levels
    double wanted;       // weight or number of tokens that stay
    uint64_t n_before;   // weight or number of tokens above the bin
    uint64_t n_ties;     // tokens with the logit `least` that stay

    // Results of scans.
    bool bad[FRIT_BLOCKS];
    float block_max[FRIT_BLOCKS];
    uint64_t block_sum[FRIT_BLOCKS];
    double block_exp[FRIT_BLOCKS];
    frit_spread_sums block_spread[FRIT_BLOCKS];
    _Atomic uint64_t bins[N_BINS];
} work;

struct frit_pick_runner {
    work *works;   // [n_works]
    int32_t n_works;
    work *active[FRIT_PICK_BATCH];   // unfinished picks
    int32_t n_active;
    frit_candidate *lists;   // lists of all works
    int32_t *n_lists;
};

// ------------------------------------------------------------------------------- scans, on all threads

typedef struct range {
    int32_t begin, end;
} range;

static range range_of(const work *w, int block)
{
    const int64_t begin = (int64_t)block * w->block_size, end = begin + w->block_size;
    return (range){(int32_t)(begin < w->n_vocab ? begin : w->n_vocab), (int32_t)(end < w->n_vocab ? end : w->n_vocab)};
}

// Loads the chunk of logits from token i on; -infinity for tokens that are masked or do not exist.
static const float *chunk_at(const work *w, int32_t i, float *copy)
{
    const uint32_t allowed = w->mask ? w->mask[i / 32] : UINT32_MAX;
    if (allowed == UINT32_MAX && w->n_vocab - i >= FRIT_CHUNK) return w->row + i;
    for (int j = 0; j < FRIT_CHUNK; j++) copy[j] = j < w->n_vocab - i && (allowed >> j & 1) ? w->row[i + j] : -INFINITY;
    return copy;
}
_Static_assert(FRIT_CHUNK == 32, "a word of a mask is a chunk");

// True if a logit of the row, masked or not, is NaN or +infinity.
static bool is_bad(const work *w, range r)
{
    int bad = 0;
    for (int32_t i = r.begin; i < r.end; i++) bad |= !(w->row[i] < INFINITY);
    return bad;
}

static void scan_max(work *w, int block, int thread)
{
    (void)thread;
    const range r = range_of(w, block);
    float copy[FRIT_CHUNK], most[FRIT_LANES];
    for (int j = 0; j < FRIT_LANES; j++) most[j] = -INFINITY;
    for (int32_t i = r.begin; i < r.end; i += FRIT_CHUNK) {
        const float *x = chunk_at(w, i, copy);
        for (int k = 0; k < FRIT_CHUNK; k += FRIT_LANES)
            for (int j = 0; j < FRIT_LANES; j++) most[j] = x[k + j] > most[j] ? x[k + j] : most[j];
    }
    for (int j = 1; j < FRIT_LANES; j++) most[0] = most[j] > most[0] ? most[j] : most[0];
    w->bad[block] = is_bad(w, r);
    w->block_max[block] = most[0];
}

static void scan_top(work *w, int block, int thread)
{
    const range r = range_of(w, block);
    const int32_t k = w->n_best;
    frit_candidate *list = w->list + (size_t)thread * FRIT_PICK_LIST;
    int32_t n = w->n_list[thread];
    float copy[FRIT_CHUNK], least = n == k ? list[0].logit : -FLT_MAX;
    for (int32_t i = r.begin; i < r.end; i += FRIT_CHUNK) {
        const float *x = chunk_at(w, i, copy);
        int any = 0;
        for (int j = 0; j < FRIT_CHUNK; j++) any |= x[j] >= least;
        if (!any) continue;
        for (int j = 0; j < FRIT_CHUNK; j++) {
            if (!(x[j] >= least)) continue;
            frit_candidates_keep(list, &n, k, (frit_candidate){i + j, x[j]});
            if (n == k) least = list[0].logit;
        }
    }
    w->bad[block] = is_bad(w, r);
    w->n_list[thread] = n;
}

static void scan_exp(work *w, int block, int thread)
{
    (void)thread;
    const range r = range_of(w, block);
    float copy[FRIT_CHUNK];
    double lanes[FRIT_LANES] = {0};
    for (int32_t i = r.begin; i < r.end; i += FRIT_CHUNK) frit_lanes_add_exp(lanes, chunk_at(w, i, copy), w->max);
    w->block_exp[block] = frit_lanes_sum(lanes);
}

static void scan_spread(work *w, int block, int thread)
{
    (void)thread;
    const range r = range_of(w, block);
    float copy[FRIT_CHUNK];
    frit_spread spread = {0};
    for (int32_t i = r.begin; i < r.end; i += FRIT_CHUNK) frit_spread_add(&spread, chunk_at(w, i, copy), w->max);
    w->block_spread[block] = frit_spread_end_block(&spread);
}

// The weights of a chunk; 0 for tokens that do not stay.
static void weigh_logits(const work *w, int32_t i, uint32_t weights[FRIT_CHUNK])
{
    float copy[FRIT_CHUNK], x[FRIT_CHUNK];
    const float *chunk = chunk_at(w, i, copy);
    for (int j = 0; j < FRIT_CHUNK; j++) x[j] = chunk[j] - w->max;
    if (w->temp != 1)
        for (int j = 0; j < FRIT_CHUNK; j++) x[j] /= w->temp;
    for (int j = 0; j < FRIT_CHUNK; j++) weights[j] = frit_weight(x[j]);
    for (int j = 0; j < FRIT_CHUNK; j++)
        weights[j] = (chunk[j] > w->least) | ((chunk[j] == w->least) & (i + j <= w->last)) ? weights[j] : 0;
}

static void scan_sum(work *w, int block, int thread)
{
    (void)thread;
    const range r = range_of(w, block);
    uint64_t sum = 0;
    for (int32_t i = r.begin; i < r.end; i += FRIT_CHUNK) {
        uint32_t weights[FRIT_CHUNK];
        weigh_logits(w, i, weights);
        for (int j = 0; j < FRIT_CHUNK; j++) sum += weights[j];
    }
    w->block_sum[block] = sum;
}

// Integers in the order of logits; both zeros have one integer.
static uint32_t key_of(float logit)
{
    const float x = logit + 0.0f;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

static float logit_of(uint32_t key)
{
    const uint32_t bits = key >> 31 ? key & 0x7fffffffu : ~key;
    float logit;
    memcpy(&logit, &bits, sizeof logit);
    return logit;
}

static void scan_bins(work *w, int block, int thread)
{
    (void)thread;
    const range r = range_of(w, block);
    const int shift = level_shift[w->level], bits = level_bits[w->level];
    const uint32_t bin_mask = (1u << bits) - 1;
    float copy[FRIT_CHUNK];
    uint64_t bins[N_BINS] = {0};
    for (int32_t i = r.begin; i < r.end; i += FRIT_CHUNK) {
        const float *x = chunk_at(w, i, copy);
        uint32_t add[FRIT_CHUNK];
        int any = 0;
        for (int j = 0; j < FRIT_CHUNK; j++) {
            const uint32_t key = key_of(x[j]);
            const int stays = (x[j] > w->least) | ((x[j] == w->least) & (i + j <= w->last));
            const int matches = (w->level == 0) | (key >> (shift & 31) >> (bits & 31) == w->prefix);
            add[j] = (uint32_t)(stays & matches);
            any |= stays & matches;
        }
        if (!any) continue;
        if (w->by_weight)
            for (int j = 0; j < FRIT_CHUNK; j++) add[j] *= frit_weight(x[j] - w->max);
        for (int j = 0; j < FRIT_CHUNK; j++) bins[key_of(x[j]) >> shift & bin_mask] += add[j];
    }
    for (int b = 0; b < 1 << bits; b++)
        if (bins[b] != 0) atomic_fetch_add_explicit(&w->bins[b], bins[b], memory_order_relaxed);
}

static void scan_ties(work *w, int block, int thread)
{
    (void)thread;
    const range r = range_of(w, block);
    float copy[FRIT_CHUNK];
    int32_t n = 0;
    for (int32_t i = r.begin; i < r.end; i += FRIT_CHUNK) {
        const float *x = chunk_at(w, i, copy);
        for (int j = 0; j < FRIT_CHUNK; j++) n += x[j] == w->least;
    }
    w->block_sum[block] = (uint64_t)n;
}

// ------------------------------------------------------------------------------- between scans, on one thread

// Adds biases and penalties to the row.
static void change_row(work *w)
{
    const frit_pick *p = w->pick;
    float *saved = w->lists->saved;
    w->changed = true;
    for (int32_t i = p->first_bias; i < p->first_bias + p->n_biases; i++) {
        float *logit = &w->row[w->lists->biases[i].token];
        saved[i] = *logit;
        w->bad_changed = w->bad_changed || !(saved[i] < INFINITY);
        *logit += w->lists->biases[i].logit;
    }
    for (int32_t i = p->first_count; i < p->first_count + p->n_counts; i++) {
        const frit_pick_count *c = &w->lists->counts[i];
        if (c->count == 0) continue;
        const float logit = saved[w->lists->n_biases + i] = w->row[c->token];
        w->bad_changed = w->bad_changed || !(logit < INFINITY);
        w->row[c->token] = frit_penalized(logit, c->count, p->repeat, p->frequency, p->presence);
    }
}

static void restore_row(work *w)
{
    const frit_pick *p = w->pick;
    const float *saved = w->lists->saved;
    for (int32_t i = p->first_count; i < p->first_count + p->n_counts; i++)
        if (w->lists->counts[i].count > 0) w->row[w->lists->counts[i].token] = saved[w->lists->n_biases + i];
    // In reverse, because a token may have two biases.
    for (int32_t i = p->first_bias + p->n_biases; i-- > p->first_bias;) w->row[w->lists->biases[i].token] = saved[i];
}

static pass fail_pick(work *w, frit_pick_status status)
{
    if (w->changed) restore_row(w);
    w->out->status = status;
    return DONE;
}

static pass finish_pick(work *w, frit_token token)
{
    restore_row(w);
    w->out->token = token;
    if (w->pick->first_top >= 0) w->out->logprob = (float)((double)w->row[token] - w->log_sum);
    return DONE;
}

static bool any_bad(const work *w)
{
    bool bad = w->bad_changed;
    for (int b = 0; b < FRIT_BLOCKS; b++) bad = bad || w->bad[b];
    return bad;
}

static float largest_logit(const work *w)
{
    float max = -INFINITY;
    for (int b = 0; b < FRIT_BLOCKS; b++) max = w->block_max[b] > max ? w->block_max[b] : max;
    return max;
}

static pass begin_list(work *w, int32_t n_best, pass next)
{
    w->n_best = n_best;
    for (int32_t t = 0; t < w->n_threads; t++) w->n_list[t] = 0;
    return next;
}

// Merges the lists of all threads into the first, sorted.
static frit_candidates merge_lists(work *w)
{
    int32_t n = w->n_list[0];
    for (int32_t t = 1; t < w->n_threads; t++)
        for (int32_t i = 0; i < w->n_list[t]; i++)
            frit_candidates_keep(w->list, &n, w->n_best, w->list[(size_t)t * FRIT_PICK_LIST + (size_t)i]);
    frit_candidates best = {.items = w->list, .n = n};
    frit_candidates_sort(&best, n);
    return best;
}

static pass begin_choice(work *w)
{
    const frit_pick *p = w->pick;
    change_row(w);
    if (p->mask >= 0) w->mask = w->lists->masks + (size_t)p->mask * (size_t)frit_pick_mask_words(w->n_vocab);
    if (p->temp > 0 && p->top_k > 0 && p->top_k <= FRIT_PICK_LIST) return begin_list(w, p->top_k, TOP);
    return MAX;
}

static pass end_begin(work *w)
{
    return w->pick->first_top >= 0 ? LOG_MAX : begin_choice(w);
}

static pass end_log_max(work *w)
{
    w->max = largest_logit(w);
    if (any_bad(w)) return fail_pick(w, FRIT_PICK_NOT_FINITE);
    if (w->max == -INFINITY) return fail_pick(w, FRIT_PICK_EMPTY);
    return w->pick->n_top > 0 ? begin_list(w, w->pick->n_top, LOG_TOP) : LOG_SUM;
}

static pass end_log_top(work *w)
{
    const frit_candidates best = merge_lists(w);
    frit_logprob *tops = w->lists->tops + w->pick->first_top;
    for (int32_t i = 0; i < w->pick->n_top; i++)
        tops[i] = i < best.n ? (frit_logprob){best.items[i].token, best.items[i].logit} : (frit_logprob){-1, -INFINITY};
    return LOG_SUM;
}

static pass end_log_sum(work *w)
{
    double sum = 0;
    for (int b = 0; b < FRIT_BLOCKS; b++) sum += w->block_exp[b];
    w->log_sum = (double)w->max + log(sum);
    frit_logprob *tops = w->lists->tops + w->pick->first_top;
    for (int32_t i = 0; i < w->pick->n_top; i++) tops[i].logprob = (float)((double)tops[i].logprob - w->log_sum);
    return begin_choice(w);
}

// Also drops all tokens after (least, last).
static void narrow_candidates(work *w, float least, frit_token last)
{
    if (least < w->least || (least == w->least && last > w->last)) return;
    w->least = least;
    w->last = last;
}

// The least logit within `limit` of the largest, by the test of the chain.
static float least_within(float max, double limit)
{
    const double least = (double)max - limit;
    float x = least < -(double)FLT_MAX ? -FLT_MAX : (float)least;
    while (x > -FLT_MAX && (double)max - (double)nextafterf(x, -INFINITY) <= limit) x = nextafterf(x, -INFINITY);
    while ((double)max - (double)x > limit) x = nextafterf(x, INFINITY);
    return x;
}

static pass after_top_p(work *w)
{
    if (w->pick->min_p > 0) narrow_candidates(w, w->max + logf(w->pick->min_p), INT32_MAX);
    w->temp = w->pick->temp;
    return SUM;
}

static pass begin_bins(work *w, bool by_weight, double wanted)
{
    w->by_weight = by_weight;
    w->level = 0;
    w->wanted = wanted;
    w->n_before = 0;
    for (int b = 0; b < N_BINS; b++) atomic_store_explicit(&w->bins[b], 0, memory_order_relaxed);
    return BINS;
}

static pass after_top_k(work *w)
{
    const float p = w->pick->top_p;
    return p > 0 && p < 1 ? begin_bins(w, true, 0) : after_top_p(w);
}

static pass after_sigma(work *w)
{
    return w->pick->top_k > 0 && w->pick->top_k < w->n_vocab ? begin_bins(w, false, w->pick->top_k) : after_top_k(w);
}

static pass after_bins(work *w)
{
    return w->by_weight ? after_top_p(w) : after_top_k(w);
}

// Ends the range at the logit `key`: all of the n_bin equal logits stay, or the first of them.
static pass end_at(work *w, uint32_t key, uint64_t bin)
{
    const float logit = logit_of(key);
    const uint64_t each = w->by_weight ? frit_weight(logit - w->max) : 1, n_equal = bin / each;
    uint64_t n = 1;
    const double rest =
        (w->wanted - (double)w->n_before) / (double)each - 2;   // starts a little lower, because of rounding
    if (rest > 1) n = (uint64_t)rest < n_equal ? (uint64_t)rest : n_equal;
    while (n < n_equal && (double)(w->n_before + n * each) < w->wanted) n++;
    if (logit == w->least && n_equal <= n) return after_bins(w);
    if (logit != w->least) w->last = INT32_MAX;
    w->least = logit;
    w->n_ties = n;
    return n < n_equal ? TIES : after_bins(w);
}

static pass end_bins(work *w)
{
    const int n_bins = 1 << level_bits[w->level];
    uint64_t bin = 0;
    if (w->level == 0) {
        uint64_t total = 0;
        for (int b = 0; b < n_bins; b++) total += atomic_load_explicit(&w->bins[b], memory_order_relaxed);
        if (w->by_weight) w->wanted = (double)total * (double)w->pick->top_p;
        if ((double)total <= w->wanted) return after_bins(w);
    }
    int b = n_bins;
    while (b-- > 0) {
        bin = atomic_load_explicit(&w->bins[b], memory_order_relaxed);
        if (bin > 0 && (double)(w->n_before + bin) >= w->wanted) break;
        w->n_before += bin;
    }
    const uint32_t prefix = (w->level == 0 ? 0 : w->prefix << level_bits[w->level]) | (uint32_t)b;
    if (w->level == N_LEVELS - 1) return end_at(w, prefix, bin);
    const uint64_t n_before = w->n_before;
    const int level = w->level + 1;
    begin_bins(w, w->by_weight, w->wanted);
    w->n_before = n_before;
    w->level = level;
    w->prefix = prefix;
    return BINS;
}

static pass end_ties(work *w)
{
    uint64_t before = 0;
    int block = 0;
    for (; before + w->block_sum[block] < w->n_ties; block++) before += w->block_sum[block];
    const range r = range_of(w, block);
    float copy[FRIT_CHUNK];
    for (int32_t i = r.begin; i < r.end; i += FRIT_CHUNK) {
        const float *x = chunk_at(w, i, copy);
        for (int j = 0; j < FRIT_CHUNK; j++) {
            if (x[j] != w->least || ++before < w->n_ties) continue;
            w->last = i + j;
            return after_bins(w);
        }
    }
    return after_bins(w);
}

// Runs the rest of the chain on the list of the best candidates.
static pass finish_list(work *w, frit_candidates best)
{
    const frit_pick *p = w->pick;
    while (best.items[best.n - 1].logit < w->least) best.n--;   // top-n-sigma; the best one stays
    frit_top_p_keep(&best, p->top_p);
    if (p->min_p > 0) frit_min_p_keep(&best, p->min_p);
    if (p->temp != 1) frit_temperature_divide(&best, p->temp);
    return finish_pick(w, frit_candidates_draw(&best, w->n_vocab, frit_philox_draw(p->seed, p->position)));
}

static pass end_top(work *w)
{
    const frit_candidates best = merge_lists(w);
    if (any_bad(w)) return fail_pick(w, FRIT_PICK_NOT_FINITE);
    if (best.n == 0) return fail_pick(w, FRIT_PICK_EMPTY);
    w->max = best.items[0].logit;
    w->n_list[0] = best.n;
    return w->pick->top_n_sigma > 0 ? SPREAD : finish_list(w, best);
}

static frit_token first_with(const work *w, float logit)
{
    int block = 0;
    while (w->block_max[block] != logit) block++;
    const range r = range_of(w, block);
    float copy[FRIT_CHUNK];
    for (int32_t i = r.begin; i < r.end; i += FRIT_CHUNK) {
        const float *x = chunk_at(w, i, copy);
        for (int j = 0; j < FRIT_CHUNK; j++)
            if (x[j] == logit) return i + j;
    }
    return r.begin;
}

static pass end_max(work *w)
{
    w->max = largest_logit(w);
    if (any_bad(w)) return fail_pick(w, FRIT_PICK_NOT_FINITE);
    if (w->max == -INFINITY) return fail_pick(w, FRIT_PICK_EMPTY);
    if (!(w->pick->temp > 0)) return finish_pick(w, first_with(w, w->max));
    w->n_best = 0;
    return w->pick->top_n_sigma > 0 ? SPREAD : after_sigma(w);
}

static pass end_spread(work *w)
{
    frit_spread_sums sums = {0};
    for (int b = 0; b < FRIT_BLOCKS; b++) frit_spread_sums_add(&sums, &w->block_spread[b]);
    narrow_candidates(w, least_within(w->max, frit_spread_limit(&sums, w->pick->top_n_sigma)), INT32_MAX);
    if (w->n_best == 0) return after_sigma(w);
    return finish_list(w, (frit_candidates){.items = w->list, .n = w->n_list[0], .sorted = true});
}

static pass end_sum(work *w)
{
    uint64_t total = 0;
    for (int b = 0; b < FRIT_BLOCKS; b++) total += w->block_sum[b];
    uint64_t at = frit_philox_below(frit_philox_draw(w->pick->seed, w->pick->position), total);
    int block = 0;
    for (; at >= w->block_sum[block]; block++) at -= w->block_sum[block];
    const range r = range_of(w, block);
    for (int32_t i = r.begin; i < r.end; i += FRIT_CHUNK) {
        uint32_t weights[FRIT_CHUNK];
        weigh_logits(w, i, weights);
        for (int j = 0; j < FRIT_CHUNK; j++) {
            if (at < weights[j]) return finish_pick(w, i + j);
            at -= weights[j];
        }
    }
    return finish_pick(w, r.begin);
}

// ------------------------------------------------------------------------------- phases

static const struct {
    void (*scan)(work *w, int block, int thread);
    pass (*end)(work *w);
} passes[] = {
    [BEGIN] = {NULL, end_begin},          [LOG_MAX] = {scan_max, end_log_max}, [LOG_TOP] = {scan_top, end_log_top},
    [LOG_SUM] = {scan_exp, end_log_sum},  [MAX] = {scan_max, end_max},         [TOP] = {scan_top, end_top},
    [SPREAD] = {scan_spread, end_spread}, [BINS] = {scan_bins, end_bins},      [TIES] = {scan_ties, end_ties},
    [SUM] = {scan_sum, end_sum},
};

// The passes before the draw: three for log-probabilities, MAX, SPREAD, two times three for bins and one for ties, SUM.
_Static_assert(1 + 2 * (3 + 2 + 2 * (N_LEVELS + 1) + 1) <= FRIT_PICK_PHASES, "there are enough phases for every pick");

frit_status frit_pick_runner_new(frit_pick_runner **out, int n_threads, int n_picks)
{
    const size_t n = (size_t)n_picks, n_lists = n * (size_t)n_threads;
    frit_pick_runner *run = *out = calloc(1, sizeof *run);
    if (run) {
        run->works = calloc(n, sizeof *run->works);
        run->lists = calloc(n_lists * FRIT_PICK_LIST, sizeof *run->lists);
        run->n_lists = calloc(n_lists, sizeof *run->n_lists);
    }
    if (!run || !run->works || !run->lists || !run->n_lists) {
        frit_pick_runner_free(run);
        *out = NULL;
        return frit_fail_memory(n * sizeof(work) + n_lists * FRIT_PICK_LIST * sizeof(frit_candidate), "picks");
    }
    run->n_works = n_picks;
    for (size_t i = 0; i < n; i++) {
        run->works[i].n_threads = n_threads;
        run->works[i].list = run->lists + i * (size_t)n_threads * FRIT_PICK_LIST;
        run->works[i].n_list = run->n_lists + i * (size_t)n_threads;
    }
    return FRIT_OK;
}

void frit_pick_runner_free(frit_pick_runner *run)
{
    if (!run) return;
    free(run->works);
    free(run->lists);
    free(run->n_lists);
    free(run);
}

int32_t frit_pick_begin(frit_pick_runner *run, const frit_pick_job *job, int32_t first)
{
    const int32_t n_vocab = job->lists->n_vocab;
    run->n_active = job->n_picks - first < run->n_works ? job->n_picks - first : run->n_works;
    for (int32_t i = 0; i < run->n_active; i++) {
        work *w = run->active[i] = &run->works[i];
        w->pick = &job->picks[first + i];
        w->lists = job->lists;
        w->row = job->rows + (size_t)w->pick->row * (size_t)n_vocab;
        w->out = &job->picked[first + i];
        *w->out = (frit_picked_token){.token = -1};
        w->n_vocab = n_vocab;
        w->block_size = frit_block_size(n_vocab);
        w->pass = BEGIN;
        w->mask = NULL;
        w->changed = w->bad_changed = false;
        w->least = -FLT_MAX;
        w->last = INT32_MAX;
        w->temp = 1;
    }
    return first + run->n_active;
}

int frit_pick_open(frit_pick_runner *run, int phase)
{
    if (phase % 2 == 0) return run->n_active;
    int32_t n = 0;
    for (int32_t i = 0; i < run->n_active; i++)
        if (run->active[i]->pass != DONE) run->active[n++] = run->active[i];
    run->n_active = n;
    return n * FRIT_BLOCKS;
}

void frit_pick_work(frit_pick_runner *run, int phase, int begin, int end, int thread)
{
    for (int i = begin; i < end; i++) {
        work *w = run->active[phase % 2 == 0 ? i : i / FRIT_BLOCKS];
        if (phase % 2 == 0)
            w->pass = passes[w->pass].end(w);
        else
            passes[w->pass].scan(w, i % FRIT_BLOCKS, thread);
    }
}

void frit_pick_alone(frit_pick_runner *run, const frit_pick_job *job)
{
    for (int32_t first = 0; first < job->n_picks;) {
        first = frit_pick_begin(run, job, first);
        for (int phase = 0; phase < FRIT_PICK_PHASES; phase++)
            frit_pick_work(run, phase, 0, frit_pick_open(run, phase), 0);
    }
}
