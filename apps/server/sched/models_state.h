// SPDX-License-Identifier: MIT
// server/sched/models_state.h: the list of models, for its own files: loading.c (what requests call), model_loader.c
// and model_watch.c (its two threads).
#pragma once
#include "server/ops/clock.h"
#include "server/sched/loading.h"
#include "server/sched/step_lock.h"

#include <pthread.h>

typedef enum server_model_state {
    SERVER_MODEL_UNLOADED,
    SERVER_MODEL_LOADING,
    SERVER_MODEL_LOADED,
    SERVER_MODEL_UNLOADING,
} server_model_state;

typedef struct server_model_entry {
    const server_source *source;
    server_loaded loaded;
    server_model_state state;
    int32_t n_users;
    double used_at;      // when the last request came or ended
    uint64_t number;     // in the queue of models to load; 0: not in the queue
    bool is_requested;   // by server_models_load, which no request waits for
    bool leaves;         // the model is to be freed, and has no users
    bool gives_way;      // the model is freed when its users are done; new requests wait
    bool failed;         // the last attempt to load it failed
} server_model_entry;

struct server_models {
    pthread_mutex_t lock;
    pthread_cond_t work, watch;   // for the two threads
    pthread_t loader, watcher;
    bool has_loader, has_watcher;
    server_model *models;          // [n]
    server_model_entry *entries;   // [n]
    size_t n;
    server_step_lock *step_lock;   // NULL: there is one model
    int32_t max_models, idle_s, max_waiting, n_waiting;
    server_waiter *first, **end;   // requests that wait, in order
    uint64_t n_numbers;
    bool draining, cut, stop;
    _Atomic bool reads_pictures;   // a model that reads pictures was loaded
};

static const double server_look_seconds = 0.05;   // interval between looks at what a thread waits for

static inline server_model_entry *server_models_entry(const server_models *m, const server_model *model)
{
    return &m->entries[model - m->models];
}

static inline server_model *server_models_model(const server_models *m, const server_model_entry *e)
{
    return &m->models[e - m->entries];
}

static inline void server_models_wait(pthread_cond_t *news, pthread_mutex_t *lock, double seconds)
{
    (void)server_wait_until(news, lock, server_now() + seconds + 1e-3);
}
