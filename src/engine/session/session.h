// SPDX-License-Identifier: MIT
// engine/session/session.h: a list of tokens, how many of them are in the cache, and the pages that hold them.
#pragma once
#include "engine/kv/session_prefix.h"
#include "engine/lora/adapter.h"
#include "engine/media/soft.h"
#include "engine/session/hidden.h"
#include "engine/session/pick_request.h"
#include "engine/session/shift.h"

typedef struct frit_row_push {   // a push with a result for every token: OUTPUT_ALL, OUTPUT_EMBEDDINGS
    size_t first, n;             // tokens [first, first + n) of the session
    frit_push_options options;
} frit_row_push;

typedef struct frit_session_results {   // what the session's steps give to its caller
    frit_row_push *pushes;              // [n_pushes], oldest first: their row functions are still to be called
    size_t n_pushes, capacity;
    size_t n_delivered;   // results of tokens before this one were delivered: they give none if they run again
    float *logits;        // [n_vocab]
    size_t logits_at;     // `logits` are of the first logits_at tokens; 0: there are none
    bool needs_logits;    // after the last queued token
} frit_session_results;

typedef struct frit_source_text {   // of encoder-decoders: the text that the decoder looks at
    frit_token *tokens;             // [n_ctx]; NULL before the first
    size_t n;
    bool waits;                  // it is neither encoded nor in flight, and the session's tokens wait for it
    frit_push_options options;   // which of its rows are results
} frit_source_text;

typedef struct frit_session_prompt {   // how the session's prompts share steps with others (sched/prompt_share.c)
    int32_t weight, priority;
    double time;        // prompt rows that ran, divided by the weight
    bool waits;         // some prompt rows are queued
    bool was_offered;   // rows of the step that is being made
    size_t n_long;      // tokens before this one are of a long prompt (FRIT_ROWS_LONG_PREFILL)
} frit_session_prompt;

typedef struct frit_session_step {   // the session's part in the step that is being made (sched/schedule.c)
    size_t n_ready;                  // tokens that may run in it
    bool prefill;                    // so many that they are prefill rows (frit_row_class)
    int32_t n_rows;                  // rows that the session has been given
    bool waited;                     // it had something to run and got no row in the step before
} frit_session_step;

typedef struct frit_session_adapters {   // the adapters of the session's rows
    float *scales;                       // [engine->adapters.n]; NULL: no adapters
    frit_adapter_class plan_class;       // that plans for them need
} frit_session_adapters;

typedef struct frit_note {   // the caller's note, saved with the session
    char *text;              // zero-terminated, or NULL
    size_t n_bytes;
} frit_note;

typedef struct frit_session_failure {   // why the last step failed: the session does not run until it is truncated
    frit_status status;                 // FRIT_OK: it did not
    frit_failure error;                 // what frit_error and its kin return
} frit_session_failure;

struct frit_session {
    frit_engine *engine;   // NULL once the engine was freed
    frit_session *next;    // in the engine's list
    frit_token *tokens;    // [n_ctx]; -1: the token that the pick after the token before gives
    size_t n_tokens;       // run or queued
    size_t n_done;         // of n_tokens: run or in flight
    size_t n_flying;       // of n_done: in flight
    size_t snapshot_at;    // a snapshot is taken after so many tokens; 0: nowhere
    frit_kv_map map;       // pages of the tokens that ran, and of the source
    frit_session_results results;
    frit_pick_requests pick;
    frit_session_prompt prompt;
    frit_session_step step;
    frit_source_text source;
    frit_session_prefix prefix;
    frit_session_shift shift;
    frit_session_soft soft;
    frit_session_adapters adapters;
    frit_session_failure failure;
    frit_note note;
    struct frit_speculation *speculation;   // NULL: none (spec/speculate.h)
    frit_hidden *hidden;                    // NULL: hidden states are not stored
    frit_mtp_text mtp;
};

// FRIT_E_INVALID for a session whose engine was freed, or that a row function uses in the middle of a step. Cancels a
// step that runs ahead (sched/ahead.h).
frit_status frit_session_check_usable(const frit_session *session);
// frit_session_check_usable, then waits until no step in flight has rows of the session.
frit_status frit_session_settle(const frit_session *session);
// frit_session_check_usable, then waits until nothing is in flight.
frit_status frit_session_settle_all(const frit_session *session);
// Gives the session this status and the calling thread's sentence, and forgets the row functions of its queue.
void frit_session_fail(frit_session *session, frit_status status);

// Queues all tokens that ran again, to give no results but the last token's logits, and releases their pages.
void frit_session_run_again(frit_session *session);
// Queues the tokens from `first` on again, and tokens before them if the cache cannot go back to `first`. None of them
// is in flight.
void frit_session_run_from(frit_session *session, size_t first);
void frit_session_release_source(frit_session *session);   // releases its pages
// Gives a session without a source one that waits to be encoded. `tokens` may be unaligned.
frit_status frit_session_set_source(frit_session *session, const void *tokens, size_t n);
typedef enum frit_result { FRIT_RESULT_NONE, FRIT_RESULT_LOGITS, FRIT_RESULT_HIDDEN } frit_result;
frit_result frit_session_result(const frit_session *session, size_t i);   // of token i when it runs
