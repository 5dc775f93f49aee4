// SPDX-License-Identifier: MIT
// The sampler's option rows: the options of its stages (stages.def), and their order.
#include "sample/sampler.h"

#include "base/nearest.h"
#include "base/option.h"

#include <string.h>

#define AT(field)      offsetof(frit_sampler_options, field)
#define AT_VALUE(name) (AT(more) + FRIT_STAGE_VALUE_##name * sizeof(frit_sampler_value))

_Static_assert((int)FRIT_STAGE_VALUES <= (int)FRIT_SAMPLER_VALUES, "frit_sampler_options has room for every VALUE");

// clang-format off
// The help text, and further fields of some rows: ".letter = 's'".
#define ROW(place, kind, option, least, most, preset, meta, ...)                                                 \
    {.name = option, .type = FRIT_OPTION_##kind, .offset = place, .min = least, .max = most, .fallback = preset, \
     .metavar = meta, .help = __VA_ARGS__},

static const frit_option rows[] = {
#define STAGE(...)
#define FIELD(field, ...) ROW(AT(field), __VA_ARGS__)
#define VALUE(name, ...) ROW(AT_VALUE(name), __VA_ARGS__)
#include "sample/stages.def"
#undef STAGE
#undef FIELD
#undef VALUE
    {.name = "sampler-seq", .type = FRIT_OPTION_TEXT, .offset = AT(sampler_seq), .metavar = "LETTERS",
     .aliases = "sampling-seq", .help = "order of the stages, a letter for each, as in edskypmxt"},
    {.name = "samplers", .type = FRIT_OPTION_TEXT, .offset = AT(samplers), .metavar = "LIST",
     .help = "order of the stages, with , or ; between them; by default, but for infill:"
#define STAGE(name, text, ...) " " text
#define FIELD(...)
#define VALUE(...)
#include "sample/stages.def"
    },
};
// clang-format on

const frit_option *frit_sampler_option_rows(size_t *n_rows)
{
    FRIT_REQUIRE_OR(NULL, n_rows);
    *n_rows = FRIT_COUNT(rows);
    return rows;
}

static const char *row_name(const void *ctx, size_t i)
{
    (void)ctx;
    return i < FRIT_COUNT(rows) ? rows[i].name : NULL;
}

static frit_status fail_unknown(const char *name)
{
    frit_buf nearest = {0};
    frit_nearest_print(&nearest, name, row_name, NULL);
    frit_status status = frit_fail(FRIT_E_INVALID, "unknown option '%.60s' of samplers; the nearest are %s", name,
                                   nearest.failed ? "" : nearest.data);
    frit_buf_free(&nearest);
    return status;
}

frit_status frit_sampler_set_option(frit_sampler_options *options, const char *name, const char *value)
{
    FRIT_REQUIRE(options);
    FRIT_REQUIRE(name);
    FRIT_REQUIRE(value);
    for (size_t i = 0; i < FRIT_COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0) return frit_option_set(&rows[i], options, value);
    return fail_unknown(name);
}
