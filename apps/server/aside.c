// SPDX-License-Identifier: MIT
// The thread beside the engine's.
#include "server/aside.h"

#include <pthread.h>
#include <stdlib.h>

struct server_aside {
    pthread_mutex_t lock;
    pthread_cond_t news;
    pthread_t thread;
    server_job *first, **end;
    void (*done)(void *ctx, server_job *job);
    void *ctx;
    bool stop;
};

static void *work(void *ctx)
{
    server_aside *aside = ctx;
    pthread_mutex_lock(&aside->lock);
    for (;;) {
        while (!aside->first && !aside->stop) pthread_cond_wait(&aside->news, &aside->lock);
        server_job *job = aside->first;
        if (!job) break;
        aside->first = job->next_aside;
        if (!aside->first) aside->end = &aside->first;
        pthread_mutex_unlock(&aside->lock);
        job->voice->finish(job, job->finish);
        aside->done(aside->ctx, job);
        pthread_mutex_lock(&aside->lock);
    }
    pthread_mutex_unlock(&aside->lock);
    return NULL;
}

server_aside *server_aside_new(void (*done)(void *ctx, server_job *job), void *ctx)
{
    server_aside *aside = calloc(1, sizeof *aside);
    if (!aside) return NULL;
    aside->end = &aside->first;
    aside->done = done;
    aside->ctx = ctx;
    pthread_mutex_init(&aside->lock, NULL);
    pthread_cond_init(&aside->news, NULL);
    if (pthread_create(&aside->thread, NULL, work, aside) == 0) return aside;
    pthread_cond_destroy(&aside->news);
    pthread_mutex_destroy(&aside->lock);
    free(aside);
    return NULL;
}

void server_aside_add(server_aside *aside, server_job *job, server_finish finish)
{
    job->is_aside = true;
    job->finish = finish;
    job->next_aside = NULL;
    pthread_mutex_lock(&aside->lock);
    *aside->end = job;
    aside->end = &job->next_aside;
    pthread_cond_signal(&aside->news);
    pthread_mutex_unlock(&aside->lock);
}

void server_aside_free(server_aside *aside)
{
    if (!aside) return;
    pthread_mutex_lock(&aside->lock);
    aside->stop = true;
    pthread_cond_signal(&aside->news);
    pthread_mutex_unlock(&aside->lock);
    pthread_join(aside->thread, NULL);
    pthread_cond_destroy(&aside->news);
    pthread_mutex_destroy(&aside->lock);
    free(aside);
}
