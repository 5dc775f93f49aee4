// SPDX-License-Identifier: MIT
// The sampling parameters that a model's file recommends.
#include "base/number.h"
#include "engine/model/model.h"
#include "sample/sampler.h"

// Keys of GGUF for sampler options.
static const struct {
    const char *key, *option;
} recommendations[] = {
    {"general.sampling.temp", "temp"},
    {"general.sampling.top_k", "top-k"},
    {"general.sampling.top_p", "top-p"},
    {"general.sampling.min_p", "min-p"},
    {"general.sampling.xtc_probability", "xtc-probability"},
    {"general.sampling.xtc_threshold", "xtc-threshold"},
    {"general.sampling.penalty_repeat", "repeat-penalty"},
    {"general.sampling.penalty_last_n", "repeat-last-n"},
    {"general.sampling.mirostat", "mirostat"},
    {"general.sampling.mirostat_tau", "mirostat-tau"},
    {"general.sampling.mirostat_eta", "mirostat-eta"},
};

frit_status frit_model_copy_sampling(frit_model *model)
{
    frit_str sequence;
    bool found;
    if (frit_meta_get_text(&model->ckpt->meta, "general.sampling.sequence", &sequence, &found) != FRIT_OK || !found)
        return FRIT_OK;
    model->sampling_sequence = frit_arena_text(&model->arena, sequence.ptr, sequence.len);
    return model->sampling_sequence ? FRIT_OK : frit_fail_memory(sequence.len, "the order of samplers");
}

// Reads one recommendation. The option's row checks the range.
static frit_status read_one(const frit_model *model, size_t i, frit_sampler_options *options)
{
    const char *key = recommendations[i].key, *option = recommendations[i].option;
    double value = 0;
    bool found = false;
    char text[64];
    FRIT_TRY(frit_meta_get_f64(&model->ckpt->meta, key, &value, &found));
    if (!found) return FRIT_OK;
    frit_format(text, sizeof text, "%.9g", value);
    return frit_sampler_set_option(options, option, text);
}

static frit_status read_order(const frit_model *model, frit_sampler_options *options)
{
    if (!model->sampling_sequence) return FRIT_OK;
    FRIT_TRY(frit_sampler_check_names(model->sampling_sequence));
    options->samplers = model->sampling_sequence;
    return FRIT_OK;
}

frit_status frit_sampler_recommend(const frit_model *model, frit_sampler_options *options)
{
    FRIT_REQUIRE(model);
    FRIT_REQUIRE(options);
    FRIT_REQUIRE_UNUSED(options);
    for (size_t i = 0; i <= FRIT_COUNT(recommendations); i++)
        if ((i < FRIT_COUNT(recommendations) ? read_one(model, i, options) : read_order(model, options)) != FRIT_OK)
            frit_log_say(&model->log, FRIT_LOG_WARNING, "the recommended sampling is not used: %s", frit_error());
    return FRIT_OK;
}
