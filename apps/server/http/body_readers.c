// SPDX-License-Identifier: MIT
// A queue of tasks and the threads that run them.
#include "server/http/body_readers.h"

#include <pthread.h>
#include <stdlib.h>

enum { MAX_THREADS = 8 };

struct server_body_readers {
    pthread_mutex_t lock;
    pthread_cond_t news;
    pthread_t threads[MAX_THREADS];
    int n_threads, n_running, n_long, n_waiting, max_waiting;   // n_long: of n_running
    server_task *first, **end;
    bool stop;
};

// Takes the first task that may run now: long tasks leave one thread to short ones, if there are two threads.
static server_task *take_task(server_body_readers *readers)
{
    const bool may_be_long = readers->n_long == 0 || readers->n_long + 1 < readers->n_threads;
    for (server_task **at = &readers->first, *task; (task = *at) != NULL; at = &task->next) {
        if (task->is_long && !may_be_long) continue;
        *at = task->next;
        if (!*at) readers->end = at;
        readers->n_waiting--;
        return task;
    }
    return NULL;
}

static void *run_tasks(void *ctx)
{
    server_body_readers *readers = ctx;
    pthread_mutex_lock(&readers->lock);
    while (!readers->stop || readers->first) {
        server_task *task = take_task(readers);
        if (!task) {
            pthread_cond_wait(&readers->news, &readers->lock);
            continue;
        }
        const bool is_long = task->is_long;
        readers->n_running++;
        readers->n_long += is_long;
        pthread_mutex_unlock(&readers->lock);
        task->run(task);
        pthread_mutex_lock(&readers->lock);
        readers->n_running--;
        readers->n_long -= is_long;
        if (readers->stop) pthread_cond_broadcast(&readers->news);
    }
    pthread_mutex_unlock(&readers->lock);
    return NULL;
}

bool server_body_readers_new(server_body_readers **out, int n_threads, int max_waiting, server_problem *problem)
{
    *out = NULL;
    server_body_readers *readers = calloc(1, sizeof *readers);
    if (!readers) return server_refuse(problem, 500, NULL, NULL, "out of memory");
    readers->end = &readers->first;
    readers->max_waiting = max_waiting;
    pthread_mutex_init(&readers->lock, NULL);
    pthread_cond_init(&readers->news, NULL);
    pthread_mutex_lock(&readers->lock);   // the threads read n_threads
    while (readers->n_threads < n_threads && readers->n_threads < MAX_THREADS &&
           pthread_create(&readers->threads[readers->n_threads], NULL, run_tasks, readers) == 0)
        readers->n_threads++;
    pthread_mutex_unlock(&readers->lock);
    if (readers->n_threads == 0) {
        server_body_readers_free(readers);
        return server_refuse(problem, 500, NULL, NULL, "the threads that read requests cannot be started");
    }
    *out = readers;
    return true;
}

bool server_body_readers_submit(server_body_readers *readers, server_task *task, server_problem *problem)
{
    pthread_mutex_lock(&readers->lock);
    const bool full = readers->n_waiting >= readers->max_waiting;
    if (!full) {
        task->next = NULL;
        *readers->end = task;
        readers->end = &task->next;
        readers->n_waiting++;
        pthread_cond_signal(&readers->news);
    }
    pthread_mutex_unlock(&readers->lock);
    if (!full) return true;
    server_refuse(problem, 429, "queue_full", NULL, "the server is busy: %d requests wait to be read",
                  readers->max_waiting);
    problem->retry_after = 1;
    return false;
}

bool server_body_readers_is_idle(server_body_readers *readers)
{
    pthread_mutex_lock(&readers->lock);
    const bool idle = readers->n_running + readers->n_waiting == 0;
    pthread_mutex_unlock(&readers->lock);
    return idle;
}

void server_body_readers_free(server_body_readers *readers)
{
    if (!readers) return;
    pthread_mutex_lock(&readers->lock);
    readers->stop = true;
    pthread_cond_broadcast(&readers->news);
    pthread_mutex_unlock(&readers->lock);
    for (int i = 0; i < readers->n_threads; i++) pthread_join(readers->threads[i], NULL);
    pthread_cond_destroy(&readers->news);
    pthread_mutex_destroy(&readers->lock);
    free(readers);
}
