// SPDX-License-Identifier: MIT
// server/http/listen.h: opens the socket that the server listens on.
//
//     HOST, PORT                  a name or an address, and a port; 0: any that is free
//     unix:PATH or PATH.sock      a Unix socket. The file of a dead server is replaced, that of a live one is not
//     $LISTEN_FDS, $LISTEN_PID    a socket from the parent (systemd's socket activation); it is used before the others
#pragma once
#include "server/api/problem.h"

#include <sys/types.h>

typedef struct server_listen_options {
    const char *host;
    int port;
    const char *socket_mode;   // mode of the file of a Unix socket, in octal
    bool is_tls;
    bool is_guarded;   // other machines may connect: there are keys, or the user said that none are needed
} server_listen_options;

typedef struct server_listener {
    int fd;
    bool is_loopback;   // the address is a loopback address
    bool is_unix;
    char url[192];   // "http://127.0.0.1:8080" (https with TLS), "unix:/run/frit.sock"
    // The file of a Unix socket that the server made; NULL: none.
    char *path;
    dev_t device;
    ino_t inode;
} server_listener;

// False with a problem of status 400 if the options are wrong, else of status 500.
bool server_listen(server_listener *out, const server_listen_options *options, server_problem *problem);
// Removes the file of a Unix socket, unless another server has replaced it. Does not close the socket.
void server_listener_end(server_listener *listener);
