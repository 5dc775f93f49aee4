// SPDX-License-Identifier: MIT
// A job's samplers: until the answer has its least number of tokens one that picks none that ends it; then the other.
#include "server/sched/worker.h"

#include <string.h>

static bool has_two(const server_job *job)
{
    return job->late_sampler && job->min_tokens > 0;
}

frit_status server_job_accept(server_job *job, frit_token token)
{
    const frit_status status = frit_sampler_accept(job->sampler, token);
    return status == FRIT_OK && has_two(job) ? frit_sampler_accept(job->late_sampler, token) : status;
}

frit_status server_job_set_grammar(server_job *job)
{
    const frit_status status = frit_sampler_set_grammar(job->sampler, job->grammar);
    return status == FRIT_OK && has_two(job) ? frit_sampler_set_grammar(job->late_sampler, job->grammar) : status;
}

void server_job_change_sampler(server_job *job)
{
    if (!has_two(job) || job->usage.n_answer < (size_t)job->min_tokens) return;
    frit_sampler *first = job->sampler;   // lives as long as the job: the session may still know it
    job->sampler = job->late_sampler;
    job->late_sampler = first;
    job->min_tokens = 0;
}

bool server_job_is_late(const server_job *job, double now)
{
    if (server_job_is_overdue(job, now)) return true;
    return job->max_ms > 0 && 1e3 * (now - job->times.first) > job->max_ms &&
           memchr(job->answer.text, '\n', job->answer.n) != NULL;
}

void server_refuse_step(server_problem *problem, frit_status status)
{
    static const char none_left[] = "no token is left";
    if (status == FRIT_E_INVALID && strncmp(frit_error(), none_left, sizeof none_left - 1) == 0)
        server_refuse(
            problem, 400, "invalid_value", NULL,
            "no token is left: the model's vocabulary cannot write what the request's grammar or biases allow");
    else if (status == FRIT_E_UNSUPPORTED)   // a limit of the grammar, that only the text shows
        server_refuse(problem, 400, "unsupported_value", NULL, "%s", frit_error());
    else
        server_refuse_status(problem, 500, NULL, status);
}
