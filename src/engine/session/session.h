// SPDX-License-Identifier: MIT
// engine/session/session.h: a list of tokens, how many of them are in the cache, and the pages that hold them.
#pragma once
#include "engine/lora/adapter.h"
#include "engine/kv/kv.h"
#include "sample/sampler.h"

typedef struct frit_queue_item {   // a push whose every token has a result: OUTPUT_ALL, OUTPUT_EMBEDDINGS
    size_t first, n;               // tokens [first, first + n) of the session
    frit_push_options options;
} frit_queue_item;

// A token that is to be picked after the session's token `at`; with drafts that follow it, one after each of them too.
enum { FRIT_MAX_ASKS = 2, FRIT_MAX_DRAFTS = 64 };
typedef struct frit_ask {
    size_t at;
    uint64_t position;          // of the first pick's draw
    int32_t n, n_sent, n_run;   // picks: all, those in steps that were submitted, those that have run
    int32_t index;              // of the last one that was sent, among its step's
    frit_pick *picks;           // [n]
    frit_picked_token *picked;
    int32_t capacity;
    frit_pick_lists lists;
} frit_ask;

typedef struct frit_share {   // of the rows that steps have for prompts (prompt_share.c)
    int32_t weight, priority;
    double time;   // prompt rows that ran, by weight
    bool waits;    // it has a prompt that waits
    bool passed;   // in the step that is being made, its turn has been
} frit_share;

typedef struct frit_session_shift {   // shift.c
    bool on;
    int32_t n_keep, n_drop;   // tokens: whole pages
    // That have left since the session was empty. Positions of draws and of the text count them, those of keys do not.
    size_t n_dropped;
} frit_session_shift;

// The last hidden states of a session's tokens (hidden.c), for layers of multi-token prediction.
typedef struct frit_hidden {
    float *rows;       // [capacity, width]
    size_t first, n;   // of tokens [first, first + n)
    size_t capacity, width;
    int32_t n_users;
} frit_hidden;

// Of a session of such a layer's model: whose hidden states it reads.
typedef struct frit_next_text {
    frit_session *of;   // NULL: none
    size_t base;        // its token i is that one's token base + 1 + i
    size_t n_true;      // its first tokens, which read that one's states; the others read its own
} frit_next_text;

struct frit_session {
    frit_engine *engine;   // NULL once the engine was freed
    frit_session *next;
    frit_token *tokens;   // [n_ctx]; -1: what the pick after the token before gives
    size_t n_tokens;      // in the timeline, queued ones too
    size_t n_done;        // of these, run or in flight
    size_t n_flying;      // of these, in flight
    size_t n_long;        // up to here its tokens are of a long prompt, however that is cut into steps
    size_t n_handed;      // of these, run before: where a state begins anew, they run again and give no results
    frit_kv_map map;      // pages for all that ran, and of the source
    // In the prefix cache (prefix.c): what its text depends on beside tokens, NULL where the engine has none; whether
    // what ran may be of something else; and how many tokens it has found there.
    frit_kv_root *root;
    bool is_foreign;
    size_t n_cached;
    int32_t n_known;          // pages of its text that were in memory when it looked for others on disk; -1: it has not
    bool reads;               // these are being read: nothing of it runs
    frit_queue_item *queue;   // oldest first
    size_t n_queue, queue_capacity;
    float *logits;        // [n_vocab]
    size_t logits_at;     // the logits are those after so many tokens; 0: there are none
    bool wants_logits;    // after the last queued token
    size_t snapshot_at;   // after so many tokens a snapshot is kept; 0: nowhere
    char *note;           // the caller's, kept with the session; zero-terminated, or NULL
    size_t n_note_bytes;
    // Of encoder-decoders: the text that the decoder looks at, and what its rows are wanted for.
    frit_token *source;   // [n_ctx], NULL before the first
    size_t n_source;
    bool source_waits;   // is not encoded, nor in flight; the session's tokens wait for it
    frit_push_options source_options;
    frit_ask asks[FRIT_MAX_ASKS];   // oldest first; those after n_asks only have memory
    int32_t n_asks;
    frit_session_shift shift;
    frit_share share;
    struct frit_speculation *speculation;   // NULL: none (speculate.h)
    frit_hidden *hidden;                    // NULL: not kept
    frit_next_text next_text;
    int32_t n_forced;                 // of its queued tokens at most, that a grammar forced (forced.c)
    size_t n_ready;                   // tokens that may run in the step that is being made (schedule.c)
    bool prefill;                     // so many that they are prefill rows (frit_row_class)
    int32_t n_taken;                  // rows that they have in it
    bool waited;                      // had something to run and no row in the last step
    float *scales;                    // [engine->adapters.n]; NULL: no adapters
    frit_adapter_class adapted;       // of these
    frit_status status;               // FRIT_OK, or why its last step failed: it does not run until it is truncated
    char failure[FRIT_ERROR_BYTES];   // the sentence
};

// FRIT_E_INVALID for a session whose engine was freed, or that a row function wants to use in the middle of a step.
// Takes back what runs ahead (ahead.h).
frit_status frit_session_check_usable(const frit_session *session);
// The same; then nothing is in flight.
frit_status frit_session_settle(const frit_session *session);
// Queues the token again that runs ahead of what the caller knows (ahead.c).
void frit_engine_take_back(frit_engine *engine);
// Gives the session this status and the calling thread's sentence, and forgets the row functions of its queue.
void frit_session_fail(frit_session *session, frit_status status);

// What ran runs again, and gives no results but for the last token's logits; its pages are given back.
void frit_session_run_again(frit_session *session);
void frit_session_drop_source(frit_session *session);   // gives its pages back
// Of a session without one: a source that waits to be encoded. The tokens may be unaligned.
frit_status frit_session_set_source(frit_session *session, const void *tokens, size_t n);
// What token i of the session wants from its step.
typedef enum frit_result { FRIT_RESULT_NONE, FRIT_RESULT_LOGITS, FRIT_RESULT_HIDDEN } frit_result;
frit_result frit_session_result(const frit_session *session, size_t i);

// Room for n tokens more, by a shift if the session has one (shift.c). FRIT_E_LIMIT.
frit_status frit_session_make_room(frit_session *session, size_t n);

// The prefix cache (prefix.c). A session that is about to run from its first token on takes what is there of it.
// False if it has to wait for pages that are being read.
bool frit_prefix_begin(frit_session *session);
bool frit_prefix_has_room(const frit_session *session);   // whether the cache has room for all its tokens now
// Leaves what has run for others; all of it where the session `ends`.
void frit_prefix_cache(frit_session *session, bool ends);
void frit_prefix_forget(frit_session *session);   // what it has run is not to be found
frit_status frit_prefix_join(frit_session *session);
void frit_prefix_leave(frit_session *session);
frit_status frit_prefix_adapt(frit_session *session);         // after its adapters have changed
frit_status frit_prefix_note_adapters(frit_engine *engine);   // after slots of adapters have changed

// Hidden states (hidden.c). The session's steps keep them from now on, until all that asked for them have ended it.
frit_status frit_hidden_begin(frit_session *session);
void frit_hidden_end(frit_session *session);
// Those of tokens [at, at + n), which have run.
void frit_hidden_take(frit_hidden *hidden, size_t at, const float *rows, size_t n);
const float *frit_hidden_row(const frit_hidden *hidden, size_t at);   // NULL: not there
// The n_drop tokens after n_keep have left the session (shift.c). NULL: nothing is kept.
void frit_hidden_shift(frit_hidden *hidden, size_t n_keep, size_t n_drop);
// What token i of a session of a layer for multi-token prediction reads.
void frit_hidden_give(const frit_session *session, size_t i, float *row);

// Picks (pick.c): the one that asks for what follows token i, or NULL.
frit_ask *frit_session_ask_after(const frit_session *session, size_t i);
bool frit_session_knows(const frit_session *session, size_t n);      // the first n tokens
frit_status frit_session_check_known(const frit_session *session);   // FRIT_E_INVALID if a token is not known yet
void frit_session_drop_asks(frit_session *session);                  // keeps their memory
void frit_session_free_asks(frit_session *session);
// The result of the pick after token i; `tops` are those of its step.
void frit_session_take_pick(frit_session *session, size_t i, const frit_picked_token *picked, const frit_logprob *tops);
