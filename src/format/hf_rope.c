// SPDX-License-Identifier: MIT
// Rotary embeddings in config.json, spelled as transformers 4 or 5 write them:
//
//     4:  "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, ...}     (or "type")
//     5:  "rope_parameters": {"rope_theta": 500000.0, "rope_type": "llama3", "factor": 8.0, ...}
//
// What is absent means what modeling_rope_utils.py of transformers makes of it.
#include "format/hf.h"

#include <math.h>
#include <stdio.h>

typedef struct rope {
    const frit_hf *hf;
    const json_t *params;   // rope_scaling or rope_parameters; NULL without either
    const char *where;      // its name and a dot, for sentences
} rope;

typedef struct scaling {
    const char *type;
    const frit_hf_key *keys;   // of params
    size_t n_keys;
    frit_status (*more)(const rope *r);
} scaling;

// ---------------------------------------------------------------------------------------- scaling types

// The context before extension, which stands in either place, or is that of the whole configuration.
static frit_status add_original_context(const rope *r)
{
    static const char *const name = "original_max_position_embeddings";
    double n_ctx = frit_hf_written(r->hf, "context_length");
    FRIT_TRY(frit_hf_get_number(r->hf, r->params, r->where, name, FRIT_HF_TOKENS, &n_ctx));
    FRIT_TRY(frit_hf_get_number(r->hf, r->hf->config, "", name, FRIT_HF_TOKENS, &n_ctx));
    return frit_hf_add_number(r->hf, "rope.scaling.original_context_length", FRIT_HF_TOKENS, n_ctx);
}

// Dynamic scaling always starts from the whole configuration's context.
static frit_status add_dynamic(const rope *r)
{
    double n_ctx = frit_hf_written(r->hf, "context_length");
    return frit_hf_add_number(r->hf, "rope.scaling.original_context_length", FRIT_HF_TOKENS, n_ctx);
}

static double yarn_magnitude(double factor, double mscale)
{
    return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1;
}

// GGUF has the magnitude of rotated vectors as a multiple of YaRN's own; transformers gives it whole, or as a
// quotient of two.
static frit_status add_yarn_magnitude(const rope *r)
{
    double factor = frit_hf_written(r->hf, "rope.scaling.factor"), whole = 0, mscale = 0, mscale_all_dim = 0;
    FRIT_TRY(frit_hf_get_number(r->hf, r->params, r->where, "attention_factor", FRIT_HF_FACTOR, &whole));
    FRIT_TRY(frit_hf_get_number(r->hf, r->params, r->where, "mscale", FRIT_HF_MAGNITUDE, &mscale));
    FRIT_TRY(frit_hf_get_number(r->hf, r->params, r->where, "mscale_all_dim", FRIT_HF_MAGNITUDE, &mscale_all_dim));
    if (whole == 0 && mscale != 0 && mscale_all_dim != 0)
        whole = yarn_magnitude(factor, mscale) / yarn_magnitude(factor, mscale_all_dim);
    if (whole == 0) return FRIT_OK;
    return frit_hf_add_number(r->hf, "rope.scaling.attn_factor", FRIT_HF_FACTOR, whole / yarn_magnitude(factor, 1));
}

static frit_status add_yarn(const rope *r)
{
    bool truncate = true;
    FRIT_TRY(frit_hf_get_flag(r->hf, r->params, r->where, "truncate", &truncate));
    if (!truncate)
        return frit_fail(FRIT_E_UNSUPPORTED, "%s: %struncate is false, which is not supported", r->hf->path, r->where);
    FRIT_TRY(add_original_context(r));
    FRIT_TRY(frit_hf_add_number(r->hf, "rope.scaling.yarn_ext_factor", FRIT_HF_FACTOR, 1));
    return add_yarn_magnitude(r);
}

static frit_status check_llama3(const rope *r)
{
    if (frit_hf_written(r->hf, "rope.scaling.low_freq_factor") >=
        frit_hf_written(r->hf, "rope.scaling.high_freq_factor"))
        return frit_fail(FRIT_E_FORMAT, "%s: %slow_freq_factor is not below high_freq_factor", r->hf->path, r->where);
    return add_original_context(r);
}

// clang-format off
static const frit_hf_key factor_keys[] = {
    {"factor",           "rope.scaling.factor",           FRIT_HF_FACTOR, FRIT_HF_NEEDED, FRIT_HF_NEEDED},
};
static const frit_hf_key yarn_keys[] = {
    {"factor",           "rope.scaling.factor",           FRIT_HF_FACTOR, FRIT_HF_NEEDED, FRIT_HF_NEEDED},
    {"beta_fast",        "rope.scaling.yarn_beta_fast",   FRIT_HF_FACTOR, 32,             32},
    {"beta_slow",        "rope.scaling.yarn_beta_slow",   FRIT_HF_FACTOR, 1,              1},
};
static const frit_hf_key llama3_keys[] = {
    {"factor",           "rope.scaling.factor",           FRIT_HF_FACTOR, FRIT_HF_NEEDED, FRIT_HF_NEEDED},
    {"low_freq_factor",  "rope.scaling.low_freq_factor",  FRIT_HF_FACTOR, FRIT_HF_NEEDED, FRIT_HF_NEEDED},
    {"high_freq_factor", "rope.scaling.high_freq_factor", FRIT_HF_FACTOR, FRIT_HF_NEEDED, FRIT_HF_NEEDED},
};

static const scaling scalings[] = {
    {"default", NULL,        0,                       NULL},
    {"linear",  factor_keys, FRIT_COUNT(factor_keys), NULL},
    {"dynamic", factor_keys, FRIT_COUNT(factor_keys), add_dynamic},
    {"yarn",    yarn_keys,   FRIT_COUNT(yarn_keys),   add_yarn},
    {"llama3",  llama3_keys, FRIT_COUNT(llama3_keys), check_llama3},
};
// clang-format on

// ---------------------------------------------------------------------------------------- the whole

static frit_status find_scaling(const rope *r, const scaling **out)
{
    const char *type = "default";
    FRIT_TRY(frit_hf_get_text(r->hf, r->params, r->where, "type", &type));
    FRIT_TRY(frit_hf_get_text(r->hf, r->params, r->where, "rope_type", &type));
    for (size_t i = 0; i < FRIT_COUNT(scalings); i++) {
        *out = &scalings[i];
        if (strcmp(scalings[i].type, type) == 0) return FRIT_OK;
    }
    return frit_fail(FRIT_E_UNSUPPORTED,
                     "%s: %srope_type is '%.40s'; supported are default, linear, dynamic, yarn and llama3", r->hf->path,
                     r->where, type);
}

// rope_scaling wins where both are there, as in transformers.
static frit_status find_params(rope *r)
{
    static const char *const names[][2] = {{"rope_scaling", "rope_scaling."}, {"rope_parameters", "rope_parameters."}};
    r->where = "";
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        const json_t *params = json_object_get(r->hf->config, names[i][0]);
        if (!params || json_is_null(params)) continue;
        if (!json_is_object(params))
            return frit_fail(FRIT_E_FORMAT, "%s: %s is not an object", r->hf->path, names[i][0]);
        if (json_object_size(params) == 0) continue;
        r->params = params;
        r->where = names[i][1];
        break;
    }
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)r->params, key, value) if (json_is_object(value)) return frit_fail(
        FRIT_E_UNSUPPORTED, "%s: %s%.40s: rotary parameters by kind of layer are not supported", r->hf->path, r->where,
        key);
    return FRIT_OK;
}

static frit_status refuse_partial(const rope *r)
{
    double part = 1;
    FRIT_TRY(frit_hf_get_number(r->hf, r->hf->config, "", "partial_rotary_factor", FRIT_HF_FACTOR, &part));
    FRIT_TRY(frit_hf_get_number(r->hf, r->params, r->where, "partial_rotary_factor", FRIT_HF_FACTOR, &part));
    if (part != 1)
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "%s: partial_rotary_factor is %g, a model of type '%s' is supported with 1", r->hf->path, part,
                         r->hf->family->model_type);
    return FRIT_OK;
}

frit_status frit_hf_add_rope(const frit_hf *hf)
{
    rope r = {.hf = hf};
    FRIT_TRY(find_params(&r));
    FRIT_TRY(refuse_partial(&r));
    double base = 10000;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "rope_theta", FRIT_HF_BASE, &base));
    FRIT_TRY(frit_hf_get_number(hf, r.params, r.where, "rope_theta", FRIT_HF_BASE, &base));
    FRIT_TRY(frit_hf_add_number(hf, "rope.freq_base", FRIT_HF_BASE, base));

    const scaling *kind;
    FRIT_TRY(find_scaling(&r, &kind));
    if (kind->n_keys == 0) return FRIT_OK;
    FRIT_TRY(frit_hf_add_text(hf, "rope.scaling.type", kind->type));
    for (size_t i = 0; i < kind->n_keys; i++) FRIT_TRY(frit_hf_add_row(hf, r.params, r.where, &kind->keys[i]));
    return kind->more ? kind->more(&r) : FRIT_OK;
}
