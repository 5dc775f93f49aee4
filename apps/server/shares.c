// SPDX-License-Identifier: MIT
// The order of waiting jobs.
#include "server/shares.h"

static bool goes_before(const server_job *a, double served_a, const server_job *b, double served_b)
{
    if (!a->first != !b->first) return a->first != NULL;
    if (a->first) return false;
    return a->priority != b->priority ? a->priority < b->priority : served_a < served_b;
}

server_job **server_shares_next(server_job **first)
{
    server_job **best = first;
    double least = server_key_served((*first)->caller);
    for (server_job **at = &(*first)->next; *at; at = &(*at)->next) {
        const double served = server_key_served((*at)->caller);
        if (!goes_before(*at, served, *best, least)) continue;
        best = at;
        least = served;
    }
    return best;
}

typedef struct others {
    bool has_own;   // another job of the same caller
    double least;   // of other callers; -1: there are none
} others;

static void look_at(others *o, const server_job *job, const server_key *caller)
{
    job = job->first ? job->first : job;
    if (!job->caller) return;
    const double served = server_key_served(job->caller);
    if (job->caller == caller)
        o->has_own = true;
    else if (o->least < 0 || served < o->least)
        o->least = served;
}

void server_shares_join(const server_slots *slots, const server_job *first, server_job *job, double level)
{
    others o = {.least = -1};
    if (!job->caller) return;
    for (const server_job *other = first; other; other = other->next)
        if (other != job) look_at(&o, other, job->caller);
    for (int32_t i = 0; i < slots->n; i++)
        if (slots->items[i].job) look_at(&o, slots->items[i].job, job->caller);
    // A token less than the others: it goes before those that have a session already.
    if (!o.has_own) server_key_raise(job->caller, o.least < 0 ? level : o.least - 1);
}

void server_job_set_caller(server_job *job, server_key *caller)
{
    job->caller = server_key_retain(caller);
    if (!job->has_priority) job->priority = server_key_priority(caller);
}

void server_shares_apply(const server_job *job, frit_session *session)
{
    if (job->first) job = job->first;
    frit_session_set_share(session, server_key_weight(job->caller), -job->priority);   // which goes from high to low
}
