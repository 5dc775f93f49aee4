// SPDX-License-Identifier: MIT
// server/shares.h: which of the waiting jobs gets the next session. With the worker's lock held.
//
// Further answers of a request that runs go first, then requests of lower priority numbers. Among equals the caller
// goes first that was served fewest tokens, divided by the weight of its key (the virtual token counter of Sheng et
// al., "Fairness in Serving Large Language Models", 2024); a caller's own requests keep their order. A caller with
// nothing waiting or running that comes back is raised to about the least of the others: time away is no credit.
#pragma once
#include "server/worker.h"

// The link to the next job in a queue that is not empty.
server_job **server_shares_next(server_job **first);
// `job` joins the queue: for its caller. `level`: the most that any caller was served; it holds without other callers.
void server_shares_join(const server_slots *slots, const server_job *first, server_job *job, double level);
// Gives the session, within steps that all share, the weight and priority of the job, which begins.
void server_shares_apply(const server_job *job, frit_session *session);
// Gives the job its caller, retained, and the priority of the caller's requests if it has none of its own.
void server_job_set_caller(server_job *job, server_key *caller);
