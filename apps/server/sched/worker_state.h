// SPDX-License-Identifier: MIT
// server/sched/worker_state.h: what the files of the engine thread share (worker.c, worker_tokens.c).
#pragma once
#include "server/sched/worker.h"

#include "server/sched/finisher.h"
#include "server/sched/step_lock.h"

#include <pthread.h>

struct server_worker {
    pthread_mutex_t lock;
    pthread_cond_t news;   // for the engine thread
    pthread_t thread;
    server_finisher *finisher;
    frit_model *model;
    frit_engine *engine;
    int32_t n_ctx, n_ctx_train, n_vocab;
    bool reads;   // an encoder-decoder: prompts are encoded, answers begin with decoder_start
    frit_token decoder_start;
    server_slots slots;         // the engine thread's own
    frit_draft_item *drafts;    // [slots.n]: scratch
    server_job *first, **end;   // the queue
    int32_t n_waiting, n_parts, n_running, n_ending, max_waiting;
    bool had_part;         // the last job that got a session was a further answer
    double mean_seconds;   // of a job, lately
    double level;          // the most that a caller was served
    server_metrics *metrics;
    server_step_lock *step_lock;
    server_step_user step_user;
    size_t n_cached, cache_room;   // tokens of running jobs after the last step, and how many there may be; 0: unknown
    bool may_defer;                // the turn is short: clients may be woken in the next one
    bool draining, cut, stop;
};

// The client has news. With the worker's lock held.
void server_job_wake(server_job *job);
// ... and may be told a little later, to be called again before the next step.
void server_job_wake_later(server_job *job, bool may_wait);
// Tokens that the answer may have.
size_t server_worker_room(const server_worker *worker, const server_job *job);
// Takes the next tokens of a job's session after a step; *ended if the answer ends with one.
frit_status server_worker_pick(server_worker *worker, server_job *job, bool *ended, server_finish *finish);
