// SPDX-License-Identifier: MIT
// Clients that leave in each phase of a request: a step later the session and its pages are free, and another request
// gets the tokens that it gets alone. Checked on the engine thread, at each token of the other request.
#include "server/worker_jobs.h"

#include <sys/socket.h>
#include <unistd.h>

enum { CTX = 256, N_ANSWER = 60 };

static int set_up(void **state)
{
    (void)state;
    open_worker(&(frit_engine_options){.n_ctx = CTX, .n_threads = 1, .n_sessions = 2, .n_batch = 8},
                &(server_worker_options){.n_sessions = 2, .max_waiting = 4, .speculate = {.always = true}});
    return 0;
}

// ---------------------------------------------------------------------------------------- phases

static bool waits(const server_job *job)
{
    return !job->slot && !job->reply.ended;
}

static bool runs_its_prompt(const server_job *job)
{
    const size_t n_pending = job->slot ? frit_session_pending(job->slot->session) : 0;
    return n_pending > 8 && n_pending < job->request.n_prompt;
}

static bool awaits_its_grammar(const server_job *job)
{
    return job->slot && job->grammar.is_awaited && frit_session_pending(job->slot->session) == 0;
}

static bool answers(const server_job *job)
{
    return job->slot && job->usage.n_answer > 4;
}

static bool verifies_guesses(const server_job *job)
{
    return job->slot && job->usage.n_answer > 1 && job->pick.n_drafts > 0;
}

typedef struct phase {
    const char *name;
    bool (*is_in)(const server_job *job);
    bool awaits_grammar, is_crowded, has_prediction;
} phase;

static const phase phases[] = {
    {.name = "queue", .is_in = waits, .is_crowded = true},
    {.name = "prefill", .is_in = runs_its_prompt},
    {.name = "grammar", .is_in = awaits_its_grammar, .awaits_grammar = true},
    {.name = "decode", .is_in = answers},
    {.name = "guesses", .is_in = verifies_guesses, .has_prediction = true},
};

// ---------------------------------------------------------------------------------------- the neighbour

// The client of `job` leaves during `phase`. The job is checked a step later, at the next token of the other request.
typedef struct scene {
    const phase *phase;
    const server_job *job;
    int peer;   // the client's end of the connection; -1: it has left
    bool looked, is_free;
    const frit_session *session;   // the session that the job had
} scene;

static void watch(scene *s)
{
    if (!s->job || s->looked) return;
    if (s->peer < 0) {
        s->looked = true;
        s->is_free = s->job->reply.ended && !s->job->slot && s->job->reply.problem.status == 499 &&
                     (!s->session || frit_session_length(s->session) == 0);
    } else if (s->phase->is_in(s->job)) {
        s->session = s->job->slot ? s->job->slot->session : NULL;
        close(s->peer);
        s->peer = -1;
    }
}

static void put_text(server_job *job, app_text text)
{
    server_job_put(job, text.ptr, text.n);
    if (job->reply.ctx) watch(job->reply.ctx);
}

static void put_end(server_job *job, server_finish finish)
{
    (void)finish;
    server_job_put(job, ".", 1);
}

static void put_failure(server_job *job, const server_problem *problem)
{
    (void)job, (void)problem;
}

static const server_reply_writer writer = {.text = put_text, .finish = put_end, .fail = put_failure};

// ---------------------------------------------------------------------------------------- jobs

// Makes a job with a long prompt, most of which runs in steps without other tokens.
static server_job *new_leaver(const phase *p, int socket, const char *prediction)
{
    char prompt[1024] = "";
    for (int i = 0; i < 20; i++) strcat(prompt, "The king and the queen said. ");
    server_job *job = new_job(prompt, &writer, N_ANSWER);
    assert_in_range(job->request.n_prompt, 100, CTX - N_ANSWER - 1);
    job->client.socket = socket;
    job->grammar.is_awaited = p->awaits_grammar;
    if (!prediction) return job;
    const size_t n_bytes = strlen(prediction);
    job->request.prediction = malloc(n_bytes * sizeof *job->request.prediction);
    assert_ok(
        frit_tokenize(model, prediction, n_bytes, 0, job->request.prediction, n_bytes, &job->request.n_prediction));
    return job;
}

// With log-probabilities there are no drafts, so each step gives one token.
static server_job *new_neighbour(void)
{
    server_job *job = new_job("Once upon a time", &writer, N_ANSWER);
    job->report.n_top = 0;
    return job;
}

static void answer_alone(server_job *job, char *text, size_t size)
{
    server_problem problem;
    submit(job);
    read_job(job, &problem, text, size);
    server_job_leave(worker, job);
    assert_true(strlen(text) > N_ANSWER);
}

static void leave_in(const phase *p, const char *alone)
{
    char text[2048], answer[2048];
    server_problem problem;
    int ends[2];
    // The prediction is the job's own answer, because the answer depends on the rounding of this machine's kernels.
    if (p->has_prediction) answer_alone(new_leaver(p, -1, NULL), answer, sizeof answer);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    server_job *neighbour = new_neighbour(), *other = p->is_crowded ? new_job("A wolf", &writer, N_ANSWER) : NULL;
    server_job *leaver = new_leaver(p, ends[0], p->has_prediction ? answer : NULL);
    scene s = {.phase = p, .job = leaver, .peer = ends[1]};
    neighbour->reply.ctx = &s;
    // The neighbour generates after the other jobs were submitted, so that its tokens span their phases.
    neighbour->grammar.is_awaited = true;
    submit(neighbour);
    if (other) submit(other);
    submit(leaver);
    server_worker_give_grammar(worker, neighbour, NULL, NULL);
    read_job(neighbour, &problem, text, sizeof text);
    if (!s.looked) fail_msg("%s: the client did not leave", p->name);
    if (!s.is_free) fail_msg("%s: a step later the request was still there", p->name);
    assert_string_equal(text, alone);
    if (other) read_job(other, &problem, text, sizeof text);
    server_job_leave(worker, neighbour);
    server_job_leave(worker, other);
    server_job_leave(worker, leaver);
    close(ends[0]);
}

static void a_client_that_leaves_is_gone_a_step_later(void **state)
{
    (void)state;
    char alone[2048];
    answer_alone(new_neighbour(), alone, sizeof alone);
    for (size_t i = 0; i < FRIT_COUNT(phases); i++) leave_in(&phases[i], alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_client_that_leaves_is_gone_a_step_later)};
    return cmocka_run_group_tests(tests, set_up, close_worker);
}
