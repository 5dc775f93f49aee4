// SPDX-License-Identifier: MIT
// server/sched/finisher.h: a thread that ends jobs whose end takes long, such as storing the response on a disk,
// while the engine runs other jobs.
#pragma once
#include "server/sched/worker.h"

typedef struct server_finisher server_finisher;

// NULL: no memory, or no thread. `done` is called on that thread after each job.
server_finisher *server_finisher_new(void (*done)(void *ctx, server_job *job), void *ctx);
// The thread owns the job until `done`; its reply writer writes into job->final.queue.
void server_finisher_add(server_finisher *finisher, server_job *job, server_finish finish);
void server_finisher_free(server_finisher *finisher);   // ends the jobs in its list first
