// SPDX-License-Identifier: MIT
// server/http/http.h: libmicrohttpd in front of the routes.
//
// accept.h accepts connections and hands those with a good first request to libmicrohttpd. Its threads read requests
// and write answers; none of them ever waits: bodies are parsed and become prompts on the threads of a pool
// (body_readers.h), and the worker answers prompts. While a request has nothing to send its connection is suspended,
// and the pool, or the worker's wake, resumes it:
//
//     head --> guard, route --> body --(suspended: parse, tokenize)--> submit --(suspended)--> status is known
//                                                        --> reply, or stream: outbox --> bytes | (suspended)
//
// libmicrohttpd does not watch suspended connections, so the pool and the worker look at their sockets.
#pragma once
#include "server/http/guard.h"
#include "server/routes.h"
#include "server/http/tls.h"

typedef struct server_http server_http;

typedef struct server_http_options {
    int socket;   // listening; taken over
    const server_site *site;
    server_tls *tls;   // NULL: none
    server_guard guard;
    int arrival_s;                   // how long a head, and then a body, may take to come
    int idle_s;                      // how long a connection may be between two requests
    int answer_s;                    // how long an answer may take from its session on; 0: any time
    int max_waiting;                 // requests whose bodies wait to be read
    struct server_access_log *log;   // NULL: none
} server_http_options;

// Of one body, and of all bodies that are held at once, of them those of one key.
enum { SERVER_MAX_BODY = 32 << 20, SERVER_MAX_BODIES = 256 << 20, SERVER_MAX_BODIES_OF_KEY = 192 << 20 };

bool server_http_start(server_http **out, const server_http_options *options, server_problem *problem);
// Closes the listening socket; requests on connections that are there already get 503, except for /health.
void server_http_drain(server_http *http);
void server_http_cut(server_http *http);            // what is being read or compiled ends soon, with an error
int server_http_open_requests(server_http *http);   // whose answer has not been sent
bool server_http_is_reading(server_http *http);     // bodies become jobs
void server_http_stop(server_http *http);           // after the worker has ended all jobs
