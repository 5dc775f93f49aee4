// SPDX-License-Identifier: MIT
// What the server says of its model, its adapters and its load.
#include "server/handlers.h"

#include <stdio.h>
#include <string.h>

// Ollama's clients write ":latest" after names.
static bool is_name(const char *name, const char *known)
{
    const size_t n = strlen(known);
    return strncmp(name, known, n) == 0 && (name[n] == 0 || strcmp(name + n, ":latest") == 0);
}

static bool is_model(const server_site *site, const char *name)
{
    for (size_t i = 0; name && i < site->aliases.n; i++)
        if (is_name(name, site->aliases.items[i])) return true;
    return !name || !*name || is_name(name, site->stem) || is_name(name, "default");
}

// 'one', 'two': the names that /v1/models lists, as many as have room.
static void write_names(const server_site *site, char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "'%.200s'", site->name);
    for (size_t i = 1; i < site->aliases.n && at < size; i++) {
        const int n = snprintf(out + at, size - at, ", '%.200s'", site->aliases.items[i]);
        if ((size_t)n >= size - at) {
            out[at] = 0;   // no half name
            return;
        }
        at += (size_t)n;
    }
}

bool server_check_model(server_exchange *exchange, const char *name)
{
    char names[400];
    if (is_model(exchange->site, name)) return true;
    write_names(exchange->site, names, sizeof names);
    return server_refuse(&exchange->problem, 404, "model_not_found", "model",
                         "The model '%.200s' does not exist; this server has %s.", name, names);
}

static json_t *model_json(const server_site *site, const char *name)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:{s:i, s:i, s:I, s:I, s:s}}", "id", name, "object", "model", "created",
                     (json_int_t)site->started, "owned_by", "frit", "meta", "n_ctx", (int)site->n_ctx, "n_vocab",
                     (int)site->model_info.n_vocab, "n_params", (json_int_t)site->model_info.n_params, "size",
                     (json_int_t)site->model_info.n_bytes, "architecture", site->model_info.architecture);
}

void server_list_models(server_exchange *exchange)
{
    const server_site *site = exchange->site;
    json_t *list = json_array();
    for (size_t i = 0; i < site->aliases.n; i++) json_array_append_new(list, model_json(site, site->aliases.items[i]));
    if (site->aliases.n == 0) json_array_append_new(list, model_json(site, site->name));
    server_reply(exchange, json_pack("{s:s, s:o}", "object", "list", "data", list));
}

void server_show_model(server_exchange *exchange)
{
    const char *name = exchange->rest, *own = exchange->site->name;
    if (server_check_model(exchange, name))
        server_reply(exchange, model_json(exchange->site, is_name(name, "default") ? own : name));
}

void server_list_adapters(server_exchange *exchange)
{
    const server_adapters *adapters = &exchange->site->adapters;
    json_t *list = json_array();
    for (size_t i = 0; i < adapters->n; i++) {
        frit_adapter_info info;
        frit_adapter_get_info(adapters->items[i], &info);
        json_array_append_new(list, json_pack("{s:i, s:s, s:s, s:f}", "id", (int)i, "path", info.path, "kind",
                                              info.kind, "scale", (double)adapters->scales[i]));
    }
    server_reply(exchange, list);
}

void server_show_health(server_exchange *exchange)
{
    server_load load = server_worker_load(exchange->site->worker);
    server_reply(exchange, json_pack("{s:s, s:i, s:i, s:i}", "status", "ok", "sessions", (int)load.n_sessions,
                                     "running", (int)load.n_running, "waiting", (int)load.n_waiting));
}

void server_show_metrics(server_exchange *exchange)
{
    const server_site *site = exchange->site;
    const server_load load = server_worker_load(site->worker);
    const server_gauges gauges = {.n_sessions = load.n_sessions,
                                  .n_running = load.n_running,
                                  .n_waiting = load.n_waiting,
                                  .cache_use = load.cache_use,
                                  .started = site->started};
    exchange->reply = server_metrics_text(site->metrics, site->name, &gauges);
    exchange->type = "text/plain; version=0.0.4; charset=utf-8";
    if (!exchange->reply) server_refuse_status(&exchange->problem, 500, NULL, FRIT_E_MEMORY);
}
