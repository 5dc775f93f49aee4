// SPDX-License-Identifier: MIT
// backend/cpu/tmpl/packed_tmpl.h: products of packed weights, written in operations on `vec`, which each including
// file defines for its instruction set: words of LANES rows. With eight lanes the two halves of a panel are read one
// after the other.
//
// Where codes and scales lie is the types' own (packed_codes_tmpl.h), multiplying is the same for all of them:
//
//     for each block of tokens, for each few panels
//         for each 256 columns
//             for each of these panels
//                 unpack codes and scales           into the first cache, or for few tokens into registers
//                 for each tile of tokens
//                     for each unit of 32 columns   a part of what comes next is brought closer
//                         for each quad of four columns
//                             for each token        dot += codes * x         x: one word for all rows
//                         for each token            sum += scale * dot
//
// The dots are whole numbers and exact; the order of the other sums depends neither on the tokens beside a token nor on
// the rows beside a row.
//
// The including file has packed_unit_tmpl.h before this, and how it keeps and multiplies what many tokens read:
// packed_kept_tmpl.h, or functions of its own, which multiply up to STRIPS registers of rows side by side, pair_tokens
// at a time: their sums lie [token][strip]. With PAIRS_ONLY_IN_ORDER they do so on processors of AMD only, which are
// those that read in order (isa.c). PACKED_ROWS names the table of its types, PACKED_LAYOUT(dtype) how panels are
// packed: packed_rows.h, or definitions of its own.

enum {
    STREAMS = 8,        // most panels of a block: so many streams of memory
    AHEAD = 8192,       // bytes: how far before it is multiplied a panel is requested that is read by itself
    TWO_BYTES = 3072,   // of a panel's 256 columns, from which twice as many panels side by side are faster
    BLOCK_TOKENS = BLOCK_SUMS / HALVES / 2,
    MOST_DIRECT = 4,                                                   // of all instruction sets
    HAS_SINGLES = STRIPS == 1 || HALVES == 1 || PAIRS_ONLY_IN_ORDER,   // strips that are multiplied by themselves
};

// ------------------------------------------------------------------------------- tiles

typedef void (*tile_fn)(const unit *u, int n_units, kept_rows r, vec_f *totals, ahead *next);

#define TILE(k, s, n, most)                                                                               \
    static void tile_##k##_##s##_##n(const unit *u, int n_units, kept_rows r, vec_f *totals, ahead *next) \
    {                                                                                                     \
        if (is_used(k) && s <= STRIPS && n <= (s == 1 ? HAS_SINGLES * (most) : pair_tokens(k)))           \
            tile(u, k, s, n_units, r, n, totals, next);                                                   \
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
TILES(WHOLE_WIDE, MAX_TOKENS)
TILES(WHOLE_MINS, MAX_TOKENS)
TILES(WHOLE_LOW, MAX_TOKENS)
TILES(HALVES_BIASED, MAX_TOKENS_HALVES)
TILES(HALVES_WIDE, MAX_TOKENS_HALVES)
TILES(HALVES_MINS, MAX_TOKENS_HALVES)
TILES(HALVES_LOW, MAX_TOKENS_HALVES)
TILES(HALVES_BYTES, MAX_TOKENS_HALVES)

// [kind][strips - 1][tokens]
static const tile_fn tiles[KIND_COUNT][2][13] = {
    TILE_NAMES(WHOLE_WIDE),  TILE_NAMES(WHOLE_MINS),  TILE_NAMES(WHOLE_LOW),  TILE_NAMES(HALVES_BIASED),
    TILE_NAMES(HALVES_WIDE), TILE_NAMES(HALVES_MINS), TILE_NAMES(HALVES_LOW), TILE_NAMES(HALVES_BYTES)};
static const int most_tokens[KIND_COUNT] = {MAX_TOKENS,        MAX_TOKENS,        MAX_TOKENS,        MAX_TOKENS_HALVES,
                                            MAX_TOKENS_HALVES, MAX_TOKENS_HALVES, MAX_TOKENS_HALVES, MAX_TOKENS_HALVES};

// ------------------------------------------------------------------------------- types

FRIT_INLINE void open_32(block_at from, type_32 type, int i, unit *to)
{
    FRIT_UNROLL(8)
    for (int q = 0; q < 8; q++) {
        const vec codes = type.codes(from, 8 * i + q);
        to->codes[q] = type.shift ? codes : open_wide(codes);
    }
    to->scales[0] = type.scale(from);
    if (type.shift) to->mins[0] = type.shift(from);
}

FRIT_INLINE void open_256(block_at from, type_256 type, const scales_256 *scales, int i, vec *kept, unit *to)
{
    const int n_groups = 32 / type.group;
    const bool wide = kind_256(type) == WHOLE_WIDE;
    type.open(from, i, kept, to->codes);
    if (kind_256(type) == HALVES_BYTES) {
        open_bytes(scales, i, to);
        return;
    }
    FRIT_UNROLL(8)
    for (int q = 0; wide && q < 8; q++) to->codes[q] = open_wide(to->codes[q]);
    FRIT_UNROLL(2)
    for (int g = 0; g < n_groups; g++) {
        to->scales[g] = mul(to_float(type.scale(scales, i * n_groups + g)), scales->d);
        if (type.min) to->mins[g] = mul_sub_from(to_float(type.min(scales, i * n_groups + g)), scales->d_min, zero_f());
    }
}

FRIT_INLINE int columns_32(type_32 type)   // of a block
{
    return 32 * type.units;
}

FRIT_INLINE int columns_256(type_256 type)
{
    (void)type;
    return 256;
}

// Bytes of a unit of LANES rows.
#define PART_BYTES(type, units) ((size_t)(64 * (type).n_words + FRIT_PANEL_ROWS * (type).rest_bytes) / (units) / HALVES)

// Either writes the units from `from` to `to`, or, for constant n_x > 0, multiplies them by so many tokens at once.
// Weights are fetched ahead only when it multiplies.
FRIT_INLINE void walk_32(block_at from, type_32 type, int n_units, unit *to, rows r, int n_x, vec_f *totals,
                         ahead *next)
{
    const int block_bytes = 64 * type.n_words + FRIT_PANEL_ROWS * type.rest_bytes;
    vec_f sums[DIRECT_TOKENS];
    for (int j = 0; j < n_x; j++) sums[j] = totals[j];
    for (int block = 0; block < n_units; block += type.units) {
        FRIT_UNROLL(4)
        for (int i = 0; i < type.units; i++, r.x += sizeof(frit_q8_line)) {
            unit here;
            if (n_x) bring(next, PART_BYTES(type, type.units));
            open_32(from, type, i, n_x ? &here : &to[block + i]);
            if (n_x)
                add_unit(&here, kind_32(type), r, n_x, sums);
            else
                keep(&to[block + i], kind_32(type));
        }
        from.words += block_bytes;
        from.rest += block_bytes;
    }
    for (int j = 0; j < n_x; j++) totals[j] = sums[j];
}

FRIT_INLINE void walk_256(block_at from, type_256 type, int n_units, unit *to, rows r, int n_x, vec_f *totals,
                          ahead *next)
{
    const scales_256 scales = type.scales(from);
    vec_f sums[DIRECT_TOKENS];
    vec kept[KEPT];
    (void)n_units;   // always all
    for (int j = 0; j < n_x; j++) sums[j] = totals[j];
    FRIT_UNROLL(8)
    for (int i = 0; i < UNITS; i++, r.x += sizeof(frit_q8_line)) {
        unit here;
        if (n_x) bring(next, PART_BYTES(type, UNITS));
        open_256(from, type, &scales, i, kept, n_x ? &here : &to[i]);
        if (n_x)
            add_unit(&here, kind_256(type), r, n_x, sums);
        else
            keep(&to[i], kind_256(type));
    }
    for (int j = 0; j < n_x; j++) totals[j] = sums[j];
}

// [0] unpacks, [n] multiplies n tokens.
typedef void (*walk_fn)(block_at from, int n_units, unit *to, rows r, vec_f *totals, ahead *next);

typedef struct packed_type {
    kind kind;
    int n_words, rest_bytes, block_elems;
    walk_fn walk[MOST_DIRECT + 1];
} packed_type;

// ------------------------------------------------------------------------------- products

// Part i of n things in so many parts that none has more than `most`, all about as large.
typedef struct share {
    int64_t begin, n;
} share;

static int64_t n_shares(int64_t n, int64_t most)
{
    return (n + most - 1) / most;
}

static share share_of(int64_t n, int64_t n_parts, int64_t i)
{
    const int64_t begin = n * i / n_parts;
    return (share){begin, n * (i + 1) / n_parts - begin};
}

// A few panels by a block of tokens. A strip is the half of a panel that fills a register, or the whole.
typedef struct block {
    const frit_product *p;
    const packed_type *type;
    share panels, tokens;
} block;

static size_t block_bytes(const packed_type *type)   // of a panel
{
    return 64 * (size_t)type->n_words + FRIT_PANEL_ROWS * (size_t)type->rest_bytes;
}

static block_at strip_at(const block *b, int64_t strip, int64_t at)
{
    const packed_type *type = b->type;
    const uint8_t *w = b->p->w + (size_t)(b->panels.begin + strip / HALVES) * b->p->w_stride +
                       (size_t)(at / type->block_elems) * block_bytes(type);
    const int half = (int)(strip % HALVES);
    return (block_at){w + 4 * LANES * half, w + 64 * type->n_words + LANES * type->rest_bytes * half};
}

// Panels that are multiplied side by side: twice as many where a register holds half of one (docs/log/memory.md).
static int64_t streams_of(const frit_product *p, const packed_type *type)
{
    if (!p->in_order || p->n_x > DIRECT_TOKENS) return STREAMS;
    return HALVES * (block_bytes(type) * (size_t)(256 / type->block_elems) >= TWO_BYTES ? 2 : 1);
}

// The columns after the 256 from `at`; after the last ones, the first of so many panels more, if these are wanted.
static ahead look_ahead(const block *b, int64_t at)
{
    const frit_product *p = b->p;
    const size_t bytes = block_bytes(b->type) * (size_t)(256 / b->type->block_elems), stride = p->w_stride;
    const uintptr_t panel = (uintptr_t)p->w + (size_t)b->panels.begin * stride;
    const bool is_last = at + 256 >= p->n;
    if (p->in_order && b->panels.n == 1)
        return parts_ahead(panel + (size_t)(at / 256) * bytes + AHEAD, stride, 1, bytes / UNITS / HALVES);
    const int64_t n_more = n_shares(p->n_w + p->n_ahead, FRIT_PANEL_ROWS) - b->panels.begin - b->panels.n;
    const int64_t n = is_last && n_more < b->panels.n ? n_more : b->panels.n;
    if (n == 0) return parts_ahead(panel, stride, 1, bytes / UNITS / HALVES);
    return parts_ahead(is_last ? panel + (size_t)b->panels.n * stride : panel + (size_t)(at / 256 + 1) * bytes, stride,
                       n, bytes / UNITS / HALVES);
}

// Registers of sums for n_x tokens.
static int64_t sums_of(int64_t n_x)
{
    return n_shares(n_x, GRAIN) * GRAIN;
}

// Strips that are multiplied side by side.
static int strips_at_once(const block *b)
{
    return b->tokens.n > DIRECT_TOKENS && (b->p->in_order || !PAIRS_ONLY_IN_ORDER) ? STRIPS : 1;
}

// Adds the products of so many strips from the i-th on: codes are unpacked once for all tokens.
static void add_strips_from(const block *b, int64_t i, int n_strips, int64_t at, int n_units, rows r, kept_rows kept,
                            vec_f *sums, ahead *next)
{
    const packed_type *type = b->type;
    const int64_t n_x = b->tokens.n, stride = sums_of(n_x);
    const int64_t n_tiles = n_shares(n_x, n_strips == 1 ? most_tokens[type->kind] : pair_tokens(type->kind));
    unit units[STRIPS][UNITS];
    for (int s = 0; s < n_strips; s++) type->walk[0](strip_at(b, i + s, at), n_units, units[s], r, NULL, NULL);
    for (int64_t t = 0; t < n_tiles; t++) {
        share tokens = share_of(n_shares(n_x, GRAIN), n_tiles, t);
        tokens.begin *= GRAIN;
        tokens.n = tokens.n * GRAIN < n_x - tokens.begin ? tokens.n * GRAIN : n_x - tokens.begin;
        tiles[type->kind][n_strips - 1][tokens.n](units[0], n_units, kept_from(kept, tokens.begin),
                                                  sums + i * stride + tokens.begin * n_strips, t == 0 ? next : NULL);
    }
}

// Adds the products of 256 columns from `at`.
static void add_columns(const block *b, int64_t at, vec_f *sums)
{
    const frit_product *p = b->p;
    const packed_type *type = b->type;
    const int n_units = (int)((p->n - at < 256 ? p->n - at : 256) / 32);
    const int64_t n_strips = b->panels.n * HALVES, n_x = b->tokens.n;
    rows r = {p->x + (size_t)b->tokens.begin * p->x_stride + (size_t)at / 32 * sizeof(frit_q8_line), p->x_stride};
    ahead next = look_ahead(b, at);
    if (n_x <= DIRECT_TOKENS) {
        for (int64_t i = 0; i < n_strips; i++)
            type->walk[n_x](strip_at(b, i, at), n_units, NULL, r, sums + i * sums_of(n_x), &next);
        return;
    }
    kept_room room;
    const kept_rows kept = keep_rows(&room, r, n_x, n_units);
    const int most = strips_at_once(b);
    for (int64_t i = 0; i < n_strips; i += most)
        add_strips_from(b, i, n_strips - i < most ? (int)(n_strips - i) : most, at, n_units, r, kept, sums, &next);
}

// Sums of so many strips, [token][strip], to their places: rows from `row` on.
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
    vec_f sums[BLOCK_SUMS];   // of STRIPS strips, [token][strip], then of the next ones; of few tokens strip by strip
    const frit_product *p = b->p;
    const int64_t n_strips = b->panels.n * HALVES, n_x = b->tokens.n, stride = sums_of(n_x);
    const int at_once = strips_at_once(b);
    for (int64_t i = 0; i < n_strips * stride; i++) sums[i] = zero_f();
    for (int64_t at = 0; at < p->n; at += 256) add_columns(b, at, sums);
    for (int64_t i = 0; i < n_strips; i += at_once) {
        const int n = n_strips - i < at_once ? (int)(n_strips - i) : at_once;
        if (n_x > DIRECT_TOKENS) settle(sums + i * stride, n_x);
        put_sums(b, sums + i * stride, n, b->panels.begin * FRIT_PANEL_ROWS + i * LANES);
    }
}

static void product(const frit_product *p, const packed_type *type)
{
    const int64_t n_panels = n_shares(p->n_w, FRIT_PANEL_ROWS), n_blocks = n_shares(p->n_x, BLOCK_TOKENS);
    const int64_t room = BLOCK_SUMS / HALVES / sums_of(n_shares(p->n_x, n_blocks));
    const int64_t streams = streams_of(p, type), n_groups = n_shares(n_panels, room < streams ? room : streams);
    for (int64_t i = 0; i < n_blocks; i++)
        for (int64_t g = 0; g < n_groups; g++)
            run_block(&(block){p, type, share_of(n_panels, n_groups, g), share_of(p->n_x, n_blocks, i)});
}

// What a row of packed.def becomes.
#define WALK(name, elems, n, ...)                                                                                 \
    static void walk_##name##_##n(block_at from, int n_units, unit *to, rows r, vec_f *totals, ahead *next)       \
    {                                                                                                             \
        if (n <= DIRECT_TOKENS) walk_##elems(from, (type_##elems){__VA_ARGS__}, n_units, to, r, n, totals, next); \
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
    PRODUCT(name, 256, words, rest, group, bits, bias, open_##name, __VA_ARGS__)
#define TURNED_256 PACKED_256
#include PACKED_ROWS
#undef PACKED_32
#undef PACKED_256
#undef TURNED_256

static void install(frit_kernels *k)
{
#define INSTALL(name, dtype, form) \
    k->packed[FRIT_DTYPE_##dtype] = (frit_product_kernel){product_##name, form, isa, PACKED_LAYOUT(FRIT_DTYPE_##dtype)};
#define PACKED_32(name, dtype, ...)  INSTALL(name, dtype, FRIT_FORM_Q8_LINES)
#define PACKED_256(name, dtype, ...) INSTALL(name, dtype, FRIT_FORM_Q8_LINES)
#define TURNED_256(name, dtype, ...) INSTALL(name, dtype, FRIT_FORM_Q8_TURNED)
#include PACKED_ROWS
#undef PACKED_32
#undef PACKED_256
#undef TURNED_256
#undef INSTALL
}
