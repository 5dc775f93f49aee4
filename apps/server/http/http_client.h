// SPDX-License-Identifier: MIT
// server/http/http_client.h: sends JSON to another server, over HTTP/1.1 without TLS: one request a connection.
#pragma once
#include "server/api/problem.h"

typedef struct server_target {
    char host[256], port[8], path[512];
} server_target;

// http://HOST[:PORT][/PATH]; without a path: `path`. False with a problem of status 400 that names the option.
bool server_target_parse(const char *option, const char *url, const char *port, const char *path, server_target *out,
                         server_problem *problem);
// Waits some seconds at most for each part of it. The status of the reply; 0: there was no reply.
int server_http_client_post(const server_target *target, const char *text, size_t n);
