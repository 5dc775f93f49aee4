// SPDX-License-Identifier: MIT
// From the fields of a conversation in OpenAI's form to the fields of the request.
#include "server/request/message_origins.h"

#include "common/grow.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

server_origins *server_origins_new(const char *list, const char *const (*ends)[2])
{
    server_origins *origins = calloc(1, sizeof *origins);
    if (origins) origins->list = list, origins->ends = ends;
    return origins;
}

void server_origins_free(server_origins *origins)
{
    if (origins) free(origins->items);
    free(origins);
}

void server_origins_add(server_origins *origins, server_origin origin)
{
    if (!origins) return;
    if (!APP_GROW(origins->items, origins->capacity, origins->n + 1)) return;
    origins->items[origins->n++] = origin;
}

void server_origins_insert(server_origins *origins, size_t at, size_t n, const char *list)
{
    for (size_t i = 0; origins && i < origins->n; i++)
        if (origins->items[i].first >= at) origins->items[i].first += n;
    server_origins_add(origins, (server_origin){at, n, SERVER_NO_INDEX, list, SERVER_NO_INDEX, SERVER_NO_INDEX});
}

void server_origins_remove(server_origins *origins, size_t at, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; origins && i < origins->n; i++) {
        server_origin o = origins->items[i];
        const size_t end = o.first + o.n, gone = at + n;
        if (o.first >= at && end <= gone) continue;
        const size_t from = o.first < at ? at : o.first, to = end < gone ? end : gone;
        if (to > from) o.n -= to - from;
        if (o.first > at) o.first = o.first < gone ? at : o.first - n;
        origins->items[kept++] = o;
    }
    if (origins) origins->n = kept;
}

static void name_origin(const server_origin *o, char *name, size_t size)
{
    char item[32] = "", part[32] = "";
    if (o->item != SERVER_NO_INDEX) snprintf(item, sizeof item, "[%d]", o->item);
    if (o->part != SERVER_NO_INDEX) snprintf(part, sizeof part, "%s[%d]", *item ? ".content" : "", o->part);
    snprintf(name, size, "%s%s%s", o->list, item, part);
}

// The origin of a call if it is known, else the origin of its message, else NULL.
static const server_origin *find_origin(const server_origins *origins, size_t message, int call)
{
    const server_origin *best = NULL;
    for (size_t i = 0; i < origins->n; i++) {
        const server_origin *o = &origins->items[i];
        if (message < o->first || message - o->first >= o->n) continue;
        if (o->call == call || (o->call == SERVER_NO_INDEX && !best)) best = o;
        if (o->call == call && call != SERVER_NO_INDEX) break;
    }
    return best;
}

// Replaces the end of a name by the protocol's end for it. The first n bytes of the name stay.
static void rename_end(const server_origins *origins, char *name, size_t n, size_t size)
{
    for (size_t i = 0; origins->ends && origins->ends[i][0]; i++) {
        const size_t length = strlen(name), n_end = strlen(origins->ends[i][0]);
        if (length < n + n_end || strcmp(name + length - n_end, origins->ends[i][0]) != 0) continue;
        snprintf(name + length - n_end, size - (length - n_end), "%s", origins->ends[i][1]);
        return;
    }
}

void server_origins_name(const server_origins *origins, const char *field, char *name, size_t size)
{
    size_t message = 0;
    int call = SERVER_NO_INDEX, n_message = 0, n_call = 0;
    snprintf(name, size, "%s", field);
    if (!origins) return;
    size_t n = 0;
    if (sscanf(field, "messages[%zu]%n", &message, &n_message) == 1 && n_message > 0) {
        const char *rest = field + n_message;
        if (sscanf(rest, ".tool_calls[%d]%n", &call, &n_call) != 1 || n_call == 0) call = SERVER_NO_INDEX;
        const server_origin *o = find_origin(origins, message, call);
        if (!o) return;
        name_origin(o, name, size);
        n = strlen(name);
        const bool is_part = o->part != SERVER_NO_INDEX || o->item == SERVER_NO_INDEX;
        if (is_part && strncmp(rest, ".content", 8) == 0)
            rest += 8;   // the part of a content list stands for the content
        snprintf(name + n, size - n, "%s", o->call != SERVER_NO_INDEX ? rest + n_call : rest);
    } else if (strncmp(field, "messages", 8) == 0 && origins->list) {
        snprintf(name, size, "%s%s", origins->list, field + 8);
    }
    rename_end(origins, name, n, size);
}
