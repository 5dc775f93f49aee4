// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/descend_tmpl.h: coordinate descent (frit_descent), in operations of floats_*.h on vec_f: load_f,
// store_f, all_f, sub_f, add_f, mul_f, mul_add, min_f, max_f, nearest, if_less.

enum {
    VECTORS = FRIT_DESCENT_LANES / FLOATS,
    FEW = 4
};   // vectors of a column; columns whose steps update the gradients together

// The level of the nearest code, and the code.
FRIT_INLINE vec_f level_of(const frit_descent *d, bool has_levels, vec_f wanted, vec_f *code)
{
    if (!has_levels) {
        *code = nearest(min_f(max_f(wanted, all_f((float)d->low)), all_f((float)d->high)));
        return *code;
    }
    const vec_f twice = add_f(wanted, wanted);
    vec_f level = all_f((float)d->levels[d->low]);
    *code = all_f((float)d->low);
    for (int c = d->low; c < d->high; c++) {
        const vec_f border = all_f((float)(d->levels[c] + d->levels[c + 1]));
        level = if_less(border, twice, all_f((float)d->levels[c + 1]), level);
        *code = if_less(border, twice, all_f((float)(c + 1)), *code);
    }
    return level;
}

// Sets column k to the best value. Returns the change.
FRIT_INLINE vec_f step_of(const frit_descent *d, bool has_levels, int k, int at)
{
    const int group = k / d->group * FRIT_DESCENT_LANES + at;
    const vec_f scale = load_f(d->scales + group), min = load_f(d->mins + group), zero = all_f(0);
    const vec_f size = if_less(scale, zero, sub_f(zero, scale), scale);
    const vec_f divisor = if_less(zero, size, scale, all_f(1));   // scale 0: any code gives zero
    const int i = k * FRIT_DESCENT_LANES + at;
    const vec_f now = load_f(d->now + i), slope = load_f(d->gradient + i), curve = all_f(d->h[k * d->stride + k]);
    const vec_f best = add_f(sub_f(now, div_f(slope, curve)), min);
    vec_f code;
    const vec_f level = level_of(d, has_levels, div_f(best, divisor), &code);
    const vec_f next = sub_f(mul_f(scale, level), min);
    store_f(d->codes + i, code);
    store_f(d->now + i, next);
    return sub_f(next, now);
}

FRIT_INLINE void sweep_columns(const frit_descent *d, bool has_levels)
{
    for (int k = 0; k < d->n; k++) {
        const float *h = d->h + k * d->stride;
        vec_f steps[VECTORS];
        for (int v = 0; v < VECTORS; v++) steps[v] = step_of(d, has_levels, k, v * FLOATS);
        for (int j = 0; j < d->n; j++) {
            float *gradient = d->gradient + j * FRIT_DESCENT_LANES;
            for (int v = 0; v < VECTORS; v++)
                store_f(gradient + v * FLOATS, mul_add(steps[v], all_f(h[j]), load_f(gradient + v * FLOATS)));
        }
    }
}

static void descend(const frit_descent *d)
{
    for (int i = 0; i < d->n_sweeps; i++) d->levels ? sweep_columns(d, true) : sweep_columns(d, false);
}

// n is a multiple of FEW, as groups are.
static void follow(float *gradient, const float *steps, int n_steps, const float *h, int64_t stride, int n)
{
    for (int j = 0; j < n; j += FEW) {
        vec_f sums[FEW][VECTORS];
        for (int i = 0; i < FEW; i++)
            for (int v = 0; v < VECTORS; v++) sums[i][v] = load_f(gradient + (j + i) * FRIT_DESCENT_LANES + v * FLOATS);
        for (int k = 0; k < n_steps; k++)
            for (int v = 0; v < VECTORS; v++) {
                const vec_f step = load_f(steps + k * FRIT_DESCENT_LANES + v * FLOATS);
                for (int i = 0; i < FEW; i++) sums[i][v] = mul_add(step, all_f(h[k * stride + j + i]), sums[i][v]);
            }
        for (int i = 0; i < FEW; i++)
            for (int v = 0; v < VECTORS; v++) store_f(gradient + (j + i) * FRIT_DESCENT_LANES + v * FLOATS, sums[i][v]);
    }
}
