// SPDX-License-Identifier: MIT
// The engine thread.
#include "server/sched/worker_state.h"

#include "server/http/client_gone.h"
#include "server/http/keep_alive.h"
#include "server/ops/clock.h"
#include "server/sched/fair_queue.h"
#include "server/sched/job_metrics.h"
#include "server/sched/job_sampler.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// ---------------------------------------------------------------------------------------- jobs, lock held

static void leave(server_job *job)
{
    if (--job->n_owners == 0) server_job_free(job);
}

// The worker is done with the job.
static void end_job(server_job *job)
{
    job->reply.begun = job->reply.ended = true;
    if (job->reply.replay) server_replay_end(job->reply.replay);
    server_job_settle(job);
    server_job_wake(job);
    leave(job);
}

static void fail_job(server_job *job, const server_problem *problem)
{
    if (job->reply.begun)
        job->reply.writer->fail(job, problem);
    else
        job->reply.problem = *problem;
    end_job(job);
}

static void unlink_waiting(server_worker *worker, server_job **at)
{
    server_job *job = *at;
    *at = job->next;
    if (worker->end == &job->next) worker->end = at;
    (*(job->group.first ? &worker->n_parts : &worker->n_waiting))--;
}

static void link_waiting(server_worker *worker, server_job *job)
{
    job->next = NULL;
    *worker->end = job;
    worker->end = &job->next;
    (*(job->group.first ? &worker->n_parts : &worker->n_waiting))++;
}

static void refuse_unavailable(server_problem *problem)
{
    server_refuse(problem, 503, "shutting_down", NULL, "the server is shutting down");
    problem->retry_after = 5;
}

// Further answers of a request that runs go on, and so does work that has begun.
static void fail_waiting(server_worker *worker)
{
    server_problem problem;
    refuse_unavailable(&problem);
    for (server_job **at = &worker->first; *at;) {
        server_job *job = *at;
        if (job->group.first || job->group.n_open > 0) {
            at = &job->next;
            continue;
        }
        unlink_waiting(worker, at);
        fail_job(job, &problem);
    }
}

static void leave_slot(server_worker *worker, server_slot *slot)
{
    server_job *job = slot->job;
    server_slot_rest(slot, job->pick.n_drafts);
    worker->n_running--;
    job->slot = NULL;
    const double served = server_key_served(server_job_first(job)->caller.key);
    if (served > worker->level) worker->level = served;
}

static void rest_slot(server_worker *worker, server_slot *slot)
{
    server_job *job = slot->job;
    leave_slot(worker, slot);
    if (server_job_first(job)->reply.begun) server_job_wake(job);
    worker->mean_seconds += (server_now() - job->times.started - worker->mean_seconds) / 8;
}

static void drop_parts(server_worker *worker, const server_job *first)
{
    for (int32_t i = 0; i < worker->slots.n; i++) {
        server_slot *slot = &worker->slots.items[i];
        if (slot->job && server_job_first(slot->job) == first) rest_slot(worker, slot);
    }
    for (server_job **at = &worker->first; *at;)
        if ((*at)->group.first == first)
            unlink_waiting(worker, at);
        else
            at = &(*at)->next;
}

// A request ends with the last of its answers, or with the first that fails.
static void end_part(server_worker *worker, server_job *job, const server_problem *problem)
{
    server_job *first = server_job_first(job);
    first->group.n_open--;
    if (!problem && first->group.n_open > 0) return;
    if (first->group.n_open > 0) drop_parts(worker, first);
    if (problem && problem->status != 499) server_metrics_count(worker->metrics, SERVER_COUNT_FAILED, 1);
    if (problem)
        fail_job(first, problem);
    else
        end_job(first);
}

// Ends what a slot works on: the session is free from here on.
static void finish_slot(server_worker *worker, server_slot *slot, const server_problem *problem)
{
    server_job *job = slot->job;
    rest_slot(worker, slot);
    end_part(worker, job, problem);
}

// All that runs, and the rest of what has begun, fails.
static void cut_all(server_worker *worker)
{
    server_problem problem;
    refuse_unavailable(&problem);
    for (int32_t i = 0; i < worker->slots.n; i++)
        if (worker->slots.items[i].job) finish_slot(worker, &worker->slots.items[i], &problem);
    while (worker->first) {
        server_job *job = worker->first;
        unlink_waiting(worker, &worker->first);
        if (job->group.first)
            end_part(worker, job, &problem);
        else
            fail_job(job, &problem);
    }
}

// ---------------------------------------------------------------------------------------- clients that went away

static void drop_gone(server_worker *worker)
{
    static const server_problem gone = {.status = 499, .message = "the client went away"};
    static const server_problem cancelled = {
        .status = 499, .code = "cancelled", .message = "the request was cancelled"};
    for (server_job **at = &worker->first; *at;) {
        server_job *job = *at;
        if (server_client_is_gone(job)) {
            server_job *first = server_job_first(job);
            unlink_waiting(worker, at);
            first->reply.problem = gone;
            if (job->group.first) {
                end_part(worker, job, first->reply.replay ? &cancelled : NULL);
                at = &worker->first;   // others of the queue may be gone now, too
            } else if (job->reply.replay)
                fail_job(job, &cancelled);
            else
                end_job(job);
        } else {
            at = &job->next;
        }
    }
    for (int32_t i = 0; i < worker->slots.n; i++) {
        server_slot *slot = &worker->slots.items[i];
        if (!slot->job || !server_client_is_gone(slot->job)) continue;
        server_metrics_count(worker->metrics, SERVER_COUNT_ABORTED, 1);
        const server_problem *told = server_job_first(slot->job)->reply.replay ? &cancelled : NULL;   // its readers
        server_job_first(slot->job)->reply.problem = gone;
        finish_slot(worker, slot, told);
    }
}

static void keep_alive(server_worker *worker)
{
    const double now = server_now();
    for (server_job *job = worker->first; job; job = job->next)
        if (server_job_keep_alive(job, now)) server_job_wake(job);
    for (int32_t i = 0; i < worker->slots.n; i++)
        if (worker->slots.items[i].job && server_job_keep_alive(worker->slots.items[i].job, now))
            server_job_wake(worker->slots.items[i].job);
}

// ---------------------------------------------------------------------------------------- a turn of the thread

static const float *scales_of(const server_worker *worker, const server_job *job)
{
    return job->request.scales ? job->request.scales : worker->slots.scales;
}

// Has the token after the session's last one picked in the step that runs that one, and verifies so many drafts at the
// end of it. Samplers that cannot be picked so sample from the logits.
static void ask(const server_worker *worker, server_job *job, size_t n_drafts)
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

// All that have taken a token. Log-probabilities of drafts are not known, so there are none where they are asked for.
static void ask_all(server_worker *worker)
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
    frit_sessions_draft(worker->drafts, n);   // without drafts if it fails
    for (int32_t i = 0; i < worker->slots.n; i++) {
        server_job *job = worker->slots.items[i].job;
        if (job && job->pick.is_wanted) ask(worker, job, job->report.n_top < 0 ? worker->drafts[k++].n_drafts : 0);
    }
}

static frit_status load_prompt(server_worker *worker, server_slot *slot, server_job *job, size_t n_kept)
{
    const frit_push_options rows = {.output = FRIT_OUTPUT_ALL, .row = server_job_note_row, .row_ctx = job};
    const bool wants_rows = server_job_has_rows(job);
    if (wants_rows) job->report.prompt_picks = calloc(job->request.n_prompt, sizeof *job->report.prompt_picks);
    if (wants_rows && !job->report.prompt_picks) return FRIT_E_MEMORY;
    const server_job *first = server_job_first(job);
    const server_prompt prompt = {.tokens = job->request.prompt,
                                  .n = n_kept,
                                  .scales = scales_of(worker, job),
                                  .salt = first->request.salt,
                                  .prediction = first->request.prediction,
                                  .n_prediction = first->request.n_prediction};
    return server_slot_load(&worker->slots, slot, &prompt, wants_rows ? &rows : NULL);
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
    worker->had_part = job->group.first != NULL;
    server_fair_queue_apply(job, slot->session);
    if (job->work && !job->request.keeps_slot) server_slot_clear(slot);
    if (job->work) return;
    if (!job->group.first || job->request.has_own_prompt) server_job_charge(job, job->request.n_prompt, 0);
    job->usage.n_prompt = job->request.n_prompt;
    size_t n_kept = job->request.n_prompt;   // without what is healed
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
                                                   .scales = scales_of(worker, job)},
                                  worker->decoder_start);
    else if (status == FRIT_OK)
        status = load_prompt(worker, slot, job, n_kept);
    if (status == FRIT_OK) {
        if (!job->grammar.is_awaited) ask(worker, job, 0);
        return;
    }
    server_problem problem;
    server_refuse_status(&problem, 500, NULL, status);
    finish_slot(worker, slot, &problem);
}

// Uses a grammar that was given while the prompt ran. False: the job has ended.
static bool take_grammar(server_worker *worker, server_slot *slot)
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
        if (frit_session_pending(slot->session) > 0) ask(worker, job, 0);   // else its logits are there already
        return true;
    }
    pthread_mutex_lock(&worker->lock);
    finish_slot(worker, slot, &problem);
    pthread_mutex_unlock(&worker->lock);
    return false;
}

// The one that it asks for, or that has its prompt. NULL: it needs one that is busy.
static server_slot *choose_slot(const server_worker *worker, server_slot *idle, const server_job *job)
{
    server_slot *wanted = job->request.wanted_slot > 0 && job->request.wanted_slot <= worker->slots.n
                              ? &worker->slots.items[job->request.wanted_slot - 1]
                              : NULL;
    if (wanted && !wanted->job) return wanted;
    if (job->request.keeps_slot) return NULL;
    const server_prompt prompt = {.tokens = job->request.prompt,
                                  .n = job->request.n_prompt,
                                  .scales = scales_of(worker, job),
                                  .salt = server_job_first((server_job *)job)->request.salt};
    return server_slots_best(&worker->slots, idle, &prompt);
}

static void refuse_busy(server_job *job)
{
    server_problem problem;
    server_refuse(&problem, 409, "slot_busy", NULL, "slot %d has a request that runs",
                  (int)job->request.wanted_slot - 1);
    problem.retry_after = 1;
    fail_job(job, &problem);
}

static void admit(server_worker *worker)
{
    while (worker->first) {
        server_slot *slot = server_slots_idle(&worker->slots);
        if (!slot) return;
        server_job **at = server_fair_queue_next(&worker->first, !worker->had_part), *job = *at;
        unlink_waiting(worker, at);
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

// Wakes clients whose news came in an earlier turn: if it is time, or if this turn may last. A turn is short if it has
// no prompt and no work but tokens, and does not wait for those of other models.
static void wake_clients(server_worker *worker)
{
    enum { FEW_TOKENS = 32 };   // guesses too
    worker->may_defer = !worker->step_lock;
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
    if (worker->n_running == 0) {
        server_step_lock_leave(worker->step_lock, &worker->step_user);
        pthread_cond_wait(&worker->news, &worker->lock);
        return;
    }
    for (int32_t i = 0; i < worker->slots.n; i++)
        if (worker->slots.items[i].job && !is_paused(worker->slots.items[i].job)) return;
    // All clients read slowly, or their grammars are not there yet. Look again soon, for clients that go away in the
    // meantime.
    server_step_lock_leave(worker->step_lock, &worker->step_user);
    (void)server_wait_until(&worker->news, &worker->lock, server_now() + 0.05);
}

// The prompt has run: now the other answers that the request wants may.
static void queue_parts(server_worker *worker, server_job *job)
{
    pthread_mutex_lock(&worker->lock);
    for (server_job *part = job->group.parts; part; part = part->group.next) {
        part->times.submitted = job->times.submitted;
        link_waiting(worker, part);
        job->group.n_open++;
    }
    pthread_mutex_unlock(&worker->lock);
}

// Work may take minutes, and each part of it is short: others that wait get its session after a while.
static bool yields(const server_worker *worker, const server_job *job)
{
    static const double slice_seconds = 0.25;
    return job->work && !job->request.keeps_slot && worker->first && !server_slots_idle(&worker->slots) &&
           server_now() - job->times.resumed >= slice_seconds;
}

static void advance(server_worker *worker, server_slot *slot)
{
    server_job *job = slot->job;
    bool ended = false;
    if (job->group.parts && job->usage.n_answer == 0) queue_parts(worker, job);
    server_finish finish = SERVER_FINISH_STOP;
    frit_status status =
        job->work ? job->work(job, worker->engine, &ended) : server_worker_pick(worker, job, &ended, &finish);
    pthread_mutex_lock(&worker->lock);
    if (status == FRIT_OK && ended && !job->work) server_job_note_end(job, worker->metrics, finish);
    if (status == FRIT_OK && ended && job->reply.ends_on_finisher) {
        rest_slot(worker, slot);
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
        finish_slot(worker, slot, status != FRIT_OK ? &problem : NULL);
    } else if (yields(worker, job)) {
        leave_slot(worker, slot);
        link_waiting(worker, job);
    }
    pthread_mutex_unlock(&worker->lock);
}

// On the finisher: the job has said its last words.
static void end_on_finisher(void *ctx, server_job *job)
{
    server_worker *worker = ctx;
    server_problem problem;
    pthread_mutex_lock(&worker->lock);
    worker->n_ending--;
    job->final.is_pending = false;
    job->reply.queue.failed |= job->final.queue.failed;
    if (job->final.queue.n > 0 && !job->reply.queue.failed)
        server_job_put(job, job->final.queue.data, job->final.queue.n);   // nothing was taken
    server_send_queue_free(&job->final.queue);
    if (job->reply.queue.failed) server_refuse_status(&problem, 500, NULL, FRIT_E_MEMORY);
    end_part(worker, job, job->reply.queue.failed ? &problem : NULL);
    pthread_mutex_unlock(&worker->lock);
}

// Ends the jobs whose sessions failed. A step that failed itself ran nothing: those that wait for it end.
static void end_failed(server_worker *worker, frit_status step)
{
    server_problem problem;
    if (step != FRIT_OK) server_refuse_status(&problem, 500, NULL, step);
    pthread_mutex_lock(&worker->lock);
    for (int32_t i = 0; i < worker->slots.n; i++) {
        server_slot *slot = &worker->slots.items[i];
        if (!slot->job || slot->job->work) continue;
        const frit_status status = frit_session_status(slot->session);
        if (status == FRIT_OK && (step == FRIT_OK || frit_session_pending(slot->session) == 0)) continue;
        if (status != FRIT_OK) server_refuse_step(&problem, status);
        finish_slot(worker, slot, &problem);
    }
    pthread_mutex_unlock(&worker->lock);
}

static void note_step(server_worker *worker, int32_t n_rows)
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

static void run_turn(server_worker *worker)
{
    for (int32_t i = 0; i < worker->slots.n; i++) {
        server_slot *slot = &worker->slots.items[i];
        if (!slot->job || !take_grammar(worker, slot)) continue;
        if (frit_session_pending(slot->session) > 0 && !server_job_is_overdue(slot->job, server_now())) continue;
        pthread_mutex_lock(&worker->lock);
        bool paused = is_paused(slot->job);
        pthread_mutex_unlock(&worker->lock);
        if (!paused) advance(worker, slot);
    }
    ask_all(worker);
    int32_t n_rows = 0;
    end_failed(worker, frit_engine_step(worker->engine, &n_rows));
    server_metrics_count(worker->metrics, SERVER_COUNT_STEPS, 1);
    note_step(worker, n_rows);
}

static void *work(void *ctx)
{
    server_worker *worker = ctx;
    pthread_mutex_lock(&worker->lock);
    for (;;) {
        drop_gone(worker);
        keep_alive(worker);
        if (worker->draining) fail_waiting(worker);
        if (worker->cut) cut_all(worker);
        admit(worker);
        wake_clients(worker);
        if (worker->stop && worker->n_running == 0) break;
        wait_for_work(worker);
        bool runs = worker->n_running > 0;
        pthread_mutex_unlock(&worker->lock);
        if (runs) server_step_lock_acquire(worker->step_lock, &worker->step_user);
        if (runs) run_turn(worker);
        if (runs) server_step_lock_release(worker->step_lock, &worker->step_user);
        pthread_mutex_lock(&worker->lock);
    }
    server_step_lock_leave(worker->step_lock, &worker->step_user);
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

// ---------------------------------------------------------------------------------------- for the HTTP side

bool server_worker_new(server_worker **out, frit_model *model, frit_engine *engine,
                       const server_worker_options *options, server_problem *problem)
{
    *out = NULL;
    server_worker *worker = calloc(1, sizeof *worker);
    if (!worker) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    frit_engine_info info;
    frit_engine_get_info(engine, &info);
    worker->model = model;
    worker->engine = engine;
    worker->n_ctx = info.n_ctx;
    frit_model_info model_info;
    frit_model_get_info(model, &model_info);
    worker->n_vocab = model_info.n_vocab;
    worker->n_ctx_train = model_info.n_ctx_train;
    worker->reads = model_info.kind == FRIT_KIND_ENCODER_DECODER;
    worker->decoder_start = model_info.decoder_start;
    worker->end = &worker->first;
    worker->max_waiting = options->max_waiting;
    worker->mean_seconds = 1;
    worker->metrics = options->metrics;
    worker->step_lock = options->step_lock;
    if (info.kv_token_bytes > 0) worker->cache_room = (size_t)(info.kv_bytes / info.kv_token_bytes);
    worker->drafts = calloc((size_t)options->n_sessions, sizeof *worker->drafts);
    worker->finisher = server_finisher_new(end_on_finisher, worker);
    frit_status status =
        worker->drafts && worker->finisher
            ? server_slots_init(&worker->slots, engine, options->n_sessions, &options->adapters, &options->speculate,
                                &options->shift, options->keeps_texts && !worker->reads)
            : FRIT_E_MEMORY;
    if (status != FRIT_OK) {
        server_finisher_free(worker->finisher);
        free(worker->drafts);
        free(worker);
        return server_refuse_status(problem, 500, NULL, status);
    }
    pthread_mutex_init(&worker->lock, NULL);
    server_cond_init(&worker->news);
    int error = pthread_create(&worker->thread, NULL, work, worker);
    if (error != 0) {
        server_finisher_free(worker->finisher);
        server_slots_free(&worker->slots);
        free(worker->drafts);
        free(worker);
        return server_refuse(problem, 500, NULL, NULL, "the engine's thread cannot be started: %s", strerror(error));
    }
    *out = worker;
    return true;
}

static void set_and_tell(server_worker *worker, bool *flag)
{
    pthread_mutex_lock(&worker->lock);
    *flag = true;
    pthread_cond_signal(&worker->news);
    pthread_mutex_unlock(&worker->lock);
}

void server_worker_drain(server_worker *worker)
{
    set_and_tell(worker, &worker->draining);
}

void server_worker_cut(server_worker *worker)
{
    set_and_tell(worker, &worker->cut);
}

bool server_worker_is_idle(server_worker *worker)
{
    server_load load = server_worker_load(worker);
    return load.n_running + load.n_waiting + load.n_parts + load.n_ending == 0;
}

void server_worker_free(server_worker *worker)
{
    if (!worker) return;
    pthread_mutex_lock(&worker->lock);
    worker->draining = worker->cut = worker->stop = true;
    pthread_cond_signal(&worker->news);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
    server_finisher_free(worker->finisher);
    server_slots_free(&worker->slots);
    pthread_cond_destroy(&worker->news);
    pthread_mutex_destroy(&worker->lock);
    free(worker->drafts);
    free(worker);
}

server_load server_worker_load(server_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    server_load load = {.n_sessions = worker->slots.n,
                        .n_running = worker->n_running,
                        .n_waiting = worker->n_waiting,
                        .n_ending = worker->n_ending,
                        .n_parts = worker->n_parts};
    if (worker->cache_room > 0 && worker->n_running > 0)
        load.cache_use = (double)worker->n_cached / (double)worker->cache_room;
    pthread_mutex_unlock(&worker->lock);
    return load;
}

void server_worker_set_scales(server_worker *worker, const float *scales)
{
    pthread_mutex_lock(&worker->lock);
    for (size_t i = 0; i < worker->slots.adapters.n; i++) worker->slots.scales[i] = scales[i];
    pthread_mutex_unlock(&worker->lock);
}

float server_worker_scale(server_worker *worker, size_t i)
{
    pthread_mutex_lock(&worker->lock);
    const float scale = worker->slots.scales[i];
    pthread_mutex_unlock(&worker->lock);
    return scale;
}

bool server_worker_is_busy(server_worker *worker, int32_t i)
{
    pthread_mutex_lock(&worker->lock);
    const bool busy = worker->slots.items[i].job != NULL;
    pthread_mutex_unlock(&worker->lock);
    return busy;
}

bool server_worker_submit(server_worker *worker, server_job *job, server_problem *problem)
{
    pthread_mutex_lock(&worker->lock);
    const int32_t n_jobs = worker->n_running + worker->n_waiting;
    const bool full =
        n_jobs >= worker->slots.n + worker->max_waiting && !server_fair_queue_is_first(worker->first, job);
    if (worker->draining) {
        refuse_unavailable(problem);
    } else if (full) {
        server_metrics_count(worker->metrics, SERVER_COUNT_REFUSED, 1);
        server_refuse(problem, 429, "queue_full", NULL, "the server is busy: %d requests run and %d wait",
                      worker->n_running, worker->n_waiting);
        double seconds = worker->mean_seconds * (worker->n_waiting + 1) / worker->slots.n;
        problem->retry_after = seconds < 1 ? 1 : seconds > 60 ? 60 : (int)seconds;
    } else {
        job->n_owners++;
        job->times.submitted = server_now();
        link_waiting(worker, job);
        server_fair_queue_join(&worker->slots, worker->first, job, worker->level);
        pthread_cond_signal(&worker->news);
    }
    bool taken = !worker->draining && !full;
    pthread_mutex_unlock(&worker->lock);
    return taken;
}

void server_job_release(server_worker *worker, server_job *job)
{
    if (!job) return;
    if (!worker) {
        server_job_free(job);
        return;
    }
    pthread_mutex_lock(&worker->lock);
    job->client.has_left = !job->reply.replay;
    job->client.wake = NULL;
    job->client.socket = -1;
    leave(job);
    pthread_cond_signal(&worker->news);
    pthread_mutex_unlock(&worker->lock);
}

void server_worker_give_grammar(server_worker *worker, server_job *job, frit_grammar *grammar,
                                const server_problem *problem)
{
    pthread_mutex_lock(&worker->lock);
    for (server_job *part = job->group.parts; part; part = part->group.next) {
        part->grammar.is_awaited = false;   // parts begin after the first answer
        part->grammar.rules = grammar;
        if (grammar) frit_grammar_retain(grammar);
    }
    job->grammar.rules = grammar;
    job->grammar.is_given = true;
    if (problem) job->grammar.problem = *problem;
    pthread_cond_signal(&worker->news);
    pthread_mutex_unlock(&worker->lock);
}

void server_job_listen(server_worker *worker, server_job *job, void (*wake_up)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&worker->lock);
    job->client.wake = wake_up;
    job->client.wake_ctx = ctx;
    pthread_mutex_unlock(&worker->lock);
}

server_read server_job_read(server_worker *worker, server_job *job, char *bytes, size_t size, size_t *n,
                            void (*suspend)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&worker->lock);
    bool was_full = server_send_queue_is_full(&job->reply.queue);
    *n = server_send_queue_take(&job->reply.queue, bytes, size);
    if (was_full && !server_send_queue_is_full(&job->reply.queue)) pthread_cond_signal(&worker->news);
    server_read result = *n > 0 ? SERVER_READ_BYTES : job->reply.ended ? SERVER_READ_END : SERVER_READ_NOTHING;
    job->client.sleeps = result == SERVER_READ_NOTHING;
    if (job->client.sleeps) suspend(ctx);
    pthread_mutex_unlock(&worker->lock);
    return result;
}

bool server_job_used(server_worker *worker, server_job *job, server_usage *usage)
{
    pthread_mutex_lock(&worker->lock);
    const bool ended = job->reply.ended;
    if (ended) *usage = server_answer_usage(job);
    pthread_mutex_unlock(&worker->lock);
    return ended;
}

bool server_job_begun(server_worker *worker, server_job *job, server_problem *problem, void (*suspend)(void *ctx),
                      void *ctx)
{
    pthread_mutex_lock(&worker->lock);
    bool begun = job->reply.begun;
    *problem = job->reply.problem;
    job->client.sleeps = !begun;
    if (!begun) suspend(ctx);
    pthread_mutex_unlock(&worker->lock);
    return begun;
}
