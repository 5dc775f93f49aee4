// SPDX-License-Identifier: MIT
// server/worker_jobs.h: a worker without HTTP, and jobs for it.
//
//     open_worker(&(frit_engine_options){...}, &(server_worker_options){...});
//     server_job *job = new_job("The king said", &writer, 40);
//     submit(job);
//     read_job(job, &problem, text, sizeof text);
//     server_job_leave(worker, job);
//     close_worker();
#pragma once
#include "server/sched/worker.h"
#include "support/support.h"

#include <time.h>

static frit_model *model;
static frit_engine *engine;
static server_worker *worker;

static inline void open_worker(const frit_engine_options *of_engine, const server_worker_options *of_worker)
{
    server_problem problem;
    assert_ok(frit_model_open(&model, project_path("models/fable.gguf"), NULL));
    assert_ok(frit_engine_new(&engine, model, of_engine));
    assert_true(server_worker_new(&worker, model, engine, of_worker, &problem));
}

static inline int close_worker(void **state)
{
    (void)state;
    server_worker_free(worker);
    frit_engine_free(engine);
    frit_model_free(model);
    return 0;
}

// Makes a job with greedy sampling and without a client that could leave.
static inline server_job *new_job(const char *prompt, const server_reply_writer *writer, int max_tokens)
{
    enum { MOST = 512 };
    server_job *job = server_job_new();
    job->request.prompt = malloc(MOST * sizeof *job->request.prompt);
    assert_ok(frit_tokenize(model, prompt, strlen(prompt), FRIT_TEXT_SPECIAL, job->request.prompt, MOST,
                            &job->request.n_prompt));
    assert_ok(frit_sampler_new(&job->request.sampler, model, &(frit_sampler_options){.temp = 0}));
    job->reply.writer = writer;
    job->report.n_top = -1;
    job->request.max_tokens = max_tokens;
    job->client.socket = -1;
    return job;
}

static inline void submit(server_job *job)
{
    server_problem problem;
    assert_true(server_worker_submit(worker, job, &problem));
}

static inline void sleep_ms(long ms)
{
    const struct timespec time = {.tv_nsec = ms * 1000000};
    nanosleep(&time, NULL);
}

// The `suspend` of jobs without a connection.
static inline void nothing(void *ctx)
{
    (void)ctx;
}

// Reads the whole reply of the job; empty if the job failed before the reply began.
static inline void read_job(server_job *job, server_problem *problem, char *text, size_t size)
{
    size_t n = 0, at = 0;
    while (!server_job_begun(worker, job, problem, nothing, NULL)) sleep_ms(1);
    for (server_read got; problem->status == 0; at += n) {
        got = server_job_read(worker, job, text + at, size - at - 1, &n, nothing, NULL);
        if (got == SERVER_READ_END) break;
        if (got == SERVER_READ_NOTHING) sleep_ms(1);
    }
    text[at] = 0;
}
