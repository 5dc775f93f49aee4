// SPDX-License-Identifier: MIT
// server/http/accept.h: accepts connections and watches over them: how many there are, and how long they take.
//
// One thread accepts. A new connection waits until the head of its first request is there, which is looked at without
// reading it: a head that is late, broken or too large is answered and closed here, the others go to libmicrohttpd:
//
//     accept -> waiting for a head -> admit (server_front_options) -> open: HEAD -> BODY -> ANSWER -> IDLE -> HEAD ...
//                        |                                                   (deadlines in HEAD, BODY, IDLE)
//                        +-> 400, 408, 431, 503
//
// Of TLS the first bytes are enough: heads cannot be read here, and what is refused is closed without an answer.
//
// When all places are taken, a connection that waits, or one between two requests, is closed for a new one. Some places
// are for GET /health alone, so that it is answered whatever else is going on.
#pragma once
#include "server/api/problem.h"

#include <sys/socket.h>

typedef struct server_front server_front;
typedef struct server_link server_link;   // an open connection

typedef enum server_phase {
    SERVER_PHASE_HEAD,     // the head of a request is coming
    SERVER_PHASE_BODY,     // its body
    SERVER_PHASE_ANSWER,   // it is answered: as long as that takes
    SERVER_PHASE_IDLE,     // between requests
} server_phase;

typedef struct server_front_options {
    int socket;              // listening; taken over
    bool is_tls;             // what comes cannot be read here
    int max_links;           // connections at once
    int arrival_s, idle_s;   // a head, and then a body, has to come within arrival_s
    bool (*admit)(void *ctx, int fd, const struct sockaddr *address, socklen_t n_address);   // takes the socket over
    void *ctx;
    void (*wake)(void *owner);   // see server_front_wake
} server_front_options;

bool server_front_start(server_front **out, const server_front_options *options, server_problem *problem);
void server_front_drain(server_front *front);   // stops listening; what waits gets 503
void server_front_stop(server_front *front);    // admits nothing any more
void server_front_free(server_front *front);    // after the last link was closed

// For the owner of open connections; any thread. The link of an admitted socket; NULL: it was not admitted.
server_link *server_front_find(server_front *front, int fd);
void server_front_set(server_front *front, server_link *link, server_phase phase);
bool server_link_is_reserve(const server_link *link);   // it got a place that is for /health: one request only
void server_front_own(server_front *front, server_link *link, void *owner);
void server_front_close(server_front *front, server_link *link);   // before the socket is closed
// Calls `wake` soon, on its own thread, for the owners of all links that are answered. They stay open meanwhile.
void server_front_wake(server_front *front);
