// SPDX-License-Identifier: MIT
// server/routes.h: the table of routes. The row of a route has its method, path, body parser and handler, says if the
// route needs a key, and names the protocol, the summary and the kind of its replies. /openapi.json is made of the
// rows. Handlers do not use sockets: a handler reads the parsed request and leaves a reply, a problem or a job.
#pragma once
#include "server/request/fields.h"
#include "server/ops/keys.h"
#include "server/sched/loading.h"
#include "server/api/protocol.h"
#include "server/ops/traces.h"

typedef struct server_site {   // what handlers know of the server; constant
    server_models *models;     // the first one serves requests that name no model
    bool strict_fields;        // refuse unknown fields
    bool no_web_ui;            // the web UI is turned off
    int64_t started;           // seconds since 1970
    int32_t keep_alive_s;      // a quiet stream sends a sign of life after this time; 0: never
    struct server_store *responses;
    const char *slot_folder;   // holds files of sessions; NULL: none
    server_keys *keys;
    server_traces *traces;   // NULL: no traces
    server_replays *replays;
    struct server_picture_memory *pictures;   // of all requests
} server_site;

typedef struct server_exchange {   // one request and its reply
    const server_site *site;
    const server_model *model;         // the model that the request names; set before the handler is called
    bool is_held;                      // the model is loaded until the exchange is over; true in handlers with a parser
    bool is_used;                      // the model is held for a request, not only to look at it
    bool is_large;                     // memory goes back to the system after the request
    server_waiter waiter;              // waits for the model
    const server_protocol *protocol;   // of the route
    const char *rest;                  // the part of the path that '*' matches
    const char *conversation;          // the name of a stream that outlives its client; NULL: none
    const char *last_event;            // the header Last-Event-ID, or NULL
    // The value of an argument after '?'; NULL: absent.
    const char *(*query)(const struct server_exchange *exchange, const char *name);
    void *request;                      // parsed; NULL for routes without a parser
    server_key *caller;                 // the API key; NULL: none
    size_t key;                         // server_key_id of the caller
    char *reply;                        // malloc'd, with status 200
    const char *type;                   // Content-Type of the reply; NULL: JSON
    const struct server_asset *asset;   // instead of a reply: a file of the web UI
    server_problem problem;
    server_job *job;   // submitted by `submit`, or after the handler
    // Submits the job, so that it runs while the handler prepares the rest. False with a problem; `job` is NULL then.
    bool (*submit)(struct server_exchange *exchange);
    // Lets a body reader run long work after the handler, as a long task. NULL: the handler does the work itself.
    void (*defer)(struct server_exchange *exchange, void (*work)(struct server_exchange *exchange));
    void *deferred;          // data of the deferred work, which frees it
    bool stream;             // the reply is a stream of events
    server_replay *replay;   // a reference; the reply is this stream from position `from` on
    uint64_t from;
    bool (*cancelled)(void *ctx);   // called by long handlers: true if the client is gone. NULL: never
    void *ctx;                      // of `query` and `cancelled`
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
// The route of a path (with or without "/v1"), and the rest of the path. NULL with a problem of status 404 or 405;
// `allow` gets the methods of the path.
const server_route *server_route_find(const char *method, const char *path, const char **rest, char allow[64],
                                      server_problem *problem);
// The model with this name; NULL: none. Without a name, and for "" and "default", the first model.
const server_model *server_site_find(const server_site *site, const char *name);
// The value of WWW-Authenticate, which makes a browser that opens the web UI ask for a password. `route` may be NULL.
const char *server_route_challenge(const server_route *route);
// Finds the model that the body names, parses the body, and calls the handler. False: the model must be loaded first.
// The caller does not own the exchange until exchange->waiter is called, and then runs the route again.
bool server_route_run(const server_route *route, server_exchange *exchange, const char *body, size_t n_body);
