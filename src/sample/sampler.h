// SPDX-License-Identifier: MIT
// sample/sampler.h: a chain of stages turns logits into a token. A stage is a row of stages.def and a file of its own.
//
// Stages work on candidates: (token, logit) pairs, all of the vocabulary at first. A stage may change logits, drop
// candidates, or sort them; it always keeps the likeliest. After the last stage the chain draws one by its weight
// (weight.h); with temperature 0 it takes the largest logit instead (the lowest id among equals). The random number is
// a function of the seed and the position of the token, so that a token does not depend on what was drawn before.
//
//     logits -> candidates -> logit-bias -> penalties -> custom -> top-k -> top-p -> min-p -> temp -> draw -> token
//
// The chain defines what a sampler does. Chains of the stages in this order, or of some of them, also exist as data
// that backends run where the logits are: picks (pick.h). They give the same tokens, much sooner.
//
// Logits are never NaN or +inf inside the chain (frit_sampler_sample refuses them); -inf bans a token.
#pragma once
#include "base/buf.h"
#include "grammar/constraint.h"
#include "sample/pick_run.h"

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
    uint64_t position;    // of the token that is sampled next
    bool is_pick;         // the chain exists as a pick
    frit_pick_run *run;   // runs it for frit_sampler_sample
    frit_pick_lists lists;
    frit_candidate *candidates;   // [n_vocab]; of picks: the row of logits with biases and penalties
    frit_candidate *biases;       // parsed logit_bias
    int32_t n_biases;
    frit_token *history;   // ring of the last accepted tokens; NULL when the window has no end
    int32_t n_history, history_capacity, history_at;
    uint32_t *counts;                // [n_vocab]: occurrences within the penalties' window
    char *forced_prefix;             // what the next tokens must begin with (forced_prefix.c), or NULL
    frit_str forced_left;            // the rest of it; empty: no prefix is forced
    const frit_str *forced_pieces;   // [n_vocab]: the text of each token; "": a token that may not be used
    frit_str *own_pieces;            // forced_pieces where this sampler owns them, otherwise NULL
    frit_constraint *constraint;     // of a grammar (grammar.c); NULL: none
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
// Gives a heap of the best so far, at most k, another one. The root of k is the worst of them.
void frit_candidates_keep(frit_candidate *best, int32_t *n, int32_t k, frit_candidate candidate);
// Draws one by its weight, of which one at least is not -inf; changes their order.
frit_token frit_candidates_draw(frit_candidates *candidates, int32_t n_vocab, uint64_t drawn);
// What stages do, for picks too.
void frit_top_p_keep(frit_candidates *candidates, float p);
void frit_min_p_keep(frit_candidates *candidates, float min_p);
void frit_temperature_divide(frit_candidates *candidates, float temp);
float frit_penalties_factor(const frit_sampler_options *options);   // 1: no repetition penalty

// The text of the next tokens must begin with `prefix`. `pieces` ([n_vocab], "" for tokens that may not be used) must
// live as long as the sampler. frit_sampler_reset removes the prefix.
frit_status frit_sampler_force_prefix(frit_sampler *sampler, const frit_str *pieces, frit_str prefix);
bool frit_forced_fits(frit_str left, frit_str piece);
void frit_forced_apply(const frit_sampler *sampler, frit_candidates *candidates);
void frit_forced_accept(frit_sampler *sampler, frit_token token);
// Bans the tokens that do not fit the grammar, which the sampler has.
frit_status frit_constraint_apply(const frit_sampler *sampler, frit_candidates *candidates);

// FRIT_E_INVALID for values outside their rows' ranges, unknown stages and biases; FRIT_E_MEMORY.
frit_status frit_sampler_create(frit_sampler **out, int32_t n_vocab, const frit_sampler_options *options);

// Whether the chain exists as a pick: no stage of the caller's own, and none out of order.
bool frit_sampler_is_pick(const frit_sampler *sampler);
// The pick of the next token; its row is 0 and it asks for no log-probabilities. FRIT_E_MEMORY for longer lists.
frit_status frit_sampler_add_pick(const frit_sampler *sampler, frit_pick_lists *lists, frit_pick *pick);
// Accepts a token for the time being: of a sampler that is a pick. Going back undoes the last one that was tried.
typedef struct frit_sampler_mark {
    frit_token token, forgotten;
    int32_t n_history, history_at;
    uint64_t position;
    frit_str forced_left;
} frit_sampler_mark;
void frit_sampler_try(frit_sampler *sampler, frit_token token, frit_sampler_mark *before);
void frit_sampler_go_back(frit_sampler *sampler, const frit_sampler_mark *before);
// Samples by the chain, whether it exists as a pick or not.
frit_status frit_sampler_run_chain(frit_sampler *sampler, const float *logits, frit_token *token);
