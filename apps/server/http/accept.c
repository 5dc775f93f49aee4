// SPDX-License-Identifier: MIT
// The accepting thread.
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

#ifndef POLLRDHUP   // other systems say POLLHUP
#define POLLRDHUP 0
#endif
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

enum { RESERVE = 8, LOOK_MS = 200, HELD_MS = 10, MAX_ACCEPTS = 64, ADDRESS_BYTES = 16, DRAIN_BYTES = 1 << 20 };

typedef struct address {
    unsigned char bytes[ADDRESS_BYTES];
} address;

typedef struct waiting {   // no complete head yet
    int fd;
    double since;
    address from;
    struct sockaddr_storage name;
    socklen_t n_name;
    bool held;   // it asks for /health, and all places are taken for a moment
    // A Unix socket with a part of a head: poll ignores SO_RCVLOWAT there, so it is looked at after some time.
    bool dozes;
} waiting;

struct server_link {
    server_link *next, **at;
    int fd;
    void *owner;
    address from;
    server_phase phase;
    double since;   // the phase began
    bool reserve, cut;
};

struct server_front {
    server_front_options options;
    pthread_t thread;
    int wake[2];
    pthread_mutex_t lock;
    server_link *links;
    int n_links;
    bool draining, stop;
    _Atomic bool wakes;
    // The accepting thread's own:
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
        memcpy(from.bytes, &((const struct sockaddr_in6 *)name)->sin6_addr, 8);   // a network of one subscriber
    return from;
}

static bool same_address(const address *a, const address *b)
{
    return memcmp(a->bytes, b->bytes, ADDRESS_BYTES) == 0;
}

// ---------------------------------------------------------------------------------------- answers of its own

// What the client still sends is read for a moment, so that closing does not take the answer back.
static void close_gently(int fd)
{
    static const int block = 1 << 14;
    char bytes[1 << 14];
    shutdown(fd, SHUT_WR);
    for (int n = 0; n < DRAIN_BYTES && recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0;) n += block;
    close(fd);
}

static void send_problem(const server_front *front, int fd, const server_problem *problem)
{
    if (front->options.is_tls) return;   // there is no session to say it in
    char *body = server_problem_json(problem), head[512], retry[40] = "";
    if (problem->retry_after > 0) snprintf(retry, sizeof retry, "Retry-After: %d\r\n", problem->retry_after);
    const int n =
        snprintf(head, sizeof head,
                 "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%sConnection: "
                 "close\r\n\r\n",
                 problem->status, MHD_get_reason_phrase_for((unsigned)problem->status), body ? strlen(body) : 0, retry);
    if (body && send(fd, head, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL) == n) {
        const ssize_t sent = send(fd, body, strlen(body), MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)sent;   // a client that does not read gets less
    }
    free(body);
}

static void refuse(const server_front *front, int fd, const server_problem *problem)
{
    send_problem(front, fd, problem);
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

static void say_ending(server_problem *problem)
{
    server_refuse(problem, 503, "shutting_down", NULL, "the server is shutting down");
    problem->retry_after = 5;
}

// ---------------------------------------------------------------------------------------- open connections, lock held

static int count_links(const server_front *front, const address *from)
{
    int n = 0;
    for (const server_link *link = front->links; link; link = link->next) n += same_address(&link->from, from);
    return n;
}

// Its owner sees the end of the connection and closes it.
static void cut(server_link *link)
{
    if (link->cut) return;
    link->cut = true;
    shutdown(link->fd, SHUT_RDWR);
}

// Closes the connection that has been between two requests longest. `from`: of this address; NULL: of any.
static bool cut_idle(server_front *front, const address *from)
{
    server_link *oldest = NULL;
    for (server_link *link = front->links; link; link = link->next) {
        if (link->phase != SERVER_PHASE_IDLE || link->cut || (from && !same_address(&link->from, from))) continue;
        if (!oldest || link->since < oldest->since) oldest = link;
    }
    if (oldest) cut(oldest);
    return oldest != NULL;
}

static void cut_late(server_front *front)
{
    const double now = server_now();
    for (server_link *link = front->links; link; link = link->next) {
        const bool is_idle = link->phase == SERVER_PHASE_IDLE;
        const int most = is_idle ? front->options.idle_s : front->options.arrival_s;
        if (link->phase == SERVER_PHASE_ANSWER || link->cut || now - link->since < most) continue;
        server_problem problem;
        say_late(&problem, "body", most);
        if (link->phase == SERVER_PHASE_BODY) send_problem(front, link->fd, &problem);
        cut(link);
    }
}

static void wake_all(server_front *front)
{
    for (server_link *link = front->links; link; link = link->next)
        if (link->phase == SERVER_PHASE_ANSWER && link->owner) front->options.wake(link->owner);
}

// ---------------------------------------------------------------------------------------- waiting connections

static waiting take_waiting(server_front *front, int i)
{
    waiting taken = front->waiting[i];
    front->waiting[i] = front->waiting[--front->n_waiting];
    return taken;
}

static void refuse_waiting(server_front *front, int i, const server_problem *problem)
{
    refuse(front, take_waiting(front, i).fd, problem);
}

// Drops what is known of a socket with this number.
static void forget(server_front *front, server_link *link)
{
    *link->at = link->next;
    if (link->next) link->next->at = link->at;
    front->n_links--;
    free(link);
}

static server_link *find(const server_front *front, int fd)
{
    server_link *link = front->links;
    while (link && link->fd != fd) link = link->next;
    return link;
}

static bool add_link(server_front *front, const waiting *w, bool reserve)
{
    server_link *stale = find(front, w->fd), *link = calloc(1, sizeof *link);
    if (stale) forget(front, stale);
    if (!link) return false;
    *link = (server_link){.next = front->links, .at = &front->links, .fd = w->fd, .from = w->from};
    link->since = server_now();
    link->reserve = reserve;
    if (link->next) link->next->at = &link->next;
    front->links = link;
    front->n_links++;
    return true;
}

// Adds a link if one more from this address may be opened. /health may take the places that are kept for it.
static bool take_place(server_front *front, const waiting *w, bool is_health)
{
    const address *from = &w->from;
    const int quarter = front->options.max_links / 4, kept = quarter < RESERVE ? quarter : RESERVE;
    const int most = front->options.max_links - kept, most_of_one = most - most / 4;
    pthread_mutex_lock(&front->lock);
    const bool all = front->n_links >= most, one = count_links(front, from) >= most_of_one;
    bool good = !all && !one;
    const bool has_room = front->n_links < front->options.max_links;
    if (!good) good = cut_idle(front, all ? NULL : from) && has_room;   // whose place is free in a moment
    const bool reserve = !good && is_health && has_room;
    good = (good || reserve) && add_link(front, w, reserve);
    pthread_mutex_unlock(&front->lock);
    return good;
}

// False: it waits on.
static bool hand_over(server_front *front, int i, bool is_health)
{
    waiting w = take_waiting(front, i);
    const int one = 1;
    setsockopt(w.fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
    if (!take_place(front, &w, is_health)) {
        w.held = is_health;
        if (is_health) front->waiting[front->n_waiting++] = w;
        if (is_health) return false;
        server_problem problem;
        say_full(&problem);
        refuse(front, w.fd, &problem);
    } else if (!front->options.admit(front->options.ctx, w.fd, (const struct sockaddr *)&w.name, w.n_name)) {
        server_front_close(front, server_front_find(front, w.fd));   // the socket is closed already
    }
    return true;
}

// The client sends no more: poll would say at once, over and over, that there is something to read.
static bool sends_no_more(int fd)
{
    struct pollfd end = {.fd = fd, .events = POLLRDHUP};
    return poll(&end, 1, 0) > 0;
}

// Looks at what has come on waiting connection i. True if it waits on.
static bool look(server_front *front, int i)
{
    char head[SERVER_MAX_HEAD + 1];
    const int fd = front->waiting[i].fd;
    const bool is_all = sends_no_more(fd);   // asked first: the rest of a head may come with the end
    const ssize_t n = recv(fd, head, SERVER_MAX_HEAD, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
    if (n <= 0) {
        close(take_waiting(front, i).fd);
        return false;
    }
    head[n] = 0;
    server_problem problem = {0};
    bool is_health = false;
    if (front->options.is_tls) {   // libmicrohttpd reads the head
        hand_over(front, i, false);
        return false;
    }
    const size_t length = server_head_length(head, (size_t)n);
    if (length > 0 && server_head_read(head, length, &is_health, &problem)) {
        if (hand_over(front, i, is_health)) return false;
        i = front->n_waiting - 1;
    }
    if (length == 0 && n == SERVER_MAX_HEAD)
        server_refuse(&problem, 431, "headers_too_large", NULL, "the request's headers are larger than %d KiB",
                      SERVER_MAX_HEAD >> 10);
    if (length == 0 && !problem.status && is_all)
        server_refuse(&problem, 400, "invalid_http", NULL, "the request ends within its headers");
    if (problem.status) {
        refuse_waiting(front, i, &problem);
        return false;
    }
    const int more = (int)n + 1;   // nothing to look at before there is more
    setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &more, sizeof more);
    front->waiting[i].dozes = front->waiting[i].name.ss_family == AF_UNIX;
    return true;
}

// Requests for /health count as the youngest.
static int oldest_waiting(const server_front *front)
{
    int oldest = -1;
    for (int i = 0; i < front->n_waiting; i++) {
        const waiting *w = &front->waiting[i], *than = oldest < 0 ? NULL : &front->waiting[oldest];
        if (!than || w->held < than->held || (w->held == than->held && w->since < than->since)) oldest = i;
    }
    return oldest;
}

// Room for one more, by closing the connection that has waited longest.
static void make_room(server_front *front, bool always)
{
    pthread_mutex_lock(&front->lock);
    const int n = front->n_waiting + front->n_links;
    pthread_mutex_unlock(&front->lock);
    if (front->n_waiting == 0 || (!always && n < front->options.max_links)) return;
    server_problem problem;
    say_full(&problem);
    refuse_waiting(front, oldest_waiting(front), &problem);
}

// False: none is there, or there is no room.
static bool accept_one(server_front *front)
{
    waiting w = {.n_name = sizeof w.name, .since = server_now()};
    w.fd = accept(front->options.socket, (struct sockaddr *)&w.name, &w.n_name);
    if (w.fd < 0) {
        const bool no_room = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        if (no_room) make_room(front, true);
        if (no_room && front->n_waiting == 0) nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        return false;
    }
    fcntl(w.fd, F_SETFL, fcntl(w.fd, F_GETFL) | O_NONBLOCK);
    fcntl(w.fd, F_SETFD, FD_CLOEXEC);
    w.from = address_of(&w.name);
    make_room(front, false);
    if (front->n_waiting == front->options.max_links) {
        server_problem problem;
        say_full(&problem);
        refuse(front, w.fd, &problem);
        return true;
    }
    front->waiting[front->n_waiting++] = w;
    look(front, front->n_waiting - 1);   // mostly the request is there already
    return true;
}

static void refuse_late(server_front *front)
{
    const double now = server_now();
    server_problem problem;
    say_late(&problem, "headers", front->options.arrival_s);
    for (int i = front->n_waiting - 1; i >= 0; i--)
        if (now - front->waiting[i].since >= front->options.arrival_s) refuse_waiting(front, i, &problem);
}

// ---------------------------------------------------------------------------------------- the thread

static void wait_for_news(server_front *front, bool listens)
{
    struct pollfd *polls = front->polls;
    polls[0] = (struct pollfd){.fd = front->wake[0], .events = POLLIN};
    polls[1] = (struct pollfd){.fd = listens ? front->options.socket : -1, .events = POLLIN};
    for (int i = 0; i < front->n_waiting; i++)
        polls[2 + i] = (struct pollfd){.fd = front->waiting[i].dozes ? -1 : front->waiting[i].fd, .events = POLLIN};
    const int n = front->n_waiting;
    bool holds = false;
    for (int i = 0; i < n; i++) holds = holds || front->waiting[i].held || front->waiting[i].dozes;
    poll(polls, (nfds_t)(2 + n), holds ? HELD_MS : LOOK_MS);
    char bytes[64];
    if (polls[0].revents) (void)!read(front->wake[0], bytes, sizeof bytes);
    for (int i = n - 1; i >= 0; i--)   // from the end: the last takes the place of one that leaves
        if (polls[2 + i].revents || front->waiting[i].held || front->waiting[i].dozes) look(front, i);
    // Several, as polling thousands takes longer than accepting one.
    for (int i = 0; (polls[1].revents & POLLIN) && i < MAX_ACCEPTS && accept_one(front); i++) {
    }
}

static void *run(void *ctx)
{
    server_front *front = ctx;
    bool listens = true;
    for (;;) {
        wait_for_news(front, listens);
        refuse_late(front);
        pthread_mutex_lock(&front->lock);
        cut_late(front);
        if (atomic_exchange(&front->wakes, false)) wake_all(front);
        const bool draining = front->draining, stop = front->stop;
        pthread_mutex_unlock(&front->lock);
        if (draining && listens) {
            close(front->options.socket);
            listens = false;
        }
        server_problem problem;
        say_ending(&problem);
        while ((draining || stop) && front->n_waiting > 0) refuse_waiting(front, front->n_waiting - 1, &problem);
        if (stop) return NULL;
    }
}

static void tell(server_front *front, bool *flag)
{
    pthread_mutex_lock(&front->lock);
    *flag = true;
    pthread_mutex_unlock(&front->lock);
    (void)!write(front->wake[1], "", 1);
}

static void release(server_front *front)
{
    for (int i = 0; i < 2; i++)
        if (front->wake[i] >= 0) close(front->wake[i]);
    pthread_mutex_destroy(&front->lock);
    free(front->waiting);
    free(front->polls);
    free(front);
}

bool server_front_start(server_front **out, const server_front_options *options, server_problem *problem)
{
    *out = NULL;
    server_front *front = calloc(1, sizeof *front);
    if (!front) return server_refuse_status(problem, 500, NULL, -1);
    const size_t n = (size_t)options->max_links;
    *front = (server_front){.options = *options, .wake = {-1, -1}};
    pthread_mutex_init(&front->lock, NULL);
    front->waiting = calloc(n, sizeof *front->waiting);
    front->polls = calloc(n + 2, sizeof *front->polls);
    fcntl(options->socket, F_SETFL, fcntl(options->socket, F_GETFL) | O_NONBLOCK);
    *out = front;   // before the thread, whose first connection needs it
    const bool good = front->waiting && front->polls && pipe(front->wake) == 0 &&
                      pthread_create(&front->thread, NULL, run, front) == 0;
    if (!good) {
        *out = NULL;
        release(front);
        return server_refuse(problem, 500, NULL, NULL, "the thread that accepts connections cannot be started");
    }
    for (int i = 0; i < 2; i++) fcntl(front->wake[i], F_SETFD, FD_CLOEXEC);
    return true;
}

void server_front_drain(server_front *front)
{
    tell(front, &front->draining);
}

void server_front_stop(server_front *front)
{
    tell(front, &front->draining);
    tell(front, &front->stop);
    pthread_join(front->thread, NULL);
}

void server_front_free(server_front *front)
{
    release(front);
}

// ---------------------------------------------------------------------------------------- for the owner

server_link *server_front_find(server_front *front, int fd)
{
    pthread_mutex_lock(&front->lock);
    server_link *link = find(front, fd);
    pthread_mutex_unlock(&front->lock);
    return link;
}

void server_front_set(server_front *front, server_link *link, server_phase phase)
{
    if (!link) return;
    pthread_mutex_lock(&front->lock);
    link->phase = phase;
    link->since = server_now();
    pthread_mutex_unlock(&front->lock);
}

void server_front_own(server_front *front, server_link *link, void *owner)
{
    if (!link) return;
    pthread_mutex_lock(&front->lock);
    link->owner = owner;
    pthread_mutex_unlock(&front->lock);
}

void server_front_wake(server_front *front)
{
    atomic_store(&front->wakes, true);
}

bool server_link_is_reserve(const server_link *link)
{
    return link && link->reserve;
}

void server_front_close(server_front *front, server_link *link)
{
    if (!link) return;
    pthread_mutex_lock(&front->lock);
    forget(front, link);
    pthread_mutex_unlock(&front->lock);
}
