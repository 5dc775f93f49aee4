// SPDX-License-Identifier: MIT
// JSON as Python reads it: text that Jansson refuses is rewritten first.
#include "format/json.h"

#include "base/buf.h"
#include "base/number.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

// Returns the length of the string at `text`, whose first byte is a quote.
static size_t string_length(const char *text, size_t n)
{
    size_t i = 1;
    while (i < n && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
    return i < n ? i + 1 : n;
}

static bool is_in_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' || c == '+' ||
           c == '-';
}

static void rewrite_number(frit_str word, frit_buf *out)
{
    enum { LONGEST_WHOLE = 18 };
    double value = 0;
    const bool is_number = frit_parse_double(word.ptr, word.len, &value) == word.len;
    bool is_whole = is_number;
    for (size_t i = 0; i < word.len; i++) is_whole = is_whole && !strchr(".eE", word.ptr[i]);
    if (is_number && isinf(value))
        frit_buf_text(out, value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
    else
        frit_buf_append(out, word.ptr, word.len);
    if (is_whole && !isinf(value) && word.len > LONGEST_WHOLE) frit_buf_text(out, ".0");
}

static void rewrite_word(frit_str word, frit_buf *out)
{
    static const char *const names[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < FRIT_COUNT(names); i++)
        if (frit_str_is(word, names[i])) {
            frit_buf_printf(out, "\"%s\"", names[i]);
            return;
        }
    rewrite_number(word, out);
}

// Returns the number after "\u" at `text`, or -1.
static int escaped_code(const char *text, size_t n)
{
    int code = 0;
    if (n < 6 || text[0] != '\\' || text[1] != 'u') return -1;
    for (size_t i = 2; i < 6; i++) {
        if (!isxdigit((unsigned char)text[i])) return -1;
        code = 16 * code + (text[i] <= '9' ? text[i] - '0' : (text[i] | 0x20) - 'a' + 10);
    }
    return code;
}

// Jansson refuses half a surrogate pair, and zero unless the caller asks for it. They become U+FFFD.
static void rewrite_string(const char *text, size_t n, bool has_zero, frit_buf *out)
{
    for (size_t i = 0, len; i < n; i += len) {
        const int code = escaped_code(text + i, n - i);
        const int next = code < 0 ? -1 : escaped_code(text + i + 6, n - i - 6);
        const bool is_pair = code >= 0xd800 && code < 0xdc00 && next >= 0xdc00 && next < 0xe000;
        const bool is_refused = (code == 0 && !has_zero) || (code >= 0xd800 && code < 0xe000 && !is_pair);
        len = is_pair ? 12 : code >= 0 ? 6 : text[i] == '\\' && i + 1 < n ? 2 : 1;
        if (is_refused)
            frit_buf_text(out, "\\ufffd");
        else
            frit_buf_append(out, text + i, len);
    }
}

static void rewrite(const char *text, size_t n, bool has_zero, frit_buf *out)
{
    for (size_t i = 0, len; i < n; i += len) {
        len = 1;
        if (text[i] == '"') {
            len = string_length(text + i, n - i);
            rewrite_string(text + i, len, has_zero, out);
            continue;
        }
        if (!is_in_word(text[i])) {
            frit_buf_append(out, text + i, len);
            continue;
        }
        while (i + len < n && is_in_word(text[i + len])) len++;
        rewrite_word((frit_str){text + i, len}, out);
    }
}

json_t *frit_json_read(const char *text, size_t n_bytes, size_t flags, json_error_t *error)
{
    static const char mark[] = "\xef\xbb\xbf";
    const size_t n_mark = n_bytes >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    json_t *json = json_loadb(text + n_mark, n_bytes - n_mark, flags, error);
    if (json) return json;
    frit_buf other = {0};
    json_error_t unused;
    if (!error) error = &unused;
    rewrite(text + n_mark, n_bytes - n_mark, flags & JSON_ALLOW_NUL, &other);
    json = other.failed ? NULL : json_loadb(other.data, other.len, flags, error);
    if (!json && n_bytes >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
        snprintf(error->text, sizeof error->text, "the text is UTF-16, expected UTF-8");
    frit_buf_free(&other);
    return json;
}
