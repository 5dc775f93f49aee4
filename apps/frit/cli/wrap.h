// SPDX-License-Identifier: MIT
// frit/cli/wrap.h: text on a terminal, broken between words at the right edge. Words are held back until they end;
// lines may break between wide characters (CJK). A word that is wider than a line is broken anywhere. Characters that
// could control the terminal are replaced.
//
//     cli_wrap wrap;
//     cli_wrap_init(&wrap, stdout, 80);
//     cli_wrap_text(&wrap, text, n);            // whenever text arrives
//     cli_wrap_escape(&wrap, "\033[1m");        // takes no column
//     cli_wrap_flush(&wrap);                    // shows the word that is held back
//     cli_wrap_deinit(&wrap);
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
    // Text that is held back: blanks, then a word with its escapes.
    int n_blanks;
    char word[CLI_WRAP_WORD];
    size_t n_word;
    int word_columns;
    bool word_is_wide;   // the word ended with a wide character: a break may follow
    // An incomplete character.
    char character[4];
    size_t n_character;
    // The beginning of continued lines.
    char prefix[CLI_WRAP_PREFIX];
    int prefix_columns;
    // Columns of each finished line.
    uint16_t *lines;
    size_t n_lines, capacity;
} cli_wrap;

void cli_wrap_init(cli_wrap *wrap, FILE *out, int columns);
void cli_wrap_text(cli_wrap *wrap, const char *text, size_t n);
void cli_wrap_escape(cli_wrap *wrap, const char *sequence);
// Continued lines begin with this text, which takes `columns` columns, until the next newline.
void cli_wrap_hang(cli_wrap *wrap, const char *prefix, int columns);
// The column after the text that is held back.
int cli_wrap_column(const cli_wrap *wrap);
void cli_wrap_flush(cli_wrap *wrap);
void cli_wrap_clear(cli_wrap *wrap);   // drops the text that is held back
// The number of rows from the first line to the cursor on a terminal of this width, if the terminal breaks lines that
// are too long.
size_t cli_wrap_rows(const cli_wrap *wrap, int columns);
void cli_wrap_deinit(cli_wrap *wrap);

// Prints a whole text. Continued lines are indented: to the last column of a list, otherwise by two more than the line.
void cli_wrap_print(FILE *out, int columns, const char *text);
