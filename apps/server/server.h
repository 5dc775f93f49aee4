// SPDX-License-Identifier: MIT
// server/server.h: the HTTP server: what it is started with, and its life.
//
//     server_open(&server, &config, &problem);    // listens
//     server_drain(server);                       // no new connections; what streams goes on
//     while (!server_is_quiet(server)) ...
//     server_close(server);                       // cuts what is left
#pragma once
#include "server/sched/loading.h"

#include "frit_tools.h"

typedef struct server_options {
    const char *host;                 // or unix:PATH, PATH.sock
    int32_t port;                     // 0: any
    const char *socket_mode;          // octal
    frit_option_list api_keys;        // must outlive the server
    const char *key_file;             // NULL: none
    const char *tls_cert, *tls_key;   // NULL: no TLS
    bool no_auth;
    int32_t parallel, max_queue;
    frit_option_list aliases;
    bool strict_fields, no_web_ui;
    frit_option_list cors;   // origins; "*": all
    int32_t drain_s;
    const char *responses_dir;   // where responses are stored; NULL: in memory
    int32_t responses_mib, responses_days;
    const char *otlp;         // http://HOST:PORT; NULL: no traces
    const char *access_log;   // path; "-": stderr; NULL: none
    int32_t max_models, idle_unload_s;
    const char *slot_folder;   // NULL: sessions cannot be saved
    int32_t keep_alive_s;      // streams that say nothing for so long say that they live; 0: they do not
    int32_t arrival_s;         // how long a request's head, and then its body, may take to come
    int32_t idle_s;            // how long a connection may be between two requests
    int32_t answer_s;          // how long an answer may take from its session on; 0: any time
} server_options;

typedef struct server_config {
    server_options options;
    const server_source *sources;   // [n_sources], must outlive the server
    size_t n_sources;
    const server_loaded *first;   // of the first source; taken over
} server_config;

typedef struct app_server app_server;

const frit_option *server_option_rows(size_t *n_rows);
// False with a sentence in the problem; status 400 if the options are wrong, 500 otherwise.
bool server_open(app_server **out, const server_config *config, server_problem *problem);
const char *server_url(const app_server *server);   // "http://127.0.0.1:8080", "unix:/run/frit.sock"
const char *server_model_name(const app_server *server);
// Reads again what may change while it runs, and says what came of it. False: a part of that stays as it was.
bool server_reload(app_server *server, char *said, size_t size);
void server_drain(app_server *server);
bool server_is_quiet(app_server *server);
bool server_is_loading(app_server *server);   // a model; server_close waits for it
void server_cut(app_server *server);
void server_close(app_server *server);
