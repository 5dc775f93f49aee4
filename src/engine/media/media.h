// SPDX-License-Identifier: MIT
// engine/media/media.h: pictures in sessions. An encoded picture is a run of tokens that stand for rows of features
// instead of rows of the token table.
//
// The ids of such soft tokens begin at FRIT_FIRST_SOFT and carry a hash of the picture's content and of the row, so the
// prefix cache compares them like other ids. No sampler, draft or vocabulary knows them.
//
// Models with sections of RoPE (M-RoPE) rotate the rows of a picture by time, row and column. The text after it goes on
// at the position after the largest of these, so that rotary positions and positions in the cache differ.
#pragma once
#include "frit.h"

#include <stdbool.h>

enum { FRIT_FIRST_SOFT = 1 << 30, FRIT_ROPE_AXES = 3 };

typedef struct frit_media {   // an encoded picture; immutable, with a reference count
    _Atomic int n_refs;
    int32_t n_tokens, width;
    int32_t n_positions;                 // rotary positions that it takes; n_tokens without M-RoPE
    frit_token *ids;                     // [n_tokens]
    float *features;                     // [n_tokens, width]
    int32_t (*places)[FRIT_ROPE_AXES];   // [n_tokens]: rotary positions after the picture's first; NULL: no M-RoPE
} frit_media;

// Makes a picture of height x width features [height * width, n]. `digest` identifies its content. With `has_axes`
// features rotate by their row and column.
frit_status frit_media_of_features(frit_media **out, const float *features, int32_t height, int32_t width, int32_t n,
                                   const uint8_t digest[32], bool has_axes);
frit_media *frit_media_ref(frit_media *media);
void frit_media_unref(frit_media *media);   // NULL is allowed

typedef struct frit_media_item {   // a picture of a session
    frit_media *media;
    size_t first;   // its first token
} frit_media_item;

typedef struct frit_session_media {
    frit_media_item *items;   // [n], in the order of their tokens
    size_t n, capacity;
} frit_session_media;

// Queues the tokens of a picture. FRIT_E_UNSUPPORTED if the model cannot read pictures, FRIT_E_LIMIT if there is no
// room.
frit_status frit_session_push_features(frit_session *session, frit_media *media);
// Rotary position of token i of the session.
int32_t frit_session_rotary(const frit_session *session, size_t i);
frit_status frit_session_media_copy(frit_session *to, const frit_session *from);
void frit_session_media_drop(frit_session *session, size_t n_keep);   // pictures without tokens among the first n_keep
// The largest number of tokens up to n that ends within no picture.
size_t frit_session_media_floor(const frit_session *session, size_t n);
void frit_session_media_free(frit_session *session);

// Fills the input that a step with soft tokens needs, if it has some; sets frit_step.has_media.
void frit_media_lay_out(frit_engine *engine);
// Bytes of this input for the rows of the step.
uint64_t frit_media_step_bytes(const frit_engine *engine, int32_t n_rows);
