// SPDX-License-Identifier: MIT
// server/sched/finisher.h: a thread that ends jobs whose end takes long, such as one that is written to a disk, while
// the engine runs others.
#pragma once
#include "server/sched/worker.h"

typedef struct server_finisher server_finisher;

// NULL: no memory, or no thread. `done` is called on that thread after each job.
server_finisher *server_finisher_new(void (*done)(void *ctx, server_job *job), void *ctx);
// The job is the thread's until `done`; its voice writes to its last words.
void server_finisher_add(server_finisher *finisher, server_job *job, server_finish finish);
void server_finisher_free(server_finisher *finisher);   // ends what is there
