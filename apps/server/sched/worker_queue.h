// SPDX-License-Identifier: MIT
// server/sched/worker_queue.h: the queue of jobs, and the end of jobs that wait or run. With the worker's lock held.
#pragma once
#include "server/sched/worker_state.h"

// Put a job at the end of the queue, and take the job at a link out of it.
void server_worker_link(server_worker *worker, server_job *job);
void server_worker_unlink(server_worker *worker, server_job **at);
void server_job_unref(server_job *job);
void server_job_fail(server_job *job, const server_problem *problem);

// Takes the session from the slot's job, which continues later.
void server_worker_leave_slot(server_worker *worker, server_slot *slot);
// Takes the session from the slot's job, which needs none any more.
void server_worker_rest_slot(server_worker *worker, server_slot *slot);
// Ends one answer of a request. The request ends with its last answer, or fails with the first answer that fails.
// `problem`: NULL: the answer is complete.
void server_worker_end_answer(server_worker *worker, server_job *job, const server_problem *problem);
// Ends the slot's answer and frees its session.
void server_worker_finish_slot(server_worker *worker, server_slot *slot, const server_problem *problem);

// Fails the jobs in the queue with status 503, but for work that has begun and further answers of a running request.
void server_worker_fail_waiting(server_worker *worker);
// Fails all jobs with status 503.
void server_worker_cut_all(server_worker *worker);
// Ends the jobs whose clients are gone.
void server_worker_drop_gone(server_worker *worker);
