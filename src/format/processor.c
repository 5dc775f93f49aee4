// SPDX-License-Identifier: MIT
// Processors of pictures as published: a row for each image_processor_type, with the defaults that transformers has,
// and a reader for the fields of its rule.
#include "format/processor.h"

#include "base/file/file.h"
#include "base/minmax.h"
#include "format/json.h"

#include <math.h>
#include <stdlib.h>

typedef struct reader {
    json_t *image;       // preprocessor_config.json
    json_t *processor;   // processor_config.json; may be NULL
    json_t *config;      // config.json; may be NULL
    json_t *vision;      // its vision_config; may be NULL
    frit_processor *p;
} reader;

enum { MAX_PATCH = 256, MAX_MERGE = 32, MAX_FRAMES = 8, MAX_TOKENS = 1 << 16 };
static const uint64_t max_file_bytes = 8 << 20;

// ------------------------------------------------------------------------------- values

static frit_status bad_value(const char *key, json_t *value, const char *expected)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
    const frit_status status =
        frit_fail(FRIT_E_FORMAT, "%s is %.60s; expected %s", key, text ? text : "unknown", expected);
    free(text);
    return status;
}

// Returns NULL for null too.
static json_t *find(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

static frit_status read_number(json_t *value, const char *key, uint64_t low, uint64_t high, uint64_t *out)
{
    if (json_is_integer(value) && json_integer_value(value) >= 0 && (uint64_t)json_integer_value(value) >= low &&
        (uint64_t)json_integer_value(value) <= high) {
        *out = (uint64_t)json_integer_value(value);
        return FRIT_OK;
    }
    char expected[64];
    snprintf(expected, sizeof expected, "a whole number from %llu to %llu", (unsigned long long)low,
             (unsigned long long)high);
    return bad_value(key, value, expected);
}

// Reads a field, or an entry of it, if it is there.
static frit_status get_u32(json_t *object, const char *key, uint32_t low, uint32_t high, uint32_t *out)
{
    json_t *value = find(object, key);
    if (!value) return FRIT_OK;
    uint64_t number = 0;
    FRIT_TRY(read_number(value, key, low, high, &number));
    *out = (uint32_t)number;
    return FRIT_OK;
}

static frit_status get_u64(json_t *object, const char *key, uint64_t *out)
{
    json_t *value = find(object, key);
    return value ? read_number(value, key, 1, UINT64_C(1) << 40, out) : FRIT_OK;
}

static frit_status get_bool(json_t *object, const char *key, bool *out)
{
    json_t *value = find(object, key);
    if (value && !json_is_boolean(value)) return bad_value(key, value, "true or false");
    if (value) *out = json_is_true(value);
    return FRIT_OK;
}

static frit_status get_real(json_t *object, const char *key, double *out)
{
    json_t *value = find(object, key);
    if (!value) return FRIT_OK;
    if (!json_is_number(value) || !(json_number_value(value) > 0) || json_number_value(value) > 1e6)
        return bad_value(key, value, "a number above 0");
    *out = json_number_value(value);
    return FRIT_OK;
}

static frit_status get_text(json_t *object, const char *key, char out[FRIT_MARK_BYTES])
{
    json_t *value = find(object, key);
    if (!value) return FRIT_OK;
    if (!json_is_string(value) || json_string_length(value) >= FRIT_MARK_BYTES || json_string_length(value) == 0)
        return bad_value(key, value, "a text of 1 to 63 bytes");
    memcpy(out, json_string_value(value), json_string_length(value) + 1);
    return FRIT_OK;
}

// Reads a number, a list of one number as often as there are sides, or {"height": n, "width": n} with equal sides.
static frit_status get_side(json_t *object, const char *key, uint32_t high, uint32_t *out)
{
    json_t *value = find(object, key);
    if (json_is_array(value) && json_array_size(value) > 0) {
        for (size_t i = 1; i < json_array_size(value); i++)
            if (!json_equal(json_array_get(value, i), json_array_get(value, 0)))
                return bad_value(key, value, "equal sides");
        value = json_array_get(value, 0);
    } else if (json_is_object(value)) {
        if (!json_equal(json_object_get(value, "height"), json_object_get(value, "width")))
            return bad_value(key, value, "equal sides");
        value = json_object_get(value, "height");
        if (!value) return bad_value(key, find(object, key), "height and width");
    }
    if (!value) return FRIT_OK;
    uint64_t side = 0;
    FRIT_TRY(read_number(value, key, 1, high, &side));
    *out = (uint32_t)side;
    return FRIT_OK;
}

static frit_status get_colors(json_t *object, const char *key, float low, float out[3])
{
    json_t *value = find(object, key);
    if (!value) return FRIT_OK;
    for (size_t i = 0; i < 3; i++) {
        json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
        const double number = json_number_value(item);
        if ((json_is_array(value) && json_array_size(value) != 3) || !json_is_number(item) || !(number >= low) ||
            number > 1e6)
            return bad_value(key, value, "three numbers, one for each color");
        out[i] = (float)number;
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- fields that several types have

// The size of a tile: {"height": n, "width": n}.
static frit_status read_tile(reader *r, const char *key)
{
    json_t *size = find(r->image, key);
    if (json_is_integer(size)) {
        FRIT_TRY(get_u32(r->image, key, 1, FRIT_MAX_TILE_SIDE, &r->p->width));
        r->p->height = r->p->width;
        return FRIT_OK;
    }
    if (size && !json_is_object(size)) return bad_value(key, size, "height and width");
    FRIT_TRY(get_u32(size, "height", 1, FRIT_MAX_TILE_SIDE, &r->p->height));
    return get_u32(size, "width", 1, FRIT_MAX_TILE_SIDE, &r->p->width);
}

static frit_status read_edge(json_t *object, const char *key, const char *edge, uint32_t *out)
{
    json_t *size = find(object, key);
    if (json_is_integer(size)) return get_u32(object, key, 1, FRIT_MAX_TILE_SIDE, out);
    if (size && !json_is_object(size)) return bad_value(key, size, edge);
    return get_u32(size, edge, 1, FRIT_MAX_TILE_SIDE, out);
}

static frit_status read_patch(reader *r)
{
    return get_side(r->vision, "patch_size", MAX_PATCH, &r->p->patch);
}

// A scale factor is published as its inverse: 0.5 is 2.
static frit_status read_inverse(json_t *object, const char *key, uint32_t *out)
{
    double ratio = 1.0 / *out;
    FRIT_TRY(get_real(object, key, &ratio));
    const double inverse = 1.0 / ratio;
    if (inverse < 1 || inverse > MAX_MERGE || inverse != floor(inverse))
        return bad_value(key, find(object, key), "one part of a whole, as 0.5");
    *out = (uint32_t)inverse;
    return FRIT_OK;
}

// CLIP has a class token, which the strategy "full" keeps.
static frit_status read_class_token(reader *r)
{
    char strategy[FRIT_MARK_BYTES] = "default", type[FRIT_MARK_BYTES] = "clip_vision_model";
    FRIT_TRY(get_text(r->config, "vision_feature_select_strategy", strategy));
    FRIT_TRY(get_text(r->processor, "vision_feature_select_strategy", strategy));
    FRIT_TRY(get_text(r->vision, "model_type", type));
    r->p->extra_soft = (strncmp(type, "clip", 4) == 0) - (strcmp(strategy, "full") != 0);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- readers by rule

static frit_status read_smart(reader *r)
{
    frit_processor *p = r->p;
    json_t *size = find(r->image, "size");
    if (size && !json_is_object(size)) return bad_value("size", size, "shortest_edge and longest_edge");
    FRIT_TRY(get_u32(r->image, "patch_size", 1, MAX_PATCH, &p->patch));
    FRIT_TRY(get_u32(r->image, "merge_size", 1, MAX_MERGE, &p->merge));
    FRIT_TRY(get_u32(r->image, "temporal_patch_size", 1, MAX_FRAMES, &p->frames));
    p->block = p->merge;
    FRIT_TRY(get_u64(size, "shortest_edge", &p->min_pixels));
    FRIT_TRY(get_u64(size, "longest_edge", &p->max_pixels));
    json_t *const places[] = {size, r->image};
    for (size_t i = 0; i < FRIT_COUNT(places); i++) {
        FRIT_TRY(get_u64(places[i], "min_pixels", &p->min_pixels));
        FRIT_TRY(get_u64(places[i], "max_pixels", &p->max_pixels));
    }
    return FRIT_OK;
}

static frit_status read_stretch(reader *r)
{
    FRIT_TRY(read_tile(r, "size"));
    FRIT_TRY(read_patch(r));
    FRIT_TRY(get_u32(r->config, "mm_tokens_per_image", 1, MAX_TOKENS, &r->p->soft_per_tile));
    FRIT_TRY(get_u32(r->image, "image_seq_length", 1, MAX_TOKENS, &r->p->soft_per_tile));
    FRIT_TRY(get_u32(r->processor, "image_seq_length", 1, MAX_TOKENS, &r->p->soft_per_tile));
    bool pans = false;
    FRIT_TRY(get_bool(r->image, "do_pan_and_scan", &pans));
    if (pans) return frit_fail(FRIT_E_UNSUPPORTED, "do_pan_and_scan is true, which is not supported");
    return FRIT_OK;
}

static frit_status read_crop(reader *r)
{
    frit_processor *p = r->p;
    FRIT_TRY(read_edge(r->image, "size", "shortest_edge", &p->shortest));
    FRIT_TRY(read_tile(r, "crop_size"));
    FRIT_TRY(read_patch(r));
    FRIT_TRY(get_u32(r->processor, "patch_size", 1, MAX_PATCH, &p->patch));
    if (p->shortest < p->width || p->shortest < p->height)
        return frit_fail(FRIT_E_FORMAT, "crop_size is %ux%u; expected at most the shortest_edge, %u",
                         (unsigned)p->width, (unsigned)p->height, (unsigned)p->shortest);
    return read_class_token(r);
}

static frit_status read_longest(reader *r)
{
    FRIT_TRY(read_edge(r->image, "size", "longest_edge", &r->p->longest));
    FRIT_TRY(get_side(r->image, "patch_size", MAX_PATCH, &r->p->patch));
    FRIT_TRY(get_side(r->processor, "patch_size", MAX_PATCH, &r->p->patch));
    FRIT_TRY(get_u32(r->config, "spatial_merge_size", 1, MAX_MERGE, &r->p->merge));
    FRIT_TRY(get_u32(r->processor, "spatial_merge_size", 1, MAX_MERGE, &r->p->merge));
    FRIT_TRY(get_text(r->processor, "image_token", r->p->placeholder));
    FRIT_TRY(get_text(r->processor, "image_break_token", r->p->row_break));
    return get_text(r->processor, "image_end_token", r->p->after);
}

static frit_status read_split(reader *r)
{
    frit_processor *p = r->p;
    FRIT_TRY(read_edge(r->image, "size", "longest_edge", &p->longest));
    FRIT_TRY(read_edge(r->image, "max_image_size", "longest_edge", &p->width));
    p->height = p->width;
    FRIT_TRY(get_bool(r->image, "do_image_splitting", &p->splits));
    FRIT_TRY(read_patch(r));
    FRIT_TRY(get_u32(r->config, "scale_factor", 1, MAX_MERGE, &p->merge));
    return get_u32(r->processor, "image_seq_len", 1, MAX_TOKENS, &p->soft_per_tile);
}

static frit_status read_budget(reader *r)
{
    FRIT_TRY(get_u32(r->image, "patch_size", 1, MAX_PATCH, &r->p->patch));
    FRIT_TRY(get_u32(r->image, "pooling_kernel_size", 1, MAX_MERGE, &r->p->merge));
    return get_u32(r->image, "max_soft_tokens", 1, MAX_TOKENS, &r->p->max_tokens);
}

static frit_status read_tile_counts(reader *r, const char *min_key, const char *max_key)
{
    FRIT_TRY(get_u32(r->image, min_key, 1, FRIT_MAX_TILES - 1, &r->p->min_tiles));
    FRIT_TRY(get_u32(r->image, max_key, 1, FRIT_MAX_TILES - 1, &r->p->max_tiles));
    if (r->p->min_tiles > r->p->max_tiles)
        return frit_fail(FRIT_E_FORMAT, "%s is %u; expected at most %s, which is %u", min_key,
                         (unsigned)r->p->min_tiles, max_key, (unsigned)r->p->max_tiles);
    return FRIT_OK;
}

static frit_status read_canvas(reader *r)
{
    FRIT_TRY(read_tile(r, "size"));
    FRIT_TRY(read_tile_counts(r, "min_patches", "max_patches"));
    FRIT_TRY(get_bool(r->image, "crop_to_patches", &r->p->splits));
    FRIT_TRY(read_patch(r));
    FRIT_TRY(read_inverse(r->config, "downsample_ratio", &r->p->merge));
    return get_u32(r->processor, "image_seq_length", 1, MAX_TOKENS, &r->p->soft_per_tile);
}

// Each size is a number of whole tiles.
static frit_status read_grids(reader *r)
{
    frit_processor *p = r->p;
    json_t *list = find(r->image, "image_grid_pinpoints"), *item;
    size_t i;
    if (!list) list = find(r->config, "image_grid_pinpoints");
    if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > FRIT_MAX_GRIDS)
        return bad_value("image_grid_pinpoints", list, "a list of 1 to 64 sizes");
    p->n_grids = (uint32_t)json_array_size(list);
    json_array_foreach(list, i, item)
    {
        const json_int_t rows = json_integer_value(json_array_get(item, 0));
        const json_int_t columns = json_integer_value(json_array_get(item, 1));
        if (json_array_size(item) != 2 || rows < 1 || columns < 1 || rows > 8 * FRIT_MAX_TILE_SIDE ||
            columns > 8 * FRIT_MAX_TILE_SIDE || rows % p->height != 0 || columns % p->width != 0)
            return bad_value("image_grid_pinpoints", item, "a height and a width, both multiples of a tile's");
        p->grids[i] = (frit_grid){(uint32_t)rows, (uint32_t)columns};
    }
    return FRIT_OK;
}

static frit_status read_max_anyres(reader *r)
{
    static const char start[] = "anyres_max_";
    char text[FRIT_MARK_BYTES] = "";
    FRIT_TRY(get_text(r->config, "vision_aspect_ratio", text));
    FRIT_TRY(get_text(r->processor, "vision_aspect_ratio", text));
    if (!text[0]) return FRIT_OK;
    char *end = text;
    const long n = strncmp(text, start, strlen(start)) == 0 ? strtol(text + strlen(start), &end, 10) : 0;
    if (n < 1 || n > FRIT_MAX_TILES || *end)
        return frit_fail(FRIT_E_FORMAT, "vision_aspect_ratio is '%s'; expected anyres_max_ and a number", text);
    r->p->max_anyres = (uint32_t)n;
    return FRIT_OK;
}

static frit_status read_anyres(reader *r)
{
    frit_processor *p = r->p;
    FRIT_TRY(read_edge(r->image, "size", "shortest_edge", &p->width));
    p->height = p->width;
    FRIT_TRY(read_tile(r, "size"));
    FRIT_TRY(read_tile(r, "crop_size"));
    if (p->width != p->height)
        return frit_fail(FRIT_E_FORMAT, "size is %ux%u; expected equal sides", (unsigned)p->width, (unsigned)p->height);
    FRIT_TRY(read_patch(r));
    FRIT_TRY(get_u32(r->processor, "patch_size", 1, MAX_PATCH, &p->patch));
    FRIT_TRY(read_grids(r));
    return read_class_token(r);
}

static frit_status read_onevision(reader *r)
{
    FRIT_TRY(read_anyres(r));
    return read_max_anyres(r);
}

static frit_status read_tokens(reader *r)
{
    frit_processor *p = r->p;
    FRIT_TRY(get_u32(r->image, "encoder_patch_size", 1, MAX_PATCH, &p->patch));
    FRIT_TRY(get_u32(r->image, "downsample_factor", 1, MAX_MERGE, &p->merge));
    FRIT_TRY(get_u32(r->image, "tile_size", 1, FRIT_MAX_TILE_SIDE, &p->width));
    p->height = p->width;
    FRIT_TRY(get_u32(r->image, "min_image_tokens", 1, MAX_TOKENS, &p->min_tokens));
    FRIT_TRY(get_u32(r->image, "max_image_tokens", 1, MAX_TOKENS, &p->max_tokens));
    FRIT_TRY(get_bool(r->image, "do_image_splitting", &p->splits));
    FRIT_TRY(get_bool(r->image, "use_thumbnail", &p->adds_whole));
    FRIT_TRY(get_real(r->image, "max_pixels_tolerance", &p->tolerance));
    if (p->width % (p->patch * p->merge) != 0)
        return frit_fail(FRIT_E_FORMAT, "tile_size is %u; expected a multiple of %u", (unsigned)p->width,
                         (unsigned)(p->patch * p->merge));
    return read_tile_counts(r, "min_tiles", "max_tiles");
}

static frit_status read_chunks(reader *r)
{
    FRIT_TRY(read_tile(r, "size"));
    if (r->p->width != r->p->height)
        return frit_fail(FRIT_E_FORMAT, "size is %ux%u; expected equal sides", (unsigned)r->p->width,
                         (unsigned)r->p->height);
    FRIT_TRY(get_u32(r->image, "max_patches", 1, FRIT_MAX_TILES - 1, &r->p->max_tiles));
    FRIT_TRY(get_bool(r->image, "resize_to_max_canvas", &r->p->fills_canvas));
    FRIT_TRY(read_patch(r));
    return read_inverse(r->vision, "pixel_shuffle_ratio", &r->p->merge);
}

// ------------------------------------------------------------------------------- types

#define CLIP_COLORS .mean = {0.48145466f, 0.4578275f, 0.40821073f}, .deviation = {0.26862954f, 0.26130258f, 0.27577711f}
#define HALF_COLORS .mean = {0.5f, 0.5f, 0.5f}, .deviation = {0.5f, 0.5f, 0.5f}

typedef struct processor_type {
    const char *name;
    frit_status (*read)(reader *r);
    frit_processor defaults;
} processor_type;

// clang-format off
static const processor_type types[] = {
    {"Qwen2VLImageProcessor", read_smart,
     {.rule = FRIT_RULE_SMART, .filter = FRIT_FILTER_BICUBIC, .patch = 14, .merge = 2, .frames = 2, CLIP_COLORS,
      .min_pixels = 56 * 56, .max_pixels = 28 * 28 * 1280, .placeholder = "<|image_pad|>"}},
    {"Qwen2_5_VLImageProcessor", read_smart,
     {.rule = FRIT_RULE_SMART, .filter = FRIT_FILTER_BICUBIC, .patch = 14, .merge = 2, .frames = 2, CLIP_COLORS,
      .min_pixels = 56 * 56, .max_pixels = 28 * 28 * 1280, .placeholder = "<|image_pad|>"}},
    {"Glm4vImageProcessor", read_smart,
     {.rule = FRIT_RULE_SMART, .filter = FRIT_FILTER_BICUBIC, .patch = 14, .merge = 2, .frames = 2, CLIP_COLORS,
      .min_pixels = 112 * 112, .max_pixels = 28 * 28 * 15000, .counts_frames = true, .placeholder = "<|image|>"}},
    {"Glm46VImageProcessor", read_smart,
     {.rule = FRIT_RULE_SMART, .filter = FRIT_FILTER_BICUBIC, .patch = 14, .merge = 2, .frames = 2, CLIP_COLORS,
      .min_pixels = 112 * 112, .max_pixels = 28 * 28 * 15000, .counts_frames = true, .placeholder = "<|image|>"}},
    {"Gemma3ImageProcessor", read_stretch,
     {.rule = FRIT_RULE_STRETCH, .filter = FRIT_FILTER_BILINEAR, .width = 896, .height = 896, .patch = 14,
      .soft_per_tile = 256, HALF_COLORS, .placeholder = "<start_of_image>", .before = "<start_of_image>",
      .after = "<end_of_image>", .lead = "\n\n", .tail = "\n\n"}},
    {"SiglipImageProcessor", read_stretch,
     {.rule = FRIT_RULE_STRETCH, .filter = FRIT_FILTER_BICUBIC, .width = 224, .height = 224, .patch = 14, HALF_COLORS,
      .placeholder = "<image>"}},
    {"CLIPImageProcessor", read_crop,
     {.rule = FRIT_RULE_CROP, .filter = FRIT_FILTER_BICUBIC, .shortest = 224, .width = 224, .height = 224, .patch = 14,
      CLIP_COLORS, .placeholder = "<image>"}},
    {"LlavaImageProcessor", read_crop,
     {.rule = FRIT_RULE_CROP, .filter = FRIT_FILTER_BICUBIC, .shortest = 224, .width = 224, .height = 224, .patch = 14,
      CLIP_COLORS, .placeholder = "<image>"}},
    {"PixtralImageProcessor", read_longest,
     {.rule = FRIT_RULE_LONGEST, .filter = FRIT_FILTER_BICUBIC, .longest = 1024, .patch = 16, CLIP_COLORS,
      .mark_style = FRIT_MARKS_ROWS, .placeholder = "[IMG]", .row_break = "[IMG_BREAK]", .after = "[IMG_END]"}},
    {"Idefics3ImageProcessor", read_split,
     {.rule = FRIT_RULE_SPLIT, .filter = FRIT_FILTER_LANCZOS, .longest = 4 * 364, .width = 364, .height = 364,
      .patch = 14, .merge = 2, .splits = true, HALF_COLORS, .mark_style = FRIT_MARKS_IDEFICS,
      .placeholder = "<image>"}},
    {"SmolVLMImageProcessor", read_split,
     {.rule = FRIT_RULE_SPLIT, .filter = FRIT_FILTER_LANCZOS, .longest = 4 * 364, .width = 364, .height = 364,
      .patch = 14, .merge = 2, .splits = true, HALF_COLORS, .mark_style = FRIT_MARKS_IDEFICS,
      .placeholder = "<image>"}},
    {"Gemma4ImageProcessor", read_budget,
     {.rule = FRIT_RULE_BUDGET, .filter = FRIT_FILTER_BICUBIC, .patch = 16, .merge = 3, .max_tokens = 280,
      .colors_last = true, .mean = {0}, .deviation = {1, 1, 1}, .placeholder = "<|image|>", .before = "<|image>",
      .after = "<image|>"}},
    {"GotOcr2ImageProcessor", read_canvas,
     {.rule = FRIT_RULE_CANVAS, .filter = FRIT_FILTER_BICUBIC, .width = 384, .height = 384, .patch = 14, .merge = 2,
      .min_tiles = 1, .max_tiles = 12, CLIP_COLORS, .placeholder = "<IMG_CONTEXT>", .before = "<img>",
      .after = "</img>"}},
    {"LlavaNextImageProcessor", read_anyres,
     {.rule = FRIT_RULE_ANYRES, .filter = FRIT_FILTER_BICUBIC, .width = 336, .height = 336, .patch = 14, CLIP_COLORS,
      .placeholder = "<image>"}},
    {"LlavaOnevisionImageProcessor", read_onevision,
     {.rule = FRIT_RULE_ANYRES, .filter = FRIT_FILTER_BICUBIC, .width = 384, .height = 384, .patch = 14,
      .max_anyres = 9, CLIP_COLORS, .placeholder = "<image>"}},
    {"Lfm2VlImageProcessor", read_tokens,
     {.rule = FRIT_RULE_TOKENS, .filter = FRIT_FILTER_BILINEAR, .n_bits = FRIT_TORCHVISION_BITS, .width = 512,
      .height = 512, .patch = 16, .merge = 2, .min_tokens = 64, .max_tokens = 256, .min_tiles = 2, .max_tiles = 10,
      .tolerance = 2.0, .splits = true, .adds_whole = true, .colors_last = true, .is_fused = true, HALF_COLORS,
      .mark_style = FRIT_MARKS_LFM2, .placeholder = "<image>", .before = "<|image_start|>", .after = "<|image_end|>"}},
    {"Llama4ImageProcessor", read_chunks,
     {.rule = FRIT_RULE_CHUNKS, .filter = FRIT_FILTER_BILINEAR, .n_bits = FRIT_TORCHVISION_BITS, .width = 336,
      .height = 336, .patch = 14, .merge = 2, .max_tiles = 16, .is_bf16 = true, HALF_COLORS,
      .mark_style = FRIT_MARKS_LLAMA4, .placeholder = "<|image|>", .before = "<|image_start|>",
      .after = "<|image_end|>"}},
};
// clang-format on

// "CLIPImageProcessor", "CLIPImageProcessorFast" and "CLIPImageProcessorPil" are one type.
static const processor_type *find_type(const char *name)
{
    static const char *const endings[] = {"", "Fast", "Pil"};
    for (size_t i = 0; i < FRIT_COUNT(types); i++) {
        const size_t n = strlen(types[i].name);
        for (size_t j = 0; j < FRIT_COUNT(endings); j++)
            if (strncmp(name, types[i].name, n) == 0 && strcmp(name + n, endings[j]) == 0) return &types[i];
    }
    return NULL;
}

// ------------------------------------------------------------------------------- files

static frit_status read_common(reader *r)
{
    frit_processor *p = r->p;
    uint32_t filter = (uint32_t)p->filter;
    bool resizes = true;
    FRIT_TRY(get_u32(r->image, "resample", 0, FRIT_FILTER_COUNT - 1, &filter));
    p->filter = (frit_filter)filter;
    FRIT_TRY(get_bool(r->image, "do_resize", &resizes));
    if (!resizes) return frit_fail(FRIT_E_UNSUPPORTED, "do_resize is false; expected true");
    FRIT_TRY(get_bool(r->image, "do_rescale", &p->rescales));
    FRIT_TRY(get_bool(r->image, "do_normalize", &p->normalizes));
    FRIT_TRY(get_real(r->image, "rescale_factor", &p->rescale));
    FRIT_TRY(get_colors(r->image, "image_mean", -1e6f, p->mean));
    return get_colors(r->image, "image_std", 1e-6f, p->deviation);
}

static void set_defaults(frit_processor *p, const processor_type *type)
{
    *p = type->defaults;
    p->rescale = 1.0 / 255;
    p->rescales = true;
    p->normalizes = type->read != read_budget;
    if (type->defaults.rule != FRIT_RULE_TOKENS && type->defaults.rule != FRIT_RULE_CHUNKS)
        p->n_bits = FRIT_PILLOW_BITS;
    if (!p->merge) p->merge = 1;
    if (!p->frames) p->frames = 1;
    p->block = 1;
}

frit_status frit_processor_check(const frit_processor *p)
{
    if (p->width && (p->width < p->patch * p->merge || p->height < p->patch * p->merge))
        return frit_fail(FRIT_E_FORMAT, "a tile has %ux%u pixels; expected at least %u, a patch", (unsigned)p->width,
                         (unsigned)p->height, (unsigned)(p->patch * p->merge));
    return FRIT_OK;
}

frit_status frit_processor_of_type(frit_processor *p, const char *name)
{
    const processor_type *type = find_type(name);
    if (!type) return frit_fail(FRIT_E_UNSUPPORTED, "image_processor_type is '%.100s', which is unknown", name);
    set_defaults(p, type);
    return FRIT_OK;
}

static frit_status read_with(reader *r, const processor_type *type)
{
    set_defaults(r->p, type);
    FRIT_TRY(read_common(r));
    FRIT_TRY(type->read(r));
    return frit_processor_check(r->p);
}

static frit_status read_all(reader *r, bool *found)
{
    if (find(r->processor, "image_processor")) r->image = find(r->processor, "image_processor");
    r->vision = find(r->config, "vision_config");
    json_t *name = find(r->image, "image_processor_type");
    if (!name) return FRIT_OK;
    if (!json_is_string(name)) return bad_value("image_processor_type", name, "a name");
    const processor_type *type = find_type(json_string_value(name));
    if (!type)
        return frit_fail(FRIT_E_UNSUPPORTED, "image_processor_type is '%.100s', which is unknown",
                         json_string_value(name));
    *found = true;
    return read_with(r, type);
}

static frit_status parse(json_t **out, frit_str text, const char *name)
{
    json_error_t error;
    if (text.len == 0) return FRIT_OK;
    *out = frit_json_read(text.ptr, text.len, 0, &error);
    if (!*out) return frit_fail(FRIT_E_FORMAT, "%s is no JSON: line %d: %s", name, error.line, error.text);
    if (json_is_object(*out)) return FRIT_OK;
    return frit_fail(FRIT_E_FORMAT, "%s is not an object", name);
}

frit_status frit_processor_read(frit_processor *p, bool *found, const frit_processor_files *files)
{
    *p = (frit_processor){0};
    *found = false;
    reader r = {.p = p};
    json_t *image = NULL;
    frit_status status = parse(&image, files->preprocessor, "preprocessor_config.json");
    if (status == FRIT_OK) status = parse(&r.processor, files->processor, "processor_config.json");
    if (status == FRIT_OK) status = parse(&r.config, files->config, "config.json");
    r.image = image;
    if (status == FRIT_OK) status = read_all(&r, found);
    json_decref(image);
    json_decref(r.processor);
    json_decref(r.config);
    return status;
}

// Reads a file of the folder. *text is empty if the folder lacks it.
static frit_status read_file(const char *folder, const char *name, char **bytes, frit_str *text)
{
    frit_buf path = {0};
    frit_buf_printf(&path, "%s/%s", folder, name);
    frit_status status = path.failed ? frit_fail_memory(path.len, "a path") : FRIT_OK;
    if (status == FRIT_OK && frit_path_get_kind(path.data) != FRIT_PATH_NONE) {
        status = frit_file_read(path.data, max_file_bytes, bytes, &text->len);
        text->ptr = *bytes;
    }
    frit_buf_free(&path);
    return status;
}

frit_status frit_processor_open(frit_processor *p, bool *found, const char *folder)
{
    static const char *const names[] = {"preprocessor_config.json", "processor_config.json", "config.json"};
    char *bytes[FRIT_COUNT(names)] = {0};
    frit_str texts[FRIT_COUNT(names)] = {0};
    frit_status status = FRIT_OK;
    for (size_t i = 0; i < FRIT_COUNT(names) && status == FRIT_OK; i++)
        status = read_file(folder, names[i], &bytes[i], &texts[i]);
    if (status == FRIT_OK)
        status = frit_processor_read(p, found, &(frit_processor_files){texts[0], texts[1], texts[2]});
    for (size_t i = 0; i < FRIT_COUNT(names); i++) free(bytes[i]);
    return frit_fail_in(folder, status);
}
