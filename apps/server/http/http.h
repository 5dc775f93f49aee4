// SPDX-License-Identifier: MIT
// server/http/http.h: serves the routes with libmicrohttpd.
//
// The accept thread (accept.h) hands connections with a good first request to libmicrohttpd. Its threads read requests
// and write replies, and never wait: the body readers (body_readers.h) parse bodies and make prompts of them, and the
// worker answers prompts. While a request has nothing to send, its connection is suspended. The body reader, or
// client.wake of the job, resumes it:
//
//     head --> guard, route --> body --(suspended: parse, tokenize)--> submit --(suspended)--> status is known
//                                                        --> reply, or stream: send queue --> bytes | (suspended)
//
// libmicrohttpd does not watch suspended connections, so the body readers and the worker look at their sockets.
#pragma once
#include "server/http/guard.h"
#include "server/routes.h"
#include "server/http/tls.h"

typedef struct server_http server_http;

typedef struct server_http_options {
    int socket;   // listening; owned from now on
    const server_site *site;
    server_tls *tls;   // NULL: none
    server_guard guard;
    int arrival_s;                   // limit for the arrival of a head, and of a body
    int idle_s;                      // limit between two requests of a connection
    size_t max_body;                 // 0: SERVER_MAX_BODY, or SERVER_MAX_PICTURES_BODY if a model reads pictures
    int answer_s;                    // limit for an answer, from the time it has a session; 0: none
    int max_waiting;                 // most requests whose bodies wait for a body reader
    struct server_access_log *log;   // NULL: none
} server_http_options;

// Limits in bytes: for one body, with or without pictures, for all bodies in memory at once, and for those of one key.
enum {
    SERVER_MAX_BODY = 32 << 20,
    SERVER_MAX_PICTURES_BODY = 64 << 20,
    SERVER_MAX_BODIES = 256 << 20,
    SERVER_MAX_BODIES_OF_KEY = 192 << 20,
};

bool server_http_start(server_http **out, const server_http_options *options, server_problem *problem);
// Closes the listening socket. New requests on open connections get status 503, except for /health.
void server_http_drain(server_http *http);
void server_http_cut(server_http *http);            // bodies and grammars in work fail soon
int server_http_open_requests(server_http *http);   // without a whole reply yet
bool server_http_is_reading(server_http *http);     // True while a body reader works
void server_http_stop(server_http *http);           // after the worker ended all jobs
