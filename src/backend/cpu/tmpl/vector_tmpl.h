// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/vector_tmpl.h: norms, elementwise ops, activation functions and rope, in operations on vec_f, which
// the including file defines, with math_tmpl.h and rope_interleaved.
#include <math.h>

// ------------------------------------------------------------------------------- norms

static void rms_norm(float *y, const float *x, const float *w, int64_t n, float eps)
{
    vec_f sums[2] = {zero_f(), zero_f()};
    int64_t i = 0;
    for (; i + 2 * FLOATS <= n; i += 2 * FLOATS) {
        const vec_f a = load_f(x + i), b = load_f(x + i + FLOATS);
        sums[0] = mul_add(a, a, sums[0]);
        sums[1] = mul_add(b, b, sums[1]);
    }
    for (; i < n; i += FLOATS) {
        const vec_f a = n - i >= FLOATS ? load_f(x + i) : load_part(x + i, n - i);
        sums[0] = mul_add(a, a, sums[0]);
    }
    const float mean = sum_lanes(add_f(sums[0], sums[1])) / (float)n;
    const vec_f scale = all_f(1 / sqrtf(mean + eps));
    for (i = 0; i + FLOATS <= n; i += FLOATS) {
        const vec_f v = mul_f(load_f(x + i), scale);
        store_f(y + i, w ? mul_f(v, load_f(w + i)) : v);
    }
    if (i == n) return;
    const vec_f v = mul_f(load_part(x + i, n - i), scale);
    store_part(y + i, w ? mul_f(v, load_part(w + i, n - i)) : v, n - i);
}

static float sum_of_squares_from(const float *x, float mean, int64_t n)
{
    const vec_f m = all_f(mean);
    vec_f sum = zero_f();
    int64_t i = 0;
    for (; i + FLOATS <= n; i += FLOATS) {
        const vec_f d = sub_f(load_f(x + i), m);
        sum = mul_add(d, d, sum);
    }
    float rest = 0;
    for (; i < n; i++) rest += (x[i] - mean) * (x[i] - mean);
    return sum_lanes(sum) + rest;
}

static float sum_of(const float *x, int64_t n)
{
    vec_f sum = zero_f();
    int64_t i = 0;
    for (; i + FLOATS <= n; i += FLOATS) sum = add_f(sum, load_f(x + i));
    if (i < n) sum = add_f(sum, load_part(x + i, n - i));
    return sum_lanes(sum);
}

static void layer_norm(float *y, const float *x, const float *w, const float *b, int64_t n, float eps)
{
    const float mean = sum_of(x, n) / (float)n;
    const float scale = 1 / sqrtf(sum_of_squares_from(x, mean, n) / (float)n + eps);
    for (int64_t i = 0; i < n; i += FLOATS) {
        const int64_t left = n - i < FLOATS ? n - i : FLOATS;
        vec_f v = sub_f(load_part(x + i, left), all_f(mean));
        v = mul_f(v, all_f(scale));
        if (w) v = mul_f(v, load_part(w + i, left));
        if (b) v = add_f(v, load_part(b + i, left));
        store_part(y + i, v, left);
    }
}

// ------------------------------------------------------------------------------- elementwise

typedef vec_f (*unary_op)(vec_f x);

FRIT_INLINE void map(float *y, const float *x, int64_t n, unary_op op)
{
    int64_t i = 0;
    for (; i + FLOATS <= n; i += FLOATS) store_f(y + i, op(load_f(x + i)));
    if (i < n) store_part(y + i, op(load_part(x + i, n - i)), n - i);
}

static void add(float *y, const float *a, const float *b, int64_t n)
{
    int64_t i = 0;
    for (; i + FLOATS <= n; i += FLOATS) store_f(y + i, add_f(load_f(a + i), load_f(b + i)));
    if (i < n) store_part(y + i, add_f(load_part(a + i, n - i), load_part(b + i, n - i)), n - i);
}

static void mul(float *y, const float *a, const float *b, int64_t n)
{
    int64_t i = 0;
    for (; i + FLOATS <= n; i += FLOATS) store_f(y + i, mul_f(load_f(a + i), load_f(b + i)));
    if (i < n) store_part(y + i, mul_f(load_part(a + i, n - i), load_part(b + i, n - i)), n - i);
}

static void scale(float *y, const float *x, float factor, int64_t n)
{
    const vec_f f = all_f(factor);
    int64_t i = 0;
    for (; i + FLOATS <= n; i += FLOATS) store_f(y + i, mul_f(load_f(x + i), f));
    if (i < n) store_part(y + i, mul_f(load_part(x + i, n - i), f), n - i);
}

static void softcap(float *y, const float *x, float cap, int64_t n)
{
    const vec_f c = all_f(cap);
    int64_t i = 0;
    for (; i + FLOATS <= n; i += FLOATS) store_f(y + i, mul_f(c, tanh_f(div_f(load_f(x + i), c))));
    if (i < n) store_part(y + i, mul_f(c, tanh_f(div_f(load_part(x + i, n - i), c))), n - i);
}

static void silu(float *y, const float *x, int64_t n)
{
    map(y, x, n, silu_f);
}

static void gelu(float *y, const float *x, int64_t n)
{
    map(y, x, n, gelu_f);
}

static void gelu_tanh(float *y, const float *x, int64_t n)
{
    map(y, x, n, gelu_tanh_f);
}

static void gelu_quick(float *y, const float *x, int64_t n)
{
    map(y, x, n, gelu_quick_f);
}

static void relu(float *y, const float *x, int64_t n)
{
    map(y, x, n, relu_f);
}

static void relu2(float *y, const float *x, int64_t n)
{
    map(y, x, n, relu2_f);
}

static void sigmoid(float *y, const float *x, int64_t n)
{
    map(y, x, n, sigmoid_f);
}

static void softplus(float *y, const float *x, int64_t n)
{
    map(y, x, n, softplus_f);
}

static void act_tanh(float *y, const float *x, int64_t n)
{
    map(y, x, n, tanh_f);
}

FRIT_INLINE vec_f xielu_f(vec_f x, const frit_xielu *p)
{
    const vec_f low = min_f(all_f(p->eps), x);   // in this order NaN passes through
    const vec_f below = mul_f(all_f(p->negative), add_f(exp_rest_f(low), sub_f(low, x)));
    const vec_f above = mul_f(all_f(p->positive), mul_f(x, x));
    return mul_add(all_f(p->beta), x, if_less(zero_f(), x, above, below));
}

static void xielu(float *y, const float *x, const frit_xielu *p, int64_t n)
{
    int64_t i = 0;
    for (; i + FLOATS <= n; i += FLOATS) store_f(y + i, xielu_f(load_f(x + i), p));
    if (i < n) store_part(y + i, xielu_f(load_part(x + i, n - i), p), n - i);
}

// ------------------------------------------------------------------------------- rope

static void rope_neox(float *y, const float *x, const float *table, int64_t n)
{
    int64_t i = 0;
    for (; i + FLOATS <= n; i += FLOATS) {
        const vec_f c = load_f(table + i), s = load_f(table + n + i);
        const vec_f a = load_f(x + i), b = load_f(x + n + i);
        store_f(y + i, sub_f(mul_f(a, c), mul_f(b, s)));
        store_f(y + n + i, add_f(mul_f(a, s), mul_f(b, c)));
    }
    for (; i < n; i++) {
        const float a = x[i], b = x[n + i];
        y[i] = a * table[i] - b * table[n + i];
        y[n + i] = a * table[n + i] + b * table[i];
    }
}

FRIT_INLINE void install_vectors(frit_kernels *k)
{
    k->rms_norm = rms_norm;
    k->layer_norm = layer_norm;
    k->add = add;
    k->mul = mul;
    k->scale = scale;
    k->softcap = softcap;
    k->act[FRIT_ACT_SILU] = silu;
    k->act[FRIT_ACT_GELU] = gelu;
    k->act[FRIT_ACT_GELU_TANH] = gelu_tanh;
    k->act[FRIT_ACT_GELU_QUICK] = gelu_quick;
    k->act[FRIT_ACT_RELU] = relu;
    k->act[FRIT_ACT_RELU2] = relu2;
    k->act[FRIT_ACT_SIGMOID] = sigmoid;
    k->act[FRIT_ACT_TANH] = act_tanh;
    k->act[FRIT_ACT_SOFTPLUS] = softplus;
    k->xielu = xielu;
    k->rope[FRIT_ROPE_INTERLEAVED] = rope_interleaved;
    k->rope[FRIT_ROPE_NEOX] = rope_neox;
}
