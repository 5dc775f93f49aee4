// SPDX-License-Identifier: MIT
// server/api/problem.h: why a request is refused or failed, and its JSON in OpenAI's form.
//
//     return server_refuse(problem, 400, NULL, "stop", "stop: expected a string or a list of strings");
//
//     {"error": {"message": "...", "type": "invalid_request_error", "param": "stop", "code": null}}
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct server_problem {
    int status;          // HTTP status; 0: there is no problem
    const char *code;    // a constant such as "model_not_found", or NULL
    char param[64];      // the field, or ""
    char message[640];   // UTF-8
    int retry_after;     // seconds for the header Retry-After; 0: none
} server_problem;

// Writes the problem and returns false. `code` must be a constant or NULL; `param` is copied and may be NULL.
bool server_refuse(server_problem *problem, int status, const char *code, const char *param, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
// Refuses a request because a library call failed with `status`: the thread's error is the message, without the folder
// of a path that it begins with. Returns false.
bool server_refuse_status(server_problem *problem, int http_status, const char *param, int status);
// Refuses a request because of a library error that has a field (frit_error_field) and a code. `param` is the request's
// name for the field and replaces the library's name in the message. Returns false.
bool server_refuse_field(server_problem *problem, int http_status, const char *param, int status);
// Refuses a request with status 503 because the server is shutting down; the client may retry in 5 seconds. Returns
// false.
bool server_refuse_shutting_down(server_problem *problem);
// The sentence without the folder of a path that it begins with: clients know files by name only.
const char *server_without_folder(const char *sentence);

// The message as a JSON string.
json_t *server_problem_message(const server_problem *problem);
// The error object as malloc'd JSON. NULL if memory is short.
char *server_problem_json(const server_problem *problem);
