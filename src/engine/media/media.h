// SPDX-License-Identifier: MIT
// engine/media/media.h: pictures as parts of prompts (frit/media.h): encoded, with the marks that the model expects
// around their features.
#pragma once
#include "engine/media/soft.h"

struct frit_media {
    int n_refs;
    frit_token *tokens;   // [n]: marks and soft tokens, which replace the placeholder in a prompt
    size_t n, capacity;
    frit_soft_run **runs;   // [n_runs]
    size_t n_runs, runs_capacity;
    frit_token placeholder;   // that the chat template writes for a picture
};

frit_media *frit_media_ref(frit_media *media);
// Copies a prompt with each placeholder replaced by the next picture. FRIT_E_INVALID if there are more or fewer
// placeholders than pictures. *out is malloc'd.
frit_status frit_media_place_all(frit_token **out, size_t *n_out, const frit_token *tokens, size_t n,
                                 frit_media *const *media, size_t n_media);

typedef struct frit_pictures frit_pictures;   // what an engine needs to encode pictures; made when the first comes
void frit_pictures_free(frit_pictures *pictures);   // NULL is allowed
