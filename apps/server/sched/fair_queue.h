// SPDX-License-Identifier: MIT
// server/sched/fair_queue.h: which of the waiting jobs gets the next session. With the worker's lock held.
//
// Requests of lower priority numbers go first. Among equals the caller goes first that was served fewest tokens,
// divided by the weight of its key (the virtual token counter of Sheng et al., "Fairness in Serving Large Language
// Models", 2024). A caller's own requests keep their order, and take turns with further answers of those that run, so
// that a request with many answers keeps none with a single one. A caller with nothing waiting or running that comes
// back is raised to about the least of the others: time away is no credit.
#pragma once
#include "server/sched/worker.h"

// The link to the next job in a queue that is not empty. parts_first: among equals further answers go first, else
// requests that wait.
server_job **server_fair_queue_next(server_job **first, bool parts_first);
// Its caller has a key, and no request in the queue.
bool server_fair_queue_is_first(const server_job *first, const server_job *job);
// `job` joins the queue: for its caller. `level`: the most that any caller was served; it holds without other callers.
void server_fair_queue_join(const server_slots *slots, const server_job *first, server_job *job, double level);
// Gives the session, within steps that all share, the weight and priority of the job, which begins.
void server_fair_queue_apply(const server_job *job, frit_session *session);
// Counts tokens that the job has used for its caller.
void server_job_charge(server_job *job, size_t n_prompt, size_t n_answer);
// The most tokens that the request may use, so that others of its caller leave them to it; given back when it is
// settled. False with 429: the caller has none left.
bool server_job_reserve(server_job *job, size_t n_tokens, server_problem *problem);
// The request is over: what it reserved and did not use is there again, and it is not counted any more.
void server_job_settle(server_job *job);
// Gives the job its caller, retained, and the priority of the caller's requests if it has none of its own.
void server_job_set_caller(server_job *job, server_key *caller);
