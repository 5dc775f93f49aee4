// SPDX-License-Identifier: MIT
// server/sched/fair_queue.h: chooses the waiting job that gets the next session. With the worker's lock held.
//
// Lower priority numbers go first. Among equal priorities the caller goes first that was served the fewest tokens,
// divided by the weight of its key (the virtual token counter of Sheng et al., "Fairness in Serving Large Language
// Models", 2024). A caller's own requests keep their order. They alternate with further answers of its running
// requests, so that a request for many answers does not hold up requests for one. A caller that comes back after a time
// without requests is raised to about the least count of the other callers: it gets no credit for the time away.
#pragma once
#include "server/sched/worker.h"

// The link to the next job in a queue that is not empty. `further_first`: among equals, further answers go before
// waiting requests.
server_job **server_fair_queue_next(server_job **first, bool further_first);
// True if the job's caller has a key, and no request in the queue.
bool server_fair_queue_is_first(const server_job *first, const server_job *job);
// Raises the caller of a job that joins the queue. `level`: the most that any caller was served, used if there are no
// other callers.
void server_fair_queue_join(const server_slots *slots, const server_job *first, server_job *job, double level);
// Gives the session of a job that begins the job's weight and priority within steps.
void server_fair_queue_apply(const server_job *job, frit_session *session);
// Counts tokens that the job used, for its caller.
void server_job_charge(server_job *job, size_t n_prompt, size_t n_answer);
// Reserves the most tokens that the request may use, within the limits of the caller's key. False with a problem of
// status 429: the caller has no tokens left.
bool server_job_reserve(server_job *job, size_t n_tokens, server_problem *problem);
// Ends the accounting of a request: gives back the unused reserved tokens, and counts it as active no longer.
void server_job_settle(server_job *job);
// Sets the job's caller, a new reference, and the key's priority if the request has none.
void server_job_set_caller(server_job *job, server_key *caller);
