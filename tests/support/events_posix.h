// SPDX-License-Identifier: MIT
// support/events_posix.h: a stream of server-sent events, whole.
#pragma once
#include "support/served_posix.h"

// [{"event": name or null, "data": JSON, or text where it is none}]. Fails the test where a block is no event.
json_t *read_events(const reply *r);
// A text within nested members and items, as "content.0.text"; fails the test if there is none.
const char *text_in(const json_t *json, const char *path);
// What is there, or NULL.
const json_t *value_in(const json_t *json, const char *path);
void expect_text_in(const json_t *json, const char *path, const char *want);
void expect_int_in(const json_t *json, const char *path, json_int_t want);
// POST with the status that is expected.
json_t *post_for(const served *s, const char *path, const char *body, int status);
json_t *post_for_events(const served *s, const char *path, const char *body);
