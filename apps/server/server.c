// SPDX-License-Identifier: MIT
// Options, start and end of the server.
#include "server/server.h"

#include "server/ops/access_log.h"
#include "server/http/http.h"
#include "server/http/listen.h"
#include "server/api/responses_store.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ROW(member, ...)                                        \
    {                                                           \
        .offset = offsetof(server_options, member), __VA_ARGS__ \
    }

struct app_server {
    server_options options;
    server_site site;
    server_picture_memory pictures;
    server_http *http;
    server_tls *tls;
    server_access_log *log;
    server_listener listener;
};

const frit_option *server_option_rows(size_t *n_rows)
{
    // clang-format off
    static const frit_option rows[] = {
        ROW(host, .name = "host", .type = FRIT_OPTION_TEXT, .fallback = "127.0.0.1", .metavar = "ADDRESS",
            .help = "address to listen on, or a Unix socket: unix:PATH, or a path that ends with .sock"),
        ROW(port, .name = "port", .type = FRIT_OPTION_INT, .min = 0, .max = 65535, .fallback = "8080", .metavar = "N",
            .help = "port to listen on; 0: any that is free"),
        ROW(socket_mode, .name = "socket-mode", .type = FRIT_OPTION_TEXT, .fallback = "600", .metavar = "MODE",
            .help = "permissions of the Unix socket's file, in octal"),
        ROW(api_keys, .name = "api-key", .type = FRIT_OPTION_LIST, .metavar = "KEY",
            .help = "a key that requests must send (may be given several times)"),
        ROW(key_file, .name = "api-key-file", .type = FRIT_OPTION_TEXT, .metavar = "FILE",
            .help = "keys that requests must send, with names and limits; read again at SIGHUP"),
        ROW(no_auth, .name = "no-auth", .type = FRIT_OPTION_FLAG,
            .help = "listen on other addresses than loopback without a key"),
        ROW(tls_cert, .name = "tls-cert", .type = FRIT_OPTION_TEXT, .metavar = "FILE",
            .help = "speak TLS with this certificate (PEM, with its chain); read again at SIGHUP"),
        ROW(tls_key, .name = "tls-key", .type = FRIT_OPTION_TEXT, .metavar = "FILE",
            .help = "the private key of --tls-cert (PEM, without a password)"),
        ROW(parallel, .name = "parallel", .letters = "np", .type = FRIT_OPTION_INT, .min = 1, .max = 256, .fallback = "4",
            .metavar = "N", .help = "requests that are answered at once, each with a context of its own"),
        ROW(max_queue, .name = "max-queue", .type = FRIT_OPTION_INT, .min = 0, .max = 65536, .fallback = "64",
            .metavar = "N", .help = "requests that may wait; more are refused with status 429"),
        ROW(aliases, .name = "alias", .letter = 'a', .type = FRIT_OPTION_LIST, .metavar = "NAME",
            .help = "name of the model in requests and, the first, in answers, instead of its file's (may be given several times)"),
        ROW(max_models, .name = "max-models", .type = FRIT_OPTION_INT, .min = 0, .max = 4096, .metavar = "N",
            .help = "models that are loaded at once; the one that was used longest ago is freed for another; 0: as many as there is memory for"),
        ROW(idle_unload_s, .name = "idle-unload", .type = FRIT_OPTION_INT, .min = 0, .max = 31536000,
            .metavar = "SECONDS", .help = "free a model that has had no request for so long; 0: never"),
        ROW(slot_folder, .name = "slot-save-path", .type = FRIT_OPTION_TEXT, .metavar = "DIR",
            .help = "folder for what POST /slots/ID saves and restores; sessions keep their texts then"),
        ROW(image_tokens, .name = "image-tokens", .aliases = "image-max-tokens", .type = FRIT_OPTION_INT, .min = 0,
            .max = 1 << 20, .metavar = "N", .help = "most tokens of a picture, which is made smaller for it; 0: as the model's files say"),
        ROW(media_cache_mib, .name = "media-cache", .type = FRIT_OPTION_INT, .min = 0, .max = 1 << 20,
            .fallback = "256", .metavar = "MIB", .help = "memory for pictures that were encoded, so that they are not encoded again; 0: none"),
        ROW(max_body_mib, .name = "max-body", .type = FRIT_OPTION_INT, .min = 0, .max = 256, .metavar = "MIB",
            .help = "most bytes of a request; 0: 32 MiB, or 64 if a model reads pictures"),
        ROW(strict_fields, .name = "strict-fields", .type = FRIT_OPTION_FLAG,
            .help = "refuse requests with fields that frit does not know, instead of ignoring these"),
        ROW(no_web_ui, .name = "no-page", .type = FRIT_OPTION_FLAG,
            .help = "answer / and /docs with status 404 instead of the web UI and the description of the interface"),
        ROW(cors, .name = "cors", .type = FRIT_OPTION_LIST, .metavar = "ORIGIN",
            .help = "web pages of this origin may use the server; '*': all (may be given several times)"),
        ROW(access_log, .name = "access-log", .type = FRIT_OPTION_TEXT, .metavar = "FILE",
            .help = "append a line of JSON for each request, without what it says; -: to stderr"),
        ROW(responses_dir, .name = "responses-dir", .type = FRIT_OPTION_TEXT, .metavar = "DIR",
            .help = "keep stored responses in this folder, so that they are there after a restart"),
        ROW(responses_mib, .name = "responses-max", .type = FRIT_OPTION_INT, .min = 1, .max = 1 << 30, .fallback = "1024",
            .metavar = "MIB", .help = "how much they may have there; the oldest go first"),
        ROW(responses_days, .name = "responses-days", .type = FRIT_OPTION_INT, .min = 0, .max = 36500, .fallback = "30",
            .metavar = "DAYS", .help = "how long they are kept there; 0: as long as there is room"),
        ROW(otlp, .name = "otlp-endpoint", .type = FRIT_OPTION_TEXT, .metavar = "URL",
            .help = "send a span for each request, without what it says, to OpenTelemetry's collector at http://HOST:PORT"),
        ROW(drain_s, .name = "drain", .type = FRIT_OPTION_INT, .min = 0, .max = 86400, .fallback = "30",
            .metavar = "SECONDS", .help = "after SIGTERM, how long answers may take to finish"),
        ROW(keep_alive_s, .name = "sse-ping", .type = FRIT_OPTION_INT, .min = 0, .max = 86400, .fallback = "15",
            .metavar = "SECONDS", .help = "a stream that has nothing to say for so long, while its request waits or its prompt runs, sends a comment; 0: none"),
        ROW(arrival_s, .name = "request-timeout", .type = FRIT_OPTION_INT, .min = 1, .max = 86400, .fallback = "60",
            .metavar = "SECONDS", .help = "how long the headers of a request, and then its body, may take to come"),
        ROW(idle_s, .name = "idle-timeout", .type = FRIT_OPTION_INT, .min = 1, .max = 86400, .fallback = "120",
            .metavar = "SECONDS", .help = "how long a connection may wait between two requests"),
        ROW(answer_s, .name = "answer-timeout", .type = FRIT_OPTION_INT, .min = 0, .max = 86400, .fallback = "0",
            .metavar = "SECONDS", .help = "how long an answer may take, with its prompt, once it has a session; 0: any time"),
    };
    // clang-format on
    *n_rows = sizeof rows / sizeof rows[0];
    return rows;
}

// ---------------------------------------------------------------------------------------- life

// A name that two models have would always mean the first one.
static bool check_names(const server_site *site, server_problem *problem)
{
    size_t n;
    const server_model *models = server_models_all(site->models, &n);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k <= models[i].aliases.n; k++) {
            const char *name = k < models[i].aliases.n ? models[i].aliases.items[k] : models[i].stem;
            if (!*name) return server_refuse(problem, 400, NULL, NULL, "%s: the model's name is empty", models[i].path);
            const server_model *found = server_site_find(site, name);
            if (found != &models[i])
                return server_refuse(problem, 400, NULL, NULL,
                                     "'%s' names two models, %s and %s: give one another name, NAME=PATH", name,
                                     found->path, models[i].path);
        }
    }
    return true;
}

static bool open_models(app_server *server, const server_config *config, server_problem *problem)
{
    const server_options *options = &config->options;
    const server_models_options models = {.sources = config->sources,
                                          .n = config->n_sources,
                                          .first = config->first,
                                          .max_models = options->max_models,
                                          .idle_s = options->idle_unload_s,
                                          .max_waiting = options->parallel + options->max_queue};
    return server_models_new(&server->site.models, &models, problem) && check_names(&server->site, problem);
}

static bool check_folder(const char *path, server_problem *problem)
{
    struct stat info;
    if (!path || (stat(path, &info) == 0 && S_ISDIR(info.st_mode) && access(path, W_OK | X_OK) == 0)) return true;
    return server_refuse(problem, 400, NULL, NULL, "--slot-save-path %s: is not a folder that can be written", path);
}

static bool open_tls(app_server *server, server_problem *problem)
{
    const char *certificate = server->options.tls_cert, *key = server->options.tls_key;
    if (!certificate && !key) return true;
    if (!certificate || !key)
        return server_refuse(problem, 400, NULL, NULL, "--tls-cert and --tls-key belong together: %s is missing",
                             certificate ? "--tls-key" : "--tls-cert");
    return server_tls_open(&server->tls, certificate, key, problem);
}

static bool start_server(app_server *server, const server_config *config, server_problem *problem)
{
    const server_options *options = &server->options;
    server_site *site = &server->site;
    if (!open_models(server, config, problem)) return false;
    site->started = (int64_t)time(NULL);
    site->pictures = &server->pictures;
    site->strict_fields = options->strict_fields;
    site->slot_folder = options->slot_folder;
    if (!check_folder(options->slot_folder, problem)) return false;
    site->no_web_ui = options->no_web_ui;
    site->replays = server_replays_new();
    if (!site->replays) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    site->keep_alive_s = options->keep_alive_s;
    const server_store_options store = {.folder = options->responses_dir,
                                        .max_bytes = (size_t)options->responses_mib << 20,
                                        .max_age_s = (int64_t)options->responses_days * 86400};
    if (!server_store_new(&site->responses, &store, problem)) return false;
    if (!server_keys_open(&site->keys, &options->api_keys, options->key_file, problem)) return false;
    server_http_options http = {
        .site = site,
        .guard = {.keys = site->keys, .origins = options->cors, .host = options->host},
        .arrival_s = options->arrival_s,
        .idle_s = options->idle_s,
        .max_body = (size_t)options->max_body_mib << 20,
        .answer_s = options->answer_s,
        .max_waiting = options->parallel + options->max_queue,
    };
    if (!server_guard_check_origins(&http.guard, problem)) return false;
    if (options->access_log && !server_access_log_open(&server->log, options->access_log, problem)) return false;
    http.log = server->log;
    if (options->otlp && !server_traces_open(&site->traces, options->otlp, problem)) return false;
    if (!open_tls(server, problem)) return false;
    http.tls = server->tls;
    const server_listen_options listen = {
        .host = options->host,
        .port = options->port,
        .socket_mode = options->socket_mode,
        .is_tls = server->tls != NULL,
        .is_guarded = options->api_keys.n > 0 || options->key_file || options->no_auth,
    };
    if (!server_listen(&server->listener, &listen, problem)) return false;
    http.socket = server->listener.fd;
    http.guard.loopback = server->listener.is_loopback;
    return server_http_start(&server->http, &http, problem);
}

bool server_open(app_server **out, const server_config *config, server_problem *problem)
{
    *out = NULL;
    app_server *made = calloc(1, sizeof *made);
    if (!made) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    made->options = config->options;
    if (!start_server(made, config, problem)) {
        server_close(made);
        return false;
    }
    *out = made;
    return true;
}

const char *server_url(const app_server *server)
{
    return server->listener.url;
}

const char *server_model_name(const app_server *server)
{
    size_t n;
    return server_models_all(server->site.models, &n)->name;
}

// Appends a sentence, with "; " between two.
static void add_said(char *said, size_t size, const char *sentence)
{
    const size_t n = strlen(said);
    snprintf(said + n, size - n, "%s%s", n > 0 ? "; " : "", sentence);
}

bool server_reload(app_server *server, char *said, size_t size)
{
    char text[800];
    server_problem problem;
    bool good = true;
    said[0] = 0;
    if (server_keys_have_file(server->site.keys)) {
        good = server_keys_reload(server->site.keys, &problem);
        snprintf(text, sizeof text, "keys that are known now: %zu", server_keys_count(server->site.keys));
        if (!good) snprintf(text, sizeof text, "keys as before: %s", problem.message);
        add_said(said, size, text);
    }
    if (server->tls) {
        const bool is_read = server_tls_reload(server->tls, &problem);
        snprintf(text, sizeof text, "certificate as before: %s", problem.message);
        add_said(said, size, is_read ? "new connections use the certificate as it is now" : text);
        good = good && is_read;
    }
    if (!said[0]) add_said(said, size, "there is nothing to read again without --api-key-file and --tls-cert");
    return good;
}

void server_drain(app_server *server)
{
    server_http_drain(server->http);
    server_listener_end(&server->listener);
    server_models_drain(server->site.models);
}

bool server_is_quiet(app_server *server)
{
    return !server_http_is_reading(server->http) && server_models_are_idle(server->site.models) &&
           server_http_open_requests(server->http) == 0;
}

bool server_is_loading(app_server *server)
{
    return server_models_are_loading(server->site.models);
}

void server_cut(app_server *server)
{
    server_http_cut(server->http);
    server_models_cut(server->site.models);
}

// Connections are closed first. All jobs have ended by then, so no connection is suspended.
void server_close(app_server *server)
{
    if (!server) return;
    if (server->http) {
        server_drain(server);
        server_cut(server);
        while (server_http_is_reading(server->http) || !server_models_are_idle(server->site.models))
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        server_http_stop(server->http);
    }
    server_models_free(server->site.models);
    server_store_free(server->site.responses);
    server_replays_free(server->site.replays);
    server_keys_close(server->site.keys);
    server_traces_close(server->site.traces);
    server_access_log_close(server->log);
    server_listener_end(&server->listener);
    server_tls_close(server->tls);
    free(server);
}
