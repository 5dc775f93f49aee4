// SPDX-License-Identifier: MIT
// A lock that goes to the user that had it for the shortest time.
#include "server/sched/step_lock.h"

#include "server/ops/clock.h"

#include <pthread.h>
#include <stdlib.h>

struct server_step_lock {
    pthread_mutex_t mutex;
    pthread_cond_t news;
    server_step_user *first;    // the users that are here
    server_step_user *holder;   // NULL: the lock is free
    double level;               // `used` of the last holder
};

server_step_lock *server_step_lock_new(void)
{
    server_step_lock *lock = calloc(1, sizeof *lock);
    if (!lock) return NULL;
    pthread_mutex_init(&lock->mutex, NULL);
    pthread_cond_init(&lock->news, NULL);
    return lock;
}

void server_step_lock_free(server_step_lock *lock)
{
    if (!lock) return;
    pthread_cond_destroy(&lock->news);
    pthread_mutex_destroy(&lock->mutex);
    free(lock);
}

static void add_user(server_step_lock *lock, server_step_user *user)
{
    double least = lock->level;
    for (const server_step_user *other = lock->first; other; other = other->next)
        if (other->used < least) least = other->used;
    if (user->used < least) user->used = least;
    user->is_here = true;
    user->next = lock->first;
    lock->first = user;
}

// True if the lock is free and no other user had it for a shorter time, whether it waits now or not.
static bool is_next(const server_step_lock *lock, const server_step_user *user)
{
    for (const server_step_user *other = lock->first; other; other = other->next)
        if (other != user && other->used < user->used) return false;
    return !lock->holder;
}

void server_step_lock_acquire(server_step_lock *lock, server_step_user *user)
{
    if (!lock) return;
    pthread_mutex_lock(&lock->mutex);
    if (!user->is_here) add_user(lock, user);
    while (!is_next(lock, user)) pthread_cond_wait(&lock->news, &lock->mutex);
    lock->holder = user;
    user->acquired_at = server_now();
    pthread_mutex_unlock(&lock->mutex);
}

void server_step_lock_release(server_step_lock *lock, server_step_user *user)
{
    if (!lock) return;
    pthread_mutex_lock(&lock->mutex);
    user->used += server_now() - user->acquired_at;
    lock->level = user->used;
    lock->holder = NULL;
    pthread_cond_broadcast(&lock->news);
    pthread_mutex_unlock(&lock->mutex);
}

void server_step_lock_leave(server_step_lock *lock, server_step_user *user)
{
    if (!lock || !user->is_here) return;
    pthread_mutex_lock(&lock->mutex);
    server_step_user **at = &lock->first;
    while (*at != user) at = &(*at)->next;
    *at = user->next;
    user->is_here = false;
    pthread_cond_broadcast(&lock->news);
    pthread_mutex_unlock(&lock->mutex);
}
