// SPDX-License-Identifier: MIT
// The tokens of an answer: tokens that a step picked, accepted drafts, and tokens that a grammar forces.
#include "server/sched/worker_tokens.h"

#include "server/ops/clock.h"
#include "server/sched/job_metrics.h"
#include "server/sched/job_sampler.h"

// Waking a client takes a core from the running step, for the thread of its connection and for a local client. So
// clients are woken once for the tokens of this time; each token is an event of its own.
static const double wake_seconds = 0.005;

static void wake_at(server_job *first, double now)
{
    first->client.woke_at = now;
    first->client.owes_wake = false;
    if (first->reply.replay) server_replay_wake(first->reply.replay);
    if (!first->client.sleeps || !first->client.wake || first->client.has_left) return;
    first->client.sleeps = false;
    first->client.wake(first->client.wake_ctx);
}

void server_job_wake(server_job *job)
{
    wake_at(server_job_first(job), server_now());
}

void server_job_wake_later(server_job *job, bool may_wait)
{
    server_job *first = server_job_first(job);
    const double now = server_now();
    if (!first->reply.begun) return;
    first->client.owes_wake = true;
    if (!may_wait || now - first->client.woke_at >= wake_seconds || server_send_queue_is_full(&first->reply.queue))
        wake_at(first, now);
}

// With context shifts an answer without max_tokens ends at the trained context length, because some texts never end.
size_t server_worker_room(const server_worker *worker, const server_job *job)
{
    size_t room = (size_t)worker->n_ctx - (worker->reads ? 1 : job->request.n_prompt);
    if (worker->slots.shift.on && job->request.max_tokens >= 0) return (size_t)job->request.max_tokens;
    if (worker->slots.shift.on && (size_t)worker->n_ctx_train > room) room = (size_t)worker->n_ctx_train;
    return job->request.max_tokens >= 0 && (size_t)job->request.max_tokens < room ? (size_t)job->request.max_tokens
                                                                                  : room;
}

static void send_text(server_worker *worker, server_job *job, app_text text)
{
    if (text.n == 0) return;
    pthread_mutex_lock(&worker->lock);
    job->reply.writer->text(job, text);
    server_job_wake_later(job, worker->may_defer);
    pthread_mutex_unlock(&worker->lock);
}

// Samples from the logits. `top` has room for SERVER_MAX_TOP tokens.
static frit_status sample_logits(const server_worker *worker, server_job *job, frit_logprob *top, frit_picked *picked)
{
    const size_t n_vocab = (size_t)worker->n_vocab;
    const float *logits = frit_session_logits(job->slot->session);
    frit_shift_info shift;
    frit_session_get_shift(job->slot->session, &shift);
    frit_status status =
        frit_sampler_set_position(job->request.sampler, frit_session_length(job->slot->session) + shift.n_dropped);
    if (status == FRIT_OK) status = frit_sampler_sample(job->request.sampler, logits, &picked->token);
    if (status != FRIT_OK || job->report.n_top < 0) return status;
    frit_logprob likely = {.token = picked->token};
    picked->top = top;
    picked->n_top = (size_t)job->report.n_top;
    status = frit_logprobs_top(logits, n_vocab, top, picked->n_top);
    if (status == FRIT_OK) status = frit_logprobs_of(logits, n_vocab, &likely, 1);
    picked->logprob = likely.logprob;
    return status;
}

// Takes the token that the step picked: the one after the last token, or after the accepted drafts.
static frit_status take_picked(const server_worker *worker, server_job *job, frit_logprob *top, frit_picked *picked)
{
    const frit_status status = job->pick.is_requested ? frit_session_picked(job->slot->session, picked)
                                                      : sample_logits(worker, job, top, picked);
    if (status == FRIT_OK) job->usage.n_rejected += job->pick.n_drafts - (size_t)picked->n_accepted;
    if (job->pick.n_drafts > 0) server_metrics_count(worker->metrics, SERVER_COUNT_DRAFTED_STEPS, 1);
    job->pick.is_requested = job->pick.is_ahead;
    job->pick.is_ahead = false;
    job->pick.n_drafts = 0;
    return status;
}

// Adds a token to the answer, with its log-probability if the reply reports it; *ended if the answer ends with it.
static frit_status take_token(server_worker *worker, server_job *job, const frit_picked *picked, bool *ended,
                              server_finish *finish)
{
    app_text shown;
    frit_status status = server_job_accept(job, picked->token);
    if (status != FRIT_OK) return status;
    job->usage.n_answer++;
    const double now = server_now();
    server_job_note_token(job, worker->metrics, now);
    server_job_change_sampler(job);
    *ended = frit_token_is_end(worker->model, picked->token);
    *finish = SERVER_FINISH_STOP;
    if (*ended) return FRIT_OK;
    if (job->report.n_top >= 0) status = server_job_note_logprobs(job, picked);
    if (status == FRIT_OK && job->report.wants_ids) status = server_job_note_id(job, picked->token);
    if (status == FRIT_OK) status = app_answer_push(&job->answer, picked->token, &shown);
    if (status != FRIT_OK) return status;
    send_text(worker, job, shown);
    *ended = job->answer.stopped || job->reply.is_over || frit_sampler_is_over(job->request.sampler);
    if (*ended || (job->usage.n_answer < server_worker_room(worker, job) && !server_job_is_late(job, now)))
        return FRIT_OK;
    *ended = true;
    *finish = SERVER_FINISH_LENGTH;
    return FRIT_OK;
}

// Takes the tokens that the grammar forces. They run in the next step, so no logits and no log-probabilities exist.
static frit_status take_forced(server_worker *worker, server_job *job, bool *ended, server_finish *finish)
{
    frit_status status = FRIT_OK;
    for (frit_picked forced = {0}; job->report.n_top < 0 && status == FRIT_OK && forced.token >= 0 && !*ended;) {
        status = frit_session_push_forced(job->slot->session, job->request.sampler, &forced.token);
        if (status == FRIT_OK && forced.token >= 0) status = take_token(worker, job, &forced, ended, finish);
    }
    return status;
}

bool server_worker_has_token(const server_job *job)
{
    const frit_session *session = job->slot->session;
    return job->pick.is_requested ? frit_session_has_picked(session) : frit_session_pending(session) == 0;
}

// Queues the token, unless the session has queued it already, and the tokens that the grammar forces after it.
static frit_status push_token(server_worker *worker, server_job *job, frit_token token, bool *ended,
                              server_finish *finish)
{
    if (job->pick.is_requested) return FRIT_OK;
    const frit_status status = frit_session_push(job->slot->session, &token, 1, NULL);
    return status == FRIT_OK ? take_forced(worker, job, ended, finish) : status;
}

frit_status server_worker_take_tokens(server_worker *worker, server_job *job, bool *ended, server_finish *finish)
{
    frit_logprob top[SERVER_MAX_TOP];
    frit_picked picked = {0};
    app_text shown;
    frit_session *session = job->slot->session;
    job->usage.n_cached = server_slot_cached(job->slot);
    *ended = server_worker_room(worker, job) == 0 || !server_worker_has_token(job);   // the time limit has passed
    *finish = SERVER_FINISH_LENGTH;
    frit_status status = *ended ? FRIT_OK : take_picked(worker, job, top, &picked);
    for (size_t left = (size_t)picked.n_accepted; left > 0 && status == FRIT_OK && !*ended; left--) {
        const frit_picked draft = {.token = frit_session_tokens(session)[frit_session_length(session) - left]};
        job->usage.n_accepted++;
        status = take_token(worker, job, &draft, ended, finish);
    }
    if (status == FRIT_OK && !*ended) status = take_token(worker, job, &picked, ended, finish);
    if (status == FRIT_OK && !*ended) {
        status = push_token(worker, job, picked.token, ended, finish);
        job->pick.is_wanted = status == FRIT_OK && !*ended && !job->pick.is_requested;
        if (!*ended) return status;
    }
    if (*ended) frit_session_stop(session);   // a failure is the session's status
    if (status == FRIT_OK) status = app_answer_end(&job->answer, &shown);
    if (status == FRIT_OK) send_text(worker, job, shown);
    if (job->answer.stopped) *finish = SERVER_FINISH_STOP;
    return status;
}
