// SPDX-License-Identifier: MIT
// Parses the lines of a file of keys. Error messages never contain a key.
#include "common/text_file.h"
#include "server/ops/keys.h"
#include "server/ops/exposed_file.h"

#include "frit_tools.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_BYTES = 1 << 20, MAX_WORDS = 16, MAX_AMOUNT_DIGITS = 15 };

static const char spaces[] = " \t\r";

void server_key_of_text(const char *text, server_key_options *out)
{
    *out = (server_key_options){.weight = 1};
    frit_sha256_of(text, strlen(text), out->hash);
}

// ---------------------------------------------------------------------------------------- words

// Splits the line into words, up to a word that begins with '#', a comment. -1: too many words.
static int cut_words(char *line, char **words)
{
    int n = 0;
    char *rest;
    for (char *word = strtok_r(line, spaces, &rest); word && *word != '#'; word = strtok_r(NULL, spaces, &rest)) {
        if (n == MAX_WORDS) return -1;
        words[n++] = word;
    }
    return n;
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool read_hash(const char *hex, uint8_t *hash)
{
    for (int i = 0; i < 2 * SERVER_KEY_HASH; i++) {
        const int digit = digit_of(hex[i]);
        if (digit < 0) return false;
        hash[i / 2] = (uint8_t)(hash[i / 2] << 4 | digit);
    }
    return hex[2 * SERVER_KEY_HASH] == 0;
}

static bool is_name(const char *name)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("._-@", name[i])) return false;
    return n > 0 && n < SERVER_KEY_NAME;
}

// Reads digits; *end points to what follows.
static bool read_number(const char *text, double *out, const char **end)
{
    int n = 0;
    for (*out = 0; isdigit((unsigned char)text[n]) && n < MAX_AMOUNT_DIGITS; n++) *out = 10 * *out + (text[n] - '0');
    *end = text + n;
    return n > 0 && !isdigit((unsigned char)text[n]);
}

static bool read_limit(const char *text, server_limit *out)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"/s", 1}, {"/min", 60}, {"/hour", 3600}, {"/day", 86400}};
    const char *unit;
    if (!read_number(text, &out->amount, &unit) || out->amount < 1) return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(unit, units[i].unit) != 0) continue;
        out->seconds = units[i].seconds;
        return true;
    }
    return false;
}

static bool read_int(const char *text, int32_t min, int32_t max, int32_t *out)
{
    const bool is_negative = *text == '-';
    double value;
    const char *end;
    if (!read_number(text + is_negative, &value, &end) || *end) return false;
    if (is_negative) value = -value;
    if (value < min || value > max) return false;
    *out = (int32_t)value;
    return true;
}

// ---------------------------------------------------------------------------------------- lines

static bool read_option(const char *word, server_key_options *out, char *why, size_t size)
{
    const size_t n = strcspn(word, "=");
    const char *value = word + n + (word[n] == '=');
    const struct {
        const char *name, *expected;
        server_limit *limit;
        int32_t min, max, *number;
    } rows[] = {
        {"rate", "N/s, N/min, N/hour or N/day", &out->requests, 0, 0, NULL},
        {"tokens", "N/s, N/min, N/hour or N/day", &out->tokens, 0, 0, NULL},
        {"concurrent", "1 to 65536", NULL, 1, 65536, &out->concurrent},
        {"weight", "1 to 1000", NULL, 1, 1000, &out->weight},
        {"priority", "-1000 to 1000", NULL, -1000, 1000, &out->priority},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (word[n] != '=' || strlen(rows[i].name) != n || memcmp(rows[i].name, word, n) != 0) continue;
        const bool good = rows[i].limit ? read_limit(value, rows[i].limit)
                                        : read_int(value, rows[i].min, rows[i].max, rows[i].number);
        if (!good) snprintf(why, size, "%s=%.32s: expected %s", rows[i].name, value, rows[i].expected);
        return good;
    }
    snprintf(why, size, "unknown word after the key; expected rate=, tokens=, concurrent=, weight= or priority=");
    return false;
}

static bool read_key(const char *word, server_key_options *out, char *why, size_t size)
{
    const char *equals = strchr(word, '=');
    if (strncmp(word, "sha256:", 7) == 0) {
        if (read_hash(word + 7, out->hash)) return true;
        snprintf(why, size, "sha256: expected %d hexadecimal digits", 2 * SERVER_KEY_HASH);
        return false;
    }
    // "name=key" without spaces is probably a mistake: Base64 has '=' only at its end.
    if (equals && equals[strspn(equals, "=")]) {
        snprintf(why, size,
                 "'=' within a key; write a name with spaces: NAME = KEY; give a key that contains '=' as sha256:HEX");
        return false;
    }
    frit_sha256_of(word, strlen(word), out->hash);
    out->is_plain = true;
    return true;
}

bool server_key_parse(const char *line, server_key_options *out, bool *is_key, char *why, size_t size)
{
    char copy[2048], *words[MAX_WORDS];
    *out = (server_key_options){.weight = 1};
    *is_key = false;
    const size_t length = strlen(line);
    if (length >= sizeof copy) return snprintf(why, size, "is longer than %zu bytes", sizeof copy - 1), false;
    memcpy(copy, line, length + 1);
    const int n = cut_words(copy, words);
    if (n < 0) return snprintf(why, size, "has more than %d words", MAX_WORDS), false;
    if (n == 0) return true;
    int at = 0;
    if (n > 1 && strcmp(words[1], "=") == 0) {
        if (!is_name(words[0]))
            return snprintf(why, size, "a name has 1 to %d letters, digits and . _ - @", SERVER_KEY_NAME - 1), false;
        if (n == 2) return snprintf(why, size, "'%s' has no key", words[0]), false;
        memcpy(out->name, words[0], strlen(words[0]) + 1);
        at = 2;
    }
    if (!read_key(words[at], out, why, size)) return false;
    for (at++; at < n; at++)
        if (!read_option(words[at], out, why, size)) return false;
    return *is_key = true;
}

// ---------------------------------------------------------------------------------------- files

// Reads the whole file, malloc'd; NULL with a problem.
static char *read_file(const char *path, size_t *n, server_problem *problem)
{
    struct stat info;
    char *text = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *n = 0;
    if (fd < 0 || fstat(fd, &info) != 0) {
        server_refuse(problem, 400, NULL, NULL, "--api-key-file %.300s: %s", path, strerror(errno));
    } else if (!S_ISREG(info.st_mode)) {
        server_refuse(problem, 400, NULL, NULL, "--api-key-file %.300s: is not a regular file", path);
    } else if ((text = malloc(MAX_BYTES + 1)) == NULL) {
        server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    } else {
        ssize_t got = 1;
        while (*n <= MAX_BYTES && (got = read(fd, text + *n, MAX_BYTES + 1 - *n)) > 0) *n += (size_t)got;
        if (got < 0 || *n > MAX_BYTES) {
            const char *why = got < 0 ? strerror(errno) : "is larger than 1 MiB";
            server_refuse(problem, 400, NULL, NULL, "--api-key-file %.300s: %s", path, why);
            free(text);
            text = NULL;
        }
    }
    if (fd >= 0) close(fd);
    return text;
}

static bool refuse_line(server_problem *problem, const char *path, int line, const char *why)
{
    return server_refuse(problem, 400, NULL, NULL, "--api-key-file %.300s: line %d: %s", path, line, why);
}

static bool check_new(const server_key_options *list, size_t n, const server_key_options *key, const char *path,
                      server_problem *problem)
{
    char why[128];
    for (size_t i = 0; i < n; i++) {
        if (memcmp(list[i].hash, key->hash, sizeof key->hash) == 0) {
            snprintf(why, sizeof why, "the key of line %d again", list[i].line);
        } else if (key->name[0] && strcmp(list[i].name, key->name) == 0) {
            snprintf(why, sizeof why, "the name of line %d again", list[i].line);
        } else {
            continue;
        }
        return refuse_line(problem, path, key->line, why);
    }
    return true;
}

static bool add_line(const char *line, int number, server_key_options **list, size_t *n, const char *path,
                     server_problem *problem)
{
    server_key_options key;
    char why[160];
    bool is_key;
    if (!server_key_parse(line, &key, &is_key, why, sizeof why)) return refuse_line(problem, path, number, why);
    if (!is_key) return true;
    key.line = number;
    if (!check_new(*list, *n, &key, path, problem)) return false;
    server_key_options *grown = realloc(*list, (*n + 1) * sizeof *grown);
    if (!grown) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    grown[(*n)++] = key;
    *list = grown;
    return true;
}

bool server_key_file_read(const char *path, server_key_options **out, size_t *n, server_problem *problem)
{
    size_t n_text;
    char *text = read_file(path, &n_text, problem);
    *out = NULL;
    *n = 0;
    if (!text) return false;
    text[n_text] = 0;
    bool good = true;
    int number = 1;
    const char *encoding = app_foreign_encoding(text, n_text);
    if (encoding)
        good = server_refuse(problem, 400, NULL, NULL, "--api-key-file %.300s: is text in %s; expected UTF-8", path,
                             encoding);
    else if (memchr(text, 0, n_text))
        good = server_refuse(problem, 400, NULL, NULL, "--api-key-file %.300s: has a byte 0", path);
    for (char *line = text + app_mark_bytes(text, n_text), *end; good && line; line = end ? end + 1 : NULL, number++) {
        end = strchr(line, '\n');
        if (end) *end = 0;
        good = add_line(line, number, out, n, path, problem);
    }
    if (good && *n == 0) good = server_refuse(problem, 400, NULL, NULL, "--api-key-file %.300s: has no key", path);
    bool is_secret = false;
    for (size_t i = 0; good && i < *n; i++) is_secret |= (*out)[i].is_plain;
    if (good) server_warn_exposed_file("--api-key-file", path, is_secret);
    if (!good) {
        free(*out);
        *out = NULL;
        *n = 0;
    }
    free(text);
    return good;
}
