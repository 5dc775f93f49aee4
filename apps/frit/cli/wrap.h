// SPDX-License-Identifier: MIT
// frit/cli/wrap.h: text on a terminal, broken between words at the right edge. Words are held back until they end; wide
// characters (CJK) may be broken between. A word that is wider than a line is broken anywhere. What could steer the
// terminal does not reach it.
//
//     cli_wrap wrap;
//     cli_wrap_init(&wrap, stdout, 80);
//     cli_wrap_text(&wrap, text, n);            // as often as text comes
//     cli_wrap_escape(&wrap, "\033[1m");        // takes no column
//     cli_wrap_flush(&wrap);                    // the word that is held back
//     cli_wrap_free(&wrap);
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { CLI_WRAP_WORD = 1024, CLI_WRAP_PREFIX = 64 };

typedef struct cli_wrap {
    FILE *out;
    int columns;   // 0: no edge
    int column;    // of the cursor
    bool raw;      // no breaks: code
    // What is held back: blanks, then a word with its escapes.
    int n_blanks;
    char word[CLI_WRAP_WORD];
    size_t n_word;
    int word_columns;
    bool word_is_wide;   // it ended with a wide character: a break may follow
    // A character whose bytes have not all come.
    char character[4];
    size_t n_character;
    // What a line begins with that goes on from the last one.
    char prefix[CLI_WRAP_PREFIX];
    int prefix_columns;
    // Columns of each line that was ended.
    uint16_t *lines;
    size_t n_lines, capacity;
} cli_wrap;

void cli_wrap_init(cli_wrap *wrap, FILE *out, int columns);
void cli_wrap_text(cli_wrap *wrap, const char *text, size_t n);
void cli_wrap_escape(cli_wrap *wrap, const char *sequence);
// Lines that go on begin with this text, whose columns are given; until the next newline.
void cli_wrap_hang(cli_wrap *wrap, const char *prefix, int columns);
// The column after what is held back.
int cli_wrap_column(const cli_wrap *wrap);
void cli_wrap_flush(cli_wrap *wrap);
void cli_wrap_drop(cli_wrap *wrap);   // forgets what is held back
// Rows from the first line to the cursor on a terminal of this width, if it breaks lines that no longer fit.
size_t cli_wrap_rows(const cli_wrap *wrap, int columns);
void cli_wrap_free(cli_wrap *wrap);

// A whole text, lines that go on indented: below the last column of a list, else by two more than the line.
void cli_wrap_print(FILE *out, int columns, const char *text);
