// SPDX-License-Identifier: MIT
// The queue of jobs, and the end of jobs that wait or run.
#include "server/sched/worker_queue.h"

#include "server/http/client_gone.h"
#include "server/ops/clock.h"
#include "server/sched/fair_queue.h"
#include "server/sched/worker_tokens.h"

void server_job_unref(server_job *job)
{
    if (--job->n_owners == 0) server_job_free(job);
}

// The worker is done with the job.
static void end_job(server_job *job)
{
    job->reply.begun = job->reply.ended = true;
    if (job->reply.replay) server_replay_end(job->reply.replay);
    server_job_settle(job);
    server_job_wake(job);
    server_job_unref(job);
}

void server_job_fail(server_job *job, const server_problem *problem)
{
    if (job->reply.begun)
        job->reply.writer->fail(job, problem);
    else
        job->reply.problem = *problem;
    end_job(job);
}

void server_worker_unlink(server_worker *worker, server_job **at)
{
    server_job *job = *at;
    *at = job->next;
    if (worker->end == &job->next) worker->end = at;
    (*(job->group.first ? &worker->n_further : &worker->n_waiting))--;
}

void server_worker_link(server_worker *worker, server_job *job)
{
    job->next = NULL;
    *worker->end = job;
    worker->end = &job->next;
    (*(job->group.first ? &worker->n_further : &worker->n_waiting))++;
}

void server_worker_fail_waiting(server_worker *worker)
{
    server_problem problem;
    server_refuse_shutting_down(&problem);
    for (server_job **at = &worker->first; *at;) {
        server_job *job = *at;
        if (job->group.first || job->group.n_open > 0) {
            at = &job->next;
            continue;
        }
        server_worker_unlink(worker, at);
        server_job_fail(job, &problem);
    }
}

void server_worker_leave_slot(server_worker *worker, server_slot *slot)
{
    server_job *job = slot->job;
    server_slot_end_job(slot, job->pick.n_drafts);
    worker->n_running--;
    job->slot = NULL;
    const double served = server_key_served(server_job_first(job)->caller.key);
    if (served > worker->level) worker->level = served;
}

void server_worker_rest_slot(server_worker *worker, server_slot *slot)
{
    server_job *job = slot->job;
    server_worker_leave_slot(worker, slot);
    if (server_job_first(job)->reply.begun) server_job_wake(job);
    worker->mean_seconds += (server_now() - job->times.started - worker->mean_seconds) / 8;
}

static void drop_further(server_worker *worker, const server_job *first)
{
    for (int32_t i = 0; i < worker->slots.n; i++) {
        server_slot *slot = &worker->slots.items[i];
        if (slot->job && server_job_first(slot->job) == first) server_worker_rest_slot(worker, slot);
    }
    for (server_job **at = &worker->first; *at;)
        if ((*at)->group.first == first)
            server_worker_unlink(worker, at);
        else
            at = &(*at)->next;
}

void server_worker_end_answer(server_worker *worker, server_job *job, const server_problem *problem)
{
    server_job *first = server_job_first(job);
    first->group.n_open--;
    if (!problem && first->group.n_open > 0) return;
    if (first->group.n_open > 0) drop_further(worker, first);
    if (problem && problem->status != 499) server_metrics_count(worker->metrics, SERVER_COUNT_FAILED, 1);
    if (problem)
        server_job_fail(first, problem);
    else
        end_job(first);
}

void server_worker_finish_slot(server_worker *worker, server_slot *slot, const server_problem *problem)
{
    server_job *job = slot->job;
    server_worker_rest_slot(worker, slot);
    server_worker_end_answer(worker, job, problem);
}

void server_worker_cut_all(server_worker *worker)
{
    server_problem problem;
    server_refuse_shutting_down(&problem);
    for (int32_t i = 0; i < worker->slots.n; i++)
        if (worker->slots.items[i].job) server_worker_finish_slot(worker, &worker->slots.items[i], &problem);
    while (worker->first) {
        server_job *job = worker->first;
        server_worker_unlink(worker, &worker->first);
        if (job->group.first)
            server_worker_end_answer(worker, job, &problem);
        else
            server_job_fail(job, &problem);
    }
}

void server_worker_drop_gone(server_worker *worker)
{
    static const server_problem gone = {.status = 499, .message = "the client went away"};
    static const server_problem cancelled = {
        .status = 499, .code = "cancelled", .message = "the request was cancelled"};
    for (server_job **at = &worker->first; *at;) {
        server_job *job = *at;
        if (server_client_is_gone(job)) {
            server_job *first = server_job_first(job);
            server_worker_unlink(worker, at);
            first->reply.problem = gone;
            if (job->group.first) {
                server_worker_end_answer(worker, job, first->reply.replay ? &cancelled : NULL);
                at = &worker->first;   // further jobs may have left the queue: begin again
            } else if (job->reply.replay)
                server_job_fail(job, &cancelled);
            else
                end_job(job);
        } else {
            at = &job->next;
        }
    }
    for (int32_t i = 0; i < worker->slots.n; i++) {
        server_slot *slot = &worker->slots.items[i];
        if (!slot->job || !server_client_is_gone(slot->job)) continue;
        server_metrics_count(worker->metrics, SERVER_COUNT_ABORTED, 1);
        const server_problem *told =
            server_job_first(slot->job)->reply.replay ? &cancelled : NULL;   // for readers of the replay
        server_job_first(slot->job)->reply.problem = gone;
        server_worker_finish_slot(worker, slot, told);
    }
}
