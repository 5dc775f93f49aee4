// SPDX-License-Identifier: MIT
// Options about RoPE replace the file's metadata before it is read.
#include "engine/model/model.h"

#include "base/option.h"

#include <stdio.h>

static frit_status remove_key(frit_meta *meta, const char *arch, const char *name, char key[256])
{
    snprintf(key, 256, "%s.rope.%s", arch, name);
    return frit_meta_remove(meta, key);
}

static frit_status set_number(frit_meta *meta, const char *arch, const char *name, double value)
{
    char key[256];
    if (value == 0) return FRIT_OK;
    FRIT_TRY(remove_key(meta, arch, name, key));
    return frit_meta_add_f64(meta, key, value);
}

static frit_status set_text(frit_meta *meta, const char *arch, const char *name, const char *value)
{
    char key[256];
    if (!value) return FRIT_OK;
    FRIT_TRY(remove_key(meta, arch, name, key));
    return frit_meta_add_text(meta, key, value);
}

static frit_status check_options(const frit_model_options *options)
{
    size_t n_rows;
    const frit_option *rows = frit_model_option_rows(&n_rows);
    FRIT_TRY(frit_options_check(rows, n_rows, options));
    if (options->rope_scale == 0 || options->rope_freq_scale == 0) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID, "rope-scale is %g and rope-freq-scale %g; expected one of both",
                     (double)options->rope_scale, (double)options->rope_freq_scale);
}

frit_status frit_model_set_rope(frit_checkpoint *ckpt, const frit_model_options *options)
{
    FRIT_TRY(check_options(options));
    frit_meta *meta = &ckpt->meta;
    frit_str name = {"", 0};
    char arch[128];
    FRIT_TRY(frit_meta_get_text(meta, "general.architecture", &name, NULL));
    if (name.len == 0 || name.len >= sizeof arch) return FRIT_OK;   // not a model: another check reports it
    snprintf(arch, sizeof arch, "%.*s", (int)name.len, name.ptr);
    const double inverse = (double)options->rope_freq_scale;
    FRIT_TRY(set_text(meta, arch, "scaling.type", options->rope_scaling));
    FRIT_TRY(set_number(meta, arch, "scaling.factor", inverse > 0 ? 1 / inverse : (double)options->rope_scale));
    FRIT_TRY(set_number(meta, arch, "freq_base", (double)options->rope_freq_base));
    FRIT_TRY(set_number(meta, arch, "scaling.original_context_length", options->yarn_orig_ctx));
    FRIT_TRY(set_number(meta, arch, "scaling.yarn_ext_factor", (double)options->yarn_ext_factor));
    FRIT_TRY(set_number(meta, arch, "scaling.attn_factor", (double)options->yarn_attn_factor));
    FRIT_TRY(set_number(meta, arch, "scaling.yarn_beta_fast", (double)options->yarn_beta_fast));
    return set_number(meta, arch, "scaling.yarn_beta_slow", (double)options->yarn_beta_slow);
}
