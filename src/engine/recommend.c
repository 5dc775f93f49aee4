// SPDX-License-Identifier: MIT
// The sampling that a model's file recommends.
#include "engine/model.h"

#include <math.h>

typedef struct recommendation {
    const char *key;
    size_t offset;   // in frit_sampler_options
    bool is_int;
} recommendation;

// GGUF's names for them.
static const recommendation recommendations[] = {
    {"general.sampling.temp", offsetof(frit_sampler_options, temp), false},
    {"general.sampling.top_k", offsetof(frit_sampler_options, top_k), true},
    {"general.sampling.top_p", offsetof(frit_sampler_options, top_p), false},
    {"general.sampling.min_p", offsetof(frit_sampler_options, min_p), false},
    {"general.sampling.penalty_repeat", offsetof(frit_sampler_options, repeat_penalty), false},
    {"general.sampling.penalty_last_n", offsetof(frit_sampler_options, repeat_last_n), true},
};

// Reads into a copy first: a value out of its option's range recommends nothing.
static frit_status read_one(const frit_model *model, const recommendation *row, frit_sampler_options *options)
{
    const frit_meta *meta = &model->ckpt->meta;
    char *field = (char *)options + row->offset;
    bool found = false;
    if (row->is_int) {
        int64_t value = 0;
        FRIT_TRY(frit_meta_get_i64(meta, row->key, &value, &found));
        if (found && value >= -1 && value <= INT32_MAX) *(int32_t *)field = (int32_t)value;
    } else {
        double value = 0;
        FRIT_TRY(frit_meta_get_f64(meta, row->key, &value, &found));
        if (found && isfinite(value) && value >= 0 && value <= 1000) *(float *)field = (float)value;
    }
    return FRIT_OK;
}

frit_status frit_sampler_recommend(const frit_model *model, frit_sampler_options *options)
{
    FRIT_REQUIRE(model);
    FRIT_REQUIRE(options);
    FRIT_REQUIRE_UNUSED(options);
    for (size_t i = 0; i < FRIT_COUNT(recommendations); i++) {
        if (read_one(model, &recommendations[i], options) != FRIT_OK)
            frit_log_say(&model->log, FRIT_LOG_WARNING, "the recommended sampling is not used: %s", frit_error());
    }
    return FRIT_OK;
}
