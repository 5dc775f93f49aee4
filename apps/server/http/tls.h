// SPDX-License-Identifier: MIT
// server/http/tls.h: the certificate and the private key of a server that speaks TLS, for libmicrohttpd, which uses
// GnuTLS.
//
// Both are PEM files; that of the certificate may have the chain after it. New connections use the files as they were
// read last. A process has one server_tls, because libmicrohttpd's callback gets no context.
#pragma once
#include "server/api/problem.h"

typedef struct server_tls server_tls;

// False with a problem of status 400 if a file is missing or wrong, or this build has no TLS.
bool server_tls_open(server_tls **out, const char *certificate, const char *key, server_problem *problem);
// Reads the files again. False with a problem; the certificate and the key stay as they were.
bool server_tls_reload(server_tls *tls, server_problem *problem);
void server_tls_close(server_tls *tls);   // after the last connection
// The values of MHD_OPTION_HTTPS_CERT_CALLBACK and MHD_OPTION_HTTPS_PRIORITIES.
void *server_tls_callback(void);
const char *server_tls_priorities(void);
