// SPDX-License-Identifier: MIT
// server/http/read_heads.h: checks the heads that libmicrohttpd has read.
//
// The accept thread (accept.h) checks the first head of a connection as raw text. Later heads, and all heads over TLS,
// are read by libmicrohttpd alone. Before version 1.0, libmicrohttpd accepts heads that other programs read in another
// way: lines that end with LF alone, control characters, zeros within a header, continued lines. It parses in place and
// writes zeros over separators, so the distances between names and values show what stood between them.
#pragma once
#include "server/http/request_head.h"

struct MHD_Connection;

// Checks the head of a request, on the first call of libmicrohttpd's handler. False with a problem of status 400, 431
// or 505.
bool server_later_head_check(struct MHD_Connection *connection, const char *method, const char *url,
                             const char *version, server_problem *problem);
// The value of MHD_OPTION_STRICT_FOR_CLIENT. Before version 1.0, libmicrohttpd sends two heads when it refuses a
// request for its Host, so server_later_head_check refuses such requests instead.
int server_later_head_strictness(void);
