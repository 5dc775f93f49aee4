// SPDX-License-Identifier: MIT
// Windows of a text through a model, layer by layer.
#include "quantize/refine_stream.h"
#include "base/file/file.h"

#include <stdlib.h>
#include <string.h>

frit_status frit_refine_stream_open(frit_refine_stream *stream, const frit_model *model, uint64_t most)
{
    const uint64_t much = UINT64_C(256) << 20;
    const frit_refine_text *text = stream->text;
    const uint64_t n = (uint64_t)(text->n_windows * text->window) * (uint64_t)model->hp.n_embd * sizeof(float);
    if (n > most || !frit_arch_can_begin_later(model->arch, &model->hp)) return FRIT_OK;
    stream->n_bytes = n;
    stream->rows = stream->path && n > much ? frit_scratch_new(stream->path, n, &stream->is_mapped) : malloc((size_t)n);
    return stream->rows ? FRIT_OK : frit_fail_memory((size_t)n, "what layers read");
}

void frit_refine_stream_close(frit_refine_stream *stream)
{
    frit_scratch_free(stream->rows, stream->n_bytes, stream->is_mapped);
    stream->rows = NULL;
}

frit_status frit_refine_stream_begin(frit_refine_stream *stream, frit_covariance *covariance, int32_t layer,
                                     bool advances)
{
    const int32_t n_layers = stream->engine->hp.n_layer;
    const frit_observed_layers layers = {
        .first = stream->layer,
        .end = layer < n_layers ? layer + 1 : n_layers,
        .is_residual = advances,
        .no_results = !advances,
    };
    stream->advances = advances;
    FRIT_TRY(frit_engine_observe_covariance(stream->engine, covariance));
    frit_observe_layers(stream->engine, layers);
    return FRIT_OK;
}

// Ignores a row: threads have copied it already (frit_observe_rows).
static void ignore_row(void *ctx, size_t i, const float *values, size_t n)
{
    (void)ctx, (void)i, (void)values, (void)n;
}

static frit_status step_windows(frit_engine *engine, frit_session **sessions, int64_t n)
{
    while (frit_session_pending(sessions[n - 1]) > 0) {
        int32_t n_rows;
        FRIT_TRY(frit_engine_step(engine, &n_rows));
        for (int64_t i = 0; i < n; i++) {
            FRIT_TRY(frit_session_status(sessions[i]));
            if (n > 1 && frit_session_pending(sessions[i]) > 0)   // an observer needs rows of whole windows
                return frit_fail(FRIT_E_INTERNAL, "%lld windows do not fit in a step", (long long)n);
        }
    }
    return FRIT_OK;
}

static frit_status push_window(const frit_refine_text *text, frit_session *session, int64_t w, int64_t n, int64_t first,
                               const frit_push_options *options)
{
    const frit_push_options none = {.output = FRIT_OUTPUT_NONE};
    frit_token window[FRIT_REFINE_WINDOW];
    memcpy(window, text->tokens + w * text->window, (size_t)n * sizeof *window);
    if (text->has_bos) window[0] = text->bos;
    FRIT_TRY(frit_session_push(session, window, (size_t)first, &none));
    return frit_session_push(session, window + first, (size_t)(n - first), options);
}

static frit_status run_windows(const frit_refine_text *text, frit_engine *engine, frit_refine_windows windows,
                               int64_t n, int64_t first, const frit_push_options *options)
{
    frit_session *sessions[FRIT_REFINE_AT_ONCE] = {NULL};
    frit_status status = FRIT_OK;
    for (int64_t i = 0; i < windows.n && status == FRIT_OK; i++) {
        status = frit_session_new(&sessions[i], engine);
        if (status == FRIT_OK)
            status = push_window(text, sessions[i], windows.first + i * windows.apart, n, first, options);
    }
    if (status == FRIT_OK) status = step_windows(engine, sessions, windows.n);
    for (int64_t i = 0; i < windows.n; i++) frit_session_free(sessions[i]);
    return status;
}

frit_status frit_refine_text_run(const frit_refine_text *text, frit_engine *engine, int64_t w, int64_t n, int64_t first,
                                 const frit_push_options *options)
{
    return run_windows(text, engine, (frit_refine_windows){w, 0, 1}, n, first, options);
}

frit_status frit_refine_stream_run(const frit_refine_stream *stream, frit_refine_windows windows, int64_t n)
{
    const int64_t of_window = stream->text->window * stream->engine->hp.n_embd;
    float *rows = stream->rows ? stream->rows + windows.first * of_window : NULL;
    const frit_push_options options = {.output = FRIT_OUTPUT_EMBEDDINGS, .row = ignore_row};
    const frit_observed_rows observed = {.given = stream->layer > 0 ? rows : NULL,
                                         .taken = stream->advances ? rows : NULL,
                                         .apart = windows.apart * of_window};
    frit_observe_rows(stream->engine, observed);
    return run_windows(stream->text, stream->engine, windows, n, 0, &options);
}
