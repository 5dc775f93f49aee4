// SPDX-License-Identifier: MIT
// engine/session/pick_request.h: picks that a session requests from its steps. A request is made of the sampler when
// the caller asks for the pick; a step that runs the token copies it into its own lists (sched/batch_layout.c) and
// leaves the picked token in the request.
//
// If the token of the request before is queued but not taken, the sampler has not accepted it: penalties of the new
// request count it all the same. While it is not known, the request has a count of an unknown token
// (frit_pick_unknown).
//
// A late pick is made of the sampler when a step with its row has been submitted already (sched/late.h).
#pragma once
#include "sample/sampler.h"

enum { FRIT_MAX_PICK_REQUESTS = 2, FRIT_MAX_DRAFTS = 64 };

typedef enum frit_pick_lateness {
    FRIT_PICK_ON_TIME,   // the picks were made when they were requested, or have been submitted since
    FRIT_PICK_OPEN,      // not made yet: frit_session_complete_pick makes it
    FRIT_PICK_MADE,      // made, and not submitted yet, while its row is in the last step
    FRIT_PICK_LOST,      // not made before a step followed that of its row, so the row has to run again
} frit_pick_lateness;

// Requests a pick after the session's token `at` and, with drafts, one after each draft that follows it.
typedef struct frit_pick_request {
    size_t at;
    uint64_t position;               // of the first pick's draw
    int32_t n, n_submitted, n_run;   // picks: all, in steps that were submitted, in steps that have run
    int32_t index;                   // of the last submitted pick, among the picks of its step
    frit_pick *picks;                // [n]
    frit_picked_token *picked;
    int32_t capacity;
    frit_pick_lists lists;
    bool is_pushed;   // frit_session_push_picked has queued its token
    frit_pick_lateness late;
    frit_pick_options options;   // of a late pick
    int32_t row;                 // its output row in the last step that had it
} frit_pick_request;

typedef struct frit_pick_requests {                       // tokens that steps pick, and tokens that need no pick
    frit_pick_request requests[FRIT_MAX_PICK_REQUESTS];   // [n] in use, oldest first; the rest only holds memory
    int32_t n;
    int32_t n_forced;   // at most so many of the queued tokens were forced by a grammar (forced.c)
} frit_pick_requests;

// Reserves memory for n picks, one of them verified by n - 1 drafts, and for n_tops log-probabilities.
frit_status frit_pick_request_reserve(frit_pick_request *request, int32_t n, int32_t n_tops);
frit_pick_request *frit_session_find_pick(const frit_session *session, size_t i);   // after token i, or NULL
bool frit_session_knows(const frit_session *session, size_t n);                     // true if the first n are known
frit_status frit_session_check_known(const frit_session *session);   // FRIT_E_INVALID if a token is not known yet
void frit_session_clear_picks(frit_session *session);                // keeps the requests' memory
void frit_session_free_picks(frit_session *session);
// Stores the result of the pick after token i. `tops` are its step's likeliest tokens.
void frit_session_store_pick(frit_session *session, size_t i, const frit_picked_token *picked,
                             const frit_logprob *tops);
