// SPDX-License-Identifier: MIT
// engine/media/anyres.h: the features of a picture that the rule ANYRES cuts into tiles (LLaVA-NeXT, LLaVA-OneVision).
#pragma once
#include "media/processor.h"

// Puts together the features of a planned picture, `width` numbers each: those of the whole picture, then those of the
// tiles as one grid. Its rows and columns of padding are left out, the rest is shrunk bilinearly if the plan says so,
// and `newline` follows each row. `tiles` has the features of all tiles, the whole picture first; features
// [plan->n_soft, width].
void frit_anyres_join(const frit_picture_plan *plan, const float *tiles, const float *newline, size_t width,
                      float *features);
