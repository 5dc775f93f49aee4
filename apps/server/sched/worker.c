// SPDX-License-Identifier: MIT
// The engine thread: one iteration after another.
#include "server/sched/worker_state.h"

#include "server/http/keep_alive.h"
#include "server/ops/clock.h"
#include "server/sched/fair_queue.h"
#include "server/sched/job_metrics.h"
#include "server/sched/job_sampler.h"
#include "server/sched/worker_queue.h"
#include "server/sched/worker_tokens.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void keep_streams_alive(server_worker *worker)
{
    const double now = server_now();
    for (server_job *job = worker->first; job; job = job->next)
        if (server_job_keep_alive(job, now)) server_job_wake(job);
    for (int32_t i = 0; i < worker->slots.n; i++)
        if (worker->slots.items[i].job && server_job_keep_alive(worker->slots.items[i].job, now))
            server_job_wake(worker->slots.items[i].job);
}

// ---------------------------------------------------------------------------------------- jobs and their sessions

static const float *choose_scales(const server_worker *worker, const server_job *job)
{
    return job->request.scales ? job->request.scales : worker->slots.scales;
}

// Asks the session to pick the next token in its step, which also verifies the `n_drafts` tokens at its end. A sampler
// that a session cannot run samples from the logits after the step.
static void request_pick(const server_worker *worker, server_job *job, size_t n_drafts)
{
    frit_session *session = job->slot->session;
    const frit_pick_options options = {.n_drafts = n_drafts,
                                       .logprobs = job->report.n_top >= 0,
                                       .n_top = job->report.n_top > 0 ? job->report.n_top : 0};
    job->pick.is_wanted = false;
    job->pick.n_drafts = n_drafts;
    job->pick.is_requested = server_worker_room(worker, job) > job->usage.n_answer &&
                             frit_session_pick(session, job->request.sampler, &options) == FRIT_OK;
    if (job->pick.is_requested || n_drafts == 0) return;
    frit_session_truncate(session, frit_session_length(session) - n_drafts);
    job->pick.n_drafts = 0;
}

// Runs jobs ahead of their tokens: makes the late pick of the token after the one that was taken, and requests the pick
// after it where the answer goes on whatever token comes.
static void run_ahead(server_worker *worker)
{
    worker->runs_ahead = false;
    for (int32_t i = 0; i < worker->slots.n; i++) {
        server_job *job = worker->slots.items[i].job;
        if (!job || !job->pick.is_requested) continue;
        const frit_pick_options options = {
            .logprobs = job->report.n_top >= 0, .n_top = job->report.n_top > 0 ? job->report.n_top : 0, .late = true};
        const bool goes_on = job->usage.n_answer + 2 <= server_worker_room(worker, job) && job->pick.n_drafts == 0 &&
                             !server_job_has_two_samplers(job);
        frit_session *session = job->slot->session;   // has the status of what fails
        if (!job->pick.is_ahead) (void)frit_session_complete_pick(session, job->request.sampler);
        if (goes_on && !job->pick.is_ahead)
            (void)frit_session_pick_ahead(session, job->request.sampler, &options, &job->pick.is_ahead);
        worker->runs_ahead = worker->runs_ahead || job->pick.is_ahead;
    }
}

// Requests picks for all jobs that took a token. The log-probabilities of drafts are unknown, so a job that reports
// log-probabilities gets no drafts.
static void request_picks(server_worker *worker)
{
    size_t n = 0, k = 0;
    for (int32_t i = 0; i < worker->slots.n; i++) {
        const server_job *job = worker->slots.items[i].job;
        if (!job || !job->pick.is_wanted || job->report.n_top >= 0) continue;
        worker->drafts[n++] =
            (frit_draft_item){.session = job->slot->session,
                              .sampler = job->request.sampler,
                              .max_drafts = server_worker_room(worker, job) - job->usage.n_answer - 1};
    }
    frit_sessions_draft(worker->drafts, n);   // a failure gives no drafts
    for (int32_t i = 0; i < worker->slots.n; i++) {
        server_job *job = worker->slots.items[i].job;
        if (job && job->pick.is_wanted)
            request_pick(worker, job, job->report.n_top < 0 ? worker->drafts[k++].n_drafts : 0);
    }
}

static frit_status load_prompt(server_worker *worker, server_slot *slot, server_job *job, size_t n_kept)
{
    const frit_push_options rows = {.output = FRIT_OUTPUT_ALL, .row = server_job_note_row, .row_ctx = job};
    const bool wants_rows = server_job_has_rows(job);
    if (wants_rows) job->report.prompt_logprobs = calloc(job->request.n_prompt, sizeof *job->report.prompt_logprobs);
    if (wants_rows && !job->report.prompt_logprobs) return FRIT_E_MEMORY;
    server_job *first = server_job_first(job);
    server_pictures *pictures = first->request.pictures;
    frit_media *media[SERVER_MAX_PICTURES];
    for (size_t i = 0; pictures && i < pictures->n; i++) media[i] = pictures->items[i].media;
    const server_prompt prompt = {.tokens = job->request.prompt,
                                  .n = n_kept,
                                  .scales = choose_scales(worker, job),
                                  .salt = first->request.salt,
                                  .prediction = first->request.prediction,
                                  .n_prediction = first->request.n_prediction,
                                  .media = media,
                                  .n_media = pictures ? pictures->n : 0};
    const frit_status status = server_slot_load(&worker->slots, slot, &prompt, wants_rows ? &rows : NULL);
    job->usage.n_image = pictures ? pictures->n_tokens : 0;
    if (first->group.further) return status;   // the further answers push the pictures again
    server_pictures_free(pictures);
    first->request.pictures = NULL;
    return status;
}

static void start_job(server_worker *worker, server_slot *slot, server_job *job)
{
    slot->job = job;
    job->slot = slot;
    worker->n_running++;
    job->times.resumed = server_now();
    if (job->times.started <= 0) job->times.started = job->times.resumed;
    if (!job->group.first) job->group.n_open = 1;
    server_job_first(job)->group.n_begun++;
    worker->had_further = job->group.first != NULL;
    server_fair_queue_apply(job, slot->session);
    if (job->work && !job->request.keeps_slot) server_slot_clear(slot);
    if (job->work) return;
    if (!job->group.first || job->request.has_own_prompt) server_job_charge(job, job->request.n_prompt, 0);
    job->usage.n_prompt = job->request.n_prompt;
    size_t n_kept = job->request.n_prompt;   // without the tokens that are healed
    for (size_t i = 0; i < job->request.n_prompt && !worker->reads; i++) server_job_accept(job, job->request.prompt[i]);
    frit_status status = app_answer_init(&job->answer, worker->model, job->request.stop);
    if (status == FRIT_OK && job->grammar.rules && !job->grammar.is_awaited) status = server_job_set_grammar(job);
    if (status == FRIT_OK && job->request.heals)
        status =
            frit_sampler_heal(job->request.sampler, worker->model, job->request.prompt, job->request.n_prompt, &n_kept);
    if (status == FRIT_OK && job->request.turn) status = app_answer_show_marks(&job->answer, job->request.turn);
    if (status == FRIT_OK && job->request.continues && !worker->reads)
        status =
            app_answer_follow(&job->answer, job->request.prompt, job->request.n_prompt, job->request.n_prompt - n_kept);
    if (status == FRIT_OK && worker->reads)
        status = server_slot_read(&worker->slots, slot,
                                  &(server_prompt){.tokens = job->request.prompt,
                                                   .n = job->request.n_prompt,
                                                   .scales = choose_scales(worker, job)},
                                  worker->decoder_start);
    else if (status == FRIT_OK)
        status = load_prompt(worker, slot, job, n_kept);
    if (status == FRIT_OK) {
        if (!job->grammar.is_awaited) request_pick(worker, job, 0);
        return;
    }
    server_problem problem;
    server_refuse_status(&problem, 500, NULL, status);
    server_worker_finish_slot(worker, slot, &problem);
}

// Uses a grammar that was given while the prompt ran. False: the job has ended.
static bool use_grammar(server_worker *worker, server_slot *slot)
{
    server_job *job = slot->job;
    if (!job->grammar.is_awaited) return true;
    pthread_mutex_lock(&worker->lock);
    const bool is_given = job->grammar.is_given;
    server_problem problem = job->grammar.problem;
    job->grammar.is_given = false;
    if (is_given) job->grammar.is_awaited = false;
    pthread_mutex_unlock(&worker->lock);
    if (!is_given) return true;
    frit_status status = FRIT_OK;
    if (!problem.status && job->grammar.rules) status = server_job_set_grammar(job);
    if (status != FRIT_OK) server_refuse_status(&problem, 500, NULL, status);
    if (!problem.status) {
        if (frit_session_pending(slot->session) > 0)
            request_pick(worker, job, 0);   // else the logits are known already
        return true;
    }
    pthread_mutex_lock(&worker->lock);
    server_worker_finish_slot(worker, slot, &problem);
    pthread_mutex_unlock(&worker->lock);
    return false;
}

// Chooses the slot that the job wants, or else the best one for its prompt. NULL: the job needs a slot that is busy.
static server_slot *choose_slot(const server_worker *worker, server_slot *idle, const server_job *job)
{
    server_slot *wanted = job->request.wanted_slot > 0 && job->request.wanted_slot <= worker->slots.n
                              ? &worker->slots.items[job->request.wanted_slot - 1]
                              : NULL;
    if (wanted && !wanted->job) {
        server_slot_settle_now(wanted);
        return wanted;
    }
    if (job->request.keeps_slot) return NULL;
    const server_prompt prompt = {.tokens = job->request.prompt,
                                  .n = job->request.n_prompt,
                                  .scales = choose_scales(worker, job),
                                  .salt = server_job_first((server_job *)job)->request.salt};
    return server_slots_best(&worker->slots, idle, &prompt);
}

static void refuse_busy(server_job *job)
{
    server_problem problem;
    server_refuse(&problem, 409, "slot_busy", NULL, "slot %d is busy with a request",
                  (int)job->request.wanted_slot - 1);
    problem.retry_after = 1;
    server_job_fail(job, &problem);
}

static void start_waiting(server_worker *worker)
{
    while (worker->first) {
        server_slot *slot = server_slots_idle(&worker->slots);
        if (!slot) return;
        server_job **at = server_fair_queue_next(&worker->first, !worker->had_further), *job = *at;
        server_worker_unlink(worker, at);
        slot = choose_slot(worker, slot, job);
        if (slot)
            start_job(worker, slot, job);
        else
            refuse_busy(job);
    }
}

static bool is_paused(server_job *job)
{
    if (frit_session_pending(job->slot->session) > 0) return false;
    return job->grammar.is_awaited ? !job->grammar.is_given
                                   : server_send_queue_is_full(&server_job_first(job)->reply.queue);
}

// Wakes clients that are owed a wake from an earlier iteration: if it is time, or if this iteration may be long. An
// iteration is short if it runs no prompt and no other work, and shares no step lock with other models. Where jobs run
// ahead, a device runs the step while clients are woken, so none of them waits.
static void wake_clients(server_worker *worker)
{
    enum { FEW_TOKENS = 32 };   // of a session, with drafts
    worker->may_defer = !worker->step_lock && !worker->runs_ahead;
    for (int32_t i = 0; i < worker->slots.n; i++) {
        const server_slot *slot = &worker->slots.items[i];
        if (slot->job && (slot->job->work || frit_session_pending(slot->session) > FEW_TOKENS))
            worker->may_defer = false;
    }
    for (int32_t i = 0; i < worker->slots.n; i++) {
        server_job *job = worker->slots.items[i].job;
        if (job && server_job_first(job)->client.owes_wake) server_job_wake_later(job, worker->may_defer);
    }
}

static void wait_for_work(server_worker *worker)
{
    if (worker->is_settling) return;
    if (worker->n_running == 0) {
        server_step_lock_leave(worker->step_lock, &worker->step_user);
        pthread_cond_wait(&worker->news, &worker->lock);
        return;
    }
    for (int32_t i = 0; i < worker->slots.n; i++)
        if (worker->slots.items[i].job && !is_paused(worker->slots.items[i].job)) return;
    // All clients read slowly, or their grammars are not compiled yet. The thread wakes up soon to look for clients
    // that have gone.
    server_step_lock_leave(worker->step_lock, &worker->step_user);
    (void)server_wait_until(&worker->news, &worker->lock, server_now() + 0.05);
}

// Queues the further answers of a request, whose prompt has run.
static void queue_further(server_worker *worker, server_job *job)
{
    pthread_mutex_lock(&worker->lock);
    for (server_job *further = job->group.further; further; further = further->group.next) {
        further->times.submitted = job->times.submitted;
        server_worker_link(worker, further);
        job->group.n_open++;
    }
    pthread_mutex_unlock(&worker->lock);
}

// True if the job should give its session to a waiting job. Work that generates no tokens may take minutes, in short
// parts.
static bool must_yield(const server_worker *worker, const server_job *job)
{
    static const double slice_seconds = 0.25;
    return job->work && !job->request.keeps_slot && worker->first && !server_slots_idle(&worker->slots) &&
           server_now() - job->times.resumed >= slice_seconds;
}

static void advance_job(server_worker *worker, server_slot *slot)
{
    server_job *job = slot->job;
    bool ended = false;
    if (job->group.further && job->usage.n_answer == 0) queue_further(worker, job);
    server_finish finish = SERVER_FINISH_STOP;
    frit_status status =
        job->work ? job->work(job, worker->engine, &ended) : server_worker_take_tokens(worker, job, &ended, &finish);
    pthread_mutex_lock(&worker->lock);
    if (status == FRIT_OK && ended && !job->work) server_job_note_end(job, worker->metrics, finish);
    if (status == FRIT_OK && ended && job->reply.ends_on_finisher) {
        server_worker_rest_slot(worker, slot);
        worker->n_ending++;
        server_finisher_add(worker->finisher, job, finish);
        pthread_mutex_unlock(&worker->lock);
        return;
    }
    if (status == FRIT_OK && ended) job->reply.writer->finish(job, finish);
    if (status == FRIT_OK && (job->reply.queue.failed || server_job_first(job)->reply.queue.failed))
        status = FRIT_E_MEMORY;
    server_problem problem;
    if (status != FRIT_OK) server_refuse_step(&problem, status);
    if (status != FRIT_OK || ended) {
        server_worker_finish_slot(worker, slot, status != FRIT_OK ? &problem : NULL);
    } else if (must_yield(worker, job)) {
        server_worker_leave_slot(worker, slot);
        server_worker_link(worker, job);
    }
    pthread_mutex_unlock(&worker->lock);
}

void server_worker_end_aside(void *ctx, server_job *job)
{
    server_worker *worker = ctx;
    server_problem problem;
    pthread_mutex_lock(&worker->lock);
    worker->n_ending--;
    job->final.is_pending = false;
    job->reply.queue.failed |= job->final.queue.failed;
    if (job->final.queue.n > 0 && !job->reply.queue.failed)
        server_job_put(job, job->final.queue.data,
                       job->final.queue.n);   // the queue is one piece, as nothing was taken from it
    server_send_queue_free(&job->final.queue);
    if (job->reply.queue.failed) server_refuse_status(&problem, 500, NULL, FRIT_E_MEMORY);
    server_worker_end_answer(worker, job, job->reply.queue.failed ? &problem : NULL);
    pthread_mutex_unlock(&worker->lock);
}

// Ends the jobs whose sessions failed. If the step itself failed, nothing ran, and all jobs with pending tokens end;
// the status is 503 if a device failed.
static void end_failed(server_worker *worker, frit_status step)
{
    server_problem problem;
    if (step == FRIT_E_UNSUPPORTED)
        server_refuse(&problem, 503, "device_failed", NULL, "%s", frit_error());
    else if (step != FRIT_OK)
        server_refuse_status(&problem, 500, NULL, step);
    pthread_mutex_lock(&worker->lock);
    for (int32_t i = 0; i < worker->slots.n; i++) {
        server_slot *slot = &worker->slots.items[i];
        if (!slot->job || slot->job->work) continue;
        const frit_status status = frit_session_status(slot->session);
        if (status == FRIT_OK && (step == FRIT_OK || frit_session_pending(slot->session) == 0)) continue;
        if (status != FRIT_OK) server_refuse_step(&problem, status);
        server_worker_finish_slot(worker, slot, &problem);
    }
    pthread_mutex_unlock(&worker->lock);
}

// True if the job can go on: with a token, after the tokens of its other work, or to its end because its time is over.
static bool is_due(const server_job *job)
{
    return server_worker_has_token(job) || server_job_is_overdue(job, server_now());
}

static void count_step(server_worker *worker, int32_t n_rows)
{
    size_t n = 0;
    for (int32_t i = 0; i < worker->slots.n; i++)
        if (worker->slots.items[i].job) n += frit_session_length(worker->slots.items[i].session);
    if (n_rows > 0) server_metrics_observe(worker->metrics, SERVER_STEP_TOKENS, n_rows);
    if (n_rows > 0) server_metrics_observe(worker->metrics, SERVER_STEP_SESSIONS, worker->n_running);
    pthread_mutex_lock(&worker->lock);
    worker->n_cached = n;
    pthread_mutex_unlock(&worker->lock);
}

static void count_pictures(server_worker *worker)
{
    frit_engine_media_info info;
    frit_engine_get_media_info(worker->engine, &info);
    if (info.n_encoded == worker->n_encoded) return;
    server_metrics_count(worker->metrics, SERVER_COUNT_PICTURES, info.n_encoded - worker->n_encoded);
    worker->n_encoded = info.n_encoded;
}

static void run_iteration(server_worker *worker)
{
    for (int32_t i = 0; i < worker->slots.n; i++) {
        server_slot *slot = &worker->slots.items[i];
        if (!slot->job || !use_grammar(worker, slot) || !is_due(slot->job)) continue;
        pthread_mutex_lock(&worker->lock);
        bool paused = is_paused(slot->job);
        pthread_mutex_unlock(&worker->lock);
        if (!paused) advance_job(worker, slot);
    }
    run_ahead(worker);
    request_picks(worker);
    int32_t n_rows = 0;
    end_failed(worker, frit_engine_advance(worker->engine, &n_rows));
    server_metrics_count(worker->metrics, SERVER_COUNT_STEPS, 1);
    count_pictures(worker);
    count_step(worker, n_rows);
}

void *server_worker_run(void *ctx)
{
    server_worker *worker = ctx;
    pthread_mutex_lock(&worker->lock);
    for (;;) {
        server_worker_drop_gone(worker);
        keep_streams_alive(worker);
        worker->is_settling = server_slots_settle(&worker->slots);
        if (worker->draining) server_worker_fail_waiting(worker);
        if (worker->cut) server_worker_cut_all(worker);
        start_waiting(worker);
        wake_clients(worker);
        if (worker->stop && worker->n_running == 0) break;
        wait_for_work(worker);
        bool runs = worker->n_running > 0 || worker->is_settling;
        pthread_mutex_unlock(&worker->lock);
        if (runs) server_step_lock_acquire(worker->step_lock, &worker->step_user);
        if (runs) run_iteration(worker);
        if (runs) server_step_lock_release(worker->step_lock, &worker->step_user);
        pthread_mutex_lock(&worker->lock);
    }
    server_step_lock_leave(worker->step_lock, &worker->step_user);
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}
