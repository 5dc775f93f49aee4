// SPDX-License-Identifier: MIT
// sample/sampler.h: a chain of stages turns logits into a token. A stage is a row of stages.def and a file of its own.
//
// Stages work on candidates: (token, logit) pairs, all of the vocabulary at first. A stage may change logits, drop
// candidates, or sort them; it always keeps the likeliest. After the last stage the chain takes the softmax and draws
// one; with temperature 0 it takes the largest logit instead (the lowest id among equals).
//
//     logits -> candidates -> logit-bias -> penalties -> custom -> top-k -> top-p -> min-p -> temp -> draw -> token
//
// Logits are never NaN or +inf inside the chain (frit_sampler_sample refuses them); -inf bans a token.
#pragma once
#include "base/buf.h"
#include "base/rng.h"

typedef struct frit_candidates {
    frit_candidate *items;
    int32_t n;
    bool sorted;   // by falling logit, then rising token
} frit_candidates;

typedef struct frit_stage {
    const char *name;                                     // as in the order of stages: "top-k"
    bool (*is_on)(const frit_sampler_options *options);   // a stage that is off is left out of the chain
    void (*apply)(struct frit_sampler *sampler, frit_candidates *candidates);
} frit_stage;

enum { FRIT_MAX_STAGES = 16 };

struct frit_sampler {
    frit_sampler_options options;   // samplers and logit_bias have been parsed and are not used again
    const frit_stage *stages[FRIT_MAX_STAGES];
    int n_stages;
    int32_t n_vocab;
    frit_status status;   // of the custom stage, in the pick that is being made
    frit_rng rng;
    frit_candidate *candidates;   // [n_vocab]
    frit_candidate *biases;       // parsed logit_bias
    int32_t n_biases;
    frit_token *history;   // ring of the last accepted tokens; NULL when the window has no end
    int32_t n_history, history_capacity, history_at;
    uint32_t *counts;                // [n_vocab]: occurrences within the penalties' window
    char *forced_prefix;             // what the next tokens must begin with (forced_prefix.c), or NULL
    frit_str forced_left;            // the rest of it; empty: no prefix is forced
    const frit_str *forced_pieces;   // [n_vocab]: the text of each token; "": a token that may not be used
    frit_str *own_pieces;            // forced_pieces where this sampler owns them, otherwise NULL
};

#define STAGE(name, text)                                          \
    bool frit_##name##_is_on(const frit_sampler_options *options); \
    void frit_##name##_apply(struct frit_sampler *sampler, frit_candidates *candidates);
#define FIELD(...)
#define VALUE(...)
#include "sample/stages.def"
#undef STAGE
#undef FIELD
#undef VALUE

// Where a stage's values lie in frit_sampler_options.more.
enum {
#define STAGE(name, text)
#define FIELD(...)
#define VALUE(name, ...) FRIT_STAGE_VALUE_##name,
#include "sample/stages.def"
#undef STAGE
#undef FIELD
#undef VALUE
    FRIT_STAGE_VALUES
};
#define frit_stage_number(options, name)  ((options)->more[FRIT_STAGE_VALUE_##name].number)
#define frit_stage_integer(options, name) ((options)->more[FRIT_STAGE_VALUE_##name].integer)

// Sorts what is needed: the k largest first, k = n for all. In time n + k log n.
void frit_candidates_sort(frit_candidates *candidates, int32_t k);
float frit_candidates_max(const frit_candidates *candidates);   // -inf if all are banned

// The text of the next tokens must begin with `prefix`. `pieces` ([n_vocab], "" for tokens that may not be used) must
// live as long as the sampler. frit_sampler_reset removes the prefix.
frit_status frit_sampler_force_prefix(frit_sampler *sampler, const frit_str *pieces, frit_str prefix);
bool frit_forced_fits(frit_str left, frit_str piece);
void frit_forced_apply(const frit_sampler *sampler, frit_candidates *candidates);
void frit_forced_accept(frit_sampler *sampler, frit_token token);

// FRIT_E_INVALID for values outside their rows' ranges, unknown stages and biases; FRIT_E_MEMORY.
frit_status frit_sampler_create(frit_sampler **out, int32_t n_vocab, const frit_sampler_options *options);
