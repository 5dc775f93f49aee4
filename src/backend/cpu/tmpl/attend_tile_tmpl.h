// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/attend_tile_tmpl.h: attention by tiles (ops/attend.h). A vector has FLOATS numbers, one for each
// query of a panel, and the operations of the instruction set's floats_NAME.h and math_NAME.h. The including file also
// defines ROWS, the number of rows that a product computes at a time, and
//
//     relative(p, to)                     FLOATS integers of p, less `to`, as floats
//     any_larger(a, b)                    true if a > b in a lane
//     within(at, low, high, yes, no)      `yes` in lanes with low <= at < high, `no` in the others
//
// Results:
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
    const float *b;          // [panel, k, FLOATS]
    float *y;                // [panel, row, FLOATS]
    int64_t b_panel, y_panel;
    int64_t n;   // elements of k
} factors;

// Multiplies a block. n_rows, n_panels and add are constants where this is inlined.
FRIT_INLINE void multiply_rows(const factors *f, int64_t row, int n_rows, int n_panels, bool add)
{
    vec_f sums[ROWS * PANELS][PANELS];
    const float *a = f->a + row * f->a_row, *b = f->b;
    float *y = f->y + row * FLOATS;
    for (int i = 0; i < n_rows; i++)
        for (int j = 0; j < n_panels; j++) sums[i][j] = add ? load_f(y + j * f->y_panel + i * FLOATS) : all_f(0);
    for (int64_t k = 0; k < f->n; k++, a += f->a_step, b += FLOATS) {
        vec_f bs[PANELS];
        for (int j = 0; j < n_panels; j++) bs[j] = load_f(b + j * f->b_panel);
        for (int i = 0; i < n_rows; i++) {
            const vec_f as = all_f(a[i * f->a_row]);
            for (int j = 0; j < n_panels; j++) sums[i][j] = mul_add(as, bs[j], sums[i][j]);
        }
    }
    for (int i = 0; i < n_rows; i++)
        for (int j = 0; j < n_panels; j++) store_f(y + j * f->y_panel + i * FLOATS, sums[i][j]);
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
    vec_f begin, end, own_position, slope;
    const float *bias;   // bias of the first lane, or NULL
} lanes_of;

// Applies softcap, slope and bias to scores in place.
static void adjust(const frit_attend_tile *t, const lanes_of *l, float *s, int64_t begin, int64_t end)
{
    const vec_f hidden = all_f(-INFINITY);
    for (int64_t p = begin; p < end; p++) {
        const vec_f at = all_f((float)p);
        vec_f x = load_f(s + p * FLOATS);
        if (t->softcap != 0) x = mul_f(all_f(t->softcap), tanh_f(div_f(x, all_f(t->softcap))));
        if (l->bias) x = add_f(x, load_f(l->bias + t->n_p - 1 - p));
        if (t->slope) x = sub_f(x, mul_f(l->slope, abs_f(sub_f(l->own_position, at))));
        if (t->cut) x = within(at, l->begin, l->end, x, hidden);
        store_f(s + p * FLOATS, x);
    }
}

// Replaces scores by weights, and adds the weights to sums of positions that are FLOATS apart, in the order of
// attend_rows_tmpl.h. `cut` is a constant where this is inlined.
FRIT_INLINE void exponentiate_scores(const frit_attend_tile *t, const lanes_of *l, float *s, int64_t begin, int64_t end,
                                     vec_f base, bool cut, vec_f parts[FLOATS])
{
    for (int i = 0; i < FLOATS; i++) parts[i] = all_f(0);
    for (int64_t p = begin; p < end; p++) {
        vec_f weight = exp_f(sub_f(load_f(s + p * FLOATS), base));
        if (cut)
            weight = within(all_f((float)p), l->begin, l->end, weight, all_f(0));   // the result of exp is never zero
        store_f(s + p * FLOATS, weight);
        vec_f *part = &parts[(uint32_t)(t->first + p) % FLOATS];
        *part = add_f(*part, weight);
    }
}

// Turns the scores of one panel into weights, and rescales its sums so far.
static void weigh_panel(const frit_attend_tile *t, int64_t panel, float *s, int64_t begin, int64_t end)
{
    const int64_t lane = panel * FLOATS;
    lanes_of l = {relative(t->begin + lane, t->first), relative(t->end + lane, t->first),
                  relative(t->own_position + lane, t->first), t->slope ? load_f(t->slope + lane) : all_f(0),
                  t->bias ? t->bias + lane : NULL};
    if (t->softcap != 0 || t->slope || t->bias || t->cut) adjust(t, &l, s, begin, end);

    const vec_f before = load_f(t->max + lane);
    vec_f top[4] = {before, before, before, before};
    for (int64_t p = begin; p < end; p++) top[p & 3] = max_f(top[p & 3], load_f(s + p * FLOATS));
    top[0] = max_f(max_f(top[0], top[1]), max_f(top[2], top[3]));
    const vec_f base = max_f(top[0], all_f(-FLT_MAX));   // a lane that has seen no position has no maximum
    vec_f sum = load_f(t->sum + lane);
    if (any_larger(top[0], before)) {
        const vec_f shrink = exp_f(sub_f(before, base));
        float *acc = t->acc + panel * t->v_dim * FLOATS;
        for (int64_t d = 0; d < t->v_dim; d++) store_f(acc + d * FLOATS, mul_f(load_f(acc + d * FLOATS), shrink));
        sum = mul_f(sum, shrink);
        store_f(t->max + lane, top[0]);
    }
    vec_f parts[FLOATS];
    if (t->cut)
        exponentiate_scores(t, &l, s, begin, end, base, true, parts);
    else
        exponentiate_scores(t, &l, s, begin, end, base, false, parts);
    for (int half = FLOATS / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) parts[i] = add_f(parts[i], parts[i + half]);
    sum = add_f(sum, parts[0]);
    store_f(t->sum + lane, sum);
}

// The positions of the tile that some lane of the panels sees.
static void seen_positions(const frit_attend_tile *t, int64_t panel, int n_panels, int64_t *begin, int64_t *end)
{
    *begin = 0, *end = t->n_p;
    if (!t->cut) return;
    int64_t low = t->n_p, high = 0;
    for (int64_t i = panel * FLOATS; i < (panel + n_panels) * FLOATS; i++) {
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
                      .b = t->q + panel * t->k_dim * FLOATS,
                      .b_panel = t->k_dim * FLOATS,
                      .y = s,
                      .y_panel = FRIT_ATTEND_SPAN * FLOATS,
                      .n = t->k_dim};
    if (!t->k_transposed) multiply_panels(&scores, begin, end, n_panels, false);
    scores.a_row = 1, scores.a_step = FRIT_PAGE_TOKENS;
    for (int64_t p = begin, next; t->k_transposed && p < end; p = next) {   // page by page
        const int64_t place = t->first % FRIT_PAGE_TOKENS + p, in_page = place % FRIT_PAGE_TOKENS;
        next = p + FRIT_PAGE_TOKENS - in_page < end ? p + FRIT_PAGE_TOKENS - in_page : end;
        scores.a = t->k + (place - in_page) * t->k_dim + in_page;
        scores.y = s + p * FLOATS;
        multiply_panels(&scores, 0, next - p, n_panels, false);
    }
    for (int j = 0; j < n_panels; j++) weigh_panel(t, panel + j, s + j * FRIT_ATTEND_SPAN * FLOATS, begin, end);
    const factors sums = {.a = t->v + begin * t->v_dim,
                          .a_row = 1,
                          .a_step = t->v_dim,
                          .b = s + begin * FLOATS,
                          .b_panel = FRIT_ATTEND_SPAN * FLOATS,
                          .y = t->acc + panel * t->v_dim * FLOATS,
                          .y_panel = t->v_dim * FLOATS,
                          .n = end - begin};
    multiply_panels(&sums, 0, t->v_dim, n_panels, true);
}

static void fold(float *total, float *acc, const float *before, const float *now, int64_t n)
{
    const vec_f factor = load_f(before), part = load_f(now), nothing = all_f(0);
    for (int64_t i = 0; i < n * FLOATS; i += FLOATS) {
        store_f(total + i, add_f(mul_f(factor, load_f(total + i)), mul_f(part, load_f(acc + i))));
        store_f(acc + i, nothing);
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
