// SPDX-License-Identifier: MIT
// sample/sampler.h: a chain of stages turns logits into a token. A stage is a row of stages.def and a file of its own.
//
// Stages work on candidates, (token, logit) pairs, which are the whole vocabulary at first. A stage may change logits,
// drop candidates, or sort them; at least one candidate stays. After the last stage the chain draws a candidate by its
// weight (weight.h); with temperature 0 it takes the largest logit instead (the lowest id among equals). The random
// number is a function of the seed and the position of the token, so a draw does not depend on earlier draws.
//
//     logits -> candidates -> logit-bias -> penalties -> custom -> top-k -> top-p -> min-p -> temp -> draw -> token
//
// Two stages, mirostat and adaptive-p, learn one number from earlier tokens. They learn when the sampled token is
// accepted; sampling again before that gives the same token.
//
// The chain defines what a sampler does. Chains of some stages in this order also exist as picks (pick.h), data that
// backends run where the logits are. Picks give the same tokens, and are much faster.
//
// Logits are never NaN or +inf inside the chain (frit_sampler_sample refuses them); -inf bans a token.
#pragma once
#include "base/buf.h"
#include "grammar/constraint.h"
#include "sample/pick_runner.h"

typedef struct frit_candidates {
    frit_candidate *items;
    int32_t n;
    bool sorted;   // by falling logit, then rising token
} frit_candidates;

// Where a stage runs.
enum {
    FRIT_STAGE_FIRST = 1,           // before the others if a list does not name it
    FRIT_STAGE_LAST = 2,            // after the others, even if a list names it
    FRIT_STAGE_BY_NAME = 4,         // only if a list names it
    FRIT_STAGE_WITH_MIROSTAT = 8,   // also with mirostat
};

typedef struct frit_stage {
    const char *name;      // as in the order of stages: "top-k"
    char letter;           // in --sampler-seq; 0: none
    const char *aliases;   // other names, with '|' between them; or NULL
    unsigned flags;
    bool (*is_on)(const frit_sampler_options *options);   // a stage that is off is left out of the chain
    void (*apply)(struct frit_sampler *sampler, frit_candidates *candidates);
    // Called when the sampled token is accepted, with the probability that `apply` wrote to sampler->probabilities.
    void (*learn)(struct frit_sampler *sampler, float probability);
} frit_stage;

enum { FRIT_MAX_STAGES = 16 };

// The model's texts for stages; empty for a model without a vocabulary.
typedef struct frit_sampler_texts {
    const struct frit_vocab *vocab;   // NULL: none
    const frit_str *pieces;           // [vocab->n]: the bytes of each token
} frit_sampler_texts;

struct frit_sampler {
    frit_sampler_options options;   // samplers and logit_bias have been parsed and are not used again
    const frit_stage *stages[FRIT_MAX_STAGES];
    int n_stages;
    int32_t n_vocab;
    frit_status status;      // status of the custom stage in the current draw
    uint64_t position;       // position of the next token
    bool is_pick;            // the chain exists as a pick
    frit_pick_runner *run;   // runs the pick for frit_sampler_sample
    frit_pick_lists lists;
    frit_candidate *candidates;   // [n_vocab]; for picks: the row of logits with biases and penalties
    frit_candidate *biases;       // parsed logit_bias
    int32_t n_biases;
    frit_token *history;   // ring of the last accepted tokens; NULL: the window is unlimited
    int32_t n_history, history_capacity, history_at;
    uint32_t *counts;        // [n_vocab]: occurrences within the penalties' window
    frit_token *uncounted;   // tokens that the penalties leave out
    int32_t n_uncounted;
    int32_t n_unknown;   // tokens within the window that are not known yet, -1 in `history`: 0 or 1
    frit_sampler_texts texts;
    struct frit_dry *dry;            // state of dry.c; NULL: the stage is off
    float *probabilities;            // [n_vocab]: probability of each token, for a stage that learns; else NULL
    frit_token sampled;              // the last sampled token if it is not accepted yet; -1: none
    double learned;                  // of mirostat mu - 2 tau, of adaptive-p mean - target; 0 after a reset
    char *forced_prefix;             // text that the next tokens must begin with (forced_prefix.c), or NULL
    frit_str forced_left;            // rest of forced_prefix; empty: no prefix is forced
    const frit_str *forced_pieces;   // [n_vocab]: the text of each token; "": a token that may not be used
    frit_str *own_pieces;            // forced_pieces if this sampler owns them, otherwise NULL
    frit_constraint *constraint;     // grammar (grammar.c); NULL: none
};

#define STAGE(name, ...)                                                                 \
    bool frit_##name##_is_on(const frit_sampler_options *options);                       \
    void frit_##name##_apply(struct frit_sampler *sampler, frit_candidates *candidates); \
    void frit_##name##_learn(struct frit_sampler *sampler, float probability);
#define FIELD(...)
#define VALUE(...)
#include "sample/stages.def"
#undef STAGE
#undef FIELD
#undef VALUE

// Indices of the stages' values in frit_sampler_options.more.
enum {
#define STAGE(...)
#define FIELD(...)
#define VALUE(name, ...) FRIT_STAGE_VALUE_##name,
#include "sample/stages.def"
#undef STAGE
#undef FIELD
#undef VALUE
    FRIT_STAGE_VALUES
};

// The rows of stages.def.
enum {
#define STAGE(name, ...) FRIT_STAGE_##name,
#define FIELD(...)
#define VALUE(...)
#include "sample/stages.def"
#undef STAGE
#undef FIELD
#undef VALUE
    FRIT_STAGES
};
#define frit_stage_number(options, name)  ((options)->more[FRIT_STAGE_VALUE_##name].number)
#define frit_stage_integer(options, name) ((options)->more[FRIT_STAGE_VALUE_##name].integer)
#define frit_stage_flag(options, name)    ((options)->more[FRIT_STAGE_VALUE_##name].flag)

static inline double frit_or_default(float value, double fallback)
{
    return value != 0 ? (double)value : fallback;
}

// Sorts the k largest candidates to the front, in time n + k log n.
void frit_candidates_sort(frit_candidates *candidates, int32_t k);
float frit_candidates_max(const frit_candidates *candidates);   // -inf if all are banned
// Offers a candidate to a heap of the best so far, at most k. The root of a full heap is the worst.
void frit_candidates_keep(frit_candidate *best, int32_t *n, int32_t k, frit_candidate candidate);
// Draws a candidate by its weight; at least one logit must be finite. Changes the order of the candidates.
frit_token frit_candidates_draw(frit_candidates *candidates, int32_t n_vocab, uint64_t drawn);
// The largest logit, and the sum of e^(logit - max) of all candidates.
typedef struct frit_softmax_sums {
    double max, sum;
} frit_softmax_sums;
frit_softmax_sums frit_candidates_softmax(const frit_candidates *candidates);
double frit_softmax_probability(const frit_softmax_sums *softmax, float logit);   // 0 for -infinity
// Entropy of the candidates' distribution, in nats.
double frit_candidates_entropy(const frit_candidates *candidates, const frit_softmax_sums *softmax);
// Functions of stages that picks use too.
void frit_top_p_keep(frit_candidates *candidates, float p);
void frit_min_p_keep(frit_candidates *candidates, float min_p);
void frit_temperature_divide(frit_candidates *candidates, float temp);
float frit_penalties_factor(const frit_sampler_options *options);   // 1: no repetition penalty

// Forces the text of the next tokens to begin with `prefix`. `pieces` ([n_vocab], "" for tokens that may not be used)
// must live as long as the sampler. frit_sampler_reset removes the prefix.
frit_status frit_sampler_force_prefix(frit_sampler *sampler, const frit_str *pieces, frit_str prefix);
bool frit_forced_fits(frit_str left, frit_str piece);
void frit_forced_apply(const frit_sampler *sampler, frit_candidates *candidates);
void frit_forced_accept(frit_sampler *sampler, frit_token token);
// Bans the tokens that do not fit the sampler's grammar.
frit_status frit_constraint_apply(const frit_sampler *sampler, frit_candidates *candidates);

bool frit_temperature_is_dynamic(const frit_sampler_options *options);

// Adds n occurrences of a token to the penalties' window, unless the penalties leave it out. -1: not known yet.
void frit_sampler_count(frit_sampler *sampler, frit_token token, int n);
// Puts a token at the end of the penalties' window.
void frit_sampler_remember(frit_sampler *sampler, frit_token token);

// Sets the stages that run, in order (order.c). FRIT_E_INVALID for unknown or repeated names and letters.
frit_status frit_sampler_order(frit_sampler *sampler);
frit_status frit_sampler_check_names(const char *names);   // checks the option `samplers`

frit_status frit_dry_new(frit_sampler *sampler);   // allocates the stage's state if it is on
void frit_dry_free(struct frit_dry *dry);
void frit_dry_reset(struct frit_dry *dry);
frit_status frit_dry_accept(frit_sampler *sampler, frit_token token);

// FRIT_E_INVALID for values outside their rows' ranges, unknown stages and biases; FRIT_E_MEMORY. `texts` may be NULL.
frit_status frit_sampler_create_with(frit_sampler **out, int32_t n_vocab, const frit_sampler_texts *texts,
                                     const frit_sampler_options *options);
// frit_sampler_create_with without texts.
frit_status frit_sampler_create(frit_sampler **out, int32_t n_vocab, const frit_sampler_options *options);

// True if the chain exists as a pick: no custom stage, and the default order.
bool frit_sampler_is_pick(const frit_sampler *sampler);
// Makes the pick of the next token, with row 0 and no log-probabilities. Appends to the lists, which may fail with
// FRIT_E_MEMORY.
frit_status frit_sampler_add_pick(const frit_sampler *sampler, frit_pick_lists *lists, frit_pick *pick);
// True if a pick that was made earlier has the counts of the sampler's present window, of which there are n.
bool frit_sampler_has_counts(const frit_sampler *sampler, const frit_pick_lists *lists, const frit_pick *pick,
                             int32_t n);
// Accepts a token provisionally; the sampler must be a pick. frit_sampler_go_back undoes the last tried token. False
// without a change if the token does not fit the grammar.
typedef struct frit_sampler_mark {
    bool is_accepted;   // false: the token was only counted
    frit_token token, forgotten;
    int32_t n_history, history_at;
    uint64_t position;
    frit_str forced_left;
} frit_sampler_mark;
bool frit_sampler_try(frit_sampler *sampler, frit_token token, frit_sampler_mark *before);
// As frit_sampler_try, for the penalties alone: picks count the token. -1: a token that is not known yet.
void frit_sampler_try_count(frit_sampler *sampler, frit_token token, frit_sampler_mark *before);
void frit_sampler_go_back(frit_sampler *sampler, const frit_sampler_mark *before);
// Samples by the chain even if it exists as a pick.
frit_status frit_sampler_run_chain(frit_sampler *sampler, const float *logits, frit_token *token);
