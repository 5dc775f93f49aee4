// SPDX-License-Identifier: MIT
// Properties by layer: windows from layer_types or the family's defaults, RoPE from no_rope_layers, experts from
// mlp_layer_types.
#include "format/hf/hf.h"

typedef struct pattern {
    const json_t *types;     // layer_types, or NULL; then:
    double n_full, period;   // layers before the first window; every period-th later layer has none, 0: all have one
} pattern;

static frit_status slides_at(const frit_hf *hf, const pattern *p, size_t i, bool *out)
{
    *out = (double)i >= p->n_full && (p->period == 0 || (i + 1) % (size_t)p->period != 0);
    if (!p->types) return FRIT_OK;
    const char *type = json_string_value(json_array_get(p->types, i));
    *out = type && strcmp(type, "sliding_attention") == 0;
    if (*out || (type && strcmp(type, "full_attention") == 0)) return FRIT_OK;
    if (type && hf->family->other_type && strcmp(type, hf->family->other_type) == 0) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED,
                          "%s: layer_types[%zu] is '%.40s', only full_attention and sliding_attention are supported",
                          hf->path, i, type ? type : "not text");
}

static frit_status read_pattern(const frit_hf *hf, size_t n_layer, pattern *p)
{
    *p = (pattern){json_object_get(hf->config, "layer_types"), hf->family->window_first, hf->family->window_period};
    if (p->types && json_is_null(p->types)) p->types = NULL;
    if (p->types && (!json_is_array(p->types) || json_array_size(p->types) != n_layer))
        return frit_fail_file(FRIT_E_FORMAT, "%s: layer_types is not a list of %zu names, one for each layer", hf->path,
                              n_layer);
    if (p->types) return FRIT_OK;
    if (p->n_full > 0) FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "max_window_layers", FRIT_HF_COUNT, &p->n_full));
    if (p->period == 0) return FRIT_OK;
    return frit_hf_get_number(hf, hf->config, "", "sliding_window_pattern", FRIT_HF_LAYERS, &p->period);
}

frit_status frit_hf_add_windows(const frit_hf *hf)
{
    const size_t n_layer = (size_t)frit_hf_written(hf, "block_count");
    pattern p;
    double window = 0;
    FRIT_TRY(read_pattern(hf, n_layer, &p));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "sliding_window", FRIT_HF_COUNT, &window));
    // MiMo-V2 counts the positions before the token.
    double before = window - 1;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "sliding_window_size", FRIT_HF_COUNT, &before));
    if (window != 0) window = before + 1;
    if (window == 0) return FRIT_OK;
    uint32_t *windows = frit_arena_new(&hf->ckpt->arena, uint32_t, n_layer);
    if (!windows) return frit_fail_memory(n_layer * sizeof *windows, "the windows of layers");
    for (size_t i = 0; i < n_layer; i++) {
        bool slides;
        FRIT_TRY(slides_at(hf, &p, i, &slides));
        windows[i] = slides ? (uint32_t)window : 0;
    }
    return frit_hf_add_list(hf, "frit.attention.sliding_window", windows, n_layer);
}

frit_status frit_hf_add_rope_layers(const frit_hf *hf)
{
    const json_t *list = json_object_get(hf->config, "no_rope_layers");
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    double interval = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "no_rope_layer_interval", FRIT_HF_LAYERS, &interval));
    if (list && !json_is_null(list) && json_array_size(list) != n)
        return frit_fail_file(FRIT_E_FORMAT, "%s: no_rope_layers is not a list of %zu numbers, one for each layer",
                              hf->path, n);
    uint32_t *still = frit_arena_new(&hf->ckpt->arena, uint32_t, n);
    if (!still) return frit_fail_memory(n * sizeof *still, "the list of layers with RoPE");
    // Despite the name no_rope_layers, 1 means a layer with RoPE.
    for (size_t i = 0; i < n; i++)
        still[i] = json_is_array(list) ? json_integer_value(json_array_get(list, i)) == 0
                                       : interval > 0 && (i + 1) % (size_t)interval == 0;
    return frit_hf_add_list(hf, "frit.rope.none", still, n);
}

frit_status frit_hf_add_dense_layers(const frit_hf *hf)
{
    static const char *const name = "mlp_layer_types";
    const json_t *types = json_object_get(hf->config, name);
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    size_t n_dense = 0;
    if (!types || json_is_null(types)) return FRIT_OK;
    if (!json_is_array(types) || json_array_size(types) != n)
        return frit_fail_file(FRIT_E_FORMAT, "%s: %s is not a list of %zu names, one for each layer", hf->path, name,
                              n);
    for (size_t i = 0; i < n; i++) {
        const char *type = json_string_value(json_array_get(types, i));
        const bool is_dense = type && strcmp(type, "dense") == 0;
        if (!is_dense && !(type && strcmp(type, "sparse") == 0))
            return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %s[%zu] is '%.40s', expected dense or sparse", hf->path,
                                  name, i, type ? type : "not text");
        if (is_dense && n_dense < i)
            return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %s[%zu] is dense, expected dense layers before all others",
                                  hf->path, name, i);
        n_dense += is_dense;
    }
    return frit_hf_set_number(hf, "leading_dense_block_count", FRIT_HF_COUNT, (double)n_dense);
}

frit_status frit_hf_expect_types(const frit_hf *hf)
{
    if (json_is_array(json_object_get(hf->config, "layer_types"))) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: layer_types is missing, a model of type '%s' needs it", hf->path,
                          hf->family->model_type);
}

uint32_t frit_hf_window(const frit_hf *hf, size_t layer)
{
    const frit_value *windows = frit_meta_find(&hf->ckpt->meta, "frit.attention.sliding_window");
    return windows && layer < windows->array.n ? (uint32_t)frit_value_item_i64(windows, layer) : 0;
}

frit_status frit_hf_add_rope_bases(const frit_hf *hf)
{
    static const char *const name = "layer_rope_theta";
    const json_t *list = json_object_get(hf->config, name);
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    const double base = frit_hf_written(hf, "rope.freq_base");
    if (!list || json_is_null(list)) return FRIT_OK;
    uint32_t *still = frit_arena_new(&hf->ckpt->arena, uint32_t, n);
    if (!still) return frit_fail_memory(n * sizeof *still, name);
    for (size_t i = 0; i < n; i++) {
        const double own = json_number_value(json_array_get(list, i));
        still[i] = own == 0;
        if (json_array_size(list) != n || (own != 0 && (float)own != (float)base))
            return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %s is not a list of %zu numbers that are 0 or rope_theta %g",
                                  hf->path, name, n, base);
    }
    return frit_hf_add_list(hf, "frit.rope.none", still, n);
}

frit_status frit_hf_set_by_kind(const frit_hf *hf, const char *key, double full, double sliding)
{
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    uint32_t *values = frit_arena_new(&hf->ckpt->arena, uint32_t, n);
    if (!values) return frit_fail_memory(n * sizeof *values, key);
    for (size_t i = 0; i < n; i++) values[i] = (uint32_t)(frit_hf_window(hf, i) > 0 ? sliding : full);
    return frit_hf_set_list(hf, key, values);
}
