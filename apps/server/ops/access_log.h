// SPDX-License-Identifier: MIT
// server/ops/access_log.h: writes a line of JSON for each finished request. Any thread.
//
// The log has no texts of requests and replies, no headers, no keys, and no arguments of paths.
#pragma once
#include "server/api/problem.h"

#include <stddef.h>
#include <stdint.h>

typedef struct server_access_log server_access_log;

typedef struct server_access {
    const char *id, *method, *path;   // path: that of the route, or from server_access_path
    int status;                       // of HTTP; 0: no reply
    bool aborted;                     // the connection ended before the reply
    const char *model;                // the name, or NULL
    const char *code;                 // of a problem, or NULL
    double seconds;                   // from the head to the end of the reply
    const char *key;                  // label of the caller's key; NULL: none
    bool has_usage;
    uint64_t n_prompt, n_cached, n_answer;
} server_access;

// The path of an unknown route, shortened for the log.
const char *server_access_path(const char *path, char *out, size_t size);
// Opens a file to append to; "-": stderr. False with a problem.
bool server_access_log_open(server_access_log **out, const char *path, server_problem *problem);
void server_access_log_write(server_access_log *log, const server_access *access);   // `log` NULL: does nothing
void server_access_log_close(server_access_log *log);
