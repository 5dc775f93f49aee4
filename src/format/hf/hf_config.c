// SPDX-License-Identifier: MIT
// Reads config.json into metadata: finds the family, reads its rows, checks the numbers one by one and together.
#include "base/nearest.h"
#include "base/word_list.h"
#include "format/hf/hf.h"

#include <math.h>
#include <stdio.h>

static const struct {
    double min, max;
    bool is_whole;
} limits[] = {
    [FRIT_HF_COUNT] = {0, 1e9, true},         [FRIT_HF_LAYERS] = {1, 10000, true},
    [FRIT_HF_HEADS] = {1, 65536, true},       [FRIT_HF_WIDTH] = {1, 1 << 24, true},
    [FRIT_HF_TOKENS] = {1, INT32_MAX, true},  [FRIT_HF_EPSILON] = {0, 1, false},
    [FRIT_HF_FACTOR] = {1e-6, 1e9, false},    [FRIT_HF_MAGNITUDE] = {0, 1e6, false},
    [FRIT_HF_BASE] = {1.000001, 1e30, false}, [FRIT_HF_FLAG] = {0, 1, true},
};

// ---------------------------------------------------------------------------------------- reading

// Writes a value for errors, at most 47 bytes.
static const char *show(const json_t *value, char text[48])
{
    memset(text, 0, 48);
    json_dumpb(value, text, 47, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
    return text[0] ? text : "too long to show";
}

frit_status frit_hf_get_number(const frit_hf *hf, const json_t *object, const char *where, const char *name,
                               frit_hf_kind kind, double *out)
{
    const json_t *value = json_object_get(object, name);
    if (!value || json_is_null(value)) return FRIT_OK;
    char text[48], key[FRIT_HF_NAME_BYTES];
    if (kind == FRIT_HF_FLAG) {
        bool flag = false;
        FRIT_TRY(frit_hf_get_flag(hf, object, where, name, &flag));
        *out = flag;
        return FRIT_OK;
    }
    double number = json_number_value(value);
    bool is_number = json_is_number(value) && (!limits[kind].is_whole || number == floor(number));   // 64.0 is whole
    if (is_number && number >= limits[kind].min && number <= limits[kind].max) {
        *out = number;
        return FRIT_OK;
    }
    if (limits[kind].is_whole)
        return frit_fail_file(FRIT_E_FORMAT, "%s: %s%s is %s, expected a whole number from %.0f to %.0f", hf->path,
                              where, frit_hf_spelling(hf, object, name, key), show(value, text), limits[kind].min,
                              limits[kind].max);
    return frit_fail_file(FRIT_E_FORMAT, "%s: %s%s is %s, expected a number from %g to %g", hf->path, where,
                          frit_hf_spelling(hf, object, name, key), show(value, text), limits[kind].min,
                          limits[kind].max);
}

frit_status frit_hf_get_flag(const frit_hf *hf, const json_t *object, const char *where, const char *name, bool *out)
{
    const json_t *value = json_object_get(object, name);
    char text[48], key[FRIT_HF_NAME_BYTES];
    if (!value || json_is_null(value)) return FRIT_OK;
    if (!json_is_boolean(value))
        return frit_fail_file(FRIT_E_FORMAT, "%s: %s%s is %s, expected true or false", hf->path, where,
                              frit_hf_spelling(hf, object, name, key), show(value, text));
    *out = json_is_true(value);
    return FRIT_OK;
}

frit_status frit_hf_get_text(const frit_hf *hf, const json_t *object, const char *where, const char *name,
                             const char **out)
{
    const json_t *value = json_object_get(object, name);
    char text[48], key[FRIT_HF_NAME_BYTES];
    if (!value || json_is_null(value)) return FRIT_OK;
    if (!json_is_string(value))
        return frit_fail_file(FRIT_E_FORMAT, "%s: %s%s is %s, expected text", hf->path, where,
                              frit_hf_spelling(hf, object, name, key), show(value, text));
    *out = json_string_value(value);
    return FRIT_OK;
}

// ---------------------------------------------------------------------------------------- writing

enum { KEY_BYTES = 128 };

static const char *full_key(const frit_hf *hf, const char *key, char text[KEY_BYTES])
{
    snprintf(text, KEY_BYTES, "%s.%s", hf->family->arch, key);
    return text;
}

static frit_status add_value(const frit_hf *hf, const char *key, frit_value value)
{
    char text[KEY_BYTES];
    full_key(hf, key, text);
    const char *copy = frit_arena_text(&hf->ckpt->arena, text, strlen(text));
    if (!copy) return frit_fail_memory(strlen(text), "a metadata key");
    return frit_meta_add(&hf->ckpt->meta, frit_str_of(copy), value);
}

// Writes u32 or f32, the types that GGUF files use for these keys.
frit_status frit_hf_add_number(const frit_hf *hf, const char *key, frit_hf_kind kind, double value)
{
    if (kind == FRIT_HF_FLAG) return frit_hf_add_flag(hf, key, value == 1);
    if (limits[kind].is_whole) return add_value(hf, key, (frit_value){.type = FRIT_VALUE_U32, .u = (uint64_t)value});
    return add_value(hf, key, (frit_value){.type = FRIT_VALUE_F32, .f = (float)value});
}

frit_status frit_hf_add_flag(const frit_hf *hf, const char *key, bool value)
{
    return add_value(hf, key, (frit_value){.type = FRIT_VALUE_BOOL, .u = value});
}

frit_status frit_hf_set_number(const frit_hf *hf, const char *key, frit_hf_kind kind, double value)
{
    char text[KEY_BYTES];
    FRIT_TRY(frit_meta_remove(&hf->ckpt->meta, full_key(hf, key, text)));
    return frit_hf_add_number(hf, key, kind, value);
}

frit_status frit_hf_add_list(const frit_hf *hf, const char *key, const uint32_t *values, size_t n)
{
    uint32_t *copy = frit_arena_new(&hf->ckpt->arena, uint32_t, n + 1);
    if (!copy) return frit_fail_memory(n * sizeof *copy, key);
    memcpy(copy, values, n * sizeof *copy);
    const frit_value value = {.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_U32, n, copy}};
    return frit_meta_add(&hf->ckpt->meta, frit_str_of(key), value);
}

frit_status frit_hf_add_array(const frit_hf *hf, const char *key, frit_value_type type, const void *items, size_t n)
{
    return add_value(hf, key, (frit_value){.type = FRIT_VALUE_ARRAY, .array = {type, n, items}});
}

frit_status frit_hf_add_text(const frit_hf *hf, const char *key, const char *value)
{
    char text[KEY_BYTES];
    return frit_meta_add_text(&hf->ckpt->meta, full_key(hf, key, text), value);
}

double frit_hf_written(const frit_hf *hf, const char *key)
{
    char text[KEY_BYTES];
    double value = 0;
    frit_meta_get_f64(&hf->ckpt->meta, full_key(hf, key, text), &value, NULL);
    return value;
}

frit_status frit_hf_add_row(const frit_hf *hf, const json_t *object, const char *where, const frit_hf_key *row)
{
    const json_t *found = json_object_get(object, row->name);
    double value = row->otherwise;
    if ((!found || json_is_null(found)) && value == FRIT_HF_NEEDED)
        return frit_fail_file(FRIT_E_FORMAT, "%s: %s%s is %s, a model of type '%s' needs it", hf->path, where,
                              row->name, found ? "null" : "missing", hf->family->model_type);
    FRIT_TRY(frit_hf_get_number(hf, object, where, row->name, row->kind, &value));
    if (value == FRIT_HF_NO_KEY) return FRIT_OK;
    if (value == FRIT_HF_N_HEAD) value = frit_hf_written(hf, "attention.head_count");
    if (value == FRIT_HF_N_LAYER) value = frit_hf_written(hf, "block_count");
    if (value == FRIT_HF_16TH) value = ceil(frit_hf_written(hf, "embedding_length") / 16);
    if (value == FRIT_HF_4_EMBD) value = 4 * frit_hf_written(hf, "embedding_length");
    if (value == FRIT_HF_FALSE) value = 0;
    if (value == FRIT_HF_K_DIM) value = frit_hf_written(hf, "attention.key_length");
    if (value == FRIT_HF_DIVIDED)
        value = floor(frit_hf_written(hf, "embedding_length") / frit_hf_written(hf, "attention.head_count"));
    return frit_hf_add_number(hf, row->key, row->kind, value);
}

// ---------------------------------------------------------------------------------------- the family

static const frit_hf_family *find_family(const json_t *config)
{
    const char *model_type = json_string_value(json_object_get(config, "model_type"));
    const json_t *classes = json_object_get(config, "architectures");
    const char *class_name = json_string_value(json_array_get(classes, 0));
    const frit_hf_family *family;
    for (size_t i = 0; (family = frit_hf_family_get(i)); i++) {
        if (family->fits && !family->fits(config)) continue;
        if (model_type && strcmp(model_type, family->model_type) == 0) return family;
        if (!model_type && class_name && strcmp(class_name, family->class_name) == 0) return family;
    }
    return NULL;
}

static const char *known_type(const void *ctx, size_t i)
{
    const frit_hf_family *family = frit_hf_family_get(i);
    return !family ? NULL : *(const bool *)ctx ? family->class_name : family->model_type;
}

static frit_status fail_unknown_family(const frit_hf *hf)
{
    const char *model_type = NULL,
               *name = json_string_value(json_array_get(json_object_get(hf->config, "architectures"), 0));
    FRIT_TRY(frit_hf_get_text(hf, hf->config, "", "model_type", &model_type));
    if (!model_type && !name)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: has neither a model_type nor a list of architectures", hf->path);
    const bool by_class = !model_type;
    frit_buf nearest = {0};
    frit_nearest_print(&nearest, by_class ? name : model_type, known_type, &by_class);
    const frit_status status = frit_fail_file(
        FRIT_E_UNSUPPORTED, "%s: %s '%.60s' is not supported; the nearest known ones are %s", hf->path,
        by_class ? "architecture" : "model_type", by_class ? name : model_type, nearest.failed ? "" : nearest.data);
    frit_buf_free(&nearest);
    return status;
}

// ---------------------------------------------------------------------------------------- checks

// True if the word occurs in `list`, such as "silu|swish".
static frit_status check_act(const frit_hf *hf)
{
    const char *act = NULL, *name = hf->family->act_name ? hf->family->act_name : "hidden_act";
    if (json_is_null(json_object_get(hf->config, name)))
        return frit_fail_file(FRIT_E_FORMAT, "%s: %s is null, expected text", hf->path, name);
    FRIT_TRY(frit_hf_get_text(hf, hf->config, "", name, &act));
    if (act && !frit_word_list_has(hf->family->act, "|!", frit_str_of(act)))
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %s is '%.40s', a model of type '%s' is supported with %s",
                              hf->path, name, act, hf->family->model_type, hf->family->act);
    // GGUF does not distinguish the forms of GELU.
    bool is_exact = act && strcmp(act, "gelu") == 0 && strchr(hf->family->act, '!');
    return is_exact ? frit_meta_add_text(&hf->ckpt->meta, "frit.act", "gelu") : FRIT_OK;
}

static frit_status check_heads(const frit_hf *hf)
{
    double n_head = frit_hf_written(hf, "attention.head_count");
    double n_head_kv = frit_hf_written(hf, "attention.head_count_kv");
    double head_dim = frit_hf_written(hf, "attention.key_length");
    if (n_head == 0) return FRIT_OK;   // no attention in any layer
    if (fmod(n_head, n_head_kv) != 0)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: %.0f attention heads, expected a multiple of the %.0f key-value heads", hf->path,
                              n_head, n_head_kv);
    if (head_dim < 2 || fmod(head_dim, 2) != 0)
        return frit_fail_file(FRIT_E_FORMAT, "%s: heads have %.0f elements, expected an even number", hf->path,
                              head_dim);
    if (n_head * head_dim > limits[FRIT_HF_WIDTH].max)
        return frit_fail_file(FRIT_E_FORMAT, "%s: %.0f heads of %.0f elements, expected at most %.0f elements in all",
                              hf->path, n_head, head_dim, limits[FRIT_HF_WIDTH].max);
    return FRIT_OK;
}

// Checks keys that would change results, for which the architecture supports one value only.
static frit_status check_single_values(const frit_hf *hf)
{
    static const struct {
        const char *model_type, *key;
        double value;
    } singles[] = {
        {"bloom", "apply_residual_connection_post_layernorm", 0},
        {"ernie4_5_moe", "use_bias", 0},
        {"gemma3n_text", "altup_correct_scale", 1},
        {"gpt2", "add_cross_attention", 0},
        {"gpt2", "scale_attn_by_inverse_layer_idx", 0},
        {"gpt2", "scale_attn_weights", 1},
        {"gpt_bigcode", "add_cross_attention", 0},
        {"gpt_bigcode", "scale_attn_weights", 1},
        {"gpt_oss", "swiglu_alpha", 1.702},
        {"gpt_oss", "swiglu_limit", 7},
        {"nemotron_h", "sliding_window", 0},
        {"phi", "qk_layernorm", 0},
        {"smollm3", "use_sliding_window", 0},
    };
    for (size_t i = 0; i < FRIT_COUNT(singles); i++)
        if (strcmp(singles[i].model_type, hf->family->model_type) == 0)
            FRIT_TRY(frit_hf_expect(hf, singles[i].key, singles[i].value));
    return FRIT_OK;
}

static bool has_bias_by(const frit_hf_family *family, const char *flag)
{
    const frit_hf_tensor *row;
    for (size_t i = 0; (row = frit_hf_tensor_get(family, i)); i++)
        if (row->bias_if && (strcmp(row->bias_if, flag) == 0 || strcmp(row->bias_if, FRIT_HF_MAYBE) == 0)) return true;
    return false;
}

// Refuses biases that a class may have, but the family has no rows for.
static frit_status check_biases(const frit_hf *hf)
{
    static const char *const flags[] = {"attention_bias", "mlp_bias", "use_bias"};
    for (size_t i = 0; i < FRIT_COUNT(flags); i++)
        if (!has_bias_by(hf->family, flags[i])) FRIT_TRY(frit_hf_expect(hf, flags[i], 0));
    return FRIT_OK;
}

// Files of the first Llama write -1 for no token.
static frit_status check_token_id(const frit_hf *hf, const char *name, const json_t *id, double n_vocab)
{
    char text[48];
    const json_int_t value = json_integer_value(id);
    if (json_is_integer(id) && value >= -1 && (double)value < n_vocab) return FRIT_OK;
    return frit_fail_file(FRIT_E_FORMAT, "%s: %s is %s, expected a token id below %.0f, the size of the vocabulary",
                          hf->path, name, show(id, text), n_vocab);
}

// False for encoders: they may have begin and end ids of another tokenizer, and they generate no text.
static bool generates(const frit_hf *hf)
{
    const char *name = json_string_value(json_array_get(json_object_get(hf->whole, "architectures"), 0));
    return !name || strstr(name, "CausalLM") || strstr(name, "LMHead") || strstr(name, "ConditionalGeneration");
}

static frit_status check_token_ids(const frit_hf *hf)
{
    static const char *const names[] = {"bos_token_id", "eos_token_id"};
    double n_vocab = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "vocab_size", FRIT_HF_TOKENS, &n_vocab));
    if (n_vocab == 0 || !generates(hf)) n_vocab = (double)INT32_MAX;
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        const json_t *ids = json_object_get(hf->config, names[i]), *id;
        size_t k;
        if (!ids || json_is_null(ids)) continue;
        if (!json_is_array(ids)) FRIT_TRY(check_token_id(hf, names[i], ids, n_vocab));
        json_array_foreach(ids, k, id) FRIT_TRY(check_token_id(hf, names[i], id, n_vocab));
    }
    return FRIT_OK;
}

// Writes the keys of the encoder of pictures, which vision_config describes.
static frit_status read_vision(frit_hf *hf)
{
    char type[128];
    const char *whole_type = NULL;
    hf->whole = hf->config;
    hf->config = json_object_get(hf->whole, "vision_config");
    FRIT_TRY(frit_hf_get_text(hf, hf->whole, "", "model_type", &whole_type));
    if (!json_is_object(hf->config) || !whole_type)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: has no vision_config; the model takes no pictures", hf->path);
    for (size_t i = 0; (hf->family = frit_hf_vision_get(i)); i++)
        if (strcmp(hf->family->model_type, whole_type) == 0) break;
    if (!hf->family)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: pictures of a model of type '%.60s' are not supported", hf->path,
                              whole_type);
    snprintf(type, sizeof type, "%s_vision", whole_type);
    FRIT_TRY(frit_hf_complete(hf->config, hf->path, type));
    FRIT_TRY(check_act(hf));
    FRIT_TRY(frit_meta_add_text(&hf->ckpt->meta, "general.architecture", hf->family->arch));
    const frit_hf_key *row;
    for (size_t i = 0; (row = frit_hf_key_get(hf->family, i)); i++)
        FRIT_TRY(frit_hf_add_row(hf, hf->config, "vision_config.", row));
    FRIT_TRY(check_heads(hf));
    return hf->family->more ? hf->family->more(hf) : FRIT_OK;
}

static bool has_windows(const frit_hf *hf)
{
    const frit_value *windows = frit_meta_find(&hf->ckpt->meta, "frit.attention.sliding_window");
    bool any = false;
    for (size_t i = 0; windows && i < windows->array.n; i++) any |= frit_hf_window(hf, i) > 0;
    return any;
}

// transformers' causal masks become masks of a bidirectional model where a configuration says so: embedders made of
// language models have the key.
static frit_status add_causality(const frit_hf *hf)
{
    bool is_causal = true;
    char text[KEY_BYTES];
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "is_causal", &is_causal));
    if (is_causal || frit_meta_find(&hf->ckpt->meta, full_key(hf, "attention.causal", text))) return FRIT_OK;
    // A window would reach as far to both sides; GGUF's windows reach half as far.
    if (frit_hf_written(hf, "attention.sliding_window") > 0 || has_windows(hf))
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: is_causal is false, which is supported without sliding windows",
                              hf->path);
    return frit_hf_add_flag(hf, "attention.causal", false);
}

frit_status frit_hf_read_config(frit_hf *hf)
{
    if (!json_is_object(hf->config)) return frit_fail_file(FRIT_E_FORMAT, "%s: not a JSON object", hf->path);
    if (hf->part == FRIT_CHECKPOINT_VISION) return read_vision(hf);
    hf->whole = hf->config;
    hf->family = find_family(hf->config);
    // Multimodal models contain a text model.
    json_t *text = json_object_get(hf->config, "text_config");
    if (!hf->family && json_is_object(text)) {
        const char *type = frit_hf_text_type(hf->whole);
        if (type && json_object_set_new(text, "model_type", json_string(type)) != 0)
            return frit_fail_memory(strlen(type), "a configuration");
        hf->config = text;
        hf->family = find_family(text);
    }
    if (!hf->family) return fail_unknown_family(hf);
    FRIT_TRY(frit_hf_complete(hf->config, hf->path, hf->family->model_type));
    FRIT_TRY(check_act(hf));
    FRIT_TRY(check_single_values(hf));
    FRIT_TRY(check_biases(hf));
    FRIT_TRY(check_token_ids(hf));
    FRIT_TRY(frit_meta_add_text(&hf->ckpt->meta, "general.architecture", hf->family->arch));
    const frit_hf_key *row;
    for (size_t i = 0; (row = frit_hf_key_get(hf->family, i)); i++) FRIT_TRY(frit_hf_add_row(hf, hf->config, "", row));
    FRIT_TRY(check_heads(hf));
    FRIT_TRY(frit_hf_add_rope(hf));
    if (hf->family->needs_types) FRIT_TRY(frit_hf_expect_types(hf));
    if (hf->family->has_windows) FRIT_TRY(frit_hf_add_windows(hf));
    if (hf->family->norm) FRIT_TRY(frit_meta_add_text(&hf->ckpt->meta, "frit.norm", hf->family->norm));
    if (hf->family->more) FRIT_TRY(hf->family->more(hf));
    FRIT_TRY(add_causality(hf));
    if (hf->family->rope_style)
        FRIT_TRY(frit_meta_add_text(&hf->ckpt->meta, "frit.rope.style", hf->family->rope_style));
    return FRIT_OK;
}
