// SPDX-License-Identifier: MIT
// Collects bodies, and makes jobs of them on the threads of the body readers.
#include "server/http/http_body.h"

#include "server/http/client_gone.h"
#include "server/ops/clock.h"
#include "server/sched/fair_queue.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_BYTES = 16 << 10,   // first size of a body's memory
    LONG_BODY = 64 << 10,     // a body from this size on takes long to read
};

static const double SLOW_S = 0.1;   // compiling for longer uses much memory, which goes back to the system

// ---------------------------------------------------------------------------------------- bodies

size_t server_http_max_body(const server_http *http)
{
    if (http->options.max_body > 0) return http->options.max_body;
    return server_models_read_pictures(http->options.site->models) ? SERVER_MAX_PICTURES_BODY : SERVER_MAX_BODY;
}

void server_http_refuse_body(server_http_request *r)
{
    server_refuse(&r->exchange.problem, 413, "body_too_large", NULL, "the body is larger than %zu MiB",
                  server_http_max_body(r->http) >> 20);
}

void server_http_free_body(server_http_request *r)
{
    atomic_fetch_sub(&r->http->body_bytes, r->capacity);
    server_key_release_bytes(r->exchange.caller, r->capacity);
    free(r->body);
    r->body = NULL;
    r->n_body = r->capacity = 0;
}

// Makes room for n more bytes within SERVER_MAX_BODIES and SERVER_MAX_BODIES_OF_KEY. Memory grows with the bytes that
// arrived, not with the announced length.
static bool grow_body(server_http_request *r, size_t n)
{
    const char *announced = server_http_header(r->connection, "Content-Length");
    const size_t most = announced ? (size_t)strtoull(announced, NULL, 10) : server_http_max_body(r->http);
    size_t capacity = r->capacity ? 2 * r->capacity : FIRST_BYTES;
    while (capacity < r->n_body + n) capacity *= 2;
    if (capacity > most && most >= r->n_body + n) capacity = most;
    const size_t more = capacity - r->capacity;
    server_key *key = r->exchange.caller;
    const bool fits = server_key_acquire_bytes(key, more, SERVER_MAX_BODIES_OF_KEY);
    if (atomic_fetch_add(&r->http->body_bytes, more) + more > SERVER_MAX_BODIES || !fits) {
        atomic_fetch_sub(&r->http->body_bytes, more);
        if (fits) server_key_release_bytes(key, more);
        server_refuse(&r->exchange.problem, 503, "too_many_bodies", NULL,
                      "the bodies of requests that are being read have %d MiB together%s",
                      (fits ? SERVER_MAX_BODIES : SERVER_MAX_BODIES_OF_KEY) >> 20, fits ? "" : ", those of this key");
        r->exchange.problem.retry_after = 1;
        return false;
    }
    char *body = realloc(r->body, capacity);
    if (!body) {
        atomic_fetch_sub(&r->http->body_bytes, more);
        server_key_release_bytes(key, more);
        return server_refuse_status(&r->exchange.problem, 500, NULL, FRIT_E_MEMORY);
    }
    r->body = body;
    r->capacity = capacity;
    return true;
}

void server_http_take_body(server_http_request *r, const char *bytes, size_t n)
{
    if (r->exchange.problem.status || !r->route || !r->route->parser) {
        r->n_dropped += n;
        return;
    }
    const size_t most = server_http_max_body(r->http);
    if (r->n_body > most || n > most - r->n_body) {
        server_http_refuse_body(r);
        return;
    }
    if (r->n_body + n > r->capacity && !grow_body(r, n)) {
        server_http_free_body(r);
        return;
    }
    memcpy(r->body + r->n_body, bytes, n);
    r->n_body += n;
}

// ---------------------------------------------------------------------------------------- on a body reader

// True if no client waits for the reply: the client is gone, or cancelled the job, or the server ends. Called while a
// body becomes a job and its grammar is compiled; nothing else writes to the connection then.
static bool is_in_vain(void *ctx)
{
    server_http_request *r = ctx;
    const server_job *job = r->exchange.job;
    if (atomic_load(&r->http->cut)) return true;
    if (job && job->reply.replay) return server_replay_is_cancelled(job->reply.replay);
    return server_socket_is_left(r->socket, r->http->options.tls != NULL, !r->http_1_0, &r->is_probed);
}

// Runs on a body reader too. The connection is not resumed before the body reader is done with the request.
static bool submit_job(server_exchange *exchange)
{
    server_http_request *r = exchange->ctx;
    server_worker *worker = r->exchange.model->worker;
    server_job *job = exchange->job;
    if (r->is_submitted) return true;
    job->client.socket = r->socket;
    server_job_set_caller(job, exchange->caller);
    job->client.may_probe = !r->http_1_0 && !r->http->options.tls;
    job->request.max_seconds = r->http->options.answer_s;
    job->client.is_tls = r->http->options.tls != NULL;
    r->is_submitted = true;
    job->caller.is_counted = r->is_counted && job->reply.replay;   // the job may outlive its connection
    if (server_job_reserve(job, server_job_most_tokens(worker, job), &exchange->problem) &&
        server_worker_submit(worker, job, &exchange->problem)) {
        if (job->reply.replay) r->is_counted = false;
        if (job->reply.replay) server_replay_publish(job->reply.replay);
        return true;
    }
    job->caller.is_counted = false;
    server_job_settle(job);
    server_job_leave(worker, job);
    exchange->job = NULL;
    return false;
}

void server_http_follow_job(server_http_request *r)
{
    if (!r->exchange.job || (!r->is_submitted && !submit_job(&r->exchange))) return;
    server_job_listen(r->exchange.model->worker, r->exchange.job, server_http_resume, r);
}

// The body reader is done: resumes the connection.
static void end_reading(server_http_request *r)
{
    server_http *http = r->http;
    r->is_large = r->n_body >= SERVER_LARGE_BYTES || r->exchange.is_large;
    server_http_free_body(r);
    pthread_mutex_lock(&http->lock);
    r->is_reading = false;
    MHD_resume_connection(r->connection);
    pthread_mutex_unlock(&http->lock);
}

static void defer_work(server_exchange *exchange, void (*work)(server_exchange *exchange))
{
    server_http_request *r = exchange->ctx;
    r->rest = work;
}

static void run_rest(server_task *task)
{
    server_http_request *r = (server_http_request *)task;
    const double start = server_now();
    r->rest(&r->exchange);
    r->exchange.is_large |= server_now() - start > SLOW_S;
    end_reading(r);
}

static void read_body(server_task *task)
{
    server_http_request *r = (server_http_request *)task;
    r->exchange.cancelled = is_in_vain;
    r->exchange.submit = submit_job;
    r->exchange.defer = defer_work;
    if (!server_route_run(r->route, &r->exchange, r->body ? r->body : "", r->n_body))
        return;   // the waiter continues when the model is loaded
    if (r->rest) {
        server_problem full;
        task->run = run_rest;
        task->is_long = true;
        if (server_body_readers_submit(r->http->readers, task, &full)) return;
        r->rest(&r->exchange);
    }
    end_reading(r);
}

static server_http_request *waiting_request(server_waiter *waiter)
{
    return (server_http_request *)((char *)waiter - offsetof(server_http_request, exchange.waiter));
}

static bool is_waiter_gone(server_waiter *waiter)
{
    server_http_request *r = waiting_request(waiter);
    return server_socket_is_left(r->socket, r->http->options.tls != NULL, !r->http_1_0, &r->is_probed);
}

// Called when the model of a request is loaded, and the body can be read again, or with a problem.
static void take_model(server_waiter *waiter, const server_problem *problem)
{
    server_http_request *r = waiting_request(waiter);
    server_problem full;
    r->exchange.is_held = !problem;
    if (!problem && server_body_readers_submit(r->http->readers, &r->task, &full)) return;
    r->exchange.problem = problem ? *problem : full;
    end_reading(r);
}

// ---------------------------------------------------------------------------------------- on a thread of libmicrohttpd

bool server_http_waits_for_reader(server_http_request *r)
{
    pthread_mutex_lock(&r->http->lock);
    const bool waits = r->is_reading;
    if (waits) MHD_suspend_connection(r->connection);
    pthread_mutex_unlock(&r->http->lock);
    return waits;
}

void server_http_read_body(server_http_request *r)
{
    server_acceptor_set(r->http->acceptor, r->link, SERVER_PHASE_ANSWER);
    r->stage = SERVER_STAGE_READ;
    if (r->exchange.problem.status || r->is_preflight) return;
    if (!r->route->parser) {
        server_route_run(r->route, &r->exchange, "", 0);
        return;
    }
    r->is_reading = true;
    r->task.is_long = r->n_body >= LONG_BODY;
    server_problem full;   // a body reader owns the request from here on, unless all are busy
    if (server_body_readers_submit(r->http->readers, &r->task, &full)) return;
    r->is_reading = false;
    r->exchange.problem = full;
}

void server_http_set_reader(server_http_request *r)
{
    r->task.run = read_body;
    r->exchange.waiter = (server_waiter){.ready = take_model, .is_gone = is_waiter_gone};
}
