// SPDX-License-Identifier: MIT
// A lock that goes to the one that had it for the shortest time.
#include "server/sched/step_lock.h"

#include "server/ops/clock.h"

#include <pthread.h>
#include <stdlib.h>

struct server_turns {
    pthread_mutex_t lock;
    pthread_cond_t news;
    server_turn *first;   // those that are here
    server_turn *now;     // that has the turn
    double level;         // what the one that had it last has used
};

server_turns *server_turns_new(void)
{
    server_turns *turns = calloc(1, sizeof *turns);
    if (!turns) return NULL;
    pthread_mutex_init(&turns->lock, NULL);
    pthread_cond_init(&turns->news, NULL);
    return turns;
}

void server_turns_free(server_turns *turns)
{
    if (!turns) return;
    pthread_cond_destroy(&turns->news);
    pthread_mutex_destroy(&turns->lock);
    free(turns);
}

static void join(server_turns *turns, server_turn *turn)
{
    double least = turns->level;
    for (const server_turn *other = turns->first; other; other = other->next)
        if (other->used < least) least = other->used;
    if (turn->used < least) turn->used = least;
    turn->is_here = true;
    turn->next = turns->first;
    turns->first = turn;
}

// No other had less, but for equals that are not waiting.
static bool is_next(const server_turns *turns, const server_turn *turn)
{
    for (const server_turn *other = turns->first; other; other = other->next)
        if (other != turn && other->used < turn->used) return false;
    return !turns->now;
}

void server_turns_begin(server_turns *turns, server_turn *turn)
{
    if (!turns) return;
    pthread_mutex_lock(&turns->lock);
    if (!turn->is_here) join(turns, turn);
    while (!is_next(turns, turn)) pthread_cond_wait(&turns->news, &turns->lock);
    turns->now = turn;
    turn->began = server_now();
    pthread_mutex_unlock(&turns->lock);
}

void server_turns_end(server_turns *turns, server_turn *turn)
{
    if (!turns) return;
    pthread_mutex_lock(&turns->lock);
    turn->used += server_now() - turn->began;
    turns->level = turn->used;
    turns->now = NULL;
    pthread_cond_broadcast(&turns->news);
    pthread_mutex_unlock(&turns->lock);
}

void server_turns_leave(server_turns *turns, server_turn *turn)
{
    if (!turns || !turn->is_here) return;
    pthread_mutex_lock(&turns->lock);
    server_turn **at = &turns->first;
    while (*at != turn) at = &(*at)->next;
    *at = turn->next;
    turn->is_here = false;
    pthread_cond_broadcast(&turns->news);
    pthread_mutex_unlock(&turns->lock);
}
