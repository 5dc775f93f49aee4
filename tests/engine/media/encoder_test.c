// SPDX-License-Identifier: MIT
// Encoders of pictures: features of reference pixels beside those that transformers computes.
#include "engine/media/encoder.h"
#include "engine/media/golden_media.h"
#include "support/engines.h"

static const char *const models[] = {"qwen2_vl", "qwen2_5_vl", "qwen3_vl",    "qwen3_5",
                                     "gemma3",   "gemma4",     "gemma4_small"};

typedef struct fixture {
    media_golden gold;
    frit_model *model;
    frit_engine *engine;
    frit_encoder *encoder;
    int64_t tile_patches;   // on a side of a tile
} fixture;

static fixture open_fixture(const char *name, const char *cpu, bool has_mmproj)
{
    fixture f = {.gold = media_golden_open(name)};
    const char *mmproj = shared_path("goldens/media-gguf/%s.mmproj.gguf", name);
    assert_ok(frit_model_open(&f.model, f.gold.folder, NULL));
    assert_ok(frit_engine_new(&f.engine, f.model, &(frit_engine_options){.n_ctx = 64, .n_threads = 2, .cpu = cpu}));
    assert_ok(frit_encoder_open(&f.encoder, f.engine, has_mmproj ? mmproj : f.gold.folder));
    f.tile_patches = strcmp(name, "gemma3") == 0 ? 7 : 0;
    return f;
}

static void close_fixture(fixture *f)
{
    frit_encoder_close(f->encoder);
    frit_engine_free(f->engine);
    frit_model_free(f->model);
    media_golden_close(&f->gold);
}

// The numbers of pictures of a case, as the encoder reads them: patches, of all pictures or of each with patches of
// zeros at the end, or tiles, which are cut here.
typedef struct pictures {
    media_dims dims;   // of the golden array
    const float *values;
    int64_t n_read;   // patches of pictures that were read
} pictures;

static frit_media_grid grid_of(const json_t *list, size_t i, size_t first)
{
    const json_t *grid = json_array_get(list, i);
    return (frit_media_grid){(int32_t)json_integer_value(json_array_get(grid, first)),
                             (int32_t)json_integer_value(json_array_get(grid, first + 1))};
}

// Cuts tile i, [colors, height, width], into patches.
static void cut_tile(const pictures *p, size_t i, frit_media_grid grid, float *patches)
{
    const int64_t height = p->dims.n[2], width = p->dims.n[3], side = height / grid.height;
    const float *tile = p->values + (int64_t)i * 3 * height * width;
    for (int64_t k = 0; k < 3 * height * width; k++) {
        const int64_t color = k / (height * width), y = k / width % height, x = k % width;
        const int64_t patch = y / side * grid.width + x / side;
        patches[((patch * 3 + color) * side + y % side) * side + x % side] = tile[k];
    }
}

// Reads the patches of picture i, which the caller frees, and its grid.
static float *patches_of(const fixture *f, const json_t *one, pictures *p, size_t i, frit_media_grid *grid)
{
    const json_t *grids = json_object_get(one, "image_grid_thw"), *padded = json_object_get(one, "grid");
    const int64_t n_pixels = frit_encoder_patch_width(f->encoder), side = f->tile_patches;
    *grid = grids    ? grid_of(grids, i, 1)
            : padded ? grid_of(padded, i, 0)
                     : (frit_media_grid){(int32_t)side, (int32_t)side};
    const int64_t n = (int64_t)grid->height * grid->width;
    float *patches = calloc((size_t)(n * n_pixels), sizeof *patches);
    assert_int_equal(grids || padded ? p->dims.n[p->dims.n_dims - 1] : n_pixels, n_pixels);
    const int64_t first = grids ? p->n_read : (int64_t)i * p->dims.n[1];
    if (grids || padded)
        memcpy(patches, p->values + first * n_pixels, (size_t)(n * n_pixels) * sizeof *patches);
    else
        cut_tile(p, i, *grid, patches);
    p->n_read += n;
    return patches;
}

// Encodes the pictures of a case one after the other, and returns the NMSE of all features.
static double encode_case(fixture *f, const json_t *one)
{
    int64_t n, width, done = 0;
    pictures p = {0};
    p.values = media_golden_array_of(&f->gold, media_golden_text(one, "pixel_values"), &p.dims);
    float *expected = media_golden_features(&f->gold, one, &n, &width);
    assert_int_equal(width, frit_encoder_width(f->encoder));
    float *features = calloc((size_t)(n * width), sizeof *features);
    for (size_t i = 0; i < json_array_size(json_object_get(one, "images")); i++) {
        frit_media_size rows;
        frit_media_grid grid;
        float *patches = patches_of(f, one, &p, i, &grid);
        assert_ok(frit_encoder_count(f->encoder, grid, &rows));
        assert_true(done + rows.n_outs <= n);
        assert_ok(frit_encoder_run(f->encoder, grid, patches, features + done * width));
        done += rows.n_outs;
        free(patches);
    }
    assert_int_equal(done, n);
    const double error = nmse(features, expected, (size_t)(n * width));
    free(features);
    free(expected);
    return error;
}

static void compare(const char *name, const char *cpu, bool has_mmproj)
{
    fixture f = open_fixture(name, cpu, has_mmproj);
    const json_t *cases = json_object_get(f.gold.root, "cases"), *one;
    size_t i, n = 0;
    json_array_foreach((json_t *)(uintptr_t)cases, i, one)
    {
        if (!json_object_get(one, "features") || json_object_get(one, "sounds")) continue;
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
    for (size_t i = 0; i < FRIT_COUNT(models); i++) compare(models[i], "reference", false);
}

static void fast_kernels_give_the_same_features(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(models); i++) compare(models[i], NULL, false);
}

// The file of qwen2_5_vl lacks the size of windows (engine/mmproj).
static void mmproj_files_give_the_same_features(void **state)
{
    (void)state;
    static const char *const files[] = {"qwen2_vl", "qwen3_vl", "qwen3_5", "gemma3", "gemma4", "gemma4_small"};
    for (size_t i = 0; i < FRIT_COUNT(files); i++) compare(files[i], "reference", true);
}

static void a_grid_without_whole_blocks_is_refused(void **state)
{
    (void)state;
    fixture f = open_fixture("qwen2_vl", NULL, false);
    frit_media_size size;
    assert_int_equal(frit_encoder_count(f.encoder, (frit_media_grid){4, 3}, &size), FRIT_E_INVALID);
    assert_int_equal(frit_encoder_count(f.encoder, (frit_media_grid){0, 4}, &size), FRIT_E_INVALID);
    close_fixture(&f);
}

static void a_model_without_pictures_has_no_encoder(void **state)
{
    (void)state;
    fixture f = open_fixture("qwen2_vl", NULL, false);
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
        cmocka_unit_test(mmproj_files_give_the_same_features),
        cmocka_unit_test(a_grid_without_whole_blocks_is_refused),
        cmocka_unit_test(a_model_without_pictures_has_no_encoder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
