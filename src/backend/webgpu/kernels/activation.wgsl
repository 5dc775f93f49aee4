// SPDX-License-Identifier: MIT
// Activations by the numbers of frit_act (graph/graph.h).
fn tanh_of(x: f32) -> f32 {   // tanh of large numbers is NaN on some GPUs
    let e = exp(-2.0 * abs(x));
    let t = select((1.0 - e) / (1.0 + e), abs(x) - abs(x) * x * x / 3.0, abs(x) < 0.02);
    return select(t, -t, x < 0.0);
}

// Abramowitz and Stegun's 7.1.26 has too large an error: this is a Chebyshev fit of erfc, relative error 1.2e-7.
fn erf_of(x: f32) -> f32 {
    let z = abs(x);
    let t = 1.0 / (1.0 + 0.5 * z);
    let p = -1.26551223 + t * (1.00002368 + t * (0.37409196 + t * (0.09678418 + t * (-0.18628806 + t * (0.27886807
            + t * (-1.13520398 + t * (1.48851587 + t * (-0.82215223 + t * 0.17087277))))))));
    let r = 1.0 - t * exp(-z * z + p);
    return select(r, -r, x < 0.0);
}

fn activate(kind: u32, x: f32) -> f32 {
    switch kind {
        case 0u: { return x / (1.0 + exp(-x)); }
        case 1u: { return x * (1.0 + erf_of(x * 0.70710678118654752)) * 0.5; }
        case 2u: { return 0.5 * x * (1.0 + tanh_of(0.79788456080286536 * (x + 0.044715 * x * x * x))); }
        case 3u: { return x / (1.0 + exp(-1.702 * x)); }
        case 4u: { return max(x, 0.0); }
        case 5u: { return max(x, 0.0) * max(x, 0.0); }
        case 6u: { return 1.0 / (1.0 + exp(-x)); }
        case 7u: { return tanh_of(x); }
        default: {
            let e = exp(-abs(x));   // log(1 + e) with little loss for small e
            return max(x, 0.0) + select(log(1.0 + e), e - 0.5 * e * e, e < 0.0005);
        }
    }
}
