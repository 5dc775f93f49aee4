// SPDX-License-Identifier: MIT
// Counts and times a job for the metrics, and checks its time limits.
#include "server/sched/job_metrics.h"

#include "server/sched/fair_queue.h"

#include <string.h>

static void note_first(const server_job *job, server_metrics *metrics)
{
    const server_times *t = &job->times;
    server_metrics_count(metrics, SERVER_COUNT_PROMPT_TOKENS, job->usage.n_prompt);
    server_metrics_count(metrics, SERVER_COUNT_CACHE_QUERIES, job->usage.n_prompt);
    server_metrics_count(metrics, SERVER_COUNT_CACHE_HITS, job->usage.n_cached);
    server_metrics_observe(metrics, SERVER_TIME_TO_FIRST_TOKEN, t->first - t->submitted);
    server_metrics_observe(metrics, SERVER_TIME_QUEUED, t->started - t->submitted);
    server_metrics_observe(metrics, SERVER_TIME_PREFILL, t->first - t->started);
}

void server_job_note_token(server_job *job, server_metrics *metrics, double now)
{
    const bool is_first = job->times.first == 0;
    if (is_first)
        job->times.first = now;
    else
        server_metrics_observe(metrics, SERVER_TIME_BETWEEN_TOKENS, now - job->times.latest);
    job->times.latest = now;
    if (is_first) note_first(job, metrics);
    server_metrics_count(metrics, SERVER_COUNT_ANSWER_TOKENS, 1);
    server_job_charge(job, 0, 1);
}

void server_job_note_end(const server_job *job, server_metrics *metrics, server_finish finish)
{
    const server_times *t = &job->times;
    const server_usage *usage = &job->usage;
    server_metrics_count(metrics, finish == SERVER_FINISH_LENGTH ? SERVER_COUNT_CUT : SERVER_COUNT_STOPPED, 1);
    server_metrics_count(metrics, SERVER_COUNT_ACCEPTED_DRAFTS, usage->n_accepted);
    server_metrics_count(metrics, SERVER_COUNT_DRAFTS, usage->n_accepted + usage->n_rejected);
    server_metrics_observe(metrics, SERVER_PROMPT_TOKENS, (double)usage->n_prompt);
    server_metrics_observe(metrics, SERVER_ANSWER_TOKENS, (double)usage->n_answer);
    if (t->first == 0) return;   // no token was requested
    server_metrics_observe(metrics, SERVER_TIME_WHOLE, t->latest - t->submitted);
    server_metrics_observe(metrics, SERVER_TIME_DECODE, t->latest - t->first);
    server_metrics_observe(metrics, SERVER_TIME_INFERENCE, t->latest - t->started);
    if (usage->n_answer < 2) return;
    server_metrics_observe(metrics, SERVER_TIME_PER_TOKEN, (t->latest - t->first) / (double)(usage->n_answer - 1));
}

bool server_job_is_overdue(const server_job *job, double now)
{
    const int32_t most = job->group.first ? job->group.first->request.max_seconds : job->request.max_seconds;
    return most > 0 && now - job->times.started >= most;
}

bool server_job_is_late(const server_job *job, double now)
{
    if (server_job_is_overdue(job, now)) return true;
    return job->request.max_ms > 0 && 1e3 * (now - job->times.first) > job->request.max_ms &&
           memchr(job->answer.text, '\n', job->answer.n) != NULL;
}
