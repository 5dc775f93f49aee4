// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/attend_tile_tmpl.h: attention by tiles (ops/attend.h), in operations on `vec`, which each including
// file defines for its instruction set: LANES floats, one for each query of a panel.
//
//     scores [position, query]     = keys [position, dim] x queries [dim, query]
//     weights                      = exp(scores - maximum), down the columns
//     sums [dim, query]           += values [position, dim], transposed, x weights [position, query]
//
// Both products broadcast one element of their first factor, which every lane multiplies by its own element.
#include <float.h>
#include <math.h>

enum { PANELS = 2 };   // panels that products compute together

typedef struct factors {
    const float *a;
    int64_t a_row, a_step;   // a[row * a_row + k * a_step]
    const float *b;          // [panel, k, LANES]
    float *y;                // [panel, row, LANES]
    int64_t b_panel, y_panel;
    int64_t n;   // elements of k
} factors;

// Multiplies a block. n_rows, n_panels and add are constants where this is inlined.
FRIT_INLINE void multiply_rows(const factors *f, int64_t row, int n_rows, int n_panels, bool add)
{
    vec sums[ROWS * PANELS][PANELS];
    const float *a = f->a + row * f->a_row, *b = f->b;
    float *y = f->y + row * LANES;
    for (int i = 0; i < n_rows; i++)
        for (int j = 0; j < n_panels; j++) sums[i][j] = add ? load(y + j * f->y_panel + i * LANES) : same(0);
    for (int64_t k = 0; k < f->n; k++, a += f->a_step, b += LANES) {
        vec bs[PANELS];
        for (int j = 0; j < n_panels; j++) bs[j] = load(b + j * f->b_panel);
        for (int i = 0; i < n_rows; i++) {
            const vec as = same(a[i * f->a_row]);
            for (int j = 0; j < n_panels; j++) sums[i][j] = multiply_add(as, bs[j], sums[i][j]);
        }
    }
    for (int i = 0; i < n_rows; i++)
        for (int j = 0; j < n_panels; j++) store(y + j * f->y_panel + i * LANES, sums[i][j]);
}

FRIT_INLINE void multiply_panels(const factors *f, int64_t begin, int64_t end, int n_panels, bool add)
{
    const int n_rows = ROWS * PANELS / n_panels;   // a single panel computes more rows
    int64_t row = begin;
    for (; row + n_rows <= end; row += n_rows) multiply_rows(f, row, n_rows, n_panels, add);
    for (; row + 4 <= end; row += 4) multiply_rows(f, row, 4, n_panels, add);
    for (; row < end; row++) multiply_rows(f, row, 1, n_panels, add);
}

typedef struct lanes_of {   // the positions that each lane of a panel sees, relative to the first of the tile
    vec begin, end, own_position, slope;
    const float *bias;   // bias of the first lane, or NULL
} lanes_of;

// Applies softcap, slope and bias to scores in place.
static void adjust(const frit_attend_tile *t, const lanes_of *l, float *s, int64_t begin, int64_t end)
{
    const vec hidden = same(-INFINITY);
    for (int64_t p = begin; p < end; p++) {
        const vec at = same((float)p);
        vec x = load(s + p * LANES);
        if (t->softcap != 0) x = multiply_vec(same(t->softcap), tanh_vec(divide(x, same(t->softcap))));
        if (l->bias) x = add_vec(x, load(l->bias + t->n_p - 1 - p));
        if (t->slope) x = subtract(x, multiply_vec(l->slope, magnitude(subtract(l->own_position, at))));
        if (t->cut) x = within(at, l->begin, l->end, x, hidden);
        store(s + p * LANES, x);
    }
}

// Replaces scores by weights, and adds the weights to sums of positions that are LANES apart, in the order of
// attend_rows_tmpl.h. `cut` is a constant where this is inlined.
FRIT_INLINE void exponentiate_scores(const frit_attend_tile *t, const lanes_of *l, float *s, int64_t begin, int64_t end,
                                     vec base, bool cut, vec parts[LANES])
{
    for (int i = 0; i < LANES; i++) parts[i] = same(0);
    for (int64_t p = begin; p < end; p++) {
        vec weight = exp_vec(subtract(load(s + p * LANES), base));
        if (cut)
            weight = within(same((float)p), l->begin, l->end, weight, same(0));   // the result of exp is never zero
        store(s + p * LANES, weight);
        vec *part = &parts[(uint32_t)(t->first + p) % LANES];
        *part = add_vec(*part, weight);
    }
}

// Turns the scores of one panel into weights, and rescales its sums so far.
static void weigh_panel(const frit_attend_tile *t, int64_t panel, float *s, int64_t begin, int64_t end)
{
    const int64_t lane = panel * LANES;
    lanes_of l = {relative(t->begin + lane, t->first), relative(t->end + lane, t->first),
                  relative(t->own_position + lane, t->first), t->slope ? load(t->slope + lane) : same(0),
                  t->bias ? t->bias + lane : NULL};
    if (t->softcap != 0 || t->slope || t->bias || t->cut) adjust(t, &l, s, begin, end);

    const vec before = load(t->max + lane);
    vec top[4] = {before, before, before, before};
    for (int64_t p = begin; p < end; p++) top[p & 3] = larger(top[p & 3], load(s + p * LANES));
    top[0] = larger(larger(top[0], top[1]), larger(top[2], top[3]));
    const vec base = larger(top[0], same(-FLT_MAX));   // a lane that has seen no position has no maximum
    vec sum = load(t->sum + lane);
    if (any_larger(top[0], before)) {
        const vec shrink = exp_vec(subtract(before, base));
        float *acc = t->acc + panel * t->v_dim * LANES;
        for (int64_t d = 0; d < t->v_dim; d++) store(acc + d * LANES, multiply_vec(load(acc + d * LANES), shrink));
        sum = multiply_vec(sum, shrink);
        store(t->max + lane, top[0]);
    }
    vec parts[LANES];
    if (t->cut)
        exponentiate_scores(t, &l, s, begin, end, base, true, parts);
    else
        exponentiate_scores(t, &l, s, begin, end, base, false, parts);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) parts[i] = add_vec(parts[i], parts[i + half]);
    sum = add_vec(sum, parts[0]);
    store(t->sum + lane, sum);
}

// The positions of the tile that some lane of the panels sees.
static void seen_positions(const frit_attend_tile *t, int64_t panel, int n_panels, int64_t *begin, int64_t *end)
{
    *begin = 0, *end = t->n_p;
    if (!t->cut) return;
    int64_t low = t->n_p, high = 0;
    for (int64_t i = panel * LANES; i < (panel + n_panels) * LANES; i++) {
        const int64_t first = t->begin[i] - t->first, last = t->end[i] - t->first;
        if (last <= 0 || first >= t->n_p || first >= last) continue;
        low = first < low ? first : low;
        high = last > high ? last : high;
    }
    *begin = low < 0 ? 0 : low;
    *end = high < t->n_p ? high : t->n_p;
}

FRIT_INLINE void attend_panels(const frit_attend_tile *t, int64_t panel, int n_panels)
{
    int64_t begin, end;
    float *s = (float *)(void *)t->scratch;
    seen_positions(t, panel, n_panels, &begin, &end);
    if (begin >= end) return;
    factors scores = {.a = t->k,
                      .a_row = t->k_dim,
                      .a_step = 1,
                      .b = t->q + panel * t->k_dim * LANES,
                      .b_panel = t->k_dim * LANES,
                      .y = s,
                      .y_panel = FRIT_ATTEND_SPAN * LANES,
                      .n = t->k_dim};
    if (!t->k_transposed) multiply_panels(&scores, begin, end, n_panels, false);
    scores.a_row = 1, scores.a_step = FRIT_PAGE_TOKENS;
    for (int64_t p = begin, next; t->k_transposed && p < end; p = next) {   // page by page
        const int64_t place = t->first % FRIT_PAGE_TOKENS + p, in_page = place % FRIT_PAGE_TOKENS;
        next = p + FRIT_PAGE_TOKENS - in_page < end ? p + FRIT_PAGE_TOKENS - in_page : end;
        scores.a = t->k + (place - in_page) * t->k_dim + in_page;
        scores.y = s + p * LANES;
        multiply_panels(&scores, 0, next - p, n_panels, false);
    }
    for (int j = 0; j < n_panels; j++) weigh_panel(t, panel + j, s + j * FRIT_ATTEND_SPAN * LANES, begin, end);
    const factors sums = {.a = t->v + begin * t->v_dim,
                          .a_row = 1,
                          .a_step = t->v_dim,
                          .b = s + begin * LANES,
                          .b_panel = FRIT_ATTEND_SPAN * LANES,
                          .y = t->acc + panel * t->v_dim * LANES,
                          .y_panel = t->v_dim * LANES,
                          .n = end - begin};
    multiply_panels(&sums, 0, t->v_dim, n_panels, true);
}

static void fold(float *total, float *acc, const float *before, const float *now, int64_t n)
{
    const vec factor = load(before), part = load(now), nothing = same(0);
    for (int64_t i = 0; i < n * LANES; i += LANES) {
        store(total + i, add_vec(multiply_vec(factor, load(total + i)), multiply_vec(part, load(acc + i))));
        store(acc + i, nothing);
    }
}

// Prefetches the panels' share of the next pages.
static void prefetch(const frit_attend_tile *t, int64_t panel, int n_panels)
{
    for (int i = 0; i < t->n_ahead; i++) {
        const size_t n = t->ahead[i].n_bytes, begin = n * (size_t)panel / (size_t)t->n_panels;
        const size_t end = n * (size_t)(panel + n_panels) / (size_t)t->n_panels;
        for (size_t at = begin; at < end; at += 64) __builtin_prefetch(t->ahead[i].first + at, 0, 2);
    }
}

static void attend_tile(const frit_attend_tile *t)
{
    for (int64_t panel = 0; panel < t->n_panels; panel += PANELS) {
        const int n = panel + PANELS <= t->n_panels ? PANELS : 1;
        prefetch(t, panel, n);
        if (n == PANELS)
            attend_panels(t, panel, PANELS);
        else
            attend_panels(t, panel, 1);
    }
}
