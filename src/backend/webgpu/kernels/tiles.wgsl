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

struct raw_codes {   // of a unit, as they lie in the tile
    low: vec4<u32>,
    high: vec4<u32>,   // the last 16 codes of 8 bits, or the second plane
}

fn raw_codes_at(tile: u32, unit: u32) -> raw_codes {
    var r: raw_codes;
#if LOW == 8
    r.low = tiles[tile + unit];
    r.high = tiles[tile + 128u + unit];
#elif LOW == 4
    r.low = tiles[tile + unit];
#else
    r.low = tiles[tile + unit / 2u];
#endif
#if HIGH == 1
    r.high.x = words[(tile + 32u * LOWu) * 4u + unit];
#elif HIGH == 2
    r.high = tiles[tile + 32u * LOWu + unit / 2u];
#endif
    return r;
}

fn codes_of(raw: raw_codes, unit: u32) -> codes {
    var r: codes;
#if LOW == 8
    r = codes(raw.low, raw.high);
#elif LOW == 4
    let c = raw.low;
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
    r = two_bits(select(raw.low.xy, raw.low.zw, (unit & 1u) == 1u));
#endif
#if HIGH == 1
    let h = raw.high.x;
    let bits = vec4<u32>(0x01010101u);
    r.first |= (vec4<u32>(h, h >> 1u, h >> 2u, h >> 3u) & bits) << vec4<u32>(LOWu);
    r.last |= (vec4<u32>(h >> 4u, h >> 5u, h >> 6u, h >> 7u) & bits) << vec4<u32>(LOWu);
#elif HIGH == 2
    let high = two_bits(select(raw.high.xy, raw.high.zw, (unit & 1u) == 1u));
    r.first |= high.first << vec4<u32>(LOWu);
    r.last |= high.last << vec4<u32>(LOWu);
#endif
    return r;
}

fn codes_at(tile: u32, unit: u32) -> codes {
    return codes_of(raw_codes_at(tile, unit), unit);
}

fn signed(byte: u32) -> f32 {
    return f32(i32(byte << 24u) >> 24u);
}

#if TYPE == 12 || TYPE == 13
fn six_bits(q: vec3<u32>, g: u32) -> vec2<f32> {   // scale and minimum of group g (quant/scales.h)
    let shift = 8u * (g & 3u);
    let a = (q.x >> shift) & 0xffu;
    let b = (q.y >> shift) & 0xffu;
    let c = (q.z >> shift) & 0xffu;
    let low = vec2<u32>(a & 63u, b & 63u);
    let high = vec2<u32>((c & 15u) | ((a >> 6u) << 4u), (c >> 4u) | ((b >> 6u) << 4u));
    return vec2<f32>(select(low, high, g >= 4u));
}
#endif

fn head_word(tile: u32, row: u32, i: u32) -> u32 {
    return words[(tile + 32u * (LOWu + HIGHu)) * 4u + row * (HEADu / 4u) + i];
}

fn tail_word(tile: u32, half: u32) -> u32 {
    return words[(tile + 32u * (LOWu + HIGHu) + HEADu) * 4u + half / 2u];
}

fn byte_of(word: u32, i: u32) -> u32 {
    return (word >> (8u * (i & 3u))) & 0xffu;
}

fn half_of(word: u32, i: u32) -> f32 {
    let pair = unpack2x16float(word);
    return select(pair.x, pair.y, (i & 1u) == 1u);
}

// The words of the heads and tails that have the scales of the unit.
fn raw_scales_at(tile: u32, row: u32, g: u32) -> vec4<u32> {
    var r: vec4<u32>;
#if TYPE == 12 || TYPE == 13
    r = tiles[tile + 32u * (LOWu + HIGHu) + row];
#elif TYPE == 2 || TYPE == 6 || TYPE == 8 || TYPE == 20
    r.x = head_word(tile, row, g / 2u);
#elif TYPE == 3 || TYPE == 7
    r.x = head_word(tile, row, g / 2u);
    r.z = tail_word(tile, row * 8u + g);
#elif TYPE == 10
    r.x = head_word(tile, row, g / 2u);
    r.z = tail_word(tile, row * 2u);
#elif TYPE == 11 || TYPE == 14
    r.x = head_word(tile, row, g / 2u);
    r.z = tail_word(tile, row);
#elif TYPE == 23
    r.x = head_word(tile, row, g / 4u);
    r.z = tail_word(tile, row);
#elif TYPE == 39
    r.x = head_word(tile, row, g / 4u);
#elif TYPE == 40
    r.x = head_word(tile, row, g / 2u);
#else
    r.x = head_word(tile, row, 2u * g);
    r.y = head_word(tile, row, 2u * g + 1u);
#endif
    return r;
}

// Number k of the unit is code * x + z for its first 16 columns, code * y + w for its last.
fn scales_of(raw: vec4<u32>, row: u32, g: u32) -> vec4<f32> {
#if TYPE == 2
    let s = half_of(raw.x, g);
    return vec4<f32>(s, s, -8.0 * s, -8.0 * s);
#elif TYPE == 3 || TYPE == 7
    let s = half_of(raw.x, g);
    let m = half_of(raw.z, g);
    return vec4<f32>(s, s, m, m);
#elif TYPE == 6
    let s = half_of(raw.x, g);
    return vec4<f32>(s, s, -16.0 * s, -16.0 * s);
#elif TYPE == 8 || TYPE == 20
    let s = half_of(raw.x, g);
    return vec4<f32>(s, s, 0.0, 0.0);
#elif TYPE == 10
    let d = unpack2x16float(raw.z);
    let a = byte_of(raw.x, 2u * g);
    let b = byte_of(raw.x, 2u * g + 1u);
    return vec4<f32>(d.x * f32(a & 15u), d.x * f32(b & 15u), -d.y * f32(a >> 4u), -d.y * f32(b >> 4u));
#elif TYPE == 11 || TYPE == 14
    let d = half_of(raw.z, row);
    let a = d * signed(byte_of(raw.x, 2u * g));
    let b = d * signed(byte_of(raw.x, 2u * g + 1u));
#if TYPE == 11
    return vec4<f32>(a, b, -4.0 * a, -4.0 * b);
#else
    return vec4<f32>(a, b, -32.0 * a, -32.0 * b);
#endif
#elif TYPE == 12 || TYPE == 13
    let d = unpack2x16float(raw.x);
    let q = six_bits(raw.yzw, g);
    return vec4<f32>(d.x * q.x, d.x * q.x, -d.y * q.y, -d.y * q.y);
#elif TYPE == 23
    let s = half_of(raw.z, row) * signed(byte_of(raw.x, g));
    return vec4<f32>(s, s, 0.0, 0.0);
#elif TYPE == 39
    // Half of 2^(e - 127): exponents 0 and 1 are denormal numbers.
    let e = byte_of(raw.x, g);
    let s = bitcast<f32>(select((e - 1u) << 23u, 0x00200000u << e, e < 2u));
    return vec4<f32>(s, s, 0.0, 0.0);
#elif TYPE == 40
    return vec4<f32>(small_float(byte_of(raw.x, 2u * g)), small_float(byte_of(raw.x, 2u * g + 1u)), 0.0, 0.0);
#else
    return vec4<f32>(bitcast<f32>(raw.x), bitcast<f32>(raw.y), 0.0, 0.0);
#endif
}

fn scales_at(tile: u32, row: u32, g: u32) -> vec4<f32> {
    return scales_of(raw_scales_at(tile, row, g), row, g);
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
