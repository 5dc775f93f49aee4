// SPDX-License-Identifier: MIT
// Windows by layer: the layers of layer_types that slide, or those that the family's period leaves.
#include "format/hf.h"

static frit_status slides_at(const frit_hf *hf, const json_t *types, size_t i, bool *out)
{
    const int period = hf->family->window_period;
    *out = period == 0 || i % (size_t)period != (size_t)period - 1;
    if (!types) return FRIT_OK;
    const char *type = json_string_value(json_array_get(types, i));
    *out = type && strcmp(type, "sliding_attention") == 0;
    if (*out || (type && strcmp(type, "full_attention") == 0)) return FRIT_OK;
    return frit_fail(FRIT_E_UNSUPPORTED,
                     "%s: layer_types[%zu] is '%.40s', only full_attention and sliding_attention are supported",
                     hf->path, i, type ? type : "not text");
}

frit_status frit_hf_add_windows(const frit_hf *hf)
{
    const json_t *types = json_object_get(hf->config, "layer_types");
    const size_t n_layer = (size_t)frit_hf_written(hf, "block_count");
    double window = 0;
    if (!types || json_is_null(types)) types = NULL;
    if (types && (!json_is_array(types) || json_array_size(types) != n_layer))
        return frit_fail(FRIT_E_FORMAT, "%s: layer_types is not a list of %zu names, one for each layer", hf->path,
                         n_layer);
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "sliding_window", FRIT_HF_COUNT, &window));
    if (window == 0) return FRIT_OK;
    uint32_t *windows = frit_arena_new(&hf->ckpt->arena, uint32_t, n_layer);
    if (!windows) return frit_fail_memory(n_layer * sizeof *windows, "the windows of layers");
    for (size_t i = 0; i < n_layer; i++) {
        bool slides;
        FRIT_TRY(slides_at(hf, types, i, &slides));
        windows[i] = slides ? (uint32_t)window : 0;
    }
    return frit_hf_add_list(hf, "frit.attention.sliding_window", windows, n_layer);
}
