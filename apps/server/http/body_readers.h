// SPDX-License-Identifier: MIT
// server/http/body_readers.h: a few threads that parse bodies, render prompts and tokenize them, which takes too long
// for the threads of connections.
#pragma once
#include "server/api/problem.h"

typedef struct server_body_readers server_body_readers;

typedef struct server_task {
    void (*run)(struct server_task *task);   // called on a thread of the readers; may free the task at its end
    bool is_long;                            // one thread is left free of long tasks
    struct server_task *next;                // in the queue
} server_task;

bool server_body_readers_new(server_body_readers **out, int n_threads, int max_waiting, server_problem *problem);
// False with status 429 if too many tasks wait.
bool server_body_readers_submit(server_body_readers *readers, server_task *task, server_problem *problem);
bool server_body_readers_is_idle(server_body_readers *readers);
void server_body_readers_free(server_body_readers *readers);   // runs waiting tasks first
