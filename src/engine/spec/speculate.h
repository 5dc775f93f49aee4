// SPDX-License-Identifier: MIT
// engine/spec/speculate.h: drafts, tokens that a session's sampler will probably pick. They run in the step of the last
// token, which picks after each of them, and stay while they are what was picked: the text is the same as without
// drafts.
//
// The number of drafts follows from two measurements: how often drafts of the same kind were right, whether or not they
// were verified, and how much longer a step takes with more rows (sched/step_cost.h).
#pragma once
#include "engine/spec/drafter.h"

enum { FRIT_MATCH_CLASSES = 6 };   // of drafts, by the length of the match; the last: forced by a grammar

enum { FRIT_MATCH_FORCED = 1 << 16 };
typedef struct frit_drafted {
    size_t at;            // tokens of the session before the drafts
    int32_t n, n_match;   // n_match: length of the match, or FRIT_MATCH_FORCED
    frit_token tokens[FRIT_MAX_DRAFTS];
} frit_drafted;

struct frit_speculation {
    bool looks_up, always;
    int32_t most;   // drafts of a step
    frit_ngrams ngrams;
    frit_drafter drafter;   // drafter.session is NULL: no draft model
    frit_drafted draft;     // the last drafts
    bool by_drafter;        // the draft model made them
    int32_t n_drafts;       // of them, those that are verified
    int32_t n_requested;    // drafts that the draft model is to make
    double n_expected;      // drafts that are right on average
    double mask_ns;         // for each draft, with a grammar
    frit_acceptance matches[FRIT_MATCH_CLASSES];
    frit_speculation_info info;
};

void frit_speculation_free(struct frit_speculation *speculation);
frit_status frit_speculation_fork(frit_session *to, const frit_session *from);
// True if the next token must be known before anything runs after it, because drafts will probably follow it.
bool frit_speculation_waits(frit_session *session);
// True if the sampler's grammar forces so much text that drafts of it gain more than the step that they wait for.
bool frit_speculation_is_forced(frit_session *session, const frit_sampler *sampler);
// Measures the time that picks after n drafts took for the masks of a grammar.
void frit_speculation_measure_masks(frit_session *session, int32_t n, double ns);
// Counts drafts of the session that were verified.
void frit_speculation_count(frit_session *session, int32_t n_drafted, int32_t n_accepted);
