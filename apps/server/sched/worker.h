// SPDX-License-Identifier: MIT
// server/sched/worker.h: one thread runs the engine; jobs reach it through a bounded queue.
//
//     HTTP threads                          engine thread
//     server_worker_submit(worker, job) --> waiting --> a session --> steps --> done
//     server_job_read(job, ...)         <-- outbox, as bytes that the job's voice has written
//
// Each turn of the thread: drop jobs whose client is gone, give idle sessions to waiting jobs, take the tokens that
// were picked for every session, guess what follows them, run one step over all of them. So clients advance together,
// one that went away is gone before the next step, and one that reads slowly only stops its own session: no token is
// picked for it while its outbox is full.
//
// A job is shared by the HTTP side and the worker; the last owner frees it. Everything in the struct below the line
// belongs to the worker and is guarded by its lock.
#pragma once
#include "common/answer.h"
#include "server/ops/keys.h"
#include "server/api/logprobs.h"
#include "server/ops/metrics.h"
#include "server/http/send_queue.h"
#include "server/api/problem.h"
#include "server/http/replay.h"
#include "server/sched/slots.h"

typedef struct server_worker server_worker;
typedef struct server_job server_job;

typedef enum server_finish { SERVER_FINISH_STOP, SERVER_FINISH_LENGTH } server_finish;

typedef struct server_progress {         // of a prompt
    size_t n_prompt, n_cached, n_done;   // n_done: with those that were there already
    double seconds;                      // since it has a session
} server_progress;

// How the events of a job become bytes (a row of functions for each kind of answer). Called on the engine thread.
typedef struct server_voice {
    void (*text)(server_job *job, app_text text);
    void (*finish)(server_job *job, server_finish finish);
    void (*fail)(server_job *job, const server_problem *problem);   // after the answer has begun
    // Of streams; NULL for jobs that ask for neither: nothing was said for long; so much of the prompt has run.
    void (*keep_alive)(server_job *job);
    void (*progress)(server_job *job, const server_progress *progress);
} server_voice;

typedef struct server_usage {
    size_t n_prompt, n_cached, n_answer, n_reasoning;
    size_t n_accepted, n_rejected;   // guesses of the answer's tokens: those in it, and those that were others
} server_usage;

// When it came, got a session, gave its first token and the latest one; monotonic seconds, 0: not yet. Work that has
// lost its session in between: when it got the one that it has.
typedef struct server_times {
    double submitted, started, first, latest, resumed;
} server_times;

struct server_job {
    // Does the next part of a job that is no generation, on the engine thread, with an idle session's room in the
    // cache; *ended once nothing is left. Where others wait it may lose its session between two parts, and gets one
    // again in its turn. NULL: tokens are generated.
    frit_status (*work)(server_job *job, frit_engine *engine, bool *ended);
    frit_token *prompt;   // owned
    size_t n_prompt;
    bool has_own_prompt;          // a part: it counts
    bool continues;               // the answer continues the prompt's text: no chat
    bool heals;                   // ... and may do so within its last word
    frit_sampler *sampler;        // owned
    frit_sampler *late_sampler;   // after min_tokens tokens of the answer: owned; NULL: the same
    int32_t min_tokens;
    int32_t max_seconds;       // from its session on, its prompt too, each answer may take so long; 0: any
    int32_t max_ms;            // after its first token, and a line, the answer may take so long; <= 0: any
    frit_grammar *grammar;     // of the answer: owned; NULL: none
    bool awaits_grammar;       // it is still compiled: the prompt runs before, and no token is picked
    frit_option_list stop;     // lives in ctx
    frit_turn *turn;           // of a chat: owned; the voice takes the answer apart with it
    int32_t n_top;             // likeliest tokens to report with each of the answer; -1: not even that
    bool wants_ids;            // of the tokens of the answer
    bool echoes;               // the prompt's tokens are reported too
    bool wants_prompt_picks;   // how likely they were is reported aside, with n_prompt_top likeliest others
    int32_t n_prompt_top;
    int32_t wanted_slot;      // from 1 on, where it is idle; 0: any
    bool keeps_slot;          // the work is about that session and its text; it is refused where that is busy
    int32_t max_tokens;       // -1: until the answer or the context ends
    float *scales;            // of the adapters that there are: owned; NULL: server_worker_set_scales
    server_key *caller;       // retained; NULL: without a key. Only the first of several answers has it
    double reserved;          // of the caller's tokens, for this request; what is left goes back when it ends
    bool is_counted;          // among the caller's requests at once, until it ends: of jobs that outlive their clients
    int32_t priority;         // lower ones are served first
    bool has_priority;        // else that of the caller
    char *salt;               // of the prefix cache: owned; NULL: none
    frit_token *prediction;   // of the answer: owned; NULL: none
    size_t n_prediction;
    // Of a request for several answers: this is the first job, and it owns the others in `parts`. They begin
    // when the first has run the prompt, which they share, and write to its outbox.
    server_job *first, *parts, *next_part;   // first: NULL in the first one itself
    const server_voice *voice;
    bool
        ends_on_finisher;   // the voice's `finish` may take long: it is called on a thread of its own, without the lock
    void *ctx;              // of the voice; freed with the job by free_ctx
    void (*free_ctx)(void *ctx);
    server_replay *replay;     // of a stream that outlives its client: a share; NULL: the outbox has what it says
    int32_t keep_alive_s;      // a stream that says nothing for so long says that it lives; 0: it does not
    bool wants_progress;       // the stream tells how much of the prompt has run
    int socket;                // of the client, to see it go away; -1: unknown
    bool may_probe;            // it understands interim answers (HTTP/1.1)
    bool is_tls;               // it does not close its sending side alone
    void (*wake)(void *ctx);   // there is news; called with the worker's lock held
    void *wake_ctx;
    // ------------------------------------------------ the worker's
    bool has_grammar;            // it was given, and is not yet used
    server_problem no_grammar;   // or why not
    bool is_over;                // set by the voice: it wants nothing more of the answer
    int32_t n_open;              // parts that wait or run, itself too; 0: it has not begun
    int32_t n_begun;             // parts that got a session, itself too
    int n_owners;
    server_job *next;           // in the queue
    struct server_slot *slot;   // while it runs
    app_answer answer;
    server_usage usage;
    bool is_asked;               // the session picks the next token in its steps
    bool wants_pick;             // the session's last token was queued, and what follows it is not asked for yet
    size_t n_drafts;             // guesses after the last token, which the pick verifies
    server_pick *picks;          // tokens of the answer, if n_top >= 0
    server_pick *prompt_picks;   // [n_prompt], if server_job_has_rows; nothing is known of the first
    size_t n_picks, picks_capacity;
    frit_token *ids;   // of the answer's tokens, if wants_ids
    size_t n_ids, ids_capacity;
    server_times times;
    bool said;                // something was put into the outbox since server_job_keep_alive looked
    double quiet_since;       // 0: it never looked
    bool sleeps;              // the HTTP side waits to be woken
    bool owes_wake;           // there is news that it was not woken for
    double woke_at;           // the last time
    size_t n_reported;        // of the prompt: what the last progress told
    bool begun;               // the outbox has or had bytes, so the HTTP status is known: 200, or the problem's
    bool ended;               // nothing more will be written
    bool abandoned;           // the client is gone
    bool probed;              // the client closed its sending side, and a probe was sent
    server_problem problem;   // why it failed before it began
    server_outbox outbox;
    // While the finisher ends it: how, what it says, and the next one that does.
    server_finish finish;
    server_outbox last_words;
    bool is_aside;
    server_job *next_finished;
};

typedef struct server_worker_options {
    int32_t n_sessions, max_waiting;
    server_adapters adapters;
    frit_speculate_options speculate;
    app_shift_options shift;
    server_metrics *metrics;      // of the model; NULL: nothing is counted
    bool keeps_texts;             // of sessions, after their jobs
    struct server_turns *turns;   // with the workers of other models; NULL: there are none
} server_worker_options;

bool server_worker_new(server_worker **out, frit_model *model, frit_engine *engine,
                       const server_worker_options *options, server_problem *problem);
// No new jobs are taken, those that wait fail with 503, those that run go on.
void server_worker_drain(server_worker *worker);
// What still runs fails with 503, at once.
void server_worker_cut(server_worker *worker);
bool server_worker_is_idle(server_worker *worker);
void server_worker_free(server_worker *worker);   // after the last job was released

typedef struct server_load {
    // Requests; running: answers to them. Further answers to a request that runs do not wait, they are parts of it.
    // Ending: they have no session any more.
    int32_t n_sessions, n_running, n_waiting, n_ending;
    int32_t n_parts;    // further answers that have no session yet
    double cache_use;   // of the cache, what running jobs have: 0 to 1
} server_load;
server_load server_worker_load(server_worker *worker);
// Of jobs that choose no adapters and get a session from here on: a scale for each adapter.
void server_worker_set_scales(server_worker *worker, const float *scales);
float server_worker_scale(server_worker *worker, size_t i);
// Whether the i-th session has a job.
bool server_worker_is_busy(server_worker *worker, int32_t i);

// A zeroed job that the caller fills and submits or releases.
server_job *server_job_new(void);
void server_job_free(server_job *job);   // and its parts: the last owner's
// False with 429 (with the seconds to wait) or 503; the caller keeps its share of the job either way.
bool server_worker_submit(server_worker *worker, server_job *job, server_problem *problem);
// The most tokens that its request may use: prompts, and all answers.
size_t server_job_most_tokens(const server_worker *worker, const server_job *job);
// What a job that awaits its grammar and was submitted waits for, also for its parts. Takes the grammar over. NULL: any
// text; with a problem: the job fails.
void server_worker_give_grammar(server_worker *worker, server_job *job, frit_grammar *grammar,
                                const server_problem *problem);
// From here on `wake` is called, also of a job that was submitted before.
void server_job_listen(server_worker *worker, server_job *job, void (*wake)(void *ctx), void *ctx);
// The HTTP side leaves: the job stops if it still runs. `worker` may be NULL for a job that was never submitted.
void server_job_release(server_worker *worker, server_job *job);

typedef enum server_read { SERVER_READ_BYTES, SERVER_READ_END, SERVER_READ_NOTHING } server_read;
// Takes at most `size` bytes. NOTHING: `suspend` was called under the lock, and `wake` will be when there is more.
server_read server_job_read(server_worker *worker, server_job *job, char *bytes, size_t size, size_t *n,
                            void (*suspend)(void *ctx), void *ctx);
// What a job took, with its parts; false: it still runs.
bool server_job_used(server_worker *worker, server_job *job, server_usage *usage);
// True once the HTTP status is known: *problem has status 0 if it is 200. Otherwise `suspend` was called likewise.
bool server_job_begun(server_worker *worker, server_job *job, server_problem *problem, void (*suspend)(void *ctx),
                      void *ctx);

// job_sampler.c: a token that is known, and the grammar, for all of the job's samplers; the one of them that holds.
frit_status server_job_accept(server_job *job, frit_token token);
frit_status server_job_set_grammar(server_job *job);
void server_job_change_sampler(server_job *job);
// Why a step failed for a job: a request that leaves the model no token is wrong, all else is the server's fault.
void server_refuse_step(server_problem *problem, frit_status status);
// The answer has had the time that it may take.
bool server_job_is_late(const server_job *job, double now);
bool server_job_is_overdue(const server_job *job, double now);   // by max_seconds, while it has a session
server_usage server_answer_usage(const server_job *job);         // of all answers to the request
// How likely a token of the answer was, and of the prompt: row i says it of token i + 1. Logits that are not finite end
// the session. The i-th row of a prompt; `ctx` is the job.
frit_status server_job_note_pick(server_job *job, const frit_picked *picked);
frit_status server_job_note_id(server_job *job, frit_token token);
void server_job_note_row(void *ctx, size_t i, const float *values, size_t n);
bool server_job_has_rows(const server_job *job);        // ... which are noted
int32_t server_job_prompt_top(const server_job *job);   // with so many of the likeliest others
// The answer has its next token; it is whole. `metrics` may be NULL.
void server_job_note_token(server_job *job, server_metrics *metrics, double now);
void server_job_note_end(const server_job *job, server_metrics *metrics, server_finish finish);

// keep_alive.c: to be called in each turn, with the worker's lock held, for jobs that wait or run. True: there is news
// for the client.
bool server_job_keep_alive(server_job *job, double now);

// The client has closed its connection. One that has only closed its sending side may still wait for an answer: a probe
// tells, which it gets once, where it may.
bool server_socket_is_left(int socket, bool is_tls, bool may_probe, bool *probed);
// ... or has left a job's connection, with the worker's lock held.
bool server_client_is_gone(server_job *job);

// The job that the client knows: itself, or the first of several answers.
static inline server_job *server_job_first(server_job *job)
{
    return job->first ? job->first : job;
}

// For voices.
void server_job_put(server_job *job, const char *bytes, size_t n);
