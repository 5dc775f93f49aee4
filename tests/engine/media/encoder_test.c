// SPDX-License-Identifier: MIT
// Encoders of pictures: features of reference pixels beside those that transformers computes.
#include "engine/media/encoder.h"
#include "engine/media/golden_media.h"
#include "support/engines.h"

static const char *const models[] = {"qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5"};

typedef struct fixture {
    media_golden gold;
    frit_model *model;
    frit_engine *engine;
    frit_encoder *encoder;
} fixture;

static fixture open_fixture(const char *name, const char *cpu)
{
    fixture f = {.gold = media_golden_open(name)};
    assert_ok(frit_model_open(&f.model, f.gold.folder, NULL));
    assert_ok(frit_engine_new(&f.engine, f.model, &(frit_engine_options){.n_ctx = 64, .n_threads = 2, .cpu = cpu}));
    assert_ok(frit_encoder_open(&f.encoder, f.engine, f.gold.folder));
    return f;
}

static void close_fixture(fixture *f)
{
    frit_encoder_close(f->encoder);
    frit_engine_free(f->engine);
    frit_model_free(f->model);
    media_golden_close(&f->gold);
}

// Encodes the pictures of a case one after the other, and returns the NMSE of all features.
static double encode_case(fixture *f, const json_t *one)
{
    const json_t *grids = json_object_get(one, "image_grid_thw"), *grid;
    int64_t n, n_pixels, width, at = 0, done = 0;
    const float *pixels = media_golden_array(&f->gold, media_golden_text(one, "pixel_values"), &n, &n_pixels);
    float *expected = media_golden_features(&f->gold, one, &n, &width);
    assert_int_equal(n_pixels, frit_encoder_patch_width(f->encoder));
    assert_int_equal(width, frit_encoder_width(f->encoder));
    float *features = calloc((size_t)(n * width), sizeof *features);
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)grids, i, grid)
    {
        const frit_media_grid size = {(int32_t)json_integer_value(json_array_get(grid, 1)),
                                      (int32_t)json_integer_value(json_array_get(grid, 2))};
        frit_media_size rows;
        assert_ok(frit_encoder_count(f->encoder, size, &rows));
        assert_true(done + rows.n_outs <= n);
        assert_ok(frit_encoder_run(f->encoder, size, pixels + at * n_pixels, features + done * width));
        at += rows.n_rows, done += rows.n_outs;
    }
    assert_int_equal(done, n);
    const double error = nmse(features, expected, (size_t)(n * width));
    free(features);
    free(expected);
    return error;
}

static void compare(const char *name, const char *cpu)
{
    fixture f = open_fixture(name, cpu);
    const json_t *cases = json_object_get(f.gold.root, "cases"), *one;
    size_t i, n = 0;
    json_array_foreach((json_t *)(uintptr_t)cases, i, one)
    {
        if (!json_object_get(one, "features")) continue;
        const double error = encode_case(&f, one);
        if (!(error <= 1e-11))
            fail_msg("%s, case %s, cpu %s: NMSE %.3g", name, media_golden_text(one, "name"), cpu ? cpu : "best", error);
        n++;
    }
    assert_int_equal(n, 2);
    close_fixture(&f);
}

static void features_equal_those_of_transformers(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(models); i++) compare(models[i], "reference");
}

static void fast_kernels_give_the_same_features(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(models); i++) compare(models[i], NULL);
}

static void a_grid_without_whole_blocks_is_refused(void **state)
{
    (void)state;
    fixture f = open_fixture("qwen2_vl", NULL);
    frit_media_size size;
    assert_int_equal(frit_encoder_count(f.encoder, (frit_media_grid){4, 3}, &size), FRIT_E_INVALID);
    assert_int_equal(frit_encoder_count(f.encoder, (frit_media_grid){0, 4}, &size), FRIT_E_INVALID);
    close_fixture(&f);
}

static void a_model_without_pictures_has_no_encoder(void **state)
{
    (void)state;
    fixture f = open_fixture("qwen2_vl", NULL);
    frit_encoder *none;
    assert_int_equal(frit_encoder_open(&none, f.engine, shared_path("goldens/hf/qwen2")), FRIT_E_UNSUPPORTED);
    assert_null(none);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_equal_those_of_transformers),
        cmocka_unit_test(fast_kernels_give_the_same_features),
        cmocka_unit_test(a_grid_without_whole_blocks_is_refused),
        cmocka_unit_test(a_model_without_pictures_has_no_encoder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
