// SPDX-License-Identifier: MIT
// engine/media/encoder.h: runs the encoder of pictures of a model (arch/media.h) on the CPU of an engine.
//
// An encoder has weights of its own, which are read from the model's folder when it is opened. It is planned for the
// largest picture that it has met, and planned again when a larger one comes. It belongs to the engine's thread, like
// the device that it uses.
#pragma once
#include "arch/media.h"
#include "engine/engine.h"

typedef struct frit_encoder frit_encoder;

// Opens the encoder in `path`, a folder or an mmproj file. FRIT_E_UNSUPPORTED if the model takes no pictures, or of a
// kind that frit cannot run.
frit_status frit_encoder_open(frit_encoder **out, frit_engine *engine, const char *path);
void frit_encoder_close(frit_encoder *encoder);   // NULL is allowed
// Sets the rows that a picture of this grid has in the encoder and in the text.
frit_status frit_encoder_count(const frit_encoder *encoder, frit_media_grid grid, frit_media_size *out);
int64_t frit_encoder_width(const frit_encoder *encoder);          // elements of a row of results
const float *frit_encoder_newline(const frit_encoder *encoder);   // a row of results (anyres.h); NULL: none
int64_t frit_encoder_patch_width(const frit_encoder *encoder);    // pixels of a patch
// Encodes a picture: pixels [grid.height * grid.width, patch_width] in the order of the model's processor, to
// features [n_outs, width]. FRIT_E_FORMAT if a result is not finite.
frit_status frit_encoder_run(frit_encoder *encoder, frit_media_grid grid, const float *pixels, float *features);
