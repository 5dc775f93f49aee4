// SPDX-License-Identifier: MIT
// engine/drafter.h: drafts by a smaller model. It has a session of its own, with the tokens of the session that it
// drafts for, and samples with that one's sampler: the same draws, so that both models pick the same token as often as
// their probabilities are alike.
#pragma once
#include "engine/ngrams.h"
#include "engine/session.h"

enum { FRIT_DRAFTER_CLASSES = 5 };

typedef struct frit_drafter {
    frit_session *session;
    float min_p;
    double n_right[FRIT_DRAFTER_CLASSES], n_tried[FRIT_DRAFTER_CLASSES];   // by the draft model's own probability
    int8_t classes[FRIT_MAX_DRAFTS];                                       // of the last drafts
    int32_t n;                                                             // of these
    double draft_ns;                                                       // that they took
    double lost_ns, all_ns;   // by all drafts, where this is above zero; and by all steps
} frit_drafter;

// FRIT_E_INVALID for a model whose tokens are others than the session's.
frit_status frit_drafter_init(frit_drafter *drafter, const frit_session *session, frit_engine *engine, float min_p);
void frit_drafter_free(frit_drafter *drafter);
// Drafts up to `most` tokens after the session's last one, fewer where they do not pay unless `always`. The sampler is
// left as it was.
frit_status frit_drafter_guess(frit_drafter *drafter, const frit_session *session, frit_sampler *sampler, bool always,
                               frit_token *guess, int32_t most, int32_t *n_guess);
// So many of the last drafts were right, of those that a step verified.
void frit_drafter_learn(frit_drafter *drafter, const frit_engine *engine, int32_t n_right);
