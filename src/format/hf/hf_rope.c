// SPDX-License-Identifier: MIT
// RoPE in config.json, in the keys of transformers 4 or 5:
//
//     4:  "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, ...}     (or "type")
//     5:  "rope_parameters": {"rope_theta": 500000.0, "rope_type": "llama3", "factor": 8.0, ...}
//
// Defaults are from transformers' modeling_rope_utils.py.
#include "format/hf/hf.h"

#include <math.h>
#include <stdio.h>

typedef struct rope {
    const frit_hf *hf;
    const json_t *params;    // rope_scaling or rope_parameters; NULL without either
    const char *where;       // its name and a dot, for errors
    const json_t *sliding;   // parameters of layers with a window, if separate; or NULL
} rope;

typedef struct scaling {
    const char *type, *gguf;   // in GGUF; NULL: the scaling needs no keys
    const frit_hf_key *keys;   // of params
    size_t n_keys;
    frit_status (*more)(const rope *r);
} scaling;

// ---------------------------------------------------------------------------------------- scaling types

// Adds the context length before extension, from `params`, the top level, or the configuration's context.
static frit_status add_original_context(const rope *r)
{
    static const char *const name = "original_max_position_embeddings";
    double n_ctx = frit_hf_written(r->hf, "context_length");
    FRIT_TRY(frit_hf_get_number(r->hf, r->params, r->where, name, FRIT_HF_TOKENS, &n_ctx));
    FRIT_TRY(frit_hf_get_number(r->hf, r->hf->config, "", name, FRIT_HF_TOKENS, &n_ctx));
    return frit_hf_add_number(r->hf, "rope.scaling.original_context_length", FRIT_HF_TOKENS, n_ctx);
}

// Dynamic scaling always starts from the configuration's context.
static frit_status add_dynamic(const rope *r)
{
    double n_ctx = frit_hf_written(r->hf, "context_length");
    return frit_hf_add_number(r->hf, "rope.scaling.original_context_length", FRIT_HF_TOKENS, n_ctx);
}

static double yarn_magnitude(double factor, double mscale)
{
    return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1;
}

// Adds YaRN's magnitude. GGUF stores it relative to YaRN's own value; transformers stores the value, or a quotient of
// two.
static frit_status add_yarn_magnitude(const rope *r)
{
    double factor = frit_hf_written(r->hf, "rope.scaling.factor"), whole = 0, mscale = 0, mscale_all_dim = 0;
    FRIT_TRY(frit_hf_get_number(r->hf, r->params, r->where, "attention_factor", FRIT_HF_FACTOR, &whole));
    FRIT_TRY(frit_hf_get_number(r->hf, r->params, r->where, "mscale", FRIT_HF_MAGNITUDE, &mscale));
    FRIT_TRY(frit_hf_get_number(r->hf, r->params, r->where, "mscale_all_dim", FRIT_HF_MAGNITUDE, &mscale_all_dim));
    if (whole == 0 && mscale != 0 && mscale_all_dim != 0)
        whole = yarn_magnitude(factor, mscale) / yarn_magnitude(factor, mscale_all_dim);
    if (r->hf->family->is_latent && mscale_all_dim != 0) {
        // GGUF stores a tenth of the value.
        FRIT_TRY(frit_hf_add_number(r->hf, "rope.scaling.yarn_log_multiplier", FRIT_HF_FACTOR, mscale_all_dim / 10));
        return frit_hf_add_number(r->hf, "rope.scaling.attn_factor", FRIT_HF_FACTOR, whole != 0 ? whole : 1);
    }
    if (whole == 0) return FRIT_OK;
    return frit_hf_add_number(r->hf, "rope.scaling.attn_factor", FRIT_HF_FACTOR, whole / yarn_magnitude(factor, 1));
}

static frit_status add_yarn(const rope *r)
{
    bool truncate = true;
    FRIT_TRY(frit_hf_get_flag(r->hf, r->params, r->where, "truncate", &truncate));
    if (!truncate) FRIT_TRY(frit_meta_add_bool(&r->hf->ckpt->meta, "frit.rope.yarn_no_truncate", true));
    FRIT_TRY(add_original_context(r));
    FRIT_TRY(frit_hf_add_number(r->hf, "rope.scaling.yarn_ext_factor", FRIT_HF_FACTOR, 1));
    return add_yarn_magnitude(r);
}

// Adds factors for each pair, as the tensor of GGUF files.
static frit_status add_factors(const rope *r, const char *name, const char *gguf)
{
    const json_t *list = json_object_get(r->params, name);
    const size_t n = (size_t)frit_hf_written(r->hf, "rope.dimension_count") / 2;
    if (!json_is_array(list) || json_array_size(list) != n)
        return frit_fail_file(FRIT_E_FORMAT, "%s: %s%s is not a list of %zu numbers", r->hf->path, r->where, name, n);
    float *values = frit_arena_new(&r->hf->ckpt->arena, float, n);
    if (!values) return frit_fail_memory(n * sizeof *values, name);
    for (size_t i = 0; i < n; i++) values[i] = (float)json_number_value(json_array_get(list, i));
    return frit_checkpoint_add_tensor(r->hf->ckpt, &(frit_tensor){.name = gguf,
                                                                  .dtype = FRIT_DTYPE_F32,
                                                                  .n_dims = 1,
                                                                  .shape = {(int64_t)n, 1, 1, 1},
                                                                  .data = values,
                                                                  .n_bytes = n * sizeof *values});
}

// Phi-3.5 MoE has names of its own for magnitudes: one for contexts up to the original one, one for longer contexts.
static frit_status get_magnitude_of_phimoe(const rope *r, double *magnitude)
{
    double below = 0, beyond = 0;
    if (strcmp(r->hf->family->model_type, "phimoe") != 0) return FRIT_OK;
    FRIT_TRY(frit_hf_get_number(r->hf, r->params, r->where, "short_mscale", FRIT_HF_FACTOR, &below));
    FRIT_TRY(frit_hf_get_number(r->hf, r->params, r->where, "long_mscale", FRIT_HF_FACTOR, &beyond));
    if (below != beyond)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %sshort_mscale is %g and long_mscale %g, expected equal numbers",
                              r->hf->path, r->where, below, beyond);
    if (below != 0) *magnitude = below;
    return FRIT_OK;
}

static frit_status add_long(const rope *r)
{
    FRIT_TRY(add_original_context(r));
    FRIT_TRY(add_factors(r, "long_factor", "rope_factors_long.weight"));
    FRIT_TRY(add_factors(r, "short_factor", "rope_factors_short.weight"));
    const double n_ctx = frit_hf_written(r->hf, "rope.scaling.original_context_length");
    double factor = frit_hf_written(r->hf, "rope.scaling.factor"), magnitude = 0;
    if (factor == 0) factor = frit_hf_written(r->hf, "context_length") / n_ctx;
    FRIT_TRY(frit_hf_get_number(r->hf, r->params, r->where, "attention_factor", FRIT_HF_FACTOR, &magnitude));
    FRIT_TRY(get_magnitude_of_phimoe(r, &magnitude));
    if (magnitude == 0) magnitude = factor <= 1 ? 1 : sqrt(1 + log(factor) / log(n_ctx));
    return frit_hf_add_number(r->hf, "rope.scaling.attn_factor", FRIT_HF_FACTOR, magnitude);
}

// The frequencies base^-2i/n become (base f)^-2i/n f^-2/n: a greater base, and linear scaling. Factors up to 1 change
// nothing. The formula with mixed_b has another factor for each pair.
static frit_status add_ntk(const rope *r)
{
    const double factor = fmax(1, frit_hf_written(r->hf, "rope.scaling.factor"));
    const double base = frit_hf_written(r->hf, "rope.freq_base"), n = frit_hf_written(r->hf, "rope.dimension_count");
    if (json_is_number(json_object_get(r->params, "mixed_b")))
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %smixed_b is a number, only null is supported", r->hf->path,
                              r->where);
    FRIT_TRY(frit_hf_set_number(r->hf, "rope.freq_base", FRIT_HF_BASE, base * factor));
    return frit_hf_set_number(r->hf, "rope.scaling.factor", FRIT_HF_FACTOR, pow(factor, 2 / n));
}

static frit_status check_llama3(const rope *r)
{
    if (frit_hf_written(r->hf, "rope.scaling.low_freq_factor") >=
        frit_hf_written(r->hf, "rope.scaling.high_freq_factor"))
        return frit_fail_file(FRIT_E_FORMAT, "%s: %slow_freq_factor is not less than high_freq_factor", r->hf->path,
                              r->where);
    return add_original_context(r);
}

// clang-format off
static const frit_hf_key factor_keys[] = {
    {"factor", "rope.scaling.factor", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
};
static const frit_hf_key yarn_keys[] = {
    {"factor", "rope.scaling.factor", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"beta_fast", "rope.scaling.yarn_beta_fast", FRIT_HF_FACTOR, 32},
    {"beta_slow", "rope.scaling.yarn_beta_slow", FRIT_HF_FACTOR, 1},
};
static const frit_hf_key long_keys[] = {
    {"factor", "rope.scaling.factor", FRIT_HF_FACTOR, FRIT_HF_NO_KEY},
};
static const frit_hf_key llama3_keys[] = {
    {"factor", "rope.scaling.factor", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"low_freq_factor", "rope.scaling.low_freq_factor", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"high_freq_factor", "rope.scaling.high_freq_factor", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
};

static const scaling scalings[] = {
    {"default",      NULL,       NULL,        0,                       NULL},
    {"proportional", NULL,       NULL,        0,                       NULL},
    {"mrope",        NULL,       NULL,        0,                       NULL},   // equal to default for text
    {"linear",       "linear",   factor_keys, FRIT_COUNT(factor_keys), NULL},
    {"dynamic",      "dynamic",  factor_keys, FRIT_COUNT(factor_keys), add_dynamic},
    {"ntk",          "linear",   factor_keys, FRIT_COUNT(factor_keys), add_ntk},
    {"yarn",         "yarn",     yarn_keys,   FRIT_COUNT(yarn_keys),   add_yarn},
    {"llama3",       "llama3",   llama3_keys, FRIT_COUNT(llama3_keys), check_llama3},
    {"longrope",     "longrope", long_keys,   FRIT_COUNT(long_keys),   add_long},
    {"su",           "su",       long_keys,   FRIT_COUNT(long_keys),   add_long},   // the first name
};
// clang-format on

// ---------------------------------------------------------------------------------------- the whole

static frit_status find_scaling(const rope *r, const scaling **out)
{
    const char *type = "default";
    FRIT_TRY(frit_hf_get_text(r->hf, r->params, r->where, "type", &type));
    FRIT_TRY(frit_hf_get_text(r->hf, r->params, r->where, "rope_type", &type));
    // Phi-3 files may use the name yarn for the scaling longrope.
    if (strcmp(type, "yarn") == 0 && strcmp(r->hf->family->model_type, "phi3") == 0) type = "longrope";
    const bool known = (strcmp(type, "proportional") != 0 || r->hf->family->is_proportional) &&
                       (strcmp(type, "mrope") != 0 || r->hf->family->is_visual) &&
                       (strcmp(type, "ntk") != 0 || r->hf->family->has_ntk);
    for (size_t i = 0; i < FRIT_COUNT(scalings); i++) {
        *out = &scalings[i];
        if (strcmp(scalings[i].type, type) == 0 && known) return FRIT_OK;
    }
    return frit_fail_file(FRIT_E_UNSUPPORTED,
                          "%s: %srope_type is '%.40s', expected default, linear, dynamic, yarn, llama3 or longrope",
                          r->hf->path, r->where, type);
}

// rope_scaling has priority over rope_parameters, as in transformers.
static frit_status find_params(rope *r)
{
    static const char *const names[][2] = {{"rope_scaling", "rope_scaling."}, {"rope_parameters", "rope_parameters."}};
    r->where = "";
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        const json_t *params = json_object_get(r->hf->config, names[i][0]);
        if (!params || json_is_null(params)) continue;
        if (!json_is_object(params))
            return frit_fail_file(FRIT_E_FORMAT, "%s: %s is not an object", r->hf->path, names[i][0]);
        if (json_object_size(params) == 0) continue;
        r->params = params;
        r->where = names[i][1];
        break;
    }
    // Parameters by kind of layer; only for families with windows.
    static const char *const kinds[] = {"full_attention", "sliding_attention"};
    const json_t *compress = json_object_get(r->params, "compress"), *plain = json_object_get(r->params, "main");
    if (json_is_object(compress) && json_is_object(plain)) {   // DeepSeek-V4: layers with blocks, and others
        r->sliding = plain;
        r->params = compress;
        return FRIT_OK;
    }
    for (size_t i = 0; i < FRIT_COUNT(kinds) && r->hf->family->has_windows; i++) {
        const json_t *one = json_object_get(r->params, kinds[i]);
        if (one && !json_is_null(one) && !json_is_object(one))
            return frit_fail_file(FRIT_E_FORMAT, "%s: %s%s is not an object", r->hf->path, r->where, kinds[i]);
    }
    const json_t *full = json_object_get(r->params, kinds[0]), *sliding = json_object_get(r->params, kinds[1]);
    if ((json_is_object(full) || json_is_object(sliding)) && r->hf->family->has_windows) {
        r->sliding = sliding;
        r->params = full;
        return FRIT_OK;
    }
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)r->params, key, value) if (json_is_object(value)) return frit_fail_file(
        FRIT_E_UNSUPPORTED, "%s: %s%.40s: RoPE parameters by kind of layer are not supported", r->hf->path, r->where,
        key);
    return FRIT_OK;
}

// The rotated size of layers with a window, if the file has a share of its own for them.
static frit_status add_sliding_dim(const rope *r)
{
    double part = 0;
    FRIT_TRY(frit_hf_get_number(r->hf, r->sliding, "rope_parameters.sliding_attention.", "partial_rotary_factor",
                                FRIT_HF_FACTOR, &part));
    if (part == 0 || r->hf->family->is_proportional) return FRIT_OK;
    const double dim = floor(frit_hf_written(r->hf, "attention.key_length") * part + 1e-9);
    return frit_hf_add_number(r->hf, "rope.dimension_count_swa", FRIT_HF_WIDTH, dim);
}

// The base of layers with a window; with separate parameters these layers are not scaled.
static frit_status add_sliding(const rope *r)
{
    double base = 0;
    const char *type = "default";
    FRIT_TRY(frit_hf_get_number(r->hf, r->hf->config, "", "rope_local_base_freq", FRIT_HF_BASE, &base));
    FRIT_TRY(
        frit_hf_get_number(r->hf, r->sliding, "rope_parameters.sliding_attention.", "rope_theta", FRIT_HF_BASE, &base));
    FRIT_TRY(frit_hf_get_text(r->hf, r->sliding, "rope_parameters.sliding_attention.", "rope_type", &type));
    if (strcmp(type, "default") != 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: RoPE of layers with a window has the type '%.40s'", r->hf->path,
                              type);
    if (base == 0) return FRIT_OK;
    FRIT_TRY(add_sliding_dim(r));
    FRIT_TRY(frit_meta_add_bool(&r->hf->ckpt->meta, "frit.rope.plain_swa", true));
    return frit_hf_add_number(r->hf, "rope.freq_base_swa", FRIT_HF_BASE, base);
}

// A rope.dimension_count that the family reads from a key of its own is not multiplied by a partial factor.
static frit_status apply_partial(const rope *r)
{
    double part = 1;
    FRIT_TRY(frit_hf_get_number(r->hf, r->hf->config, "", "partial_rotary_factor", FRIT_HF_FACTOR, &part));
    FRIT_TRY(frit_hf_get_number(r->hf, r->params, r->where, "partial_rotary_factor", FRIT_HF_FACTOR, &part));
    if (part == 1) return FRIT_OK;
    const double dim = floor(frit_hf_written(r->hf, "rope.dimension_count") * part + 1e-9);
    return frit_hf_set_number(r->hf, "rope.dimension_count", FRIT_HF_WIDTH, dim);
}

frit_status frit_hf_add_rope(const frit_hf *hf)
{
    rope r = {.hf = hf};
    const scaling *kind;
    FRIT_TRY(find_params(&r));
    if (!hf->family->is_proportional && !hf->family->is_latent) FRIT_TRY(apply_partial(&r));
    double base = 0;
    FRIT_TRY(frit_hf_get_number(hf, r.params, r.where, "rope_theta", FRIT_HF_BASE, &base));
    if (base == 0) FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "rope_theta", FRIT_HF_BASE, &base));
    if (base == 0) return FRIT_OK;   // the class has no RoPE
    FRIT_TRY(frit_hf_add_number(hf, "rope.freq_base", FRIT_HF_BASE, base));

    FRIT_TRY(add_sliding(&r));
    FRIT_TRY(find_scaling(&r, &kind));
    if (kind->n_keys == 0) return FRIT_OK;
    FRIT_TRY(frit_hf_add_text(hf, "rope.scaling.type", kind->gguf));
    for (size_t i = 0; i < kind->n_keys; i++) FRIT_TRY(frit_hf_add_row(hf, r.params, r.where, &kind->keys[i]));
    return kind->more ? kind->more(&r) : FRIT_OK;
}

frit_status frit_hf_add_proportional(const frit_hf *hf)
{
    static const char *const where = "rope_parameters.full_attention.";
    const json_t *full = json_object_get(json_object_get(hf->config, "rope_parameters"), "full_attention");
    const int64_t n = (int64_t)frit_hf_written(hf, "rope.dimension_count") / 2;
    double part = 1;
    FRIT_TRY(frit_hf_get_number(hf, full, where, "partial_rotary_factor", FRIT_HF_FACTOR, &part));
    float *factors = frit_arena_new(&hf->ckpt->arena, float, (size_t)n);
    if (!factors) return frit_fail_memory((size_t)n * sizeof *factors, "the factors of rotation");
    const int64_t n_turning = (int64_t)floor((double)n * part + 1e-9);
    for (int64_t i = 0; i < n; i++) factors[i] = i < n_turning ? 1 : 1e30f;
    const frit_tensor tensor = {.name = "rope_freqs.weight",
                                .dtype = FRIT_DTYPE_F32,
                                .n_dims = 1,
                                .shape = {n, 1, 1, 1},
                                .data = factors,
                                .n_bytes = (uint64_t)n * sizeof *factors};
    return frit_checkpoint_add_tensor(hf->ckpt, &tensor);
}

frit_status frit_hf_add_temperature(const frit_hf *hf)
{
    rope r = {.hf = hf};
    double scale = 0;
    FRIT_TRY(find_params(&r));
    FRIT_TRY(frit_hf_get_number(hf, r.params, r.where, "llama_4_scaling_beta", FRIT_HF_MAGNITUDE, &scale));
    if (scale == 0) return FRIT_OK;
    const double length = frit_hf_written(hf, "rope.scaling.original_context_length");
    if (length == 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: %sllama_4_scaling_beta needs original_max_position_embeddings of a scaled RoPE",
                              hf->path, r.where);
    FRIT_TRY(frit_hf_add_number(hf, "attention.temperature_scale", FRIT_HF_FACTOR, scale));
    return frit_hf_add_number(hf, "attention.temperature_length", FRIT_HF_TOKENS, length);
}

frit_status frit_hf_add_sections(const frit_hf *hf)
{
    rope r = {.hf = hf};
    uint32_t sections[4] = {0};
    const json_t *item;
    char key[64];
    size_t i;
    FRIT_TRY(find_params(&r));
    const json_t *list = json_object_get(r.params, "mrope_section");
    if (!json_is_array(list)) return FRIT_OK;
    json_array_foreach(list, i, item) if (i < 4) sections[i] = (uint32_t)json_integer_value(item);
    snprintf(key, sizeof key, "%s.rope.dimension_sections", hf->family->arch);
    const char *copy = frit_arena_text(&hf->ckpt->arena, key, strlen(key));
    return copy ? frit_hf_add_list(hf, copy, sections, 4) : frit_fail_memory(sizeof key, "a metadata key");
}
