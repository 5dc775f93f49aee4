// SPDX-License-Identifier: MIT
// Signs of life and progress of streams.
//
// Either sends the status line if it comes first, so neither is sent before the request is accepted: it may be refused
// as long as its grammar is compiled.
#include "server/http/keep_alive.h"

static bool tell_progress(server_job *job, double now)
{
    if (!job->reply.wants_progress || !job->slot || job->work || job->usage.n_answer > 0) return false;
    const size_t n_pending = frit_session_pending(job->slot->session);
    const server_progress progress = {.n_prompt = job->request.n_prompt,
                                      .n_cached = server_slot_cached(job->slot),
                                      .n_done =
                                          n_pending < job->request.n_prompt ? job->request.n_prompt - n_pending : 0,
                                      .seconds = now - job->times.started};
    if (progress.n_done == job->reply.n_reported) return false;
    job->reply.n_reported = progress.n_done;
    job->reply.writer->progress(job, &progress);
    return true;
}

// True if the stream was quiet for keep_alive_s. A stream whose client reads slowly is not quiet.
static bool is_quiet(server_job *job, double now)
{
    if (job->reply.said || job->reply.queue.n > 0 || job->reply.quiet_since <= 0) job->reply.quiet_since = now;
    job->reply.said = false;
    return now - job->reply.quiet_since >= job->reply.keep_alive_s;
}

bool server_job_keep_alive(server_job *job, double now)
{
    server_job *first = server_job_first(job);
    if (job->grammar.is_awaited || first->reply.ended || first->reply.queue.failed) return false;
    const bool told = job == first && tell_progress(job, now);
    if (first->reply.keep_alive_s <= 0 || !is_quiet(first, now)) return told;
    first->reply.writer->keep_alive(first);
    return true;
}
