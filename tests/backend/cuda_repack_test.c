// SPDX-License-Identifier: MIT
// Tiles of all types decode to the same numbers, bit for bit, as the blocks do by src/quant.
#include "backend/cuda/weights/repack.h"
#include "support/support.h"

static const frit_dtype types[] = {
#define TILE(NAME, ...) FRIT_DTYPE_##NAME,
#include "backend/cuda/kernels/include/tiles.def"
#undef TILE
};

// Encodes random rows.
static uint8_t *random_blocks(frit_rng *rng, frit_dtype dtype, int64_t n_rows, int64_t n_columns)
{
    const uint64_t row_bytes = frit_dtype_row_bytes(dtype, n_columns);
    float *values = malloc((size_t)n_columns * sizeof *values);
    uint8_t *blocks = malloc((size_t)n_rows * row_bytes);
    assert_true(values && blocks);
    for (int64_t i = 0; i < n_rows; i++) {
        random_normal(rng, values, (size_t)n_columns, 0.1f);
        frit_dtype_get(dtype)->encode(values, blocks + (uint64_t)i * row_bytes, n_columns, NULL);
    }
    free(values);
    return blocks;
}

// The matrix row at row r of a row tile, computed independently; -1: none. *second: it belongs to the second matrix.
static int64_t expected_row(const frit_tile_source *source, int64_t tile, int r, bool *second)
{
    const int64_t pair = tile * 8 + r % 8;
    *second = source->order == FRIT_CUDA_ORDER_GATED && r >= 8;
    int64_t row = -1;
    switch (source->order) {
    case FRIT_CUDA_ORDER_NATURAL:
        row = tile * 16 + r;
        break;
    case FRIT_CUDA_ORDER_ADJACENT:
        row = pair * 2 + (r >= 8);
        break;
    case FRIT_CUDA_ORDER_NEOX:
        row = pair / (source->head_size / 2) * source->head_size + pair % (source->head_size / 2) +
              (r >= 8 ? source->head_size / 2 : 0);
        break;
    case FRIT_CUDA_ORDER_GATED:
        row = pair;
        break;
    }
    return row < source->n_rows ? row : -1;
}

static void check_matrix(frit_dtype dtype, frit_tile_source source)
{
    const frit_tile_format *format = frit_tile_format_of(dtype);
    const frit_dtype_info *type = frit_dtype_get(dtype);
    const uint64_t tile_bytes = frit_tile_bytes(format, &source),
                   row_bytes = frit_dtype_row_bytes(dtype, source.n_columns);
    const int64_t n_tiles = frit_tile_count(&source), n_padded = (source.n_columns + 255) / 256 * 256;
    uint8_t *tiles = malloc((size_t)((uint64_t)n_tiles * tile_bytes));
    float *expected = calloc((size_t)n_padded, sizeof *expected), values[16 * 256];
    assert_true(tiles && expected);
    frit_tile_pack(format, &source, 0, n_tiles, tiles);
    for (int64_t tile = 0; tile < n_tiles; tile++)
        for (int64_t block = 0; block < n_padded / 256; block++) {
            frit_tile_decode(format, tiles + (uint64_t)tile * tile_bytes + block * format->tile_bytes, values);
            for (int r = 0; r < 16; r++) {
                bool second;
                const int64_t row = expected_row(&source, tile, r, &second);
                memset(expected, 0, (size_t)n_padded * sizeof *expected);
                if (row >= 0)
                    type->decode((second ? source.second : source.blocks) + (uint64_t)row * row_bytes, expected,
                                 source.n_columns);
                for (int k = 0; k < 256; k++)
                    if (values[r * 256 + k] != expected[block * 256 + k])
                        fail_msg("%s: tile %d, row %d, column %d: %g, expected %g", type->name, (int)tile, r,
                                 (int)block * 256 + k, (double)values[r * 256 + k], (double)expected[block * 256 + k]);
            }
        }
    free(expected);
    free(tiles);
}

static void every_type_is_packed_without_loss(void **state)
{
    (void)state;
    frit_rng rng;
    frit_rng_init(&rng, 1);
    for (size_t i = 0; i < FRIT_COUNT(types); i++) {
        const int64_t n_rows = 37, n = frit_dtype_get(types[i])->block_elems;
        const int64_t n_columns = 768 + (n == 256 ? 0 : n > 32 ? n : 32);   // the last tile is not full
        uint8_t *blocks = random_blocks(&rng, types[i], n_rows, n_columns);
        check_matrix(types[i], (frit_tile_source){.blocks = blocks, .n_rows = n_rows, .n_columns = n_columns});
        free(blocks);
    }
}

static void rows_that_belong_together_are_rows_r_and_r_plus_8(void **state)
{
    (void)state;
    frit_rng rng;
    frit_rng_init(&rng, 2);
    for (size_t i = 0; i < FRIT_COUNT(types); i++) {
        uint8_t *blocks = random_blocks(&rng, types[i], 128, 256), *second = random_blocks(&rng, types[i], 128, 256);
        for (frit_cuda_row_order order = FRIT_CUDA_ORDER_NATURAL; order <= FRIT_CUDA_ORDER_GATED; order++)
            check_matrix(types[i], (frit_tile_source){.blocks = blocks,
                                                      .second = second,
                                                      .n_rows = 128,
                                                      .n_columns = 256,
                                                      .order = order,
                                                      .head_size = 64});
        free(second);
        free(blocks);
    }
}

// Random bytes reach codes, scales and signs that an encoder never writes.
static void bytes_of_any_value_are_kept(void **state)
{
    (void)state;
    frit_rng rng;
    frit_rng_init(&rng, 3);
    for (size_t i = 0; i < FRIT_COUNT(types); i++) {
        const frit_dtype_info *type = frit_dtype_get(types[i]);
        const size_t n = (size_t)frit_dtype_row_bytes(types[i], 256) * 16;
        uint8_t *blocks = random_blocks(&rng, types[i], 16, 256);
        for (size_t j = 0; j < n; j++) {
            const uint8_t before = blocks[j];
            blocks[j] = (uint8_t)frit_rng_next(&rng);
            // Scales must be finite, because others make every number NaN, and NaN equals nothing.
            float values[256];
            type->decode(blocks + j / (n / 16) * (n / 16), values, 256);
            for (int k = 0; k < 256; k++)
                if (!(values[k] - values[k] == 0)) blocks[j] = before;
        }
        check_matrix(types[i], (frit_tile_source){.blocks = blocks, .n_rows = 16, .n_columns = 256});
        free(blocks);
    }
}

// All parts of a tile begin at multiples of 16 bytes; only codes that become bytes take more space than in blocks.
static void tiles_are_made_of_16_byte_units(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(types); i++) {
        const frit_tile_format *format = frit_tile_format_of(types[i]);
        const int block_bytes = (int)frit_dtype_row_bytes(types[i], 256);
        assert_int_equal(format->tile_bytes % 16, 0);
        assert_int_equal(format->head_bytes % 2, 0);
        if (format->head_bytes == 64)
            assert_int_equal(format->tile_bytes, 16 * 320);
        else   // q3_k, iq4_xs: scales of six bits become bytes
            assert_in_range(format->tile_bytes, 16 * block_bytes, 16 * (block_bytes + 4));
    }
    assert_null(frit_tile_format_of(FRIT_DTYPE_I32));
}

static void every_weight_type_has_tiles(void **state)
{
    (void)state;
    for (int i = 0; i < FRIT_DTYPE_COUNT; i++)
        if (frit_dtype_get((frit_dtype)i)->encode && i != FRIT_DTYPE_FP8)
            assert_non_null(frit_tile_format_of((frit_dtype)i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_packed_without_loss),
        cmocka_unit_test(rows_that_belong_together_are_rows_r_and_r_plus_8),
        cmocka_unit_test(bytes_of_any_value_are_kept),
        cmocka_unit_test(tiles_are_made_of_16_byte_units),
        cmocka_unit_test(every_weight_type_has_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
