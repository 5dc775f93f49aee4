// SPDX-License-Identifier: MIT
// The accept thread.
#include "server/http/accept.h"

#include "server/ops/clock.h"
#include "server/http/request_head.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef POLLRDHUP   // other systems report POLLHUP
#define POLLRDHUP 0
#endif
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

enum { RESERVE = 8, LOOK_MS = 200, HELD_MS = 10, MAX_ACCEPTS = 64, ADDRESS_BYTES = 16, DRAIN_BYTES = 1 << 20 };

typedef struct address {
    unsigned char bytes[ADDRESS_BYTES];
} address;

typedef struct waiting {   // a connection without a complete head
    int fd;
    double since;
    address from;
    struct sockaddr_storage name;
    socklen_t n_name;
    bool held;   // a request for /health that found no free connection; it is tried again
    // A Unix socket with a part of a head. Poll ignores SO_RCVLOWAT for Unix sockets, so it is looked at from time to
    // time.
    bool dozes;
} waiting;

struct server_link {
    server_link *next, **at;
    int fd;
    void *owner;
    address from;
    server_phase phase;
    double since;   // when the phase began
    bool reserve, cut;
};

struct server_acceptor {
    server_acceptor_options options;
    pthread_t thread;
    int wake[2];
    pthread_mutex_t lock;
    server_link *links;
    int n_links;
    bool draining, stop;
    _Atomic bool wakes;
    // Used by the accept thread alone:
    waiting *waiting;   // [max_links]
    struct pollfd *polls;
    int n_waiting;
};

static address address_of(const struct sockaddr_storage *name)
{
    address from = {{0}};
    if (name->ss_family == AF_INET)
        memcpy(from.bytes, &((const struct sockaddr_in *)name)->sin_addr, 4);
    else if (name->ss_family == AF_INET6)
        memcpy(from.bytes, &((const struct sockaddr_in6 *)name)->sin6_addr, 8);   // the network of one subscriber
    return from;
}

static bool same_address(const address *a, const address *b)
{
    return memcmp(a->bytes, b->bytes, ADDRESS_BYTES) == 0;
}

// ---------------------------------------------------------------------------------------- answers of its own

// Reads what the client still sends before it closes the socket: closing with unread bytes would reset the connection,
// and the client would lose the answer.
static void close_gently(int fd)
{
    static const int block = 1 << 14;
    char bytes[1 << 14];
    shutdown(fd, SHUT_WR);
    for (int n = 0; n < DRAIN_BYTES && recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0;) n += block;
    close(fd);
}

static void send_problem(const server_acceptor *acceptor, int fd, const server_problem *problem)
{
    if (acceptor->options.is_tls) return;   // there is no TLS session yet
    char *body = server_problem_json(problem), head[512], retry[40] = "";
    if (problem->retry_after > 0) snprintf(retry, sizeof retry, "Retry-After: %d\r\n", problem->retry_after);
    const int n =
        snprintf(head, sizeof head,
                 "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%sConnection: "
                 "close\r\n\r\n",
                 problem->status, MHD_get_reason_phrase_for((unsigned)problem->status), body ? strlen(body) : 0, retry);
    if (body && send(fd, head, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) == n) {
        const ssize_t sent = send(fd, body, strlen(body), MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)sent;   // a client that does not read loses the rest
    }
    free(body);
}

static void refuse_socket(const server_acceptor *acceptor, int fd, const server_problem *problem)
{
    send_problem(acceptor, fd, problem);
    close_gently(fd);
}

static void say_late(server_problem *problem, const char *what, int seconds)
{
    server_refuse(problem, 408, "request_timeout", NULL, "the request's %s did not come within %d seconds", what,
                  seconds);
}

static void say_full(server_problem *problem)
{
    server_refuse(problem, 503, "too_many_connections", NULL, "the server has as many connections as it may");
    problem->retry_after = 1;
}

// ---------------------------------------------------------------------------------------- open connections, lock held

static int count_links(const server_acceptor *acceptor, const address *from)
{
    int n = 0;
    for (const server_link *link = acceptor->links; link; link = link->next) n += same_address(&link->from, from);
    return n;
}

// Ends the connection; the owner of the link notices and closes it.
static void cut_link(server_link *link)
{
    if (link->cut) return;
    link->cut = true;
    shutdown(link->fd, SHUT_RDWR);
}

// Ends the connection that is idle for the longest time, of this address or (NULL) of any. False: none is idle.
static bool cut_idle(server_acceptor *acceptor, const address *from)
{
    server_link *oldest = NULL;
    for (server_link *link = acceptor->links; link; link = link->next) {
        if (link->phase != SERVER_PHASE_IDLE || link->cut || (from && !same_address(&link->from, from))) continue;
        if (!oldest || link->since < oldest->since) oldest = link;
    }
    if (oldest) cut_link(oldest);
    return oldest != NULL;
}

static void cut_late(server_acceptor *acceptor)
{
    const double now = server_now();
    for (server_link *link = acceptor->links; link; link = link->next) {
        const bool is_idle = link->phase == SERVER_PHASE_IDLE;
        const int most = is_idle ? acceptor->options.idle_s : acceptor->options.arrival_s;
        if (link->phase == SERVER_PHASE_ANSWER || link->cut || now - link->since < most) continue;
        server_problem problem;
        say_late(&problem, "body", most);
        if (link->phase == SERVER_PHASE_BODY) send_problem(acceptor, link->fd, &problem);
        cut_link(link);
    }
}

static void wake_all(server_acceptor *acceptor)
{
    for (server_link *link = acceptor->links; link; link = link->next)
        if (link->phase == SERVER_PHASE_ANSWER && link->owner) acceptor->options.wake(link->owner);
}

// ---------------------------------------------------------------------------------------- waiting connections

static waiting take_waiting(server_acceptor *acceptor, int i)
{
    waiting taken = acceptor->waiting[i];
    acceptor->waiting[i] = acceptor->waiting[--acceptor->n_waiting];
    return taken;
}

static void refuse_waiting(server_acceptor *acceptor, int i, const server_problem *problem)
{
    refuse_socket(acceptor, take_waiting(acceptor, i).fd, problem);
}

// Frees the link of a socket.
static void free_link(server_acceptor *acceptor, server_link *link)
{
    *link->at = link->next;
    if (link->next) link->next->at = link->at;
    acceptor->n_links--;
    free(link);
}

static server_link *find_link(const server_acceptor *acceptor, int fd)
{
    server_link *link = acceptor->links;
    while (link && link->fd != fd) link = link->next;
    return link;
}

static bool add_link(server_acceptor *acceptor, const waiting *w, bool reserve)
{
    server_link *stale = find_link(acceptor, w->fd), *link = calloc(1, sizeof *link);
    if (stale) free_link(acceptor, stale);
    if (!link) return false;
    *link = (server_link){.next = acceptor->links, .at = &acceptor->links, .fd = w->fd, .from = w->from};
    link->since = server_now();
    link->reserve = reserve;
    if (link->next) link->next->at = &link->next;
    acceptor->links = link;
    acceptor->n_links++;
    return true;
}

// Adds a link if the limits allow one more from its address. Requests for /health may use the reserved connections.
static bool open_link(server_acceptor *acceptor, const waiting *w, bool is_health)
{
    const address *from = &w->from;
    const int quarter = acceptor->options.max_links / 4, kept = quarter < RESERVE ? quarter : RESERVE;
    const int most = acceptor->options.max_links - kept, most_of_one = most - most / 4;
    pthread_mutex_lock(&acceptor->lock);
    const bool all = acceptor->n_links >= most, one = count_links(acceptor, from) >= most_of_one;
    bool good = !all && !one;
    const bool has_room = acceptor->n_links < acceptor->options.max_links;
    if (!good) good = cut_idle(acceptor, all ? NULL : from) && has_room;   // which closes in a moment
    const bool reserve = !good && is_health && has_room;
    good = (good || reserve) && add_link(acceptor, w, reserve);
    pthread_mutex_unlock(&acceptor->lock);
    return good;
}

// Hands a connection to libmicrohttpd, or refuses it. False: it still waits.
static bool hand_over(server_acceptor *acceptor, int i, bool is_health)
{
    waiting w = take_waiting(acceptor, i);
    const int one = 1;
    setsockopt(w.fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
    if (!open_link(acceptor, &w, is_health)) {
        w.held = is_health;
        if (is_health) acceptor->waiting[acceptor->n_waiting++] = w;
        if (is_health) return false;
        server_problem problem;
        say_full(&problem);
        refuse_socket(acceptor, w.fd, &problem);
    } else if (!acceptor->options.admit(acceptor->options.ctx, w.fd, (const struct sockaddr *)&w.name, w.n_name)) {
        server_acceptor_close(acceptor, server_acceptor_find(acceptor, w.fd));   // libmicrohttpd closed the socket
    }
    return true;
}

// True if the client closed its sending side, which poll reports again and again.
static bool sends_no_more(int fd)
{
    struct pollfd end = {.fd = fd, .events = POLLRDHUP};
    return poll(&end, 1, 0) > 0;
}

// Looks at the bytes that arrived on waiting connection i. True if the connection still waits.
static bool check_waiting(server_acceptor *acceptor, int i)
{
    char head[SERVER_MAX_HEAD + 1];
    const int fd = acceptor->waiting[i].fd;
    const bool is_all = sends_no_more(fd);   // checked before recv: the rest of a head may come with the end
    const ssize_t n = recv(fd, head, SERVER_MAX_HEAD, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
    if (n <= 0) {
        close(take_waiting(acceptor, i).fd);
        return false;
    }
    head[n] = 0;
    server_problem problem = {0};
    bool is_health = false;
    if (acceptor->options.is_tls) {   // libmicrohttpd reads the head
        hand_over(acceptor, i, false);
        return false;
    }
    const size_t length = server_request_head_length(head, (size_t)n);
    if (length > 0 && server_request_head_read(head, length, &is_health, &problem)) {
        if (hand_over(acceptor, i, is_health)) return false;
        i = acceptor->n_waiting - 1;
    }
    if (length == 0 && n == SERVER_MAX_HEAD)
        server_refuse(&problem, 431, "headers_too_large", NULL, "the request's headers are larger than %d KiB",
                      SERVER_MAX_HEAD >> 10);
    if (length == 0 && !problem.status && is_all)
        server_refuse(&problem, 400, "invalid_http", NULL, "the request ends within its headers");
    if (problem.status) {
        refuse_waiting(acceptor, i, &problem);
        return false;
    }
    const int more = (int)n + 1;   // poll reports the socket only when there is more
    setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &more, sizeof more);
    acceptor->waiting[i].dozes = acceptor->waiting[i].name.ss_family == AF_UNIX;
    return true;
}

// The index of the oldest waiting connection, by age; held requests for /health come last.
static int oldest_waiting(const server_acceptor *acceptor)
{
    int oldest = -1;
    for (int i = 0; i < acceptor->n_waiting; i++) {
        const waiting *w = &acceptor->waiting[i], *than = oldest < 0 ? NULL : &acceptor->waiting[oldest];
        if (!than || w->held < than->held || (w->held == than->held && w->since < than->since)) oldest = i;
    }
    return oldest;
}

// Makes room for one more connection: closes the one that waited for the longest time.
static void make_room(server_acceptor *acceptor, bool always)
{
    pthread_mutex_lock(&acceptor->lock);
    const int n = acceptor->n_waiting + acceptor->n_links;
    pthread_mutex_unlock(&acceptor->lock);
    if (acceptor->n_waiting == 0 || (!always && n < acceptor->options.max_links)) return;
    server_problem problem;
    say_full(&problem);
    refuse_waiting(acceptor, oldest_waiting(acceptor), &problem);
}

// False: no connection is pending, or there is no descriptor for it.
static bool accept_one(server_acceptor *acceptor)
{
    waiting w = {.n_name = sizeof w.name, .since = server_now()};
    w.fd = accept(acceptor->options.socket, (struct sockaddr *)&w.name, &w.n_name);
    if (w.fd < 0) {
        const bool no_room = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        if (no_room) make_room(acceptor, true);
        if (no_room && acceptor->n_waiting == 0) nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        return false;
    }
    fcntl(w.fd, F_SETFL, fcntl(w.fd, F_GETFL) | O_NONBLOCK);
    fcntl(w.fd, F_SETFD, FD_CLOEXEC);
    w.from = address_of(&w.name);
    make_room(acceptor, false);
    if (acceptor->n_waiting == acceptor->options.max_links) {
        server_problem problem;
        say_full(&problem);
        refuse_socket(acceptor, w.fd, &problem);
        return true;
    }
    acceptor->waiting[acceptor->n_waiting++] = w;
    check_waiting(acceptor, acceptor->n_waiting - 1);   // mostly the request has arrived already
    return true;
}

static void refuse_late(server_acceptor *acceptor)
{
    const double now = server_now();
    server_problem problem;
    say_late(&problem, "headers", acceptor->options.arrival_s);
    for (int i = acceptor->n_waiting - 1; i >= 0; i--)
        if (now - acceptor->waiting[i].since >= acceptor->options.arrival_s) refuse_waiting(acceptor, i, &problem);
}

// ---------------------------------------------------------------------------------------- the thread

static void wait_for_news(server_acceptor *acceptor, bool listens)
{
    struct pollfd *polls = acceptor->polls;
    polls[0] = (struct pollfd){.fd = acceptor->wake[0], .events = POLLIN};
    polls[1] = (struct pollfd){.fd = listens ? acceptor->options.socket : -1, .events = POLLIN};
    for (int i = 0; i < acceptor->n_waiting; i++)
        polls[2 + i] =
            (struct pollfd){.fd = acceptor->waiting[i].dozes ? -1 : acceptor->waiting[i].fd, .events = POLLIN};
    const int n = acceptor->n_waiting;
    bool holds = false;
    for (int i = 0; i < n; i++) holds = holds || acceptor->waiting[i].held || acceptor->waiting[i].dozes;
    poll(polls, (nfds_t)(2 + n), holds ? HELD_MS : LOOK_MS);
    char bytes[64];
    if (polls[0].revents) (void)!read(acceptor->wake[0], bytes, sizeof bytes);
    for (int i = n - 1; i >= 0; i--)   // from the end, as the last one moves to the index of one that leaves
        if (polls[2 + i].revents || acceptor->waiting[i].held || acceptor->waiting[i].dozes) check_waiting(acceptor, i);
    // Accepts several at once: polling thousands of sockets takes longer than accepting one.
    for (int i = 0; (polls[1].revents & POLLIN) && i < MAX_ACCEPTS && accept_one(acceptor); i++) {
    }
}

static void *run_acceptor(void *ctx)
{
    server_acceptor *acceptor = ctx;
    bool listens = true;
    for (;;) {
        wait_for_news(acceptor, listens);
        refuse_late(acceptor);
        pthread_mutex_lock(&acceptor->lock);
        cut_late(acceptor);
        if (atomic_exchange(&acceptor->wakes, false)) wake_all(acceptor);
        const bool draining = acceptor->draining, stop = acceptor->stop;
        pthread_mutex_unlock(&acceptor->lock);
        if (draining && listens) {
            close(acceptor->options.socket);
            listens = false;
        }
        server_problem problem;
        server_refuse_shutting_down(&problem);
        while ((draining || stop) && acceptor->n_waiting > 0)
            refuse_waiting(acceptor, acceptor->n_waiting - 1, &problem);
        if (stop) return NULL;
    }
}

static void set_flag(server_acceptor *acceptor, bool *flag)
{
    pthread_mutex_lock(&acceptor->lock);
    *flag = true;
    pthread_mutex_unlock(&acceptor->lock);
    (void)!write(acceptor->wake[1], "", 1);
}

static void free_acceptor(server_acceptor *acceptor)
{
    for (int i = 0; i < 2; i++)
        if (acceptor->wake[i] >= 0) close(acceptor->wake[i]);
    pthread_mutex_destroy(&acceptor->lock);
    free(acceptor->waiting);
    free(acceptor->polls);
    free(acceptor);
}

bool server_acceptor_start(server_acceptor **out, const server_acceptor_options *options, server_problem *problem)
{
    *out = NULL;
    server_acceptor *acceptor = calloc(1, sizeof *acceptor);
    if (!acceptor) return server_refuse_status(problem, 500, NULL, -1);
    const size_t n = (size_t)options->max_links;
    *acceptor = (server_acceptor){.options = *options, .wake = {-1, -1}};
    pthread_mutex_init(&acceptor->lock, NULL);
    acceptor->waiting = calloc(n, sizeof *acceptor->waiting);
    acceptor->polls = calloc(n + 2, sizeof *acceptor->polls);
    fcntl(options->socket, F_SETFL, fcntl(options->socket, F_GETFL) | O_NONBLOCK);
    *out = acceptor;   // before the thread starts, as its first connection needs it
    const bool good = acceptor->waiting && acceptor->polls && pipe(acceptor->wake) == 0 &&
                      pthread_create(&acceptor->thread, NULL, run_acceptor, acceptor) == 0;
    if (!good) {
        *out = NULL;
        free_acceptor(acceptor);
        return server_refuse(problem, 500, NULL, NULL, "the thread that accepts connections cannot be started");
    }
    for (int i = 0; i < 2; i++) fcntl(acceptor->wake[i], F_SETFD, FD_CLOEXEC);
    return true;
}

void server_acceptor_drain(server_acceptor *acceptor)
{
    set_flag(acceptor, &acceptor->draining);
}

void server_acceptor_stop(server_acceptor *acceptor)
{
    set_flag(acceptor, &acceptor->draining);
    set_flag(acceptor, &acceptor->stop);
    pthread_join(acceptor->thread, NULL);
}

void server_acceptor_free(server_acceptor *acceptor)
{
    free_acceptor(acceptor);
}

// ---------------------------------------------------------------------------------------- for the owner

server_link *server_acceptor_find(server_acceptor *acceptor, int fd)
{
    pthread_mutex_lock(&acceptor->lock);
    server_link *link = find_link(acceptor, fd);
    pthread_mutex_unlock(&acceptor->lock);
    return link;
}

void server_acceptor_set(server_acceptor *acceptor, server_link *link, server_phase phase)
{
    if (!link) return;
    pthread_mutex_lock(&acceptor->lock);
    link->phase = phase;
    link->since = server_now();
    pthread_mutex_unlock(&acceptor->lock);
}

void server_acceptor_own(server_acceptor *acceptor, server_link *link, void *owner)
{
    if (!link) return;
    pthread_mutex_lock(&acceptor->lock);
    link->owner = owner;
    pthread_mutex_unlock(&acceptor->lock);
}

void server_acceptor_wake(server_acceptor *acceptor)
{
    atomic_store(&acceptor->wakes, true);
}

bool server_link_is_reserve(const server_link *link)
{
    return link && link->reserve;
}

void server_acceptor_close(server_acceptor *acceptor, server_link *link)
{
    if (!link) return;
    pthread_mutex_lock(&acceptor->lock);
    free_link(acceptor, link);
    pthread_mutex_unlock(&acceptor->lock);
}
