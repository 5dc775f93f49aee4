// SPDX-License-Identifier: MIT
// server/sched/worker_state.h: the worker's struct, for its own files, and its thread (worker.c).
#pragma once
#include "server/sched/finisher.h"
#include "server/sched/step_lock.h"
#include "server/sched/worker.h"

#include <pthread.h>

struct server_worker {
    pthread_mutex_t lock;
    pthread_cond_t news;   // for the engine thread
    pthread_t thread;
    server_finisher *finisher;
    frit_model *model;
    frit_engine *engine;
    int32_t n_ctx, n_ctx_train, n_vocab;
    bool reads;   // an encoder-decoder: prompts are encoded, and answers begin with decoder_start
    frit_token decoder_start;
    server_slots slots;         // used by the engine thread alone
    frit_draft_item *drafts;    // [slots.n]: scratch
    server_job *first, **end;   // the queue
    int32_t n_waiting, n_further, n_running, n_ending, max_waiting;
    bool had_further;      // the last job that got a session was a further answer
    double mean_seconds;   // moving average of the time that a job has a session
    double level;          // the most that a caller was served
    server_metrics *metrics;
    server_step_lock *step_lock;
    server_step_user step_user;
    size_t n_cached;      // tokens of running jobs after the last step
    size_t cache_room;    // tokens that the cache has room for; 0: unknown
    uint64_t n_encoded;   // pictures of the engine that were counted
    bool may_defer;       // the iteration is short: clients may be woken in the next one
    bool runs_ahead;      // jobs have picks in steps after the step in flight
    bool is_settling;     // slots are settling: steps in flight run their sessions
    bool draining, cut, stop;
};

// The engine thread; `worker` is a server_worker.
void *server_worker_run(void *worker);
// Called on the finisher's thread when the final event of a job is written. `worker` is a server_worker.
void server_worker_end_aside(void *worker, server_job *job);
