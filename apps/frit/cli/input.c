// SPDX-License-Identifier: MIT
// Reads the input of commands: files, stdin, token ids.
#include "frit/cli/cli.h"

#include "common/text_file.h"
#include "frit/os/screen.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cli_text_add(cli_text *text, const char *bytes, size_t n)
{
    char *data = realloc(text->data, text->n + n + 1);
    if (!data) exit(cli_no_memory());
    if (n > 0) memcpy(data + text->n, bytes, n);
    text->data = data;
    text->n += n;
    data[text->n] = 0;
}

void cli_text_vprint(cli_text *text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    char *added = n < 0 ? NULL : malloc((size_t)n + 1);
    if (!added) exit(cli_no_memory());
    vsnprintf(added, (size_t)n + 1, format, again);
    va_end(again);
    cli_text_add(text, added, (size_t)n);
    free(added);
}

void cli_text_print(cli_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cli_text_vprint(text, format, args);
    va_end(args);
}

int cli_read_bytes(const char *path, cli_text *out)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "stdin" : path;
    const bool before = cli_exit_on_signal(true);   // a terminal or a pipe may block forever
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    int code = file ? CLI_DONE : cli_fail("%s: %s", name, strerror(errno));
    cli_text_add(out, "", 0);
    char chunk[65536];
    // The loop stops at a terminal's first end of input, because another fread() would wait for a second one.
    for (size_t n; file && !feof(file) && (n = fread(chunk, 1, sizeof chunk, file)) > 0;) cli_text_add(out, chunk, n);
    if (file && ferror(file)) code = cli_fail("%s: %s", name, strerror(errno));
    if (file && !is_stdin) fclose(file);
    cli_exit_on_signal(before);
    return code;
}

int cli_read_file(const char *path, cli_text *out)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "stdin" : path;
    if (is_stdin && isatty(STDIN_FILENO)) cli_hint("type the text; %s ends it", cli_end_key());
    int code = cli_read_bytes(path, out);
    const char *encoding = app_foreign_encoding(out->data, out->n);
    if (code == CLI_DONE && encoding) code = cli_fail("%s: is text in %s; expected UTF-8", name, encoding);
    const size_t n_mark = app_mark_bytes(out->data, out->n);
    out->n -= n_mark;
    memmove(out->data, out->data + n_mark, out->n + 1);
    return code;
}

int cli_read_json(const char *path, size_t flags, json_t **out)
{
    cli_text text = {0};
    json_error_t error;
    *out = NULL;
    int code = cli_read_file(path, &text);
    if (code == CLI_DONE) {
        *out = json_loadb(text.data, text.n, JSON_ALLOW_NUL | flags, &error);
        if (!*out) code = cli_fail("%s: not JSON: line %d: %s", path, error.line, error.text);
    }
    free(text.data);
    return code;
}

bool cli_is_id_separator(int c)
{
    return isspace(c) || c == ',' || c == '[' || c == ']';
}

// Prints an error that shows the text in place of an id, without control characters.
static int refuse_id(const char *where, const char *text, size_t n)
{
    char shown[41] = "";
    for (size_t i = 0; i < n && i + 1 < sizeof shown; i++) shown[i] = text[i] < ' ' || text[i] == 127 ? '?' : text[i];
    return cli_usage("%s: '%s%s' is not a token id", where, shown, n < sizeof shown ? "" : "...");
}

// Parses one id: only decimal digits.
static int parse_id(const char *where, const char *text, size_t n, frit_token *id)
{
    int64_t value = 0;
    if (n > 15) return refuse_id(where, text, n);
    for (size_t i = 0; i < n && value <= INT32_MAX; i++) {
        if (!isdigit((unsigned char)text[i])) return refuse_id(where, text, n);
        value = 10 * value + (text[i] - '0');
    }
    if (value > INT32_MAX) return refuse_id(where, text, n);
    *id = (frit_token)value;
    return CLI_DONE;
}

int cli_parse_ids(const char *where, const char *text, size_t n_bytes, frit_token **ids, size_t *n_ids)
{
    *n_ids = 0;
    *ids = malloc((n_bytes / 2 + 1) * sizeof **ids);
    if (!*ids) return cli_no_memory();
    for (size_t at = 0; at < n_bytes;) {
        size_t end = at;
        while (end < n_bytes && !cli_is_id_separator((unsigned char)text[end])) end++;
        int code = end > at ? parse_id(where, text + at, end - at, &(*ids)[*n_ids]) : CLI_DONE;
        if (code != CLI_DONE) {
            free(*ids);
            *ids = NULL;
            return code;
        }
        *n_ids += end > at;
        at = end + 1;
    }
    return CLI_DONE;
}

frit_embed_item *cli_cut_texts(const cli_text *text, bool is_one, size_t *n_items)
{
    size_t capacity = 1;
    for (size_t i = 0; i < text->n; i++) capacity += text->data[i] == '\n';
    frit_embed_item *items = calloc(capacity, sizeof *items);
    *n_items = 0;
    for (size_t at = 0; items && at < text->n;) {
        const char *begin = text->data + at, *end = memchr(begin, '\n', text->n - at);
        size_t n = end && !is_one ? (size_t)(end - begin) : text->n - at;
        at += n + 1;
        if (n > 0 && begin[n - 1] == '\r' && !is_one) n--;
        if (n > 0) items[(*n_items)++] = (frit_embed_item){.text = begin, .n_bytes = n};
    }
    return items;
}
