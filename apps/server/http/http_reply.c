// SPDX-License-Identifier: MIT
// Sends replies: problems, whole replies, streams, files of the web UI.
#include "server/http/http_reply.h"

#include "server/http/web_ui.h"
#include "server/ops/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_BLOCK = 16 << 10 };

// ---------------------------------------------------------------------------------------- headers

// Adds headers with the limits of a key, under the names of OpenAI.
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

static void add_allowances(const server_http_request *r, struct MHD_Response *response)
{
    server_allowance requests, tokens;
    if (!r->route || !r->route->parser) return;
    server_key_allowances(r->exchange.caller, server_now(), &requests, &tokens);
    add_allowance(response, "Requests", &requests);
    add_allowance(response, "Tokens", &tokens);
}

static void add_headers(const server_http_request *r, struct MHD_Response *response)
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
    const char *origin =
        server_guard_allowed_origin(&r->http->options.guard, server_http_header(r->connection, "Origin"));
    if (!origin) return;
    MHD_add_response_header(response, "Access-Control-Allow-Origin", origin);
    MHD_add_response_header(response, "Access-Control-Expose-Headers",
                            "X-Request-Id, Retry-After, X-RateLimit-Limit-Requests, X-RateLimit-Remaining-Requests, "
                            "X-RateLimit-Reset-Requests, X-RateLimit-Limit-Tokens, X-RateLimit-Remaining-Tokens, "
                            "X-RateLimit-Reset-Tokens");
    MHD_add_response_header(response, "Vary", "Origin");
    if (!r->is_preflight) return;
    const char *asked = server_http_header(r->connection, "Access-Control-Request-Headers");
    MHD_add_response_header(response, "Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
    if (asked) MHD_add_response_header(response, "Access-Control-Allow-Headers", asked);
    MHD_add_response_header(response, "Access-Control-Max-Age", "600");
}

// ---------------------------------------------------------------------------------------- replies without a job

static enum MHD_Result queue_response(server_http_request *r, unsigned status, struct MHD_Response *response)
{
    if (!response) return MHD_NO;
    r->status = status;
    add_headers(r, response);
    enum MHD_Result result = MHD_queue_response(r->connection, status, response);
    MHD_destroy_response(response);
    return result;
}

// Sends a malloc'd text, which it takes over. `type` NULL: JSON.
static enum MHD_Result send_text(server_http_request *r, unsigned status, char *text, size_t n, const char *type)
{
    if (!text) return MHD_NO;
    struct MHD_Response *response = MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE);
    if (!response)
        free(text);
    else
        MHD_add_response_header(response, "Content-Type", type ? type : "application/json");
    return queue_response(r, status, response);
}

enum MHD_Result server_http_send_problem(server_http_request *r)
{
    char *text = r->exchange.protocol->problem(&r->exchange.problem);
    return send_text(r, (unsigned)r->exchange.problem.status, text, text ? strlen(text) : 0, NULL);
}

static enum MHD_Result send_nothing(server_http_request *r)
{
    return queue_response(r, 204, MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT));
}

// ---------------------------------------------------------------------------------------- replies of jobs

static void suspend_connection(void *ctx)
{
    MHD_suspend_connection(((server_http_request *)ctx)->connection);
}

static ssize_t read_job(void *ctx, uint64_t position, char *bytes, size_t size)
{
    (void)position;
    server_http_request *r = ctx;
    size_t n;
    switch (server_job_read(r->exchange.model->worker, r->exchange.job, bytes, size, &n, suspend_connection, r)) {
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
    server_http_request *r = ctx;
    size_t n;
    switch (server_replay_take(&r->reader, bytes, size, &n, suspend_connection, r)) {
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

static enum MHD_Result send_stream(server_http_request *r)
{
    server_replay *replay = r->exchange.replay ? r->exchange.replay : r->exchange.job->reply.replay;
    const bool is_head =
        strcmp(r->method, "HEAD") == 0;   // a callback would make libmicrohttpd send the end of a chunked body
    struct MHD_Response *response = is_head
                                        ? MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT)
                                        : MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK,
                                                                            replay ? read_replay : read_job, r, NULL);
    if (response && replay && !is_head) {
        r->reader.position = r->exchange.from;
        r->reader.wake = server_http_resume;
        r->reader.ctx = r;
        server_replay_join(replay, &r->reader);
    }
    if (response) {
        MHD_add_response_header(response, "Content-Type",
                                replay ? server_replay_type(replay) : r->exchange.protocol->stream_type);
        MHD_add_response_header(response, "Cache-Control", "no-cache");
        MHD_add_response_header(response, "X-Accel-Buffering", "no");   // keeps proxies from buffering the stream
    }
    return queue_response(r, 200, response);
}

// Sends a reply that is whole in the send queue.
static enum MHD_Result send_whole(server_http_request *r)
{
    server_job *job = r->exchange.job;
    size_t n = 0, size = job->reply.queue.n;
    char *text = malloc(size + 1);
    if (text && size > 0) server_job_read(r->exchange.model->worker, job, text, size, &n, suspend_connection, r);
    r->is_large |= n >= SERVER_LARGE_BYTES;
    if (n > 0) return send_text(r, 200, text, n, NULL);
    free(text);
    server_refuse_status(&r->exchange.problem, 500, NULL, FRIT_E_MEMORY);
    return server_http_send_problem(r);
}

static enum MHD_Result reply_with_job(server_http_request *r)
{
    server_problem *problem = &r->exchange.problem;
    if (!server_job_begun(r->exchange.model->worker, r->exchange.job, problem, suspend_connection, r)) return MHD_YES;
    if (problem->status == 499) return MHD_NO;   // closes the connection
    if (problem->status) return server_http_send_problem(r);
    return r->exchange.stream ? send_stream(r) : send_whole(r);
}

static enum MHD_Result send_asset(server_http_request *r)
{
    unsigned status;
    struct MHD_Response *response =
        server_asset_response(r->exchange.asset, server_http_header(r->connection, "Accept-Encoding"),
                              server_http_header(r->connection, "If-None-Match"), &status);
    return queue_response(r, status, response);
}

enum MHD_Result server_http_reply(server_http_request *r)
{
    if (r->exchange.problem.status == 499) return MHD_NO;   // closes the connection
    if (r->exchange.problem.status) return server_http_send_problem(r);
    if (r->is_preflight) return send_nothing(r);
    if (r->exchange.job) return reply_with_job(r);
    if (r->exchange.asset) return send_asset(r);
    if (r->exchange.replay) return send_stream(r);
    char *reply = r->exchange.reply;
    r->exchange.reply = NULL;
    return send_text(r, 200, reply, reply ? strlen(reply) : 0, r->exchange.type);
}
