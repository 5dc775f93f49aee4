// SPDX-License-Identifier: MIT
// Clients that went away.
#include "server/http/client_gone.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif
#ifndef POLLRDHUP
#define POLLRDHUP 0   // elsewhere a client's end is seen when its socket is written to
#endif

static int look_at(int socket)
{
    struct pollfd look = {.fd = socket, .events = POLLRDHUP};
    return socket >= 0 && poll(&look, 1, 0) == 1 ? look.revents : 0;
}

// A client that has closed its sending side may be waiting for the answer or be gone: TCP tells it on writing.
// So it gets an interim answer, once, and a client that is gone resets the connection. Nothing else has been written
// then, as the answer has not begun. Over TLS no client closes the sending side alone, and nothing can be written here.
bool server_socket_is_left(int socket, bool is_tls, bool may_probe, bool *probed)
{
    static const char probe[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const int events = look_at(socket);
    if (events & (POLLHUP | POLLERR | POLLNVAL)) return true;
    if ((events & POLLRDHUP) && is_tls) return true;
    if (!(events & POLLRDHUP) || *probed || !may_probe) return false;
    *probed = true;
    const ssize_t sent = send(socket, probe, sizeof probe - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK;
}

bool server_client_is_gone(server_job *job)
{
    job = server_job_first(job);
    if (job->reply.replay) return server_replay_is_cancelled(job->reply.replay);
    if (job->client.has_left) return true;
    return server_socket_is_left(job->client.socket, job->client.is_tls, job->client.may_probe && !job->reply.begun,
                                 &job->client.was_probed);
}
