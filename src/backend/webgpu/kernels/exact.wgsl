// SPDX-License-Identifier: MIT
// Arithmetic whose results are those of the CPU to the bit: floats without contraction, integers of 64 bits as
// (low, high), and the weights of sample/weight.h.
//
// P_ZERO: a parameter that is 0, which compilers do not know. WGSL rounds sums and products correctly, but lets
// compilers join several of them.
fn kept(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ P_ZERO);
}

// a / b of normal numbers, rounded to nearest. WGSL's division may be wrong in the last bits.
fn quotient(a: f32, b: f32) -> f32 {
    let x = bitcast<u32>(a);
    let y = bitcast<u32>(b);
    let ex = (x >> 23u) & 0xffu;
    let ey = (y >> 23u) & 0xffu;
    if (ex == 0u || ex == 255u || ey == 0u || ey == 255u) {
        return a / b;
    }
    var rest = (x & 0x7fffffu) | 0x800000u;
    let divisor = (y & 0x7fffffu) | 0x800000u;
    var e = i32(ex) - i32(ey) + 127;
    if (rest < divisor) {
        rest = rest << 1u;
        e -= 1;
    }
    var q = 0u;   // 25 bits; the last one is for rounding
    for (var i = 0u; i < 25u; i++) {
        q = q << 1u;
        if (rest >= divisor) {
            rest -= divisor;
            q |= 1u;
        }
        rest = rest << 1u;
    }
    let is_up = ((q & 1u) == 1u) && ((rest != 0u) || ((q & 2u) == 2u));
    q = (q >> 1u) + select(0u, 1u, is_up);
    if (q == 0x1000000u) {
        q = q >> 1u;
        e += 1;
    }
    if (e <= 0) {
        return a / b;
    }
    let magnitude = select((u32(e) << 23u) | (q & 0x7fffffu), 0x7f800000u, e >= 255);
    return bitcast<f32>(((x ^ y) & 0x80000000u) | magnitude);
}

// frit_exp: e^x for x <= 0.
fn exp_of(number: f32) -> f32 {
    let x = bitcast<f32>(min(bitcast<u32>(number) & 0x7fffffffu, 0x42ae0000u) | 0x80000000u);
    let shifted = kept(kept(x * 1.44269504088896341) + 12582912.0);
    let n = kept(shifted - 12582912.0);
    let r = kept(kept(x - kept(n * 0.693359375)) - kept(n * -2.12194440e-4));
    var p = kept(kept(1.9875691500e-4 * r) + 1.3981999507e-3);
    p = kept(kept(p * r) + 8.3334519073e-3);
    p = kept(kept(p * r) + 4.1665795894e-2);
    p = kept(kept(p * r) + 1.6666665459e-1);
    p = kept(kept(p * r) + 5.0000001201e-1);
    p = kept(kept(kept(p * kept(r * r)) + r) + 1.0);
    return kept(p * bitcast<f32>((bitcast<u32>(shifted) << 23u) + (127u << 23u)));
}

// frit_weight, of a logit minus the largest one.
fn weight_of(x: f32) -> u32 {
    return u32(kept(kept(exp_of(x) * 1073741824.0) + 0.5));
}

fn weight_at(logit: f32, most: f32, temp: f32) -> u32 {
    let below = kept(logit - most);
    if (temp == 1.0) {
        return weight_of(below);
    }
    return weight_of(quotient(below, temp));
}

// ------------------------------------------------------------------------------- integers

fn sum_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn difference_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}

fn is_less_64(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.y < b.y || ((a.y == b.y) && (a.x < b.x));
}

fn product_32(a: u32, b: u32) -> vec2<u32> {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let middle0 = (a >> 16u) * (b & 0xffffu);
    let middle1 = (a & 0xffffu) * (b >> 16u);
    let carry = (low >> 16u) + (middle0 & 0xffffu) + (middle1 & 0xffffu);
    return vec2<u32>((low & 0xffffu) | (carry << 16u), (a >> 16u) * (b >> 16u) + (middle0 >> 16u) + (middle1 >> 16u) + (carry >> 16u));
}

// frit_philox_below: the upper 64 bits of the product.
fn number_below(drawn: vec2<u32>, n: vec2<u32>) -> vec2<u32> {
    let ad = product_32(drawn.y, n.x);
    let bc = product_32(drawn.x, n.y);
    let bd = product_32(drawn.x, n.x);
    let middle = sum_64(sum_64(vec2<u32>(ad.x, 0u), vec2<u32>(bc.x, 0u)), vec2<u32>(bd.y, 0u));
    let above = sum_64(vec2<u32>(ad.y, 0u), sum_64(vec2<u32>(bc.y, 0u), vec2<u32>(middle.y, 0u)));
    return sum_64(product_32(drawn.y, n.y), above);
}

// ------------------------------------------------------------------------------- a share of a sum

fn shifted_right(v: vec3<u32>, n: u32) -> vec3<u32> {
    var r = v;
    for (var i = 0u; i < n / 32u; i++) {
        r = vec3<u32>(r.y, r.z, 0u);
    }
    let s = n % 32u;
    if (s == 0u) {
        return r;
    }
    return vec3<u32>((r.x >> s) | (r.y << (32u - s)), (r.y >> s) | (r.z << (32u - s)), r.z >> s);
}

fn shifted_left(v: vec3<u32>, n: u32) -> vec3<u32> {   // n < 32
    if (n == 0u) {
        return v;
    }
    return vec3<u32>(v.x << n, (v.y << n) | (v.x >> (32u - n)), (v.z << n) | (v.y >> (32u - n)));
}

fn sum_of_one(v: vec3<u32>) -> vec3<u32> {
    let low = sum_64(v.xy, vec2<u32>(1u, 0u));
    return vec3<u32>(low, v.z + select(0u, 1u, (low.x | low.y) == 0u));
}

fn has_bits_below(v: vec3<u32>, n: u32) -> bool {
    for (var i = 0u; i < 3u; i++) {
        let begin = 32u * i;
        if (n >= begin + 32u && v[i] != 0u) {
            return true;
        }
        if ((n > begin) && (n < begin + 32u) && ((v[i] & ((1u << (n - begin)) - 1u)) != 0u)) {
            return true;
        }
    }
    return false;
}

// The least integer that is not less than total * share, with the product rounded to 53 bits, as the CPU's f64 is.
// total: below 2^48, share: between 0 and 1.
fn share_of(total: vec2<u32>, share: f32) -> vec2<u32> {
    let bits = bitcast<u32>(share);
    let m = (bits & 0x7fffffu) | 0x800000u;
    let point = 150u - (bits >> 23u);
    let low = product_32(total.x, m);
    let high = sum_64(product_32(total.y, m), vec2<u32>(low.y, 0u));
    var p = vec3<u32>(low.x, high.x, high.y);
    var length = 96u - countLeadingZeros(p.z);
    if (p.z == 0u) {
        length = 64u - countLeadingZeros(p.y);
    }
    if (length > 53u) {
        let n = length - 53u;
        let is_half = (shifted_right(p, n - 1u).x & 1u) == 1u;
        let is_odd = (shifted_right(p, n).x & 1u) == 1u;
        let is_up = is_half && (is_odd || has_bits_below(p, n - 1u));
        p = shifted_right(p, n);
        if (is_up) {
            p = sum_of_one(p);
        }
        p = shifted_left(p, n);
    }
    if (point >= 96u) {
        return vec2<u32>(1u, 0u);
    }
    let whole = shifted_right(p, point).xy;
    return select(whole, sum_64(whole, vec2<u32>(1u, 0u)), has_bits_below(p, point));
}
