// SPDX-License-Identifier: MIT
// server/http/listen.h: the socket that the server listens on.
//
//     HOST, PORT                  a name or an address, and a port; 0: any that is free
//     unix:PATH or PATH.sock      a Unix socket. A file that a dead server has left is replaced, a live one is not
//     $LISTEN_FDS, $LISTEN_PID    a socket that was opened by the parent, systemd's socket activation: goes before both
#pragma once
#include "server/api/problem.h"

#include <sys/types.h>

typedef struct server_listen_options {
    const char *host;
    int port;
    const char *socket_mode;   // of a Unix socket's file, in octal
    bool is_tls;
    bool is_guarded;   // keys are asked for, or it is said that none are needed: other machines may connect
} server_listen_options;

typedef struct server_listener {
    int fd;
    bool is_loopback;   // on a loopback address
    bool is_unix;
    char url[192];   // "http://127.0.0.1:8080" (of TLS: https), "unix:/run/frit.sock"
    // Of a Unix socket's file that the server has made; NULL: none.
    char *path;
    dev_t device;
    ino_t inode;
} server_listener;

// False with a problem: of status 400 if the options are wrong, 500 otherwise.
bool server_listen(server_listener *out, const server_listen_options *options, server_problem *problem);
// Removes the file of a Unix socket, unless another server has replaced it. The descriptor is the caller's.
void server_listener_end(server_listener *listener);
