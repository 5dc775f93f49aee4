// SPDX-License-Identifier: MIT
// Processors: sizes and tokens of published ones at 49 sizes, pixels of 15 golden models, marks, and bad files.
#include "support/support.h"

#include "format/processor.h"

#include <jansson.h>

static json_t *read_json(const char *path)
{
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    if (!json) fail_msg("%s: %s", path, error.text);
    return json;
}

static int64_t integer(json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static frit_status read_texts(frit_processor *p, const char *preprocessor, const char *processor, const char *config)
{
    bool found;
    const frit_status status = frit_processor_read(
        p, &found, &(frit_processor_files){frit_str_of(preprocessor), frit_str_of(processor), frit_str_of(config)});
    if (status == FRIT_OK) assert_true(found);
    return status;
}

// ------------------------------------------------------------------------------- sizes

typedef struct published {
    const char *name, *preprocessor, *processor, *config;
    bool counts_marks;   // the tokens of sizes.json include marks
} published;

#define TYPE(name) "{\"image_processor_type\": \"" name "\""

static const published processors[] = {
    {"qwen2_vl", TYPE("Qwen2VLImageProcessor") ", \"min_pixels\": 3136, \"max_pixels\": 12845056}", "", "", false},
    {"qwen2_vl_1280",
     TYPE("Qwen2VLImageProcessorFast") ", \"size\": {\"shortest_edge\": 3136, \"longest_edge\": 1003520}}", "", "",
     false},
    {"qwen3_vl",
     TYPE("Qwen2VLImageProcessorFast") ", \"patch_size\": 16, \"size\": {\"shortest_edge\": 65536, \"longest_edge\": "
                                       "16777216}}",
     "", "", false},
    {"glm4v", TYPE("Glm4vImageProcessor") ", \"size\": {\"shortest_edge\": 12544, \"longest_edge\": 9633792}}", "", "",
     false},
    {"smolvlm_384",
     TYPE(
         "Idefics3ImageProcessor") ", \"size\": {\"longest_edge\": 1536}, \"max_image_size\": {\"longest_edge\": 384}}",
     "{\"image_seq_len\": 81}", "{\"scale_factor\": 3, \"vision_config\": {\"patch_size\": 14}}", true},
    {"smolvlm_512",
     TYPE("SmolVLMImageProcessor") ", \"size\": {\"longest_edge\": 2048}, \"max_image_size\": {\"longest_edge\": 512}}",
     "", "{\"scale_factor\": 4, \"vision_config\": {\"patch_size\": 16}}", true},
    {"llava_next",
     TYPE("LlavaNextImageProcessor") ", \"size\": {\"shortest_edge\": 336}, \"crop_size\": {\"height\": 336, "
                                     "\"width\": 336},"
                                     " \"image_grid_pinpoints\": [[336, 672], [672, 336], [672, 672], [1008, 336], "
                                     "[336, 1008]]}",
     "{\"patch_size\": 14}", "", true},
    {"llava_onevision", NULL, "",
     "{\"vision_config\": {\"model_type\": \"siglip_vision_model\"},"
     " \"vision_feature_select_strategy\": \"full\", \"vision_aspect_ratio\": \"anyres_max_9\"}",
     true},
    {"pixtral", TYPE("PixtralImageProcessor") "}", "", "", true},
    {"mistral3",
     TYPE("PixtralImageProcessorFast") ", \"size\": {\"longest_edge\": 1540}, \"patch_size\": {\"height\": 14, "
                                       "\"width\": 14}}",
     "{\"spatial_merge_size\": 2}", "", true},
    {"internvl",
     TYPE("GotOcr2ImageProcessorFast") ", \"size\": {\"height\": 448, \"width\": 448}, \"crop_to_patches\": true}",
     "{\"image_seq_length\": 256}", "{\"downsample_ratio\": 0.5, \"vision_config\": {\"patch_size\": [14, 14]}}", true},
    {"lfm2_vl", TYPE("Lfm2VlImageProcessorFast") "}", "", "", true},
    {"gemma4_280", TYPE("Gemma4ImageProcessor") "}", "", "", false},
    {"gemma4_1120", TYPE("Gemma4ImageProcessor") ", \"max_soft_tokens\": 1120}", "", "", false},
    {"llama4", TYPE("Llama4ImageProcessorFast") "}", "",
     "{\"vision_config\": {\"patch_size\": 14, \"pixel_shuffle_ratio\": 0.5}}", true},
};

// The 36 sizes of LLaVA-OneVision.
static const char *onevision_text(void)
{
    static char text[2048];
    size_t n =
        (size_t)snprintf(text, sizeof text, "%s", TYPE("LlavaOnevisionImageProcessor") ", \"image_grid_pinpoints\": [");
    for (int rows = 1; rows <= 6; rows++)
        for (int columns = 1; columns <= 6; columns++)
            n += (size_t)snprintf(text + n, sizeof text - n, "[%d, %d]%s", 384 * rows, 384 * columns,
                                  rows * columns == 36 ? "]}" : ", ");
    return text;
}

static void compare_field(const char *name, json_t *row, const char *key, int64_t found)
{
    json_t *expected = json_object_get(row, key);
    if (!expected) return;
    if (found != json_integer_value(expected)) {
        char *text = json_dumps(row, JSON_COMPACT);
        fail_msg("%s: %s is %lld: %s", name, key, (long long)found, text);
    }
}

static void compare_size(const published *of, const frit_processor *p, json_t *row)
{
    json_t *image = json_object_get(row, "image");
    const uint32_t width = (uint32_t)json_integer_value(json_array_get(image, 0));
    const uint32_t height = (uint32_t)json_integer_value(json_array_get(image, 1));
    frit_picture_plan plan;
    const frit_status status = frit_processor_plan(&plan, p, width, height);
    // transformers takes a side of 1 or 3 pixels for colors.
    if (p->rule == FRIT_RULE_LONGEST && (height == 1 || height == 3)) return;
    if (json_object_get(row, "refused")) {
        if (status != FRIT_E_INVALID) fail_msg("%s takes %ux%u", of->name, (unsigned)width, (unsigned)height);
        return;
    }
    if (status != FRIT_OK) fail_msg("%s: %ux%u: %s", of->name, (unsigned)width, (unsigned)height, frit_error());
    compare_field(of->name, row, "tokens", plan.n_soft + (of->counts_marks ? plan.n_marks : 0));
    const bool is_lfm2 = p->rule == FRIT_RULE_TOKENS;
    compare_field(of->name, row, "rows", plan.tiles.rows);
    compare_field(of->name, row, "columns", plan.tiles.columns);
    compare_field(of->name, row, "width", is_lfm2 && plan.has_whole ? plan.whole_width : plan.out_width);
    compare_field(of->name, row, "height", is_lfm2 && plan.has_whole ? plan.whole_height : plan.out_height);
    if (p->rule == FRIT_RULE_SPLIT || p->rule == FRIT_RULE_CANVAS) compare_field(of->name, row, "tiles", plan.n_tiles);
}

static void sizes_and_tokens_equal_those_of_published_processors(void **state)
{
    (void)state;
    json_t *all = read_json(shared_path("goldens/media/sizes.json")), *row;
    size_t i;
    for (size_t j = 0; j < FRIT_COUNT(processors); j++) {
        const published *of = &processors[j];
        frit_processor p;
        assert_ok(read_texts(&p, of->preprocessor ? of->preprocessor : onevision_text(), of->processor, of->config));
        json_t *rows = json_object_get(json_object_get(all, of->name), "rows");
        assert_true(json_array_size(rows) >= 49);
        json_array_foreach(rows, i, row) compare_size(of, &p, row);
    }
    assert_int_equal(json_object_size(all), FRIT_COUNT(processors));
    json_decref(all);
}

static uint32_t tokens_of(const frit_processor *p, uint32_t width, uint32_t height)
{
    frit_picture_plan plan;
    assert_ok(frit_processor_plan(&plan, p, width, height));
    return plan.n_soft;
}

static void limits_of_tokens_are_kept(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t width, height, min, max, low, high;   // tokens from low to high are expected
    } rows[] = {
        {"qwen2_vl", 4000, 3000, 0, 256, 200, 256},    {"qwen2_vl", 28, 28, 64, 0, 64, 80},
        {"qwen3_vl", 4000, 3000, 0, 1024, 900, 1024},  {"glm4v", 4000, 3000, 0, 256, 200, 256},
        {"smolvlm_512", 4000, 3000, 0, 64, 64, 64},    {"smolvlm_512", 4000, 3000, 0, 400, 320, 320},
        {"smolvlm_512", 4000, 4000, 0, 700, 640, 640}, {"llava_next", 672, 672, 0, 2000, 1100, 2000},
        {"pixtral", 4000, 4000, 0, 256, 200, 256},     {"internvl", 4000, 3000, 0, 256, 256, 256},
        {"internvl", 4000, 3000, 0, 1300, 1024, 1280}, {"lfm2_vl", 4000, 3000, 0, 100, 64, 100},
        {"lfm2_vl", 4000, 3000, 0, 1100, 512, 1100},   {"gemma4_1120", 4000, 3000, 0, 300, 250, 300},
        {"llama4", 4000, 3000, 0, 144, 144, 144},      {"llama4", 4000, 3000, 0, 800, 700, 800},
        {"qwen2_vl", 1000, 1000, 600, 500, 400, 500},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++)
        for (size_t j = 0; j < FRIT_COUNT(processors); j++) {
            const published *of = &processors[j];
            if (strcmp(rows[i].name, of->name) != 0) continue;
            frit_processor p;
            assert_ok(read_texts(&p, of->preprocessor, of->processor, of->config));
            frit_processor_limit(&p, rows[i].min, rows[i].max);
            const uint32_t n = tokens_of(&p, rows[i].width, rows[i].height);
            if (n < rows[i].low || n > rows[i].high)
                fail_msg("%s, %u to %u tokens: %u", of->name, (unsigned)rows[i].min, (unsigned)rows[i].max,
                         (unsigned)n);
        }
}

// ------------------------------------------------------------------------------- pixels

typedef struct golden {
    const char *folder;
    json_t *json;
    const float *numbers;
    frit_processor processor;
} golden;

// An array of pixel values: [tiles, 3, height, width], maybe with a number of pictures before; or [patches, values],
// maybe with a number of tiles or pictures before.
typedef struct array {
    const float *numbers;
    size_t n_dims, dims[5];
} array;

static array find_array(const golden *g, const char *name)
{
    array a = {0};
    json_t *entry = json_object_get(json_object_get(g->json, "arrays"), name), *dim;
    size_t i;
    assert_non_null(entry);
    a.numbers = g->numbers + integer(entry, "offset") / 4;
    json_array_foreach(json_object_get(entry, "shape"), i, dim) a.dims[a.n_dims++] = (size_t)json_integer_value(dim);
    return a;
}

// Number v of patch i of a tile, in an array [tiles, 3, height, width].
static float convolution_value(const golden *g, const array *a, size_t tile, frit_grid grid, size_t i, size_t v)
{
    const size_t side = g->processor.patch, height = a->dims[a->n_dims - 2], width = a->dims[a->n_dims - 1];
    const size_t color = v / (side * side), y = i / grid.columns * side + v / side % side;
    const size_t x = i % grid.columns * side + v % side;
    return a->numbers[((tile * 3 + color) * height + y) * width + x];
}

static void compare_values(const golden *g, const char *what, size_t tile, size_t patch, size_t value, float found,
                           float expected)
{
    if (memcmp(&found, &expected, sizeof found) == 0) return;
    fail_msg("%s, %s: tile %zu, patch %zu, number %zu is %.9g, expected %.9g", g->folder, what, tile, patch, value,
             (double)found, (double)expected);
}

// Compares the patches of one picture. *tile and *row are the first ones of the picture in the array.
static void compare_picture(const golden *g, const char *what, const array *a, const frit_picture_plan *plan,
                            const float *patches, size_t tile, size_t row)
{
    for (uint32_t t = 0; t < plan->n_tiles; t++) {
        const frit_grid grid = frit_plan_tile(plan, &g->processor, t);
        for (size_t i = 0; i < (size_t)grid.rows * grid.columns; i++, patches += plan->patch_values)
            for (size_t v = 0; v < plan->patch_values; v++) {
                const float expected = a->n_dims >= 4   ? convolution_value(g, a, tile + t, grid, i, v)
                                       : a->n_dims == 3 ? a->numbers[((tile + t) * a->dims[1] + i) * a->dims[2] + v]
                                                        : a->numbers[(row + i) * a->dims[1] + v];
                compare_values(g, what, t, i, v, patches[v], expected);
            }
        row += (size_t)grid.rows * grid.columns;
    }
}

static bool compare_case(const golden *g, json_t *entry)
{
    json_t *images = json_object_get(entry, "images"), *name;
    if (!images || !json_object_get(entry, "pixel_values")) return false;
    const array a = find_array(g, json_string_value(json_object_get(entry, "pixel_values")));
    size_t i, tile = 0, row = 0, n_soft = 0;
    json_array_foreach(images, i, name)
    {
        frit_image *image;
        frit_picture_plan plan;
        const char *what = json_string_value(name);
        uint32_t width, height;
        assert_ok(frit_image_open(&image, shared_path("goldens/media/images/%s", what), NULL));
        assert_ok(frit_image_get_size(image, &width, &height));
        assert_ok(frit_processor_plan(&plan, &g->processor, width, height));
        float *patches = malloc((size_t)plan.n_patches * plan.patch_values * sizeof *patches);
        assert_non_null(patches);
        assert_ok(frit_processor_patches(&g->processor, &plan, image, patches));
        // Pictures of LLaVA-NeXT have as many tiles in the array as the one with most.
        const bool is_filled_up = a.n_dims == 5 && a.dims[0] == json_array_size(images);
        compare_picture(g, what, &a, &plan, patches, is_filled_up ? i * a.dims[1] : tile, row);
        tile += plan.n_tiles;
        row += plan.n_patches;
        n_soft += plan.n_soft;
        free(patches);
        frit_image_free(image);
    }
    if (!json_object_get(entry, "sounds") && n_soft != (size_t)integer(entry, "soft_tokens"))
        fail_msg("%s: %zu soft tokens, expected %lld", g->folder, n_soft, (long long)integer(entry, "soft_tokens"));
    return true;
}

static void pixels_equal_those_of_golden_models(void **state)
{
    (void)state;
#ifndef FRIT_TEST_IMAGES
    skip_because("this build reads no pictures");
#endif
    static const char *const folders[] = {"gemma3",     "gemma4",   "gemma4_small", "internvl",        "lfm2_vl",
                                          "llama4",     "llava",    "llava_next",   "llava_onevision", "mistral3",
                                          "qwen2_5_vl", "qwen2_vl", "qwen3_5",      "qwen3_vl",        "smolvlm"};
    for (size_t i = 0; i < FRIT_COUNT(folders); i++) {
        golden g = {.folder = folders[i]};
        g.json = read_json(shared_path("goldens/media/%s/golden.json", folders[i]));
        size_t n_bytes, j, n = 0;
        char *numbers = read_file(shared_path("goldens/media/%s/golden.f32", folders[i]), &n_bytes);
        g.numbers = (const float *)(const void *)numbers;
        bool found;
        assert_ok(frit_processor_open(&g.processor, &found, shared_path("goldens/media/%s", folders[i])));
        assert_true(found);
        json_t *entry;
        json_array_foreach(json_object_get(g.json, "cases"), j, entry) n += compare_case(&g, entry);
        assert_true(n >= 2);
        json_decref(g.json);
        free(numbers);
    }
}

// ------------------------------------------------------------------------------- marks

static frit_status add_part(void *ctx, const char *text, uint32_t n_soft)
{
    frit_buf *out = ctx;
    if (text)
        frit_buf_text(out, text);
    else
        frit_buf_printf(out, "{%u}", (unsigned)n_soft);
    return FRIT_OK;
}

static const struct {
    const char *name;
    uint32_t width, height;
    const char *expected;
} mark_cases[] = {
    {"qwen2_vl", 56, 56, "{4}"},
    {"llava_next", 336, 336, "{1176}"},
    {"mistral3", 84, 56, "{3}[IMG_BREAK]{3}[IMG_END]"},
    {"internvl", 448, 448, "<img>{256}</img>"},
    {"internvl", 896, 448, "<img>{768}</img>"},
    {"gemma4_280", 100, 100, "<|image>{256}<image|>"},
    {"smolvlm_512", 1000, 300,
     "<fake_token_around_image><row_1_col_1>{64}<fake_token_around_image><row_1_col_2>{64}"
     "<fake_token_around_image><row_1_col_3>{64}<fake_token_around_image><row_1_col_4>{64}\n"
     "<fake_token_around_image><row_2_col_1>{64}<fake_token_around_image><row_2_col_2>{64}"
     "<fake_token_around_image><row_2_col_3>{64}<fake_token_around_image><row_2_col_4>{64}\n\n"
     "<fake_token_around_image><global-img>{64}<fake_token_around_image>"},
    {"lfm2_vl", 256, 256, "<|image_start|>{64}<|image_end|>"},
    {"lfm2_vl", 1100, 540,
     "<|image_start|><|img_row_1_col_1|>{256}<|img_row_1_col_2|>{256}<|img_thumbnail|>{242}<|image_end|>"},
    {"llama4", 336, 300, "<|image_start|><|image|>{144}<|image_end|>"},
    {"llama4", 672, 672,
     "<|image_start|>{144}<|tile_x_separator|>{144}<|tile_y_separator|>{144}<|tile_x_separator|>{144}"
     "<|tile_y_separator|><|image|>{144}<|image_end|>"},
};

static void marks_stand_around_soft_tokens(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(mark_cases); i++)
        for (size_t j = 0; j < FRIT_COUNT(processors); j++) {
            if (strcmp(mark_cases[i].name, processors[j].name) != 0) continue;
            frit_processor p;
            frit_picture_plan plan;
            frit_buf text = {0};
            assert_ok(read_texts(&p, processors[j].preprocessor, processors[j].processor, processors[j].config));
            assert_ok(frit_processor_plan(&plan, &p, mark_cases[i].width, mark_cases[i].height));
            assert_ok(frit_processor_marks(&p, &plan, add_part, &text));
            assert_string_equal(text.data, mark_cases[i].expected);
            frit_buf_free(&text);
        }
}

// ------------------------------------------------------------------------------- bad files

static const struct {
    const char *preprocessor, *processor, *config, *phrase;
    frit_status status;
} bad[] = {
    {"[]", "", "", "preprocessor_config.json is not an object", FRIT_E_FORMAT},
    {"{", "", "", "preprocessor_config.json is no JSON: line 1", FRIT_E_FORMAT},
    {TYPE("CLIPImageProcessor") "}", "{\"a\": }", "", "processor_config.json is no JSON", FRIT_E_FORMAT},
    {TYPE("CLIPImageProcessor") "}", "", "7", "config.json is", FRIT_E_FORMAT},
    {TYPE("FooImageProcessor") "}", "", "", "image_processor_type is 'FooImageProcessor', which is unknown",
     FRIT_E_UNSUPPORTED},
    {TYPE("CLIPImageProcessorSlow") "}", "", "", "unknown", FRIT_E_UNSUPPORTED},
    {"{\"image_processor_type\": 5}", "", "", "image_processor_type is 5", FRIT_E_FORMAT},
    {TYPE("Qwen2VLImageProcessor") ", \"patch_size\": 0}", "", "", "patch_size is 0; expected a whole number from 1",
     FRIT_E_FORMAT},
    {TYPE("Qwen2VLImageProcessor") ", \"merge_size\": 2.5}", "", "", "merge_size is 2.5", FRIT_E_FORMAT},
    {TYPE("Qwen2VLImageProcessor") ", \"size\": [1]}", "", "", "size is [1]; expected shortest_edge", FRIT_E_FORMAT},
    {TYPE("Qwen2VLImageProcessor") ", \"max_pixels\": -5}", "", "", "max_pixels is -5", FRIT_E_FORMAT},
    {TYPE("Qwen2VLImageProcessor") ", \"resample\": 9}", "", "", "resample is 9; expected a whole number from 0 to 5",
     FRIT_E_FORMAT},
    {TYPE("Qwen2VLImageProcessor") ", \"image_std\": [1, 0, 1]}", "", "", "image_std is [1,0,1]; expected three",
     FRIT_E_FORMAT},
    {TYPE("Qwen2VLImageProcessor") ", \"image_mean\": [1, 1]}", "", "", "image_mean is [1,1]", FRIT_E_FORMAT},
    {TYPE("Qwen2VLImageProcessor") ", \"do_rescale\": \"yes\"}", "", "", "do_rescale is \"yes\"", FRIT_E_FORMAT},
    {TYPE("Qwen2VLImageProcessor") ", \"do_resize\": false}", "", "", "do_resize is false", FRIT_E_UNSUPPORTED},
    {TYPE("CLIPImageProcessor") ", \"crop_size\": 300}", "", "", "crop_size is 300x300; expected at most",
     FRIT_E_FORMAT},
    {TYPE("Gemma3ImageProcessor") ", \"do_pan_and_scan\": true}", "", "", "do_pan_and_scan", FRIT_E_UNSUPPORTED},
    {TYPE("Gemma3ImageProcessor") ", \"size\": {\"height\": 7, \"width\": 7}}", "", "", "a tile has 7x7 pixels",
     FRIT_E_FORMAT},
    {TYPE("LlavaNextImageProcessor") "}", "", "", "image_grid_pinpoints", FRIT_E_FORMAT},
    {TYPE("LlavaNextImageProcessor") ", \"image_grid_pinpoints\": [[336, 300]]}", "", "", "both multiples",
     FRIT_E_FORMAT},
    {TYPE("LlavaOnevisionImageProcessor") ", \"image_grid_pinpoints\": [[384, 384]]}", "",
     "{\"vision_aspect_ratio\": \"pad\"}", "vision_aspect_ratio is 'pad'", FRIT_E_FORMAT},
    {TYPE("GotOcr2ImageProcessor") ", \"min_patches\": 5, \"max_patches\": 4}", "", "", "min_patches is 5",
     FRIT_E_FORMAT},
    {TYPE("GotOcr2ImageProcessor") "}", "", "{\"downsample_ratio\": 0.3}", "downsample_ratio is 0.3", FRIT_E_FORMAT},
    {TYPE("Lfm2VlImageProcessor") ", \"tile_size\": 500}", "", "", "tile_size is 500; expected a multiple of 32",
     FRIT_E_FORMAT},
    {TYPE("Llama4ImageProcessor") ", \"size\": {\"height\": 336, \"width\": 300}}", "", "", "equal sides",
     FRIT_E_FORMAT},
    {TYPE("PixtralImageProcessor") ", \"patch_size\": {\"height\": 16, \"width\": 14}}", "", "", "equal sides",
     FRIT_E_FORMAT},
    {TYPE("PixtralImageProcessor") "}", "{\"image_token\": \"\"}", "", "image_token is \"\"", FRIT_E_FORMAT},
};

static void bad_files_are_refused_with_a_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        frit_processor p;
        const frit_status status = read_texts(&p, bad[i].preprocessor, bad[i].processor, bad[i].config);
        if (status != bad[i].status || !strstr(frit_error(), bad[i].phrase))
            fail_msg("%s: %d \"%s\"", bad[i].preprocessor, (int)status, frit_error());
    }
}

static void folders_without_pictures_have_no_processor(void **state)
{
    (void)state;
    frit_processor p;
    bool found = true;
    assert_ok(frit_processor_read(&p, &found, &(frit_processor_files){{0}, {0}, {0}}));
    assert_false(found);
    static const char whisper[] = "{\"feature_extractor_type\": \"WhisperFeatureExtractor\"}";
    found = true;
    assert_ok(frit_processor_read(&p, &found, &(frit_processor_files){frit_str_of(whisper), {0}, {0}}));
    assert_false(found);
}

static void extreme_sizes_are_refused_with_a_sentence(void **state)
{
    (void)state;
    frit_processor p;
    frit_picture_plan plan;
    assert_ok(read_texts(&p, TYPE("Qwen2VLImageProcessor") "}", "", ""));
    assert_fails(frit_processor_plan(&plan, &p, 0, 5), FRIT_E_INVALID, "0x5 pixels");
    assert_fails(frit_processor_plan(&plan, &p, 40000, 5), FRIT_E_INVALID, "40000x5 pixels");
    assert_fails(frit_processor_plan(&plan, &p, 30000, 10), FRIT_E_INVALID, "at most 200 shorter sides");
    assert_ok(read_texts(&p,
                         TYPE("Idefics3ImageProcessor") ", \"size\": {\"longest_edge\": 16384}, \"max_image_size\": "
                                                        "{\"longest_edge\": 28}}",
                         "", ""));
    assert_fails(frit_processor_plan(&plan, &p, 500, 500), FRIT_E_LIMIT, "tiles of 28x28; expected at most 256");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_tokens_equal_those_of_published_processors),
        cmocka_unit_test(limits_of_tokens_are_kept),
        cmocka_unit_test(pixels_equal_those_of_golden_models),
        cmocka_unit_test(marks_stand_around_soft_tokens),
        cmocka_unit_test(bad_files_are_refused_with_a_sentence),
        cmocka_unit_test(folders_without_pictures_have_no_processor),
        cmocka_unit_test(extreme_sizes_are_refused_with_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
