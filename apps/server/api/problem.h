// SPDX-License-Identifier: MIT
// server/api/problem.h: why a request is refused or fails, in the shape that OpenAI's clients read.
//
//     return server_refuse(problem, 400, NULL, "stop", "stop: expected a string or a list of strings");
//
//     {"error": {"message": "...", "type": "invalid_request_error", "param": "stop", "code": null}}
#pragma once
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct server_problem {
    int status;          // of HTTP; 0: there is no problem
    const char *code;    // constant: "model_not_found"; or NULL
    char param[64];      // the field, or ""
    char message[640];   // UTF-8
    int retry_after;     // seconds; 0: not said
} server_problem;

// Writes the problem and returns false. `code` must be a constant or NULL; `param` is copied and may be NULL.
bool server_refuse(server_problem *problem, int status, const char *code, const char *param, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
// Likewise from a failed library call: its sentence is the message, without the folder of a file that it begins with.
bool server_refuse_status(server_problem *problem, int http_status, const char *param, int status);
// Likewise from a failed library call that names a field (frit_error_field) and a code. `param` is the request's name
// for the field, which the message has in place of the library's.
bool server_refuse_field(server_problem *problem, int http_status, const char *param, int status);
// Where files lie on the server's machine is not for clients: they know a file by its name.
const char *server_without_folder(const char *sentence);

// The message as a JSON string.
json_t *server_problem_message(const server_problem *problem);
// malloc'd JSON text, or NULL when out of memory.
char *server_problem_json(const server_problem *problem);
