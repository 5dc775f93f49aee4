// SPDX-License-Identifier: MIT
// server/http/send_queue.h: bytes on their way from the engine thread to a connection: a ring that says when it is
// full.
//
// An event is never split or refused: the writer asks server_send_queue_is_full before it makes one, and an event that
// begins below the limit may go over it. So memory stays below the limit and one event.
#pragma once
#include <stdbool.h>
#include <stddef.h>

typedef struct server_send_queue {
    char *data;   // ring of `capacity` bytes, a power of two
    size_t start, n, capacity;
    bool failed;   // out of memory: bytes are missing
} server_send_queue;

enum { SERVER_SEND_QUEUE_LIMIT = 64 << 10 };

static inline bool server_send_queue_is_full(const server_send_queue *queue)
{
    return queue->n >= SERVER_SEND_QUEUE_LIMIT;
}

void server_send_queue_put(server_send_queue *queue, const char *bytes, size_t n);
size_t server_send_queue_take(server_send_queue *queue, char *bytes, size_t size);
void server_send_queue_free(server_send_queue *queue);
