// SPDX-License-Identifier: MIT
// The command as a process: outputs that cannot be written, missing descriptors, signals.
#include "support/command_posix.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// ---------------------------------------------------------------------------------------- output

static const char text[] =
    "Once upon a time there was a king who had a great forest near his palace, full of all kinds "
    "of wild animals. One day he sent out a huntsman to shoot him a roe.";
static const char talk[] = "[{\"role\": \"user\", \"content\": \"Hello\"}]";

// All kinds of output, in each command. frit serve prints nothing to stdout.
static const struct {
    const char *arguments, *input;
} printing[] = {
    {"run -p Hello -n 4", NULL},
    {"run -p Hello -n 4 --json", NULL},
    {"chat -n 4", "Hello\n"},
    {"info", NULL},
    {"info --json --tensors", NULL},
    {"info --ops", NULL},
    {"info --architectures --json", NULL},
    {"bench -p 4 -n 0 -r 1 --no-probe", NULL},
    {"bench -p 4 -n 0 -r 1 --no-probe -o json", NULL},
    {"bench -p 4 -n 0 -r 1 --no-probe -o jsonl", NULL},
    {"bench -p 4 -n 0 -r 1 --no-probe -o csv", NULL},
    {"bench -p 4 -n 0 -r 1 --no-probe --profile", NULL},
    {"perplexity -c 16 -f -", text},
    {"perplexity -c 16 -f - --json", text},
    {"tokenize", text},
    {"tokenize --ids", text},
    {"tokenize --compare /dev/null", ""},
    {"tokenize --timings", text},
    {"detokenize 7599 1044", NULL},
    {"detokenize", "7599 1044"},
    {"template --messages -", talk},
    {"logits --ids 1 -o -", NULL},
    {"embed -p Hello", NULL},
    {"quantize --plan", NULL},
    {"imatrix --show '" FRIT_SOURCE_DIR "/tests/goldens/quantize/fable-6m.imatrix.gguf'", NULL},
    {"embed -p Hello --json", NULL},
    {"completions bash", NULL},
    {"completions zsh", NULL},
    {"completions fish", NULL},
    {"help", NULL},
    {"help run", NULL},
    {"help exit-codes", NULL},
    {"help --man", NULL},
    {"run --help", NULL},
    {"--version", NULL},
};

static void an_output_that_cannot_be_written_is_a_failure(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(printing); i++) {
        outcome o = frit_with(printing[i].arguments, printing[i].input, ">/dev/full");
        if (o.code != 1 || strcmp(o.err, "frit: the output cannot be written: No space left on device\n") != 0)
            fail_msg("frit %s: code %d: %s", printing[i].arguments, o.code, o.err);
        outcome_free(&o);
    }
}

static void a_closed_pipe_ends_every_command_quietly(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    char redirection[32];
    snprintf(redirection, sizeof redirection, ">&%d", ends[1]);
    for (size_t i = 0; i < FRIT_COUNT(printing); i++) {
        outcome o = frit_with(printing[i].arguments, printing[i].input, redirection);
        if (o.code != 141 || o.err[0]) fail_msg("frit %s: code %d: %s", printing[i].arguments, o.code, o.err);
        outcome_free(&o);
    }
    close(ends[1]);
}

// An endless answer stops after its reader has closed the pipe.
static void an_answer_stops_when_its_reader_has_gone(void **state)
{
    (void)state;
    char command[1024];
    snprintf(command, sizeof command,
             "'%s/frit' run -q --raw -p 'Once upon a time' --logit-bias 1=-inf --temp 0 -n 1000000 -c 2000 </dev/null "
             "| head -c 10 >/dev/null",
             FRIT_BUILD_DIR);
    const double begin = now_s();
    assert_int_equal(WEXITSTATUS(system(command)), 0);
    assert_true(now_s() - begin < 10);
}

static void every_command_that_prints_is_in_the_table(void **state)
{
    (void)state;
    outcome o = frit("help", NULL);
    char *at = strstr(o.out, "Commands:\n"), *save = NULL;
    assert_non_null(at);
    at[strcspn(at, "A")] = 0;   // "A model is ...", the next part
    for (char *line = strtok_r(at + strlen("Commands:\n"), "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char name[32] = "";
        bool found = sscanf(line, "%31s", name) != 1 || strcmp(name, "serve") == 0 || strcmp(name, "convert") == 0;
        const size_t n = strlen(name);
        for (size_t i = 0; i < FRIT_COUNT(printing); i++)
            found = found || (strncmp(printing[i].arguments, name, n) == 0 && strchr(" ", printing[i].arguments[n]));
        if (!found) fail_msg("frit %s is not in the table", name);
    }
    outcome_free(&o);
}

static void files_of_results_on_a_full_device_are_a_failure(void **state)
{
    (void)state;
    struct stat st;
    expect("logits -q --ids 1 -o /dev/full", NULL, 1, NULL, "/dev/full: cannot be written: No space left on device");
    expect("perplexity -q -c 16 -f - --kl-divergence-base /dev/full", text, 1, NULL, "/dev/full: cannot be written");
    expect("convert -q models/fable.gguf /dev/full", NULL, 1, NULL, "/dev/full: is a device or a pipe");
    expect("run -q -p x -n 1 --session /dev/full", NULL, 1, NULL, "/dev/full: is a device or a pipe");
    expect("chat -q -n 1", "/save /dev/full\n", 0, NULL, "/dev/full: cannot be written: No space left on device");
    assert_int_equal(stat("/dev/full", &st), 0);
    assert_true(S_ISCHR(st.st_mode));   // the device was not replaced
    expect("logits -q --ids 1 -o /nonexistent/out", NULL, 1, NULL, "/nonexistent/out: cannot be written");
    expect("logits -q --ids 1 -o /tmp", NULL, 1, NULL, "/tmp: is a folder, a file is expected");
    outcome o = frit("logits -q --ids 1 -o -", NULL);
    outcome_free(&o);
    assert_int_not_equal(stat("-", &st), 0);
}

static void a_session_that_cannot_be_kept_fails_before_the_answer(void **state)
{
    (void)state;
    const char *paths[] = {"/nonexistent/s", "/tmp", "/proc/s"};
    for (size_t i = 0; i < FRIT_COUNT(paths); i++) {
        const char *commands[] = {"run -q -p Hello -n 4 --session %s", "chat -q -n 4 --session %s"};
        for (size_t c = 0; c < FRIT_COUNT(commands); c++) {
            char line[256];
            snprintf(line, sizeof line, c == 0 ? "run -q -p Hello -n 4 --session %s" : "chat -q -n 4 --session %s",
                     paths[i]);
            outcome o = frit(line, "Hello\n");
            if (o.code != 1 || o.out[0] || !strstr(o.err, paths[i]))
                fail_msg("%s: %d: %s%s", line, o.code, o.out, o.err);
            outcome_free(&o);
        }
    }
}

// ---------------------------------------------------------------------------------------- descriptors

static void a_missing_stdin_is_an_empty_one(void **state)
{
    (void)state;
    outcome o = frit_with("tokenize", NULL, "<&-");
    assert_int_equal(o.code, 0);
    assert_string_equal(o.out, "");
    outcome_free(&o);
    o = frit_with("chat -q -n 4", NULL, "<&-");
    assert_int_equal(o.code, 0);
    assert_string_equal(o.out, "");
    outcome_free(&o);
    o = frit_with("run -q -p Hello -n 4 --temp 0", NULL, "<&-");
    expect("run -q -p Hello -n 4 --temp 0", NULL, 0, o.out, NULL);
    assert_int_equal(o.code, 0);
    outcome_free(&o);
    o = frit_with("run -q", NULL, "<&-");
    assert_int_equal(o.code, 2);
    outcome_free(&o);
}

static void a_missing_stdout_cannot_be_written(void **state)
{
    (void)state;
    const char *commands[] = {"info", "run -q -p Hello -n 4", "--version"};
    for (size_t i = 0; i < FRIT_COUNT(commands); i++) {
        outcome o = frit_with(commands[i], NULL, ">&-");
        assert_int_equal(o.code, 1);
        assert_string_equal(o.err, "frit: the output cannot be written: Bad file descriptor\n");
        outcome_free(&o);
    }
}

// Without stderr the model would get descriptor 2, and messages would be written into it.
static void a_missing_stderr_loses_only_messages(void **state)
{
    (void)state;
    char copy[512], line[1024];
    size_t n, n_after;
    snprintf(copy, sizeof copy, "%s", temp_path("copy.gguf"));
    char *model = read_file(project_path("models/fable.gguf"), &n);
    write_file(copy, model, n);
    snprintf(line, sizeof line, "run '%s' -p Hello -n 4", copy);
    outcome o = frit_with(line, NULL, "2>&- <&-");
    assert_int_equal(o.code, 0);
    assert_true(o.out[0] != 0);
    char *after = read_file(copy, &n_after);
    assert_int_equal(n_after, n);
    assert_memory_equal(after, model, n);
    outcome_free(&o);
    free(model);
    free(after);
}

// ---------------------------------------------------------------------------------------- signals

static const struct {
    int number, code;
} signals[] = {{SIGINT, 130}, {SIGTERM, 143}, {SIGHUP, 129}};

// The processor time of all processes that have ended and were waited for.
static double children_s(void)
{
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

// Sends the signal after the command has had time to begin. The limit is one of processor time, since the machine may
// be busy.
static void expect_quiet_end(const char *arguments, const char *redirections, int number, int code, double limit_s)
{
    const double before = children_s();
    started s = start("", arguments, redirections);
    pause_s(0.5);
    if (!is_running(&s)) fail_msg("frit %s: has ended by itself", arguments);
    kill(s.pid, number);
    const int got = end(&s, 60);
    const double used = children_s() - before;
    char *err = read_file(s.err, NULL);
    if (got != code || err[0] || used > limit_s * FRIT_TEST_STRIDE)   // sanitizers are slow
        fail_msg("frit %s: code %d, expected %d, after %.2f s: %s", arguments, got, code, used, err);
    free(err);
}

static void signals_end_commands_that_read(void **state)
{
    (void)state;
    // A pipe that stays open without data.
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    char redirection[32];
    snprintf(redirection, sizeof redirection, "<&%d", ends[0]);
    const char *commands[] = {"tokenize", "detokenize", "template --messages -", "run -q", "perplexity -f -",
                              "embed -q", "chat -q"};
    for (size_t c = 0; c < FRIT_COUNT(commands); c++)
        expect_quiet_end(commands[c], redirection, signals[c % 3].number, signals[c % 3].code, 3);
    for (size_t i = 0; i < FRIT_COUNT(signals); i++)
        expect_quiet_end("tokenize", redirection, signals[i].number, signals[i].code, 3);
    close(ends[0]);
    close(ends[1]);
}

// Piped text follows the prompt. If a parent process forgets to close the pipe, the command reports that it waits for
// it.
static void a_pipe_that_gives_nothing_is_not_waited_for_in_silence(void **state)
{
    (void)state;
    int ends[2];
    char redirection[32];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFD, FD_CLOEXEC), 0);
    snprintf(redirection, sizeof redirection, "<&%d", ends[0]);
    started s = start("", "run -n 2 -p Hello", redirection);
    char *err = read_file(s.err, NULL);
    for (const double begin = now_s(); !err[0] && now_s() - begin < 30; err = read_file(s.err, NULL)) {
        free(err);
        pause_s(0.05);
    }
    assert_non_null(strstr(err, "waiting for the text on stdin"));
    assert_true(is_running(&s));
    free(err);
    assert_int_equal(write(ends[1], "friend", 6), 6);
    close(ends[1]);
    close(ends[0]);
    assert_int_equal(end(&s, 60), 0);
}

static void signals_end_commands_that_work(void **state)
{
    (void)state;
    static char line[1024];
    char long_text[512];
    snprintf(long_text, sizeof long_text, "%s", temp_path("long.txt"));
    FILE *file = fopen(long_text, "wb");
    for (int i = 0; i < 20000; i++) fputs(text, file);
    fclose(file);
    for (size_t i = 0; i < FRIT_COUNT(signals); i++) {
        const char *answer = "run -q --raw -p 'Once upon a time' --logit-bias 1=-inf -n 1000000 -c 20000 --temp 0";
        expect_quiet_end(answer, "</dev/null", signals[i].number, signals[i].code, 3);
        snprintf(line, sizeof line, "perplexity -q -c 512 -f '%s'", long_text);
        expect_quiet_end(line, "</dev/null", signals[i].number, signals[i].code, 3);
        snprintf(line, sizeof line, "bench -q -p 512 -n 0 -r 1000 --no-probe");
        expect_quiet_end(line, "</dev/null", signals[i].number, signals[i].code, 3);
    }
}

static void a_signal_during_the_probe_of_bench_is_answered_at_once(void **state)
{
    (void)state;
    double taken = 1;
    for (int attempt = 0; attempt < 3 && taken > 0.5; attempt++) {   // the machine may be busy
        started s = start("", "bench -p 4 -n 0 -r 1", "</dev/null");
        wait_for_output(&s);   // the head of the table comes before the probe
        pause_s(0.3);
        kill(s.pid, SIGINT);
        const double sent = now_s();
        assert_int_equal(end(&s, 30), 130);
        taken = now_s() - sent;
    }
    assert_true(taken < 0.5);
}

static size_t count_files(const char *folder)
{
    size_t n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) n += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
    closedir(dir);
    return n;
}

static void a_conversion_that_is_ended_leaves_no_file(void **state)
{
    (void)state;
    char folder[512], line[2048];
    for (size_t i = 0; i < FRIT_COUNT(signals); i++) {
        snprintf(folder, sizeof folder, "%s", temp_path("made"));
        assert_int_equal(mkdir(folder, 0777), 0);
        snprintf(line, sizeof line, "convert -q '%s' '%s/out.gguf' --type iq3_s", project_path("models/fable.gguf"),
                 folder);
        expect_quiet_end(line, "</dev/null", signals[i].number, signals[i].code, 30);
        assert_int_equal(count_files(folder), 0);
        rmdir(folder);
    }
}

// After any signal, answers end, and the server ends with success.
static void a_server_without_descriptors_serves_until_a_signal(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(signals); i++) {
        started s = start("", "serve --port 0", "<&- >&- 2>&-");
        pause_s(1);
        if (!is_running(&s)) {
            expect("serve --port 0", NULL, 1, NULL, "this build has no server");
            skip_because("this build has no server");
        }
        kill(s.pid, signals[i].number);
        if (signals[i].number == SIGHUP) kill(s.pid, SIGTERM);   // SIGHUP only makes it read files again
        assert_int_equal(end(&s, 30), 0);
    }
}

static void a_signal_that_the_parent_ignores_stays_ignored(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    char redirection[32];
    snprintf(redirection, sizeof redirection, "<&%d", ends[0]);
    started s = start("trap '' INT HUP;", "tokenize", redirection);
    pause_s(0.3);
    kill(s.pid, SIGINT);
    kill(s.pid, SIGHUP);
    pause_s(0.3);
    assert_true(is_running(&s));
    kill(s.pid, SIGTERM);
    assert_int_equal(end(&s, 10), 143);
    close(ends[0]);
    close(ends[1]);
}

static void a_terminated_chat_keeps_its_session(void **state)
{
    (void)state;
    char path[512], line[1024], in[32];
    int ends[2];
    snprintf(path, sizeof path, "%s", temp_path("kept.frit"));
    assert_int_equal(pipe(ends), 0);
    snprintf(in, sizeof in, "<&%d", ends[0]);
    snprintf(line, sizeof line, "chat -q -n 4 --temp 0 --session '%s'", path);
    started s = start("", line, in);
    assert_int_equal(write(ends[1], "Hello\n", 6), 6);
    wait_for_output(&s);
    pause_s(0.5);
    kill(s.pid, SIGTERM);
    assert_int_equal(end(&s, 10), 143);
    expect(line, "/show messages\n", 0, NULL, "user: Hello");
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_output_that_cannot_be_written_is_a_failure),
        cmocka_unit_test(a_closed_pipe_ends_every_command_quietly),
        cmocka_unit_test(an_answer_stops_when_its_reader_has_gone),
        cmocka_unit_test(every_command_that_prints_is_in_the_table),
        cmocka_unit_test(files_of_results_on_a_full_device_are_a_failure),
        cmocka_unit_test(a_session_that_cannot_be_kept_fails_before_the_answer),
        cmocka_unit_test(a_missing_stdin_is_an_empty_one),
        cmocka_unit_test(a_missing_stdout_cannot_be_written),
        cmocka_unit_test(a_missing_stderr_loses_only_messages),
        cmocka_unit_test(signals_end_commands_that_read),
        cmocka_unit_test(a_pipe_that_gives_nothing_is_not_waited_for_in_silence),
        cmocka_unit_test(signals_end_commands_that_work),
        cmocka_unit_test(a_signal_during_the_probe_of_bench_is_answered_at_once),
        cmocka_unit_test(a_conversion_that_is_ended_leaves_no_file),
        cmocka_unit_test(a_server_without_descriptors_serves_until_a_signal),
        cmocka_unit_test(a_signal_that_the_parent_ignores_stays_ignored),
        cmocka_unit_test(a_terminated_chat_keeps_its_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
