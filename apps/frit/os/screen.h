// SPDX-License-Identifier: MIT
// frit/os/screen.h: the terminal (screen_*.c): its size, and keys that are typed while no line is read.
#pragma once
#include <stdbool.h>
#include <stdio.h>

int cli_columns(FILE *stream);   // 0: not a terminal, or unknown
int cli_rows(FILE *stream);      // 0: not a terminal, or unknown
const char *cli_end_key(void);   // the key that ends typed input
void cli_watch_size(void);
bool cli_was_resized(void);   // since the last call
// Hides typed keys and keeps them for the next read, until cli_release_keys; interrupts still work. `by_line`: the next
// read reads lines, which the system edits.
void cli_hold_keys(bool by_line);
void cli_release_keys(void);
