// SPDX-License-Identifier: MIT
// Parses events, and finds members of answers.
#include "support/events_posix.h"

#include <stdlib.h>
#include <string.h>

static json_t *read_event(const char *block, size_t n)
{
    json_t *event = json_pack("{s:n}", "event");
    for (const char *line = block, *end = block + n; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        const size_t length = (size_t)((stop ? stop : end) - line);
        if (strncmp(line, "event: ", 7) == 0) {
            json_object_set_new(event, "event", json_stringn(line + 7, length - 7));
        } else if (strncmp(line, "data: ", 6) == 0) {
            json_t *data = json_loadb(line + 6, length - 6, 0, NULL);
            json_object_set_new(event, "data", data ? data : json_stringn(line + 6, length - 6));
        } else {
            fail_msg("a line that is no event: %.*s", (int)length, line);
        }
        line += length + 1;
    }
    if (!json_object_get(event, "data")) fail_msg("an event without data: %.*s", (int)n, block);
    return event;
}

json_t *read_events(const reply *r)
{
    json_t *events = json_array();
    assert_true(r->complete);
    for (const char *at = r->body; *at;) {
        const char *end = strstr(at, "\n\n");
        if (!end) fail_msg("an event without an end: %s", at);
        json_array_append_new(events, read_event(at, (size_t)(end - at)));
        at = end + 2;
    }
    return events;
}

const json_t *value_in(const json_t *json, const char *path)
{
    char key[64];
    while (json && *path) {
        const size_t n = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        json = json_is_array(json) ? json_array_get(json, strtoul(key, NULL, 10)) : json_object_get(json, key);
        path += n + (path[n] == '.');
    }
    return json;
}

static void fail_at(const json_t *json, const char *path, const char *want)
{
    char *text = json_dumps(json, 0);
    fail_msg("%s is not %s: %s", path, want, text ? text : "nothing");
    free(text);
}

const char *text_in(const json_t *json, const char *path)
{
    const char *text = json_string_value(value_in(json, path));
    if (!text) fail_at(json, path, "a text");
    return text;
}

void expect_text_in(const json_t *json, const char *path, const char *want)
{
    const char *text = json_string_value(value_in(json, path));
    if (!text || strcmp(text, want) != 0) fail_at(json, path, want);
}

void expect_int_in(const json_t *json, const char *path, json_int_t want)
{
    char text[32];
    snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, want);
    const json_t *value = value_in(json, path);
    if (!json_is_integer(value) || json_integer_value(value) != want) fail_at(json, path, text);
}

json_t *post_for(const served *s, const char *path, const char *body, int status)
{
    reply r = post(s, path, body);
    if (r.status != status) fail_msg("%s %s: %d %s", path, body, r.status, r.body);
    json_t *json = reply_json(&r);
    reply_free(&r);
    return json;
}

json_t *post_for_events(const served *s, const char *path, const char *body)
{
    reply r = post(s, path, body);
    if (r.status != 200) fail_msg("%s %s: %d %s", path, body, r.status, r.body);
    assert_string_equal(reply_header(&r, "Content-Type"), "text/event-stream");
    json_t *events = read_events(&r);
    reply_free(&r);
    return events;
}
