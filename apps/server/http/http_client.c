// SPDX-License-Identifier: MIT
// An HTTP client for small requests.
#include "server/http/http_client.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

enum { PATIENCE_S = 3 };

static bool refuse_url(server_problem *problem, const char *option, const char *url)
{
    return server_refuse(problem, 400, NULL, NULL, "--%s %.300s: expected http://HOST[:PORT][/PATH]", option, url);
}

bool server_target_parse(const char *option, const char *url, const char *port, const char *path, server_target *out,
                         server_problem *problem)
{
    static const char scheme[] = "http://";
    if (strncmp(url, scheme, sizeof scheme - 1) != 0) return refuse_url(problem, option, url);
    for (const char *c = url; *c; c++)
        if (*c <= ' ' || *c == 127 || *c == '@') return refuse_url(problem, option, url);
    const char *host = url + sizeof scheme - 1, *end = host + strcspn(host, "/");
    const bool is_v6 = *host == '[';
    const char *host_end = is_v6 ? strchr(host, ']') : host + strcspn(host, ":/");
    if (!host_end || host_end > end) return refuse_url(problem, option, url);
    const char *colon = host_end + is_v6;
    const size_t n_host = (size_t)(host_end - host) - is_v6;
    const size_t n_port = *colon == ':' ? (size_t)(end - colon - 1) : 0;
    if (n_host == 0 || n_host >= sizeof out->host || (*colon == ':') != (n_port > 0) || n_port > 5 ||
        (*colon != ':' && colon != end) || strspn(colon + 1, "0123456789") < n_port || strlen(end) >= sizeof out->path)
        return refuse_url(problem, option, url);
    snprintf(out->host, sizeof out->host, "%.*s", (int)n_host, host + is_v6);
    snprintf(out->port, sizeof out->port, "%.*s", n_port ? (int)n_port : 5, n_port ? colon + 1 : port);
    snprintf(out->path, sizeof out->path, "%s", end[0] && end[1] ? end : path);
    return true;
}

static bool connect_in_time(int fd, const struct addrinfo *address)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t n = sizeof error;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0) {
        if (errno != EINPROGRESS || poll(&ready, 1, 1000 * PATIENCE_S) != 1) return false;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0 || error != 0) return false;
    }
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0;
}

static int connect_to(const server_target *target)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int fd = -1;
    if (getaddrinfo(target->host, target->port, &hints, &found) != 0) return -1;
    for (const struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, SOCK_STREAM, 0);
        if (fd < 0 || connect_in_time(fd, a)) continue;
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

static bool send_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        const ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes += sent;
        n -= (size_t)sent;
    }
    return true;
}

// Reads the status of "HTTP/1.1 200 OK"; 0: the reply is not HTTP.
static int read_status(int fd)
{
    char line[64];
    size_t n = 0;
    while (n < 12) {
        const ssize_t got = recv(fd, line + n, sizeof line - 1 - n, 0);
        if (got <= 0) return 0;
        n += (size_t)got;
    }
    line[n] = 0;
    return strncmp(line, "HTTP/1.", 7) == 0 ? (int)strtol(line + 9, NULL, 10) : 0;
}

int server_http_client_post(const server_target *target, const char *text, size_t n)
{
    char head[1024];
    const bool is_v6 = strchr(target->host, ':') != NULL;
    const int n_head = snprintf(head, sizeof head,
                                "POST %s HTTP/1.1\r\nHost: %s%s%s:%s\r\nContent-Type: application/json\r\n"
                                "Content-Length: %zu\r\nConnection: close\r\n\r\n",
                                target->path, is_v6 ? "[" : "", target->host, is_v6 ? "]" : "", target->port, n);
    const int fd = connect_to(target);
    if (fd < 0) return 0;
    const bool sent = send_all(fd, head, (size_t)n_head) && send_all(fd, text, n);
    const int status = sent ? read_status(fd) : 0;
    close(fd);
    return status;
}
