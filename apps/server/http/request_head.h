// SPDX-License-Identifier: MIT
// server/http/request_head.h: checks the head of a request, its first line and headers, by RFC 9112.
//
// A head that a proxy could read in another way is refused, so that no request can hide in the body of another one: two
// lengths, or a length beside Transfer-Encoding; codings other than "chunked"; names with spaces; no Host, or several.
#pragma once
#include "server/api/problem.h"

enum { SERVER_MAX_HEAD = 16 << 10, SERVER_MAX_HEADERS = 256, SERVER_MAX_ARGUMENTS = 64 };   // bytes, lines

typedef struct server_header {
    const char *name, *value;
    size_t n_name, n_value;
} server_header;

typedef struct server_request_head {
    bool is_http_1_0;
    int n_host, n_length, n_coding;
    bool bad_name, bad_host, bad_length, bad_coding;
} server_request_head;

// Call the first function for each header, in any order, and then the second one: false with a problem of status 400.
void server_request_head_add(server_request_head *head, const server_header *header);
bool server_request_head_check(const server_request_head *head, server_problem *problem);

// Bytes of the head at the start of `text`, with its empty line; 0: the head is not complete.
size_t server_request_head_length(const char *text, size_t n);
// Checks a complete head. False with a problem of status 400, 414, 431 or 505. *is_health: the request is for /health,
// for which connections are reserved.
bool server_request_head_read(const char *text, size_t n, bool *is_health, server_problem *problem);
