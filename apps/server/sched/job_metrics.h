// SPDX-License-Identifier: MIT
// server/sched/job_metrics.h: time limits of a job, and what the metrics learn from it.
#pragma once
#include "server/ops/metrics.h"
#include "server/sched/job.h"

// Counts the next token of the answer, or the end of the answer. `metrics` may be NULL.
void server_job_note_token(server_job *job, server_metrics *metrics, double now);
void server_job_note_end(const server_job *job, server_metrics *metrics, server_finish finish);
// True if the answer has had its time: max_seconds, or max_ms.
bool server_job_is_late(const server_job *job, double now);
// True if the job has had its session for max_seconds.
bool server_job_is_overdue(const server_job *job, double now);
