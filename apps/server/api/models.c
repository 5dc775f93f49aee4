// SPDX-License-Identifier: MIT
// Handlers about the server's models, their adapters and their load.
#include "server/api/handlers.h"
#include "server/request/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// True if a request's name is `known`, or `known` with ":latest", which Ollama's clients append.
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
    size_t n;
    const server_model *models = server_models_all(site->models, &n);
    if (!name || !*name) return models;
    for (size_t i = 0; i < n; i++)
        if (has_name(&models[i], name)) return &models[i];
    return is_name(name, "default") ? models : NULL;
}

void server_each_name(server_models *models, server_name_fn call, void *ctx)
{
    size_t n;
    const server_model *all = server_models_all(models, &n);
    for (size_t i = 0; i < n; i++) {
        server_model_status status;
        const bool is_held = server_models_look(models, &all[i], &status);
        for (size_t k = 0; k < all[i].aliases.n; k++) call(ctx, &all[i], all[i].aliases.items[k], &status);
        if (all[i].aliases.n == 0) call(ctx, &all[i], all[i].name, &status);
        if (is_held) server_models_release(models, &all[i], false);
    }
}

typedef struct names {
    char text[400];
    bool is_full;
} names;

// Appends "'NAME'" to the list if there is room.
static void add_name(void *ctx, const server_model *model, const char *name, const server_model_status *status)
{
    names *list = ctx;
    const size_t at = strlen(list->text), size = sizeof list->text - at;
    (void)model, (void)status;
    if (list->is_full) return;
    const int n = snprintf(list->text + at, size, "%s'%.200s'", at > 0 ? ", " : "", name);
    list->is_full = (size_t)n >= size;
    if (list->is_full) list->text[at] = 0;   // removes the incomplete name
}

bool server_is_loaded(const server_model_status *status)
{
    return strcmp(status->value, "loaded") == 0;
}

bool server_check_model(server_exchange *exchange, const char *name)
{
    names list = {0};
    const server_model *found = server_site_find(exchange->site, name);
    if (found) exchange->model = found;
    if (found) return true;
    server_each_name(exchange->site->models, add_name, &list);
    return server_refuse(&exchange->problem, 404, "model_not_found", "model",
                         "The model '%.200s' does not exist; this server has %s.", name, list.text);
}

// "status" has the form of llama.cpp's router. "meta" is null while the model is not loaded.
static json_t *model_json(const server_model *model, const char *name, const server_model_status *status)
{
    const bool is_held = server_is_loaded(status);
    json_t *meta = is_held ? json_pack("{s:i, s:i, s:I, s:I, s:s}", "n_ctx", (int)model->n_ctx, "n_vocab",
                                       (int)model->info.n_vocab, "n_params", (json_int_t)model->info.n_params, "size",
                                       (json_int_t)model->info.n_bytes, "architecture", model->info.architecture)
                           : json_null();
    json_t *json =
        json_pack("{s:s, s:s, s:I, s:s, s:{s:s}, s:o}", "id", name, "object", "model", "created",
                  (json_int_t)model->started, "owned_by", "frit", "status", "value", status->value, "meta", meta);
    if (status->failed) json_object_set_new(json_object_get(json, "status"), "failed", json_true());
    if (is_held && !model->why_no_pictures[0])
        json_object_set_new(meta, "modalities", json_pack("{s:[s, s]}", "input", "text", "image"));
    return json;
}

static void add_model(void *list, const server_model *model, const char *name, const server_model_status *status)
{
    json_array_append_new(list, model_json(model, name, status));
}

void server_list_models(server_exchange *exchange)
{
    json_t *list = json_array();
    server_each_name(exchange->site->models, add_model, list);
    server_reply(exchange, json_pack("{s:s, s:o}", "object", "list", "data", list));
}

void server_show_model(server_exchange *exchange)
{
    server_models *models = exchange->site->models;
    const server_model *model = server_site_find(exchange->site, exchange->rest);
    if (!model) {
        server_check_model(exchange, exchange->rest);
        return;
    }
    server_model_status status;
    const bool is_held = server_models_look(models, model, &status), is_default = is_name(exchange->rest, "default");
    server_reply(exchange, model_json(model, is_default ? model->name : exchange->rest, &status));
    if (is_held) server_models_release(models, model, false);
}

// ---------------------------------------------------------------------------------------- loading

typedef bool (*change_fn)(server_models *models, const server_model *model, server_problem *problem);

static void change_model(server_exchange *exchange, change_fn change_it)
{
    const server_named *request = exchange->request;
    if (!request->model)
        server_refuse(&exchange->problem, 400, "missing_required_parameter", "model", "model: is missing");
    else if (change_it(exchange->site->models, exchange->model, &exchange->problem))
        server_reply(exchange, json_pack("{s:b}", "success", 1));
}

void server_load_model(server_exchange *exchange)
{
    change_model(exchange, server_models_load);
}

void server_unload_model(server_exchange *exchange)
{
    change_model(exchange, server_models_unload);
}

// ---------------------------------------------------------------------------------------- the server

bool server_check_loaded(server_exchange *exchange)
{
    if (exchange->is_held) return true;
    server_refuse(&exchange->problem, 503, "model_not_loaded", "model",
                  "The model '%.200s' is not loaded; a request to it, or POST /models/load, loads it.",
                  exchange->model->name);
    exchange->problem.retry_after = 1;
    return false;
}

void server_list_adapters(server_exchange *exchange)
{
    const server_adapters *adapters = &exchange->model->adapters;
    if (!server_check_loaded(exchange)) return;
    json_t *list = json_array();
    for (size_t i = 0; i < adapters->n; i++) {
        frit_adapter_info info;
        frit_adapter_get_info(adapters->items[i], &info);
        json_array_append_new(list,
                              json_pack("{s:i, s:s, s:s, s:f}", "id", (int)i, "path", info.path, "kind", info.kind,
                                        "scale", (double)server_worker_scale(exchange->model->worker, i)));
    }
    server_reply(exchange, list);
}

void server_show_health(server_exchange *exchange)
{
    const server_load load = server_models_load_of_all(exchange->site->models);
    server_reply(exchange, json_pack("{s:s, s:i, s:i, s:i}", "status", "ok", "sessions", (int)load.n_sessions,
                                     "running", (int)load.n_running, "waiting", (int)load.n_waiting));
}

void server_show_metrics(server_exchange *exchange)
{
    server_models *models = exchange->site->models;
    size_t n;
    const server_model *all = server_models_all(models, &n);
    server_measured *measured = calloc(n, sizeof *measured);
    for (size_t i = 0; measured && i < n; i++) {
        measured[i] = (server_measured){.metrics = all[i].metrics, .name = all[i].name};
        measured[i].is_loaded = server_models_hold(models, &all[i], false);
        if (!measured[i].is_loaded) continue;
        const server_load load = server_worker_load(all[i].worker);
        server_models_release(models, &all[i], false);
        measured[i].gauges = (server_gauges){.n_sessions = load.n_sessions,
                                             .n_running = load.n_running,
                                             .n_waiting = load.n_waiting,
                                             .cache_use = load.cache_use};
    }
    char *text = measured ? server_metrics_text(measured, n, exchange->site->started) : NULL;
    char *keys = server_keys_metrics(exchange->site->keys);
    char traces[512];
    server_traces_metrics(exchange->site->traces, traces);
    const size_t n_bytes = (text ? strlen(text) : 0) + (keys ? strlen(keys) : 0) + sizeof traces;
    exchange->reply = text && keys ? malloc(n_bytes) : NULL;
    if (exchange->reply) snprintf(exchange->reply, n_bytes, "%s%s%s", text, keys, traces);
    free(measured);
    free(text);
    free(keys);
    exchange->type = "text/plain; version=0.0.4; charset=utf-8";
    if (!exchange->reply) server_refuse_status(&exchange->problem, 500, NULL, FRIT_E_MEMORY);
}
