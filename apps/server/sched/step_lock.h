// SPDX-License-Identifier: MIT
// server/sched/step_lock.h: workers of several models take turns: one step at a time has all cores.
//
// Turns are fair by time: next is the worker that had least of it, so a model that reads a long prompt in slow steps
// does not take more than its half from one that writes in quick ones. A worker with work that is between two of its
// turns is waited for, as it comes back at once; one that has nothing to do leaves, and has no credit for that time.
#pragma once
#include <stdbool.h>

typedef struct server_turns server_turns;

typedef struct server_turn {   // a worker's place
    double used;               // seconds that it had, and those that it was not there for
    bool is_here;
    double began;
    struct server_turn *next;
} server_turn;

server_turns *server_turns_new(void);   // NULL: no memory
void server_turns_free(server_turns *turns);
// All of these do nothing where turns is NULL. Waits for a turn; `turn` is zero at first, and belongs to one thread.
void server_turns_begin(server_turns *turns, server_turn *turn);
void server_turns_end(server_turns *turns, server_turn *turn);
void server_turns_leave(server_turns *turns, server_turn *turn);   // it has nothing to do for a while
