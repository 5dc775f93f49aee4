// SPDX-License-Identifier: MIT
// engine/sched/ahead.h: a session that generates alone runs ahead of its caller. When frit_session_next returns, the
// step of the token that it gave is in flight. While the next call waits for that step, the step after it is in flight
// too; its token is a pick of the step before. So a device with a queue does not wait for what the caller does between
// calls.
//
// Callers do not see it. Any other use of the engine first cancels the last step: its token is queued again as if it
// had not run. The price is one step at the end of each answer, which was not needed.
//
// A session does not run ahead if something needs to know the token first (grammars, stages that learn, drafts
// that would probably pay), if it cannot go back by a token (recurrent states), or beside other sessions.
//
// Callers that serve many sessions run ahead themselves: frit_session_pick_ahead queues a session's next token before
// it is known, and frit_engine_advance submits a step after the step in flight.
#pragma once
#include "engine/engine.h"

// True if the devices of the last step work through queues, and the one with the output runs picks: further steps may
// be submitted before the step has run.
bool frit_ahead_has_queue(const frit_engine *engine);

// True if the session's last token is in flight, with the pick that this sampler would request after it.
bool frit_ahead_continues(frit_session *session, frit_sampler *sampler);
// As frit_session_next, for a session of which frit_ahead_continues is true.
frit_status frit_ahead_next(frit_session *session, frit_sampler *sampler, frit_token *token);
// Called after frit_session_next has queued a token: submits its step if that gains time.
void frit_ahead_begin(frit_session *session, frit_sampler *sampler);
// Queues the token again that runs ahead of its caller, if there is one.
void frit_ahead_cancel(frit_engine *engine);
