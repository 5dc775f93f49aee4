// SPDX-License-Identifier: MIT
// engine/media/picture.h: a picture before it is encoded: what it is in a prompt, which needs no engine.
//
// A picture is marks and runs of soft tokens. Their ids are hashes of the pixels and of what is done with them, so a
// prompt can be made on any thread, and an engine encodes the picture when a session has to run its tokens. A picture
// never changes; any thread may use it.
#pragma once
#include "engine/media/soft.h"
#include "media/image.h"
#include "media/processor.h"

#include <stdatomic.h>

// How the pictures of a model become tokens.
typedef struct frit_picture_rules {
    frit_processor processor;
    frit_token placeholder;   // that the chat template writes for a picture
    uint8_t digest[32];       // of the encoder's files, if these are not the model's
    char encoder[];           // the path of its folder or mmproj file
} frit_picture_rules;
// Returns the rules of a model, which are read when they are first asked for. FRIT_E_UNSUPPORTED if the model reads no
// pictures. Any thread may call it.
frit_status frit_model_get_picture_rules(const frit_model *model, const frit_picture_rules **out);

typedef struct frit_picture_run {   // consecutive soft tokens
    uint8_t digest[32];             // of the content
    uint32_t first, n;              // soft tokens of the picture
} frit_picture_run;

struct frit_picture {
    _Atomic int n_refs;
    frit_processor processor;   // the model's, within the limits of the options
    frit_picture_plan plan;
    frit_image *image;    // NULL: `patches` was made of it
    float *patches;       // [plan.n_patches, plan.patch_values]; NULL: they would need more memory than the image
    uint8_t digest[32];   // of the content
    frit_token placeholder;
    frit_token *tokens;   // [n]: marks and soft tokens, which replace the placeholder in a prompt
    size_t n, capacity;
    frit_picture_edges edges;
    frit_picture_run *runs;   // [n_runs], in the order of their tokens
    size_t n_runs, runs_capacity;
};

// Makes a picture of an image, which is not used after the call. `options` may be NULL. FRIT_E_UNSUPPORTED,
// FRIT_E_INVALID and FRIT_E_LIMIT for sizes that the model refuses, FRIT_E_MEMORY.
frit_status frit_picture_new(frit_picture **out, const frit_model *model, const frit_image *image,
                             const frit_media_options *options);
frit_picture *frit_picture_ref(frit_picture *picture);
void frit_picture_unref(frit_picture *picture);   // NULL is allowed
