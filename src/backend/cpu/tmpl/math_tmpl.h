// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/math_tmpl.h: exponential, hyperbolic tangent and activation functions of vectors, by
// polynomials. Errors are below 3e-7 relative to the largest term; NaN stays NaN. exp saturates at both ends, below at
// FRIT_LEAST_WEIGHT. The including file defines vec_f and its operations: floats_*.h.

// exp(x) = 2^n exp(r) with n = round(x / ln 2) and |r| <= ln 2 / 2, where eight terms of the series are enough.
FRIT_INLINE vec_f exp_f(vec_f x)
{
    x = min_f(all_f(88.3f), max_f(all_f(FRIT_LEAST_WEIGHT), x));   // in this order NaN passes through
    const vec_f n = nearest(mul_f(x, all_f(1.44269504f)));
    vec_f r = mul_sub_from(n, all_f(0.693145752f), x);   // ln 2 in two parts, the first with trailing zeros
    r = mul_sub_from(n, all_f(1.42860677e-6f), r);
    vec_f p = all_f(1.0f / 5040);
    p = mul_add(p, r, all_f(1.0f / 720));
    p = mul_add(p, r, all_f(1.0f / 120));
    p = mul_add(p, r, all_f(1.0f / 24));
    p = mul_add(p, r, all_f(1.0f / 6));
    p = mul_add(p, r, all_f(0.5f));
    p = mul_add(p, r, all_f(1));
    p = mul_add(p, r, all_f(1));
    return mul_f(p, power_of_two(n));
}

// 1 - 2 / (exp(2x) + 1). Around zero this loses digits, so the series up to x^11 replaces it.
FRIT_INLINE vec_f tanh_f(vec_f x)
{
    const vec_f e = exp_f(add_f(x, x));
    const vec_f far = sub_f(all_f(1), div_f(all_f(2), add_f(e, all_f(1))));
    const vec_f x2 = mul_f(x, x);
    vec_f p = all_f(-1382.0f / 155925);
    p = mul_add(p, x2, all_f(62.0f / 2835));
    p = mul_add(p, x2, all_f(-17.0f / 315));
    p = mul_add(p, x2, all_f(2.0f / 15));
    p = mul_add(p, x2, all_f(-1.0f / 3));
    const vec_f near = mul_add(mul_f(p, x2), x, x);
    return if_less(x2, all_f(0.09f), near, far);
}

FRIT_INLINE vec_f sigmoid_f(vec_f x)
{
    return div_f(all_f(1), add_f(all_f(1), exp_f(sub_f(zero_f(), x))));
}

FRIT_INLINE vec_f silu_f(vec_f x)
{
    return mul_f(x, sigmoid_f(x));
}

FRIT_INLINE vec_f gelu_quick_f(vec_f x)
{
    return mul_f(x, sigmoid_f(mul_f(x, all_f(1.702f))));
}

// (1 + tanh u) / 2 is sigmoid(2u).
FRIT_INLINE vec_f gelu_tanh_f(vec_f x)
{
    const vec_f cubic = mul_add(mul_f(mul_f(x, x), all_f(0.044715f)), x, x);
    return mul_f(x, sigmoid_f(mul_f(cubic, all_f(1.59576912f))));   // 2 sqrt(2 / pi)
}

// erf by formula 7.1.26 of Abramowitz and Stegun, with an error of at most 1.5e-7.
FRIT_INLINE vec_f gelu_f(vec_f x)
{
    const vec_f z = mul_f(x, all_f(0.707106781f)), a = abs_f(z);
    const vec_f t = div_f(all_f(1), mul_add(all_f(0.3275911f), a, all_f(1)));
    vec_f p = all_f(1.061405429f);
    p = mul_add(p, t, all_f(-1.453152027f));
    p = mul_add(p, t, all_f(1.421413741f));
    p = mul_add(p, t, all_f(-0.284496736f));
    p = mul_add(p, t, all_f(0.254829592f));
    const vec_f e = exp_f(sub_f(zero_f(), mul_f(a, a)));
    const vec_f erf = sub_f(all_f(1), mul_f(mul_f(p, t), e));
    return mul_f(mul_f(all_f(0.5f), x), add_f(all_f(1), with_sign(erf, z)));
}

// max(x, 0) + log(1 + u), u = exp(-|x|); log(1 + u) = 2 atanh(z), z = u / (2 + u) <= 1 / 3.
FRIT_INLINE vec_f softplus_f(vec_f x)
{
    const vec_f u = exp_f(sub_f(zero_f(), abs_f(x)));
    const vec_f z = div_f(u, add_f(u, all_f(2))), zz = mul_f(z, z);
    vec_f sum = all_f(1 / 15.0f);
    for (int i = 13; i > 0; i -= 2) sum = mul_add(sum, zz, all_f(1 / (float)i));
    return mul_add(add_f(z, z), sum, max_f(zero_f(), x));
}

// exp(x) - 1 - x for x <= 0. Around zero this loses digits, so the series up to x^9 replaces it.
FRIT_INLINE vec_f exp_rest_f(vec_f x)
{
    vec_f p = all_f(1.0f / 362880);
    p = mul_add(p, x, all_f(1.0f / 40320));
    p = mul_add(p, x, all_f(1.0f / 5040));
    p = mul_add(p, x, all_f(1.0f / 720));
    p = mul_add(p, x, all_f(1.0f / 120));
    p = mul_add(p, x, all_f(1.0f / 24));
    p = mul_add(p, x, all_f(1.0f / 6));
    p = mul_add(p, x, all_f(0.5f));
    const vec_f near = mul_f(p, mul_f(x, x)), far = sub_f(sub_f(exp_f(x), all_f(1)), x);
    return if_less(all_f(-0.7f), x, near, far);
}

FRIT_INLINE vec_f relu_f(vec_f x)
{
    return max_f(zero_f(), x);
}

FRIT_INLINE vec_f relu2_f(vec_f x)
{
    const vec_f r = relu_f(x);
    return mul_f(r, r);
}
