// SPDX-License-Identifier: MIT
// engine/media/soft.h: soft tokens: tokens of a session that stand for rows of features instead of rows of the token
// table. The features of a picture are runs of soft tokens.
//
// The ids of soft tokens begin at FRIT_FIRST_SOFT and carry a hash of the picture's content and of the row, so a prompt
// is a list of ids as ever, and the prefix cache compares soft ids like others. A session takes a run by its ids: the
// engine knows the runs that exist. No sampler, draft or vocabulary knows these ids.
//
// Models with sections of RoPE (M-RoPE) rotate the rows of a picture by time, row and column. The text after it goes on
// at the position after the largest of these, so that rotary positions and positions in the cache differ.
#pragma once
#include "frit.h"
#include "media/processor.h"

#include <stdbool.h>

typedef struct frit_picture frit_picture;   // media/picture.h

enum { FRIT_FIRST_SOFT = 1 << 30, FRIT_ROPE_AXES = 3 };

typedef struct frit_soft_run {   // consecutive soft tokens, with a reference count
    frit_engine *engine;         // that knows it; NULL: the engine was freed
    int32_t n_refs;              // 0: the run is kept for later
    uint64_t used_at;            // the engine's clock when the last reference ended
    frit_picture *picture;       // that gives the features; NULL: they are there
    uint8_t digest[32];          // of the content
    int32_t n_tokens, width;
    int32_t n_positions;                 // rotary positions that it takes; n_tokens without M-RoPE
    frit_token *ids;                     // [n_tokens]
    float *features;                     // [n_tokens, width]; NULL: not encoded yet
    int32_t (*places)[FRIT_ROPE_AXES];   // [n_tokens]: rotary positions after the run's first; NULL: no M-RoPE
} frit_soft_run;

typedef struct frit_soft_runs {   // the runs of an engine; its thread alone uses them
    frit_soft_run **list;         // [n]
    size_t n, capacity;
    float *rows;      // [n_rows]: the input of a step with soft tokens; NULL: no session had any
    int32_t n_rows;   // n_batch when it was allocated
    // Runs without references stay as long as their features have cache_bytes together; the least recently used are
    // freed.
    uint64_t cache_bytes, idle_bytes, clock;
    uint64_t n_encoded;   // pictures
} frit_soft_runs;

// Returns the id of token i of a run.
frit_token frit_soft_id(const uint8_t digest[32], int32_t i);
// Makes a run of height x width features of n numbers. `digest` is a hash of the content. With `has_axes` features
// rotate by their row and column. features NULL: they come by frit_soft_run_fill, from a picture that the caller sets.
frit_status frit_soft_run_new(frit_soft_run **out, frit_engine *engine, const float *features, int32_t height,
                              int32_t width, int32_t n, const uint8_t digest[32], bool has_axes);
frit_status frit_soft_run_fill(frit_soft_run *run, const float *features);
// Returns another reference to the run with this content, or NULL.
frit_soft_run *frit_soft_run_find(const frit_engine *engine, const uint8_t digest[32]);
void frit_soft_run_unref(frit_soft_run *run);   // NULL is allowed
void frit_soft_set_cache(frit_engine *engine, uint64_t n_bytes);
void frit_soft_runs_free(frit_engine *engine);   // runs that are still referenced stay, without an engine

typedef struct frit_soft_item {   // a run in a session
    frit_soft_run *run;
    size_t first;   // its first token
} frit_soft_item;

typedef struct frit_session_soft {
    frit_soft_item *items;   // [n], in the order of their tokens
    size_t n, capacity;
} frit_session_soft;

// Makes steps larger for a picture whose rows must run in one step, and makes room for the runs. Fails for soft ids
// among tokens that are no whole run of the engine. FRIT_E_UNSUPPORTED if the model cannot read them.
frit_status frit_session_soft_reserve(frit_session *session, const frit_token *tokens, size_t n);
// Takes the runs among n tokens that are appended to the session, after frit_session_soft_reserve.
void frit_session_soft_take(frit_session *session, const frit_token *tokens, size_t n);
// Returns a run that has no features yet and is among the session's queued tokens; NULL: none. A session waits until
// all its features are there, so that its rows do not depend on what other sessions had encoded.
frit_soft_run *frit_session_soft_awaits(const frit_session *session);
// Rotary position of token i of the session.
int32_t frit_session_rotary(const frit_session *session, size_t i);
frit_status frit_session_soft_copy(frit_session *to, const frit_session *from);
void frit_session_soft_drop(frit_session *session, size_t n_keep);   // runs that do not begin before n_keep
// Returns the largest number of tokens up to n that ends within no run.
size_t frit_session_soft_floor(const frit_session *session, size_t n);
// Returns how many of n rows from token `first` on a step may have: where rows of a picture see each other, it has all
// rows of a picture. May be more than n, if a picture begins at `first` or before it.
size_t frit_session_soft_rows(const frit_session *session, size_t first, size_t n);
void frit_session_soft_free(frit_session *session);

// Plain text around the marks of a picture (Gemma 3). It is tokenized with the text beside it.
typedef struct frit_picture_edges {
    char place[FRIT_MARK_BYTES];   // the placeholder
    char lead[FRIT_MARK_BYTES], tail[FRIT_MARK_BYTES];
    size_t n_lead, n_tail;   // the first and last tokens of the picture, which are those of this text alone
} frit_picture_edges;

// Fills the input that a step with soft tokens needs, if it has some; sets frit_step.has_soft.
void frit_soft_lay_out(frit_engine *engine);
// Returns the bytes of this input for n_rows rows.
uint64_t frit_soft_step_bytes(const frit_engine *engine, int32_t n_rows);
