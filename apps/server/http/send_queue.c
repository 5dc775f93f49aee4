// SPDX-License-Identifier: MIT
// The ring of a send queue.
#include "server/http/send_queue.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 1024 };

static bool reserve(server_send_queue *queue, size_t n)
{
    size_t capacity = queue->capacity ? queue->capacity : FIRST_CAPACITY;
    while (capacity - queue->n < n) capacity *= 2;
    if (capacity == queue->capacity) return true;
    char *data = malloc(capacity);
    if (!data) return false;
    size_t kept = server_send_queue_take(queue, data, queue->n);
    free(queue->data);
    *queue = (server_send_queue){.data = data, .n = kept, .capacity = capacity};
    return true;
}

void server_send_queue_put(server_send_queue *queue, const char *bytes, size_t n)
{
    if (queue->failed || !reserve(queue, n)) {
        queue->failed = true;
        return;
    }
    size_t end = (queue->start + queue->n) & (queue->capacity - 1), first = queue->capacity - end;
    if (first > n) first = n;
    memcpy(queue->data + end, bytes, first);
    memcpy(queue->data, bytes + first, n - first);
    queue->n += n;
}

size_t server_send_queue_take(server_send_queue *queue, char *bytes, size_t size)
{
    size_t n = queue->n < size ? queue->n : size;
    if (n == 0) return 0;
    size_t first = queue->capacity - queue->start;
    if (first > n) first = n;
    memcpy(bytes, queue->data + queue->start, first);
    memcpy(bytes + first, queue->data, n - first);
    queue->start = (queue->start + n) & (queue->capacity - 1);
    queue->n -= n;
    return n;
}

void server_send_queue_free(server_send_queue *queue)
{
    free(queue->data);
    *queue = (server_send_queue){0};
}
