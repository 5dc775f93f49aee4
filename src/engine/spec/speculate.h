// SPDX-License-Identifier: MIT
// engine/spec/speculate.h: guesses of the tokens that a session's sampler will pick. They run in the step of the last
// token, which picks after each of them, and are kept while they are what was picked: the text is the one without
// guesses.
//
// How many are worth it follows from two measurements: how often guesses of this kind were right, whether they ran or
// not, and how much longer a step takes with more rows (step_cost.c).
#pragma once
#include "engine/spec/drafter.h"

enum { FRIT_MATCH_CLASSES = 6 };   // by the length of the match; the last: of what a grammar forces

enum { FRIT_MATCH_FORCED = 1 << 16 };
typedef struct frit_drafted {
    size_t at;            // guessed after so many tokens of the session
    int32_t n, n_match;   // n_match: FRIT_MATCH_FORCED of what a grammar forces
    frit_token tokens[FRIT_MAX_DRAFTS];
} frit_drafted;

struct frit_speculation {
    bool looks_up, always;
    int32_t most;   // drafts of a step
    frit_ngrams ngrams;
    frit_drafter drafter;   // its session is NULL: none
    frit_drafted draft;
    int32_t n_drafts;                                                  // of the guess that run
    int32_t wants;                                                     // so many from the draft model
    double n_expected;                                                 // drafts that are right on average
    double mask_ns;                                                    // of each draft, where a grammar constrains
    bool by_drafter;                                                   // the guess
    double n_right[FRIT_MATCH_CLASSES], n_tried[FRIT_MATCH_CLASSES];   // older ones count less
    frit_speculation_info info;
};

void frit_speculation_free(struct frit_speculation *speculation);
frit_status frit_speculation_fork(frit_session *to, const frit_session *from);
// Whether the next token is to be known before anything runs after it: drafts will probably follow it.
bool frit_speculation_waits(frit_session *session);
// To pick after so many drafts took so long, for the masks of a grammar.
void frit_speculation_measure_masks(frit_session *session, int32_t n, double ns);
// Drafts of the session were verified.
void frit_speculation_count(frit_session *session, int32_t n_drafted, int32_t n_accepted);
