// SPDX-License-Identifier: MIT
// Makes and frees jobs, and notes log-probabilities and ids of their tokens.
#include "server/sched/job.h"

#include "common/grow.h"

#include <stdlib.h>

server_job *server_job_new(void)
{
    server_job *job = calloc(1, sizeof *job);
    if (!job) return NULL;
    job->n_owners = 1;
    job->report.n_top = job->request.max_tokens = -1;
    job->client.socket = -1;
    return job;
}

void server_job_free(server_job *job)
{
    while (job->group.further) {
        server_job *further = job->group.further;
        job->group.further = further->group.next;
        server_job_free(further);
    }
    if (job->reply.free_ctx) job->reply.free_ctx(job->reply.ctx);
    server_key_unref(job->caller.key);
    app_answer_deinit(&job->answer);
    server_send_queue_free(&job->reply.queue);
    server_send_queue_free(&job->final.queue);
    server_replay_unref(job->reply.replay);
    frit_sampler_free(job->request.sampler);
    frit_sampler_free(job->request.late_sampler);
    frit_grammar_free(job->grammar.rules);
    frit_turn_free(job->request.turn);
    server_pictures_free(job->request.pictures);
    free(job->report.logprobs);
    free(job->report.ids);
    free(job->report.prompt_logprobs);
    free(job->request.scales);
    free(job->request.salt);
    free(job->request.prediction);
    free(job->request.prompt);
    free(job);
}

static frit_status note(server_logprobs *logprobs, const float *logits, size_t n_vocab, int32_t n_top, frit_token token)
{
    logprobs->picked.token = token;
    logprobs->n_top = (size_t)n_top < n_vocab ? n_top : (int32_t)n_vocab;
    const frit_status status = frit_logprobs_of(logits, n_vocab, &logprobs->picked, 1);
    return status == FRIT_OK ? frit_logprobs_top(logits, n_vocab, logprobs->top, (size_t)logprobs->n_top) : status;
}

bool server_job_has_rows(const server_job *job)
{
    return (job->report.echoes && job->report.n_top >= 0) || job->report.wants_prompt_logprobs;
}

int32_t server_job_prompt_top(const server_job *job)
{
    return job->report.echoes && job->report.n_top > job->report.n_prompt_top ? job->report.n_top
                                                                              : job->report.n_prompt_top;
}

static int32_t rank_of(const float *logits, size_t n_vocab, frit_token token)
{
    int32_t rank = 1;
    for (size_t i = 0; i < n_vocab; i++) rank += logits[i] > logits[token];
    return rank;
}

void server_job_note_row(void *ctx, size_t i, const float *values, size_t n)
{
    server_job *job = ctx;
    if (i + 1 >= job->request.n_prompt) return;
    server_logprobs *logprobs = &job->report.prompt_logprobs[i + 1];
    note(logprobs, values, n, server_job_prompt_top(job), job->request.prompt[i + 1]);
    if (job->report.wants_prompt_logprobs) logprobs->rank = rank_of(values, n, job->request.prompt[i + 1]);
}

frit_status server_job_note_logprobs(server_job *job, const frit_picked *picked)
{
    if (!APP_GROW(job->report.logprobs, job->report.logprobs_capacity, job->report.n_logprobs + 1))
        return FRIT_E_MEMORY;
    server_logprobs *logprobs = &job->report.logprobs[job->report.n_logprobs++];
    logprobs->picked = (frit_logprob){picked->token, picked->logprob};
    logprobs->n_top = (int32_t)picked->n_top;
    for (size_t i = 0; i < picked->n_top; i++) logprobs->top[i] = picked->top[i];
    logprobs->at = job->answer.n;
    return FRIT_OK;
}

frit_status server_job_note_id(server_job *job, frit_token token)
{
    if (!APP_GROW(job->report.ids, job->report.ids_capacity, job->report.n_ids + 1)) return FRIT_E_MEMORY;
    job->report.ids[job->report.n_ids++] = token;
    return FRIT_OK;
}

void server_job_put(server_job *job, const char *bytes, size_t n)
{
    job = server_job_first(job);
    if (job->final.is_pending) {
        server_send_queue_put(&job->final.queue, bytes, n);
        return;
    }
    if (!job->reply.replay)
        server_send_queue_put(&job->reply.queue, bytes, n);
    else if (!server_replay_put(job->reply.replay, bytes, n))
        job->reply.queue.failed = true;
    job->reply.begun = job->reply.said = true;
}

server_usage server_answer_usage(const server_job *job)
{
    const server_job *first = job->group.first ? job->group.first : job;
    server_usage all = first->usage;
    for (const server_job *further = first->group.further; further; further = further->group.next) {
        all.n_answer += further->usage.n_answer;
        if (further->request.has_own_prompt)
            all.n_prompt += further->usage.n_prompt, all.n_cached += further->usage.n_cached;
        all.n_reasoning += further->usage.n_reasoning;
        all.n_accepted += further->usage.n_accepted;
        all.n_rejected += further->usage.n_rejected;
    }
    return all;
}
