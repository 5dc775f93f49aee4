// SPDX-License-Identifier: MIT
// server/http/http_client.h: sends JSON to another server by HTTP/1.1 without TLS, one request for each
// connection.
#pragma once
#include "server/api/problem.h"

typedef struct server_target {
    char host[256], port[8], path[512];
} server_target;

// Parses http://HOST[:PORT][/PATH]; `port` and `path` are the defaults. False with a problem of status 400 that names
// the option.
bool server_target_parse(const char *option, const char *url, const char *port, const char *path, server_target *out,
                         server_problem *problem);
// Gives the status of the reply; 0: no reply. Each part of the exchange may take a few seconds.
int server_http_client_post(const server_target *target, const char *text, size_t n);
