// SPDX-License-Identifier: MIT
// A queue and its threads.
#include "server/http/body_readers.h"

#include <pthread.h>
#include <stdlib.h>

enum { MAX_THREADS = 8 };

struct server_pool {
    pthread_mutex_t lock;
    pthread_cond_t news;
    pthread_t threads[MAX_THREADS];
    int n_threads, n_running, n_long, n_waiting, max_waiting;   // n_long: of n_running
    server_task *first, **end;
    bool stop;
};

// The first task that may run now. Long ones leave a thread to the others, where there are two.
static server_task *take(server_pool *pool)
{
    const bool may_be_long = pool->n_long == 0 || pool->n_long + 1 < pool->n_threads;
    for (server_task **at = &pool->first, *task; (task = *at) != NULL; at = &task->next) {
        if (task->is_long && !may_be_long) continue;
        *at = task->next;
        if (!*at) pool->end = at;
        pool->n_waiting--;
        return task;
    }
    return NULL;
}

static void *work(void *ctx)
{
    server_pool *pool = ctx;
    pthread_mutex_lock(&pool->lock);
    while (!pool->stop || pool->first) {
        server_task *task = take(pool);
        if (!task) {
            pthread_cond_wait(&pool->news, &pool->lock);
            continue;
        }
        const bool is_long = task->is_long;
        pool->n_running++;
        pool->n_long += is_long;
        pthread_mutex_unlock(&pool->lock);
        task->run(task);
        pthread_mutex_lock(&pool->lock);
        pool->n_running--;
        pool->n_long -= is_long;
        if (pool->stop) pthread_cond_broadcast(&pool->news);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

bool server_pool_new(server_pool **out, int n_threads, int max_waiting, server_problem *problem)
{
    *out = NULL;
    server_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return server_refuse(problem, 500, NULL, NULL, "out of memory");
    pool->end = &pool->first;
    pool->max_waiting = max_waiting;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->news, NULL);
    pthread_mutex_lock(&pool->lock);   // the threads read their number
    while (pool->n_threads < n_threads && pool->n_threads < MAX_THREADS &&
           pthread_create(&pool->threads[pool->n_threads], NULL, work, pool) == 0)
        pool->n_threads++;
    pthread_mutex_unlock(&pool->lock);
    if (pool->n_threads == 0) {
        server_pool_free(pool);
        return server_refuse(problem, 500, NULL, NULL, "the threads that read requests cannot be started");
    }
    *out = pool;
    return true;
}

bool server_pool_submit(server_pool *pool, server_task *task, server_problem *problem)
{
    pthread_mutex_lock(&pool->lock);
    const bool full = pool->n_waiting >= pool->max_waiting;
    if (!full) {
        task->next = NULL;
        *pool->end = task;
        pool->end = &task->next;
        pool->n_waiting++;
        pthread_cond_signal(&pool->news);
    }
    pthread_mutex_unlock(&pool->lock);
    if (!full) return true;
    server_refuse(problem, 429, "queue_full", NULL, "the server is busy: %d requests wait to be read",
                  pool->max_waiting);
    problem->retry_after = 1;
    return false;
}

bool server_pool_is_idle(server_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    const bool idle = pool->n_running + pool->n_waiting == 0;
    pthread_mutex_unlock(&pool->lock);
    return idle;
}

void server_pool_free(server_pool *pool)
{
    if (!pool) return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->news);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->n_threads; i++) pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->news);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}
