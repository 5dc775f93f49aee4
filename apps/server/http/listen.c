// SPDX-License-Identifier: MIT
// Opens sockets: addresses, Unix sockets, sockets of the parent.
#include "server/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 511, FIRST_INHERITED = 3 };

static bool refuse_at(server_problem *problem, const char *host, const char *why)
{
    return server_refuse(problem, 500, NULL, NULL, "cannot listen on %.300s: %s", host, why);
}

// ---------------------------------------------------------------------------------------- addresses

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return (ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24) == 127;
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

static bool check_exposed(const server_listen_options *options, const struct sockaddr *address, const char *host,
                          server_problem *problem)
{
    if (address->sa_family == AF_UNIX || is_loopback(address) || options->is_guarded) return true;
    return server_refuse(problem, 400, NULL, NULL,
                         "%.300s lets the whole network use the model: set --api-key KEY or --api-key-file FILE, or "
                         "--no-auth if that is meant",
                         host);
}

static bool listen_at(const struct addrinfo *address, const server_listen_options *options, int *out,
                      server_problem *problem)
{
    int one = 1, fd = socket(address->ai_family, SOCK_STREAM, 0);
    bool good = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
                bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0;
    if (!good) {
        server_refuse(problem, 500, NULL, NULL, "cannot listen on %.300s, port %d: %s", options->host, options->port,
                      strerror(errno));
        if (fd >= 0) close(fd);
        return false;
    }
    *out = fd;
    return true;
}

// Sets the kind of an open socket, and the URL that clients use.
static bool describe_socket(server_listener *listener, bool is_tls, struct sockaddr_storage *address,
                            server_problem *problem)
{
    socklen_t n = sizeof *address;
    char host[64], port[16];
    memset(address, 0, sizeof *address);
    if (getsockname(listener->fd, (struct sockaddr *)address, &n) != 0)
        return server_refuse(problem, 500, NULL, NULL, "the socket has no address: %s", strerror(errno));
    listener->is_unix = address->ss_family == AF_UNIX;
    listener->is_loopback = is_loopback((struct sockaddr *)address);
    if (listener->is_unix) {
        const struct sockaddr_un *local = (const struct sockaddr_un *)address;
        const bool is_abstract = local->sun_path[0] == 0;
        snprintf(listener->url, sizeof listener->url, "unix:%s%.107s", is_abstract ? "@" : "",
                 local->sun_path + is_abstract);
        return true;
    }
    const int error = getnameinfo((struct sockaddr *)address, n, host, sizeof host, port, sizeof port,
                                  NI_NUMERICHOST | NI_NUMERICSERV);
    if (error != 0)
        return server_refuse(problem, 500, NULL, NULL, "the socket has no address: %s", gai_strerror(error));
    const bool v6 = address->ss_family == AF_INET6;
    snprintf(listener->url, sizeof listener->url, "http%s://%s%s%s:%s", is_tls ? "s" : "", v6 ? "[" : "", host,
             v6 ? "]" : "", port);
    return true;
}

static bool open_address(server_listener *out, const server_listen_options *options, server_problem *problem)
{
    char port[16], name[320];
    snprintf(port, sizeof port, "%d", options->port);
    snprintf(name, sizeof name, "--host %.300s", options->host);
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    const int error = getaddrinfo(options->host, port, &hints, &found);
    if (error != 0) return server_refuse(problem, 400, NULL, NULL, "%s: %s", name, gai_strerror(error));
    const bool good =
        check_exposed(options, found->ai_addr, name, problem) && listen_at(found, options, &out->fd, problem);
    freeaddrinfo(found);
    return good;
}

// ---------------------------------------------------------------------------------------- Unix sockets

// The path in "unix:PATH" and "PATH.sock"; NULL: not a Unix socket.
static const char *unix_path(const char *host)
{
    const size_t n = strlen(host);
    if (strncmp(host, "unix:", 5) == 0) return host + 5;
    return n > 5 && strcmp(host + n - 5, ".sock") == 0 ? host : NULL;
}

// Removes the file of a socket that no process listens on.
static bool make_way(const struct sockaddr_un *address, server_problem *problem)
{
    struct stat info;
    const char *path = address->sun_path;
    if (lstat(path, &info) != 0) return errno == ENOENT || refuse_at(problem, path, strerror(errno));
    if (!S_ISSOCK(info.st_mode)) return refuse_at(problem, path, "there is a file of that name, which is no socket");
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0) return refuse_at(problem, path, strerror(errno));
    fcntl(fd, F_SETFL, O_NONBLOCK);   // a connection that would block means a live server
    const bool is_live = connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 || errno != ECONNREFUSED;
    close(fd);
    if (is_live) return refuse_at(problem, path, "another server listens there");
    return unlink(path) == 0 || refuse_at(problem, path, strerror(errno));
}

static bool read_mode(const char *text, mode_t *mode, server_problem *problem)
{
    const size_t n = strlen(text);
    *mode = (mode_t)strtoul(text, NULL, 8);
    if (n > 0 && n <= 4 && strspn(text, "01234567") == n && *mode <= 0777) return true;
    return server_refuse(problem, 400, NULL, NULL, "--socket-mode %.32s: expected 0 to 777, in octal", text);
}

static bool open_unix(server_listener *out, const char *path, const char *mode_text, server_problem *problem)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat info;
    mode_t mode;
    const size_t n = strlen(path);
    if (!read_mode(mode_text, &mode, problem)) return false;
    if (n == 0 || n >= sizeof address.sun_path)
        return server_refuse(problem, 400, NULL, NULL, "--host: the path of a socket has %zu bytes; expected 1 to %zu",
                             n, sizeof address.sun_path - 1);
    memcpy(address.sun_path, path, n + 1);
    if (!make_way(&address, problem)) return false;
    out->fd = socket(AF_UNIX, SOCK_STREAM, 0);
    const bool is_bound = out->fd >= 0 && bind(out->fd, (struct sockaddr *)&address, sizeof address) == 0;
    // No client can connect before `listen`.
    if (is_bound && chmod(path, mode) == 0 && lstat(path, &info) == 0 && listen(out->fd, BACKLOG) == 0) {
        out->device = info.st_dev;
        out->inode = info.st_ino;
        out->path = realpath(path, NULL);   // the server may change its folder
        return true;
    }
    refuse_at(problem, path, strerror(errno));
    if (is_bound) unlink(path);
    if (out->fd >= 0) close(out->fd);
    return false;
}

void server_listener_end(server_listener *listener)
{
    struct stat info;
    if (!listener->path) return;
    if (lstat(listener->path, &info) == 0 && info.st_dev == listener->device && info.st_ino == listener->inode)
        unlink(listener->path);
    free(listener->path);
    listener->path = NULL;
}

// ---------------------------------------------------------------------------------------- inherited sockets

// The number of sockets from the parent.
static long count_inherited(void)
{
    const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
    const long n = pid && fds && strtol(pid, NULL, 10) == (long)getpid() ? strtol(fds, NULL, 10) : 0;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return n;
}

static bool take_inherited(server_listener *out, const server_listen_options *options, long n, server_problem *problem)
{
    struct sockaddr_storage address;
    int type = 0, listens = 0;
    socklen_t n_type = sizeof type, n_listens = sizeof listens;
    if (n > 1) return server_refuse(problem, 400, NULL, NULL, "LISTEN_FDS=%ld: expected 1 socket", n);
    out->fd = FIRST_INHERITED;
    if (getsockopt(out->fd, SOL_SOCKET, SO_TYPE, &type, &n_type) != 0 || type != SOCK_STREAM ||
        getsockopt(out->fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n_listens) != 0 || !listens)
        return server_refuse(problem, 400, NULL, NULL,
                             "LISTEN_FDS: descriptor %d is not a listening stream socket (Accept=yes is not possible)",
                             FIRST_INHERITED);
    fcntl(out->fd, F_SETFD, FD_CLOEXEC);
    return describe_socket(out, options->is_tls, &address, problem) &&
           check_exposed(options, (struct sockaddr *)&address, "the socket of LISTEN_FDS", problem);
}

bool server_listen(server_listener *out, const server_listen_options *options, server_problem *problem)
{
    struct sockaddr_storage address;
    const char *path = unix_path(options->host);
    const long n_inherited = count_inherited();
    *out = (server_listener){.fd = -1};
    if (n_inherited > 0) return take_inherited(out, options, n_inherited, problem);
    if (!(path ? open_unix(out, path, options->socket_mode, problem) : open_address(out, options, problem)))
        return false;
    fcntl(out->fd, F_SETFD, FD_CLOEXEC);
    if (describe_socket(out, options->is_tls, &address, problem)) return true;
    close(out->fd);
    server_listener_end(out);
    return false;
}
