// SPDX-License-Identifier: MIT
// Starts and stops the HTTP daemon, and has the callbacks of libmicrohttpd: heads, request by request, log and traces.
#include "server/http/http_body.h"
#include "server/http/http_reply.h"
#include "server/http/read_heads.h"
#include "server/ops/access_log.h"
#include "server/ops/clock.h"
#include "server/ops/trim_memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    N_THREADS = 4,
    N_READERS = 3,   // body readers; one is reserved for short bodies
    MAX_CONNECTIONS = 4096,
    STALL_SECONDS = 120,                      // limit for a client that reads nothing
    CONNECTION_BYTES = 4 * SERVER_MAX_HEAD,   // libmicrohttpd's memory for a connection
};

// ---------------------------------------------------------------------------------------- headers

// Sets the id: the client's X-Request-Id if it is printable and short enough, else a new one.
static void choose_id(server_http_request *r)
{
    const char *given = server_http_header(r->connection, "X-Request-Id");
    size_t n = given ? strlen(given) : 0;
    bool good = n > 0 && n < sizeof r->id;
    for (size_t i = 0; good && i < n; i++) good = given[i] > 32 && given[i] < 127;
    if (good)
        memcpy(r->id, given, n + 1);
    else
        snprintf(r->id, sizeof r->id, "req-%llx-%llx", (unsigned long long)r->http->started_ns,
                 (unsigned long long)atomic_fetch_add(&r->http->n_requests, 1));
}

static bool is_identity(const char *coding)
{
    return !coding || !*coding || strcasecmp(coding, "identity") == 0;
}

// Checks the head, and what it says about the body. A refused client that waits for 100 Continue is answered at once.
static void check_headers(server_http_request *r, const char *method, const char *url, const char *version)
{
    server_problem *problem = &r->exchange.problem;
    struct MHD_Connection *c = r->connection;
    const char *length = server_http_header(c, "Content-Length"), *expect = server_http_header(c, "Expect");
    server_problem broken = {0};
    r->ends = !server_later_head_check(c, method, url, version, &broken);
    if (!r->ends && r->has_space)
        r->ends = !server_refuse(&broken, 400, "invalid_http", NULL, "the address has a space");
    if (r->ends) *problem = broken;
    const bool too_large = length && strtoull(length, NULL, 10) > server_http_max_body(r->http);
    if (too_large && !problem->status) server_http_refuse_body(r);
    if (!problem->status && !is_identity(server_http_header(c, "Content-Encoding")))
        server_refuse(problem, 415, "unsupported_encoding", NULL,
                      "Content-Encoding '%.64s' is not supported: send the body as it is",
                      server_http_header(c, "Content-Encoding"));
    if (!problem->status && expect && strcasecmp(expect, "100-continue") != 0)
        server_refuse(problem, 417, "expectation_failed", NULL, "Expect: '%.64s' is not possible, only 100-continue",
                      expect);
    r->ends |= too_large || (problem->status && expect);
}

static const char *query(const server_exchange *exchange, const char *name)
{
    const server_http_request *r = exchange->ctx;
    return MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, name);
}

// Decides all that does not depend on the body: id, route, key, limits.
static void open_request(server_http_request *r, const char *method, const char *url, const char *version)
{
    const server_guard *guard = &r->http->options.guard;
    struct MHD_Connection *c = r->connection;
    const server_caller caller = {server_http_header(c, "Host"),
                                  server_http_header(c, "Origin"),
                                  server_http_header(c, "Authorization"),
                                  server_http_header(c, "X-Api-Key"),
                                  server_http_header(c, "Sec-Fetch-Site"),
                                  server_http_header(c, "Sec-Fetch-Mode"),
                                  method};
    server_problem *problem = &r->exchange.problem;
    choose_id(r);
    const char *trace = server_http_header(c, "traceparent");
    if (trace && strlen(trace) < sizeof r->traceparent) snprintf(r->traceparent, sizeof r->traceparent, "%s", trace);
    r->exchange.ctx = r;
    r->exchange.query = query;
    r->exchange.conversation = server_http_header(c, "X-Conversation-Id");
    r->exchange.last_event = server_http_header(c, "Last-Event-ID");
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
    if (atomic_load(&r->http->draining) && !problem->status) server_refuse_shutting_down(problem);
    check_headers(r, method, url, version);
    if (problem->status || !r->route || !r->route->parser) return;
    r->is_counted = server_key_enter(key, r->came_at, problem);
}

// ---------------------------------------------------------------------------------------- callbacks

// Called with the first line of a request. The result becomes the `state` of the other callbacks.
static void *on_line(void *ctx, const char *uri, struct MHD_Connection *connection)
{
    server_http *http = ctx;
    server_http_request *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->http = http;
    server_http_set_reader(r);
    r->connection = connection;
    r->exchange.site = http->options.site;
    r->exchange.protocol = &server_openai;
    r->exchange.ctx = r;
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
    server_http_request *r = *state;
    if (!r) return MHD_NO;
    if (r->stage == SERVER_STAGE_NEW) {
        r->stage = SERVER_STAGE_BODY;
        r->http_1_0 = strcmp(version, "HTTP/1.0") == 0;
        r->path = strdup(url);
        if (!r->path) return MHD_NO;
        snprintf(r->method, sizeof r->method, "%s", method);
        open_request(r, method, url, version);
        server_acceptor_set(r->http->acceptor, r->link, SERVER_PHASE_BODY);
        return r->ends ? server_http_send_problem(r) : MHD_YES;   // without waiting for the body
    }
    if (*n_bytes > 0) {
        server_http_take_body(r, bytes, *n_bytes);
        *n_bytes = 0;
        return r->n_dropped > server_http_max_body(r->http) ? MHD_NO : MHD_YES;   // closes the connection
    }
    // libmicrohttpd calls again at once, and does not wait for bytes any more then. If a connection that waits for
    // bytes is suspended, and the client closes its sending side, libmicrohttpd closes it without a reply.
    if (r->stage == SERVER_STAGE_BODY) {
        r->stage = SERVER_STAGE_COMPLETE;
        return MHD_YES;
    }
    if (r->stage == SERVER_STAGE_COMPLETE) server_http_read_body(r);
    if (r->stage == SERVER_STAGE_READ) {
        if (server_http_waits_for_reader(r)) return MHD_YES;
        r->stage = SERVER_STAGE_ANSWER;
        server_http_follow_job(r);
    }
    return server_http_reply(r);
}

static void trace_request(const server_http_request *r, const server_access *access)
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
    if (access->has_usage) {   // so the job has ended
        const server_times *t = &r->exchange.job->times;
        if (t->started > 0) span.queued_s = t->started - t->submitted;
        if (t->first > 0) span.first_token_s = t->first - t->submitted;
    }
    server_traces_add(traces, &span);
}

static void log_request(const server_http_request *r, bool aborted)
{
    server_usage usage = {0};
    server_access access = {.id = r->id,
                            .status = (int)r->status,
                            .aborted = aborted,
                            .model = r->exchange.is_used ? r->exchange.model->name : NULL,
                            .code = r->exchange.problem.status ? r->exchange.problem.code : NULL,
                            .seconds = server_now() - r->came_at,
                            .key = server_key_label(r->exchange.caller)};
    if (r->stage == SERVER_STAGE_NEW) return;
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
    server_http_request *r = *state;
    if (!r) return;
    server_http *http = ctx;
    log_request(r, code != MHD_REQUEST_TERMINATED_COMPLETED_OK);
    const bool is_large = r->is_large;
    server_acceptor_set(http->acceptor, r->link, SERVER_PHASE_IDLE);
    server_replay_leave(&r->reader);
    server_replay_unref(r->exchange.replay);
    const server_exchange *exchange = &r->exchange;
    if (exchange->job) server_job_leave(exchange->model->worker, exchange->job);
    if (exchange->is_held) server_models_release(exchange->site->models, exchange->model, exchange->is_used);
    if (r->is_counted) server_key_leave(exchange->caller);
    server_http_free_body(r);
    server_key_unref(exchange->caller);
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

// Resuming a connection that is not suspended does nothing.
static void wake_connection(void *connection)
{
    MHD_resume_connection(connection);
}

// Called when libmicrohttpd fails. Without memory for its poll set it forgets which connections to resume, so the
// accept thread resumes all of them.
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

// The most connections: the limit of open files, less some for the rest of the process.
static unsigned connection_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= MAX_CONNECTIONS + 64) return MAX_CONNECTIONS;
    return limit.rlim_cur > 128 ? (unsigned)limit.rlim_cur - 64 : (unsigned)limit.rlim_cur / 2;
}

// Uses poll: with epoll, libmicrohttpd ends the process in rare orders of closing and resuming.
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
