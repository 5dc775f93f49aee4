// SPDX-License-Identifier: MIT
// The sampler's option rows. `fallback` is the command line's default; in a struct, zero switches a stage off.
#include "sample/sampler.h"
#include "base/option.h"

#define ROW(field, ...) FRIT_OPTION(frit_sampler_options, field, __VA_ARGS__)

// clang-format off
static const frit_option rows[] = {
    ROW(temp, .name = "temp", .type = FRIT_OPTION_FLOAT, .min = 0, .max = 1000, .fallback = "0.8",
        .metavar = "T", .help = "temperature: higher is more varied; 0 always takes the likeliest token"),
    ROW(top_k, .name = "top-k", .type = FRIT_OPTION_INT, .min = 0, .max = INT32_MAX, .fallback = "40",
        .metavar = "K", .help = "choose among the K likeliest tokens; 0: off"),
    ROW(top_p, .name = "top-p", .type = FRIT_OPTION_FLOAT, .min = 0, .max = 1, .fallback = "0.95",
        .metavar = "P", .help = "choose among the fewest tokens that together have probability P; 0 or 1: off"),
    ROW(min_p, .name = "min-p", .type = FRIT_OPTION_FLOAT, .min = 0, .max = 1, .fallback = "0.05",
        .metavar = "P", .help = "leave out tokens less likely than P times the likeliest; 0: off"),
    ROW(repeat_penalty, .name = "repeat-penalty", .type = FRIT_OPTION_FLOAT, .min = 0, .max = 100, .fallback = "1.0",
        .metavar = "R", .help = "divide the logits of recent tokens; 0 or 1: off"),
    ROW(frequency_penalty, .name = "frequency-penalty", .type = FRIT_OPTION_FLOAT, .min = -100, .max = 100,
        .fallback = "0", .metavar = "F", .help = "subtract F from a logit for each recent occurrence; 0: off"),
    ROW(presence_penalty, .name = "presence-penalty", .type = FRIT_OPTION_FLOAT, .min = -100, .max = 100,
        .fallback = "0", .metavar = "F", .help = "subtract F from the logits of all recent tokens; 0: off"),
    ROW(repeat_last_n, .name = "repeat-last-n", .type = FRIT_OPTION_INT, .min = -1, .max = 1 << 20,
        .fallback = "64", .metavar = "N", .help = "how many tokens count as recent; -1: all"),
    ROW(seed, .name = "seed", .type = FRIT_OPTION_SEED, .fallback = "-1",
        .metavar = "N", .help = "the same seed gives the same text; -1: a random one"),
    ROW(logit_bias, .name = "logit-bias", .type = FRIT_OPTION_LIST,
        .metavar = "ID=BIAS", .help = "add BIAS to the logit of token ID; -inf bans it"),
    ROW(samplers, .name = "samplers", .type = FRIT_OPTION_TEXT,
        .metavar = "LIST", .help = "order of the stages, with commas: logit-bias,penalties,top-k,top-p,min-p,temp"),
};
// clang-format on

const frit_option *frit_sampler_option_rows(size_t *n_rows)
{
    *n_rows = FRIT_COUNT(rows);
    return rows;
}
