// SPDX-License-Identifier: MIT
// server/http/read_heads.h: checks the heads that libmicrohttpd has read.
//
// accept.h sees the first head of a connection before libmicrohttpd does, which reads the later ones alone, and all of
// TLS. Before version 1.0 it takes what other programs read in another way: lines that end with LF alone, control
// characters, zeros within a header, lines that continue. Its values lie where they came, with zeros in place of what
// stood between them, so whether each begins where the one before ends tells what was there.
#pragma once
#include "server/http/request_head.h"

struct MHD_Connection;

// All of them as libmicrohttpd's handler gets them, on its first call for a request. False with a problem of status
// 400, 431 or 505.
bool server_later_head_check(struct MHD_Connection *connection, const char *method, const char *url,
                             const char *version, server_problem *problem);
// For MHD_OPTION_STRICT_FOR_CLIENT. Before 1.0 a request that libmicrohttpd refuses for its Host gets two heads: here
// server_later_head_check refuses it.
int server_later_head_strictness(void);
