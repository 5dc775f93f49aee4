// SPDX-License-Identifier: MIT
// server/aside.h: a thread that ends jobs whose end takes long, such as one that is written to a disk, while the engine
// runs others.
#pragma once
#include "server/worker.h"

typedef struct server_aside server_aside;

// NULL: no memory, or no thread. `done` is called on that thread after each job.
server_aside *server_aside_new(void (*done)(void *ctx, server_job *job), void *ctx);
// The job is the thread's until `done`; its voice writes to its last words.
void server_aside_add(server_aside *aside, server_job *job, server_finish finish);
void server_aside_free(server_aside *aside);   // ends what is there
