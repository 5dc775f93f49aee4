// SPDX-License-Identifier: MIT
// What the server says of its model, its adapters and its load.
#include "server/handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Ollama's clients write ":latest" after names.
static bool is_name(const char *name, const char *known)
{
    const size_t n = strlen(known);
    return strncmp(name, known, n) == 0 && (name[n] == 0 || strcmp(name + n, ":latest") == 0);
}

static bool has_name(const server_model *model, const char *name)
{
    for (size_t i = 0; i < model->aliases.n; i++)
        if (is_name(name, model->aliases.items[i])) return true;
    return is_name(name, model->stem);
}

const server_model *server_site_find(const server_site *site, const char *name)
{
    if (!name || !*name) return &site->models[0];
    for (size_t i = 0; i < site->n_models; i++)
        if (has_name(&site->models[i], name)) return &site->models[i];
    return is_name(name, "default") ? &site->models[0] : NULL;
}

// Adds ", 'name'"; false, and nothing, if there is no room for all of it.
static bool add_name(const char *name, char *out, size_t size)
{
    const size_t at = strlen(out);
    const int n = snprintf(out + at, size - at, "%s'%.200s'", at > 0 ? ", " : "", name);
    if ((size_t)n < size - at) return true;
    out[at] = 0;
    return false;
}

// 'one', 'two': the names that /v1/models lists, as many as have room.
static void write_names(const server_site *site, char *out, size_t size)
{
    out[0] = 0;
    for (size_t i = 0; i < site->n_models; i++) {
        const server_model *model = &site->models[i];
        if (!add_name(model->name, out, size)) return;
        for (size_t k = 1; k < model->aliases.n; k++)
            if (!add_name(model->aliases.items[k], out, size)) return;
    }
}

bool server_check_model(server_exchange *exchange, const char *name)
{
    char names[400];
    exchange->model = server_site_find(exchange->site, name);
    if (exchange->model) return true;
    write_names(exchange->site, names, sizeof names);
    return server_refuse(&exchange->problem, 404, "model_not_found", "model",
                         "The model '%.200s' does not exist; this server has %s.", name, names);
}

static json_t *model_json(const server_model *model, const char *name)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:{s:i, s:i, s:I, s:I, s:s}}", "id", name, "object", "model", "created",
                     (json_int_t)model->started, "owned_by", "frit", "meta", "n_ctx", (int)model->n_ctx, "n_vocab",
                     (int)model->info.n_vocab, "n_params", (json_int_t)model->info.n_params, "size",
                     (json_int_t)model->info.n_bytes, "architecture", model->info.architecture);
}

void server_list_models(server_exchange *exchange)
{
    json_t *list = json_array();
    for (size_t i = 0; i < exchange->site->n_models; i++) {
        const server_model *model = &exchange->site->models[i];
        for (size_t k = 0; k < model->aliases.n; k++)
            json_array_append_new(list, model_json(model, model->aliases.items[k]));
        if (model->aliases.n == 0) json_array_append_new(list, model_json(model, model->name));
    }
    server_reply(exchange, json_pack("{s:s, s:o}", "object", "list", "data", list));
}

void server_show_model(server_exchange *exchange)
{
    const char *name = exchange->rest;
    if (server_check_model(exchange, name))
        server_reply(exchange, model_json(exchange->model, is_name(name, "default") ? exchange->model->name : name));
}

void server_list_adapters(server_exchange *exchange)
{
    const server_adapters *adapters = &exchange->model->adapters;
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
    server_load load = server_worker_load(exchange->model->worker);
    server_reply(exchange, json_pack("{s:s, s:i, s:i, s:i}", "status", "ok", "sessions", (int)load.n_sessions,
                                     "running", (int)load.n_running, "waiting", (int)load.n_waiting));
}

void server_show_metrics(server_exchange *exchange)
{
    const server_model *model = exchange->model;
    const server_load load = server_worker_load(model->worker);
    const server_gauges gauges = {.n_sessions = load.n_sessions,
                                  .n_running = load.n_running,
                                  .n_waiting = load.n_waiting,
                                  .cache_use = load.cache_use,
                                  .started = exchange->site->started};
    char *text = server_metrics_text(model->metrics, model->name, &gauges);
    char *keys = server_keys_metrics(exchange->site->keys);
    char traces[512];
    server_traces_metrics(exchange->site->traces, traces);
    const size_t n = (text ? strlen(text) : 0) + (keys ? strlen(keys) : 0) + sizeof traces;
    exchange->reply = text && keys ? malloc(n) : NULL;
    if (exchange->reply) snprintf(exchange->reply, n, "%s%s%s", text, keys, traces);
    free(text);
    free(keys);
    exchange->type = "text/plain; version=0.0.4; charset=utf-8";
    if (!exchange->reply) server_refuse_status(&exchange->problem, 500, NULL, FRIT_E_MEMORY);
}
