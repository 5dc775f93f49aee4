// SPDX-License-Identifier: MIT
// engine/session.h: a list of tokens, how many of them are in the cache, and the pages that hold them.
#pragma once
#include "engine/adapter.h"
#include "engine/kv.h"

typedef struct frit_queue_item {   // a push whose every token has a result: OUTPUT_ALL, OUTPUT_EMBEDDINGS
    size_t first, n;               // tokens [first, first + n) of the session
    frit_push_options options;
} frit_queue_item;

struct frit_session {
    frit_engine *engine;   // NULL once the engine was freed
    frit_session *next;
    frit_token *tokens;       // [n_ctx]
    size_t n_tokens;          // in the timeline, queued ones too
    size_t n_done;            // of these, run
    size_t n_handed;          // of these, run before: where a state begins anew, they run again and give no results
    frit_kv_map map;          // pages for all n_tokens
    frit_queue_item *queue;   // oldest first
    size_t n_queue, queue_capacity;
    float *logits;       // [n_vocab]
    size_t logits_at;    // the logits are those after so many tokens; 0: there are none
    bool wants_logits;   // after the last queued token
    size_t copy_at;      // after so many tokens a copy of the states is kept; 0: nowhere
    char *note;          // the caller's, kept with the session; zero-terminated, or NULL
    size_t n_note_bytes;
    // Of encoder-decoders: the text that the decoder looks at, its pages, and what its rows are wanted for.
    frit_token *source;   // [n_ctx], NULL before the first
    size_t n_source;
    bool source_waits;   // has not been encoded yet; the session's tokens wait for it
    frit_kv_map source_map;
    frit_push_options source_options;
    int32_t n_taken;                  // rows in the step that is being made
    bool waited;                      // had something to run and no row in the last step
    float *scales;                    // [engine->adapters.n]; NULL: no adapters
    frit_status status;               // FRIT_OK, or why its last step failed: it does not run until it is truncated
    char failure[FRIT_ERROR_BYTES];   // the sentence
};

// FRIT_E_INVALID for a session whose engine was freed, or that a row function wants to use in the middle of a step.
frit_status frit_session_check_usable(const frit_session *session);
// The layers of the cache that hold a session's own positions, and those that hold its source's, if it has one.
frit_kv_layers frit_engine_own_layers(const frit_engine *engine);
frit_kv_layers frit_engine_source_layers(const frit_engine *engine);
// Gives the session this status and the calling thread's sentence, and forgets the row functions of its queue.
void frit_session_fail(frit_session *session, frit_status status);

void frit_session_drop_source(frit_session *session);   // gives its pages back
// Of a session without one: a source that waits to be encoded. The tokens may be unaligned.
frit_status frit_session_set_source(frit_session *session, const void *tokens, size_t n);
// What token i of the session wants from its step.
typedef enum frit_result { FRIT_RESULT_NONE, FRIT_RESULT_LOGITS, FRIT_RESULT_HIDDEN } frit_result;
frit_result frit_session_result(const frit_session *session, size_t i);
