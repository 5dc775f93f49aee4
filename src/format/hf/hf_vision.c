// SPDX-License-Identifier: MIT
// Keys that families of encoders of pictures share.
#include "format/hf/hf_vision.h"

#include <math.h>

frit_status frit_hf_vision_number(const frit_hf *hf, const char *name, double *out)
{
    *out = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "vision_config.", name, FRIT_HF_WIDTH, out));
    if (*out > 0) return FRIT_OK;
    return frit_fail_file(FRIT_E_FORMAT, "%s: vision_config.%s is missing, expected a whole number from 1", hf->path,
                          name);
}

frit_status frit_hf_vision_side(const frit_hf *hf, const char *name, double *out)
{
    const json_t *sides = json_object_get(hf->config, name), *first = json_array_get(sides, 0);
    if (!json_is_array(sides)) return frit_hf_vision_number(hf, name, out);
    const json_int_t n = json_integer_value(first);
    if (json_array_size(sides) != 2 || n < 1 || n > 1 << 20 || !json_equal(first, json_array_get(sides, 1)))
        return frit_fail_file(FRIT_E_FORMAT, "%s: vision_config.%s is a list, expected two equal whole numbers from 1",
                              hf->path, name);
    *out = (double)n;
    return FRIT_OK;
}

frit_status frit_hf_vision_expect(const frit_hf *hf, const json_t *object, const char *where, const char *name,
                                  const char *value)
{
    const char *found = NULL;
    FRIT_TRY(frit_hf_get_text(hf, object, where, name, &found));
    if (!found || strcmp(found, value) == 0) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %s%s is '%.40s', pictures are supported with '%s'", hf->path, where,
                          name, found, value);
}

frit_status frit_hf_vision_tile(const frit_hf *hf)
{
    double image, patch;
    FRIT_TRY(frit_hf_vision_side(hf, "image_size", &image));
    FRIT_TRY(frit_hf_vision_side(hf, "patch_size", &patch));
    if (image < patch)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: vision_config.image_size is %.0f, expected at least the patch size %.0f", hf->path,
                              image, patch);
    FRIT_TRY(frit_hf_add_number(hf, "position_side", FRIT_HF_WIDTH, (double)(int64_t)(image / patch)));
    return frit_hf_vision_pixels(hf, 1);
}

frit_status frit_hf_vision_ratio(const frit_hf *hf, const json_t *object, const char *where, const char *name)
{
    double ratio = 0.5;
    FRIT_TRY(frit_hf_get_number(hf, object, where, name, FRIT_HF_FACTOR, &ratio));
    const double merge = 1 / ratio;
    if (!(merge >= 1) || merge > 64 || merge != floor(merge))
        return frit_fail_file(FRIT_E_FORMAT, "%s: %s%s is %g, expected one part of a whole, as 0.5", hf->path, where,
                              name, ratio);
    return frit_hf_add_number(hf, "spatial_merge_size", FRIT_HF_WIDTH, merge);
}

frit_status frit_hf_vision_pixels(const frit_hf *hf, double n_frames)
{
    double patch, channels;
    FRIT_TRY(frit_hf_vision_side(hf, "patch_size", &patch));
    FRIT_TRY(frit_hf_vision_number(hf, "in_channels", &channels));
    const double n = patch * patch * channels * n_frames;
    if (n > 1 << 20)
        return frit_fail_file(FRIT_E_FORMAT, "%s: patches of %.0f numbers, expected at most %d", hf->path, n, 1 << 20);
    return frit_hf_add_number(hf, "embedding_length_input", FRIT_HF_WIDTH, n);
}

frit_status frit_hf_vision_rope(const frit_hf *hf)
{
    double base = 10000;
    const char *type = NULL;
    const json_t *rope = json_object_get(hf->config, "rope_parameters");
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "vision_config.", "rope_theta", FRIT_HF_BASE, &base));
    FRIT_TRY(frit_hf_get_number(hf, rope, "vision_config.rope_parameters.", "rope_theta", FRIT_HF_BASE, &base));
    FRIT_TRY(frit_hf_get_text(hf, rope, "vision_config.rope_parameters.", "rope_type", &type));
    if (type && strcmp(type, "axial") != 0 && strcmp(type, "default") != 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: vision_config.rope_parameters.rope_type is '%.40s', expected 'axial' or 'default'",
                              hf->path, type);
    return frit_hf_add_number(hf, "rope.freq_base", FRIT_HF_BASE, base);
}

frit_status frit_hf_vision_text_width(const frit_hf *hf)
{
    double width = 0;
    const json_t *text = json_object_get(hf->whole, "text_config");
    const char *type = frit_hf_text_type(hf->whole);
    if (!type) type = json_string_value(json_object_get(text, "model_type"));
    json_t *copy = text ? json_deep_copy(text) : json_object();
    frit_status status = copy ? FRIT_OK : frit_fail_memory(0, "a configuration");
    if (status == FRIT_OK && type) status = frit_hf_complete(copy, hf->path, type);
    if (status == FRIT_OK) status = frit_hf_get_number(hf, copy, "text_config.", "hidden_size", FRIT_HF_WIDTH, &width);
    json_decref(copy);
    FRIT_TRY(status);
    if (width > 0) return frit_hf_add_number(hf, "embedding_length_out", FRIT_HF_WIDTH, width);
    return frit_fail_file(FRIT_E_FORMAT, "%s: text_config.hidden_size is missing, expected a whole number from 1",
                          hf->path);
}
