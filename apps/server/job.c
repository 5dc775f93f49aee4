// SPDX-License-Identifier: MIT
// Making and freeing a job.
#include "server/worker.h"

#include <stdlib.h>

server_job *server_job_new(void)
{
    server_job *job = calloc(1, sizeof *job);
    if (!job) return NULL;
    job->n_owners = 1;
    job->n_top = job->max_tokens = -1;
    job->socket = -1;
    return job;
}

void server_job_free(server_job *job)
{
    while (job->parts) {
        server_job *part = job->parts;
        job->parts = part->next_part;
        server_job_free(part);
    }
    if (job->free_ctx) job->free_ctx(job->ctx);
    server_key_release(job->caller);
    app_answer_free(&job->answer);
    server_outbox_free(&job->outbox);
    server_outbox_free(&job->last_words);
    server_replay_release(job->replay);
    frit_sampler_free(job->sampler);
    frit_sampler_free(job->late_sampler);
    frit_grammar_free(job->grammar);
    frit_turn_free(job->turn);
    free(job->picks);
    free(job->prompt_picks);
    free(job->scales);
    free(job->salt);
    free(job->prediction);
    free(job->prompt);
    free(job);
}
