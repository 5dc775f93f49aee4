// SPDX-License-Identifier: MIT
// From libmicrohttpd's callbacks to the routes, and back.
#include "server/http.h"

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { N_THREADS = 4, MAX_CONNECTIONS = 4096, IDLE_SECONDS = 120, STREAM_BLOCK = 16 << 10 };

struct server_http {
    struct MHD_Daemon *daemon;
    server_http_options options;
    _Atomic int n_open;
    _Atomic bool draining;
    _Atomic uint64_t n_requests;
    uint64_t started_ns;
};

typedef struct request {
    server_http *http;
    struct MHD_Connection *connection;
    const server_route *route;
    server_exchange exchange;
    char *body;
    size_t n_body, capacity;
    char id[129], allow[64];
    char *path;
    bool too_large, has_run, is_preflight;
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

// Everything that can be decided before the body.
static void open_request(request *r, const char *method, const char *path)
{
    const server_guard *guard = &r->http->options.guard;
    struct MHD_Connection *c = r->connection;
    const server_caller caller = {header(c, "Host"), header(c, "Origin"), header(c, "Authorization"),
                                  header(c, "X-Api-Key")};
    server_problem *problem = &r->exchange.problem;
    choose_id(r);
    r->is_preflight = strcmp(method, "OPTIONS") == 0 && server_guard_allowed_origin(guard, caller.origin);
    server_problem no_route = {0};
    if (!r->is_preflight) r->route = server_route_find(method, r->path, &r->exchange.rest, r->allow, &no_route);
    bool needs_key = !r->is_preflight && (!r->route || r->route->needs_key);
    (void)path;
    if (!server_guard_admits(guard, &caller, needs_key, problem)) return;
    if (no_route.status) *problem = no_route;
    if (atomic_load(&r->http->draining) && !problem->status) {
        server_refuse(problem, 503, "shutting_down", NULL, "the server is shutting down");
        problem->retry_after = 5;
    }
    const char *length = header(c, "Content-Length");
    r->too_large = length && strtoull(length, NULL, 10) > SERVER_MAX_BODY;
}

static void refuse_body(request *r)
{
    r->too_large = true;
    server_refuse(&r->exchange.problem, 413, "body_too_large", NULL, "the body is larger than %d MiB",
                  SERVER_MAX_BODY >> 20);
}

// A refused request's body is read and dropped, so that the connection stays usable.
static void take_body(request *r, const char *bytes, size_t n)
{
    if (r->exchange.problem.status || !r->route || !r->route->parser) return;
    if (n > SERVER_MAX_BODY - r->n_body) {
        refuse_body(r);
        return;
    }
    if (r->n_body + n > r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : 4096;
        while (capacity < r->n_body + n) capacity *= 2;
        char *body = realloc(r->body, capacity);
        if (!body) {
            server_refuse_status(&r->exchange.problem, 500, NULL, FRIT_E_MEMORY);
            return;
        }
        r->body = body;
        r->capacity = capacity;
    }
    memcpy(r->body + r->n_body, bytes, n);
    r->n_body += n;
}

// ---------------------------------------------------------------------------------------- replies

static void add_headers(const request *r, struct MHD_Response *response)
{
    const server_problem *problem = &r->exchange.problem;
    char number[16];
    MHD_add_response_header(response, "X-Request-Id", r->id);
    if (problem->retry_after > 0) {
        snprintf(number, sizeof number, "%d", problem->retry_after);
        MHD_add_response_header(response, "Retry-After", number);
    }
    if (problem->status == 401) MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (problem->status == 405) MHD_add_response_header(response, "Allow", r->allow);
    if (problem->status == 500) MHD_add_response_header(response, "X-Should-Retry", "false");
    if (atomic_load(&r->http->draining)) MHD_add_response_header(response, "Connection", "close");
    const char *origin = server_guard_allowed_origin(&r->http->options.guard, header(r->connection, "Origin"));
    if (!origin) return;
    MHD_add_response_header(response, "Access-Control-Allow-Origin", origin);
    MHD_add_response_header(response, "Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
    MHD_add_response_header(response, "Vary", "Origin");
    if (!r->is_preflight) return;
    const char *asked = header(r->connection, "Access-Control-Request-Headers");
    MHD_add_response_header(response, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    if (asked) MHD_add_response_header(response, "Access-Control-Allow-Headers", asked);
    MHD_add_response_header(response, "Access-Control-Max-Age", "600");
}

static enum MHD_Result queue(const request *r, unsigned status, struct MHD_Response *response)
{
    if (!response) return MHD_NO;
    add_headers(r, response);
    enum MHD_Result result = MHD_queue_response(r->connection, status, response);
    MHD_destroy_response(response);
    return result;
}

// Takes malloc'd JSON over.
static enum MHD_Result send_json(const request *r, unsigned status, char *text, size_t n)
{
    if (!text) return MHD_NO;
    struct MHD_Response *response = MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE);
    if (!response)
        free(text);
    else
        MHD_add_response_header(response, "Content-Type", "application/json");
    return queue(r, status, response);
}

static enum MHD_Result send_problem(const request *r)
{
    char *text = server_problem_json(&r->exchange.problem);
    return send_json(r, (unsigned)r->exchange.problem.status, text, text ? strlen(text) : 0);
}

static enum MHD_Result send_nothing(const request *r)
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
    switch (server_job_read(r->http->options.site->worker, r->exchange.job, bytes, size, &n, suspend, r)) {
    case SERVER_READ_BYTES:
        return (ssize_t)n;
    case SERVER_READ_NOTHING:
        return 0;
    default:
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
}

static enum MHD_Result send_stream(request *r)
{
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, r, NULL);
    if (response) {
        MHD_add_response_header(response, "Content-Type", "text/event-stream");
        MHD_add_response_header(response, "Cache-Control", "no-cache");
        MHD_add_response_header(response, "X-Accel-Buffering", "no");   // for proxies that collect otherwise
    }
    return queue(r, 200, response);
}

// The whole answer lies in the outbox.
static enum MHD_Result send_whole(request *r)
{
    server_job *job = r->exchange.job;
    size_t n = 0, size = job->outbox.n;
    char *text = malloc(size + 1);
    if (text && size > 0) server_job_read(r->http->options.site->worker, job, text, size, &n, suspend, r);
    if (n > 0) return send_json(r, 200, text, n);
    free(text);
    server_refuse_status(&r->exchange.problem, 500, NULL, FRIT_E_MEMORY);
    return send_problem(r);
}

static enum MHD_Result answer_with_job(request *r)
{
    server_problem *problem = &r->exchange.problem;
    if (!server_job_begun(r->http->options.site->worker, r->exchange.job, problem, suspend, r)) return MHD_YES;
    if (problem->status == 499) return MHD_NO;   // closes the connection
    if (problem->status) return send_problem(r);
    return r->exchange.stream ? send_stream(r) : send_whole(r);
}

static enum MHD_Result answer(request *r)
{
    if (r->exchange.problem.status) return send_problem(r);
    if (r->is_preflight) return send_nothing(r);
    if (r->exchange.job) return answer_with_job(r);
    char *reply = r->exchange.reply;
    r->exchange.reply = NULL;
    return send_json(r, 200, reply, reply ? strlen(reply) : 0);
}

static void run(request *r)
{
    server_worker *worker = r->http->options.site->worker;
    if (r->exchange.problem.status || r->is_preflight) return;
    server_route_run(r->route, &r->exchange, r->body ? r->body : "", r->n_body);
    free(r->body);
    r->body = NULL;
    server_job *job = r->exchange.job;
    if (!job) return;
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    job->socket = info ? info->connect_fd : -1;
    job->wake = resume;
    job->wake_ctx = r;
    if (server_worker_submit(worker, job, &r->exchange.problem)) return;
    server_job_release(worker, job);
    r->exchange.job = NULL;
}

// ---------------------------------------------------------------------------------------- callbacks

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *bytes, size_t *n_bytes, void **state)
{
    (void)version;
    request *r = *state;
    if (!r) {
        r = calloc(1, sizeof *r);
        if (!r) return MHD_NO;
        *state = r;
        r->http = ctx;
        atomic_fetch_add(&r->http->n_open, 1);
        r->connection = connection;
        r->exchange.site = r->http->options.site;
        r->path = strdup(url);
        if (!r->path) return MHD_NO;
        open_request(r, method, url);
        if (!r->too_large) return MHD_YES;
        if (!r->exchange.problem.status) refuse_body(r);
        return send_problem(r);   // the body is not waited for; the connection ends
    }
    if (*n_bytes > 0) {
        take_body(r, bytes, *n_bytes);
        *n_bytes = 0;
        return MHD_YES;
    }
    if (!r->has_run) {
        r->has_run = true;
        run(r);
    }
    return answer(r);
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    (void)connection, (void)code;
    request *r = *state;
    if (!r) return;
    server_http *http = ctx;
    server_job_release(http->options.site->worker, r->exchange.job);
    free(r->exchange.reply);
    free(r->body);
    free(r->path);
    free(r);
    *state = NULL;
    atomic_fetch_sub(&http->n_open, 1);
}

// As many as there are descriptors for, less some for the rest of the process.
static unsigned connection_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= MAX_CONNECTIONS + 64) return MAX_CONNECTIONS;
    return limit.rlim_cur > 128 ? (unsigned)limit.rlim_cur - 64 : (unsigned)limit.rlim_cur / 2;
}

bool server_http_start(server_http **out, const server_http_options *options, server_problem *problem)
{
    *out = NULL;
    server_http *http = calloc(1, sizeof *http);
    if (!http) {
        close(options->socket);
        return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    http->options = *options;
    http->started_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    // poll, not epoll: with threads of its own, MHD_quiesce_daemon and a thread that wakes at that moment may both take
    // the socket out of the thread's epoll set, and the library ends the process for the one that comes second.
    http->daemon = MHD_start_daemon(MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request,
                                    http, MHD_OPTION_LISTEN_SOCKET, options->socket, MHD_OPTION_THREAD_POOL_SIZE,
                                    (unsigned)N_THREADS, MHD_OPTION_CONNECTION_LIMIT, connection_limit(),
                                    MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_NOTIFY_COMPLETED,
                                    on_completed, http, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    if (http->daemon) {
        *out = http;
        return true;
    }
    close(options->socket);
    free(http);
    return server_refuse(problem, 500, NULL, NULL, "libmicrohttpd could not start");
}

void server_http_drain(server_http *http)
{
    if (atomic_exchange(&http->draining, true)) return;
    MHD_socket socket = MHD_quiesce_daemon(http->daemon);
    if (socket != MHD_INVALID_SOCKET) close(socket);
}

int server_http_open_requests(server_http *http)
{
    return atomic_load(&http->n_open);
}

void server_http_stop(server_http *http)
{
    if (!http) return;
    server_http_drain(http);
    MHD_stop_daemon(http->daemon);
    free(http);
}
