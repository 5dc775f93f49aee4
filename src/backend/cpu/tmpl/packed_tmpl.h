// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_tmpl.h: products of packed weights (pack/pack.h), written in operations on `vec`, a register
// with one 4-byte word for each of LANES rows. A panel of 16 rows is PANEL_STRIPS strips of LANES rows. Each
// instruction set includes this file once, after it has defined the names of the tables below.
//
//     for each block of tokens, for each group of panels
//         for each 256 columns
//             for each panel of the group
//                 unpack codes and scales           into memory, or into registers up to DIRECT_TOKENS tokens
//                 for each tile of tokens
//                     for each unit of 32 columns   prefetches a part of the next weights
//                         for each quad of four columns
//                             for each token        dot += codes * x         x: one word for all rows
//                         for each token            sum += scale * dot
//
// Dots are integers and exact. The order of the float sums of a token depends neither on the other tokens of the block
// nor on the other rows of the panel, so results do not depend on how the work is divided.
//
// The parts, in the order of inclusion: packed_codes_tmpl.h (where each type keeps codes and scales),
// packed_recoded_tmpl.h (types that are recoded when they are packed), packed_unit_tmpl.h (a unit of 32 columns times a
// few tokens), packed_bytes_tmpl.h (units with scales of one byte), then the tile: packed_tile_tmpl.h,
// x86/packed_tile_*_tmpl.h, or functions of the including file. packed_word_sums.h and packed_dots_tmpl.h define names
// of the table for instruction sets that add each product to a 32-bit sum at once.
//
// Macros. A missing one is an #error in the part that reads it first.
//
//     name                 type     AVX2                      meaning
//     LANES                int      8                         rows of a register
//     INT16_SUMS           0 or 1   1                         1: products of small codes are added as int16 before they
//                                                             become 32-bit sums. Codes of few bits then count from
//                                                             zero, and the offset becomes a min
//     BIASED(code)         uint8_t  (uint8_t)(code)           a code of 8 bits as dot_int8 reads it; with word sums
//                                                             128 is added
//     FROM_ZERO(shift)     pointer  shift                     packed.def's min of codes that count from zero, or NULL
//     BIAS(low, others)    int      low                       packed.def's bias with and without INT16_SUMS
//     PIN(v)               void     pin(v)                    makes the compiler unpack one code after the other; empty
//                                                             where registers suffice
//     QUADS_4BIT           int      8                         quads of codes below 16 that `dots_of` adds as int16
//     QUADS_5BIT           int      4                         the limit for codes below 32
//     QUADS_6BIT           int      2                         the limit for codes below 64
//     TOKEN_GROUP          int      1                         tokens that share a register of sums; 2 with I8MM
//     DIRECT_TOKENS        int      2                         up to this many tokens (2 to 4), codes are unpacked in
//                                                             registers; above it they are stored first
//     ACCUMULATORS         int      1                         1 or 2: independent sums of a product with one token
//     MAX_TOKENS           int      2                         tokens of a one-strip tile, one scale for 32 columns
//     MAX_TOKENS_G16       int      2                         tokens of a one-strip tile, one scale for 16 columns
//     BLOCK_SUMS           int      192                       registers of sums of a block: strips * tokens
//     TILE_STRIPS          int      2                         strips that a tile multiplies side by side, 1 or 2
//     PAIRS_ONLY_IN_ORDER  0 or 1   0                         1: two strips only if frit_kernels.in_order is set
//     PACKED_TYPES         string   "backend/cpu/pack/packed.def"   the table of the types
//     PACKED_LAYOUT(dtype) pointer  frit_interleave_get(dtype)      how a panel of a type is laid out
//
// Types and functions. `r` has the activations of a few tokens.
//
//     vec, vec_f                                 registers of words and of floats (vec_*.h has all plain operations)
//     x_quads four_quads(p)                      16 activation codes of a token as `dot` reads them
//     void keep_order(vec *v)                    makes the compiler compute v here
//     vec dot(sum, codes, x, i)                  sum + the products of each word's four bytes (codes 0..127) with quad
//                                                i of x (signed)
//     vec dots_of(sum, codes, x, i, n)           as `dot` for n quads from quad i on
//     vec bias_to_signed(codes)                  8-bit codes as unpacked (BIASED) to what dot_int8 reads
//     vec start_int8(minus_128)                  first value of a sum of dot_int8: takes the bias of 128 off, or zero
//     vec dot_int8(sum, codes, x, i)             as `dot` for 8-bit codes
//     vec pairs_of(codes, x, i, n)               INT16_SUMS: products of n quads, added as pairs of int16
//     vec dot_int16(a, b)                        INT16_SUMS: pairs of int16 times factors of int16, added to words
//     vec bytes_to_int16(v, i, j)                INT16_SUMS: bytes i and j of each word as two int16
//     vec as_words(bits)                         INT16_SUMS: the bits of floats as words
//     const char isa[]                           name of the instruction set
//
//     int pair_tokens(kind)                      most tokens of a two-strip tile
//     tile_input, tile_buffer                    the activations as `tile` reads them, and memory for them
//     void arrange_unit(unit, kind)              rearranges an unpacked unit for `tile`
//     tile_input arrange_tokens(buffer, r, n_x, n_units)   rearranges activations for `tile`
//     tile_input input_from(input, j)            the input from token j on
//     void tile(u, kind, n_strips, n_units, input, n_x, totals, next)   adds 256 columns to sums [token][strip]
//     void deinterleave_sums(sums, n_x)          one strip's sums as `tile` leaves them to one register for each token

#if !defined BLOCK_SUMS || !defined TILE_STRIPS || !defined PAIRS_ONLY_IN_ORDER
#error "BLOCK_SUMS, TILE_STRIPS and PAIRS_ONLY_IN_ORDER: see the table above"
#endif
#if !defined PACKED_TYPES || !defined PACKED_LAYOUT
#error "PACKED_TYPES and PACKED_LAYOUT: see the table above"
#endif

enum {
    MAX_PANELS = 8,                                 // panels of a block, read side by side
    PREFETCH_DISTANCE = 8192,                       // bytes ahead of the product, where a panel is read alone
    WIDE_PANEL_BYTES = 3072,                        // 256 columns of a panel this large: reading two panels is faster
    BLOCK_TOKENS = BLOCK_SUMS / PANEL_STRIPS / 2,   // tokens of a block
    MAX_DIRECT_TOKENS = 4,                          // the largest DIRECT_TOKENS of all instruction sets
    HAS_SINGLES = TILE_STRIPS == 1 || PANEL_STRIPS == 1 || PAIRS_ONLY_IN_ORDER,   // some tiles have one strip
};

// ------------------------------------------------------------------------------- tiles

typedef void (*tile_fn)(const unit *u, int n_units, tile_input r, vec_f *totals, prefetch_plan *next);

#define TILE(k, s, n, most)                                                                                        \
    static void tile_##k##_##s##_##n(const unit *u, int n_units, tile_input r, vec_f *totals, prefetch_plan *next) \
    {                                                                                                              \
        if (is_used(k) && s <= TILE_STRIPS && n <= (s == 1 ? HAS_SINGLES * (most) : pair_tokens(k)))               \
            tile(u, k, s, n_units, r, n, totals, next);                                                            \
    }
#define TILES_OF(k, s, most) \
    TILE(k, s, 1, most)      \
    TILE(k, s, 2, most)      \
    TILE(k, s, 3, most)      \
    TILE(k, s, 4, most)      \
    TILE(k, s, 5, most)      \
    TILE(k, s, 6, most)      \
    TILE(k, s, 7, most)      \
    TILE(k, s, 8, most) TILE(k, s, 9, most) TILE(k, s, 10, most) TILE(k, s, 11, most) TILE(k, s, 12, most)
#define TILES(k, most) TILES_OF(k, 1, most) TILES_OF(k, 2, most)
#define TILE_NAMES_OF(k, s)                                                                                       \
    {                                                                                                             \
        NULL, tile_##k##_##s##_1, tile_##k##_##s##_2, tile_##k##_##s##_3, tile_##k##_##s##_4, tile_##k##_##s##_5, \
            tile_##k##_##s##_6, tile_##k##_##s##_7, tile_##k##_##s##_8, tile_##k##_##s##_9, tile_##k##_##s##_10,  \
            tile_##k##_##s##_11, tile_##k##_##s##_12                                                              \
    }
#define TILE_NAMES(k)                            \
    {                                            \
        TILE_NAMES_OF(k, 1), TILE_NAMES_OF(k, 2) \
    }
TILES(G32_INT8, MAX_TOKENS)
TILES(G32_MINS, MAX_TOKENS)
TILES(G32_MINS_4BIT, MAX_TOKENS)
TILES(G16_BIAS_32, MAX_TOKENS_G16)
TILES(G16_BIAS_64, MAX_TOKENS_G16)
TILES(G16_MINS, MAX_TOKENS_G16)
TILES(G16_BIAS_4, MAX_TOKENS_G16)
TILES(G16_BYTE_SCALES, MAX_TOKENS_G16)

// [kind][strips - 1][tokens]
static const tile_fn tiles[KIND_COUNT][2][13] = {
    TILE_NAMES(G32_INT8),    TILE_NAMES(G32_MINS), TILE_NAMES(G32_MINS_4BIT), TILE_NAMES(G16_BIAS_32),
    TILE_NAMES(G16_BIAS_64), TILE_NAMES(G16_MINS), TILE_NAMES(G16_BIAS_4),    TILE_NAMES(G16_BYTE_SCALES)};
static const int most_tokens[KIND_COUNT] = {MAX_TOKENS,     MAX_TOKENS,     MAX_TOKENS,     MAX_TOKENS_G16,
                                            MAX_TOKENS_G16, MAX_TOKENS_G16, MAX_TOKENS_G16, MAX_TOKENS_G16};

// ------------------------------------------------------------------------------- types

FRIT_INLINE void unpack_unit_32(block_at from, type_32 type, int i, unit *to)
{
    FRIT_UNROLL(8)
    for (int q = 0; q < 8; q++) {
        const vec codes = type.codes(from, 8 * i + q);
        to->codes[q] = type.shift ? codes : bias_to_signed(codes);
    }
    to->scales[0] = type.scale(from);
    if (type.shift) to->mins[0] = type.shift(from);
}

FRIT_INLINE void unpack_unit_256(block_at from, type_256 type, const scales_256 *scales, int i, vec *carry, unit *to)
{
    const int n_groups = 32 / type.group;
    const bool wide = kind_256(type) == G32_INT8;
    type.unpack(from, i, carry, to->codes);
    if (kind_256(type) == G16_BYTE_SCALES) {
        unpack_byte_scales(scales, i, to);
        return;
    }
    FRIT_UNROLL(8)
    for (int q = 0; wide && q < 8; q++) to->codes[q] = bias_to_signed(to->codes[q]);
    FRIT_UNROLL(2)
    for (int g = 0; g < n_groups; g++) {
        to->scales[g] = mul(to_float(type.scale(scales, i * n_groups + g)), scales->d);
        if (type.min) to->mins[g] = mul_sub_from(to_float(type.min(scales, i * n_groups + g)), scales->d_min, zero_f());
    }
}

FRIT_INLINE int columns_32(type_32 type)   // columns of a block
{
    return 32 * type.units;
}

FRIT_INLINE int columns_256(type_256 type)
{
    (void)type;
    return 256;
}

// Bytes of a unit of LANES rows.
#define PART_BYTES(type, units) \
    ((size_t)(64 * (type).n_words + FRIT_PANEL_ROWS * (type).rest_bytes) / (units) / PANEL_STRIPS)

// With n_x 0, unpacks the units at `from` to `to`. With n_x > 0, multiplies each unit by n_x tokens as it is unpacked
// and prefetches the next weights. n_x is a constant where this is inlined.
FRIT_INLINE void walk_32(block_at from, type_32 type, int n_units, unit *to, rows r, int n_x, vec_f *totals,
                         prefetch_plan *next)
{
    const int block_bytes = 64 * type.n_words + FRIT_PANEL_ROWS * type.rest_bytes;
    vec_f sums[DIRECT_TOKENS];
    for (int j = 0; j < n_x; j++) sums[j] = totals[j];
    for (int block = 0; block < n_units; block += type.units) {
        FRIT_UNROLL(4)
        for (int i = 0; i < type.units; i++, r.x += sizeof(frit_q8_line)) {
            unit here;
            if (n_x) prefetch_next(next, PART_BYTES(type, type.units));
            unpack_unit_32(from, type, i, n_x ? &here : &to[block + i]);
            if (n_x)
                add_unit(&here, kind_32(type), r, n_x, sums);
            else
                arrange_unit(&to[block + i], kind_32(type));
        }
        from.words += block_bytes;
        from.rest += block_bytes;
    }
    for (int j = 0; j < n_x; j++) totals[j] = sums[j];
}

FRIT_INLINE void walk_256(block_at from, type_256 type, int n_units, unit *to, rows r, int n_x, vec_f *totals,
                          prefetch_plan *next)
{
    const scales_256 scales = type.scales(from);
    vec_f sums[DIRECT_TOKENS];
    vec carry[CARRIED];
    (void)n_units;   // a block always has all its units
    for (int j = 0; j < n_x; j++) sums[j] = totals[j];
    FRIT_UNROLL(8)
    for (int i = 0; i < UNITS; i++, r.x += sizeof(frit_q8_line)) {
        unit here;
        if (n_x) prefetch_next(next, PART_BYTES(type, UNITS));
        unpack_unit_256(from, type, &scales, i, carry, n_x ? &here : &to[i]);
        if (n_x)
            add_unit(&here, kind_256(type), r, n_x, sums);
        else
            arrange_unit(&to[i], kind_256(type));
    }
    for (int j = 0; j < n_x; j++) totals[j] = sums[j];
}

typedef void (*walk_fn)(block_at from, int n_units, unit *to, rows r, vec_f *totals, prefetch_plan *next);

typedef struct packed_type {
    kind kind;
    int n_words, rest_bytes, block_elems;
    walk_fn walk[MAX_DIRECT_TOKENS + 1];   // [0] unpacks, [n] multiplies by n tokens
} packed_type;

// ------------------------------------------------------------------------------- products

// Items [begin, begin + n).
typedef struct range {
    int64_t begin, n;
} range;

// The number of parts of at most `most` items.
static int64_t count_parts(int64_t n, int64_t most)
{
    return (n + most - 1) / most;
}

// Part i of n items in n_parts parts of about the same size.
static range part_of(int64_t n, int64_t n_parts, int64_t i)
{
    const int64_t begin = n * i / n_parts;
    return (range){begin, n * (i + 1) / n_parts - begin};
}

// A group of panels times a block of tokens.
typedef struct block {
    const frit_product *p;
    const packed_type *type;
    range panels, tokens;
} block;

static size_t block_bytes(const packed_type *type)   // bytes of a block of 16 rows
{
    return 64 * (size_t)type->n_words + FRIT_PANEL_ROWS * (size_t)type->rest_bytes;
}

static block_at strip_at(const block *b, int64_t strip, int64_t at)
{
    const packed_type *type = b->type;
    const uint8_t *w = b->p->w + (size_t)(b->panels.begin + strip / PANEL_STRIPS) * b->p->w_stride +
                       (size_t)(at / type->block_elems) * block_bytes(type);
    const int part = (int)(strip % PANEL_STRIPS);
    return (block_at){w + 4 * LANES * part, w + 64 * type->n_words + LANES * type->rest_bytes * part};
}

// Panels that are multiplied side by side (docs/log/memory.md).
static int64_t panels_at_once(const frit_product *p, const packed_type *type)
{
    if (!p->in_order || p->n_x > DIRECT_TOKENS) return MAX_PANELS;
    return PANEL_STRIPS * (block_bytes(type) * (size_t)(256 / type->block_elems) >= WIDE_PANEL_BYTES ? 2 : 1);
}

// Plans the prefetch of the 256 columns after the ones at `at`. After the last columns, that is the start of the next
// group of panels.
static prefetch_plan plan_prefetch(const block *b, int64_t at)
{
    const frit_product *p = b->p;
    const size_t bytes = block_bytes(b->type) * (size_t)(256 / b->type->block_elems), stride = p->w_stride;
    const uintptr_t panel = (uintptr_t)p->w + (size_t)b->panels.begin * stride;
    const bool is_last = at + 256 >= p->n;
    if (p->in_order && b->panels.n == 1)
        return make_prefetch_plan(panel + (size_t)(at / 256) * bytes + PREFETCH_DISTANCE, stride, 1,
                                  bytes / UNITS / PANEL_STRIPS);
    const int64_t n_more = count_parts(p->n_w + p->n_ahead, FRIT_PANEL_ROWS) - b->panels.begin - b->panels.n;
    const int64_t n = is_last && n_more < b->panels.n ? n_more : b->panels.n;
    if (n == 0) return make_prefetch_plan(panel, stride, 1, bytes / UNITS / PANEL_STRIPS);
    return make_prefetch_plan(is_last ? panel + (size_t)b->panels.n * stride : panel + (size_t)(at / 256 + 1) * bytes,
                              stride, n, bytes / UNITS / PANEL_STRIPS);
}

// Registers of sums for n_x tokens: n_x rounded up to TOKEN_GROUP.
static int64_t sums_of(int64_t n_x)
{
    return count_parts(n_x, TOKEN_GROUP) * TOKEN_GROUP;
}

// Strips that a tile of this block multiplies side by side.
static int strips_at_once(const block *b)
{
    return b->tokens.n > DIRECT_TOKENS && (b->p->in_order || !PAIRS_ONLY_IN_ORDER) ? TILE_STRIPS : 1;
}

// Adds the products of n_strips strips from strip i on. Codes are unpacked once for all tokens.
static void add_strips_from(const block *b, int64_t i, int n_strips, int64_t at, int n_units, rows r, tile_input input,
                            vec_f *sums, prefetch_plan *next)
{
    const packed_type *type = b->type;
    const int64_t n_x = b->tokens.n, stride = sums_of(n_x);
    const int64_t n_tiles = count_parts(n_x, n_strips == 1 ? most_tokens[type->kind] : pair_tokens(type->kind));
    unit units[TILE_STRIPS][UNITS];
    for (int s = 0; s < n_strips; s++) type->walk[0](strip_at(b, i + s, at), n_units, units[s], r, NULL, NULL);
    for (int64_t t = 0; t < n_tiles; t++) {
        range tokens = part_of(count_parts(n_x, TOKEN_GROUP), n_tiles, t);
        tokens.begin *= TOKEN_GROUP;
        tokens.n = tokens.n * TOKEN_GROUP < n_x - tokens.begin ? tokens.n * TOKEN_GROUP : n_x - tokens.begin;
        tiles[type->kind][n_strips - 1][tokens.n](units[0], n_units, input_from(input, tokens.begin),
                                                  sums + i * stride + tokens.begin * n_strips, t == 0 ? next : NULL);
    }
}

// Adds the products of the 256 columns from `at` on.
static void add_columns(const block *b, int64_t at, vec_f *sums)
{
    const frit_product *p = b->p;
    const packed_type *type = b->type;
    const int n_units = (int)((p->n - at < 256 ? p->n - at : 256) / 32);
    const int64_t n_strips = b->panels.n * PANEL_STRIPS, n_x = b->tokens.n;
    rows r = {p->x + (size_t)b->tokens.begin * p->x_stride + (size_t)at / 32 * sizeof(frit_q8_line), p->x_stride};
    prefetch_plan next = plan_prefetch(b, at);
    if (n_x <= DIRECT_TOKENS) {
        for (int64_t i = 0; i < n_strips; i++)
            type->walk[n_x](strip_at(b, i, at), n_units, NULL, r, sums + i * sums_of(n_x), &next);
        return;
    }
    tile_buffer buffer;
    const tile_input input = arrange_tokens(&buffer, r, n_x, n_units);
    const int most = strips_at_once(b);
    for (int64_t i = 0; i < n_strips; i += most)
        add_strips_from(b, i, n_strips - i < most ? (int)(n_strips - i) : most, at, n_units, r, input, sums, &next);
}

// Writes the sums of n_strips strips, [token][strip], to the result: rows from `row` on.
static void put_sums(const block *b, const vec_f *sums, int n_strips, int64_t row)
{
    const frit_product *p = b->p;
    for (int64_t j = 0; j < b->tokens.n; j++) {
        float *y = p->y + (size_t)(b->tokens.begin + j) * p->y_stride + row;
        for (int s = 0; s < n_strips && row + s * LANES < p->n_w; s++) {
            const int64_t n = p->n_w - row - s * LANES;
            store(y + s * LANES, sums[j * n_strips + s], n < LANES ? (int)n : LANES);
        }
    }
}

static void run_block(const block *b)
{
    // For each tile of TILE_STRIPS strips [token][strip]; up to DIRECT_TOKENS tokens, [strip][token].
    vec_f sums[BLOCK_SUMS];
    const frit_product *p = b->p;
    const int64_t n_strips = b->panels.n * PANEL_STRIPS, n_x = b->tokens.n, stride = sums_of(n_x);
    const int at_once = strips_at_once(b);
    for (int64_t i = 0; i < n_strips * stride; i++) sums[i] = zero_f();
    for (int64_t at = 0; at < p->n; at += 256) add_columns(b, at, sums);
    for (int64_t i = 0; i < n_strips; i += at_once) {
        const int n = n_strips - i < at_once ? (int)(n_strips - i) : at_once;
        if (n_x > DIRECT_TOKENS) deinterleave_sums(sums + i * stride, n_x);
        put_sums(b, sums + i * stride, n, b->panels.begin * FRIT_PANEL_ROWS + i * LANES);
    }
}

static void product(const frit_product *p, const packed_type *type)
{
    const int64_t n_panels = count_parts(p->n_w, FRIT_PANEL_ROWS), n_blocks = count_parts(p->n_x, BLOCK_TOKENS);
    const int64_t room = BLOCK_SUMS / PANEL_STRIPS / sums_of(count_parts(p->n_x, n_blocks));
    const int64_t most = panels_at_once(p, type), n_groups = count_parts(n_panels, room < most ? room : most);
    for (int64_t i = 0; i < n_blocks; i++)
        for (int64_t g = 0; g < n_groups; g++)
            run_block(&(block){p, type, part_of(n_panels, n_groups, g), part_of(p->n_x, n_blocks, i)});
}

// A row of packed.def becomes a function for each count of direct tokens, and the product.
#define WALK(name, elems, n, ...)                                                                                   \
    static void walk_##name##_##n(block_at from, int n_units, unit *to, rows r, vec_f *totals, prefetch_plan *next) \
    {                                                                                                               \
        if (n <= DIRECT_TOKENS) walk_##elems(from, (type_##elems){__VA_ARGS__}, n_units, to, r, n, totals, next);   \
    }
#define PRODUCT(name, elems, ...)                                                                                      \
    WALK(name, elems, 0, __VA_ARGS__)                                                                                  \
    WALK(name, elems, 1, __VA_ARGS__)                                                                                  \
    WALK(name, elems, 2, __VA_ARGS__)                                                                                  \
    WALK(name, elems, 3, __VA_ARGS__)                                                                                  \
    WALK(name, elems, 4, __VA_ARGS__)                                                                                  \
    static void product_##name(const frit_product *p)                                                                  \
    {                                                                                                                  \
        const type_##elems type = {__VA_ARGS__};                                                                       \
        product(                                                                                                       \
            p, &(packed_type){kind_##elems(type),                                                                      \
                              type.n_words,                                                                            \
                              type.rest_bytes,                                                                         \
                              columns_##elems(type),                                                                   \
                              {walk_##name##_0, walk_##name##_1, walk_##name##_2, walk_##name##_3, walk_##name##_4}}); \
    }
#define PACKED_32(name, dtype, at, words, rest_at, rest, recode, from, to, units, bits, ...) \
    PRODUCT(name, 32, words, rest, units, bits, codes_##name, __VA_ARGS__)
#define PACKED_256(name, dtype, at, words, rest_at, rest, recode, from, to, group, bits, bias, ...) \
    PRODUCT(name, 256, words, rest, group, bits, bias, unpack_##name, __VA_ARGS__)
#define TRANSPOSED_256 PACKED_256
#include PACKED_TYPES
#undef PACKED_32
#undef PACKED_256
#undef TRANSPOSED_256

static void install(frit_kernels *k)
{
#define INSTALL(name, dtype, form) \
    k->packed[FRIT_DTYPE_##dtype] = (frit_product_kernel){product_##name, form, isa, PACKED_LAYOUT(FRIT_DTYPE_##dtype)};
#define PACKED_32(name, dtype, ...)      INSTALL(name, dtype, FRIT_FORM_Q8_LINES)
#define PACKED_256(name, dtype, ...)     INSTALL(name, dtype, FRIT_FORM_Q8_LINES)
#define TRANSPOSED_256(name, dtype, ...) INSTALL(name, dtype, FRIT_FORM_Q8_TRANSPOSED)
#include PACKED_TYPES
#undef PACKED_32
#undef PACKED_256
#undef TRANSPOSED_256
#undef INSTALL
}
