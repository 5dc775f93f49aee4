// SPDX-License-Identifier: MIT
// server/http/send_queue.h: a ring of bytes from the engine thread to a connection.
//
// An event is never split or refused: the writer calls server_send_queue_is_full before it makes an event, and an event
// that begins below the limit may exceed it. So a queue has at most the limit plus one event.
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
