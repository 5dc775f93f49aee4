// SPDX-License-Identifier: MIT
// Parses lines into sections, keys and values.
#include "frit/cli/config.h"

#include "common/grow.h"
#include "frit/cli/cli.h"
#include "common/text_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    cli_config *out;
    size_t capacity;
    const char *section;
    int line;
    char *sentence;   // [256]
} reader;

static bool refuse(reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool refuse(reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->sentence, 256, format, args);
    va_end(args);
    return false;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

// Removes blanks at both ends and writes a zero after the text.
static char *trim(char *begin, char *end)
{
    while (begin < end && is_blank(*begin)) begin++;
    while (end > begin && is_blank(end[-1])) end--;
    *end = 0;
    return begin;
}

static bool add(reader *r, const char *key, const char *value)
{
    cli_config *out = r->out;
    if (!APP_GROW(out->items, r->capacity, out->n + 1)) return refuse(r, "out of memory");
    out->items[out->n++] = (cli_config_entry){r->section, key, value, r->line};
    return true;
}

// Finds the '#' that begins a comment: at `begin`, or after a blank. The text has no quotes.
static char *find_comment(char *begin, char *end)
{
    for (char *at = begin; at < end; at++)
        if (*at == '#' && (at == begin || is_blank(at[-1]))) return at;
    return end;
}

static bool read_section(reader *r, char *begin, char *end)
{
    char *close = memchr(begin, ']', (size_t)(end - begin));
    char *rest = close ? close + 1 : end;
    while (rest < end && is_blank(*rest)) rest++;
    if (!close || (rest < end && *rest != '#'))
        return refuse(r, "found '%.60s', expected a section's name in brackets", begin);
    const char *name = trim(begin + 1, close);
    if (!*name) return refuse(r, "the section's name is empty");
    for (size_t i = 0; i < r->out->n; i++)
        if (!r->out->items[i].key && strcmp(r->out->items[i].section, name) == 0)
            return refuse(r, "section [%.60s] began on line %d already", name, r->out->items[i].line);
    r->section = name;
    return add(r, NULL, NULL);
}

static bool read_value(reader *r, char *begin, char *end, const char **out)
{
    while (begin < end && is_blank(*begin)) begin++;
    *out = begin;
    if (begin == end || *begin != '"') {
        *out = trim(begin, find_comment(begin, end));
        return true;
    }
    char *close = memchr(begin + 1, '"', (size_t)(end - begin - 1)), *rest = close ? close + 1 : end;
    while (rest < end && is_blank(*rest)) rest++;
    if (!close) return refuse(r, "found no '\"' that ends the value %.60s", begin);
    if (rest < end && *rest != '#') return refuse(r, "found '%.60s' after the value in quotes", rest);
    *close = 0;
    *out = begin + 1;
    return true;
}

// Reads the line [begin, end) without its newline; *end may be written.
static bool read_line(reader *r, char *begin, char *end)
{
    if (end > begin && end[-1] == '\r') end--;
    while (begin < end && is_blank(*begin)) begin++;
    if (begin == end || *begin == '#') return true;
    *end = 0;
    for (const char *at = begin; at < end; at++)
        if ((unsigned char)*at < ' ' && *at != '\t') return refuse(r, "found the control character %d", *at);
    if (*begin == '[') return read_section(r, begin, end);
    char *equals = memchr(begin, '=', (size_t)(end - begin));
    if (!equals || equals == begin || find_comment(begin, equals) < equals)
        return refuse(r, "found '%.60s', expected KEY = VALUE", begin);
    const char *key = trim(begin, equals), *value;
    return read_value(r, equals + 1, end, &value) && add(r, key, value);
}

bool cli_config_parse(cli_config *out, char *text, size_t n, int *line, char sentence[256])
{
    *out = (cli_config){.text = text};
    reader r = {.out = out, .sentence = sentence};
    size_t at = app_mark_bytes(text, n);
    const char *encoding = app_foreign_encoding(text, n);
    *line = 1;
    if (encoding) return refuse(&r, "found text in %s, expected UTF-8", encoding);
    while (at < n) {
        char *newline = memchr(text + at, '\n', n - at), *end = newline ? newline : text + n;
        r.line++;
        const bool good = read_line(&r, text + at, end);
        at = (size_t)(end - text) + 1;
        *line = r.line;
        if (!good) return false;
    }
    return true;
}

int cli_config_read(cli_config *out, const char *path)
{
    *out = (cli_config){0};
    char sentence[256], *text = malloc(CLI_CONFIG_BYTES + 1);
    if (!text) return cli_no_memory();
    errno = 0;
    FILE *file = fopen(path, "rb");
    const size_t n = file ? fread(text, 1, CLI_CONFIG_BYTES + 1, file) : 0;
    const bool failed = !file || ferror(file);
    const int error = errno;
    if (file) fclose(file);
    if (failed || n > CLI_CONFIG_BYTES) {
        free(text);
        return failed ? cli_fail("--config %s: %s", path, strerror(error))
                      : cli_usage("--config %s: has more than %d bytes", path, CLI_CONFIG_BYTES);
    }
    text[n] = 0;
    int line = 0;
    if (cli_config_parse(out, text, n, &line, sentence)) return CLI_DONE;
    cli_config_free(out);
    return cli_usage("%s, line %d: %s", path, line, sentence);
}

void cli_config_free(cli_config *config)
{
    free(config->items);
    free(config->text);
    *config = (cli_config){0};
}
