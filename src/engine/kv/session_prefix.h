// SPDX-License-Identifier: MIT
// engine/kv/session_prefix.h: how sessions use the prefix cache (prefix_cache.c). Before its first token runs, a
// session takes the pages that the cache has of its text. Tokens that it has run are stored for other sessions.
#pragma once
#include "engine/kv/kv.h"

typedef struct frit_session_prefix {   // a session's part in the prefix cache
    frit_kv_root *root;                // what its text depends on beside tokens; NULL: the engine has no prefix cache
    bool is_foreign;                   // what has run may not belong to its tokens, and is not stored
    bool is_reading;                   // pages are being read from disk: no row of the session runs
    size_t n_cached;                   // tokens that the cache had
    int32_t n_known;   // pages of its text that were in memory when it looked for others on disk; -1: it has not
} frit_session_prefix;

// Takes pages from the cache for a session that is about to run its first token. False if it has to wait for pages that
// are being read.
bool frit_prefix_begin(frit_session *session);
bool frit_prefix_has_room(const frit_session *session);   // true if there are pages for all of its tokens
// Stores what has run for other sessions; all of it where the session `ends`.
void frit_prefix_cache(frit_session *session, bool ends);
void frit_prefix_drop(frit_session *session);   // what it has run is found no more
frit_status frit_prefix_join(frit_session *session);
void frit_prefix_leave(frit_session *session);
frit_status frit_prefix_adapt(frit_session *session);           // after its adapters have changed
frit_status frit_prefix_number_adapters(frit_engine *engine);   // after the engine's adapters have changed
// Opens the folder for the prefix cache that options name, if they name one. FRIT_E_INVALID.
frit_status frit_prefix_open_disk(frit_engine *engine, const char *prefix_disk);
