// SPDX-License-Identifier: MIT
// engine/sched/late.h: late picks: a step computes the logits of a row before the host knows what may be picked from
// them.
//
// A grammar's mask depends on the token before it, which the host knows only when the step before has run. The logits
// do not depend on the mask. So a step runs the row without a pick, and while it runs, the host reads the token before,
// makes the pick of the sampler (frit_session_complete_pick) and submits it to the device, which picks after the step
// and before the next one:
//
//     device    step n | step n + 1, row of a late pick .... | late picks | step n + 2
//     host             | token n, accept, mask, late picks, submits step n + 2 | waits for step n + 1
//
// The tokens of late picks are numbered after the other picks of the step, and the next step finds them on the device
// too. The logits are there until the next step begins. If that is submitted before the pick was made, for example
// because the caller did not take token n in time, the pick is lost: the row runs again, in a step that has the pick.
#pragma once
#include "engine/engine.h"

// True if a pick of the sampler depends on the session's last token, and this is not known.
bool frit_late_is_needed(const frit_session *session, const frit_sampler *sampler);
// True if picks of the session may be late: the device of the last step can pick after a step, and a row may run again.
bool frit_late_is_possible(const frit_session *session);
// The late pick of the request, the session's only one, has been made.
frit_status frit_late_made(frit_session *session, frit_pick_request *request);
// Submits the late picks of the last step that have been made. If the step was waited for, waits for them too, and
// delivers their results.
frit_status frit_late_submit(frit_engine *engine);
// Another step follows the last one, whose late picks that have not been made are lost.
void frit_late_lose(frit_engine *engine);
// Resets the request of a row that is queued again because its step failed.
void frit_late_requeue(frit_pick_request *request);
void frit_late_free(frit_late_picks *late);   // the memory
