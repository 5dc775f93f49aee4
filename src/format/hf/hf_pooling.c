// SPDX-License-Identifier: MIT
// The pooling of hidden states to one embedding, from the configurations of the modules Pooling and SpladePooling of
// sentence-transformers. Classes with a classifier have the kind "rank".
#include "format/hf/hf.h"
#include "format/json.h"

#include <stdlib.h>

enum { MEAN = 1, CLS = 2, LAST = 3, RANK = 4 };   // ARCH.pooling_type

static const uint64_t max_file_bytes = 1 << 20, max_optional_bytes = 64 << 20;   // tokenizers are large

json_t *frit_hf_load_optional(const char *folder, const char *name)
{
    frit_buf path = {0};
    json_t *json = NULL;
    char *text = NULL;
    size_t n_bytes = 0;
    frit_buf_printf(&path, "%s/%s", folder, name);
    const bool there = !path.failed && frit_path_get_kind(path.data) == FRIT_PATH_FILE;
    if (there && frit_file_read(path.data, max_optional_bytes, &text, &n_bytes) == FRIT_OK)
        json = frit_json_read(text, n_bytes, 0, NULL);
    free(text);
    frit_buf_free(&path);
    return json;
}

frit_status frit_hf_load_object(const char *folder, const char *sub, const char *name, json_t **out)
{
    frit_buf path = {0};
    char *text = NULL;
    size_t n_bytes = 0;
    json_error_t error;
    *out = NULL;
    frit_buf_printf(&path, "%s/%s%s%s", folder, sub ? sub : "", sub ? "/" : "", name);
    frit_status status = path.failed ? frit_fail_memory(path.len, "a path") : FRIT_OK;
    if (status == FRIT_OK && (sub || frit_path_get_kind(path.data) != FRIT_PATH_NONE)) {
        status = frit_file_read(path.data, max_file_bytes, &text, &n_bytes);
        if (status == FRIT_OK) *out = frit_json_read(text, n_bytes, 0, &error);
        if (status == FRIT_OK && !json_is_object(*out) && !json_is_array(*out))
            status = frit_fail_file(FRIT_E_FORMAT, "%s: not valid JSON, expected an object or a list", path.data);
    }
    free(text);
    frit_buf_free(&path);
    return status;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = text ? strlen(text) : 0, n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

static const struct {
    const char *flag, *mode, *name;
    int type;   // 0: GGUF has no number for it
} modes[] = {
    {"pooling_mode_cls_token", "cls", "cls", CLS},
    {"pooling_mode_max_tokens", "max", "max", 0},
    {"pooling_mode_mean_tokens", "mean", "mean", MEAN},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", "mean_sqrt_len", 0},
    {"pooling_mode_weightedmean_tokens", "weightedmean", "weighted_mean", 0},
    {"pooling_mode_lasttoken", "lasttoken", "last", LAST},
};

enum { MEAN_ROW = 2 };   // of modes

typedef struct chosen {   // modes whose vectors are concatenated in this order
    size_t modes[FRIT_COUNT(modes)], n;
} chosen;

static bool add_mode(chosen *c, const json_t *mode)
{
    const char *text = json_string_value(mode);
    for (size_t i = 0; text && c->n < FRIT_COUNT(modes) && i < FRIT_COUNT(modes); i++) {
        if (strcmp(modes[i].mode, text) != 0) continue;
        c->modes[c->n++] = i;
        return true;
    }
    return false;
}

// Current files have "pooling_mode": "mean", or a list of modes; older files have a flag for each mode. Without either,
// the package pools by mean.
static bool find_modes(chosen *c, const json_t *config)
{
    const json_t *mode = json_object_get(config, "pooling_mode"), *item;
    size_t k;
    bool is_known = true;
    if (json_is_array(mode))
        json_array_foreach(mode, k, item) is_known = add_mode(c, item) && is_known;
    else if (mode)
        is_known = add_mode(c, mode);
    for (size_t i = 0; !mode && i < FRIT_COUNT(modes); i++)
        if (json_is_true(json_object_get(config, modes[i].flag))) c->modes[c->n++] = i;
    if (!mode && c->n == 0) c->modes[c->n++] = MEAN_ROW;
    return is_known && c->n > 0;
}

static frit_status add_modes(const frit_hf *hf, const chosen *c)
{
    const int type = modes[c->modes[0]].type;
    if (c->n == 1 && type > 0) return frit_hf_add_number(hf, "pooling_type", FRIT_HF_COUNT, type);
    frit_buf names = {0};
    for (size_t i = 0; i < c->n; i++) frit_buf_printf(&names, "%s%s", i > 0 ? "+" : "", modes[c->modes[i]].name);
    const frit_status status = names.failed ? frit_fail_memory(names.len, "the names of pooling")
                                            : frit_meta_add_text(&hf->ckpt->meta, "frit.embed.pooling", names.data);
    frit_buf_free(&names);
    return status;
}

static frit_status read_modes(const frit_hf *hf, const char *folder, const char *path, const json_t *config)
{
    chosen c = {0};
    if (!find_modes(&c, config))
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s/%s/config.json: names no known mode of pooling, expected cls, max, mean, "
                              "mean_sqrt_len_tokens, weightedmean or lasttoken",
                              folder, path);
    if (json_is_false(json_object_get(config, "include_prompt")))
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s/%s/config.json: include_prompt is false, only true is supported",
                              folder, path);
    return add_modes(hf, &c);
}

frit_status frit_hf_read_pooling(const frit_hf *hf, const char *folder, const char *path)
{
    json_t *config = NULL;
    frit_status status = frit_hf_load_object(folder, path, "config.json", &config);
    if (status == FRIT_OK) status = read_modes(hf, folder, path, config);
    json_decref(config);
    return status;
}

static bool is_text(const json_t *value, const char *text)
{
    const char *found = json_string_value(value);
    return found && strcmp(found, text) == 0;
}

frit_status frit_hf_read_splade(const frit_hf *hf, const char *folder, const char *path)
{
    json_t *config = NULL;
    FRIT_TRY(frit_hf_load_object(folder, path, "config.json", &config));
    const json_t *strategy = json_object_get(config, "pooling_strategy");
    const json_t *act = json_object_get(config, "activation_function");
    const bool sums = is_text(strategy, "sum"), is_twice = is_text(act, "log1p_relu");
    const bool is_known = (!strategy || sums || is_text(strategy, "max")) && (!act || is_twice || is_text(act, "relu"));
    json_decref(config);
    if (!is_known)
        return frit_fail_file(
            FRIT_E_UNSUPPORTED,
            "%s/%s/config.json: expected a pooling_strategy of max or sum, and an activation_function "
            "of relu or log1p_relu",
            folder, path);
    if (is_twice) FRIT_TRY(frit_meta_add_bool(&hf->ckpt->meta, "frit.embed.log_twice", true));
    return frit_meta_add_text(&hf->ckpt->meta, "frit.embed.pooling", sums ? "splade_sum" : "splade");
}

bool frit_hf_is_classifier(const frit_hf *hf)
{
    return ends_with(json_string_value(json_array_get(json_object_get(hf->config, "architectures"), 0)),
                     "ForSequenceClassification");
}

bool frit_hf_is_masked_lm(const frit_hf *hf)
{
    const char *name = json_string_value(json_array_get(json_object_get(hf->config, "architectures"), 0));
    return ends_with(name, "ForMaskedLM") || ends_with(name, "ForPreTraining");
}

frit_status frit_hf_add_pooling(const frit_hf *hf, const char *folder, const frit_checkpoint_options *options)
{
    if (frit_hf_is_classifier(hf)) return frit_hf_add_number(hf, "pooling_type", FRIT_HF_COUNT, RANK);
    return frit_hf_add_modules(hf, folder, options);
}
