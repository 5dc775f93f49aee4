// SPDX-License-Identifier: MIT
// frit/sampler.h: samplers: how the next token is chosen.
#ifndef FRIT_SAMPLER_H
#define FRIT_SAMPLER_H

#include "engine.h"

#ifdef __cplusplus
extern "C" {
#endif

// A value of a stage that has no field in frit_sampler_options. Its option row says which it is and where it lies.
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

// A stage of the caller's own. It may change logits (-INFINITY bans a token), reorder candidates, and drop some by
// moving those that stay to the front; returns how many stay. Called from within frit_sampler_sample and
// frit_session_next; it may not use the sampler, its session or engine.
typedef size_t (*frit_stage_fn)(void *ctx, frit_candidate *candidates, size_t n);

// All zeros: greedy. Zero also switches off each single stage.
typedef struct frit_sampler_options {
    float temp;                    // 0: greedy
    int32_t top_k;                 // keep the k likeliest; 0: off
    float top_p;                   // keep the smallest set with this probability; 0 or 1: off
    float min_p;                   // drop what is less likely than min_p times the likeliest; 0: off
    float repeat_penalty;          // divide positive, multiply negative logits of recent tokens; 0 or 1: off
    float frequency_penalty;       // subtract per occurrence; 0: off
    float presence_penalty;        // subtract once if it occurred; 0: off
    int32_t repeat_last_n;         // how many tokens the penalties look at; 0: 64; -1: all
    uint64_t seed;                 // the same seed gives the same text (frit_sampler_set_position)
    frit_option_list logit_bias;   // "ID=BIAS" or "ID=-inf" items
    // Order of the stages, as "penalties,top-k,temp" or "penalties;top_k;temperature"; those left out are off, but
    // logit-bias, which is the first then. adaptive-p and mirostat are always the last; with mirostat only logit-bias,
    // custom and temp run before it, whatever the order. NULL: the order that the help of this option's row lists,
    // without infill.
    const char *samplers;
    // Values of stages without a field, such as top-n-sigma: frit_sampler_set_option sets them; zero: off.
    frit_sampler_value more[FRIT_SAMPLER_VALUES];
    frit_stage_fn stage;   // runs where `samplers` says "custom": by default after the penalties, before dry
    void *stage_ctx;
    // Texts over which no repetition goes that DRY looks for; none: "\n", ":", "\"" and "*". One item "none": no text.
    frit_option_list dry_breakers;
    const char *sampler_seq;   // the order as letters, "edskypmxt", instead of `samplers`; or NULL
    uint64_t reserved[5];
} frit_sampler_options;

// Sets the fields for which the model's file recommends a value (GGUF's general.sampling.*, generation_config.json of
// folders); leaves the others. `samplers` may become a text that lives as long as the model.
FRIT_API frit_status frit_sampler_recommend(const frit_model *model, frit_sampler_options *options);
// Sets one option by its name on the command line, without dashes: "top-n-sigma" to "1.5". "samplers" and "sampler-seq"
// borrow `value`; "logit-bias" and "dry-sequence-breaker" take lists, which a program puts in the fields.
// FRIT_E_INVALID for unknown names, and for values that are no numbers or outside of the option's range.
FRIT_API frit_status frit_sampler_set_option(frit_sampler_options *options, const char *name, const char *value);

FRIT_API frit_status frit_sampler_new(frit_sampler **out, const frit_model *model, const frit_sampler_options *options);
FRIT_API void frit_sampler_free(frit_sampler *sampler);
// Picks from logits [n_vocab]; does not remember the pick: frit_sampler_accept does, for prompt tokens too. Called
// again with the same logits before anything is accepted, it picks the same token.
// FRIT_E_INVALID for logits that are NaN or +infinity, if all are -infinity, and if a stage of the caller's own leaves
// no candidates, more than it was given, ids outside the vocabulary, NaN or +infinity.
FRIT_API frit_status frit_sampler_sample(frit_sampler *sampler, const float *logits, frit_token *token);
FRIT_API frit_status frit_sampler_accept(frit_sampler *sampler, frit_token token);
FRIT_API frit_status frit_sampler_reset(frit_sampler *sampler);   // forgets accepted tokens; position 0
// The random number that decides is a function of the seed and of the token's position in its sequence, so a token
// sampled again at the same position, from the same logits, is the same. frit_sampler_sample uses the number of tokens
// accepted since the last reset, or what is set here, which accepting counts on from; frit_session_next uses the length
// of the session.
FRIT_API frit_status frit_sampler_set_position(frit_sampler *sampler, uint64_t position);

// Token healing. The end of a prompt cuts a token where its text does, and the model would often continue it
// ("http" and "://"). Takes the last tokens off again where the text of some token begins with theirs and is longer:
// *n_keep of them are to be pushed. The sampler then picks, and accepts, tokens that spell the text of the others
// before anything else. Special tokens stay, and so does the first. Call it after accepting the prompt;
// frit_sampler_reset ends it. FRIT_E_UNSUPPORTED if the model has no vocabulary. The model must outlive the sampler.
FRIT_API frit_status frit_sampler_heal(frit_sampler *sampler, const frit_model *model, const frit_token *tokens,
                                       size_t n_tokens, size_t *n_keep);

#ifdef __cplusplus
}
#endif
#endif
