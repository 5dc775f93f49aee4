// SPDX-License-Identifier: MIT
// Orders waiting jobs, and accounts for their callers.
#include "server/sched/fair_queue.h"

#include "server/ops/clock.h"

static const server_job *first_of(const server_job *job)
{
    return job->group.first ? job->group.first : job;
}

typedef struct rank {   // what the order of a job depends on
    const server_job *job;
    double served;
} rank;

static rank rank_of(const server_job *job)
{
    return (rank){job, server_key_served(first_of(job)->caller.key)};
}

static bool goes_before(const rank *a, const rank *b, bool further_first)
{
    const server_job *x = first_of(a->job), *y = first_of(b->job);
    if (x->caller.priority != y->caller.priority) return x->caller.priority < y->caller.priority;
    if (a->served < b->served || a->served > b->served) return a->served < b->served;
    const bool is_further = a->job->group.first != NULL;
    if (is_further != (b->job->group.first != NULL)) return is_further == further_first;
    return is_further && x->group.n_begun < y->group.n_begun;
}

server_job **server_fair_queue_next(server_job **first, bool further_first)
{
    server_job **best = first;
    rank least = rank_of(*first);
    for (server_job **at = &(*first)->next; *at; at = &(*at)->next) {
        const rank next = rank_of(*at);
        if (!goes_before(&next, &least, further_first)) continue;
        best = at;
        least = next;
    }
    return best;
}

bool server_fair_queue_is_first(const server_job *first, const server_job *job)
{
    for (; first && job->caller.key; first = first->next)
        if (first_of(first)->caller.key == job->caller.key) return false;
    return job->caller.key != NULL;
}

typedef struct others {
    bool has_own;   // there is another job of the caller
    double least;   // the least count of other callers; -1: none
} others;

static void add_other(others *o, const server_job *job, const server_key *caller)
{
    job = first_of(job);
    if (!job->caller.key) return;
    const double served = server_key_served(job->caller.key);
    if (job->caller.key == caller)
        o->has_own = true;
    else if (o->least < 0 || served < o->least)
        o->least = served;
}

void server_fair_queue_join(const server_slots *slots, const server_job *first, server_job *job, double level)
{
    others o = {.least = -1};
    if (!job->caller.key) return;
    for (const server_job *other = first; other; other = other->next)
        if (other != job) add_other(&o, other, job->caller.key);
    for (int32_t i = 0; i < slots->n; i++)
        if (slots->items[i].job) add_other(&o, slots->items[i].job, job->caller.key);
    // One token less than the others, so that it goes before callers whose jobs run.
    if (!o.has_own) server_key_raise(job->caller.key, o.least < 0 ? level : o.least - 1);
}

void server_job_set_caller(server_job *job, server_key *caller)
{
    job->caller.key = server_key_ref(caller);
    if (!job->caller.has_priority) job->caller.priority = server_key_priority(caller);
}

void server_fair_queue_apply(const server_job *job, frit_session *session)
{
    job = first_of(job);
    frit_session_set_share(session, server_key_weight(job->caller.key),
                           -job->caller.priority);   // sessions with higher numbers go first
}

void server_job_charge(server_job *job, size_t n_prompt, size_t n_answer)
{
    server_job *first = server_job_first(job);
    const double n = (double)(n_prompt + n_answer), kept = first->caller.reserved < n ? first->caller.reserved : n;
    first->caller.reserved -= kept;
    server_key_charge(first->caller.key, n_prompt, n_answer);
    server_key_unreserve(first->caller.key, kept);
}

bool server_job_reserve(server_job *job, size_t n_tokens, server_problem *problem)
{
    return server_key_reserve(job->caller.key, server_now(), (double)n_tokens, &job->caller.reserved, problem);
}

void server_job_settle(server_job *job)
{
    server_key_unreserve(job->caller.key, job->caller.reserved);
    if (job->caller.is_counted) server_key_leave(job->caller.key);
    job->caller.reserved = 0;
    job->caller.is_counted = false;
}
