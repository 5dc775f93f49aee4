// SPDX-License-Identifier: MIT
// Pictures of another size: equal to the bit to Pillow's and torchvision's, and for any sizes within their arrays.
#include "support/support.h"

#include "media/resample.h"

#include <jansson.h>

static frit_filter filter_by_name(const char *name)
{
    static const char *const names[] = {
        [FRIT_FILTER_NEAREST] = "nearest", [FRIT_FILTER_LANCZOS] = "lanczos", [FRIT_FILTER_BILINEAR] = "bilinear",
        [FRIT_FILTER_BICUBIC] = "bicubic", [FRIT_FILTER_BOX] = "box",         [FRIT_FILTER_HAMMING] = "hamming",
    };
    for (int i = 0; i < FRIT_FILTER_COUNT; i++)
        if (strcmp(names[i], name) == 0) return (frit_filter)i;
    fail_msg("the filter '%s' is unknown", name);
    return FRIT_FILTER_BOX;
}

static uint32_t integer(json_t *object, const char *key)
{
    return (uint32_t)json_integer_value(json_object_get(object, key));
}

static void compare(json_t *row, const uint8_t *source, uint32_t width, uint32_t height, const uint8_t *results)
{
    const uint32_t out_width = integer(row, "width"), out_height = integer(row, "height");
    const char *filter = json_string_value(json_object_get(row, "filter"));
    const char *maker = json_string_value(json_object_get(row, "maker"));
    const int n_bits = strcmp(maker, "pillow") == 0 ? FRIT_PILLOW_BITS : FRIT_TORCHVISION_BITS;
    const size_t n_bytes = (size_t)out_width * out_height * 3;
    uint8_t *out = malloc(n_bytes);
    assert_non_null(out);
    assert_ok(frit_resample(source, width, height, filter_by_name(filter), n_bits, out, out_width, out_height));
    const uint8_t *expected = results + integer(row, "offset");
    for (size_t i = 0; i < n_bytes; i++)
        if (out[i] != expected[i])
            fail_msg("%s, %s, %ux%u: byte %zu is %d, expected %d", maker, filter, (unsigned)out_width,
                     (unsigned)out_height, i, out[i], expected[i]);
    free(out);
}

static void all_filters_equal_their_makers_to_the_bit(void **state)
{
    (void)state;
    size_t n_source, n_results, i;
    char *source = read_file(shared_path("goldens/media/resize/source.rgb"), &n_source);
    char *results = read_file(shared_path("goldens/media/resize/resized.bin"), &n_results);
    json_t *index = json_load_file(shared_path("goldens/media/resize/index.json"), 0, NULL), *row;
    assert_non_null(index);
    json_t *size = json_object_get(index, "source");
    json_array_foreach(json_object_get(index, "results"), i, row) compare(
        row, (const uint8_t *)source, integer(size, "width"), integer(size, "height"), (const uint8_t *)results);
    assert_true(i == 62);
    json_decref(index);
    free(source);
    free(results);
}

// The program is linked with tests/fence, so that a read or write beyond an array ends it.
static void any_size_stays_within_its_arrays(void **state)
{
    (void)state;
    frit_rng rng;
    frit_rng_init(&rng, 3);
    for (int i = 0; i < 600; i += FRIT_TEST_STRIDE) {
        const int64_t most = i % 3 == 0 ? 4 : i % 3 == 1 ? 40 : 300;
        const uint32_t width = (uint32_t)random_between(&rng, 1, most), height = (uint32_t)random_between(&rng, 1, 40);
        const uint32_t out_width = (uint32_t)random_between(&rng, 1, 40);
        const uint32_t out_height = (uint32_t)random_between(&rng, 1, most);
        uint8_t *in = malloc((size_t)width * height * 3), *out = malloc((size_t)out_width * out_height * 3);
        assert_true(in && out);
        // Black and white alone reach the largest sums.
        for (size_t j = 0; j < (size_t)width * height * 3; j++) in[j] = frit_rng_next(&rng) & 1 ? 255 : 0;
        const frit_filter filter = (frit_filter)random_between(&rng, 0, FRIT_FILTER_COUNT - 1);
        assert_ok(frit_resample(in, width, height, filter, i & 1 ? FRIT_PILLOW_BITS : FRIT_TORCHVISION_BITS, out,
                                out_width, out_height));
        free(in);
        free(out);
    }
}

static void one_color_stays_one_color(void **state)
{
    (void)state;
    enum { WIDTH = 31, HEIGHT = 17, OUT_WIDTH = 50, OUT_HEIGHT = 5 };
    uint8_t in[WIDTH * HEIGHT * 3], out[OUT_WIDTH * OUT_HEIGHT * 3];
    for (int level = 0; level < 256; level += 51)
        for (int filter = 0; filter < FRIT_FILTER_COUNT; filter++) {
            memset(in, level, sizeof in);
            assert_ok(
                frit_resample(in, WIDTH, HEIGHT, (frit_filter)filter, FRIT_PILLOW_BITS, out, OUT_WIDTH, OUT_HEIGHT));
            for (size_t i = 0; i < sizeof out; i++) assert_int_equal(out[i], level);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_filters_equal_their_makers_to_the_bit),
        cmocka_unit_test(any_size_stays_within_its_arrays),
        cmocka_unit_test(one_color_stays_one_color),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
