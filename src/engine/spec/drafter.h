// SPDX-License-Identifier: MIT
// engine/spec/drafter.h: drafts by a smaller model. It has a session of its own, with the tokens of the session that it
// drafts for, and samples with that one's sampler: the same draws, so that both models pick the same token as often as
// their probabilities are alike.
#pragma once
#include "engine/spec/ngrams.h"
#include "engine/sched/schedule.h"
#include "engine/spec/draft_budget.h"

typedef struct frit_drafting {   // what a drafter is asked for
    const frit_session *session;
    frit_sampler *sampler;   // is left as it was
    frit_token *tokens;
    int32_t most;
    bool always;   // whether it pays or not
} frit_drafting;

typedef struct frit_drafter {
    frit_session *session;
    float min_p;
    frit_draft_rates rates;            // of this session
    int8_t classes[FRIT_MAX_DRAFTS];   // of the last drafts
    int32_t n;                         // of these
    bool follows;                      // its session gets a longer text, in parts
    size_t n_skipped;                  // tokens of the text that its session lacks at the beginning
    // While it drafts:
    frit_drafting job;
    struct frit_drafter *next;   // that drafts with it
    bool goes_on;
    frit_status status;
    double reached, n_tokens;   // how likely all drafts so far are right, and how many are on average
    uint64_t position;          // the sampler's before
    frit_sampler_mark marks[FRIT_MAX_DRAFTS];
} frit_drafter;

// Runs the engine's first steps, where none has run. FRIT_E_INVALID for a model whose tokens are others than the
// session's, or a layer for multi-token prediction of another model.
frit_status frit_drafter_init(frit_drafter *drafter, frit_session *session, frit_engine *engine, float min_p);
void frit_drafter_free(frit_drafter *drafter);
// All drafters in the list, with sessions of one engine and draft models on one engine, do their jobs in shared steps:
// drafts after the session's last token, fewer where they do not pay. Each has its number in `n`, and a status.
void frit_drafters_run(frit_drafter *first);
// So many of the last drafts were right, of those that a step verified.
void frit_drafter_count_right(frit_drafter *drafter, int32_t n_right);
