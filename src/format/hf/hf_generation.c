// SPDX-License-Identifier: MIT
// generation_config.json: the sampling that the model's authors recommend, as GGUF's general.sampling.*. No keys are
// written if the file disables sampling ("do_sample": false).
#include "format/hf/hf.h"

#include <math.h>

static const struct {
    const char *name, *key;
} rows[] = {
    {"temperature", "general.sampling.temp"},
    {"top_k", "general.sampling.top_k"},
    {"top_p", "general.sampling.top_p"},
    {"min_p", "general.sampling.min_p"},
    {"repetition_penalty", "general.sampling.penalty_repeat"},
};

frit_status frit_hf_add_sampling(const frit_hf *hf, const char *folder)
{
    json_t *config = frit_hf_load_optional(folder, "generation_config.json");
    frit_status status = FRIT_OK;
    const bool samples = !json_is_false(json_object_get(config, "do_sample"));
    for (size_t i = 0; i < FRIT_COUNT(rows) && samples && status == FRIT_OK; i++) {
        const json_t *value = json_object_get(config, rows[i].name);
        frit_meta *meta = &hf->ckpt->meta;
        if (json_is_integer(value) && json_integer_value(value) >= 0)
            status = frit_meta_add_u64(meta, rows[i].key, (uint64_t)json_integer_value(value));
        else if (json_is_real(value) && isfinite(json_real_value(value)))
            status = frit_meta_add_f64(meta, rows[i].key, json_real_value(value));
    }
    json_decref(config);
    return status;
}
