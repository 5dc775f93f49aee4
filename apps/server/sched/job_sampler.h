// SPDX-License-Identifier: MIT
// server/sched/job_sampler.h: a job's samplers. The first one picks no token that ends the answer; the late one takes
// over when the answer has min_tokens tokens.
#pragma once
#include "server/sched/job.h"

// Give a known token, or the job's grammar, to all samplers of the job.
frit_status server_job_accept(server_job *job, frit_token token);
frit_status server_job_set_grammar(server_job *job);
// True while the first sampler picks and a late one waits.
bool server_job_has_two_samplers(const server_job *job);
// Changes to the late sampler if the answer is long enough.
void server_job_change_sampler(server_job *job);
// Turns the failure of a step into a problem: status 400 if the request leaves the model no token, else 500.
void server_refuse_step(server_problem *problem, frit_status status);
