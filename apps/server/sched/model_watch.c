// SPDX-License-Identifier: MIT
// Requests that wait for models, and the thread that watches their clients and the idle time of models.
#include "server/sched/model_watch.h"

#include "server/ops/clock.h"
#include "server/sched/model_loader.h"

typedef bool (*filter_fn)(const server_waiter *waiter, const server_model *model);

// Takes the waiters that the filter chooses out of the list.
static server_waiter *take_waiters(server_models *m, filter_fn is_chosen, const server_model *model)
{
    server_waiter *taken = NULL, **end = &taken;
    for (server_waiter **at = &m->first; *at;) {
        server_waiter *waiter = *at;
        if (!is_chosen(waiter, model)) {
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

static bool is_of_model(const server_waiter *waiter, const server_model *model)
{
    return !model || waiter->model == model;
}

static bool is_gone(const server_waiter *waiter, const server_model *model)
{
    (void)model;
    return waiter->is_gone((server_waiter *)waiter);
}

server_waiter *server_waiters_take(server_models *m, const server_model *model)
{
    return take_waiters(m, is_of_model, model);
}

bool server_waiters_exist(const server_models *m, const server_model *model)
{
    for (const server_waiter *waiter = m->first; waiter; waiter = waiter->next)
        if (waiter->model == model) return true;
    return false;
}

void server_waiters_call(server_models *m, server_waiter *waiters, const server_problem *problem)
{
    pthread_mutex_unlock(&m->lock);
    for (server_waiter *waiter = waiters, *next; waiter; waiter = next) {
        next = waiter->next;
        waiter->ready(waiter, problem);
    }
    pthread_mutex_lock(&m->lock);
}

// Marks the models that were idle for idle_s seconds. Gives the time of the next look; negative: no model is idle.
static double find_idle(server_models *m, double now)
{
    double next = -1;
    for (size_t i = 0; i < m->n && m->idle_s > 0; i++) {
        server_model_entry *e = &m->entries[i];
        if (e->state != SERVER_MODEL_LOADED || e->n_users > 0 || e->leaves) continue;
        if (!server_models_is_idle(m, e)) e->used_at = now;
        const double at = e->used_at + m->idle_s;
        e->leaves = at <= now;
        if (e->leaves)
            pthread_cond_signal(&m->work);
        else if (next < 0 || at < next)
            next = at;
    }
    return next;
}

void *server_models_run_watcher(void *ctx)
{
    static const server_problem gone = {.status = 499, .message = "the client went away"};
    server_models *m = ctx;
    pthread_mutex_lock(&m->lock);
    while (!m->stop) {
        server_waiter *left = take_waiters(m, is_gone, NULL);
        if (left) {
            pthread_cond_signal(&m->work);   // the model may not be wanted any more
            server_waiters_call(m, left, &gone);
        }
        const double now = server_now(), next = find_idle(m, now);
        if (m->stop) break;
        if (m->first)
            server_models_wait(&m->watch, &m->lock, server_look_seconds);
        else if (next >= 0)
            server_models_wait(&m->watch, &m->lock, next - now);
        else
            pthread_cond_wait(&m->watch, &m->lock);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}
