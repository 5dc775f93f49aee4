// SPDX-License-Identifier: MIT
// engine/media/media.h: pictures as parts of prompts (frit/media.h), and their encoding by an engine.
//
// An engine encodes one picture at a time, in pieces: a tile, or a picture without tiles. It encodes pictures for which
// sessions wait (soft.h), a piece beside each step, so that other sessions run between two pieces.
#pragma once
#include "base/buf.h"
#include "base/spans.h"
#include "engine/media/soft.h"

struct frit_media {
    const frit_token *tokens;   // [n]: the picture's, or own_tokens
    size_t n;
    frit_token placeholder;
    frit_picture_edges edges;
    frit_picture *picture;    // NULL: a copy of the tokens
    frit_token *own_tokens;   // of a copy
    frit_soft_run **runs;     // [n_runs]: of the engine that encoded the picture; NULL: none did
    size_t n_runs;
};

// Copies the tokens of a picture.
frit_status frit_media_copy_tokens(frit_media **out, const frit_media *media);
// surround.c: writes the plain text of a picture's edges around each placeholder of a prompt, where it is tokenized
// with the text beside it. Untrusted ranges, which have no placeholders, move.
frit_status frit_media_surround(frit_buf *prompt, frit_spans *untrusted, frit_media *const *media, size_t n_media);
// Copies a prompt with each placeholder replaced by the next picture, without the text of its edges. FRIT_E_INVALID if
// there are more or fewer placeholders than pictures. *out is malloc'd.
frit_status frit_media_place_all(frit_token **out, size_t *n_out, const frit_token *tokens, size_t n,
                                 frit_media *const *media, size_t n_media);

// Makes the runs of pictures known to an engine, so that a session can take them. *runs is malloc'd; frit_media_leave
// ends the references.
frit_status frit_media_enter(frit_soft_run ***runs, size_t *n_runs, frit_engine *engine, frit_media *const *media,
                             size_t n_media);
void frit_media_leave(frit_soft_run **runs, size_t n_runs);

typedef struct frit_pictures frit_pictures;   // what an engine needs to encode pictures; made when the first comes
void frit_pictures_free(frit_pictures *pictures);   // NULL is allowed
// Runs a piece of the encoding of a picture that a session waits for. False: none waits. If the encoder fails, the
// sessions that wait for the picture fail.
bool frit_media_advance(frit_engine *engine);
