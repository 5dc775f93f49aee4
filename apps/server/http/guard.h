// SPDX-License-Identifier: MIT
// server/http/guard.h: access control. Three checks before a body is read:
//
// Host    A server on the loopback address answers only to loopback names, so that a web page cannot reach it under a
//         name of its own that points at 127.0.0.1.
// Origin  A request that a browser sends for another site is refused unless --cors allows that site.
// Key     A key of the server (keys.h) as "Authorization: Bearer KEY" or "X-Api-Key: KEY", and for the web UI as the
//         password of "Authorization: Basic". Browsers send a password by themselves, also for documents of other
//         sites, so a password that comes from another site is refused, with or without --cors.
#pragma once
#include "server/ops/keys.h"

typedef struct server_guard {
    server_keys *keys;
    frit_option_list origins;
    const char *host;   // as given by --host
    bool loopback;      // the server listens on a loopback address only
} server_guard;

typedef struct server_caller {   // headers; NULL: absent
    const char *host, *origin, *authorization, *api_key, *fetch_site, *fetch_mode, *method;
} server_caller;

// A reference to the caller's key; NULL: no key, or an unknown one.
server_key *server_guard_key(const server_guard *guard, const server_caller *caller);
bool server_guard_admits(const server_guard *guard, const server_caller *caller, const server_key *key, bool needs_key,
                         server_problem *problem);
// Checks an origin of --cors. False with a problem if no browser sends such an origin.
bool server_guard_check_origins(const server_guard *guard, server_problem *problem);
// The value of Access-Control-Allow-Origin for this origin; NULL: none.
const char *server_guard_allowed_origin(const server_guard *guard, const char *origin);
