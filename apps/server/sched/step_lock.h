// SPDX-License-Identifier: MIT
// server/sched/step_lock.h: a lock that the workers of several models share: one step at a time has all cores.
//
// The lock is fair by time. It goes to the user that had it for the shortest time, so a model that reads a long prompt
// in slow steps gets no more than half of the time beside a model that writes in quick ones. A user that has work and
// is between two steps keeps its claim, as it comes back at once. A user without work leaves, and gets no credit for
// the time away.
#pragma once
#include <stdbool.h>

typedef struct server_step_lock server_step_lock;

typedef struct server_step_user {   // one for each worker; zero at first; belongs to one thread
    double used;                    // seconds with the lock, and credit for the time away
    bool is_here;
    double acquired_at;
    struct server_step_user *next;
} server_step_user;

server_step_lock *server_step_lock_new(void);   // NULL: no memory
void server_step_lock_free(server_step_lock *lock);
// The functions below do nothing if `lock` is NULL.
void server_step_lock_acquire(server_step_lock *lock, server_step_user *user);
void server_step_lock_release(server_step_lock *lock, server_step_user *user);
void server_step_lock_leave(server_step_lock *lock, server_step_user *user);   // the user has no work for now
