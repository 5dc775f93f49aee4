// SPDX-License-Identifier: MIT
// Breaks lines between words. Columns are counted. Terminals agree on widths, except of emoji of several code points;
// their width is the sum of their parts here, so a line may end a little early.
#include "frit/cli/wrap.h"

#include "common/grow.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

void cli_wrap_init(cli_wrap *wrap, FILE *out, int columns)
{
    *wrap = (cli_wrap){.out = out, .columns = columns};
}

void cli_wrap_deinit(cli_wrap *wrap)
{
    free(wrap->lines);
    wrap->lines = NULL;
    wrap->n_lines = wrap->capacity = 0;
}

// ---------------------------------------------------------------------------------------- lines

// Notes the width of a line. If memory is short, a resized terminal is not redrawn exactly.
static void note_line(cli_wrap *wrap)
{
    if (!APP_GROW(wrap->lines, wrap->capacity, wrap->n_lines + 1)) return;
    wrap->lines[wrap->n_lines++] = (uint16_t)(wrap->column > UINT16_MAX ? UINT16_MAX : wrap->column);
}

static void break_line(cli_wrap *wrap)
{
    putc('\n', wrap->out);
    note_line(wrap);
    fputs(wrap->prefix, wrap->out);
    wrap->column = wrap->prefix_columns;
    wrap->n_blanks = 0;
}

static size_t rows_of(int width, int columns)
{
    return columns > 0 && width > columns ? (size_t)((width + columns - 1) / columns) : 1;
}

size_t cli_wrap_rows(const cli_wrap *wrap, int columns)
{
    size_t n = 0;
    for (size_t i = 0; i < wrap->n_lines; i++) n += rows_of(wrap->lines[i], columns);
    return n + rows_of(wrap->column, columns);
}

void cli_wrap_hang(cli_wrap *wrap, const char *prefix, int columns)
{
    // On a narrow terminal the prefix would leave no room for text.
    const bool fits = 2 * columns <= wrap->columns && strlen(prefix) < sizeof wrap->prefix;
    snprintf(wrap->prefix, sizeof wrap->prefix, "%s", fits ? prefix : "");
    wrap->prefix_columns = fits ? columns : 0;
}

int cli_wrap_column(const cli_wrap *wrap)
{
    return wrap->column + wrap->n_blanks + wrap->word_columns;
}

// ---------------------------------------------------------------------------------------- words

static void put_blanks(cli_wrap *wrap)
{
    for (int i = 0; i < wrap->n_blanks; i++) putc(' ', wrap->out);
    wrap->column += wrap->n_blanks;
    wrap->n_blanks = 0;
}

static void put_word(cli_wrap *wrap)
{
    const bool fits = wrap->columns == 0 || wrap->raw || cli_wrap_column(wrap) <= wrap->columns;
    if (!fits && wrap->word_columns > 0 && wrap->column > wrap->prefix_columns) break_line(wrap);
    if (wrap->word_columns > 0) put_blanks(wrap);
    fwrite(wrap->word, 1, wrap->n_word, wrap->out);
    wrap->column += wrap->word_columns;
    wrap->n_word = 0;
    wrap->word_columns = 0;
    wrap->word_is_wide = false;
}

void cli_wrap_flush(cli_wrap *wrap)
{
    put_word(wrap);
    put_blanks(wrap);
}

void cli_wrap_clear(cli_wrap *wrap)
{
    wrap->n_word = wrap->n_character = 0;
    wrap->word_columns = wrap->n_blanks = 0;
    wrap->word_is_wide = false;
}

static void hold(cli_wrap *wrap, const char *bytes, size_t n, int columns)
{
    // Breaks a word that fills a line, or the buffer.
    const int room = wrap->columns - wrap->prefix_columns;
    if (wrap->columns > 0 && !wrap->raw && columns > 0 && wrap->word_columns + columns > room) {
        put_word(wrap);
        break_line(wrap);
    }
    if (wrap->n_word + n > sizeof wrap->word) put_word(wrap);
    memcpy(wrap->word + wrap->n_word, bytes, n);
    wrap->n_word += n;
    wrap->word_columns += columns;
}

void cli_wrap_escape(cli_wrap *wrap, const char *sequence)
{
    hold(wrap, sequence, strlen(sequence), 0);
}

// True for punctuation that ends a phrase, which must not begin a line.
static bool ends_phrase(utf8proc_int32_t c)
{
    const utf8proc_category_t category = utf8proc_category(c);
    return category == UTF8PROC_CATEGORY_PE || category == UTF8PROC_CATEGORY_PF ||
           (category == UTF8PROC_CATEGORY_PO && c >= 0x80) || c == 0x30fc;   // a long vowel
}

static bool begins_phrase(utf8proc_int32_t c)
{
    const utf8proc_category_t category = utf8proc_category(c);
    return category == UTF8PROC_CATEGORY_PS || category == UTF8PROC_CATEGORY_PI;
}

static void put_newline(cli_wrap *wrap)
{
    if (wrap->columns > 0 && !wrap->raw && wrap->word_columns == 0) wrap->n_blanks = 0;   // blanks at the end
    cli_wrap_flush(wrap);
    putc('\n', wrap->out);
    note_line(wrap);
    wrap->column = 0;
    wrap->prefix[0] = 0;
    wrap->prefix_columns = 0;
}

static void put_blank(cli_wrap *wrap, int n)
{
    put_word(wrap);
    wrap->n_blanks += n;
    const int room = wrap->columns - wrap->column;
    if (wrap->columns > 0 && !wrap->raw && wrap->n_blanks > room) wrap->n_blanks = room > 0 ? room : 0;
}

// True for control characters, and for Unicode characters that change the direction of text.
static bool steers(utf8proc_int32_t c)
{
    return c < 32 || (c >= 127 && c < 0xa0) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static void put_character(cli_wrap *wrap, const char *bytes, size_t n, utf8proc_int32_t c)
{
    if (c == '\n') {
        put_newline(wrap);
    } else if (c == ' ') {
        put_blank(wrap, 1);
    } else if (c == '\t' && wrap->columns == 0) {
        cli_wrap_flush(wrap);
        putc('\t', wrap->out);
    } else if (c == '\t') {
        put_blank(wrap, 8 - cli_wrap_column(wrap) % 8);
    } else if (steers(c)) {
        if (c < 32 || c >= 0xa0) hold(wrap, "\xef\xbf\xbd", 3, 1);
    } else {
        const int columns = utf8proc_charwidth(c);
        const bool is_wide = columns == 2;
        if ((wrap->word_is_wide && columns > 0 && !ends_phrase(c)) ||
            (is_wide && wrap->word_columns > 0 && !wrap->word_is_wide && !ends_phrase(c)))
            put_word(wrap);
        hold(wrap, bytes, n, columns < 0 ? 0 : columns);
        if (columns > 0) wrap->word_is_wide = is_wide && !begins_phrase(c);
    }
}

void cli_wrap_text(cli_wrap *wrap, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        wrap->character[wrap->n_character++] = text[i];
        utf8proc_int32_t c;
        const unsigned char first = (unsigned char)wrap->character[0];
        const size_t n_wanted = first < 0xc2 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 1;
        if (wrap->n_character < n_wanted) continue;
        const utf8proc_ssize_t n_read =
            utf8proc_iterate((const utf8proc_uint8_t *)wrap->character, (utf8proc_ssize_t)n_wanted, &c);
        if (n_read > 0)
            put_character(wrap, wrap->character, (size_t)n_read, c);
        else
            hold(wrap, "\xef\xbf\xbd", 3, 1);
        wrap->n_character = 0;
    }
}

// ---------------------------------------------------------------------------------------- whole texts

// The indent of continued lines: the last column of a list, or two more than the line's.
static int indent_of(const char *line, size_t n, int columns)
{
    size_t lead = 0, last = 0;
    while (lead < n && line[lead] == ' ') lead++;
    for (size_t i = lead + 2; i < n; i++)
        if (line[i] != ' ' && line[i - 1] == ' ' && line[i - 2] == ' ') last = i;
    if (lead == 0) return 0;
    return last > 0 && 2 * (int)last <= columns ? (int)last : (int)lead + 2;
}

void cli_wrap_print(FILE *out, int columns, const char *text)
{
    cli_wrap wrap;
    cli_wrap_init(&wrap, out, columns);
    for (const char *line = text; *line;) {
        const size_t n = strcspn(line, "\n");
        const int indent = columns > 0 ? indent_of(line, n, columns) : 0;
        char blanks[CLI_WRAP_PREFIX];
        snprintf(blanks, sizeof blanks, "%*s", indent, "");
        cli_wrap_hang(&wrap, blanks, indent);
        cli_wrap_text(&wrap, line, n + (line[n] == '\n'));
        line += n + (line[n] == '\n');
    }
    cli_wrap_flush(&wrap);
    cli_wrap_deinit(&wrap);
}
