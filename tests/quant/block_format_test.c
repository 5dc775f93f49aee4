// SPDX-License-Identifier: MIT
// Blocks as codes and scales: compared with the blocks of the reference encoder, and with the decoders.
#include "support/support.h"

#include "quant/block_format.h"

#include <math.h>

enum { N = 4096 };

static void blocks_come_back_as_they_were(void **state)
{
    (void)state;
    int n_types = 0;
    shared_path("goldens/quant");   // skips the test before anything is allocated
    for (int type = 0; type < FRIT_DTYPE_COUNT; type++) {
        const frit_block_format *format = frit_block_format_get((frit_dtype)type);
        if (!format) continue;
        const frit_dtype_info *info = frit_dtype_get((frit_dtype)type);
        static const char *const suffixes[] = {".bin", ".importance.bin"};
        const bool needs_importance = type == FRIT_DTYPE_IQ2_XXS || type == FRIT_DTYPE_IQ2_XS;
        for (int s = needs_importance; s < 2; s++) {
            size_t n_bytes;
            char *blocks = read_file(shared_path("goldens/quant/%s%s", info->name, suffixes[s]), &n_bytes);
            const size_t n_blocks = n_bytes / (size_t)info->block_bytes;
            for (size_t i = 0; i < n_blocks; i++) {
                frit_unpacked_block block;
                char packed[256];
                float values[256];
                const char *from = blocks + i * (size_t)info->block_bytes;
                format->unpack(from, &block);
                format->pack(&block, packed);
                assert_memory_equal(packed, from, (size_t)info->block_bytes);
                info->decode(from, values, format->block);
                for (int k = 0; k < format->block; k++) {
                    const int g = k / format->group;
                    const float level = frit_block_format_level(format, block.codes[k]);
                    assert_in_range(block.codes[k] - format->low, 0, format->high - format->low);
                    assert_true(frit_block_format_scale(&block, g) * level - frit_block_format_min(&block, g) ==
                                values[k]);
                }
            }
            free(blocks);
        }
        n_types++;
    }
    assert_int_equal(n_types, 16);
}

static void levels_and_scales_are_the_nearest(void **state)
{
    (void)state;
    for (int type = 0; type < FRIT_DTYPE_COUNT; type++) {
        const frit_block_format *format = frit_block_format_get((frit_dtype)type);
        if (!format) continue;
        for (float x = -140; x < 140 && !format->is_grid; x += 0.37f) {
            const float got = fabsf(frit_block_format_level(format, frit_block_format_nearest(format, x)) - x);
            for (int code = format->low; code <= format->high; code++)
                assert_true(got <= fabsf(frit_block_format_level(format, code) - x));
        }
        frit_unpacked_block block = {.d = 0.125f, .dmin = 0.125f, .scales = {1}, .mins = {1}};
        frit_block_format_set_scale(format, &block, 0, 0.9f);
        const bool is_free = format->scale_low == format->scale_high;
        const float apart = is_free ? 0.001f : 0.0626f * (float)format->scale_step;
        assert_true(fabsf(frit_block_format_scale(&block, 0) - 0.9f) < apart);
        assert_true((block.scales[0] - format->scale_low) % format->scale_step == 0);
        frit_block_format_set_min(format, &block, 0, 1e9f);
        if (format->min_high > 1) assert_int_equal(block.mins[0], format->min_high);
        if (format->min_high == 0) assert_true(block.dmin == 0.125f && block.mins[0] == 1);
        assert_true(isfinite(frit_block_format_min(&block, 0)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_back_as_they_were),
        cmocka_unit_test(levels_and_scales_are_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
