// SPDX-License-Identifier: MIT
// server/sched/job.h: a request as the worker sees it: tokens to generate, or other work with a session.
//
// The HTTP side and the worker share a job; the last owner frees it. The HTTP side fills `work`, `request`, `report`,
// `caller` and the parts of `grammar`, `group`, `reply` and `client` that are described as the request's before it
// submits the job. All else belongs to the worker and is guarded by the worker's lock.
#pragma once
#include "common/answer.h"
#include "server/api/logprobs.h"
#include "server/api/problem.h"
#include "server/http/replay.h"
#include "server/http/send_queue.h"
#include "server/ops/keys.h"
#include "server/request/pictures.h"
#include "server/sched/slots.h"

typedef struct server_job server_job;

typedef enum server_finish { SERVER_FINISH_STOP, SERVER_FINISH_LENGTH } server_finish;

typedef struct server_progress {         // of a prompt
    size_t n_prompt, n_cached, n_done;   // n_done includes the cached tokens
    double seconds;                      // since the job got a session
} server_progress;

// Writes a reply into the job's send queue: a row of functions for each kind of reply, called on the engine thread.
typedef struct server_reply_writer {
    void (*text)(server_job *job, app_text text);
    void (*finish)(server_job *job, server_finish finish);
    void (*fail)(server_job *job, const server_problem *problem);   // after the reply has begun
    // For streams; NULL for jobs with neither keep_alive_s nor wants_progress.
    void (*keep_alive)(server_job *job);
    void (*progress)(server_job *job, const server_progress *progress);
} server_reply_writer;

// The prompt of an answer, its sampling and its limits.
typedef struct server_job_request {
    frit_token *prompt;   // owned
    size_t n_prompt;
    bool has_own_prompt;              // a further answer whose prompt is counted: it is not the first answer's
    bool continues;                   // the answer continues the prompt's text: no chat
    bool heals;                       // the answer may begin within the last word of the prompt
    frit_sampler *sampler;            // owned
    frit_sampler *late_sampler;       // used from min_tokens tokens of the answer on: owned; NULL: `sampler` is used
    int32_t min_tokens, max_tokens;   // max_tokens -1: until the answer or the context ends
    int32_t max_seconds;              // of prompt and answer, from the start of each answer; 0: no limit
    int32_t max_ms;                   // from the first token on; applies once the answer has a line; <= 0: no limit
    frit_option_list stop;            // lives in reply.ctx
    frit_turn *turn;                  // of a chat: owned; splits the answer into parts
    server_pictures *pictures;        // of a chat: owned; freed when all answers have sessions; NULL: none
    int32_t wanted_slot;              // from 1 on: used if it is idle; 0: any
    bool keeps_slot;                  // the work is about that slot's session: the job fails if the slot is busy
    float *scales;                    // one for each adapter: owned; NULL: those of server_worker_set_scales
    char *salt;                       // of the prefix cache: owned; NULL: none
    frit_token *prediction;           // of the answer: owned; NULL: none
    size_t n_prediction;
} server_job_request;

// The grammar of the answer, which may still be compiled while the prompt runs.
typedef struct server_job_grammar {
    frit_grammar *rules;      // owned; NULL: none
    bool is_awaited;          // it is still compiled: no token is picked before it is given
    bool is_given;            // by server_worker_give_grammar, and not used yet
    server_problem problem;   // why there is no grammar
} server_job_grammar;

// Tokens that the reply lists with ids and log-probabilities, and the lists so far.
typedef struct server_job_report {
    int32_t n_top;                // likeliest tokens to list with each token of the answer; -1: no log-probabilities
    int32_t n_prompt_top;         // likeliest tokens to list with each token of the prompt
    bool wants_ids;               // ids of the answer's tokens
    bool echoes;                  // the prompt's tokens are listed before the answer's
    bool wants_prompt_logprobs;   // the prompt's tokens are listed by themselves
    server_logprobs *logprobs;    // tokens of the answer, if n_top >= 0
    size_t n_logprobs, logprobs_capacity;
    server_logprobs *prompt_logprobs;   // [n_prompt], if server_job_has_rows; the first one is unknown
    frit_token *ids;                    // of the answer's tokens, if wants_ids
    size_t n_ids, ids_capacity;
} server_job_report;

// The key whose limits and counters the request uses, and the priority of the request.
typedef struct server_job_caller {
    server_key *key;     // a reference; NULL: without a key. Only the first of several answers has it
    double reserved;     // tokens reserved for the request; the unused ones go back when it ends
    bool is_counted;     // among the key's requests at once: jobs that outlive their clients are, until they end
    int32_t priority;    // lower numbers are served first
    bool has_priority;   // of its own, not that of the key
} server_job_caller;

// The jobs of a request for several answers. The first job owns those of the further answers, which begin when the
// first has run the prompt that all share, and write into its send queue.
typedef struct server_job_group {
    server_job *first;   // NULL in the first job itself
    server_job *further, *next;
    int32_t n_open;    // jobs of the group that wait or run; 0: the first job has not begun
    int32_t n_begun;   // jobs of the group that got a session
} server_job_group;

// How the reply is written, and how far it is.
typedef struct server_job_reply {
    const server_reply_writer *writer;
    void *ctx;   // the writer's; freed with the job by free_ctx
    void (*free_ctx)(void *ctx);
    bool ends_on_finisher;   // writer->finish may take long: it is called on the finisher's thread, without the lock
    server_replay *replay;   // a reference, for a stream that outlives its client; NULL: bytes go into `queue`
    int32_t keep_alive_s;    // a stream that is quiet for this time sends a sign of life; 0: none
    bool wants_progress;     // the stream reports how much of the prompt has run
    server_send_queue queue;
    server_problem problem;   // why the job failed before the reply began
    bool begun;               // the HTTP status is known: 200 if there are or were bytes, or the problem's
    bool ended;               // nothing more will be written
    bool is_over;             // set by the writer: it needs no more tokens
    bool said;                // bytes were put since server_job_keep_alive looked
    double quiet_since;       // 0: server_job_keep_alive has not looked
    size_t n_reported;        // tokens of the prompt that the last progress reported
} server_job_reply;

// The connection that waits for the reply.
typedef struct server_job_client {
    int socket;                // to see it close; -1: unknown
    bool may_probe;            // the client understands interim answers (HTTP/1.1)
    bool is_tls;               // the client does not close its sending side alone
    void (*wake)(void *ctx);   // there is news; called with the worker's lock held
    void *wake_ctx;
    bool sleeps;       // the HTTP side waits for `wake`
    bool owes_wake;    // there is news, and `wake` was not called for it yet
    double woke_at;    // the last time
    bool has_left;     // the HTTP side released the job
    bool was_probed;   // the client closed its sending side, and a probe was sent
} server_job_client;

// The next token, which the session picks in its step.
typedef struct server_job_pick {
    bool is_wanted;      // the last token was pushed, and the next one is not requested yet
    bool is_requested;   // a step picks it
    bool is_ahead;       // the step after it picks another one: the session has queued the token already
    size_t n_drafts;     // drafts after the last token, which the pick verifies
} server_job_pick;

// The end of the reply while the finisher writes it.
typedef struct server_job_final {
    server_finish finish;
    server_send_queue queue;   // the final event
    bool is_pending;
    server_job *next;   // in the finisher's list
} server_job_final;

// Tokens that the job used.
typedef struct server_usage {
    size_t n_prompt, n_cached, n_answer, n_reasoning;
    size_t n_image;                  // tokens of the prompt that stand for pictures
    size_t n_accepted, n_rejected;   // drafts: those in the answer, and those that were wrong
} server_usage;

// Monotonic seconds of events; 0: not yet. `resumed`: when the job got the session that it has, which other work may
// have had in between.
typedef struct server_times {
    double submitted, started, first, latest, resumed;   // first, latest: tokens of the answer
} server_times;

struct server_job {
    // Does the next part of a job that generates no tokens, on the engine thread, with an idle session's room in the
    // cache. Sets *ended once nothing is left. If other jobs wait, the job may lose its session between two parts and
    // gets one again later. NULL: tokens are generated.
    frit_status (*work)(server_job *job, frit_engine *engine, bool *ended);
    server_job_request request;
    server_job_grammar grammar;
    server_job_report report;
    server_job_caller caller;
    server_job_group group;
    server_job_reply reply;
    server_job_client client;
    server_job_pick pick;
    server_job_final final;
    app_answer answer;
    server_usage usage;
    server_times times;
    int n_owners;
    server_job *next;    // in the queue
    server_slot *slot;   // while the job runs
};

// A zeroed job for the caller to fill and submit or release. NULL: no memory.
server_job *server_job_new(void);
void server_job_free(server_job *job);   // and the jobs of further answers

// The job that the client knows: the job itself, or the first of several answers.
static inline server_job *server_job_first(server_job *job)
{
    return job->group.first ? job->group.first : job;
}

// Appends bytes of the reply. For reply writers.
void server_job_put(server_job *job, const char *bytes, size_t n);

server_usage server_answer_usage(const server_job *job);   // of all answers to the request

// Adds a token of the answer to report.logprobs or report.ids.
frit_status server_job_note_logprobs(server_job *job, const frit_picked *picked);
frit_status server_job_note_id(server_job *job, frit_token token);
// Notes the log-probabilities of token i + 1 of the prompt, from the logits of row i. `ctx` is the job. Logits that are
// not finite end the session.
void server_job_note_row(void *ctx, size_t i, const float *values, size_t n);
bool server_job_has_rows(const server_job *job);        // True if server_job_note_row is needed.
int32_t server_job_prompt_top(const server_job *job);   // likeliest tokens to list with each token of the prompt
