// SPDX-License-Identifier: MIT
// Uses the two samplers of a job, and explains a failed step.
#include "server/sched/job_sampler.h"

#include <string.h>

bool server_job_has_two_samplers(const server_job *job)
{
    return job->request.late_sampler && job->request.min_tokens > 0;
}

frit_status server_job_accept(server_job *job, frit_token token)
{
    const frit_status status = frit_sampler_accept(job->request.sampler, token);
    return status == FRIT_OK && server_job_has_two_samplers(job) ? frit_sampler_accept(job->request.late_sampler, token)
                                                                 : status;
}

frit_status server_job_set_grammar(server_job *job)
{
    const frit_status status = frit_sampler_set_grammar(job->request.sampler, job->grammar.rules);
    return status == FRIT_OK && server_job_has_two_samplers(job)
               ? frit_sampler_set_grammar(job->request.late_sampler, job->grammar.rules)
               : status;
}

void server_job_change_sampler(server_job *job)
{
    if (!server_job_has_two_samplers(job) || job->usage.n_answer < (size_t)job->request.min_tokens) return;
    frit_sampler *first = job->request.sampler;   // kept as long as the job, as the session may still use it
    job->request.sampler = job->request.late_sampler;
    job->request.late_sampler = first;
    job->request.min_tokens = 0;
}

void server_refuse_step(server_problem *problem, frit_status status)
{
    const char *code = frit_error_code();
    if (status == FRIT_E_INVALID && code && strcmp(code, FRIT_CODE_NO_TOKEN_LEFT) == 0)
        server_refuse(
            problem, 400, "invalid_value", NULL,
            "no token is left: the model's vocabulary cannot write what the request's grammar or biases allow");
    else if (status == FRIT_E_UNSUPPORTED)   // a limit of the grammar that only shows while it is used
        server_refuse(problem, 400, "unsupported_value", NULL, "%s", frit_error());
    else
        server_refuse_status(problem, 500, NULL, status);
}
