// SPDX-License-Identifier: MIT
// frit/os/screen.h: the terminal itself (screen_*.c): its size, and keys that are typed while no line is read.
#pragma once
#include <stdbool.h>
#include <stdio.h>

int cli_columns(FILE *stream);   // 0: it is no terminal, or does not say
int cli_rows(FILE *stream);      // likewise
const char *cli_end_key(void);   // what ends a text that is typed
void cli_watch_size(void);
bool cli_was_resized(void);   // since the last call
// Keys are not shown and wait for the next read, until they are released; interrupts still come. `by_line`: the next
// read is one of lines, as the system edits them.
void cli_hold_keys(bool by_line);
void cli_release_keys(void);
