// SPDX-License-Identifier: MIT
// Loading models when they are asked for, and freeing those that are not.
#include "server/sched/loading.h"

#include "server/ops/clock.h"
#include "server/sched/grammars.h"
#include "server/sched/step_lock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOOK_MS = 50 };   // how often clients that wait are looked at

typedef enum state { UNLOADED, LOADING, LOADED, UNLOADING } state;

typedef struct entry {
    const server_source *source;
    server_loaded loaded;
    state state;
    int32_t n_users;
    double used_at;    // when the last request came or ended
    uint64_t number;   // in the queue of models to load; 0: not there
    bool is_asked;     // for its own sake (server_models_load), not by a request
    bool leaves;       // it is to be freed, and has no users
    bool gives_way;    // it is freed when its users are done; new requests wait
    bool failed;       // the last attempt
} entry;

struct server_models {
    pthread_mutex_t lock;
    pthread_cond_t work, watch;   // for the two threads
    pthread_t loader, watcher;
    bool has_loader, has_watcher;
    server_model *models;   // [n]
    entry *entries;         // [n]
    size_t n;
    server_step_lock *step_lock;   // NULL: there is one model
    int32_t max_models, idle_s, max_waiting, n_waiting;
    server_waiter *first, **end;   // requests that wait, in order
    uint64_t n_numbers;
    bool draining, cut, stop;
};

static void wait_for(pthread_cond_t *news, pthread_mutex_t *lock, double seconds)
{
    (void)server_wait_until(news, lock, server_now() + seconds + 1e-3);
}

static entry *entry_of(const server_models *m, const server_model *model)
{
    return &m->entries[model - m->models];
}

static server_model *model_of(const server_models *m, const entry *e)
{
    return &m->models[e - m->entries];
}

// ---------------------------------------------------------------------------------------- waiters

typedef bool (*chosen_fn)(const server_waiter *waiter, const void *which);

// Takes those that wait and are chosen off the list, with the lock held.
static server_waiter *take_waiters(server_models *m, chosen_fn chosen, const void *which)
{
    server_waiter *taken = NULL, **end = &taken;
    for (server_waiter **at = &m->first; *at;) {
        server_waiter *waiter = *at;
        if (!chosen(waiter, which)) {
            at = &waiter->next;
            continue;
        }
        *at = waiter->next;
        waiter->next = NULL;
        *end = waiter;
        end = &waiter->next;
        m->n_waiting--;
    }
    m->end = &m->first;
    while (*m->end) m->end = &(*m->end)->next;
    return taken;
}

static bool is_of_model(const server_waiter *waiter, const void *model)
{
    return waiter->model == model;
}

static bool is_any(const server_waiter *waiter, const void *which)
{
    (void)waiter, (void)which;
    return true;
}

static bool is_gone(const server_waiter *waiter, const void *which)
{
    (void)which;
    return waiter->is_gone((server_waiter *)waiter);
}

static bool has_waiters(const server_models *m, const server_model *model)
{
    for (const server_waiter *waiter = m->first; waiter; waiter = waiter->next)
        if (waiter->model == model) return true;
    return false;
}

// Calls them without the lock, which is held before and after.
static void call_waiters(server_models *m, server_waiter *waiters, const server_problem *problem)
{
    pthread_mutex_unlock(&m->lock);
    for (server_waiter *waiter = waiters, *next; waiter; waiter = next) {
        next = waiter->next;
        waiter->ready(waiter, problem);
    }
    pthread_mutex_lock(&m->lock);
}

// The model is there: all that wait for it hold it, before it can be freed again.
static void grant(server_models *m, entry *e)
{
    server_waiter *waiters = take_waiters(m, is_of_model, model_of(m, e));
    for (server_waiter *waiter = waiters; waiter; waiter = waiter->next) e->n_users++;
    e->number = 0;
    e->used_at = server_now();
    call_waiters(m, waiters, NULL);
}

// ---------------------------------------------------------------------------------------- loading, lock held

static bool fill(server_models *m, const entry *e, const server_loaded *loaded, server_model *out,
                 server_problem *problem)
{
    frit_engine_info info;
    frit_engine_get_info(loaded->engine, &info);
    *out = *model_of(m, e);
    out->model = loaded->model;
    frit_model_get_info(loaded->model, &out->info);
    out->n_ctx = info.n_ctx;
    out->sampling = loaded->sampling;
    out->format = loaded->format;
    out->adapters = loaded->adapters;
    server_worker_options worker = loaded->worker;
    worker.adapters = loaded->adapters;
    worker.metrics = out->metrics;
    worker.step_lock = m->step_lock;
    out->grammars = server_grammars_new();
    if (!out->grammars) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    if (server_worker_new(&out->worker, loaded->model, loaded->engine, &worker, problem)) return true;
    server_grammars_free(out->grammars);
    return false;
}

// Without the lock.
static server_opened open_source(server_models *m, const entry *e, server_loaded *loaded, server_model *filled,
                                 char sentence[SERVER_MAX_SENTENCE])
{
    server_problem problem = {0};
    *loaded = (server_loaded){0};
    const server_opened opened = e->source->open(e->source, loaded, sentence);
    if (opened != SERVER_OPENED || fill(m, e, loaded, filled, &problem)) return opened;
    e->source->close(e->source, loaded);
    snprintf(sentence, SERVER_MAX_SENTENCE, "%.*s", SERVER_MAX_SENTENCE - 1, problem.message);
    return SERVER_OPEN_FAILED;
}

// Names stay: they are read without the lock.
static void set_loaded(server_model *model, const server_model *from)
{
    model->model = from->model;
    model->info = from->info;
    model->n_ctx = from->n_ctx;
    model->sampling = from->sampling;
    model->format = from->format;
    model->adapters = from->adapters;
    model->worker = from->worker;
    model->grammars = from->grammars;
}

static void become_loaded(server_models *m, entry *e, const server_loaded *loaded, const server_model *filled)
{
    set_loaded(model_of(m, e), filled);
    e->loaded = *loaded;
    e->state = LOADED;
    e->is_asked = e->failed = e->gives_way = e->leaves = false;
    server_metrics_count(filled->metrics, SERVER_COUNT_LOADS, 1);
    if (m->draining) server_worker_drain(filled->worker);
    if (m->cut) server_worker_cut(filled->worker);
    pthread_cond_signal(&m->watch);   // of its idle time
    grant(m, e);
}

static void free_loaded(server_models *m, entry *e)
{
    server_model *model = model_of(m, e);
    const server_model was = *model;
    server_loaded loaded = e->loaded;
    e->state = UNLOADING;
    e->leaves = e->gives_way = false;
    pthread_mutex_unlock(&m->lock);
    server_worker_free(was.worker);
    server_grammars_free(was.grammars);
    e->source->close(e->source, &loaded);
    pthread_mutex_lock(&m->lock);
    set_loaded(model, &(server_model){0});
    e->state = UNLOADED;
}

// No request holds it, and none that has outlived its connection runs.
static bool is_idle(const server_models *m, const entry *e)
{
    return e->n_users == 0 && server_worker_is_idle(m->models[e - m->entries].worker);
}

// The one that was used longest ago, idle if there is such a one. NULL: no other is loaded.
static entry *choose_victim(server_models *m)
{
    entry *best = NULL;
    for (size_t i = 0; i < m->n; i++) {
        entry *e = &m->entries[i];
        if (e->state != LOADED) continue;
        const bool is_better = !best || is_idle(m, e) > is_idle(m, best) ||
                               (is_idle(m, e) == is_idle(m, best) && e->used_at < best->used_at);
        if (is_better) best = e;
    }
    return best;
}

static bool is_wanted(const server_models *m, entry *e)
{
    return !m->stop && (e->is_asked || has_waiters(m, model_of(m, e)));
}

// Frees another model. False: none is loaded, or the entry is not wanted any more.
static bool make_room(server_models *m, entry *e)
{
    entry *victim = choose_victim(m);
    if (!victim) return false;
    victim->gives_way = true;
    while (!is_idle(m, victim) && is_wanted(m, e)) wait_for(&m->work, &m->lock, LOOK_MS * 1e-3);
    if (is_idle(m, victim)) {
        free_loaded(m, victim);
        return true;
    }
    victim->gives_way = false;
    grant(m, victim);
    return false;
}

static int32_t count_loaded(const server_models *m)
{
    int32_t n = 0;
    for (size_t i = 0; i < m->n; i++) n += m->entries[i].state == LOADED;
    return n;
}

static void fail(server_models *m, entry *e, const char *sentence)
{
    server_problem problem = {0};
    const server_model *model = model_of(m, e);
    e->state = UNLOADED;
    e->is_asked = false;
    e->failed = true;
    server_refuse(&problem, 500, "model_load_failed", "model", "The model '%.100s' cannot be loaded: %.480s",
                  model->name, server_without_folder(sentence));
    call_waiters(m, take_waiters(m, is_of_model, model), &problem);
}

static void load(server_models *m, entry *e)
{
    char sentence[SERVER_MAX_SENTENCE] = "";
    server_loaded loaded;
    server_model filled;
    e->number = 0;
    e->state = LOADING;
    while (is_wanted(m, e)) {
        if (m->max_models > 0 && count_loaded(m) >= m->max_models) {
            make_room(m, e);
            continue;
        }
        pthread_mutex_unlock(&m->lock);
        const server_opened opened = open_source(m, e, &loaded, &filled, sentence);
        pthread_mutex_lock(&m->lock);
        if (opened == SERVER_OPENED) {
            become_loaded(m, e, &loaded, &filled);
            return;
        }
        if (opened == SERVER_OPEN_NO_MEMORY && make_room(m, e)) continue;
        if (is_wanted(m, e)) fail(m, e, sentence);
        break;
    }
    e->state = UNLOADED;
}

// ---------------------------------------------------------------------------------------- the threads

static entry *next_to_leave(const server_models *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->entries[i].leaves && m->entries[i].state == LOADED && is_idle(m, &m->entries[i])) return &m->entries[i];
    return NULL;
}

static entry *next_to_load(const server_models *m)
{
    entry *next = NULL;
    for (size_t i = 0; i < m->n; i++) {
        entry *e = &m->entries[i];
        if (e->number > 0 && e->state == UNLOADED && (!next || e->number < next->number)) next = e;
    }
    return next;
}

static void *run_loader(void *ctx)
{
    server_models *m = ctx;
    pthread_mutex_lock(&m->lock);
    while (!m->stop) {
        entry *e = next_to_leave(m);
        if (e) {
            free_loaded(m, e);
        } else if ((e = next_to_load(m)) != NULL) {
            load(m, e);
        } else {
            pthread_cond_wait(&m->work, &m->lock);
        }
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

// The time of the next look; negative: there is nothing to look at.
static double find_idle(server_models *m, double now)
{
    double next = -1;
    for (size_t i = 0; i < m->n && m->idle_s > 0; i++) {
        entry *e = &m->entries[i];
        if (e->state != LOADED || e->n_users > 0 || e->leaves) continue;
        if (!is_idle(m, e)) e->used_at = now;
        const double at = e->used_at + m->idle_s;
        e->leaves = at <= now;
        if (e->leaves)
            pthread_cond_signal(&m->work);
        else if (next < 0 || at < next)
            next = at;
    }
    return next;
}

static void *run_watcher(void *ctx)
{
    static const server_problem gone = {.status = 499, .message = "the client went away"};
    server_models *m = ctx;
    pthread_mutex_lock(&m->lock);
    while (!m->stop) {
        server_waiter *left = take_waiters(m, is_gone, NULL);
        if (left) {
            pthread_cond_signal(&m->work);   // the model is perhaps not wanted any more
            call_waiters(m, left, &gone);
        }
        const double now = server_now(), next = find_idle(m, now);
        if (m->stop) break;
        if (m->first)
            wait_for(&m->watch, &m->lock, LOOK_MS * 1e-3);
        else if (next >= 0)
            wait_for(&m->watch, &m->lock, next - now);
        else
            pthread_cond_wait(&m->watch, &m->lock);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

// ---------------------------------------------------------------------------------------- requests

static void hold(entry *e, bool is_used)
{
    e->n_users++;
    if (!is_used) return;
    e->leaves = false;
    e->used_at = server_now();
}

bool server_models_hold(server_models *m, const server_model *model, bool is_used)
{
    entry *e = entry_of(m, model);
    pthread_mutex_lock(&m->lock);
    const bool held = e->state == LOADED && (is_used ? !e->gives_way : !e->leaves);
    if (held) hold(e, is_used);
    pthread_mutex_unlock(&m->lock);
    return held;
}

void server_models_release(server_models *m, const server_model *model, bool is_used)
{
    entry *e = entry_of(m, model);
    pthread_mutex_lock(&m->lock);
    if (is_used) e->used_at = server_now();
    if (--e->n_users == 0) {
        pthread_cond_signal(&m->work);
        pthread_cond_signal(&m->watch);
    }
    pthread_mutex_unlock(&m->lock);
}

static void ask_for(server_models *m, entry *e)
{
    if (e->number == 0 && e->state != LOADING) e->number = ++m->n_numbers;
    pthread_cond_signal(&m->work);
}

bool server_models_await(server_models *m, const server_model *model, server_waiter *waiter, server_problem *problem)
{
    entry *e = entry_of(m, model);
    pthread_mutex_lock(&m->lock);
    const bool is_there = e->state == LOADED && !e->gives_way;
    if (is_there) {
        hold(e, true);
    } else if (m->draining) {
        server_refuse(problem, 503, "shutting_down", NULL, "the server is shutting down");
        problem->retry_after = 5;
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
        ask_for(m, e);
        pthread_cond_signal(&m->watch);
    }
    pthread_mutex_unlock(&m->lock);
    return is_there;
}

bool server_models_load(server_models *m, const server_model *model, server_problem *problem)
{
    entry *e = entry_of(m, model);
    pthread_mutex_lock(&m->lock);
    const bool good = e->state == UNLOADED && e->number == 0 && !m->draining;
    if (good) {
        e->is_asked = true;
        ask_for(m, e);
    } else {
        server_refuse(problem, 400, "model_loaded", "model", "The model '%.200s' is loaded, or is being loaded.",
                      model->name);
    }
    pthread_mutex_unlock(&m->lock);
    return good;
}

bool server_models_unload(server_models *m, const server_model *model, server_problem *problem)
{
    entry *e = entry_of(m, model);
    pthread_mutex_lock(&m->lock);
    const bool is_there = e->state == LOADED;
    const server_load load = is_there ? server_worker_load(model->worker) : (server_load){0};
    const int32_t n_requests = load.n_running + load.n_waiting + load.n_parts + load.n_ending;
    if (is_there && n_requests == 0) {   // what only looks at it, or was answered already, holds it a moment longer
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
    entry *e = entry_of(m, model);
    pthread_mutex_lock(&m->lock);
    const bool loads = e->state == LOADING || (e->state == UNLOADED && e->number > 0);
    const bool is_there = e->state == LOADED && !e->leaves;
    *status = (server_model_status){is_there ? "loaded" : loads ? "loading" : "unloaded", e->failed};
    if (is_there) hold(e, false);
    pthread_mutex_unlock(&m->lock);
    return is_there;
}

// ---------------------------------------------------------------------------------------- all of them

const server_model *server_models_all(const server_models *m, size_t *n)
{
    *n = m->n;
    return m->models;
}

server_load server_models_load_of_all(server_models *m)
{
    server_load all = {0};
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->n; i++) {
        if (m->entries[i].state != LOADED) continue;
        const server_load one = server_worker_load(m->models[i].worker);
        all.n_sessions += one.n_sessions;
        all.n_running += one.n_running;
        all.n_waiting += one.n_waiting;
        all.n_parts += one.n_parts;
    }
    all.n_waiting += m->n_waiting;
    pthread_mutex_unlock(&m->lock);
    return all;
}

void server_models_drain(server_models *m)
{
    server_problem problem;
    server_refuse(&problem, 503, "shutting_down", NULL, "the server is shutting down");
    problem.retry_after = 5;
    pthread_mutex_lock(&m->lock);
    m->draining = true;
    for (size_t i = 0; i < m->n; i++)
        if (m->entries[i].state == LOADED) server_worker_drain(m->models[i].worker);
    call_waiters(m, take_waiters(m, is_any, NULL), &problem);
    pthread_mutex_unlock(&m->lock);
}

void server_models_cut(server_models *m)
{
    pthread_mutex_lock(&m->lock);
    m->cut = true;
    for (size_t i = 0; i < m->n; i++)
        if (m->entries[i].state == LOADED) server_worker_cut(m->models[i].worker);
    pthread_mutex_unlock(&m->lock);
}

bool server_models_are_idle(server_models *m)
{
    const server_load load = server_models_load_of_all(m);
    return load.n_running + load.n_waiting + load.n_parts == 0;
}

bool server_models_are_loading(server_models *m)
{
    bool loads = false;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->n; i++) loads = loads || m->entries[i].state == LOADING;
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
        if (m->entries[i].state == LOADED) free_loaded(m, &m->entries[i]);
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

static bool start(server_models *m, const server_models_options *options, server_problem *problem)
{
    server_model filled;
    m->models = calloc(options->n, sizeof *m->models);
    m->entries = calloc(options->n, sizeof *m->entries);
    if (options->n > 1) m->step_lock = server_step_lock_new();
    if (!m->models || !m->entries || (options->n > 1 && !m->step_lock))
        return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    m->n = options->n;
    if (!name_models(m, options->sources, problem) || !fill(m, &m->entries[0], options->first, &filled, problem))
        return false;
    pthread_mutex_lock(&m->lock);
    become_loaded(m, &m->entries[0], options->first, &filled);
    pthread_mutex_unlock(&m->lock);
    m->has_loader = pthread_create(&m->loader, NULL, run_loader, m) == 0;
    m->has_watcher = m->has_loader && pthread_create(&m->watcher, NULL, run_watcher, m) == 0;
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
    if (start(m, options, problem)) {
        *out = m;
        return true;
    }
    server_loaded first = *options->first;
    if (!m->entries || m->entries[0].state != LOADED) options->sources[0].close(&options->sources[0], &first);
    server_models_free(m);
    return false;
}
