// SPDX-License-Identifier: MIT
// Keys from a file: lines, limits, and fair shares of the queue.
#include "server/http/key_file.h"
#include "server/sched/fair_queue.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// ---------------------------------------------------------------------------------------- time

static double seconds_of(server_keys *keys, const char *text, int n_calls)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (int i = 0; i < n_calls; i++) server_key_unref(server_keys_find(keys, text, NULL));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

// Looks up four texts among a thousand keys: the first key, the last key, a key with another last letter, and another
// text. A search that stops at the found key would be a thousand times faster for the first key. The test compares the
// least processor times, and allows a factor for busy machines.
static void looking_for_a_key_takes_the_same_time_for_all(void **state)
{
    (void)state;
    enum { N_KEYS = 1000, ROUNDS = 60, CALLS = 5, KEY_ROOM = 16 };
    static char texts[N_KEYS][KEY_ROOM];
    static const char *items[N_KEYS];
    static const char *const asked[] = {"key-000-secret", "key-999-secret", "key-999-secreT", "another-secret"};
    double least[FRIT_COUNT(asked)], fastest = 1e9, slowest = 0;
    for (int i = 0; i < N_KEYS; i++) {
        snprintf(texts[i], KEY_ROOM, "key-%03d-secret", i);
        items[i] = texts[i];
    }
    server_keys *keys;
    server_problem problem;
    assert_true(server_keys_open(&keys, &(frit_option_list){items, N_KEYS}, NULL, &problem));
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < FRIT_COUNT(asked); i++) {
            const double seconds = seconds_of(keys, asked[i], CALLS);
            if (round == 0 || seconds < least[i]) least[i] = seconds;
        }
    }
    for (size_t i = 0; i < FRIT_COUNT(asked); i++) {
        if (least[i] < fastest) fastest = least[i];
        if (least[i] > slowest) slowest = least[i];
    }
    print_message("%.2f to %.2f us\n", 1e6 * fastest / CALLS, 1e6 * slowest / CALLS);
    assert_true(slowest < 8 * fastest);
    server_keys_close(keys);
}

// ---------------------------------------------------------------------------------------- lines

static void lines_are_keys_names_and_limits(void **state)
{
    (void)state;
    server_key_options plain, key;
    char why[160];
    bool is_key;
    server_key_of_text("abc", &plain);
    static const char *const empty[] = {"", "  \t\r", "# a comment", "   # key = secret"};
    for (size_t i = 0; i < FRIT_COUNT(empty); i++) {
        assert_true(server_key_parse(empty[i], &key, &is_key, why, sizeof why));
        assert_false(is_key);
    }
    static const char *const same[] = {"abc", " abc ", "abc\r", "x = abc", "sha256:" ABC, "x = sha256:" ABC " # abc"};
    for (size_t i = 0; i < FRIT_COUNT(same); i++) {
        assert_true(server_key_parse(same[i], &key, &is_key, why, sizeof why));
        assert_true(is_key);
        assert_memory_equal(key.hash, plain.hash, sizeof key.hash);
        assert_string_equal(key.name, strchr(same[i], '=') ? "x" : "");
        assert_int_equal(key.weight, 1);
        assert_int_equal(key.concurrent, 0);
    }
    assert_true(server_key_parse("a.b-c@d = abc== rate=60/min tokens=100000/day concurrent=4 weight=2 priority=-3",
                                 &key, &is_key, why, sizeof why));
    assert_string_equal(key.name, "a.b-c@d");
    assert_true(key.requests.amount == 60 && key.requests.seconds == 60);
    assert_true(key.tokens.amount == 100000 && key.tokens.seconds == 86400);
    assert_int_equal(key.concurrent, 4);
    assert_int_equal(key.weight, 2);
    assert_int_equal(key.priority, -3);
}

static void a_bad_line_is_refused_without_its_key(void **state)
{
    (void)state;
    static const char *const lines[] = {"x =",
                                        "x = # secret",
                                        "= secret",
                                        "x=secret",
                                        "bad/name = secret",
                                        "secret more",
                                        "secret rate=5",
                                        "secret rate=5/week",
                                        "secret rate=/min",
                                        "secret rate=0/min",
                                        "secret rate=-1/s",
                                        "secret rate=1e3/s",
                                        "secret tokens=99999999999999999999/s",
                                        "secret concurrent=0",
                                        "secret concurrent=1.5",
                                        "secret weight=0",
                                        "secret weight=1001",
                                        "secret priority=x",
                                        "secret Rate=1/s",
                                        "secret rate=1/s =",
                                        "sha256:secret",
                                        "sha256:" ABC "0",
                                        "secret secret=1"};
    for (size_t i = 0; i < FRIT_COUNT(lines); i++) {
        server_key_options key;
        char why[160] = "";
        bool is_key;
        if (server_key_parse(lines[i], &key, &is_key, why, sizeof why)) fail_msg("'%s' is taken", lines[i]);
        assert_true(strlen(why) > 10);
        if (strstr(why, "secret")) fail_msg("'%s' shows the key: %s", lines[i], why);
    }
    char text[4096];
    memset(text, 'k', sizeof text - 1);
    text[sizeof text - 1] = 0;
    server_key_options key;
    char why[160];
    bool is_key;
    assert_false(server_key_parse(text, &key, &is_key, why, sizeof why));
}

static void expect_refused(const char *said)
{
    server_key_options *list;
    size_t n;
    server_problem problem = {0};
    assert_false(server_key_file_read(key_path(), &list, &n, &problem));
    assert_int_equal(problem.status, 400);
    assert_null(list);
    if (!strstr(problem.message, said)) fail_msg("'%s' is not in: %s", said, problem.message);
}

static void a_bad_file_is_refused(void **state)
{
    (void)state;
    unlink(key_path());
    expect_refused("No such file");
    write_keys("");
    expect_refused("has no key");
    write_keys("# nothing\n\n");
    expect_refused("has no key");
    write_keys("a = k1\n\nb = k2\na = k3\n");
    expect_refused("line 4: the name of line 1 again");
    write_keys("abc\nb = k2\nsha256:" ABC);
    expect_refused("line 3: the key of line 1 again");
    write_file(key_path(), "k1\0k2", 5);
    expect_refused("a byte 0");
    char *large = calloc(2, 1 << 20);
    memset(large, '\n', 2 << 20);
    write_file(key_path(), large, 2 << 20);
    free(large);
    expect_refused("larger than 1 MiB");
    unlink(key_path());
    assert_int_equal(mkdir(key_path(), 0700), 0);
    expect_refused("not a regular file");
    rmdir(key_path());
}

// Editors and shells of Windows begin text files with U+FEFF.
static void a_file_may_begin_with_a_byte_order_mark(void **state)
{
    (void)state;
    static const frit_option_list none;
    server_keys *keys;
    server_problem problem;
    write_keys("\xef\xbb\xbf"
               "a = k1\r\nk2\r\n");
    assert_true(server_keys_open(&keys, &none, key_path(), &problem));
    server_key *key = server_keys_find(keys, "k1", NULL);
    assert_string_equal(server_key_label(key), "a");
    server_key_unref(key);
    server_keys_close(keys);
    write_file(key_path(), "\xff\xfek\0", 4);
    expect_refused("is text in UTF-16; expected UTF-8");
}

static void open_files_are_warned_of(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned mode;
        const char *said;   // NULL: no message
    } rows[] = {{"k1\n", 0644, "other users may read it (mode 644)"},
                {"k1\n", 0600, NULL},
                {"k1\n", 0640, NULL},
                {"sha256:" ABC "\n", 0644, NULL},
                {"sha256:" ABC "\n", 0666, "other users may change it (mode 666)"}};
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        char options[1200];
        write_keys(rows[i].text);
        assert_int_equal(chmod(key_path(), rows[i].mode), 0);
        snprintf(options, sizeof options, "--threads 1 --api-key-file '%s'", key_path());
        served s = serve(model(), options);
        if (rows[i].said ? !strstr(s.said, rows[i].said) : strstr(s.said, "other users") != NULL)
            fail_msg("mode %o: %s", rows[i].mode, s.said);
        assert_int_equal(stop_serving(&s, SIGTERM), 0);
    }
    chmod(key_path(), 0600);
}

// Neither the order of the words nor the form of the key matters.
static void a_key_is_known_by_its_name_or_hash(void **state)
{
    (void)state;
    static const char *const files[] = {"a = k1\nk2\n", "k2\na = k3\n"};
    uint64_t ids[2][2];
    char salts[2][2][40];
    for (int i = 0; i < 2; i++) {
        server_keys *keys;
        server_problem problem;
        write_keys(files[i]);
        assert_true(server_keys_open(&keys, &(frit_option_list){0}, key_path(), &problem));
        server_key *found[] = {server_keys_find(keys, i == 0 ? "k1" : "k3", NULL), server_keys_find(keys, "x", "k2")};
        for (int k = 0; k < 2; k++) {
            assert_non_null(found[k]);
            ids[i][k] = server_key_id(found[k]);
            snprintf(salts[i][k], sizeof salts[i][k], "%s", server_key_salt(found[k]));
            server_key_unref(found[k]);
        }
        assert_null(server_keys_find(keys, NULL, NULL));
        assert_null(server_keys_find(keys, "", "k"));
        server_keys_close(keys);
    }
    for (int k = 0; k < 2; k++) {
        assert_true(ids[0][k] == ids[1][k] && ids[0][k] != 0);
        assert_string_equal(salts[0][k], salts[1][k]);
    }
    assert_true(ids[0][0] != ids[0][1]);
    assert_string_not_equal(salts[0][0], salts[0][1]);
}

// ---------------------------------------------------------------------------------------- limits

static server_key *only_key(server_keys **keys, const char *line)
{
    static const frit_option_list none;   // outlives the keys
    server_problem problem;
    write_keys(line);
    assert_true(server_keys_open(keys, &none, key_path(), &problem));
    server_key *key = server_keys_find(*keys, "k", NULL);
    assert_non_null(key);
    return key;
}

// Expects a refusal with this code and time to wait; `code` NULL: the request is admitted.
static void expect_entry(server_key *key, double now, const char *code, int retry_after)
{
    server_problem problem = {0};
    const bool good = server_key_enter(key, now, &problem);
    assert_int_equal(good, code == NULL);
    if (good) return;
    assert_int_equal(problem.status, 429);
    assert_string_equal(problem.code, code);
    assert_int_equal(problem.retry_after, retry_after);
}

static void requests_come_back_with_time(void **state)
{
    (void)state;
    server_keys *keys;
    server_key *key = only_key(&keys, "k rate=6/min");
    for (int i = 0; i < 6; i++) expect_entry(key, 1000, NULL, 0);
    expect_entry(key, 1000, "rate_limit_exceeded", 10);
    expect_entry(key, 1004, "rate_limit_exceeded", 6);
    expect_entry(key, 1010, NULL, 0);
    expect_entry(key, 1010, "rate_limit_exceeded", 10);
    for (int i = 0; i < 6; i++) expect_entry(key, 9000, NULL, 0);   // at most 6, after any waiting time
    expect_entry(key, 9000, "rate_limit_exceeded", 10);
    server_key_unref(key);
    server_keys_close(keys);
}

static void tokens_come_back_with_time(void **state)
{
    (void)state;
    server_keys *keys;
    server_key *key = only_key(&keys, "k tokens=100/s weight=4");
    expect_entry(key, 10, NULL, 0);
    server_key_charge(key, 60, 540);   // a request that has begun is not cut
    assert_true(server_key_served(key) == 150);
    expect_entry(key, 10, "token_limit_exceeded", 6);
    expect_entry(key, 14.5, "token_limit_exceeded", 1);
    expect_entry(key, 15.1, NULL, 0);
    server_key_unref(key);
    server_keys_close(keys);
}

static void requests_at_once_are_counted(void **state)
{
    (void)state;
    server_keys *keys;
    server_key *key = only_key(&keys, "k concurrent=2");
    expect_entry(key, 1, NULL, 0);
    expect_entry(key, 1, NULL, 0);
    expect_entry(key, 1, "concurrency_limit_exceeded", 1);
    server_key_leave(key);
    expect_entry(key, 1, NULL, 0);
    write_keys("k concurrent=3 rate=1/day");   // a key keeps its counts when its limits change
    server_problem problem;
    assert_true(server_keys_reload(keys, &problem));
    expect_entry(key, 1, NULL, 0);
    expect_entry(key, 1, "concurrency_limit_exceeded", 1);
    server_key_leave(key);
    expect_entry(key, 1, "rate_limit_exceeded", 86400);
    char *text = server_keys_metrics(keys);
    assert_non_null(strstr(text, "reason=\"concurrent\"} 2\n"));
    assert_non_null(strstr(text, "reason=\"rate\"} 1\n"));
    free(text);
    server_key_unref(key);
    server_keys_close(keys);
}

// ---------------------------------------------------------------------------------------- shares

static void callers_are_served_by_weight(void **state)
{
    (void)state;
    static const frit_option_list none;
    server_keys *keys;
    server_problem problem;
    write_keys("a = k1\nb = k2 weight=3\nc = k3 priority=1\n");
    assert_true(server_keys_open(&keys, &none, key_path(), &problem));
    static const char *const texts[] = {"k1", "k2", "k3"};
    server_key *callers[3];
    for (int i = 0; i < 3; i++) callers[i] = server_keys_find(keys, texts[i], NULL);
    server_job *jobs[30], *first = NULL;
    for (int i = 29; i >= 0; i--) {   // ten of a, then ten of b, then ten of c
        jobs[i] = server_job_new();
        server_job_set_caller(jobs[i], callers[i / 10]);
        jobs[i]->next = first;
        first = jobs[i];
    }
    int n_of[3] = {0};
    for (int turn = 0; turn < 12; turn++) {
        server_job **at = server_fair_queue_next(&first, false), *job = *at;
        for (int i = 0; i < 3; i++) n_of[i] += job->caller.key == callers[i];
        server_key_charge(job->caller.key, 50, 50);
        *at = job->next;
    }
    assert_int_equal(n_of[0], 3);   // of 12, in the ratio of 1 to 3; none of c before both are served
    assert_int_equal(n_of[1], 9);
    assert_int_equal(n_of[2], 0);
    for (int i = 0; i < 30; i++) server_job_leave(NULL, jobs[i]);
    for (int i = 0; i < 3; i++) server_key_unref(callers[i]);
    server_keys_close(keys);
}

static void time_away_is_no_credit(void **state)
{
    (void)state;
    static const frit_option_list none;
    server_keys *keys;
    server_problem problem;
    write_keys("a = k1\nb = k2\n");
    assert_true(server_keys_open(&keys, &none, key_path(), &problem));
    server_key *a = server_keys_find(keys, "k1", NULL), *b = server_keys_find(keys, "k2", NULL);
    server_job *waits = server_job_new(), *comes = server_job_new(), *again = server_job_new();
    const server_slots slots = {0};
    server_job_set_caller(waits, a);
    server_job_set_caller(comes, b);
    server_job_set_caller(again, b);
    server_fair_queue_join(&slots, waits, waits, 700);   // there are no other callers
    assert_true(server_key_served(a) == 700);
    server_key_charge(a, 300, 0);
    waits->next = comes;
    server_fair_queue_join(&slots, waits, comes, 0);
    assert_true(server_key_served(b) == 999);   // so b is next
    assert_ptr_equal(*server_fair_queue_next(&waits, false), comes);
    server_key_charge(a, 500, 0);
    comes->next = again;
    server_fair_queue_join(&slots, waits, again, 0);   // b was waiting already
    assert_true(server_key_served(b) == 999);
    server_job_leave(NULL, waits);
    server_job_leave(NULL, comes);
    server_job_leave(NULL, again);
    server_key_unref(a);
    server_key_unref(b);
    server_keys_close(keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looking_for_a_key_takes_the_same_time_for_all),
        cmocka_unit_test(lines_are_keys_names_and_limits),
        cmocka_unit_test(a_bad_line_is_refused_without_its_key),
        cmocka_unit_test(a_bad_file_is_refused),
        cmocka_unit_test(a_file_may_begin_with_a_byte_order_mark),
        cmocka_unit_test(open_files_are_warned_of),
        cmocka_unit_test(a_key_is_known_by_its_name_or_hash),
        cmocka_unit_test(requests_come_back_with_time),
        cmocka_unit_test(tokens_come_back_with_time),
        cmocka_unit_test(requests_at_once_are_counted),
        cmocka_unit_test(callers_are_served_by_weight),
        cmocka_unit_test(time_away_is_no_credit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
