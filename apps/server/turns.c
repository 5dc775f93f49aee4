// SPDX-License-Identifier: MIT
// A lock with numbers: a mutex alone may go to the thread that has just given it back, again and again.
#include "server/turns.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

struct server_turns {
    pthread_mutex_t lock;
    pthread_cond_t next;
    uint64_t n_given, n_ended;   // numbers
};

server_turns *server_turns_new(void)
{
    server_turns *turns = calloc(1, sizeof *turns);
    if (!turns) return NULL;
    pthread_mutex_init(&turns->lock, NULL);
    pthread_cond_init(&turns->next, NULL);
    return turns;
}

void server_turns_free(server_turns *turns)
{
    if (!turns) return;
    pthread_cond_destroy(&turns->next);
    pthread_mutex_destroy(&turns->lock);
    free(turns);
}

void server_turns_begin(server_turns *turns)
{
    if (!turns) return;
    pthread_mutex_lock(&turns->lock);
    const uint64_t number = turns->n_given++;
    while (number != turns->n_ended) pthread_cond_wait(&turns->next, &turns->lock);
    pthread_mutex_unlock(&turns->lock);
}

void server_turns_end(server_turns *turns)
{
    if (!turns) return;
    pthread_mutex_lock(&turns->lock);
    turns->n_ended++;
    pthread_cond_broadcast(&turns->next);
    pthread_mutex_unlock(&turns->lock);
}
