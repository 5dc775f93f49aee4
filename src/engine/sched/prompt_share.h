// SPDX-License-Identifier: MIT
// engine/sched/prompt_share.h: in which order prompts take the rows that a step has for them.
#pragma once
#include "engine/session/session.h"

// Finds out which sessions have prompts that wait, and begins a new round of frit_prompt_share_next.
void frit_prompt_share_update(frit_engine *engine, bool (*is_prompt)(const frit_session *session));
// The next session of the round whose prompt waits; NULL after the last one.
frit_session *frit_prompt_share_next(frit_engine *engine);
// Counts the rows that the session has in the step.
void frit_prompt_share_count(frit_session *session);
