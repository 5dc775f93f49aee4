// SPDX-License-Identifier: MIT
// engine/sched/ahead.h: a session that generates alone runs ahead. When frit_session_next returns, the step of the
// token that it gave is in flight, and while the next call waits for it so is the one after it, whose token is a pick
// of the step before. So a device with a queue does not wait for what the caller does with tokens.
//
// Callers do not see it. Whatever else is done with the engine takes the last step back first: its token is queued
// again as if it had not run. The price is a step at the end of each answer, which was not needed.
//
// A session does not run ahead where something needs to know the token first: penalties, grammars, stages that learn,
// drafts that would probably pay; nor where it cannot go back by a token (recurrent states), nor beside other sessions.
#pragma once
#include "engine/engine.h"

// Whether the session's last token is in flight, with what this sampler would pick after it.
bool frit_ahead_goes_on(frit_session *session, frit_sampler *sampler);
// Then: the next token, as frit_session_next.
frit_status frit_ahead_next(frit_session *session, frit_sampler *sampler, frit_token *token);
// After frit_session_next has queued a token: submits its step if that is of use.
void frit_ahead_begin(frit_session *session, frit_sampler *sampler);
