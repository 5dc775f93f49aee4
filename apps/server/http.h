// SPDX-License-Identifier: MIT
// server/http.h: libmicrohttpd in front of the routes.
//
// A pool of threads reads requests and writes answers; none of them ever waits for the engine. While a request has
// nothing to send its connection is suspended, and the worker's wake resumes it:
//
//     headers --> guard, route --> body --> parse, submit --(suspended)--> status is known --> reply, or stream:
//                                                                          outbox --> bytes | (suspended)
//
// libmicrohttpd does not watch suspended connections, so the worker looks at their sockets before every step.
#pragma once
#include "server/guard.h"
#include "server/routes.h"

typedef struct server_http server_http;

typedef struct server_http_options {
    int socket;   // listening; taken over
    const server_site *site;
    server_guard guard;
} server_http_options;

enum { SERVER_MAX_BODY = 32 << 20 };

bool server_http_start(server_http **out, const server_http_options *options, server_problem *problem);
// Closes the listening socket; requests on connections that are there already get 503, except for /health.
void server_http_drain(server_http *http);
int server_http_open_requests(server_http *http);   // whose answer has not been sent
void server_http_stop(server_http *http);           // after the worker has ended all jobs
