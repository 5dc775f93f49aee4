// SPDX-License-Identifier: MIT
// server/sched/worker.h: one thread runs the engine; jobs reach it through a bounded queue.
//
//     HTTP threads                          engine thread
//     server_worker_submit(worker, job) --> waiting --> a session --> steps --> done
//     server_job_read(job, ...)         <-- send queue, as bytes from the job's reply writer
//
// In each iteration the thread drops jobs whose clients are gone, gives idle sessions to waiting jobs, takes the tokens
// that the last step picked, drafts further tokens, and runs one step over all sessions. So all clients advance
// together, and a job without a client ends before the next step. A client that reads slowly only stops its own
// session: no token is picked for a job whose send queue is full.
#pragma once
#include "server/ops/metrics.h"
#include "server/sched/job.h"

typedef struct server_worker server_worker;

typedef struct server_worker_options {
    int32_t n_sessions, max_waiting;
    server_adapters adapters;
    frit_speculate_options speculate;
    app_shift_options shift;
    server_metrics *metrics;              // of the model; NULL: nothing is counted
    bool keeps_texts;                     // sessions keep their texts after their jobs
    struct server_step_lock *step_lock;   // shared with the workers of other models; NULL: there are none
} server_worker_options;

bool server_worker_new(server_worker **out, frit_model *model, frit_engine *engine,
                       const server_worker_options *options, server_problem *problem);
// Takes no new jobs. Jobs that wait fail with status 503; running jobs continue.
void server_worker_drain(server_worker *worker);
// Fails all jobs with status 503 at once.
void server_worker_cut(server_worker *worker);
bool server_worker_is_idle(server_worker *worker);
void server_worker_free(server_worker *worker);   // after the last job was released

typedef struct server_load {
    // n_waiting counts requests; n_running counts answers, as further answers to a running request do not wait but are
    // parts of it. n_ending counts jobs that the finisher ends, without a session.
    int32_t n_sessions, n_running, n_waiting, n_ending;
    int32_t n_further;   // further answers that have no session yet
    double cache_use;    // part of the cache that running jobs have: 0 to 1
} server_load;
server_load server_worker_load(server_worker *worker);
// Sets the scale of each adapter for jobs without scales of their own that get a session from now on.
void server_worker_set_scales(server_worker *worker, const float *scales);
float server_worker_scale(server_worker *worker, size_t i);
// True if the i-th session has a job.
bool server_worker_is_busy(server_worker *worker, int32_t i);

// False with status 429 (and the seconds to wait) or 503. The caller keeps its reference to the job either way.
bool server_worker_submit(server_worker *worker, server_job *job, server_problem *problem);
// The most tokens that the job's request may use: prompts, and all answers.
size_t server_job_most_tokens(const server_worker *worker, const server_job *job);
// Gives a submitted job, and those of further answers, the grammar that they await. Takes over the grammar. NULL: any
// text is allowed; with a problem, the job fails.
void server_worker_give_grammar(server_worker *worker, server_job *job, frit_grammar *grammar,
                                const server_problem *problem);
// Sets client.wake. The job may be submitted already.
void server_job_listen(server_worker *worker, server_job *job, void (*wake)(void *ctx), void *ctx);
// The HTTP side leaves the job, which stops if it still runs. `worker` may be NULL for a job that was never submitted.
void server_job_leave(server_worker *worker, server_job *job);

typedef enum server_read { SERVER_READ_BYTES, SERVER_READ_END, SERVER_READ_NOTHING } server_read;
// Takes at most `size` bytes. NOTHING: `suspend` was called under the lock, and client.wake is called when there are
// more.
server_read server_job_read(server_worker *worker, server_job *job, char *bytes, size_t size, size_t *n,
                            void (*suspend)(void *ctx), void *ctx);
// The tokens that a request's answers used. False: it still runs.
bool server_job_used(server_worker *worker, server_job *job, server_usage *usage);
// True once the HTTP status is known: problem->status is 0 for status 200. Else `suspend` was called under the lock,
// and client.wake is called when the status is known.
bool server_job_begun(server_worker *worker, server_job *job, server_problem *problem, void (*suspend)(void *ctx),
                      void *ctx);
