// SPDX-License-Identifier: MIT
// engine/session/shift.h: the context shift, which drops old tokens of a session whose context is full.
#pragma once
#include "frit.h"

typedef struct frit_session_shift {
    bool on;
    int32_t n_keep, n_drop;   // tokens: whole pages
    // Tokens that have left since the session was empty. They count in positions of draws and of the text, not in
    // positions of keys.
    size_t n_dropped;
} frit_session_shift;

// Makes room for n more tokens in the context, by a shift if the session has one. FRIT_E_LIMIT.
frit_status frit_session_make_room(frit_session *session, size_t n);
