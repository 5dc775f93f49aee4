// SPDX-License-Identifier: MIT
// Clients that went away.
#include "server/worker.h"

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

bool server_socket_is_gone(int socket)
{
    return look_at(socket) & (POLLHUP | POLLERR | POLLNVAL);
}

// A client that has closed its sending side may be waiting for the answer or be gone: TCP tells it on writing.
// So it gets an interim answer, once, and a client that is gone resets the connection. Nothing else has been written
// then, as the answer has not begun.
bool server_client_is_gone(server_job *job)
{
    job = server_job_first(job);
    static const char probe[] = "HTTP/1.1 100 Continue\r\n\r\n";
    if (job->replay) return server_replay_is_cancelled(job->replay);
    if (job->abandoned) return true;
    const int events = look_at(job->socket);
    if (events & (POLLHUP | POLLERR | POLLNVAL)) return true;
    if ((events & POLLRDHUP) && job->is_tls) return true;
    if ((events & POLLRDHUP) && !job->probed && !job->begun && job->may_probe) {
        job->probed = true;
        const ssize_t sent = send(job->socket, probe, sizeof probe - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        return sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK;
    }
    return false;
}
