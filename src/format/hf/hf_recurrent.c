// SPDX-License-Identifier: MIT
// Functions that families with recurrent layers share: the list of recurrent layers, and the form of decays.
#include "format/hf/hf.h"

#include <math.h>
#include <stdio.h>

enum { MAX_LAYERS = 1024 };

static frit_status make_decays(const frit_hf *hf, frit_tensor *tensor, float sign)
{
    const int64_t n = frit_tensor_n_elems(tensor), width = tensor->shape[tensor->n_dims > 0 ? tensor->n_dims - 1 : 0];
    if (tensor->n_dims < 1 || n < 1 || frit_dtype_get(tensor->dtype)->block_elems != 1)
        return frit_fail(FRIT_E_FORMAT,
                         "tensor '%s' is not in a plain number format, expected for logarithms of decays",
                         tensor->name);
    float *values = frit_arena_new(&hf->ckpt->arena, float, (size_t)n);
    if (!values) return frit_fail_memory((size_t)n * sizeof *values, tensor->name);
    FRIT_TRY(frit_tensor_decode_rows(tensor, 0, n / width, values));
    for (int64_t i = 0; i < n; i++) values[i] = sign * expf(values[i]);
    tensor->dtype = FRIT_DTYPE_F32;
    tensor->data = values;
    tensor->n_bytes = (uint64_t)n * sizeof *values;
    tensor->is_mapped = false;
    return FRIT_OK;
}

frit_status frit_hf_negative_exp(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    (void)is_bias;
    return make_decays(hf, tensor, -1);
}

frit_status frit_hf_positive_exp(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    (void)is_bias;
    return make_decays(hf, tensor, 1);
}

static frit_status check_count(const frit_hf *hf, size_t n_layer)
{
    if (n_layer <= MAX_LAYERS) return FRIT_OK;
    return frit_fail_file(FRIT_E_LIMIT, "%s: %zu layers, expected at most %d", hf->path, n_layer, (int)MAX_LAYERS);
}

static frit_status recurrent_otherwise(const frit_hf *hf, frit_hf_layer_fn otherwise, bool *recurrent)
{
    double period = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "full_attention_interval", FRIT_HF_LAYERS, &period));
    for (size_t i = 0; i < (size_t)frit_hf_written(hf, "block_count"); i++) recurrent[i] = otherwise(hf, period, i);
    return FRIT_OK;
}

frit_status frit_hf_recurrent_types(const frit_hf *hf, frit_hf_layer_fn otherwise, bool *recurrent)
{
    static const char *const name = "layer_types";
    static const char *const known[] = {"full_attention",   "attention", "sliding_attention",
                                        "linear_attention", "conv",      "mamba"};
    const json_t *types = json_object_get(hf->config, name);
    const size_t n_layer = (size_t)frit_hf_written(hf, "block_count");
    FRIT_TRY(check_count(hf, n_layer));
    if (otherwise && (!types || json_is_null(types))) return recurrent_otherwise(hf, otherwise, recurrent);
    if (!json_is_array(types) || json_array_size(types) != n_layer)
        return frit_fail_file(FRIT_E_FORMAT, "%s: %s is not a list of %zu names, one for each layer", hf->path, name,
                              n_layer);
    for (size_t i = 0; i < n_layer; i++) {
        const char *type = json_string_value(json_array_get(types, i));
        size_t k = 0;
        while (k < FRIT_COUNT(known) && (!type || strcmp(known[k], type) != 0)) k++;
        if (k == FRIT_COUNT(known) || (k == 2 && !hf->family->has_windows))
            return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %s[%zu] is '%.40s', an unknown kind of layer", hf->path,
                                  name, i, type ? type : "not text");
        recurrent[i] = k >= 3;
    }
    return FRIT_OK;
}

frit_status frit_hf_set_list(const frit_hf *hf, const char *key, const uint32_t *values)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s", hf->family->arch, key);
    FRIT_TRY(frit_meta_remove(&hf->ckpt->meta, full));
    const size_t size = strlen(full) + 1;
    char *kept = frit_arena_alloc(&hf->ckpt->arena, size, 1);
    if (!kept) return frit_fail_memory(size, key);
    memcpy(kept, full, size);
    return frit_hf_add_list(hf, kept, values, (size_t)frit_hf_written(hf, "block_count"));
}

frit_status frit_hf_add_recurrent(const frit_hf *hf, const bool *recurrent)
{
    uint32_t heads[MAX_LAYERS];
    const size_t n_layer = (size_t)frit_hf_written(hf, "block_count");
    const uint32_t n_head_kv = (uint32_t)frit_hf_written(hf, "attention.head_count_kv");
    FRIT_TRY(check_count(hf, n_layer));
    for (size_t i = 0; i < n_layer; i++) heads[i] = recurrent[i] ? 0 : n_head_kv;
    return frit_hf_set_list(hf, "attention.head_count_kv", heads);
}

bool frit_hf_has_attention(const frit_hf *hf, int64_t layer)
{
    char key[96];
    snprintf(key, sizeof key, "%s.attention.head_count_kv", hf->family->arch);
    const frit_value *list = frit_meta_find(&hf->ckpt->meta, key);
    const bool is_list = list && list->type == FRIT_VALUE_ARRAY && layer >= 0 && (uint64_t)layer < list->array.n;
    return !is_list || frit_value_item_i64(list, (uint64_t)layer) != 0;
}

frit_status frit_hf_expect(const frit_hf *hf, const char *name, double value)
{
    const json_t *found = json_object_get(hf->config, name);
    const double is = json_is_boolean(found) ? json_is_true(found) : json_number_value(found);
    if (!found || json_is_null(found) || is == value) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %s is %g, a model of type '%s' needs %g", hf->path, name, is,
                          hf->family->model_type, value);
}

frit_status frit_hf_expect_open_steps(const frit_hf *hf)
{
    const json_t *limit = json_object_get(hf->config, "time_step_limit");
    const json_t *low = json_array_get(limit, 0), *high = json_array_get(limit, 1);
    if (!limit || json_is_null(limit)) return FRIT_OK;
    const char *infinity = json_string_value(json_is_object(high) ? json_object_get(high, "__float__") : high);
    const bool is_open = json_is_null(high) || (infinity && strcmp(infinity, "Infinity") == 0) ||
                         (json_is_number(high) && json_number_value(high) >= 1e6);
    if (json_is_number(low) && json_number_value(low) == 0 && is_open) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: time_step_limit is not supported, expected [0, Infinity]", hf->path);
}

frit_status frit_hf_expect_text(const frit_hf *hf, const char *name, const char *value)
{
    const char *found = value;
    FRIT_TRY(frit_hf_get_text(hf, hf->config, "", name, &found));
    if (strcmp(found, value) == 0) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %s is '%.40s', a model of type '%s' needs '%s'", hf->path, name,
                          found, hf->family->model_type, value);
}
