// SPDX-License-Identifier: MIT
// The sampler's option rows: those of its stages (stages.def) and the order of these.
#include "sample/sampler.h"

#include "base/option.h"

#define AT(field)      offsetof(frit_sampler_options, field)
#define AT_VALUE(name) (AT(more) + FRIT_STAGE_VALUE_##name * sizeof(frit_sampler_value))

_Static_assert((int)FRIT_STAGE_VALUES <= (int)FRIT_SAMPLER_VALUES, "frit_sampler_options has room for every VALUE");

// clang-format off
// The help text, and what else some rows have: ".letter = 's'".
#define ROW(place, kind, option, least, most, preset, meta, ...)                                                 \
    {.name = option, .type = FRIT_OPTION_##kind, .offset = place, .min = least, .max = most, .fallback = preset, \
     .metavar = meta, .help = __VA_ARGS__},

static const frit_option rows[] = {
#define STAGE(name, text)
#define FIELD(field, ...) ROW(AT(field), __VA_ARGS__)
#define VALUE(name, ...) ROW(AT_VALUE(name), __VA_ARGS__)
#include "sample/stages.def"
#undef STAGE
#undef FIELD
#undef VALUE
    {.name = "samplers", .type = FRIT_OPTION_TEXT, .offset = AT(samplers), .metavar = "LIST",
     .help = "order of the stages, with commas between them; by default:"
#define STAGE(name, text) " " text
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
