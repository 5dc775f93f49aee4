// SPDX-License-Identifier: MIT
// Resumed streams: from a byte on, as in llama.cpp's server, or after an event.
#include "server/api/handlers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool read_number(const char *text, const char *name, uint64_t *number, server_problem *problem)
{
    const size_t n = strspn(text, "0123456789");
    errno = 0;
    *number = strtoull(text, NULL, 10);
    return (n > 0 && text[n] == 0 && errno == 0) ||
           server_refuse(problem, 400, "invalid_value", name, "%s: '%.64s' is not a number of 0 or more", name, text);
}

static bool refuse_lost(server_exchange *exchange)
{
    return server_refuse(&exchange->problem, 410, "stream_lost", NULL,
                         "this part of the stream is not kept: at most %d MiB of a stream are kept",
                         SERVER_REPLAY_BYTES >> 20);
}

bool server_replay_follow(server_exchange *exchange, server_replay *replay, const char *after)
{
    uint64_t id = 0, position = 0;
    if (after && !read_number(after, "starting_after", &id, &exchange->problem)) return false;
    if (after && !server_replay_after(replay, id, &position)) return refuse_lost(exchange);
    if (!server_replay_has(replay, position)) return refuse_lost(exchange);
    exchange->replay = replay;
    exchange->from = position;
    return true;
}

static bool refuse_unknown(server_exchange *exchange)
{
    return server_refuse(&exchange->problem, 404, "not_found", NULL,
                         "there is no stream '%.128s', or it ended more than %d minutes ago", exchange->rest,
                         SERVER_REPLAY_SECONDS / 60);
}

void server_show_stream(server_exchange *exchange)
{
    server_replay *replay = server_replays_find(exchange->site->replays, exchange->rest, exchange->key);
    const char *from = exchange->query(exchange, "from");
    if (!replay) {
        refuse_unknown(exchange);
        return;
    }
    bool good;
    if (from) {
        good = read_number(from, "from", &exchange->from, &exchange->problem) &&
               (server_replay_has(replay, exchange->from) || refuse_lost(exchange));
        if (good) exchange->replay = replay;
    } else {
        good = server_replay_follow(exchange, replay, exchange->last_event);
    }
    if (!good) server_replay_unref(replay);
}

// Replies with "deleted": false, not with a problem, if there is no such stream.
void server_delete_stream(server_exchange *exchange)
{
    server_replay *replay = server_replays_find(exchange->site->replays, exchange->rest, exchange->key);
    if (replay) server_replay_cancel(replay);
    server_replay_unref(replay);
    server_reply(exchange, json_pack("{s:b}", "deleted", replay != NULL));
}
