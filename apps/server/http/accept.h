// SPDX-License-Identifier: MIT
// server/http/accept.h: the accept thread. It accepts connections, and limits their number and how long they may take.
//
// A new connection waits until the head of its first request has arrived. The thread looks at the head without reading
// it. A head that is late, broken or too large is answered here, and the connection closed. Other connections go to
// libmicrohttpd:
//
//     accept -> waiting for a head -> admit (server_acceptor_options) -> open: HEAD -> BODY -> ANSWER -> IDLE -> HEAD
//                        |                                                     (deadlines in HEAD, BODY, IDLE)
//                        +-> 400, 408, 431, 503
//
// With TLS the first bytes are enough: heads are encrypted, and a refused connection is closed without an answer.
//
// At the limit of connections, one that waits for a head, or that is idle between two requests, is closed for a new
// one. Some connections are reserved for GET /health, so that it is always answered.
#pragma once
#include "server/api/problem.h"

#include <sys/socket.h>

typedef struct server_acceptor server_acceptor;
typedef struct server_link server_link;   // an open connection

typedef enum server_phase {
    SERVER_PHASE_HEAD,     // waits for the head of a request
    SERVER_PHASE_BODY,     // waits for the body of a request
    SERVER_PHASE_ANSWER,   // the request is answered; no deadline
    SERVER_PHASE_IDLE,     // waits for the next request
} server_phase;

typedef struct server_acceptor_options {
    int socket;              // listening; owned from now on
    bool is_tls;             // heads are encrypted
    int max_links;           // most connections at once
    int arrival_s, idle_s;   // limits for a head, for a body, and between requests
    bool (*admit)(void *ctx, int fd, const struct sockaddr *address,
                  socklen_t n_address);   // owns the socket from then on
    void *ctx;
    void (*wake)(void *owner);   // see server_acceptor_wake
} server_acceptor_options;

bool server_acceptor_start(server_acceptor **out, const server_acceptor_options *options, server_problem *problem);
void server_acceptor_drain(server_acceptor *acceptor);   // stops listening; waiting connections get status 503
void server_acceptor_stop(server_acceptor *acceptor);    // ends the thread
void server_acceptor_free(server_acceptor *acceptor);    // after the last link was closed

// The link of an admitted socket; NULL: it was not admitted. This function and the next ones are for the owner of open
// connections, on any thread.
server_link *server_acceptor_find(server_acceptor *acceptor, int fd);
void server_acceptor_set(server_acceptor *acceptor, server_link *link, server_phase phase);
bool server_link_is_reserve(const server_link *link);   // reserved for /health: serves one request
void server_acceptor_own(server_acceptor *acceptor, server_link *link, void *owner);
void server_acceptor_close(server_acceptor *acceptor, server_link *link);   // before the socket is closed
// Makes the accept thread call `wake` for the owners of all links in SERVER_PHASE_ANSWER. The links stay open
// meanwhile.
void server_acceptor_wake(server_acceptor *acceptor);
