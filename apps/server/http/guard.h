// SPDX-License-Identifier: MIT
// server/http/guard.h: access control. Three checks before a body is read:
//
// Host    A server on the loopback address answers only to loopback names, so that a web page cannot reach it under a
//         name of its own that it has pointed at 127.0.0.1.
// Origin  A request that a browser sends for another site is refused unless --cors allows that site.
// Key     One of the server's (keys.h) as "Authorization: Bearer KEY" or "X-Api-Key: KEY"; for the web UI also as the
//         password of "Authorization: Basic". Browsers send a password by themselves, also for other sites' pages:
//         those are refused then, with and without --cors.
#pragma once
#include "server/ops/keys.h"

typedef struct server_guard {
    server_keys *keys;
    frit_option_list origins;
    const char *host;   // as it was given
    bool loopback;      // the server listens on a loopback address only
} server_guard;

typedef struct server_caller {   // headers; NULL where absent
    const char *host, *origin, *authorization, *api_key, *fetch_site, *fetch_mode, *method;
} server_caller;

// The caller's key, retained; NULL: it has none of the server's.
server_key *server_guard_key(const server_guard *guard, const server_caller *caller);
bool server_guard_admits(const server_guard *guard, const server_caller *caller, const server_key *key, bool needs_key,
                         server_problem *problem);
// False with a problem: an origin that no browser sends, which would allow nothing.
bool server_guard_check_origins(const server_guard *guard, server_problem *problem);
// What Access-Control-Allow-Origin says to this origin; NULL: nothing.
const char *server_guard_allowed_origin(const server_guard *guard, const char *origin);
