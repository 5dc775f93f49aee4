// SPDX-License-Identifier: MIT
// Where an engine finds the encoder of pictures of a GGUF file: mmproj-*.gguf beside it, or the path that options give.
#include "engine/engine.h"
#include "engine/media/encoder.h"
#include "engine/media/golden_media.h"
#include "support/engines.h"

#include <jansson.h>
#include <sys/stat.h>

static void copy(const char *from, const char *folder, const char *name)
{
    char path[4200];
    size_t n;
    char *bytes = read_file(from, &n);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    write_file(path, bytes, n);
    free(bytes);
}

static const char *make_folder(const char *name)
{
    const char *path = temp_path(name);
    assert_int_equal(mkdir(path, 0700), 0);
    return path;
}

// Opens a model of a folder and encodes a picture.
static frit_status encode(const char *model_path, const char *mmproj)
{
    frit_model *model;
    frit_engine *engine;
    frit_image *image;
    frit_media *media = NULL;
    assert_ok(frit_model_open(&model, model_path, &(frit_model_options){.mmproj = mmproj}));
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 64}));
    assert_ok(frit_image_open(&image, shared_path("goldens/media/images/gray.png"), NULL));
    const frit_status status = frit_media_new(&media, engine, image, NULL);
    frit_media_free(media);
    frit_image_free(image);
    frit_engine_free(engine);
    frit_model_free(model);
    return status;
}

static void an_encoder_is_found_beside_its_model(void **state)
{
    (void)state;
    const char *folder = make_folder("beside");
    char model[4200];
    snprintf(model, sizeof model, "%s/model.gguf", folder);
    copy(shared_path("goldens/media-gguf/qwen2_vl.text.gguf"), folder, "model.gguf");
    copy(shared_path("goldens/media-gguf/qwen2_vl.mmproj.gguf"), folder, "mmproj.txt");
    copy(shared_path("goldens/media-gguf/qwen2_vl.mmproj.gguf"), folder, "mmproj-.gguf.part");
    assert_int_equal(encode(model, NULL), FRIT_E_UNSUPPORTED);
    assert_non_null(
        strstr(frit_error(), "model.gguf: has no encoder of pictures; expected a file mmproj-*.gguf beside it"));
    copy(shared_path("goldens/media-gguf/qwen2_vl.mmproj.gguf"), folder, "mmproj-f16.gguf");
    assert_ok(encode(model, NULL));
    copy(shared_path("goldens/media-gguf/qwen2_vl.mmproj.gguf"), folder, "mmproj-q8_0.gguf");
    assert_int_equal(encode(model, NULL), FRIT_E_UNSUPPORTED);
    assert_non_null(strstr(frit_error(), "2 files mmproj-*.gguf are beside it"));
    assert_ok(encode(model, shared_path("goldens/media-gguf/qwen2_vl.mmproj.gguf")));
    assert_ok(encode(model, shared_path("goldens/media/qwen2_vl")));
}

static void encoders_of_other_models_are_refused(void **state)
{
    (void)state;
    const char *model = shared_path("goldens/media-gguf/qwen2_vl.text.gguf");
    assert_int_equal(encode(model, shared_path("goldens/media-gguf/smolvlm.mmproj.gguf")), FRIT_E_FORMAT);
    assert_non_null(strstr(frit_error(), "the vocabulary has no token '<image>'"));
    assert_int_equal(encode(model, model), FRIT_E_UNSUPPORTED);
    assert_non_null(strstr(frit_error(), "expected 'clip', an encoder of pictures"));
    assert_int_equal(encode(model, temp_path("none.gguf")), FRIT_E_NOT_FOUND);
    assert_int_equal(encode(model, ""), FRIT_E_NOT_FOUND);
    assert_int_equal(
        encode(shared_path("models/fable-6m-bf16.gguf"), shared_path("goldens/media-gguf/smolvlm.mmproj.gguf")),
        FRIT_E_FORMAT);
    assert_non_null(strstr(frit_error(), "the encoder gives rows of 64 features, expected 256 of the model"));
}

// A file does not say how large windows are: they have the 112 pixels of the published models.
static const char *folder_with_windows(void)
{
    const char *folder = make_folder("windows");
    json_t *config = json_load_file(shared_path("goldens/media/qwen2_5_vl/config.json"), 0, NULL);
    json_object_set_new(json_object_get(config, "vision_config"), "window_size", json_integer(112));
    char *text = json_dumps(config, 0), path[4200];
    snprintf(path, sizeof path, "%s/config.json", folder);
    write_file(path, text, strlen(text));
    free(text);
    json_decref(config);
    copy(shared_path("goldens/media/qwen2_5_vl/model.safetensors"), folder, "model.safetensors");
    return folder;
}

static float *features_of(frit_engine *engine, const char *path, frit_media_grid grid, size_t *n)
{
    frit_encoder *encoder;
    frit_media_size size;
    frit_rng rng;
    frit_rng_init(&rng, 7);
    assert_ok(frit_encoder_open(&encoder, engine, path));
    assert_ok(frit_encoder_count(encoder, grid, &size));
    const size_t n_pixels = (size_t)(size.n_rows * frit_encoder_patch_width(encoder));
    float *pixels = calloc(n_pixels, sizeof *pixels);
    *n = (size_t)(size.n_outs * frit_encoder_width(encoder));
    float *features = calloc(*n, sizeof *features);
    random_normal(&rng, pixels, n_pixels, 1);
    assert_ok(frit_encoder_run(encoder, grid, pixels, features));
    free(pixels);
    frit_encoder_close(encoder);
    return features;
}

static void windows_of_qwen2_5_vl_have_112_pixels(void **state)
{
    (void)state;
    frit_model *model;
    frit_engine *engine;
    size_t n, n_other;
    assert_ok(frit_model_open(&model, shared_path("goldens/media-gguf/qwen2_5_vl.text.gguf"), NULL));
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 64}));
    const frit_media_grid grid = {22, 32};   // windows of 14 patches on a side, with rests
    float *file = features_of(engine, shared_path("goldens/media-gguf/qwen2_5_vl.mmproj.gguf"), grid, &n);
    float *folder = features_of(engine, folder_with_windows(), grid, &n_other);
    float *other = features_of(engine, shared_path("goldens/media/qwen2_5_vl"), grid, &n_other);
    assert_true(nmse(file, folder, n) <= 1e-11);
    assert_true(nmse(file, other, n) > 1e-6);
    free(file);
    free(folder);
    free(other);
    frit_engine_free(engine);
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_encoder_is_found_beside_its_model),
        cmocka_unit_test(encoders_of_other_models_are_refused),
        cmocka_unit_test(windows_of_qwen2_5_vl_have_112_pixels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
