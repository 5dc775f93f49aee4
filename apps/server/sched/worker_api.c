// SPDX-License-Identifier: MIT
// The life of a worker, and what other threads call.
#include "server/sched/worker.h"

#include "server/ops/clock.h"
#include "server/sched/fair_queue.h"
#include "server/sched/worker_queue.h"
#include "server/sched/worker_tokens.h"

#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------------- the worker

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
    worker->finisher = server_finisher_new(server_worker_end_aside, worker);
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
    int error = pthread_create(&worker->thread, NULL, server_worker_run, worker);
    if (error != 0) {
        server_finisher_free(worker->finisher);
        server_slots_deinit(&worker->slots);
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
    return load.n_running + load.n_waiting + load.n_further + load.n_ending == 0;
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
    server_slots_deinit(&worker->slots);
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
                        .n_further = worker->n_further};
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

// ---------------------------------------------------------------------------------------- jobs

bool server_worker_submit(server_worker *worker, server_job *job, server_problem *problem)
{
    pthread_mutex_lock(&worker->lock);
    const int32_t n_jobs = worker->n_running + worker->n_waiting;
    const bool full =
        n_jobs >= worker->slots.n + worker->max_waiting && !server_fair_queue_is_first(worker->first, job);
    if (worker->draining) {
        server_refuse_shutting_down(problem);
    } else if (full) {
        server_metrics_count(worker->metrics, SERVER_COUNT_REFUSED, 1);
        server_refuse(problem, 429, "queue_full", NULL, "the server is busy: %d requests run and %d wait",
                      worker->n_running, worker->n_waiting);
        double seconds = worker->mean_seconds * (worker->n_waiting + 1) / worker->slots.n;
        problem->retry_after = seconds < 1 ? 1 : seconds > 60 ? 60 : (int)seconds;
    } else {
        job->n_owners++;
        job->times.submitted = server_now();
        server_worker_link(worker, job);
        server_fair_queue_join(&worker->slots, worker->first, job, worker->level);
        pthread_cond_signal(&worker->news);
    }
    bool taken = !worker->draining && !full;
    pthread_mutex_unlock(&worker->lock);
    return taken;
}

void server_job_leave(server_worker *worker, server_job *job)
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
    server_job_unref(job);
    pthread_cond_signal(&worker->news);
    pthread_mutex_unlock(&worker->lock);
}

void server_worker_give_grammar(server_worker *worker, server_job *job, frit_grammar *grammar,
                                const server_problem *problem)
{
    pthread_mutex_lock(&worker->lock);
    for (server_job *further = job->group.further; further; further = further->group.next) {
        further->grammar.is_awaited = false;   // they begin after the first answer has its grammar
        further->grammar.rules = grammar;
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

size_t server_job_most_tokens(const server_worker *worker, const server_job *job)
{
    size_t n = job->request.n_prompt + server_worker_room(worker, job);
    if (job->work) return job->usage.n_prompt;
    for (const server_job *further = job->group.further; further; further = further->group.next)
        n += (further->request.has_own_prompt ? further->request.n_prompt : 0) + server_worker_room(worker, further);
    return n;
}
