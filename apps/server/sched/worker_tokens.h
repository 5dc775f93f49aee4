// SPDX-License-Identifier: MIT
// server/sched/worker_tokens.h: takes tokens of answers after a step, and wakes clients.
#pragma once
#include "server/sched/worker_state.h"

// Wakes the client, for which there is news. With the worker's lock held.
void server_job_wake(server_job *job);
// Like server_job_wake, but if `may_wait`, clients are woken at most every few milliseconds. A job whose client was
// not woken has client.owes_wake, and the function is called for it again before the next step.
void server_job_wake_later(server_job *job, bool may_wait);
// The most tokens that the answer may have.
size_t server_worker_room(const server_worker *worker, const server_job *job);
// True if the job's session has its next token, or logits to sample it from.
bool server_worker_has_token(const server_job *job);
// Takes the next tokens of a job's session after a step; *ended if the answer ends with one.
frit_status server_worker_take_tokens(server_worker *worker, server_job *job, bool *ended, server_finish *finish);
