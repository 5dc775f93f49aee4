// SPDX-License-Identifier: MIT
// Windows of a text through a model, layer by layer.
#include "engine/refine_stream.h"
#include "base/file.h"

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

// All threads have copied it (frit_observe_rows).
static void take_nothing(void *ctx, size_t i, const float *values, size_t n)
{
    (void)ctx, (void)i, (void)values, (void)n;
}

static frit_status run(frit_engine *engine, const frit_token *tokens, size_t n, size_t first,
                       const frit_push_options *push)
{
    const frit_push_options none = {.output = FRIT_OUTPUT_NONE};
    frit_session *session;
    FRIT_TRY(frit_session_new(&session, engine));
    frit_status status = frit_session_push(session, tokens, first, &none);
    if (status == FRIT_OK) status = frit_session_push(session, tokens + first, n - first, push);
    while (status == FRIT_OK && frit_session_pending(session) > 0) {
        int32_t n_rows;
        status = frit_engine_step(engine, &n_rows);
    }
    if (status == FRIT_OK) status = frit_session_status(session);
    frit_session_free(session);
    return status;
}

frit_status frit_refine_text_run(const frit_refine_text *text, frit_engine *engine, int64_t w, int64_t n, int64_t first,
                                 const frit_push_options *push)
{
    frit_token window[FRIT_REFINE_WINDOW];
    memcpy(window, text->tokens + w * text->window, (size_t)n * sizeof *window);
    if (text->has_bos) window[0] = text->bos;
    return run(engine, window, (size_t)n, (size_t)first, push);
}

frit_status frit_refine_stream_run(const frit_refine_stream *stream, int64_t w, int64_t n)
{
    float *rows = stream->rows ? stream->rows + w * stream->text->window * stream->engine->hp.n_embd : NULL;
    const frit_push_options push = {.output = FRIT_OUTPUT_EMBEDDINGS, .row = take_nothing};
    frit_observe_rows(stream->engine, stream->layer > 0 ? rows : NULL, stream->advances ? rows : NULL);
    return frit_refine_text_run(stream->text, stream->engine, w, n, 0, &push);
}
