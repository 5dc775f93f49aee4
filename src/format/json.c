// SPDX-License-Identifier: MIT
// JSON as Python reads it: text that Jansson refuses is rewritten first.
#include "format/json.h"

#include "base/buf.h"
#include "base/number.h"

#include <math.h>

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

static void rewrite(const char *text, size_t n, frit_buf *out)
{
    for (size_t i = 0, len; i < n; i += len) {
        len = 1;
        if (text[i] == '"') len = string_length(text + i, n - i);
        if (text[i] == '"' || !is_in_word(text[i])) {
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
    rewrite(text + n_mark, n_bytes - n_mark, &other);
    json = other.failed ? NULL : json_loadb(other.data, other.len, flags, error ? error : &unused);
    frit_buf_free(&other);
    return json;
}
