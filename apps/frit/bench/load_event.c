// SPDX-License-Identifier: MIT
// Events of a server's stream: lines are cut out of the bytes as they come, and each event's JSON is read once, without
// memory of its own, as hundreds of streams share one thread.
#include "frit/bench/load.h"

#include "common/grow.h"

#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------------- JSON

enum { MAX_DEPTH = 64 };

typedef struct scan {
    const char *at, *end;
    int depth;
} scan;

typedef struct span {   // the characters of a string, escapes as they are
    const char *at;
    size_t n;
} span;

// Reads the value of a member.
typedef bool (*member_fn)(scan *s, span key, load_event *event);

static char peek(scan *s)
{
    while (s->at < s->end && strchr(" \t\r\n", *s->at) && *s->at) s->at++;
    return s->at < s->end ? *s->at : 0;
}

static bool take(scan *s, char c)
{
    if (peek(s) != c) return false;
    s->at++;
    return true;
}

static bool read_string(scan *s, span *out)
{
    if (!take(s, '"')) return false;
    out->at = s->at;
    for (; s->at < s->end && *s->at != '"'; s->at++) {
        if ((unsigned char)*s->at < 32) return false;
        if (*s->at == '\\' && ++s->at == s->end) return false;
    }
    if (s->at == s->end) return false;
    out->n = (size_t)(s->at++ - out->at);
    return true;
}

static bool skip_word(scan *s)
{
    const char *first = s->at;
    while (s->at < s->end && *s->at && strchr("+-.0123456789abcdefghijklmnopqrstuvwxyzE", *s->at)) s->at++;
    const size_t n = (size_t)(s->at - first);
    if (n == 0) return false;
    if (*first == '-' || (*first >= '0' && *first <= '9')) return true;
    return (n == 4 && (memcmp(first, "true", 4) == 0 || memcmp(first, "null", 4) == 0)) ||
           (n == 5 && memcmp(first, "false", 5) == 0);
}

static bool skip_value(scan *s, span key, load_event *event);

static bool read_object(scan *s, member_fn member, load_event *event)
{
    span key;
    if (!take(s, '{') || ++s->depth > MAX_DEPTH) return false;
    if (take(s, '}')) return s->depth-- > 0;
    do {
        if (!read_string(s, &key) || !take(s, ':') || !member(s, key, event)) return false;
    } while (take(s, ','));
    s->depth--;
    return take(s, '}');
}

static bool read_array(scan *s, member_fn item, load_event *event)
{
    if (!take(s, '[') || ++s->depth > MAX_DEPTH) return false;
    if (take(s, ']')) return s->depth-- > 0;
    do {
        if (!item(s, (span){"", 0}, event)) return false;
    } while (take(s, ','));
    s->depth--;
    return take(s, ']');
}

static bool skip_value(scan *s, span key, load_event *event)
{
    span text;
    (void)key;
    const char first = peek(s);
    if (first == '{') return read_object(s, skip_value, event);
    if (first == '[') return read_array(s, skip_value, event);
    return first == '"' ? read_string(s, &text) : skip_word(s);
}

static bool is_key(span key, const char *name)
{
    return key.n == strlen(name) && memcmp(key.at, name, key.n) == 0;
}

// Reads a number of tokens; other values are skipped.
static bool read_count(scan *s, int64_t *out)
{
    const char first = peek(s), *at = s->at;
    if (!skip_value(s, (span){"", 0}, NULL)) return false;
    if (first < '0' || first > '9') return true;
    int64_t n = 0;
    for (; at < s->at && *at >= '0' && *at <= '9' && n < INT32_MAX; at++) n = 10 * n + (*at - '0');
    *out = n;
    return true;
}

// ---------------------------------------------------------------------------------------- events

static bool read_details(scan *s, span key, load_event *event)
{
    return is_key(key, "cached_tokens") ? read_count(s, &event->n_cached) : skip_value(s, key, event);
}

static bool read_usage(scan *s, span key, load_event *event)
{
    if (is_key(key, "prompt_tokens")) return read_count(s, &event->n_in);
    if (is_key(key, "completion_tokens")) return read_count(s, &event->n_out);
    if (is_key(key, "prompt_tokens_details") && peek(s) == '{') return read_object(s, read_details, event);
    return skip_value(s, key, event);
}

static bool read_text(scan *s, load_event *event)
{
    span text = {"", 0};
    const bool good = peek(s) == '"' ? read_string(s, &text) : skip_value(s, text, event);
    event->has_text = event->has_text || text.n > 0;
    return good;
}

static bool read_delta(scan *s, span key, load_event *event)
{
    const bool is_text = is_key(key, "content") || is_key(key, "reasoning_content");
    return is_text ? read_text(s, event) : skip_value(s, key, event);
}

// Some servers send "" until the answer ends.
static bool read_reason(scan *s, load_event *event)
{
    span reason;
    const bool good = read_string(s, &reason);
    event->is_end = event->is_end || (good && reason.n > 0);
    return good;
}

static bool read_choice(scan *s, span key, load_event *event)
{
    if (is_key(key, "text")) return read_text(s, event);
    if (is_key(key, "finish_reason") && peek(s) == '"') return read_reason(s, event);
    if (is_key(key, "delta") && peek(s) == '{') return read_object(s, read_delta, event);
    return skip_value(s, key, event);
}

static bool read_choice_item(scan *s, span key, load_event *event)
{
    event->has_choice = true;
    return peek(s) == '{' ? read_object(s, read_choice, event) : skip_value(s, key, event);
}

static bool read_error(scan *s, span key, load_event *event)
{
    span text;
    if (!is_key(key, "message") || peek(s) != '"') return skip_value(s, key, event);
    if (!read_string(s, &text)) return false;
    event->message = text.at;
    event->n_message = text.n;
    return true;
}

static bool read_top(scan *s, span key, load_event *event)
{
    const char first = peek(s);
    if (is_key(key, "choices") && first == '[') return read_array(s, read_choice_item, event);
    if (is_key(key, "usage") && first == '{') return read_object(s, read_usage, event);
    if (is_key(key, "error") && first != 'n') event->is_error = true;
    if (is_key(key, "error") && first == '{') return read_object(s, read_error, event);
    if (is_key(key, "error") && first == '"') return read_error(s, (span){"message", 7}, event);
    return skip_value(s, key, event);
}

bool load_event_read(load_event *event, const char *text, size_t n)
{
    scan s = {.at = text, .end = text + n};
    *event = (load_event){.n_in = -1, .n_out = -1, .n_cached = -1};
    return read_object(&s, read_top, event) && peek(&s) == 0 && s.at == s.end;
}

// ---------------------------------------------------------------------------------------- lines

static bool take_line(const char *line, size_t n, load_data_fn data, void *ctx)
{
    if (n < 5 || memcmp(line, "data:", 5) != 0) return true;   // a comment, an empty line, or another field
    const size_t skip = n > 5 && line[5] == ' ' ? 6 : 5;
    return data(ctx, line + skip, n - skip);
}

static const char *find_end(const char *bytes, size_t n)
{
    const char *line_feed = memchr(bytes, '\n', n);
    const char *carriage_return = memchr(bytes, '\r', line_feed ? (size_t)(line_feed - bytes) : n);
    return carriage_return ? carriage_return : line_feed;
}

static load_feed keep(load_line_reader *lines, const char *bytes, size_t n)
{
    if (lines->n + n > LOAD_MAX_LINE) return LOAD_FEED_TOO_LONG;
    if (!APP_GROW(lines->bytes, lines->capacity, lines->n + n)) return LOAD_FEED_NO_MEMORY;
    if (n > 0) memcpy(lines->bytes + lines->n, bytes, n);
    lines->n += n;
    return LOAD_FEED_OK;
}

load_feed load_line_reader_feed(load_line_reader *lines, const char *bytes, size_t n, load_data_fn data, void *ctx)
{
    while (n > 0) {
        const char *end = find_end(bytes, n);
        const size_t n_part = end ? (size_t)(end - bytes) : n;
        const bool is_whole = end && lines->n == 0;
        const load_feed fed = is_whole ? LOAD_FEED_OK : keep(lines, bytes, n_part);
        if (fed != LOAD_FEED_OK) return fed;
        if (!end) return LOAD_FEED_OK;
        const bool goes_on =
            is_whole ? take_line(bytes, n_part, data, ctx) : take_line(lines->bytes, lines->n, data, ctx);
        lines->n = 0;
        if (!goes_on) return LOAD_FEED_STOPPED;
        bytes += n_part + 1;
        n -= n_part + 1;
    }
    return LOAD_FEED_OK;
}

void load_line_reader_free(load_line_reader *lines)
{
    free(lines->bytes);
    *lines = (load_line_reader){0};
}
