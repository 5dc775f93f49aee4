// SPDX-License-Identifier: MIT
// The ring of an outbox.
#include "server/http/send_queue.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 1024 };

static bool reserve(server_send_queue *outbox, size_t n)
{
    size_t capacity = outbox->capacity ? outbox->capacity : FIRST_CAPACITY;
    while (capacity - outbox->n < n) capacity *= 2;
    if (capacity == outbox->capacity) return true;
    char *data = malloc(capacity);
    if (!data) return false;
    size_t kept = server_send_queue_take(outbox, data, outbox->n);
    free(outbox->data);
    *outbox = (server_send_queue){.data = data, .n = kept, .capacity = capacity};
    return true;
}

void server_send_queue_put(server_send_queue *outbox, const char *bytes, size_t n)
{
    if (outbox->failed || !reserve(outbox, n)) {
        outbox->failed = true;
        return;
    }
    size_t end = (outbox->start + outbox->n) & (outbox->capacity - 1), first = outbox->capacity - end;
    if (first > n) first = n;
    memcpy(outbox->data + end, bytes, first);
    memcpy(outbox->data, bytes + first, n - first);
    outbox->n += n;
}

size_t server_send_queue_take(server_send_queue *outbox, char *bytes, size_t size)
{
    size_t n = outbox->n < size ? outbox->n : size;
    if (n == 0) return 0;
    size_t first = outbox->capacity - outbox->start;
    if (first > n) first = n;
    memcpy(bytes, outbox->data + outbox->start, first);
    memcpy(bytes + first, outbox->data, n - first);
    outbox->start = (outbox->start + n) & (outbox->capacity - 1);
    outbox->n -= n;
    return n;
}

void server_send_queue_free(server_send_queue *outbox)
{
    free(outbox->data);
    *outbox = (server_send_queue){0};
}
