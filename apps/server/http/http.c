// SPDX-License-Identifier: MIT
// From libmicrohttpd's callbacks to the routes, and back.
#include "server/http/http.h"

#include "server/ops/access_log.h"
#include "server/ops/clock.h"
#include "server/http/accept.h"
#include "server/http/read_heads.h"
#include "server/ops/trim_memory.h"
#include "server/http/web_ui.h"
#include "server/http/body_readers.h"
#include "server/http/client_gone.h"
#include "server/sched/fair_queue.h"

#include <math.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    N_THREADS = 4,
    N_READERS = 3,   // of bodies; one is for short ones
    MAX_CONNECTIONS = 4096,
    STALL_SECONDS = 120,   // of a client that takes nothing
    STREAM_BLOCK = 16 << 10,
    CONNECTION_BYTES = 4 * SERVER_MAX_HEAD,   // of libmicrohttpd's memory for one
    FIRST_BYTES = 16 << 10,                   // of a body's memory
    LONG_BODY = 64 << 10,                     // takes long to read
    LARGE_BYTES = 1 << 20,                    // of a body or an answer, whose memory goes back to the system
};

static const double SLOW_S = 0.1;   // of a grammar, whose memory goes back likewise

struct server_http {
    struct MHD_Daemon *daemon;
    server_acceptor *acceptor;
    server_body_readers *readers;
    pthread_mutex_t lock;   // of is_reading of all requests
    server_http_options options;
    _Atomic int n_open;
    _Atomic size_t body_bytes;   // of all bodies that are held
    _Atomic bool draining, cut;
    _Atomic uint64_t n_requests;
    uint64_t started_ns;
};

typedef enum stage { STAGE_NEW, STAGE_BODY, STAGE_COMPLETE, STAGE_READ, STAGE_ANSWER } stage;

typedef struct request {
    server_task task;   // first: reads the body
    server_http *http;
    struct MHD_Connection *connection;
    server_link *link;
    stage stage;
    const server_route *route;
    server_exchange exchange;
    char *body;
    size_t n_body, capacity;
    size_t n_dropped;   // of a body that was refused
    char id[129], allow[64], method[16];
    char *path;
    int socket;        // -1: unknown
    double came_at;    // monotonic seconds
    unsigned status;   // that was sent
    bool is_reading;   // a body reader has it
    bool is_submitted;
    bool is_probed;   // whether its client is still there, while it waits for its model
    bool is_preflight, bad_path, has_space, http_1_0, is_large;
    char traceparent[64];                      // of the header; "": none
    bool is_counted;                           // among the requests of its key
    bool ends;                                 // the connection is closed after the answer
    void (*rest)(server_exchange *exchange);   // of the handler's work: a long task of a body reader; NULL: none
    server_replay_reader reader;
} request;

// ---------------------------------------------------------------------------------------- headers

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

// The client's request id if it is one that can be sent back, or a new one.
static void choose_id(request *r)
{
    const char *given = header(r->connection, "X-Request-Id");
    size_t n = given ? strlen(given) : 0;
    bool good = n > 0 && n < sizeof r->id;
    for (size_t i = 0; good && i < n; i++) good = given[i] > 32 && given[i] < 127;
    if (good)
        memcpy(r->id, given, n + 1);
    else
        snprintf(r->id, sizeof r->id, "req-%llx-%llx", (unsigned long long)r->http->started_ns,
                 (unsigned long long)atomic_fetch_add(&r->http->n_requests, 1));
}

static void refuse_body(request *r)
{
    server_refuse(&r->exchange.problem, 413, "body_too_large", NULL, "the body is larger than %d MiB",
                  SERVER_MAX_BODY >> 20);
}

static bool is_identity(const char *coding)
{
    return !coding || !*coding || strcasecmp(coding, "identity") == 0;
}

// The head, and what it says about the body. A client that asks whether it may send the body is answered at once.
static void check_headers(request *r, const char *method, const char *url, const char *version)
{
    server_problem *problem = &r->exchange.problem;
    struct MHD_Connection *c = r->connection;
    const char *length = header(c, "Content-Length"), *expect = header(c, "Expect");
    server_problem broken = {0};
    r->ends = !server_later_head_check(c, method, url, version, &broken);
    if (!r->ends && r->has_space)
        r->ends = !server_refuse(&broken, 400, "invalid_http", NULL, "the address has a space");
    if (r->ends) *problem = broken;
    const bool too_large = length && strtoull(length, NULL, 10) > SERVER_MAX_BODY;
    if (too_large && !problem->status) refuse_body(r);
    if (!problem->status && !is_identity(header(c, "Content-Encoding")))
        server_refuse(problem, 415, "unsupported_encoding", NULL,
                      "Content-Encoding '%.64s' is not supported: send the body as it is",
                      header(c, "Content-Encoding"));
    if (!problem->status && expect && strcasecmp(expect, "100-continue") != 0)
        server_refuse(problem, 417, "expectation_failed", NULL, "Expect: '%.64s' is not possible, only 100-continue",
                      expect);
    r->ends |= too_large || (problem->status && expect);
}

static const char *query(const server_exchange *exchange, const char *name)
{
    const request *r = exchange->ctx;
    return MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, name);
}

// Everything that can be decided before the body.
static void open_request(request *r, const char *method, const char *url, const char *version)
{
    const server_guard *guard = &r->http->options.guard;
    struct MHD_Connection *c = r->connection;
    const server_caller caller = {header(c, "Host"),
                                  header(c, "Origin"),
                                  header(c, "Authorization"),
                                  header(c, "X-Api-Key"),
                                  header(c, "Sec-Fetch-Site"),
                                  header(c, "Sec-Fetch-Mode"),
                                  method};
    server_problem *problem = &r->exchange.problem;
    choose_id(r);
    const char *trace = header(c, "traceparent");
    if (trace && strlen(trace) < sizeof r->traceparent) snprintf(r->traceparent, sizeof r->traceparent, "%s", trace);
    r->exchange.ctx = r;
    r->exchange.query = query;
    r->exchange.conversation = header(c, "X-Conversation-Id");
    r->exchange.last_event = header(c, "Last-Event-ID");
    r->is_preflight = strcmp(method, "OPTIONS") == 0 && server_guard_allowed_origin(guard, caller.origin);
    server_problem no_route = {0};
    if (!r->is_preflight) r->route = server_route_find(method, r->path, &r->exchange.rest, r->allow, &no_route);
    if (r->route) r->exchange.protocol = r->route->protocol;
    bool needs_key = !r->is_preflight && (!r->route || r->route->needs_key);
    server_key *key = r->exchange.caller = server_guard_key(guard, &caller);
    r->exchange.key = (size_t)server_key_id(key);
    if (server_guard_admits(guard, &caller, key, needs_key, problem) && no_route.status) *problem = no_route;
    if (r->bad_path && !problem->status)
        server_refuse(problem, 404, "not_found", NULL, "a path with %%00 does not exist");
    if (atomic_load(&r->http->draining) && !problem->status) {
        server_refuse(problem, 503, "shutting_down", NULL, "the server is shutting down");
        problem->retry_after = 5;
    }
    check_headers(r, method, url, version);
    if (problem->status || !r->route || !r->route->parser) return;
    r->is_counted = server_key_enter(key, r->came_at, problem);
}

static void drop_body(request *r)
{
    atomic_fetch_sub(&r->http->body_bytes, r->capacity);
    server_key_drop(r->exchange.caller, r->capacity);
    free(r->body);
    r->body = NULL;
    r->n_body = r->capacity = 0;
}

// Room for n more bytes, out of what all bodies may have together. A length that is only announced costs nothing.
static bool grow_body(request *r, size_t n)
{
    const char *announced = header(r->connection, "Content-Length");
    const size_t most = announced ? (size_t)strtoull(announced, NULL, 10) : SERVER_MAX_BODY;
    size_t capacity = r->capacity ? 2 * r->capacity : FIRST_BYTES;
    while (capacity < r->n_body + n) capacity *= 2;
    if (capacity > most && most >= r->n_body + n) capacity = most;
    const size_t more = capacity - r->capacity;
    server_key *key = r->exchange.caller;
    const bool fits = server_key_hold(key, more, SERVER_MAX_BODIES_OF_KEY);
    if (atomic_fetch_add(&r->http->body_bytes, more) + more > SERVER_MAX_BODIES || !fits) {
        atomic_fetch_sub(&r->http->body_bytes, more);
        if (fits) server_key_drop(key, more);
        server_refuse(&r->exchange.problem, 503, "too_many_bodies", NULL,
                      "the bodies of requests that are being read have %d MiB together%s",
                      (fits ? SERVER_MAX_BODIES : SERVER_MAX_BODIES_OF_KEY) >> 20, fits ? "" : ", those of this key");
        r->exchange.problem.retry_after = 1;
        return false;
    }
    char *body = realloc(r->body, capacity);
    if (!body) {
        atomic_fetch_sub(&r->http->body_bytes, more);
        server_key_drop(key, more);
        return server_refuse_status(&r->exchange.problem, 500, NULL, FRIT_E_MEMORY);
    }
    r->body = body;
    r->capacity = capacity;
    return true;
}

// A refused request's body is read and dropped, so that the connection stays usable; as much as a body may have.
static void take_body(request *r, const char *bytes, size_t n)
{
    if (r->exchange.problem.status || !r->route || !r->route->parser) {
        r->n_dropped += n;
        return;
    }
    if (n > SERVER_MAX_BODY - r->n_body) {
        refuse_body(r);
        return;
    }
    if (r->n_body + n > r->capacity && !grow_body(r, n)) {
        drop_body(r);
        return;
    }
    memcpy(r->body + r->n_body, bytes, n);
    r->n_body += n;
}

// ---------------------------------------------------------------------------------------- replies

// As OpenAI names them; of keys with limits, for requests that count.
static void add_allowance(struct MHD_Response *response, const char *what, const server_allowance *a)
{
    const struct {
        const char *name, *unit;
        double value;
    } rows[] = {{"limit", "", a->amount}, {"remaining", "", floor(a->left)}, {"reset", "s", ceil(a->seconds)}};
    for (size_t i = 0; a->amount > 0 && i < sizeof rows / sizeof rows[0]; i++) {
        char name[64], value[64];
        snprintf(name, sizeof name, "X-RateLimit-%s-%s", rows[i].name, what);
        snprintf(value, sizeof value, "%.0f%s", rows[i].value, rows[i].unit);
        MHD_add_response_header(response, name, value);
    }
}

static void add_allowances(const request *r, struct MHD_Response *response)
{
    server_allowance requests, tokens;
    if (!r->route || !r->route->parser) return;
    server_key_allowances(r->exchange.caller, server_now(), &requests, &tokens);
    add_allowance(response, "Requests", &requests);
    add_allowance(response, "Tokens", &tokens);
}

static void add_headers(const request *r, struct MHD_Response *response)
{
    const server_problem *problem = &r->exchange.problem;
    char number[16];
    MHD_add_response_header(response, "X-Request-Id", r->id);
    if (r->exchange.protocol->id_header) MHD_add_response_header(response, r->exchange.protocol->id_header, r->id);
    if (problem->retry_after > 0) {
        snprintf(number, sizeof number, "%d", problem->retry_after);
        MHD_add_response_header(response, "Retry-After", number);
    }
    add_allowances(r, response);
    if (problem->status == 401) MHD_add_response_header(response, "WWW-Authenticate", server_route_challenge(r->route));
    if (problem->status == 405) MHD_add_response_header(response, "Allow", r->allow);
    if (problem->status == 500) MHD_add_response_header(response, "X-Should-Retry", "false");
    if (atomic_load(&r->http->draining) || r->ends || server_link_is_reserve(r->link))
        MHD_add_response_header(response, "Connection", "close");
    const char *origin = server_guard_allowed_origin(&r->http->options.guard, header(r->connection, "Origin"));
    if (!origin) return;
    MHD_add_response_header(response, "Access-Control-Allow-Origin", origin);
    MHD_add_response_header(response, "Access-Control-Expose-Headers",
                            "X-Request-Id, Retry-After, X-RateLimit-Limit-Requests, X-RateLimit-Remaining-Requests, "
                            "X-RateLimit-Reset-Requests, X-RateLimit-Limit-Tokens, X-RateLimit-Remaining-Tokens, "
                            "X-RateLimit-Reset-Tokens");
    MHD_add_response_header(response, "Vary", "Origin");
    if (!r->is_preflight) return;
    const char *asked = header(r->connection, "Access-Control-Request-Headers");
    MHD_add_response_header(response, "Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
    if (asked) MHD_add_response_header(response, "Access-Control-Allow-Headers", asked);
    MHD_add_response_header(response, "Access-Control-Max-Age", "600");
}

static enum MHD_Result queue(request *r, unsigned status, struct MHD_Response *response)
{
    if (!response) return MHD_NO;
    r->status = status;
    add_headers(r, response);
    enum MHD_Result result = MHD_queue_response(r->connection, status, response);
    MHD_destroy_response(response);
    return result;
}

// Takes a malloc'd text over. type NULL: JSON.
static enum MHD_Result send_text(request *r, unsigned status, char *text, size_t n, const char *type)
{
    if (!text) return MHD_NO;
    struct MHD_Response *response = MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE);
    if (!response)
        free(text);
    else
        MHD_add_response_header(response, "Content-Type", type ? type : "application/json");
    return queue(r, status, response);
}

static enum MHD_Result send_problem(request *r)
{
    char *text = r->exchange.protocol->problem(&r->exchange.problem);
    return send_text(r, (unsigned)r->exchange.problem.status, text, text ? strlen(text) : 0, NULL);
}

static enum MHD_Result send_nothing(request *r)
{
    return queue(r, 204, MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT));
}

// ---------------------------------------------------------------------------------------- answers of jobs

static void suspend(void *ctx)
{
    MHD_suspend_connection(((request *)ctx)->connection);
}

static void resume(void *ctx)
{
    MHD_resume_connection(((request *)ctx)->connection);
}

static ssize_t read_stream(void *ctx, uint64_t position, char *bytes, size_t size)
{
    (void)position;
    request *r = ctx;
    size_t n;
    switch (server_job_read(r->exchange.model->worker, r->exchange.job, bytes, size, &n, suspend, r)) {
    case SERVER_READ_BYTES:
        return (ssize_t)n;
    case SERVER_READ_NOTHING:
        return 0;
    default:
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
}

static ssize_t read_replay(void *ctx, uint64_t position, char *bytes, size_t size)
{
    (void)position;
    request *r = ctx;
    size_t n;
    switch (server_replay_take(&r->reader, bytes, size, &n, suspend, r)) {
    case SERVER_REPLAY_READ:
        return (ssize_t)n;
    case SERVER_REPLAY_NOTHING:
        return 0;
    case SERVER_REPLAY_LOST:
        return MHD_CONTENT_READER_END_WITH_ERROR;
    default:
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
}

static enum MHD_Result send_stream(request *r)
{
    server_replay *replay = r->exchange.replay ? r->exchange.replay : r->exchange.job->reply.replay;
    const bool is_head = strcmp(r->method, "HEAD") == 0;   // libmicrohttpd would send the end of a chunked body
    struct MHD_Response *response =
        is_head ? MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT)
                : MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, replay ? read_replay : read_stream,
                                                    r, NULL);
    if (response && replay && !is_head) {
        r->reader.position = r->exchange.from;
        r->reader.wake = resume;
        r->reader.ctx = r;
        server_replay_join(replay, &r->reader);
    }
    if (response) {
        MHD_add_response_header(response, "Content-Type",
                                replay ? server_replay_type(replay) : r->exchange.protocol->stream_type);
        MHD_add_response_header(response, "Cache-Control", "no-cache");
        MHD_add_response_header(response, "X-Accel-Buffering", "no");   // for proxies that collect otherwise
    }
    return queue(r, 200, response);
}

// The whole reply is in the send queue.
static enum MHD_Result send_whole(request *r)
{
    server_job *job = r->exchange.job;
    size_t n = 0, size = job->reply.queue.n;
    char *text = malloc(size + 1);
    if (text && size > 0) server_job_read(r->exchange.model->worker, job, text, size, &n, suspend, r);
    r->is_large |= n >= LARGE_BYTES;
    if (n > 0) return send_text(r, 200, text, n, NULL);
    free(text);
    server_refuse_status(&r->exchange.problem, 500, NULL, FRIT_E_MEMORY);
    return send_problem(r);
}

static enum MHD_Result answer_with_job(request *r)
{
    server_problem *problem = &r->exchange.problem;
    if (!server_job_begun(r->exchange.model->worker, r->exchange.job, problem, suspend, r)) return MHD_YES;
    if (problem->status == 499) return MHD_NO;   // closes the connection
    if (problem->status) return send_problem(r);
    return r->exchange.stream ? send_stream(r) : send_whole(r);
}

static enum MHD_Result send_asset(request *r)
{
    unsigned status;
    struct MHD_Response *response = server_asset_response(r->exchange.asset, header(r->connection, "Accept-Encoding"),
                                                          header(r->connection, "If-None-Match"), &status);
    return queue(r, status, response);
}

static enum MHD_Result answer(request *r)
{
    if (r->exchange.problem.status == 499) return MHD_NO;   // closes the connection
    if (r->exchange.problem.status) return send_problem(r);
    if (r->is_preflight) return send_nothing(r);
    if (r->exchange.job) return answer_with_job(r);
    if (r->exchange.asset) return send_asset(r);
    if (r->exchange.replay) return send_stream(r);
    char *reply = r->exchange.reply;
    r->exchange.reply = NULL;
    return send_text(r, 200, reply, reply ? strlen(reply) : 0, r->exchange.type);
}

// Is the work in vain? Asked while a body becomes a job and its grammar is compiled: the client has gone, or has
// cancelled what goes on without it, or the server ends. Nothing else is written to the connection then.
static bool is_gone(void *ctx)
{
    request *r = ctx;
    const server_job *job = r->exchange.job;
    if (atomic_load(&r->http->cut)) return true;
    if (job && job->reply.replay) return server_replay_is_cancelled(job->reply.replay);
    return server_socket_is_left(r->socket, r->http->options.tls != NULL, !r->http_1_0, &r->is_probed);
}

// On a thread of a body reader, too: the connection is not resumed before a body reader is done with the request.
static bool submit(server_exchange *exchange)
{
    request *r = exchange->ctx;
    server_worker *worker = r->exchange.model->worker;
    server_job *job = exchange->job;
    if (r->is_submitted) return true;
    job->client.socket = r->socket;
    server_job_set_caller(job, exchange->caller);
    job->client.may_probe = !r->http_1_0 && !r->http->options.tls;
    job->request.max_seconds = r->http->options.answer_s;
    job->client.is_tls = r->http->options.tls != NULL;
    r->is_submitted = true;
    job->caller.is_counted = r->is_counted && job->reply.replay;   // it may outlive its connection
    if (server_job_reserve(job, server_job_most_tokens(worker, job), &exchange->problem) &&
        server_worker_submit(worker, job, &exchange->problem)) {
        if (job->reply.replay) r->is_counted = false;
        if (job->reply.replay) server_replay_publish(job->reply.replay);
        return true;
    }
    job->caller.is_counted = false;
    server_job_settle(job);
    server_job_release(worker, job);
    exchange->job = NULL;
    return false;
}

static void follow_job(request *r)
{
    if (!r->exchange.job || (!r->is_submitted && !submit(&r->exchange))) return;
    server_job_listen(r->exchange.model->worker, r->exchange.job, resume, r);
}

// Its connection goes on.
static void end_reading(request *r)
{
    server_http *http = r->http;
    r->is_large = r->n_body >= LARGE_BYTES || r->exchange.is_large;
    drop_body(r);
    pthread_mutex_lock(&http->lock);
    r->is_reading = false;
    MHD_resume_connection(r->connection);
    pthread_mutex_unlock(&http->lock);
}

static void defer(server_exchange *exchange, void (*work)(server_exchange *exchange))
{
    request *r = exchange->ctx;
    r->rest = work;
}

static void do_rest(server_task *task)
{
    request *r = (request *)task;
    const double start = server_now();
    r->rest(&r->exchange);
    r->exchange.is_large |= server_now() - start > SLOW_S;
    end_reading(r);
}

// On a thread of a body reader.
static void read_body(server_task *task)
{
    request *r = (request *)task;
    r->exchange.cancelled = is_gone;
    r->exchange.submit = submit;
    r->exchange.defer = defer;
    if (!server_route_run(r->route, &r->exchange, r->body ? r->body : "", r->n_body))
        return;   // until its model is there
    if (r->rest) {
        server_problem full;
        task->run = do_rest;
        task->is_long = true;
        if (server_body_readers_submit(r->http->readers, task, &full)) return;
        r->rest(&r->exchange);
    }
    end_reading(r);
}

static request *waiting_request(server_waiter *waiter)
{
    return (request *)((char *)waiter - offsetof(request, exchange.waiter));
}

static bool waits_for_nobody(server_waiter *waiter)
{
    request *r = waiting_request(waiter);
    return server_socket_is_left(r->socket, r->http->options.tls != NULL, !r->http_1_0, &r->is_probed);
}

// The model is there, and the body is read again; or it will not be.
static void take_model(server_waiter *waiter, const server_problem *problem)
{
    request *r = waiting_request(waiter);
    server_problem full;
    r->exchange.is_held = !problem;
    if (!problem && server_body_readers_submit(r->http->readers, &r->task, &full)) return;
    r->exchange.problem = problem ? *problem : full;
    end_reading(r);
}

// Suspends the connection while a body reader reads the body. A wake that was meant for an earlier request may come
// too.
static bool waits_for_reader(request *r)
{
    pthread_mutex_lock(&r->http->lock);
    const bool waits = r->is_reading;
    if (waits) MHD_suspend_connection(r->connection);
    pthread_mutex_unlock(&r->http->lock);
    return waits;
}

// The request is complete: a body reader reads its body, if it has one.
static void take_request(request *r)
{
    server_acceptor_set(r->http->acceptor, r->link, SERVER_PHASE_ANSWER);
    r->stage = STAGE_READ;
    if (r->exchange.problem.status || r->is_preflight) return;
    if (!r->route->parser) {
        server_route_run(r->route, &r->exchange, "", 0);
        return;
    }
    r->is_reading = true;
    r->task.is_long = r->n_body >= LONG_BODY;
    server_problem full;   // the request is a body reader's from here on
    if (server_body_readers_submit(r->http->readers, &r->task, &full)) return;
    r->is_reading = false;
    r->exchange.problem = full;
}

// ---------------------------------------------------------------------------------------- callbacks

// The first line of a request has come. What is returned becomes the request's state.
static void *on_line(void *ctx, const char *uri, struct MHD_Connection *connection)
{
    server_http *http = ctx;
    request *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->http = http;
    r->task.run = read_body;
    r->connection = connection;
    r->exchange.site = http->options.site;
    r->exchange.protocol = &server_openai;
    r->exchange.ctx = r;
    r->exchange.waiter = (server_waiter){.ready = take_model, .is_gone = waits_for_nobody};
    r->came_at = server_now();
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    r->link = info ? info->socket_context : NULL;
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    r->socket = info ? info->connect_fd : -1;
    r->bad_path = uri && strstr(uri, "%00");
    r->has_space = uri && strchr(uri, ' ');
    atomic_fetch_add(&http->n_open, 1);
    return r;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *bytes, size_t *n_bytes, void **state)
{
    (void)ctx, (void)connection;
    request *r = *state;
    if (!r) return MHD_NO;
    if (r->stage == STAGE_NEW) {
        r->stage = STAGE_BODY;
        r->http_1_0 = strcmp(version, "HTTP/1.0") == 0;
        r->path = strdup(url);
        if (!r->path) return MHD_NO;
        snprintf(r->method, sizeof r->method, "%s", method);
        open_request(r, method, url, version);
        server_acceptor_set(r->http->acceptor, r->link, SERVER_PHASE_BODY);
        return r->ends ? send_problem(r) : MHD_YES;   // the body is not waited for
    }
    if (*n_bytes > 0) {
        take_body(r, bytes, *n_bytes);
        *n_bytes = 0;
        return r->n_dropped > SERVER_MAX_BODY ? MHD_NO : MHD_YES;   // closes the connection
    }
    // libmicrohttpd asks again at once, and no longer wants to read then. A connection that is suspended while it wants
    // to read is closed without an answer if the client has closed its sending side.
    if (r->stage == STAGE_BODY) {
        r->stage = STAGE_COMPLETE;
        return MHD_YES;
    }
    if (r->stage == STAGE_COMPLETE) take_request(r);
    if (r->stage == STAGE_READ) {
        if (waits_for_reader(r)) return MHD_YES;
        r->stage = STAGE_ANSWER;
        follow_job(r);
    }
    return answer(r);
}

static void trace_request(const request *r, const server_access *access)
{
    server_traces *traces = r->http->options.site->traces;
    if (!traces || !r->route || !r->route->parser) return;
    server_span span = {.operation = server_trace_operation(r->route->path),
                        .method = access->method,
                        .route = access->path,
                        .status = access->status,
                        .seconds = access->seconds,
                        .has_usage = access->has_usage,
                        .n_prompt = access->n_prompt,
                        .n_cached = access->n_cached,
                        .n_answer = access->n_answer};
    server_trace_read(r->traceparent[0] ? r->traceparent : NULL, &span.trace);
    snprintf(span.id, sizeof span.id, "%s", r->id);
    if (r->exchange.model) snprintf(span.model, sizeof span.model, "%s", r->exchange.model->name);
    if (access->has_usage) {   // the job has ended
        const server_times *t = &r->exchange.job->times;
        if (t->started > 0) span.queued_s = t->started - t->submitted;
        if (t->first > 0) span.first_token_s = t->first - t->submitted;
    }
    server_traces_add(traces, &span);
}

static void log_request(const request *r, bool aborted)
{
    server_usage usage = {0};
    server_access access = {.id = r->id,
                            .status = (int)r->status,
                            .aborted = aborted,
                            .model = r->exchange.is_used ? r->exchange.model->name : NULL,
                            .code = r->exchange.problem.status ? r->exchange.problem.code : NULL,
                            .seconds = server_now() - r->came_at,
                            .key = server_key_label(r->exchange.caller)};
    if (r->stage == STAGE_NEW) return;
    char path[256];
    access.method = r->route ? r->route->method : r->method;
    access.path = r->route ? r->route->path : server_access_path(r->path, path, sizeof path);
    if (r->exchange.job) access.has_usage = server_job_used(r->exchange.model->worker, r->exchange.job, &usage);
    access.n_prompt = usage.n_prompt;
    access.n_cached = usage.n_cached;
    access.n_answer = usage.n_answer;
    server_access_log_write(r->http->options.log, &access);
    trace_request(r, &access);
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    (void)connection;
    request *r = *state;
    if (!r) return;
    server_http *http = ctx;
    log_request(r, code != MHD_REQUEST_TERMINATED_COMPLETED_OK);
    const bool is_large = r->is_large;
    server_acceptor_set(http->acceptor, r->link, SERVER_PHASE_IDLE);
    server_replay_leave(&r->reader);
    server_replay_release(r->exchange.replay);
    const server_exchange *exchange = &r->exchange;
    if (exchange->job) server_job_release(exchange->model->worker, exchange->job);
    if (exchange->is_held) server_models_release(exchange->site->models, exchange->model, exchange->is_used);
    if (r->is_counted) server_key_leave(exchange->caller);
    drop_body(r);
    server_key_release(exchange->caller);
    free(r->exchange.reply);
    free(r->path);
    free(r);
    if (is_large) server_memory_trim();
    *state = NULL;
    atomic_fetch_sub(&http->n_open, 1);
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    server_http *http = ctx;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED)
        server_acceptor_close(http->acceptor, *socket_context);
    else
        *socket_context = info ? server_acceptor_find(http->acceptor, info->connect_fd) : NULL;
    if (code != MHD_CONNECTION_NOTIFY_CLOSED) server_acceptor_own(http->acceptor, *socket_context, connection);
}

// Resumes it again. One that is not suspended does not mind.
static void wake_connection(void *connection)
{
    MHD_resume_connection(connection);
}

// libmicrohttpd has failed. Without memory for its poll set it forgets those that were to be resumed.
static void on_failure(void *ctx, const char *format, va_list arguments)
{
    (void)format, (void)arguments;
    const server_http *http = ctx;
    if (http->acceptor) server_acceptor_wake(http->acceptor);
}

static bool admit(void *ctx, int fd, const struct sockaddr *address, socklen_t n_address)
{
    server_http *http = ctx;
    return MHD_add_connection(http->daemon, fd, address, n_address) == MHD_YES;
}

// As many as there are descriptors for, less some for the rest of the process.
static unsigned connection_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= MAX_CONNECTIONS + 64) return MAX_CONNECTIONS;
    return limit.rlim_cur > 128 ? (unsigned)limit.rlim_cur - 64 : (unsigned)limit.rlim_cur / 2;
}

// poll, not epoll: the library's epoll threads end the process in rare orders of closing and resuming.
static bool start_daemon(server_http *http, unsigned max_links)
{
    const bool is_tls = http->options.tls != NULL;
    const unsigned says = MHD_is_feature_supported(MHD_FEATURE_MESSAGES) == MHD_YES ? MHD_USE_ERROR_LOG : 0;
    const int idle_s = http->options.idle_s, stall_s = idle_s > STALL_SECONDS ? idle_s + 1 : STALL_SECONDS;
    struct MHD_OptionItem more[] = {
        {is_tls ? MHD_OPTION_HTTPS_CERT_CALLBACK : MHD_OPTION_END, 0, server_tls_callback()},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)server_tls_priorities()},
        {MHD_OPTION_END, 0, NULL}};
    http->daemon = MHD_start_daemon(
        MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET |
            (is_tls ? MHD_USE_TLS : 0) | says,
        0, NULL, NULL, on_request, http, MHD_OPTION_EXTERNAL_LOGGER, on_failure, http, MHD_OPTION_THREAD_POOL_SIZE,
        (unsigned)N_THREADS, MHD_OPTION_CONNECTION_LIMIT, max_links + N_THREADS, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)stall_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_STRICT_FOR_CLIENT,
        server_later_head_strictness(), MHD_OPTION_URI_LOG_CALLBACK, on_line, http, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, http, MHD_OPTION_NOTIFY_COMPLETED, on_completed, http, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_ARRAY, more, MHD_OPTION_END);
    return http->daemon != NULL;
}

bool server_http_start(server_http **out, const server_http_options *options, server_problem *problem)
{
    *out = NULL;
    server_http *http = calloc(1, sizeof *http);
    const unsigned max_links = connection_limit();
    const server_acceptor_options acceptor = {.socket = options->socket,
                                              .is_tls = options->tls != NULL,
                                              .max_links = (int)max_links,
                                              .arrival_s = options->arrival_s,
                                              .idle_s = options->idle_s,
                                              .admit = admit,
                                              .wake = wake_connection,
                                              .ctx = http};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    server_memory_prepare();
    bool good = http || server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    if (good) {
        http->options = *options;
        pthread_mutex_init(&http->lock, NULL);
        http->started_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
        good = server_body_readers_new(&http->readers, N_READERS, options->max_waiting, problem);
    }
    if (good && !start_daemon(http, max_links))
        good = server_refuse(problem, 500, NULL, NULL, "libmicrohttpd could not start");
    if (good && server_acceptor_start(&http->acceptor, &acceptor, problem)) {
        *out = http;
        return true;
    }
    if (http && http->daemon) MHD_stop_daemon(http->daemon);
    if (http) server_body_readers_free(http->readers);
    close(options->socket);
    free(http);
    return false;
}

void server_http_drain(server_http *http)
{
    if (!atomic_exchange(&http->draining, true)) server_acceptor_drain(http->acceptor);
}

void server_http_cut(server_http *http)
{
    atomic_store(&http->cut, true);
}

bool server_http_is_reading(server_http *http)
{
    return !server_body_readers_is_idle(http->readers);
}

int server_http_open_requests(server_http *http)
{
    return atomic_load(&http->n_open);
}

void server_http_stop(server_http *http)
{
    if (!http) return;
    server_http_drain(http);
    server_acceptor_stop(http->acceptor);
    MHD_stop_daemon(http->daemon);
    server_acceptor_free(http->acceptor);
    server_body_readers_free(http->readers);
    pthread_mutex_destroy(&http->lock);
    free(http);
}
