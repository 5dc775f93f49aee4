// SPDX-License-Identifier: MIT
// server/ops/access_log.h: a line of JSON for each request that is over. Any thread.
//
// What requests and answers say is not written, nor headers, keys, or what paths have after '?'.
#pragma once
#include "server/api/problem.h"

#include <stddef.h>
#include <stdint.h>

typedef struct server_access_log server_access_log;

typedef struct server_access {
    const char *id, *method, *path;   // path: of the route, or server_access_path
    int status;                       // of HTTP; 0: there was no answer
    bool aborted;                     // the connection ended before the answer did
    const char *model;                // its name, or NULL
    const char *code;                 // of a problem, or NULL
    double seconds;                   // from its head to the end of the answer
    const char *key;                  // of the caller, for people; NULL: none
    bool has_usage;
    uint64_t n_prompt, n_cached, n_answer;
} server_access;

// A path that no route has, as it may stand in a log.
const char *server_access_path(const char *path, char *out, size_t size);
// Appends to the file; "-": to stderr. False with a problem.
bool server_access_log_open(server_access_log **out, const char *path, server_problem *problem);
void server_access_log_write(server_access_log *log, const server_access *access);   // NULL: nothing happens
void server_access_log_close(server_access_log *log);
