// SPDX-License-Identifier: MIT
// support/events_posix.h: parses a complete stream of server-sent events.
#pragma once
#include "support/served_posix.h"

// Returns [{"event": name or null, "data": JSON, or text if it is not JSON}]. Fails the test for a block that is no
// event.
json_t *read_events(const reply *r);
// Returns a text within nested members and items, such as "content.0.text"; fails the test if it is absent.
const char *text_in(const json_t *json, const char *path);
// Returns the value within nested members and items, or NULL.
const json_t *value_in(const json_t *json, const char *path);
void expect_text_in(const json_t *json, const char *path, const char *want);
void expect_int_in(const json_t *json, const char *path, json_int_t want);
// Sends a POST request and checks the status.
json_t *post_for(const served *s, const char *path, const char *body, int status);
json_t *post_for_events(const served *s, const char *path, const char *body);
