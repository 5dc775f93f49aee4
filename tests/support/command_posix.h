// SPDX-License-Identifier: MIT
// support/command_posix.h: the command as a child process: its output, its exit code, and its reaction to signals.
//
//     outcome o = frit("info --json", NULL);             // runs to its end
//     started s = start("tokenize", "</dev/zero");       // runs; signals and waits follow
//     assert_int_equal(end(&s, 5), 143);
#pragma once
#include "support/support.h"

#include <signal.h>
#include <sys/types.h>

typedef struct outcome {
    int code;   // the exit code, or 128 + the signal that ended it
    char *out, *err;
} outcome;

// Runs `frit ARGUMENTS` in a shell; `input` becomes stdin, a file (NULL: empty).
outcome frit(const char *arguments, const char *input);
// Runs frit with further redirections of the shell ("2>&1 >&-"), which come last.
outcome frit_with(const char *arguments, const char *input, const char *redirections);
void outcome_free(outcome *o);
// Fails the test unless the exit code is `code` and stdout and stderr contain the parts (NULL: any).
void expect(const char *arguments, const char *input, int code, const char *in_out, const char *in_err);

typedef struct started {
    pid_t pid;
    char out[512], err[512];   // files of its output
} started;

// Starts `frit ARGUMENTS` as a process. `before` are commands of the shell that becomes it ("trap '' INT;").
started start(const char *before, const char *arguments, const char *redirections);
// Waits for the end of the process. Fails the test after `seconds`. Returns the exit code, or 128 + the signal that
// ended it.
int end(started *s, double seconds);
bool is_running(const started *s);
void wait_for_output(const started *s);   // until it has printed to stdout, 30 s at most
double now_s(void);
void pause_s(double seconds);
