// SPDX-License-Identifier: MIT
// frit/sampler.h: samplers, which choose the next token.
#ifndef FRIT_SAMPLER_H
#define FRIT_SAMPLER_H

#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

// The value of a stage option that has no field of its own in frit_sampler_options. The option's row gives its type and
// its index in `more`.
typedef union frit_sampler_value {
    float number;
    int32_t integer;
    bool flag;
} frit_sampler_value;

enum { FRIT_SAMPLER_VALUES = 32 };

typedef struct frit_candidate {   // never grows
    frit_token token;
    float logit;
} frit_candidate;

// A stage of the caller. It may change logits (-INFINITY bans a token), reorder candidates, and drop some by moving the
// others to the front. It returns the number of candidates that remain. It is called from within frit_sampler_sample
// and frit_session_next, and must not use the sampler, its session or its engine.
typedef size_t (*frit_stage_fn)(void *ctx, frit_candidate *candidates, size_t n);

// All zeros mean greedy sampling. A zero switches its stage off.
typedef struct frit_sampler_options {
    float temp;                    // 0: greedy
    int32_t top_k;                 // keep the k likeliest; 0: off
    float top_p;                   // keep the smallest set with this probability; 0 or 1: off
    float min_p;                   // drop tokens less likely than min_p times the likeliest one; 0: off
    float repeat_penalty;          // divide positive, multiply negative logits of recent tokens; 0 or 1: off
    float frequency_penalty;       // subtract per occurrence; 0: off
    float presence_penalty;        // subtract once if the token occurred; 0: off
    int32_t repeat_last_n;         // number of tokens that the penalties read; 0: 64; -1: all
    uint64_t seed;                 // the same seed gives the same text (frit_sampler_set_position)
    frit_option_list logit_bias;   // "ID=BIAS" or "ID=-inf" items
    // Order of the stages, as "penalties,top-k,temp" or "penalties;top_k;temperature". Stages that are not named are
    // off, except logit-bias, which then runs first. adaptive-p and mirostat always run last; with mirostat only
    // logit-bias, custom and temp run before it. NULL: the default order, which the help of this option lists, without
    // infill.
    const char *samplers;
    // Options of stages without a field, such as top-n-sigma; set by frit_sampler_set_option. Zero: off.
    frit_sampler_value more[FRIT_SAMPLER_VALUES];
    frit_stage_fn stage;   // runs at "custom" in `samplers`; by default after penalties and before dry
    void *stage_ctx;
    // Texts that end a repetition for DRY; empty: "\n", ":", "\"" and "*". One item "none": no text.
    frit_option_list dry_breakers;
    const char *sampler_seq;   // the order as letters, "edskypmxt", instead of `samplers`; or NULL
    uint64_t reserved[5];
} frit_sampler_options;

// Sets fields to values that the model's files recommend (GGUF's general.sampling.*, or generation_config.json of a
// folder), and leaves other fields as they are. `samplers` may be set to a text that lives as long as the model.
FRIT_API frit_status frit_sampler_recommend(const frit_model *model, frit_sampler_options *options);
// Sets one option by its name on the command line, without dashes: "top-n-sigma" to "1.5". "samplers" and "sampler-seq"
// borrow `value`; "logit-bias" and "dry-sequence-breaker" are lists, which a program sets as fields. FRIT_E_INVALID for
// unknown names, and for values that are not numbers or outside the option's range.
FRIT_API frit_status frit_sampler_set_option(frit_sampler_options *options, const char *name, const char *value);

FRIT_API frit_status frit_sampler_new(frit_sampler **out, const frit_model *model, const frit_sampler_options *options);
FRIT_API void frit_sampler_free(frit_sampler *sampler);
// Picks a token from logits [n_vocab], and does not change the sampler: a second call with the same logits picks the
// same token. frit_sampler_accept records tokens, including those of the prompt. FRIT_E_INVALID if a logit is NaN or
// +infinity, if all are -infinity, or if a stage of the caller returns no candidates, more than it was given, ids
// outside the vocabulary, NaN or +infinity.
FRIT_API frit_status frit_sampler_sample(frit_sampler *sampler, const float *logits, frit_token *token);
FRIT_API frit_status frit_sampler_accept(frit_sampler *sampler, frit_token token);
FRIT_API frit_status frit_sampler_reset(frit_sampler *sampler);   // forgets accepted tokens; position 0
// Sets the position of the next token. The random number of a pick is a function of the seed and the token's position,
// so sampling again at the same position from the same logits gives the same token. frit_sampler_accept adds 1 to the
// position, and frit_sampler_reset sets it to 0. frit_session_next uses the length of the session instead.
FRIT_API frit_status frit_sampler_set_position(frit_sampler *sampler, uint64_t position);

// Token healing. The end of a prompt may cut a text that the model would write as one token ("http" of "http://").
// Drops last tokens of the prompt if some token's text begins with their text and is longer; the caller pushes the
// first *n_keep. The sampler then first picks tokens that spell the text of the dropped ones. Special tokens and the
// first token are never dropped. Call it after accepting the prompt; frit_sampler_reset ends it. FRIT_E_UNSUPPORTED if
// the model has no vocabulary. The model must outlive the sampler.
FRIT_API frit_status frit_sampler_heal(frit_sampler *sampler, const frit_model *model, const frit_token *tokens,
                                       size_t n_tokens, size_t *n_keep);

#ifdef __cplusplus
}
#endif
#endif
