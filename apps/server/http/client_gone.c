// SPDX-License-Identifier: MIT
// Finds out if a client has closed its connection.
#include "server/http/client_gone.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif
#ifndef POLLRDHUP
#define POLLRDHUP 0   // on other systems only writing shows that the client is gone
#endif

static int look_at(int socket)
{
    struct pollfd look = {.fd = socket, .events = POLLRDHUP};
    return socket >= 0 && poll(&look, 1, 0) == 1 ? look.revents : 0;
}

// A client that closed its sending side may still wait for the reply, or be gone; TCP shows which when bytes are
// written. So the client gets one interim answer, and a client that is gone resets the connection. No other bytes were
// written before, as the reply has not begun. TLS clients do not close the sending side alone, and nothing can be
// written here.
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
