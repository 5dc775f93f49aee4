// SPDX-License-Identifier: MIT
// Tokens that a grammar forces. If a mask leaves one token, every sampler picks it, whatever the logits. It is queued
// at once and runs in one step with the tokens around it; the row before it needs no logits.
//
// Text that a grammar forces is not enough for this: most text can be cut into tokens in several ways, and the model
// chooses among them. Tokens of such text are drafts (speculate.c).
#include "engine/engine.h"

// True if another token can be queued so that all queued tokens are decode rows of one step.
static bool has_room(const frit_session *session)
{
    enum { MOST = 32 };   // queued tokens
    const frit_engine *engine = session->engine;
    const size_t n = session->n_tokens, n_queued = n - session->n_done;
    const bool is_full = n == (size_t)engine->n_ctx && !session->shift.on;
    const size_t prefill = (size_t)engine->rows.least[FRIT_ROWS_PREFILL];
    return !is_full && n_queued > 0 && n_queued + 1 < prefill && n_queued < MOST && n_queued < (size_t)engine->n_batch;
}

static bool may_be_forced(const frit_session *session, const frit_sampler *sampler)
{
    return sampler->constraint && sampler->is_pick && sampler->n_biases == 0 &&
           sampler->n_vocab == session->engine->hp.n_vocab && session->failure.status == FRIT_OK &&
           session->pick.n == 0 && session->results.needs_logits && !session->engine->hp.is_bidirectional &&
           session->tokens[session->n_tokens - 1] >= 0;
}

frit_status frit_session_push_forced(frit_session *session, frit_sampler *sampler, frit_token *token)
{
    FRIT_REQUIRE(token);
    *token = -1;
    FRIT_REQUIRE(session);
    FRIT_REQUIRE(sampler);
    FRIT_TRY(frit_session_check_usable(session));
    frit_token only;
    if (!has_room(session) || !may_be_forced(session, sampler)) return FRIT_OK;
    FRIT_TRY(frit_constraint_only(sampler->constraint, &only));
    if (only < 0) return FRIT_OK;
    if (session->n_tokens - session->n_done == 1) session->pick.n_forced = 0;
    FRIT_TRY(frit_session_push(session, &only, 1, NULL));
    session->pick.n_forced++;
    *token = only;
    return FRIT_OK;
}
