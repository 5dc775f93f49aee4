// SPDX-License-Identifier: MIT
// The kind of pooling from hidden states to one embedding. Folders of sentence-transformers list their modules in
// modules.json; the configuration of Pooling gives the kind. Classes with a classifier have the kind "rank".
//
//     [{"path": "", "type": "...Transformer"}, {"path": "1_Pooling", "type": "...Pooling"}, ...]
#include "format/hf/hf.h"
#include "format/json.h"

#include <stdlib.h>

enum { MEAN = 1, CLS = 2, LAST = 3, RANK = 4 };   // ARCH.pooling_type

static const uint64_t max_file_bytes = 1 << 20;

json_t *frit_hf_load_optional(const char *folder, const char *name)
{
    frit_buf path = {0};
    json_t *json = NULL;
    char *text = NULL;
    size_t n_bytes = 0;
    frit_buf_printf(&path, "%s/%s", folder, name);
    const bool there = !path.failed && frit_path_get_kind(path.data) == FRIT_PATH_FILE;
    if (there && frit_file_read(path.data, max_file_bytes, &text, &n_bytes) == FRIT_OK)
        json = frit_json_read(text, n_bytes, 0, NULL);
    free(text);
    frit_buf_free(&path);
    return json;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = text ? strlen(text) : 0, n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

// True if the text is the name of a subfolder, without a path.
static bool is_plain_name(const char *name)
{
    return name && *name && *name != '.' && !strpbrk(name, "/\\:");
}

static const struct {
    const char *flag, *mode;
    int type;   // 0: not supported
} modes[] = {
    {"pooling_mode_cls_token", "cls", CLS},
    {"pooling_mode_max_tokens", "max", 0},
    {"pooling_mode_mean_tokens", "mean", MEAN},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", 0},
    {"pooling_mode_weightedmean_tokens", "weightedmean", 0},
    {"pooling_mode_lasttoken", "lasttoken", LAST},
};

static bool is_mode(const json_t *value, const char *mode)
{
    const char *text = json_string_value(value);
    return text && strcmp(text, mode) == 0;
}

// Current files have "pooling_mode": "mean", or a list of modes; older files have a flag for each mode.
static bool has_mode(const json_t *config, size_t i)
{
    const json_t *mode = json_object_get(config, "pooling_mode"), *item;
    size_t k;
    json_array_foreach(mode, k, item) if (is_mode(item, modes[i].mode)) return true;
    return is_mode(mode, modes[i].mode) || json_is_true(json_object_get(config, modes[i].flag));
}

// Reads the pooling kind. Several modes at once would concatenate their vectors, which is refused.
static frit_status read_type(const frit_hf *hf, const char *folder, const char *name, const json_t *config)
{
    int type = -1, n = 0;
    frit_buf names = {0};
    for (size_t i = 0; i < FRIT_COUNT(modes); i++) {
        if (!has_mode(config, i)) continue;
        type = modes[i].type;
        frit_buf_printf(&names, "%s%s", n++ ? " and " : "", modes[i].mode);
    }
    const frit_status status =
        n == 1 && type > 0
            ? frit_hf_add_number(hf, "pooling_type", FRIT_HF_COUNT, type)
            : frit_fail_file(FRIT_E_UNSUPPORTED,
                             "%s/%s/config.json: pooling by %s is not supported, expected mean, cls or lasttoken",
                             folder, name, n > 0 && !names.failed ? names.data : "an unknown mode");
    frit_buf_free(&names);
    return status;
}

static frit_status read_pooling(const frit_hf *hf, const char *folder, const char *name)
{
    frit_buf path = {0};
    frit_buf_printf(&path, "%s/config.json", name);
    json_t *config = path.failed ? NULL : frit_hf_load_optional(folder, path.data);
    const frit_status status = read_type(hf, folder, name, config);
    json_decref(config);
    frit_buf_free(&path);
    return status;
}

bool frit_hf_is_classifier(const frit_hf *hf)
{
    return ends_with(json_string_value(json_array_get(json_object_get(hf->config, "architectures"), 0)),
                     "ForSequenceClassification");
}

frit_status frit_hf_add_pooling(const frit_hf *hf, const char *folder, const frit_log *log)
{
    if (frit_hf_is_classifier(hf)) return frit_hf_add_number(hf, "pooling_type", FRIT_HF_COUNT, RANK);
    json_t *modules = frit_hf_load_optional(folder, "modules.json");
    frit_status status = FRIT_OK;
    bool found = false;
    for (size_t i = 0; i < json_array_size(modules) && status == FRIT_OK; i++) {
        const json_t *module = json_array_get(modules, i);
        const char *type = json_string_value(json_object_get(module, "type"));
        const char *path = json_string_value(json_object_get(module, "path"));
        if (ends_with(type, ".Dense"))
            frit_log_say(log, FRIT_LOG_WARNING,
                         "%s: modules.json lists a dense layer, which is not supported and not applied", folder);
        if (found || !ends_with(type, ".Pooling") || !is_plain_name(path)) continue;
        found = true;
        status = read_pooling(hf, folder, path);
    }
    json_decref(modules);
    return status;
}
