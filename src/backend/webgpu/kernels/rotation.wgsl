// SPDX-License-Identifier: MIT
// Angles of rotations. `revolutions`, which the kernel declares, has for each pair how far it rotates from one position
// to the next: the fraction of a revolution as a fixed-point number of 64 bits, low word first. So the angle of a far
// position is exact.
// Sine of x revolutions, |x| <= 1 / 8, and of 1/4 - x.
fn sine(x: f32) -> f32 {
    let a = x * 6.28318530717958648;
    let s = a * a;
    return a * (1.0 + s * (-1.66666667e-1 + s * (8.33333333e-3 + s * (-1.98412698e-4 + s * 2.75573192e-6))));
}

fn cosine(x: f32) -> f32 {
    let a = x * 6.28318530717958648;
    let s = a * a;
    return 1.0 + s * (-0.5 + s * (4.16666667e-2 + s * (-1.38888889e-3 + s * (2.48015873e-5 - s * 2.75573192e-7))));
}

fn rotation_of(position: u32, pair: u32) -> vec2<f32> {   // cosine and sine
    let step_of = revolutions[pair];
    let low = step_of.x >> 16u;
    let carry = (((position & 0xffffu) * low) >> 16u) + (position >> 16u) * low;
    let angle = position * step_of.y + carry;
    let quarter = (angle + 0x20000000u) >> 30u;   // the nearest
    let x = f32(i32(angle - (quarter << 30u))) * 2.3283064365386963e-10;
    let c = cosine(x);
    let s = sine(x);
    switch quarter & 3u {
        case 0u: { return vec2<f32>(c, s); }
        case 1u: { return vec2<f32>(-s, c); }
        case 2u: { return vec2<f32>(-c, -s); }
        default: { return vec2<f32>(s, -c); }
    }
}
