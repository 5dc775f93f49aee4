// SPDX-License-Identifier: MIT
// support/chat_process.h: the command frit chat, in a pipe or on a pseudo-terminal.
//
//     terminal t = terminal_open("xterm", (const char *const[]){"-q", NULL});
//     terminal_await(&t, "> ");
//     terminal_type(&t, "/exit\r");
//     assert_int_equal(terminal_close(&t), 0);
#pragma once
#include <stddef.h>
#include <sys/types.h>

typedef struct terminal {
    int fd;
    pid_t child;
    char *seen;   // all that was shown
    size_t n, at;
} terminal;

void chat_keep_state(void);   // sets XDG_STATE_HOME to a folder of this test program
// Returns what the chat prints, and in *err what it says.
char *run_piped(const char *arguments, const char *input, int *code, char **err);

terminal terminal_open(const char *term, const char *const *arguments);   // 80 columns
terminal terminal_open_sized(const char *term, const char *const *arguments, unsigned short columns);
// Reads until `text` is shown after the text that was read before; fails after a while.
void terminal_await(terminal *t, const char *text);
void terminal_type(const terminal *t, const char *text);
int terminal_close(terminal *t);   // waits for the chat's end; its exit code
