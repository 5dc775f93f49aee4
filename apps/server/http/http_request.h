// SPDX-License-Identifier: MIT
// server/http/http_request.h: a request on a connection of libmicrohttpd, and the server that it belongs to, for the
// files of http.h: http_daemon.c (callbacks), http_body.c (bodies become jobs) and http_reply.c (replies).
#pragma once
#include "server/http/accept.h"
#include "server/http/body_readers.h"
#include "server/http/http.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

enum { SERVER_LARGE_BYTES = 1 << 20 };   // of a body or a reply: its memory goes back to the system

struct server_http {
    struct MHD_Daemon *daemon;
    server_acceptor *acceptor;
    server_body_readers *readers;
    pthread_mutex_t lock;   // of is_reading of all requests
    server_http_options options;
    _Atomic int n_open;
    _Atomic size_t body_bytes;   // memory of all bodies
    _Atomic bool draining, cut;
    _Atomic uint64_t n_requests;
    uint64_t started_ns;
};

typedef enum server_stage {
    SERVER_STAGE_NEW,
    SERVER_STAGE_BODY,
    SERVER_STAGE_COMPLETE,
    SERVER_STAGE_READ,
    SERVER_STAGE_ANSWER,
} server_stage;

typedef struct server_http_request {
    server_task task;   // the first field; reads the body
    server_http *http;
    struct MHD_Connection *connection;
    server_link *link;
    server_stage stage;
    const server_route *route;
    server_exchange exchange;
    char *body;
    size_t n_body, capacity;
    size_t n_dropped;   // bytes of the body of a refused request
    char id[129], allow[64], method[16];
    char *path;
    int socket;        // -1: unknown
    double came_at;    // monotonic seconds
    unsigned status;   // of the reply
    bool is_reading;   // a body reader has the request
    bool is_submitted;
    bool is_probed;   // a probe was sent to see if the client is still there
    bool is_preflight, bad_path, has_space, http_1_0;
    bool is_large;                             // the body or the reply had SERVER_LARGE_BYTES or more
    char traceparent[64];                      // the header; "": none
    bool is_counted;                           // among the requests of its key
    bool ends;                                 // the connection is closed after the reply
    void (*rest)(server_exchange *exchange);   // long work of the handler, for a body reader; NULL: none
    server_replay_reader reader;
} server_http_request;

// The value of a header of the request; NULL: absent.
static inline const char *server_http_header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

// Resumes the connection of a server_http_request.
static inline void server_http_resume(void *request)
{
    MHD_resume_connection(((server_http_request *)request)->connection);
}
