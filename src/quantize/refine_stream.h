// SPDX-License-Identifier: MIT
// quantize/refine_stream.h: an engine's way through a model, layer by layer, over the windows of a text.
//
// What the next layer reads is kept of all windows, so that each layer runs alone. Where there is no room for that, or
// layers read more than the residual, all layers below run again each time.
#pragma once
#include "engine/engine.h"
#include "quantize/covariance.h"

enum { FRIT_REFINE_WINDOW = 512, FRIT_REFINE_AT_ONCE = 4 };   // tokens; windows of a step

typedef struct frit_refine_text {
    const frit_token *tokens;   // [n_windows, window]
    int64_t n_windows, window;
    frit_token bos;
    bool has_bos;
} frit_refine_text;

typedef struct frit_refine_stream {
    frit_engine *engine;   // borrowed
    const frit_refine_text *text;
    const char *path;   // much is kept in a file without a name beside it; NULL: in memory
    float *rows;        // [n_windows, window, n_embd]: what `layer` reads; NULL: windows run from their tokens on
    uint64_t n_bytes;   // of `rows`
    bool is_mapped;     // they lie in a file
    int32_t layer;      // 0: windows run from their tokens on
    bool advances;      // what the layer leaves takes the place of what it has read
} frit_refine_stream;

// Room for the rows of all windows, where layers may run alone and `most` bytes hold them; else none.
frit_status frit_refine_stream_open(frit_refine_stream *stream, const frit_model *model, uint64_t most);
void frit_refine_stream_close(frit_refine_stream *stream);

// From now on windows run as far as `layer`, or the output after the last one, and `covariance` observes them.
frit_status frit_refine_stream_begin(frit_refine_stream *stream, frit_covariance *covariance, int32_t layer,
                                     bool advances);
// Windows first, first + apart and so on; n: 1 to FRIT_REFINE_AT_ONCE.
typedef struct frit_refine_windows {
    int64_t first, apart, n;
} frit_refine_windows;

// The first n tokens of each of the windows: one step, which reads the layer's weights once, where the engine has room
// for as many sessions and rows.
frit_status frit_refine_stream_run(const frit_refine_stream *stream, frit_refine_windows windows, int64_t n);

// The first n tokens of window w through an engine. Those before `first` give no results; row 0 is of that one.
frit_status frit_refine_text_run(const frit_refine_text *text, frit_engine *engine, int64_t w, int64_t n, int64_t first,
                                 const frit_push_options *options);

// refine_measure.c: the KL divergence of the file's predictions from the model's, over windows first, first + step and
// so on, at most `most` of them; the second half of each counts. Neither engine observes.
frit_status frit_refine_measure(const frit_refine_stream *model, const frit_refine_stream *file, int64_t first,
                                int64_t step, int64_t most, double *kl);
