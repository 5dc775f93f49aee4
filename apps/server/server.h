// SPDX-License-Identifier: MIT
// server/server.h: starts and ends the HTTP server.
//
//     server_open(&server, &config, &problem);    // listens
//     server_drain(server);                       // no new connections; running requests continue
//     while (!server_is_quiet(server)) ...
//     server_close(server);                       // cuts running requests
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
    const char *responses_dir;   // stores responses; NULL: in memory
    int32_t responses_mib, responses_days;
    const char *otlp;         // http://HOST:PORT; NULL: no traces
    const char *access_log;   // path; "-": stderr; NULL: none
    int32_t max_models, idle_unload_s;
    const char *slot_folder;   // NULL: sessions cannot be saved
    int32_t image_tokens;      // most tokens of a picture; 0: as the model's files say
    int32_t media_cache_mib;   // features of pictures that are kept
    int32_t max_body_mib;      // of a request; 0: SERVER_MAX_BODY_MIB, or more for models that read pictures
    int32_t keep_alive_s;      // a quiet stream sends a sign of life after this time; 0: never
    int32_t arrival_s;         // limit for the arrival of a head, and of a body
    int32_t idle_s;            // limit between two requests of a connection
    int32_t answer_s;          // limit for an answer, from the time it has a session; 0: none
} server_options;

typedef struct server_config {
    server_options options;
    const server_source *sources;   // [n_sources], must outlive the server
    size_t n_sources;
    const server_loaded *first;   // from the first source; owned from now on
} server_config;

typedef struct app_server app_server;

const frit_option *server_option_rows(size_t *n_rows);
// False with a sentence in the problem; status 400 if the options are wrong, 500 otherwise.
bool server_open(app_server **out, const server_config *config, server_problem *problem);
const char *server_url(const app_server *server);   // "http://127.0.0.1:8080", "unix:/run/frit.sock"
const char *server_model_name(const app_server *server);
// Reads keys and certificate again, and writes the result as a sentence into `said`. False: one of them is unchanged.
bool server_reload(app_server *server, char *said, size_t size);
void server_drain(app_server *server);
bool server_is_quiet(app_server *server);
bool server_is_loading(app_server *server);   // true while a model is loaded; server_close waits for it
void server_cut(app_server *server);
void server_close(app_server *server);
