// SPDX-License-Identifier: MIT
// engine/spec/drafter.h: drafts by a smaller model. A draft session has the tokens of the session that it drafts for,
// and samples with its sampler and its draws, so that both models pick the same token as often as their probabilities
// agree.
#pragma once
#include "engine/spec/ngrams.h"
#include "engine/sched/schedule.h"
#include "engine/spec/draft_budget.h"

typedef struct frit_drafting {   // a request for drafts
    const frit_session *session;
    frit_sampler *sampler;   // restored afterwards
    frit_token *tokens;
    int32_t most;
    bool always;   // also drafts that are not expected to save time
} frit_drafting;

typedef struct frit_drafter {
    frit_session *session;
    float min_p;
    frit_draft_rates rates;            // of this session
    int8_t classes[FRIT_MAX_DRAFTS];   // [n]: of the last drafts
    int32_t n;
    bool follows;       // the draft session is getting a longer text, in parts
    size_t n_skipped;   // tokens at the beginning of the text that the draft session does not have
    // While it drafts:
    frit_drafting job;
    struct frit_drafter *next;   // the next drafter of the group that shares steps
    bool is_active;              // it makes another draft
    frit_status status;
    double reached, n_tokens;   // probability that all drafts so far are right, and how many are on average
    uint64_t position;          // of the sampler before
    frit_sampler_mark marks[FRIT_MAX_DRAFTS];
} frit_drafter;

// Also runs the first steps of the draft engine, if none has run. FRIT_E_INVALID for a model with other tokens than the
// session's, or a layer for multi-token prediction of another model.
frit_status frit_drafter_init(frit_drafter *drafter, frit_session *session, frit_engine *engine, float min_p);
void frit_drafter_deinit(frit_drafter *drafter);
// Runs the jobs of all drafters in the list in shared steps. Their sessions are of one engine, and their draft models
// on one engine. Each makes drafts after its session's last token, while they are expected to save time, and sets `n`
// and `status`.
void frit_drafters_run(frit_drafter *first);
// Counts how many of the last drafts, which a step verified, were right.
void frit_drafter_count_right(frit_drafter *drafter, int32_t n_right);
