// SPDX-License-Identifier: MIT
// Tiles of all types: packing them, and decoding them to numbers. kernels/include/codes.h has the layout, which
// kernels/repack.cu shares.
#include "backend/cuda/weights/repack.h"
#include "backend/cuda/kernels/include/codes.h"
#include "quant/levels.h"
#include "quant/scales.h"

#include <string.h>

enum { ROWS = FRIT_TILE_ROWS, COLUMNS = FRIT_TILE_COLUMNS, PLANE_BYTES = ROWS * COLUMNS / 8 };

// ------------------------------------------------------------------------------- what codes are worth

static float value_f32(const uint8_t *head, const uint8_t *tail, int k, unsigned code)
{
    (void)head, (void)tail, (void)k;
    return frit_float_of_bits(code);
}

static float value_f16(const uint8_t *head, const uint8_t *tail, int k, unsigned code)
{
    (void)head, (void)tail, (void)k;
    return frit_half_to_float((uint16_t)code);
}

static float value_bf16(const uint8_t *head, const uint8_t *tail, int k, unsigned code)
{
    (void)head, (void)tail, (void)k;
    return frit_bf16_to_float((uint16_t)code);
}

// The f16 scale of number k, for types with one scale for 32 numbers.
static float scale_of_32(const uint8_t *head, int k)
{
    return frit_half_at(head + k / 32 * 2);
}

static float value_q4_0(const uint8_t *head, const uint8_t *tail, int k, unsigned code)
{
    (void)tail;
    return scale_of_32(head, k) * (float)((int)code - 8);
}

static float value_q4_1(const uint8_t *head, const uint8_t *tail, int k, unsigned code)   // and q5_1
{
    return scale_of_32(head, k) * (float)code + scale_of_32(tail, k);
}

static float value_q5_0(const uint8_t *head, const uint8_t *tail, int k, unsigned code)
{
    (void)tail;
    return scale_of_32(head, k) * (float)((int)code - 16);
}

static float value_q8_0(const uint8_t *head, const uint8_t *tail, int k, unsigned code)
{
    (void)tail;
    return scale_of_32(head, k) * (float)(int8_t)code;
}

static float value_q2_k(const uint8_t *head, const uint8_t *tail, int k, unsigned code)
{
    const int scale = head[k / 16] & 15, min = head[k / 16] >> 4;
    return frit_half_at(tail) * (float)scale * (float)code - frit_half_at(tail + 2) * (float)min;
}

static float value_q3_k(const uint8_t *head, const uint8_t *tail, int k, unsigned code)
{
    return frit_half_at(tail) * (float)(int8_t)head[k / 16] * (float)((int)code - 4);
}

static float value_q4_k(const uint8_t *head, const uint8_t *tail, int k, unsigned code)   // and q5_k
{
    uint8_t scales[8], mins[8];
    (void)tail;
    frit_unpack_scales_q4_k(head + 4, scales, mins);
    return frit_half_at(head) * (float)scales[k / 32] * (float)code - frit_half_at(head + 2) * (float)mins[k / 32];
}

static float value_q6_k(const uint8_t *head, const uint8_t *tail, int k, unsigned code)
{
    return frit_half_at(tail) * (float)(int8_t)head[k / 16] * (float)((int)code - 32);
}

static float value_iq4_nl(const uint8_t *head, const uint8_t *tail, int k, unsigned code)
{
    (void)tail;
    return scale_of_32(head, k) * (float)frit_iq4_levels[code];
}

static float value_iq4_xs(const uint8_t *head, const uint8_t *tail, int k, unsigned code)
{
    return frit_half_at(tail) * (float)(int8_t)head[k / 32] * (float)frit_iq4_levels[code];
}

static float value_mxfp4(const uint8_t *head, const uint8_t *tail, int k, unsigned code)
{
    (void)tail;
    return (float)frit_fp4_levels[code] * frit_e8m0_half(head[k / 32]);
}

static float value_nvfp4(const uint8_t *head, const uint8_t *tail, int k, unsigned code)
{
    (void)tail;
    return (float)frit_fp4_levels[code] * frit_ue4m3_half(head[k / 16]);
}

static float value_fp8_128(const uint8_t *head, const uint8_t *tail, int k, unsigned code)
{
    const uint8_t byte = (uint8_t)code;
    float value;
    (void)tail;
    frit_decode_fp8(&byte, &value, 1);
    return frit_float_of_bits(frit_word_at(head + k / 128 * 4)) * value;
}

static float value_bytes(const uint8_t *head, const uint8_t *tail, int k, unsigned code)
{
    (void)tail;
    return frit_float_of_bits(frit_word_at(head + k / 16 * 4)) * (float)(int8_t)code;
}

// ------------------------------------------------------------------------------- types

static const frit_tile_format formats[] = {
#define TILE(NAME, number, low, high, code, head, n_head, tail, n_tail, worth, levels, n_levels) \
    {FRIT_DTYPE_##NAME,                                                                          \
     PLANE_BYTES * (low + high) + ROWS * (n_head + n_tail),                                      \
     low,                                                                                        \
     high,                                                                                       \
     n_head,                                                                                     \
     n_tail,                                                                                     \
     code,                                                                                       \
     head,                                                                                       \
     tail,                                                                                       \
     value_##worth,                                                                              \
     (const uint8_t *)levels,                                                                    \
     n_levels},
#include "backend/cuda/kernels/include/tiles.def"
#undef TILE
};

const frit_tile_format *frit_tile_format_of(frit_dtype dtype)
{
    for (size_t i = 0; i < FRIT_COUNT(formats); i++)
        if (formats[i].dtype == dtype) return &formats[i];
    return NULL;
}

// ------------------------------------------------------------------------------- tiles

// n: columns of the block, without padding.
static unsigned code_at(const frit_tile_format *f, const uint8_t *const rows[ROWS], int row, int column, int n)
{
    return rows[row] && column < n ? f->code(rows[row], column, f->grid) : 0;
}

static void pack_plane(const frit_tile_format *f, const uint8_t *const rows[ROWS], int n, int bits, int shift,
                       uint8_t *plane)
{
    for (int at = 0; at < PLANE_BYTES * bits; at++) {
        const int unit = at / 16, byte = at % 16, row = frit_plane_row(bits, unit, byte);
        if (bits >= 8) {
            const unsigned code = code_at(f, rows, row, frit_plane_column(bits, unit, byte, 0), n);
            plane[at] = (uint8_t)(code >> byte * 8 % bits);
            continue;
        }
        unsigned fields = 0;
        for (int i = 0; i < 8 / bits; i++) {
            const unsigned code = code_at(f, rows, row, frit_plane_column(bits, unit, byte, i), n);
            fields |= (code >> shift & ((1u << bits) - 1)) << i * bits;
        }
        plane[at] = (uint8_t)fields;
    }
}

// rows[i]: the blocks of row i, n numbers; NULL: a row of zeros.
static void pack(const frit_tile_format *f, const uint8_t *const rows[ROWS], int n, uint8_t *tile)
{
    const int heads_at = PLANE_BYTES * (f->low_bits + f->high_bits), tails_at = heads_at + ROWS * f->head_bytes;
    pack_plane(f, rows, n, f->low_bits, 0, tile);
    if (f->high_bits) pack_plane(f, rows, n, f->high_bits, f->low_bits, tile + PLANE_BYTES * f->low_bits);
    for (int r = 0; r < ROWS; r++) {
        for (int i = 0; i < f->head_bytes; i++)
            tile[heads_at + r * f->head_bytes + i] = (uint8_t)(rows[r] ? f->head(rows[r], i, n) : 0);
        for (int i = 0; i < f->tail_bytes; i++)
            tile[tails_at + r * f->tail_bytes + i] = (uint8_t)(rows[r] ? f->tail(rows[r], i, n) : 0);
    }
}

static void unpack_plane(const uint8_t *plane, int bits, int shift, unsigned *codes)
{
    for (int at = 0; at < PLANE_BYTES * bits; at++) {
        const int unit = at / 16, byte = at % 16, row = frit_plane_row(bits, unit, byte);
        for (int i = 0; i < (bits < 8 ? 8 / bits : 1); i++) {
            const unsigned part = bits < 8 ? plane[at] >> i * bits & ((1u << bits) - 1) : plane[at];
            codes[row * COLUMNS + frit_plane_column(bits, unit, byte, i)] |= part
                                                                             << (bits < 8 ? shift : byte * 8 % bits);
        }
    }
}

void frit_tile_decode(const frit_tile_format *f, const uint8_t *tile, float *values)
{
    unsigned codes[ROWS * COLUMNS] = {0};
    const uint8_t *heads = tile + PLANE_BYTES * (f->low_bits + f->high_bits), *tails = heads + ROWS * f->head_bytes;
    unpack_plane(tile, f->low_bits, 0, codes);
    if (f->high_bits) unpack_plane(tile + PLANE_BYTES * f->low_bits, f->high_bits, f->low_bits, codes);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const int r = i / COLUMNS;
        values[i] = f->value(heads + r * f->head_bytes, tails + r * f->tail_bytes, i % COLUMNS, codes[i]);
    }
}

// ------------------------------------------------------------------------------- matrices

int64_t frit_tile_count(const frit_tile_source *source)
{
    const int64_t n = source->order == FRIT_CUDA_ORDER_GATED ? source->n_rows * 2 : source->n_rows;
    return (n + ROWS - 1) / ROWS;
}

uint64_t frit_tile_bytes(const frit_tile_format *format, const frit_tile_source *source)
{
    return (uint64_t)((source->n_columns + COLUMNS - 1) / COLUMNS) * (uint64_t)format->tile_bytes;
}

// The blocks of row r of a row tile; NULL: the matrix has no such row.
static const uint8_t *row_of(const frit_tile_source *source, int64_t tile, int r, uint64_t row_bytes)
{
    const int64_t pair = tile * (ROWS / 2) + r % 8;   // over the whole matrix
    const uint8_t *blocks = source->blocks;
    int64_t row = tile * ROWS + r;
    if (source->order == FRIT_CUDA_ORDER_ADJACENT) row = pair * 2 + r / 8;
    if (source->order == FRIT_CUDA_ORDER_NEOX) {
        const int64_t half = source->head_size / 2;
        row = pair / half * source->head_size + pair % half + r / 8 * half;
    }
    if (source->order == FRIT_CUDA_ORDER_GATED) {
        row = pair;
        if (r >= 8) blocks = source->second;
    }
    return row < source->n_rows ? blocks + (uint64_t)row * row_bytes : NULL;
}

void frit_tile_pack(const frit_tile_format *format, const frit_tile_source *source, int64_t begin, int64_t end,
                    uint8_t *out)
{
    const frit_dtype_info *type = frit_dtype_get(format->dtype);
    const uint64_t row_bytes = frit_dtype_row_bytes(format->dtype, source->n_columns);
    for (int64_t tile = begin; tile < end; tile++)
        for (int64_t column = 0; column < source->n_columns; column += COLUMNS, out += format->tile_bytes) {
            const int64_t n = source->n_columns - column;
            const uint8_t *rows[ROWS];
            for (int r = 0; r < ROWS; r++) {
                rows[r] = row_of(source, tile, r, row_bytes);
                if (rows[r]) rows[r] += column / type->block_elems * type->block_bytes;
            }
            pack(format, rows, (int)(n < COLUMNS ? n : COLUMNS), out);
        }
}
