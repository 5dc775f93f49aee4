// SPDX-License-Identifier: MIT
// The engine thread without HTTP: late grammars, wake-ups, long work.
#include "server/worker_jobs.h"

#include <stdatomic.h>

static int set_up(void **state)
{
    (void)state;
    open_worker(&(frit_engine_options){.n_ctx = 256, .n_sessions = 2},
                &(server_worker_options){.n_sessions = 2, .max_waiting = 4});
    return 0;
}

static void put_text(server_job *job, app_text text)
{
    server_job_put(job, text.ptr, text.n);
}

static void put_end(server_job *job, server_finish finish)
{
    server_job_put(job, finish == SERVER_FINISH_STOP ? "." : "!", 1);
}

static void put_failure(server_job *job, const server_problem *problem)
{
    (void)problem;
    server_job_put(job, "?", 1);
}

static const server_reply_writer writer = {.text = put_text, .finish = put_end, .fail = put_failure};

static server_job *submit_prompt(const char *prompt)
{
    server_job *job = new_job(prompt, &writer, 40);
    job->grammar.is_awaited = true;
    submit(job);
    return job;
}

typedef struct probe {   // checks another job on the engine's thread
    const server_job *job;
    bool has_run;
} probe;

static frit_status look(server_job *job, frit_engine *e, bool *ended)
{
    (void)e;
    probe *p = job->reply.ctx;
    p->has_run = p->job->slot && frit_session_pending(p->job->slot->session) == 0 &&
                 frit_session_length(p->job->slot->session) == p->job->request.n_prompt;
    *ended = true;
    return FRIT_OK;
}

// Waits until the prompt of a job has run.
static bool wait_for_prompt(const server_job *awaited)
{
    probe p = {.job = awaited};
    for (int i = 0; i < 5000 && !p.has_run; i++) {
        server_problem problem;
        char text[8];
        server_job *job = server_job_new();
        job->work = look;
        job->reply.ctx = &p;
        job->reply.writer = &writer;
        job->client.socket = -1;
        assert_true(server_worker_submit(worker, job, &problem));
        read_job(job, &problem, text, sizeof text);
        server_job_leave(worker, job);
    }
    return p.has_run;
}

static frit_grammar *yes_or_no(void)
{
    static const char text[] = " (yes|no), my dear king";
    frit_grammar *grammar;
    const frit_grammar_options options = {.kind = FRIT_GRAMMAR_REGEX};
    assert_ok(frit_grammar_new(&grammar, model, text, strlen(text), &options));
    return grammar;
}

static void a_prompt_runs_before_its_grammar_is_there(void **state)
{
    (void)state;
    server_problem problem;
    char text[256];
    server_job *job = submit_prompt("The king said");
    assert_true(wait_for_prompt(job));
    assert_false(server_job_begun(worker, job, &problem, nothing, NULL));
    server_worker_give_grammar(worker, job, yes_or_no(), NULL);
    read_job(job, &problem, text, sizeof text);
    assert_int_equal(problem.status, 0);
    assert_true(strcmp(text, " yes, my dear king.") == 0 || strcmp(text, " no, my dear king.") == 0);
    server_job_leave(worker, job);
}

// A job that gets its grammar late has the answer of a job that has its grammar from the beginning.
static void a_grammar_that_comes_early_is_used_too(void **state)
{
    (void)state;
    server_problem problem;
    char text[2][256];
    for (int late = 0; late < 2; late++) {
        server_job *job = submit_prompt("Once upon a time there was a king. He said");
        if (late) assert_true(wait_for_prompt(job));
        server_worker_give_grammar(worker, job, yes_or_no(), NULL);
        read_job(job, &problem, text[late], sizeof text[late]);
        server_job_leave(worker, job);
    }
    assert_string_equal(text[0], text[1]);
    server_job *job = submit_prompt("The king said");
    server_worker_give_grammar(worker, job, NULL, NULL);   // any answer is allowed
    read_job(job, &problem, text[0], sizeof text[0]);
    assert_int_equal(problem.status, 0);
    assert_true(strlen(text[0]) > 1);
    server_job_leave(worker, job);
}

static void a_job_fails_with_what_its_grammar_fails_with(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        server_problem problem, why;
        char text[256];
        server_job *job = submit_prompt("The king said");
        if (late) assert_true(wait_for_prompt(job));
        server_refuse(&why, 400, "invalid_value", "regex", "regex: is wrong");
        server_worker_give_grammar(worker, job, NULL, &why);
        read_job(job, &problem, text, sizeof text);
        assert_int_equal(problem.status, 400);
        assert_string_equal(problem.message, "regex: is wrong");
        assert_string_equal(text, "");
        server_job_leave(worker, job);
    }
}

static void put_status(server_job *job, const server_problem *problem)
{
    char text[256];
    const int n = snprintf(text, sizeof text, "?%u %s: %.150s", problem->status, problem->code, problem->message);
    server_job_put(job, text, (size_t)n);
}

// An ambiguous grammar exceeds its limit while the text is written: status 400, not 500.
static void a_grammar_that_is_too_ambiguous_is_the_clients_mistake(void **state)
{
    (void)state;
    static const char rules[] = "root ::= s\ns ::= [a-z ] s [a-z ]? | [a-z ]";
    const frit_grammar_options options = {.kind = FRIT_GRAMMAR_GBNF};
    frit_grammar *grammar;
    server_problem problem;
    char text[1024];
    assert_ok(frit_grammar_new(&grammar, model, rules, strlen(rules), &options));
    const server_reply_writer telling = {.text = put_text, .finish = put_end, .fail = put_status};
    server_job *job = new_job("once upon a time", &telling, 60);
    job->grammar.is_awaited = true;
    submit(job);
    server_worker_give_grammar(worker, job, grammar, NULL);
    read_job(job, &problem, text, sizeof text);
    if (!strstr(text, "?400 unsupported_value: the grammar is too ambiguous")) fail_msg("%s", text);
    server_job_leave(worker, job);
}

static void a_client_may_leave_while_its_grammar_is_made(void **state)
{
    (void)state;
    server_job *job = submit_prompt("The king said");
    assert_true(wait_for_prompt(job));
    server_job_leave(worker, job);
    while (server_worker_load(worker).n_running > 0) sleep_ms(1);
}

// Counts the wakes of a client that always waits.
typedef struct waiting_client {
    _Atomic int n_wakes;
} waiting_client;

static void count_wake(void *ctx)
{
    waiting_client *client = ctx;
    atomic_fetch_add(&client->n_wakes, 1);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Tokens within 5 ms wake the client once, and the end always wakes it.
static void a_fast_stream_wakes_its_client_seldom(void **state)
{
    (void)state;
    waiting_client client = {0};
    server_problem problem;
    char text[4096];
    size_t at = 0, n = 0;
    server_job *job = submit_prompt("Once upon a time");
    job->request.max_tokens = 200;
    server_job_listen(worker, job, count_wake, &client);
    const double begin = seconds_now();
    server_worker_give_grammar(worker, job, NULL, NULL);
    int n_reads = 0, seen = 0;
    bool begun = server_job_begun(worker, job, &problem, nothing, NULL);
    for (server_read got = SERVER_READ_NOTHING; got != SERVER_READ_END;) {
        if (begun) got = server_job_read(worker, job, text + at, sizeof text - at - 1, &n, nothing, NULL);
        n_reads += begun && got == SERVER_READ_BYTES;
        if (begun && got == SERVER_READ_BYTES) at += n;
        if (begun && got != SERVER_READ_NOTHING) continue;
        for (int i = 0; atomic_load(&client.n_wakes) == seen; i++) {   // without a wake-up it would wait forever
            if (i > 60000) fail_msg("the client was not woken after %d reads", n_reads);
            sleep_ms(1);
        }
        seen = atomic_load(&client.n_wakes);
        if (!begun) begun = server_job_begun(worker, job, &problem, nothing, NULL);
    }
    const double seconds = seconds_now() - begin;
    assert_true(at > 200);
    assert_true(atomic_load(&client.n_wakes) <= 4 + (int)(seconds / 0.005));
    server_job_leave(worker, job);
}

typedef struct labour {   // a job that generates nothing
    _Atomic int n_further;
    int most;
} labour;

static frit_status labour_on(server_job *job, frit_engine *e, bool *ended)
{
    (void)e;
    labour *l = job->reply.ctx;
    sleep_ms(10);
    *ended = atomic_fetch_add(&l->n_further, 1) + 1 == l->most;
    return FRIT_OK;
}

static server_job *submit_labour(labour *l)
{
    server_job *job = server_job_new();
    job->work = labour_on;
    job->reply.ctx = l;
    job->reply.writer = &writer;
    submit(job);
    return job;
}

// Long work, such as embeddings of thousands of texts, uses all sessions, and lends them to waiting jobs in between.
static void long_work_leaves_sessions_to_others_in_between(void **state)
{
    (void)state;
    labour all[3] = {{.most = 200}, {.most = 200}, {.most = 200}};
    server_job *jobs[3];
    server_problem problem;
    char text[256];
    for (int i = 0; i < 3; i++) jobs[i] = submit_labour(&all[i]);   // one more than the number of sessions
    for (int i = 0; i < 3; i++) {
        server_job *job = new_job("The king said", &writer, 4);
        submit(job);
        read_job(job, &problem, text, sizeof text);
        assert_true(strlen(text) > 1);
        server_job_leave(worker, job);
        for (int k = 0; k < 3; k++) assert_in_range(atomic_load(&all[k].n_further), 0, 199);
    }
    for (int i = 0; i < 3; i++) {
        read_job(jobs[i], &problem, text, sizeof text);
        assert_string_equal(text, ".");
        assert_int_equal(atomic_load(&all[i].n_further), 200);
        server_job_leave(worker, jobs[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_work_leaves_sessions_to_others_in_between),
        cmocka_unit_test(a_prompt_runs_before_its_grammar_is_there),
        cmocka_unit_test(a_grammar_that_comes_early_is_used_too),
        cmocka_unit_test(a_job_fails_with_what_its_grammar_fails_with),
        cmocka_unit_test(a_grammar_that_is_too_ambiguous_is_the_clients_mistake),
        cmocka_unit_test(a_fast_stream_wakes_its_client_seldom),
        cmocka_unit_test(a_client_may_leave_while_its_grammar_is_made),
    };
    return cmocka_run_group_tests(tests, set_up, close_worker);
}
