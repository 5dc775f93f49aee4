// SPDX-License-Identifier: MIT
// Sends datagrams to the service manager.
#include "server/ops/notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

void server_notify(const char *format, ...)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t n_path = path ? strlen(path) : 0;
    if (n_path < 2 || n_path >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@')) return;
    memcpy(address.sun_path, path, n_path);
    if (path[0] == '@') address.sun_path[0] = 0;   // an abstract name begins with a zero
    char text[1024];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const size_t size = n < (int)sizeof text ? (size_t)(n > 0 ? n : 0) : sizeof text - 1;
    const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (fd < 0) return;
    const socklen_t n_address = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n_path);
    (void)!sendto(fd, text, size, MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&address, n_address);
    close(fd);
}

void server_notify_reloading(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    server_notify("RELOADING=1\nMONOTONIC_USEC=%lld", (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
}
