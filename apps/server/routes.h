// SPDX-License-Identifier: MIT
// server/routes.h: the table of routes. A route is a row: method, path, parser of its body, handler, whether a key is
// needed, the protocol of its answers and errors, what it does in a few words, and what kind of answer it gives;
// /openapi.json is made of these rows. Nothing here knows of sockets: a handler reads the parsed request and leaves a
// reply, a problem or a job.
#pragma once
#include "server/request/fields.h"
#include "server/ops/keys.h"
#include "server/sched/loading.h"
#include "server/api/protocol.h"
#include "server/ops/traces.h"

typedef struct server_site {   // what handlers know of the server; never changes
    server_models *models;     // the first is that of requests that name none
    bool strict_fields;        // unknown fields are refused
    bool no_web_ui;            // the web UI is turned off
    int64_t started;           // seconds since 1970
    int32_t keep_alive_s;      // of streams that say nothing; 0: never
    struct server_store *responses;
    const char *slot_folder;   // for files of sessions; NULL: none
    server_keys *keys;
    server_traces *traces;   // NULL: none are sent
    server_replays *replays;
} server_site;

typedef struct server_exchange {   // one request and its answer
    const server_site *site;
    const server_model *model;         // the one that the request names, before its handler is called
    bool is_held;                      // it is there until the exchange is over; always, for handlers of bodies
    bool is_used;                      // ... for more than a look
    bool is_large;                     // it took much memory, which goes back to the system afterwards
    server_waiter waiter;              // until it is there
    const server_protocol *protocol;   // of the route
    const char *rest;                  // what the path's '*' stands for
    const char *conversation;          // the name of a stream that outlives its client; NULL: it does not
    const char *last_event;            // the header Last-Event-ID, or NULL
    // What the address says after '?'; NULL: nothing.
    const char *(*query)(const struct server_exchange *exchange, const char *name);
    void *request;                      // parsed; NULL for routes without a parser
    server_key *caller;                 // its API key; NULL: none
    size_t key;                         // server_key_id of it
    char *reply;                        // malloc'd, of status 200
    const char *type;                   // of the reply; NULL: JSON
    const struct server_asset *asset;   // instead of a reply: a file of the web UI
    server_problem problem;
    server_job *job;   // not submitted yet, or by `submit`
    // Submits the job before the handler is done: it runs while the handler prepares the rest. False with a problem,
    // and without the job.
    bool (*submit)(struct server_exchange *exchange);
    // Work that takes long goes on when the handler is done, on a thread that leaves one to other requests. NULL: the
    // handler does it itself.
    void (*defer)(struct server_exchange *exchange, void (*work)(struct server_exchange *exchange));
    void *deferred;          // of that work, which frees it
    bool stream;             // the job's answer is a stream of events
    server_replay *replay;   // the answer is this stream, from `from` on: a share
    uint64_t from;
    bool (*cancelled)(void *ctx);   // asked by handlers that take long: is the client gone? NULL: never
    void *ctx;                      // of both functions
} server_exchange;

// max_tokens 0: any number. The exchange must outlive it.
frit_tokenize_limits server_exchange_limits(const server_exchange *exchange, size_t max_tokens);

typedef struct server_route {
    const char *method, *path;   // a final '*' stands for the rest of the path; "/v1" may be left out or added
    const server_parser *parser;
    void (*handle)(server_exchange *exchange);
    bool needs_key;
    const server_protocol *protocol;
    const char *summary;
    const char *reply;   // what it answers with: "object", "array", "text"; "html", "file" of the web UI
} server_route;

// All rows.
const server_route *server_routes(size_t *n_routes);
// The route of a path (with or without "/v1"), and the rest of the path. NULL with problem 404 or 405; `allow`
// then names the methods that the path has.
const server_route *server_route_find(const char *method, const char *path, const char **rest, char allow[64],
                                      server_problem *problem);
// The model of that name, or NULL. No name, "" and "default": the first.
const server_model *server_site_find(const server_site *site, const char *name);
// What WWW-Authenticate says: a browser that opens the web UI asks for a password. NULL: of a path that is not there.
const char *server_route_challenge(const server_route *route);
// Finds the model that the body names, parses the body, and lets the route handle it. False: the model has to be
// loaded first, and exchange->waiter is called; the exchange is not the caller's until then, and the route is to be run
// again if the model is there.
bool server_route_run(const server_route *route, server_exchange *exchange, const char *body, size_t n_body);
