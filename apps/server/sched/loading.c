// SPDX-License-Identifier: MIT
// The list of models, as requests use it.
#include "server/sched/loading.h"

#include "server/sched/model_loader.h"
#include "server/sched/model_watch.h"
#include "server/sched/models_state.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// ---------------------------------------------------------------------------------------- requests

static void hold_model(server_model_entry *e, bool is_used)
{
    e->n_users++;
    if (!is_used) return;
    e->leaves = false;
    e->used_at = server_now();
}

bool server_models_hold(server_models *m, const server_model *model, bool is_used)
{
    server_model_entry *e = server_models_entry(m, model);
    pthread_mutex_lock(&m->lock);
    const bool held = e->state == SERVER_MODEL_LOADED && (is_used ? !e->gives_way : !e->leaves);
    if (held) hold_model(e, is_used);
    pthread_mutex_unlock(&m->lock);
    return held;
}

void server_models_release(server_models *m, const server_model *model, bool is_used)
{
    server_model_entry *e = server_models_entry(m, model);
    pthread_mutex_lock(&m->lock);
    if (is_used) e->used_at = server_now();
    if (--e->n_users == 0) {
        pthread_cond_signal(&m->work);
        pthread_cond_signal(&m->watch);
    }
    pthread_mutex_unlock(&m->lock);
}

static void request_load(server_models *m, server_model_entry *e)
{
    if (e->number == 0 && e->state != SERVER_MODEL_LOADING) e->number = ++m->n_numbers;
    pthread_cond_signal(&m->work);
}

bool server_models_await(server_models *m, const server_model *model, server_waiter *waiter, server_problem *problem)
{
    server_model_entry *e = server_models_entry(m, model);
    pthread_mutex_lock(&m->lock);
    const bool is_there = e->state == SERVER_MODEL_LOADED && !e->gives_way;
    if (is_there) {
        hold_model(e, true);
    } else if (m->draining) {
        server_refuse_shutting_down(problem);
    } else if (m->n_waiting >= m->max_waiting) {
        server_refuse(problem, 429, "queue_full", NULL, "the server is busy: %d requests wait for their models",
                      (int)m->n_waiting);
        problem->retry_after = 1;
    } else {
        waiter->model = model;
        waiter->next = NULL;
        *m->end = waiter;
        m->end = &waiter->next;
        m->n_waiting++;
        request_load(m, e);
        pthread_cond_signal(&m->watch);
    }
    pthread_mutex_unlock(&m->lock);
    return is_there;
}

bool server_models_load(server_models *m, const server_model *model, server_problem *problem)
{
    server_model_entry *e = server_models_entry(m, model);
    pthread_mutex_lock(&m->lock);
    const bool good = e->state == SERVER_MODEL_UNLOADED && e->number == 0 && !m->draining;
    if (good) {
        e->is_requested = true;
        request_load(m, e);
    } else {
        server_refuse(problem, 400, "model_loaded", "model", "The model '%.200s' is loaded, or is being loaded.",
                      model->name);
    }
    pthread_mutex_unlock(&m->lock);
    return good;
}

bool server_models_unload(server_models *m, const server_model *model, server_problem *problem)
{
    server_model_entry *e = server_models_entry(m, model);
    pthread_mutex_lock(&m->lock);
    const bool is_there = e->state == SERVER_MODEL_LOADED;
    const server_load load = is_there ? server_worker_load(model->worker) : (server_load){0};
    const int32_t n_requests = load.n_running + load.n_waiting + load.n_further + load.n_ending;
    if (is_there && n_requests == 0) {   // e->n_users may be above 0 for a moment
        e->leaves = true;
        pthread_cond_signal(&m->work);
    } else if (is_there) {
        server_refuse(problem, 409, "model_busy", "model",
                      "The model '%.200s' has %d requests; it is freed without any.", model->name, (int)n_requests);
    } else {
        server_refuse(problem, 400, "model_not_loaded", "model", "The model '%.200s' is not loaded.", model->name);
    }
    pthread_mutex_unlock(&m->lock);
    return is_there && n_requests == 0;
}

bool server_models_look(server_models *m, const server_model *model, server_model_status *status)
{
    server_model_entry *e = server_models_entry(m, model);
    pthread_mutex_lock(&m->lock);
    const bool loads = e->state == SERVER_MODEL_LOADING || (e->state == SERVER_MODEL_UNLOADED && e->number > 0);
    const bool is_there = e->state == SERVER_MODEL_LOADED && !e->leaves;
    *status = (server_model_status){is_there ? "loaded" : loads ? "loading" : "unloaded", e->failed};
    if (is_there) hold_model(e, false);
    pthread_mutex_unlock(&m->lock);
    return is_there;
}

// ---------------------------------------------------------------------------------------- all models

const server_model *server_models_all(const server_models *m, size_t *n)
{
    *n = m->n;
    return m->models;
}

bool server_models_read_pictures(const server_models *m)
{
    return atomic_load(&m->reads_pictures);
}

server_load server_models_load_of_all(server_models *m)
{
    server_load all = {0};
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->n; i++) {
        if (m->entries[i].state != SERVER_MODEL_LOADED) continue;
        const server_load one = server_worker_load(m->models[i].worker);
        all.n_sessions += one.n_sessions;
        all.n_running += one.n_running;
        all.n_waiting += one.n_waiting;
        all.n_further += one.n_further;
    }
    all.n_waiting += m->n_waiting;
    pthread_mutex_unlock(&m->lock);
    return all;
}

void server_models_drain(server_models *m)
{
    server_problem problem;
    server_refuse_shutting_down(&problem);
    pthread_mutex_lock(&m->lock);
    m->draining = true;
    for (size_t i = 0; i < m->n; i++)
        if (m->entries[i].state == SERVER_MODEL_LOADED) server_worker_drain(m->models[i].worker);
    server_waiters_call(m, server_waiters_take(m, NULL), &problem);
    pthread_mutex_unlock(&m->lock);
}

void server_models_cut(server_models *m)
{
    pthread_mutex_lock(&m->lock);
    m->cut = true;
    for (size_t i = 0; i < m->n; i++)
        if (m->entries[i].state == SERVER_MODEL_LOADED) server_worker_cut(m->models[i].worker);
    pthread_mutex_unlock(&m->lock);
}

bool server_models_are_idle(server_models *m)
{
    const server_load load = server_models_load_of_all(m);
    return load.n_running + load.n_waiting + load.n_further == 0;
}

bool server_models_are_loading(server_models *m)
{
    bool loads = false;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->n; i++) loads = loads || m->entries[i].state == SERVER_MODEL_LOADING;
    pthread_mutex_unlock(&m->lock);
    return loads;
}

void server_models_free(server_models *m)
{
    if (!m) return;
    pthread_mutex_lock(&m->lock);
    m->stop = m->draining = m->cut = true;
    pthread_cond_broadcast(&m->work);
    pthread_cond_broadcast(&m->watch);
    pthread_mutex_unlock(&m->lock);
    if (m->has_loader) pthread_join(m->loader, NULL);
    if (m->has_watcher) pthread_join(m->watcher, NULL);
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; m->models && m->entries && i < m->n; i++) {
        if (m->entries[i].state == SERVER_MODEL_LOADED) server_models_free_loaded(m, &m->entries[i]);
        server_metrics_free(m->models[i].metrics);
        free(m->models[i].stem);
    }
    pthread_mutex_unlock(&m->lock);
    server_step_lock_free(m->step_lock);
    pthread_cond_destroy(&m->work);
    pthread_cond_destroy(&m->watch);
    pthread_mutex_destroy(&m->lock);
    free(m->models);
    free(m->entries);
    free(m);
}

char *server_stem(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    size_t start = n;
    while (start > 0 && path[start - 1] != '/') start--;
    static const char *const endings[] = {".gguf", ".safetensors"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        const size_t k = strlen(endings[i]);
        if (n - start > k && memcmp(path + n - k, endings[i], k) == 0) n -= k;
    }
    return strndup(path + start, n - start);
}

static bool name_models(server_models *m, const server_source *sources, server_problem *problem)
{
    const int64_t now = (int64_t)time(NULL);
    for (size_t i = 0; i < m->n; i++) {
        const server_source *source = &sources[i];
        m->entries[i].source = source;
        m->models[i] = (server_model){.aliases = source->aliases,
                                      .stem = source->name ? strdup(source->name) : server_stem(source->path),
                                      .path = source->path,
                                      .metrics = server_metrics_new(),
                                      .started = now};
        if (!m->models[i].stem || !m->models[i].metrics) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
        m->models[i].name = source->aliases.n > 0 ? source->aliases.items[0] : m->models[i].stem;
    }
    return true;
}

static bool start_models(server_models *m, const server_models_options *options, server_problem *problem)
{
    m->models = calloc(options->n, sizeof *m->models);
    m->entries = calloc(options->n, sizeof *m->entries);
    if (options->n > 1) m->step_lock = server_step_lock_new();
    if (!m->models || !m->entries || (options->n > 1 && !m->step_lock))
        return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    m->n = options->n;
    if (!name_models(m, options->sources, problem)) return false;
    pthread_mutex_lock(&m->lock);
    const bool good = server_models_take_first(m, options->first, problem);
    pthread_mutex_unlock(&m->lock);
    if (!good) return false;
    m->has_loader = pthread_create(&m->loader, NULL, server_models_run_loader, m) == 0;
    m->has_watcher = m->has_loader && pthread_create(&m->watcher, NULL, server_models_run_watcher, m) == 0;
    return m->has_watcher || server_refuse(problem, 500, NULL, NULL, "the threads that load models cannot be started");
}

bool server_models_new(server_models **out, const server_models_options *options, server_problem *problem)
{
    *out = NULL;
    server_models *m = calloc(1, sizeof *m);
    if (!m) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    pthread_mutex_init(&m->lock, NULL);
    server_cond_init(&m->work);
    server_cond_init(&m->watch);
    m->end = &m->first;
    m->max_models = options->max_models;
    m->idle_s = options->idle_s;
    m->max_waiting = options->max_waiting;
    if (start_models(m, options, problem)) {
        *out = m;
        return true;
    }
    server_loaded first = *options->first;
    if (!m->entries || m->entries[0].state != SERVER_MODEL_LOADED)
        options->sources[0].close(&options->sources[0], &first);
    server_models_free(m);
    return false;
}
