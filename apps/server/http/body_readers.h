// SPDX-License-Identifier: MIT
// server/http/body_readers.h: a few threads for work that would keep the threads of connections too long: reading a
// body, writing a prompt, finding its tokens.
#pragma once
#include "server/api/problem.h"

typedef struct server_body_readers server_body_readers;

typedef struct server_task {
    void (*run)(struct server_task *task);   // on one of the threads; may free the task at its end
    bool is_long;                            // all threads but one may run such tasks
    struct server_task *next;                // the readers's
} server_task;

bool server_body_readers_new(server_body_readers **out, int n_threads, int max_waiting, server_problem *problem);
// False with 429 if too many wait.
bool server_body_readers_submit(server_body_readers *readers, server_task *task, server_problem *problem);
bool server_body_readers_is_idle(server_body_readers *readers);
void server_body_readers_free(server_body_readers *readers);   // runs what waits
