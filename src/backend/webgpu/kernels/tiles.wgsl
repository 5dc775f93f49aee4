// SPDX-License-Identifier: MIT
// Reading tiles: 16 rows and 256 columns of a matrix (weights/tiles.h has the layout). A unit is 32 columns of a row,
// of index row * 8 + group.
//
// TYPE: GGUF's number of the type. LOW, HIGH: bits of a code in the first and the second plane. HEAD, TAIL: bytes of
// scales of a row in each of two planes. TILE: 16-byte units of a tile. `tiles` and `words` are one buffer.
#define IS_FLOAT (LOW >= 16)
#define HAS_LEVELS (TYPE == 20 || TYPE == 23 || TYPE == 39 || TYPE == 40)
#define HAS_MIN (TYPE == 2 || TYPE == 3 || TYPE == 6 || TYPE == 7 || TYPE == 10 || TYPE == 11 || TYPE == 12 || TYPE == 13 || TYPE == 14)
#define HAS_16 (TYPE == 10 || TYPE == 11 || TYPE == 14 || TYPE == 40 || HEAD == 64)

#if !IS_FLOAT
struct codes {   // signed bytes of the unit's first and last 16 columns
    first: vec4<u32>,
    last: vec4<u32>,
}

#if HAS_LEVELS
// Entry b: the levels of the low and the high four bits of b.
var<workgroup> levels: array<u32, 256>;

fn level_of(code: u32) -> u32 {
#if TYPE == 39 || TYPE == 40
    let table = vec4<u32>(0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu);
#else
    let table = vec4<u32>(0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u);
#endif
    return (table[code >> 2u] >> (8u * (code & 3u))) & 0xffu;
}

fn fill_levels(thread: u32, threads: u32) {
    for (var b = thread; b < 256u; b += threads) {
        levels[b] = level_of(b & 15u) | (level_of(b >> 4u) << 8u);
    }
    workgroupBarrier();
}

fn levels_of(c: u32) -> vec2<u32> {
    let a = vec4<u32>(levels[c & 0xffu], levels[(c >> 8u) & 0xffu], levels[(c >> 16u) & 0xffu], levels[c >> 24u]);
    let low = a & vec4<u32>(0xffu);
    let high = a >> vec4<u32>(8u);
    return vec2<u32>(low.x | (low.y << 8u) | (low.z << 16u) | (low.w << 24u),
                     high.x | (high.y << 8u) | (high.z << 16u) | (high.w << 24u));
}
#endif

fn two_bits(c: vec2<u32>) -> codes {
    let m = vec4<u32>(0x03030303u);
    return codes(vec4<u32>(c.x, c.y, c.x >> 2u, c.y >> 2u) & m, vec4<u32>(c.x >> 4u, c.y >> 4u, c.x >> 6u, c.y >> 6u) & m);
}

fn codes_at(tile: u32, unit: u32) -> codes {
    var r: codes;
#if LOW == 8
    r = codes(tiles[tile + unit], tiles[tile + 128u + unit]);
#elif LOW == 4
    let c = tiles[tile + unit];
#if HAS_LEVELS
    let c0 = levels_of(c.x);
    let c1 = levels_of(c.y);
    let c2 = levels_of(c.z);
    let c3 = levels_of(c.w);
    r = codes(vec4<u32>(c0.x, c1.x, c2.x, c3.x), vec4<u32>(c0.y, c1.y, c2.y, c3.y));
#else
    let m = vec4<u32>(0x0f0f0f0fu);
    r = codes(c & m, (c >> vec4<u32>(4u)) & m);
#endif
#else
    let c = tiles[tile + unit / 2u];
    r = two_bits(select(c.xy, c.zw, (unit & 1u) == 1u));
#endif
#if HIGH == 1
    let h = words[(tile + 32u * LOWu) * 4u + unit];
#if LOW == 4
    let m_high = vec4<u32>(0x10101010u);
    r.first |= vec4<u32>(h << 4u, h << 3u, h << 2u, h << 1u) & m_high;
    r.last |= vec4<u32>(h, h >> 1u, h >> 2u, h >> 3u) & m_high;
#else
    let m_high = vec4<u32>(0x04040404u);
    r.first |= vec4<u32>(h << 2u, h << 1u, h, h >> 1u) & m_high;
    r.last |= vec4<u32>(h >> 2u, h >> 3u, h >> 4u, h >> 5u) & m_high;
#endif
#elif HIGH == 2
    let h4 = tiles[tile + 32u * LOWu + unit / 2u];
    let h = select(h4.xy, h4.zw, (unit & 1u) == 1u);
    let m_high = vec4<u32>(0x30303030u);   // LOW is 4
    r.first |= vec4<u32>(h.x << 4u, h.y << 4u, h.x << 2u, h.y << 2u) & m_high;
    r.last |= vec4<u32>(h.x, h.y, h.x >> 2u, h.y >> 2u) & m_high;
#endif
    return r;
}

fn head_word(tile: u32, row: u32, i: u32) -> u32 {
    return words[(tile + 32u * (LOWu + HIGHu)) * 4u + row * (HEADu / 4u) + i];
}

fn head_byte(tile: u32, row: u32, i: u32) -> u32 {
    return (head_word(tile, row, i / 4u) >> (8u * (i & 3u))) & 0xffu;
}

fn head_half(tile: u32, row: u32, i: u32) -> f32 {
    let pair = unpack2x16float(head_word(tile, row, i / 2u));
    return select(pair.x, pair.y, (i & 1u) == 1u);
}

fn tail_half(tile: u32, row: u32, i: u32) -> f32 {
    let at = row * (TAILu / 2u) + i;
    let pair = unpack2x16float(words[(tile + 32u * (LOWu + HIGHu) + HEADu) * 4u + at / 2u]);
    return select(pair.x, pair.y, (at & 1u) == 1u);
}

fn signed(byte: u32) -> f32 {
    return f32(i32(byte << 24u) >> 24u);
}

#if TYPE == 12 || TYPE == 13
fn six_bits(q: vec3<u32>, g: u32) -> vec2<f32> {   // scale and minimum of group g (quant/scales.h)
    // Groups 0 to 3 have the low six bits of a byte of q.x and q.y. Groups 4 to 7 have four bits of a byte of q.z, and
    // above them the high two bits of those bytes. Shifts and masks are the same for all tiles of a thread.
    let is_upper = g >= 4u;
    let shift = 8u * (g & 3u);
    let begin = shift + select(0u, 2u, is_upper);
    let outer = select(63u, 48u, is_upper);
    let inner = select(0u, 15u, is_upper);
    return vec2<f32>(f32(((q.x >> begin) & outer) | ((q.z >> shift) & inner)),
                     f32(((q.y >> begin) & outer) | ((q.z >> (shift + 4u)) & inner)));
}
#endif

// Number k of the unit is code * x + z for its first 16 columns, code * y + w for its last.
fn scales_at(tile: u32, row: u32, g: u32) -> vec4<f32> {
#if TYPE == 2
    let s = head_half(tile, row, g);
    return vec4<f32>(s, s, -8.0 * s, -8.0 * s);
#elif TYPE == 3 || TYPE == 7
    let s = head_half(tile, row, g);
    let m = tail_half(tile, row, g);
    return vec4<f32>(s, s, m, m);
#elif TYPE == 6
    let s = head_half(tile, row, g);
    return vec4<f32>(s, s, -16.0 * s, -16.0 * s);
#elif TYPE == 8 || TYPE == 20
    let s = head_half(tile, row, g);
    return vec4<f32>(s, s, 0.0, 0.0);
#elif TYPE == 10
    let d = tail_half(tile, row, 0u);
    let m = -tail_half(tile, row, 1u);
    let a = head_byte(tile, row, 2u * g);
    let b = head_byte(tile, row, 2u * g + 1u);
    return vec4<f32>(d * f32(a & 15u), d * f32(b & 15u), m * f32(a >> 4u), m * f32(b >> 4u));
#elif TYPE == 11
    let d = tail_half(tile, row, 0u);
    let a = d * signed(head_byte(tile, row, 2u * g));
    let b = d * signed(head_byte(tile, row, 2u * g + 1u));
    return vec4<f32>(a, b, -4.0 * a, -4.0 * b);
#elif TYPE == 12 || TYPE == 13
    let head = tiles[tile + 32u * (LOWu + HIGHu) + row];
    let d = unpack2x16float(head.x);
    let q = six_bits(head.yzw, g);
    return vec4<f32>(d.x * q.x, d.x * q.x, -d.y * q.y, -d.y * q.y);
#elif TYPE == 14
    let d = tail_half(tile, row, 0u);
    let a = d * signed(head_byte(tile, row, 2u * g));
    let b = d * signed(head_byte(tile, row, 2u * g + 1u));
    return vec4<f32>(a, b, -32.0 * a, -32.0 * b);
#elif TYPE == 23
    let s = tail_half(tile, row, 0u) * signed(head_byte(tile, row, g));
    return vec4<f32>(s, s, 0.0, 0.0);
#elif TYPE == 39
    // Half of 2^(e - 127): exponents 0 and 1 are denormal numbers.
    let e = head_byte(tile, row, g);
    let s = bitcast<f32>(select((e - 1u) << 23u, 0x00200000u << e, e < 2u));
    return vec4<f32>(s, s, 0.0, 0.0);
#elif TYPE == 40
    return vec4<f32>(small_float(head_byte(tile, row, 2u * g)), small_float(head_byte(tile, row, 2u * g + 1u)), 0.0, 0.0);
#else
    return vec4<f32>(bitcast<f32>(head_word(tile, row, 2u * g)), bitcast<f32>(head_word(tile, row, 2u * g + 1u)), 0.0, 0.0);
#endif
}

#if TYPE == 40
fn small_float(byte: u32) -> f32 {   // half of an unsigned E4M3; 0 and 127 are 0
    let e = byte >> 3u;
    let m = f32(byte & 7u);
    let x = select((1.0 + m * 0.125) * exp2(f32(e) - 8.0), m * 0.0009765625, e == 0u);
    return select(x, 0.0, byte == 0u || byte == 0x7fu);
}
#endif

fn signed4(c: u32) -> vec4<f32> {
    return vec4<f32>(vec4<i32>(vec4<u32>(c << 24u, c << 16u, c << 8u, c)) >> vec4<u32>(24u));
}

// Columns 4 q to 4 q + 3 of the unit.
fn numbers_at(tile: u32, row: u32, g: u32, q: u32) -> vec4<f32> {
    let c = codes_at(tile, row * 8u + g);
    let s = scales_at(tile, row, g);
    let is_last = q >= 4u;
    return signed4(select(c.first[q & 3u], c.last[q & 3u], is_last)) * select(s.x, s.y, is_last) + select(s.z, s.w, is_last);
}

#else

fn fill_levels(thread: u32, threads: u32) {
}

fn numbers_at(tile: u32, row: u32, g: u32, q: u32) -> vec4<f32> {
    let unit = row * 8u + g;
#if LOW == 32
    return bitcast<vec4<f32>>(tiles[tile + q * 128u + unit]);
#else
    let c = tiles[tile + (q / 2u) * 128u + unit];
    let h = select(c.xy, c.zw, (q & 1u) == 1u);
#if TYPE == 1
    return vec4<f32>(unpack2x16float(h.x), unpack2x16float(h.y));
#else
    return bitcast<vec4<f32>>(vec4<u32>(h.x << 16u, h.x & 0xffff0000u, h.y << 16u, h.y & 0xffff0000u));
#endif
#endif
}
#endif
#if !IS_FLOAT && !HAS_LEVELS
fn fill_levels(thread: u32, threads: u32) {
}
#endif
