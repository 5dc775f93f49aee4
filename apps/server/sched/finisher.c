// SPDX-License-Identifier: MIT
// A list of jobs and the thread that ends them.
#include "server/sched/finisher.h"

#include <pthread.h>
#include <stdlib.h>

struct server_finisher {
    pthread_mutex_t lock;
    pthread_cond_t news;
    pthread_t thread;
    server_job *first, **end;
    void (*done)(void *ctx, server_job *job);
    void *ctx;
    bool stop;
};

static void *end_jobs(void *ctx)
{
    server_finisher *finisher = ctx;
    pthread_mutex_lock(&finisher->lock);
    for (;;) {
        while (!finisher->first && !finisher->stop) pthread_cond_wait(&finisher->news, &finisher->lock);
        server_job *job = finisher->first;
        if (!job) break;
        finisher->first = job->final.next;
        if (!finisher->first) finisher->end = &finisher->first;
        pthread_mutex_unlock(&finisher->lock);
        job->reply.writer->finish(job, job->final.finish);
        finisher->done(finisher->ctx, job);
        pthread_mutex_lock(&finisher->lock);
    }
    pthread_mutex_unlock(&finisher->lock);
    return NULL;
}

server_finisher *server_finisher_new(void (*done)(void *ctx, server_job *job), void *ctx)
{
    server_finisher *finisher = calloc(1, sizeof *finisher);
    if (!finisher) return NULL;
    finisher->end = &finisher->first;
    finisher->done = done;
    finisher->ctx = ctx;
    pthread_mutex_init(&finisher->lock, NULL);
    pthread_cond_init(&finisher->news, NULL);
    if (pthread_create(&finisher->thread, NULL, end_jobs, finisher) == 0) return finisher;
    pthread_cond_destroy(&finisher->news);
    pthread_mutex_destroy(&finisher->lock);
    free(finisher);
    return NULL;
}

void server_finisher_add(server_finisher *finisher, server_job *job, server_finish finish)
{
    job->final.is_pending = true;
    job->final.finish = finish;
    job->final.next = NULL;
    pthread_mutex_lock(&finisher->lock);
    *finisher->end = job;
    finisher->end = &job->final.next;
    pthread_cond_signal(&finisher->news);
    pthread_mutex_unlock(&finisher->lock);
}

void server_finisher_free(server_finisher *finisher)
{
    if (!finisher) return;
    pthread_mutex_lock(&finisher->lock);
    finisher->stop = true;
    pthread_cond_signal(&finisher->news);
    pthread_mutex_unlock(&finisher->lock);
    pthread_join(finisher->thread, NULL);
    pthread_cond_destroy(&finisher->news);
    pthread_mutex_destroy(&finisher->lock);
    free(finisher);
}
