// SPDX-License-Identifier: MIT
// --context-shift: texts longer than the context.
#include "frit/cli/cli.h"

const frit_option *cli_shift_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "context-shift",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(app_shift_options, on),
         .help = "where the context is full drop the oldest half of it and continue, as often as it takes"},
        {.name = "keep",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(app_shift_options, n_keep),
         .min = -1,
         .max = 1 << 27,
         .metavar = "N",
         .help = "with --context-shift: tokens at the beginning that stay, 32 at least; -1: the whole prompt"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

int cli_check_shift(const app_shift_options *options)
{
    if (options->on || options->n_keep == 0) return CLI_DONE;
    return cli_usage("--keep %d: says what a context shift keeps; give --context-shift too", (int)options->n_keep);
}

// The bytes of keys and values of a context; 0: they cannot have this type, or the model has no cache.
static uint64_t cache_bytes(frit_model *model, const frit_engine_options *options, int32_t n_ctx, const char *type)
{
    frit_engine_options longer = *options;
    frit_estimate *estimate;
    frit_estimate_device device;
    uint64_t n_bytes = 0;
    longer.n_ctx = n_ctx;
    longer.fit = "off";
    if (type) longer.cache_type_k = longer.cache_type_v = type;
    if (frit_estimate_new(&estimate, model, &longer) != FRIT_OK) return 0;
    for (size_t i = 0; frit_estimate_get_device(estimate, i, &device); i++) n_bytes += device.kv_bytes;
    frit_estimate_free(estimate);
    return n_bytes;
}

void cli_note_room(const cli_common *common, frit_model *model, const frit_engine_options *options, int32_t n_ctx)
{
    char all[32], less[32];
    const uint64_t now = cache_bytes(model, options, n_ctx, NULL), q8_0 = cache_bytes(model, options, n_ctx, "q8_0");
    cli_size_text(now, all);
    cli_size_text(q8_0, less);
    if (now == 0)
        cli_note(common, "-c %d gives more room", (int)n_ctx);
    else if (q8_0 == 0 || q8_0 >= now)
        cli_note(common, "-c %d gives more room: %s of cache", (int)n_ctx, all);
    else
        cli_note(common, "-c %d gives more room: %s of cache, or %s with -ctk q8_0 -ctv q8_0", (int)n_ctx, all, less);
}

int cli_use_shift(const app_shift_options *options, const frit_engine *engine, frit_session *session, size_t n_prompt)
{
    frit_engine_info info;
    frit_engine_get_info(engine, &info);
    const frit_status status = app_shift(session, options, n_prompt, info.n_ctx);
    return status == FRIT_OK ? CLI_DONE : cli_report(status);
}
