// SPDX-License-Identifier: MIT
// Blocks as codes and scales: against the blocks of the reference encoder, and the decoders.
#include "support/support.h"

#include "quant/lattice.h"

#include <math.h>

enum { N = 4096 };

static void blocks_come_back_as_they_were(void **state)
{
    (void)state;
    int n_types = 0;
    shared_path("goldens/quant");   // skips the test while nothing is allocated
    for (int type = 0; type < FRIT_DTYPE_COUNT; type++) {
        const frit_lattice *lattice = frit_lattice_get((frit_dtype)type);
        if (!lattice) continue;
        const frit_dtype_info *info = frit_dtype_get((frit_dtype)type);
        static const char *const suffixes[] = {".bin", ".importance.bin"};
        for (int s = 0; s < 2; s++) {
            size_t n_bytes;
            char *blocks = read_file(shared_path("goldens/quant/%s%s", info->name, suffixes[s]), &n_bytes);
            const size_t n_blocks = n_bytes / (size_t)info->block_bytes;
            for (size_t i = 0; i < n_blocks; i++) {
                frit_lattice_block block;
                char packed[256];
                float values[256];
                const char *from = blocks + i * (size_t)info->block_bytes;
                lattice->unpack(from, &block);
                lattice->pack(&block, packed);
                assert_memory_equal(packed, from, (size_t)info->block_bytes);
                info->decode(from, values, lattice->block);
                for (int k = 0; k < lattice->block; k++) {
                    const int g = k / lattice->group;
                    const float level = frit_lattice_level(lattice, block.codes[k]);
                    assert_in_range(block.codes[k] - lattice->low, 0, lattice->high - lattice->low);
                    assert_true(frit_lattice_scale(&block, g) * level - frit_lattice_min(&block, g) == values[k]);
                }
            }
            free(blocks);
        }
        n_types++;
    }
    assert_int_equal(n_types, 11);
}

static void levels_and_scales_are_the_nearest(void **state)
{
    (void)state;
    for (int type = 0; type < FRIT_DTYPE_COUNT; type++) {
        const frit_lattice *lattice = frit_lattice_get((frit_dtype)type);
        if (!lattice) continue;
        for (float x = -140; x < 140; x += 0.37f) {
            const float got = fabsf(frit_lattice_level(lattice, frit_lattice_nearest(lattice, x)) - x);
            for (int code = lattice->low; code <= lattice->high; code++)
                assert_true(got <= fabsf(frit_lattice_level(lattice, code) - x));
        }
        frit_lattice_block block = {.d = 0.125f, .dmin = 0.125f, .scales = {1}, .mins = {1}};
        frit_lattice_set_scale(lattice, &block, 0, 0.9f);
        const bool is_free = lattice->scale_low == lattice->scale_high;
        assert_true(fabsf(frit_lattice_scale(&block, 0) - 0.9f) < (is_free ? 0.001f : 0.0626f));
        frit_lattice_set_min(lattice, &block, 0, 1e9f);
        if (lattice->min_high > 1) assert_int_equal(block.mins[0], lattice->min_high);
        if (lattice->min_high == 0) assert_true(block.dmin == 0.125f && block.mins[0] == 1);
        assert_true(isfinite(frit_lattice_min(&block, 0)));
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
