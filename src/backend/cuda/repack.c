// SPDX-License-Identifier: MIT
// Tiles of every type that has them: writing, and reading back as numbers.
#include "backend/cuda/repack.h"
#include "quant/blocks.h"
#include "quant/scales.h"

#include <string.h>

enum { ROWS = FRIT_TILE_ROWS, COLUMNS = FRIT_TILE_COLUMNS, HIGH_AT = 2048 };

// ------------------------------------------------------------------------------- places of codes

typedef struct place {
    int g, s, i, lane, h;
} place;

static place place_of(int row, int column)
{
    return (place){
        .g = column / 32, .s = column / 16 % 2, .i = column % 4, .lane = row % 8 * 4 + column / 4 % 4, .h = row / 8};
}

static int at_4_bits(place p)
{
    return ((p.g / 4 * 2 + p.h) * 32 + p.lane) * 16 + (p.g / 2 % 2 * 2 + p.s) * 4 + p.i;
}

static int at_8_bits(place p)
{
    return ((p.g / 2 * 2 + p.h) * 32 + p.lane) * 16 + (p.g % 2 * 2 + p.s) * 4 + p.i;
}

static int at_16_bits(place p)
{
    return ((p.g * 2 + p.s) * 32 + p.lane) * 16 + (p.i / 2 * 2 + p.h) * 4 + p.i % 2 * 2;
}

static int at_2_bits(place p)
{
    return (p.h * 32 + p.lane) * 16 + p.g / 2 * 4 + p.i;
}

static void put_4_bits(uint8_t *tile, int row, int column, int code)
{
    const place p = place_of(row, column);
    tile[at_4_bits(p)] |= (uint8_t)(code << p.g % 2 * 4);
}

static int get_4_bits(const uint8_t *tile, int row, int column)
{
    const place p = place_of(row, column);
    return tile[at_4_bits(p)] >> p.g % 2 * 4 & 15;
}

static float half_at(const uint8_t *bytes)
{
    uint16_t h;
    memcpy(&h, bytes, sizeof h);
    return frit_half_to_float(h);
}

// ------------------------------------------------------------------------------- types

static void pack_q4_k(const uint8_t *const rows[ROWS], int n_blocks, uint8_t *tile)
{
    (void)n_blocks;
    for (int r = 0; r < ROWS; r++) {
        const frit_block_q4_k *block = (const void *)rows[r];
        if (!block) continue;
        for (int k = 0; k < COLUMNS; k++)
            put_4_bits(tile, r, k, block->qs[k / 64 * 32 + k % 32] >> k / 32 % 2 * 4 & 15);
        memcpy(tile + HIGH_AT + r * 16, block, 16);
    }
}

static void decode_q4_k(const uint8_t *tile, float *values)
{
    for (int r = 0; r < ROWS; r++) {
        const uint8_t *head = tile + HIGH_AT + r * 16;
        uint8_t scales[8], mins[8];
        frit_unpack_scales_q4_k(head + 4, scales, mins);
        const float d = half_at(head), dmin = half_at(head + 2);
        for (int k = 0; k < COLUMNS; k++)
            *values++ = d * (float)scales[k / 32] * (float)get_4_bits(tile, r, k) - dmin * (float)mins[k / 32];
    }
}

static void pack_q4_0(const uint8_t *const rows[ROWS], int n_blocks, uint8_t *tile)
{
    for (int r = 0; r < ROWS; r++) {
        const frit_block_q4_0 *block = (const void *)rows[r];
        for (int g = 0; block && g < n_blocks; g++, block++) {
            for (int k = 0; k < 32; k++) put_4_bits(tile, r, g * 32 + k, block->qs[k % 16] >> k / 16 * 4 & 15);
            memcpy(tile + HIGH_AT + r * 16 + g * 2, &block->d, 2);
        }
    }
}

static void decode_q4_0(const uint8_t *tile, float *values)
{
    for (int r = 0; r < ROWS; r++)
        for (int k = 0; k < COLUMNS; k++)
            *values++ = half_at(tile + HIGH_AT + r * 16 + k / 32 * 2) * (float)(get_4_bits(tile, r, k) - 8);
}

static void pack_q8_0(const uint8_t *const rows[ROWS], int n_blocks, uint8_t *tile)
{
    for (int r = 0; r < ROWS; r++) {
        const frit_block_q8_0 *block = (const void *)rows[r];
        for (int g = 0; block && g < n_blocks; g++, block++) {
            for (int k = 0; k < 32; k++) tile[at_8_bits(place_of(r, g * 32 + k))] = (uint8_t)block->qs[k];
            memcpy(tile + 2 * HIGH_AT + r * 16 + g * 2, &block->d, 2);
        }
    }
}

static void decode_q8_0(const uint8_t *tile, float *values)
{
    for (int r = 0; r < ROWS; r++)
        for (int k = 0; k < COLUMNS; k++)
            *values++ =
                half_at(tile + 2 * HIGH_AT + r * 16 + k / 32 * 2) * (float)(int8_t)tile[at_8_bits(place_of(r, k))];
}

enum { Q6_SCALES_AT = HIGH_AT + 1024, Q6_D_AT = Q6_SCALES_AT + 256 };

static void pack_q6_k(const uint8_t *const rows[ROWS], int n_blocks, uint8_t *tile)
{
    (void)n_blocks;
    for (int r = 0; r < ROWS; r++) {
        const frit_block_q6_k *block = (const void *)rows[r];
        if (!block) continue;
        for (int k = 0; k < COLUMNS; k++) {
            const int unit = k / 32 % 4, part = k / 128, l = k % 32;
            const place p = place_of(r, k);
            put_4_bits(tile, r, k, block->ql[part * 64 + unit % 2 * 32 + l] >> unit / 2 * 4 & 15);
            const int high = block->qh[part * 32 + l] >> unit * 2 & 3;
            tile[HIGH_AT + at_2_bits(p)] |= (uint8_t)(high << (p.g % 2 * 4 + p.s * 2));
        }
        memcpy(tile + Q6_SCALES_AT + r * 16, block->scales, 16);
        memcpy(tile + Q6_D_AT + r * 2, &block->d, 2);
    }
}

static void decode_q6_k(const uint8_t *tile, float *values)
{
    for (int r = 0; r < ROWS; r++) {
        const float d = half_at(tile + Q6_D_AT + r * 2);
        for (int k = 0; k < COLUMNS; k++) {
            const place p = place_of(r, k);
            const int high = tile[HIGH_AT + at_2_bits(p)] >> (p.g % 2 * 4 + p.s * 2) & 3;
            const int scale = (int8_t)tile[Q6_SCALES_AT + r * 16 + k / 16];
            *values++ = d * (float)scale * (float)((get_4_bits(tile, r, k) | high << 4) - 32);
        }
    }
}

static void pack_16_bits(const uint8_t *const rows[ROWS], int n_blocks, uint8_t *tile)
{
    for (int r = 0; r < ROWS; r++)
        for (int k = 0; rows[r] && k < n_blocks; k++) memcpy(tile + at_16_bits(place_of(r, k)), rows[r] + 2 * k, 2);
}

static void decode_f16(const uint8_t *tile, float *values)
{
    for (int i = 0; i < ROWS * COLUMNS; i++) values[i] = half_at(tile + at_16_bits(place_of(i / COLUMNS, i % COLUMNS)));
}

static void decode_bf16(const uint8_t *tile, float *values)
{
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        uint16_t h;
        memcpy(&h, tile + at_16_bits(place_of(i / COLUMNS, i % COLUMNS)), 2);
        values[i] = frit_bf16_to_float(h);
    }
}

// clang-format off
static const frit_tile_format formats[] = {
    {FRIT_DTYPE_Q4_K, 16 * 144, pack_q4_k,    decode_q4_k},
    {FRIT_DTYPE_Q6_K, 16 * 210, pack_q6_k,    decode_q6_k},
    {FRIT_DTYPE_Q8_0, 16 * 272, pack_q8_0,    decode_q8_0},
    {FRIT_DTYPE_Q4_0, 16 * 144, pack_q4_0,    decode_q4_0},
    {FRIT_DTYPE_F16,  16 * 512, pack_16_bits, decode_f16},
    {FRIT_DTYPE_BF16, 16 * 512, pack_16_bits, decode_bf16},
};
// clang-format on

const frit_tile_format *frit_tile_format_of(frit_dtype dtype)
{
    for (size_t i = 0; i < FRIT_COUNT(formats); i++)
        if (formats[i].dtype == dtype) return &formats[i];
    return NULL;
}

// ------------------------------------------------------------------------------- matrices

int64_t frit_tile_count(const frit_tile_source *source)
{
    const int64_t n = source->order == FRIT_ROWS_GATED ? source->n_rows * 2 : source->n_rows;
    return (n + ROWS - 1) / ROWS;
}

uint64_t frit_tile_bytes(const frit_tile_format *format, const frit_tile_source *source)
{
    return (uint64_t)((source->n_columns + COLUMNS - 1) / COLUMNS) * (uint64_t)format->tile_bytes;
}

// The blocks of row r of a row tile; NULL: there is none.
static const uint8_t *row_of(const frit_tile_source *source, int64_t tile, int r, uint64_t row_bytes)
{
    const int64_t pair = tile * (ROWS / 2) + r % 8;   // counted over the whole matrix
    const uint8_t *blocks = source->blocks;
    int64_t row = tile * ROWS + r;
    if (source->order == FRIT_ROWS_ADJACENT) row = pair * 2 + r / 8;
    if (source->order == FRIT_ROWS_HALVES) {
        const int64_t half = source->head_size / 2;
        row = pair / half * source->head_size + pair % half + r / 8 * half;
    }
    if (source->order == FRIT_ROWS_GATED) {
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
    const int64_t n_blocks = source->n_columns / type->block_elems, most = COLUMNS / type->block_elems;
    for (int64_t tile = begin; tile < end; tile++)
        for (int64_t first = 0; first < n_blocks; first += most, out += format->tile_bytes) {
            const uint8_t *rows[ROWS];
            for (int r = 0; r < ROWS; r++) {
                rows[r] = row_of(source, tile, r, row_bytes);
                if (rows[r]) rows[r] += first * type->block_bytes;
            }
            memset(out, 0, (size_t)format->tile_bytes);
            format->pack(rows, (int)(n_blocks - first < most ? n_blocks - first : most), out);
        }
}
