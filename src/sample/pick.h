// SPDX-License-Identifier: MIT
// sample/pick.h: sampling as data. A pick describes how to choose one token from one row of logits; a backend runs it
// where the logits are (pick_runner.h on CPUs). It has no pointers: arrays are in lists that all picks of a step share,
// so picks can be copied to a device.
//
//     row -> mask -> biases -> penalties -> top-n-sigma -> top-k -> top-p -> min-p -> temperature -> draw -> token
//
// The chain of stages (sampler.h) is the definition: a pick gives the token that the chain gives. frit_sampler_add_pick
// makes a pick of a sampler whose chain allows it.
//
// A draft of n tokens is verified by n + 1 picks of consecutive rows, of which the first has n_drafts = n. Pick i
// chooses the token after i drafts. Drafts are accepted as long as they equal the picked tokens; later picks are
// unused.
#pragma once
#include "base/status.h"

enum { FRIT_PICK_MAX_TOP = 256 };   // most log-probabilities of a pick

typedef struct frit_pick {
    int32_t row;     // index in the step's logits, unique among the picks of a step
    int32_t top_k;   // 0: off; 0 also switches the fields below off
    float temp;      // 0: the likeliest token
    float top_p, min_p, top_n_sigma;
    float repeat, frequency, presence;   // penalties for the tokens in `counts`
    int32_t first_bias, n_biases;        // in frit_pick_lists.biases
    int32_t first_count, n_counts;       // in frit_pick_lists.counts
    int32_t mask;                        // index in frit_pick_lists.masks; -1: none
    int32_t n_top;                       // number of likeliest tokens with log-probabilities
    int32_t first_top;                   // their index in frit_pick_lists.tops; -1: no log-probability at all
    int32_t first_draft, n_drafts;       // in frit_pick_lists.drafts; n_drafts 0: no verification
    uint64_t seed, position;             // select the random number
} frit_pick;

// Occurrences of a token within the penalties' window; 0: the token has no penalty, however often it occurs. The last
// count of a pick may be of a token that is not known yet: then `token` is ~i, for the token of pick i of the previous
// step. frit_pick_resolve adds it to the counts once it is known.
typedef struct frit_pick_count {
    frit_token token;
    uint32_t count;
} frit_pick_count;

typedef struct frit_pick_lists {
    int32_t n_vocab;
    frit_candidate *biases;    // added to logits, in this order
    frit_pick_count *counts;   // each token once in a pick, apart from counts of 0
    uint32_t *masks;           // [n_masks, frit_pick_mask_words(n_vocab)]: bit t % 32 of word t / 32: t may be picked
    frit_token *drafts;
    frit_logprob *tops;   // results
    float *saved;         // scratch [n_biases + n_counts]
    int32_t n_biases, n_counts, n_masks, n_drafts, n_tops;
    size_t biases_capacity, counts_capacity, masks_capacity, drafts_capacity, tops_capacity, saved_capacity;
} frit_pick_lists;

typedef enum frit_pick_status {
    FRIT_PICK_DONE,
    FRIT_PICK_NOT_FINITE,   // a logit is NaN or +infinity
    FRIT_PICK_EMPTY,        // all logits are -infinity
} frit_pick_status;

typedef struct frit_picked_token {
    frit_token token;   // verification: the token after the accepted drafts
    frit_pick_status status;
    int32_t n_accepted;   // accepted drafts
    float logprob;        // of the token, from the unchanged logits
} frit_picked_token;

static inline int32_t frit_pick_mask_words(int32_t n_vocab)
{
    return n_vocab / 32 + (n_vocab % 32 != 0);
}

typedef struct frit_pick_room {
    int32_t n_biases, n_counts, n_masks, n_drafts, n_tops;
} frit_pick_room;

// Makes room for more items of each list. FRIT_E_MEMORY.
frit_status frit_pick_lists_reserve(frit_pick_lists *lists, const frit_pick_room *room);
void frit_pick_lists_clear(frit_pick_lists *lists);   // keeps the memory
void frit_pick_lists_free(frit_pick_lists *lists);
// Copies the items of a pick without drafts from the lists `from` to `to`, which has room. Returns the pick for `to`.
frit_pick frit_pick_append(frit_pick_lists *to, const frit_pick_lists *from, const frit_pick *pick);
// The pick's count of a token that is not known yet, or NULL.
static inline frit_pick_count *frit_pick_unknown(const frit_pick_lists *lists, const frit_pick *pick)
{
    if (pick->n_counts == 0) return NULL;
    frit_pick_count *last = &lists->counts[pick->first_count + pick->n_counts - 1];
    return last->token < 0 ? last : NULL;
}

// Sets the token that was not known to the pick. Does nothing if the pick knows all tokens.
void frit_pick_resolve(const frit_pick_lists *lists, const frit_pick *pick, frit_token token);
// Converts a status: FRIT_OK, or FRIT_E_INVALID with an error.
frit_status frit_pick_check(frit_pick_status status);
// Called after all picks of a step: sets the accepted drafts of verifications.
void frit_pick_verify(const frit_pick *picks, int32_t n_picks, const frit_pick_lists *lists, frit_picked_token *picked);
