// SPDX-License-Identifier: MIT
// quantize/refine_stream.h: runs an engine through a model layer by layer, over the windows of a text.
//
// The input of the next layer is stored for all windows, so that each layer runs alone. If memory does not suffice, or
// layers read more than the residual, all earlier layers run again each time.
#pragma once
#include "engine/engine.h"
#include "quantize/covariance.h"

enum { FRIT_REFINE_WINDOW = 512, FRIT_REFINE_AT_ONCE = 4 };   // windows of a step

typedef struct frit_refine_text {
    const frit_token *tokens;   // [n_windows, window]
    int64_t n_windows, window;
    frit_token bos;
    bool has_bos;
} frit_refine_text;

typedef struct frit_refine_stream {
    frit_engine *engine;   // borrowed
    const frit_refine_text *text;
    const char *path;   // large arrays are in an unnamed file beside it; NULL: in memory
    float *rows;        // [n_windows, window, n_embd]: input of `layer`; NULL: windows run from their tokens on
    uint64_t n_bytes;   // of `rows`
    bool is_mapped;     // `rows` is a mapped file
    int32_t layer;      // 0: windows run from their tokens on
    bool advances;      // the output of the layer replaces its input in `rows`
} frit_refine_stream;

// Allocates rows for all windows, if layers can run alone and `most` bytes suffice.
frit_status frit_refine_stream_open(frit_refine_stream *stream, const frit_model *model, uint64_t most);
void frit_refine_stream_close(frit_refine_stream *stream);

// Sets the layer that windows run to, n_layer for the output, and the covariance that observes them.
frit_status frit_refine_stream_begin(frit_refine_stream *stream, frit_covariance *covariance, int32_t layer,
                                     bool advances);
// Windows first, first + apart, ...; n is 1 to FRIT_REFINE_AT_ONCE.
typedef struct frit_refine_windows {
    int64_t first, apart, n;
} frit_refine_windows;

// Runs the first n tokens of each window in one step, if the engine has room, so that the layer's weights are read
// once.
frit_status frit_refine_stream_run(const frit_refine_stream *stream, frit_refine_windows windows, int64_t n);

// Runs the first n tokens of window w. Tokens before `first` give no results; row 0 is of token `first`.
frit_status frit_refine_text_run(const frit_refine_text *text, frit_engine *engine, int64_t w, int64_t n, int64_t first,
                                 const frit_push_options *options);

// refine_measure.c: measures the KL divergence of the file's predictions from the model's, over windows first, first +
// step, ..., at most `most`. The second part of each window counts. Neither engine observes.
frit_status frit_refine_measure(const frit_refine_stream *model, const frit_refine_stream *file, int64_t first,
                                int64_t step, int64_t most, double *kl);
