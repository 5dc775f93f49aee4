// SPDX-License-Identifier: MIT
// Loads and frees models on a thread of its own.
#include "server/sched/model_loader.h"

#include "server/sched/grammars.h"
#include "server/sched/model_watch.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The model is loaded: the requests that wait for it hold it before it can be freed again.
static void grant_waiters(server_models *m, server_model_entry *e)
{
    server_waiter *waiters = server_waiters_take(m, server_models_model(m, e));
    for (server_waiter *waiter = waiters; waiter; waiter = waiter->next) e->n_users++;
    e->number = 0;
    e->used_at = server_now();
    server_waiters_call(m, waiters, NULL);
}

// Opens the encoder of pictures before the engine has a thread of its own.
static void open_pictures(const server_loaded *loaded, server_model *out)
{
    const frit_engine_media_options media = {.cache_bytes = loaded->media_cache};
    const frit_status status = frit_engine_set_media(loaded->engine, &media);
    const char *why = status != FRIT_OK         ? server_without_folder(frit_error())
                      : loaded->worker.shift.on ? "with --context-shift the server reads no pictures"
                                                : "";
    out->image_tokens = loaded->image_tokens;
    snprintf(out->why_no_pictures, sizeof out->why_no_pictures, "%s", why);
}

static bool fill_model(server_models *m, const server_model_entry *e, const server_loaded *loaded, server_model *out,
                       server_problem *problem)
{
    frit_engine_info info;
    frit_engine_get_info(loaded->engine, &info);
    *out = *server_models_model(m, e);
    out->model = loaded->model;
    frit_model_get_info(loaded->model, &out->info);
    out->n_ctx = info.n_ctx;
    out->sampling = loaded->sampling;
    out->format = loaded->format;
    out->adapters = loaded->adapters;
    open_pictures(loaded, out);
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

// Called without the lock.
static server_opened open_source(server_models *m, const server_model_entry *e, server_loaded *loaded,
                                 server_model *filled, char sentence[SERVER_MAX_SENTENCE])
{
    server_problem problem = {0};
    *loaded = (server_loaded){0};
    const server_opened opened = e->source->open(e->source, loaded, sentence);
    if (opened != SERVER_OPENED || fill_model(m, e, loaded, filled, &problem)) return opened;
    e->source->close(e->source, loaded);
    snprintf(sentence, SERVER_MAX_SENTENCE, "%.*s", SERVER_MAX_SENTENCE - 1, problem.message);
    return SERVER_OPEN_FAILED;
}

// Names are not copied: they are read without the lock.
static void copy_loaded(server_model *model, const server_model *from)
{
    model->model = from->model;
    model->info = from->info;
    model->n_ctx = from->n_ctx;
    model->sampling = from->sampling;
    model->format = from->format;
    model->adapters = from->adapters;
    memcpy(model->why_no_pictures, from->why_no_pictures, sizeof model->why_no_pictures);
    model->image_tokens = from->image_tokens;
    model->worker = from->worker;
    model->grammars = from->grammars;
}

static void set_loaded(server_models *m, server_model_entry *e, const server_loaded *loaded, const server_model *filled)
{
    copy_loaded(server_models_model(m, e), filled);
    if (!filled->why_no_pictures[0]) atomic_store(&m->reads_pictures, true);
    e->loaded = *loaded;
    e->state = SERVER_MODEL_LOADED;
    e->is_requested = e->failed = e->gives_way = e->leaves = false;
    server_metrics_count(filled->metrics, SERVER_COUNT_LOADS, 1);
    if (m->draining) server_worker_drain(filled->worker);
    if (m->cut) server_worker_cut(filled->worker);
    pthread_cond_signal(&m->watch);
    grant_waiters(m, e);
}

void server_models_free_loaded(server_models *m, server_model_entry *e)
{
    server_model *model = server_models_model(m, e);
    const server_model was = *model;
    server_loaded loaded = e->loaded;
    e->state = SERVER_MODEL_UNLOADING;
    e->leaves = e->gives_way = false;
    pthread_mutex_unlock(&m->lock);
    server_worker_free(was.worker);
    server_grammars_free(was.grammars);
    e->source->close(e->source, &loaded);
    pthread_mutex_lock(&m->lock);
    copy_loaded(model, &(server_model){0});
    e->state = SERVER_MODEL_UNLOADED;
}

bool server_models_is_idle(const server_models *m, const server_model_entry *e)
{
    return e->n_users == 0 && server_worker_is_idle(m->models[e - m->entries].worker);
}

// The least recently used model, an idle one if there is one. NULL: no model is loaded.
static server_model_entry *choose_victim(server_models *m)
{
    server_model_entry *best = NULL;
    for (size_t i = 0; i < m->n; i++) {
        server_model_entry *e = &m->entries[i];
        if (e->state != SERVER_MODEL_LOADED) continue;
        const bool is_better =
            !best || server_models_is_idle(m, e) > server_models_is_idle(m, best) ||
            (server_models_is_idle(m, e) == server_models_is_idle(m, best) && e->used_at < best->used_at);
        if (is_better) best = e;
    }
    return best;
}

static bool is_wanted(const server_models *m, server_model_entry *e)
{
    return !m->stop && (e->is_requested || server_waiters_exist(m, server_models_model(m, e)));
}

// Frees another model for the entry. False: no other is loaded, or the entry is not wanted any more.
static bool make_room(server_models *m, server_model_entry *e)
{
    server_model_entry *victim = choose_victim(m);
    if (!victim) return false;
    victim->gives_way = true;
    while (!server_models_is_idle(m, victim) && is_wanted(m, e))
        server_models_wait(&m->work, &m->lock, server_look_seconds);
    if (server_models_is_idle(m, victim)) {
        server_models_free_loaded(m, victim);
        return true;
    }
    victim->gives_way = false;
    grant_waiters(m, victim);
    return false;
}

static int32_t count_loaded(const server_models *m)
{
    int32_t n = 0;
    for (size_t i = 0; i < m->n; i++) n += m->entries[i].state == SERVER_MODEL_LOADED;
    return n;
}

static void fail_waiters(server_models *m, server_model_entry *e, const char *sentence)
{
    server_problem problem = {0};
    const server_model *model = server_models_model(m, e);
    e->state = SERVER_MODEL_UNLOADED;
    e->is_requested = false;
    e->failed = true;
    server_refuse(&problem, 500, "model_load_failed", "model", "The model '%.100s' cannot be loaded: %.480s",
                  model->name, server_without_folder(sentence));
    server_waiters_call(m, server_waiters_take(m, model), &problem);
}

static void load_model(server_models *m, server_model_entry *e)
{
    char sentence[SERVER_MAX_SENTENCE] = "";
    server_loaded loaded;
    server_model filled;
    e->number = 0;
    e->state = SERVER_MODEL_LOADING;
    while (is_wanted(m, e)) {
        if (m->max_models > 0 && count_loaded(m) >= m->max_models) {
            make_room(m, e);
            continue;
        }
        pthread_mutex_unlock(&m->lock);
        const server_opened opened = open_source(m, e, &loaded, &filled, sentence);
        pthread_mutex_lock(&m->lock);
        if (opened == SERVER_OPENED) {
            set_loaded(m, e, &loaded, &filled);
            return;
        }
        if (opened == SERVER_OPEN_NO_MEMORY && make_room(m, e)) continue;
        if (is_wanted(m, e)) fail_waiters(m, e, sentence);
        break;
    }
    e->state = SERVER_MODEL_UNLOADED;
}

static server_model_entry *find_leaving(const server_models *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->entries[i].leaves && m->entries[i].state == SERVER_MODEL_LOADED &&
            server_models_is_idle(m, &m->entries[i]))
            return &m->entries[i];
    return NULL;
}

static server_model_entry *find_next_to_load(const server_models *m)
{
    server_model_entry *next = NULL;
    for (size_t i = 0; i < m->n; i++) {
        server_model_entry *e = &m->entries[i];
        if (e->number > 0 && e->state == SERVER_MODEL_UNLOADED && (!next || e->number < next->number)) next = e;
    }
    return next;
}

void *server_models_run_loader(void *ctx)
{
    server_models *m = ctx;
    pthread_mutex_lock(&m->lock);
    while (!m->stop) {
        server_model_entry *e = find_leaving(m);
        if (e) {
            server_models_free_loaded(m, e);
        } else if ((e = find_next_to_load(m)) != NULL) {
            load_model(m, e);
        } else {
            pthread_cond_wait(&m->work, &m->lock);
        }
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

bool server_models_take_first(server_models *m, const server_loaded *loaded, server_problem *problem)
{
    server_model filled;
    if (!fill_model(m, &m->entries[0], loaded, &filled, problem)) return false;
    set_loaded(m, &m->entries[0], loaded, &filled);
    return true;
}
