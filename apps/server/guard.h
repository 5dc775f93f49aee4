// SPDX-License-Identifier: MIT
// server/guard.h: access control. Three checks before a body is read:
//
// Host    A server on the loopback address answers only to loopback names, so that a web page cannot reach it under a
//         name of its own that it has pointed at 127.0.0.1.
// Origin  A request that a browser sends for another site is refused unless --cors allows that site.
// Key     One of --api-key as "Authorization: Bearer KEY" or "X-Api-Key: KEY".
#pragma once
#include "server/problem.h"

#include "frit.h"

typedef struct server_guard {
    frit_option_list keys, origins;
    const char *host;   // as it was given
    bool loopback;      // the server listens on a loopback address only
} server_guard;

typedef struct server_caller {   // headers; NULL where absent
    const char *host, *origin, *authorization, *api_key;
} server_caller;

bool server_guard_admits(const server_guard *guard, const server_caller *caller, bool needs_key,
                         server_problem *problem);
// The number of the caller's key, from 1 on; 0: it has none of them.
size_t server_guard_key(const server_guard *guard, const server_caller *caller);
// What Access-Control-Allow-Origin says to this origin; NULL: nothing.
const char *server_guard_allowed_origin(const server_guard *guard, const char *origin);
