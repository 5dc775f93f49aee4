// SPDX-License-Identifier: MIT
// Keys that families of encoders of pictures share.
#include "format/hf/hf_vision.h"

frit_status frit_hf_vision_number(const frit_hf *hf, const char *name, double *out)
{
    *out = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "vision_config.", name, FRIT_HF_WIDTH, out));
    if (*out > 0) return FRIT_OK;
    return frit_fail_file(FRIT_E_FORMAT, "%s: vision_config.%s is missing, expected a whole number from 1", hf->path,
                          name);
}

frit_status frit_hf_vision_pixels(const frit_hf *hf, double n_frames)
{
    double patch, channels;
    FRIT_TRY(frit_hf_vision_number(hf, "patch_size", &patch));
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
