// SPDX-License-Identifier: MIT
// Runs the command.
#include "support/command_posix.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void pause_s(double seconds)
{
    nanosleep(&(struct timespec){(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)}, NULL);
}

static int code_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

outcome frit_with(const char *arguments, const char *input, const char *redirections)
{
    char out[512], err[512], in[512], command[8192];
    snprintf(out, sizeof out, "%s", temp_path("out"));
    snprintf(err, sizeof err, "%s", temp_path("err"));
    snprintf(in, sizeof in, "%s", temp_path("in"));
    write_file(in, input ? input : "", input ? strlen(input) : 0);
    write_file(out, "", 0);
    write_file(err, "", 0);
    snprintf(command, sizeof command, "'%s/frit' %s >'%s' 2>'%s' <'%s' %s", FRIT_BUILD_DIR, arguments, out, err, in,
             redirections);
    const int status = system(command);
    outcome result = {.code = code_of(status)};
    result.out = read_file(out, NULL);
    result.err = read_file(err, NULL);
    return result;
}

outcome frit(const char *arguments, const char *input)
{
    return frit_with(arguments, input, "");
}

void outcome_free(outcome *o)
{
    free(o->out);
    free(o->err);
}

void expect(const char *arguments, const char *input, int code, const char *in_out, const char *in_err)
{
    outcome o = frit(arguments, input);
    if (o.code != code || (in_out && !strstr(o.out, in_out)) || (in_err && !strstr(o.err, in_err))) {
        fail_msg(
            "frit %s: code %d (expected %d)\nstdout: %.2000s\nexpected in it: %s\nstderr: %.2000s\nexpected in it: %s",
            arguments, o.code, code, o.out, in_out ? in_out : "-", o.err, in_err ? in_err : "-");
    }
    outcome_free(&o);
}

started start(const char *before, const char *arguments, const char *redirections)
{
    started s;
    char command[8192];
    snprintf(s.out, sizeof s.out, "%s", temp_path("out"));
    snprintf(s.err, sizeof s.err, "%s", temp_path("err"));
    write_file(s.out, "", 0);
    write_file(s.err, "", 0);
    snprintf(command, sizeof command, "%s exec '%s/frit' %s >'%s' 2>'%s' %s", before, FRIT_BUILD_DIR, arguments, s.out,
             s.err, redirections);
    s.pid = fork();
    assert_true(s.pid >= 0);
    if (s.pid == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    return s;
}

int end(started *s, double seconds)
{
    const double deadline = now_s() + seconds;
    int status;
    while (waitpid(s->pid, &status, WNOHANG) == 0) {
        if (now_s() > deadline) {
            kill(s->pid, SIGKILL);
            waitpid(s->pid, &status, 0);
            fail_msg("the command still runs after %.1f s", seconds);
        }
        pause_s(0.005);
    }
    return code_of(status);
}

bool is_running(const started *s)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

void wait_for_output(const started *s)
{
    struct stat st = {0};
    for (int i = 0; i < 3000 && (stat(s->out, &st) != 0 || st.st_size == 0); i++) pause_s(0.01);
    if (st.st_size == 0) fail_msg("the command prints nothing");
}
