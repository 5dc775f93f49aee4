// SPDX-License-Identifier: MIT
// Making and freeing a job, and what it notes of its tokens.
#include "server/sched/worker.h"

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
    free(job->ids);
    free(job->prompt_picks);
    free(job->scales);
    free(job->salt);
    free(job->prediction);
    free(job->prompt);
    free(job);
}

static frit_status note(server_pick *pick, const float *logits, size_t n_vocab, int32_t n_top, frit_token token)
{
    pick->picked.token = token;
    pick->n_top = (size_t)n_top < n_vocab ? n_top : (int32_t)n_vocab;
    const frit_status status = frit_logprobs_of(logits, n_vocab, &pick->picked, 1);
    return status == FRIT_OK ? frit_logprobs_top(logits, n_vocab, pick->top, (size_t)pick->n_top) : status;
}

bool server_job_has_rows(const server_job *job)
{
    return (job->echoes && job->n_top >= 0) || job->wants_prompt_picks;
}

int32_t server_job_prompt_top(const server_job *job)
{
    return job->echoes && job->n_top > job->n_prompt_top ? job->n_top : job->n_prompt_top;
}

static int32_t rank_of(const float *logits, size_t n_vocab, frit_token token)
{
    int32_t rank = 1;
    for (size_t i = 0; i < n_vocab; i++) rank += logits[i] > logits[token];
    return rank;
}

// Row i says how likely token i + 1 was. Logits that are not finite end the session.
void server_job_note_row(void *ctx, size_t i, const float *values, size_t n)
{
    server_job *job = ctx;
    if (i + 1 >= job->n_prompt) return;
    server_pick *pick = &job->prompt_picks[i + 1];
    note(pick, values, n, server_job_prompt_top(job), job->prompt[i + 1]);
    if (job->wants_prompt_picks) pick->rank = rank_of(values, n, job->prompt[i + 1]);
}

frit_status server_job_note_pick(server_job *job, const frit_picked *picked)
{
    if (job->n_picks == job->picks_capacity) {
        size_t capacity = job->picks_capacity ? 2 * job->picks_capacity : 64;
        server_pick *picks = realloc(job->picks, capacity * sizeof *picks);
        if (!picks) return FRIT_E_MEMORY;
        job->picks = picks;
        job->picks_capacity = capacity;
    }
    server_pick *pick = &job->picks[job->n_picks++];
    pick->picked = (frit_logprob){picked->token, picked->logprob};
    pick->n_top = (int32_t)picked->n_top;
    for (size_t i = 0; i < picked->n_top; i++) pick->top[i] = picked->top[i];
    pick->at = job->answer.n;
    return FRIT_OK;
}

frit_status server_job_note_id(server_job *job, frit_token token)
{
    if (job->n_ids == job->ids_capacity) {
        const size_t capacity = job->ids_capacity ? 2 * job->ids_capacity : 64;
        frit_token *ids = realloc(job->ids, capacity * sizeof *ids);
        if (!ids) return FRIT_E_MEMORY;
        job->ids = ids;
        job->ids_capacity = capacity;
    }
    job->ids[job->n_ids++] = token;
    return FRIT_OK;
}
