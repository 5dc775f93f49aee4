// SPDX-License-Identifier: MIT
// The calibration text: in windows that begin with BOS; running windows; measuring importance.
#include "quantize/type_choice.h"

#include <stdlib.h>

enum { WINDOW_TOKENS = 512, WINDOWS = 256 };

static frit_status tokenize_text(frit_type_choice *a, size_t *n_tokens)
{
    const frit_allocate_options *o = a->options;
    const frit_status status = frit_tokenize(a->model, o->text, o->n_text, FRIT_TEXT_SPECIAL, NULL, 0, n_tokens);
    if (status != FRIT_OK && status != FRIT_E_LIMIT) return status;   // E_LIMIT: no room for tokens was given yet
    a->tokens = calloc(*n_tokens + 1, sizeof *a->tokens);
    if (!a->tokens) return frit_fail_memory(*n_tokens * sizeof *a->tokens, "the tokens of a text");
    return frit_tokenize(a->model, o->text, o->n_text, FRIT_TEXT_SPECIAL, a->tokens, *n_tokens, n_tokens);
}

static frit_status cut_text(frit_type_choice *a, size_t most)
{
    size_t n_tokens, n_bos = 0;
    frit_token bos;
    FRIT_TRY(tokenize_text(a, &n_tokens));
    a->n_windows = n_tokens / a->n_ctx;
    if (a->n_windows > most) a->n_windows = most;
    if (a->n_windows == 0)
        return frit_fail(FRIT_E_INVALID, "the text has %zu tokens, expected %zu or more", n_tokens, a->n_ctx);
    const bool has_bos = frit_tokenize(a->model, "", 0, FRIT_TEXT_SPECIAL, &bos, 1, &n_bos) == FRIT_OK && n_bos == 1;
    for (size_t w = 0; w < a->n_windows && has_bos; w++) a->tokens[w * a->n_ctx] = bos;
    return FRIT_OK;
}

static frit_status write_text(frit_type_choice *a, size_t n_windows)
{
    a->n_windows = n_windows;
    a->tokens = calloc(n_windows * a->n_ctx, sizeof *a->tokens);
    if (!a->tokens) return frit_fail_memory(n_windows * a->n_ctx * sizeof *a->tokens, "the tokens of samples");
    const frit_status status = frit_type_choice_write_samples(a, a->importance ? NULL : &a->measured);
    if (status == FRIT_OK) return FRIT_OK;
    frit_importance_deinit(&a->measured);
    free(a->tokens);   // a part of a text is not used
    a->tokens = NULL;
    return status;
}

frit_status frit_type_choice_set_windows(frit_type_choice *a)
{
    const size_t most = a->options->n_windows > 0 ? (size_t)a->options->n_windows : WINDOWS;
    const int32_t n_train = a->model->hp.n_ctx_train;
    a->n_ctx = n_train > 0 && n_train < WINDOW_TOKENS ? (size_t)n_train : WINDOW_TOKENS;
    FRIT_TRY(frit_type_choice_load(a));
    if (!a->tokens) FRIT_TRY(a->options->text ? cut_text(a, most) : write_text(a, most));
    frit_sha256_of(a->tokens, a->n_windows * a->n_ctx * sizeof *a->tokens, a->sha256);
    return FRIT_OK;
}

// Makes an engine whose steps have a whole window, so that prefill kernels give the same numbers every time.
frit_status frit_type_choice_open_engine(frit_type_choice *a, frit_engine **out)
{
    const frit_engine_options options = {.n_ctx = (int32_t)a->n_ctx,
                                         .n_batch = (int32_t)a->n_ctx,
                                         .n_threads = a->convert->n_threads,
                                         .cache_type_k = "f16",
                                         .cache_type_v = "f16",
                                         .device = "cpu",
                                         .no_prefix_cache = true};
    return frit_engine_new(out, a->model, &options);
}

frit_status frit_type_choice_run_window(frit_engine *engine, frit_session *session, const frit_token *tokens, size_t n,
                                        const frit_push_options *push)
{
    frit_status status = frit_session_truncate(session, 0);
    if (status == FRIT_OK) status = frit_session_push(session, tokens, n, push);
    while (status == FRIT_OK && frit_session_pending(session) > 0) {
        int32_t n_rows;
        status = frit_engine_step(engine, &n_rows);
    }
    return status == FRIT_OK ? frit_session_status(session) : status;
}

// ------------------------------------------------------------------------------------- importance

static void ignore_row(void *ctx, size_t i, const float *values, size_t n)
{
    (void)ctx, (void)i, (void)values, (void)n;
}

static frit_status observe_windows(frit_type_choice *a, frit_engine *engine)
{
    const frit_push_options push = {.output = FRIT_OUTPUT_EMBEDDINGS, .row = ignore_row};
    frit_session *session;
    FRIT_TRY(frit_engine_observe(engine, &a->measured));
    FRIT_TRY(frit_session_new(&session, engine));
    frit_status status = FRIT_OK;
    for (size_t w = 0; w < a->n_windows && status == FRIT_OK; w++) {
        status = frit_type_choice_run_window(engine, session, a->tokens + w * a->n_ctx, a->n_ctx, &push);
        if (status == FRIT_OK) status = frit_type_choice_report(a, (double)(w + 1) / (double)a->n_windows);
    }
    frit_session_free(session);
    return status;
}

frit_status frit_type_choice_measure_importance(frit_type_choice *a)
{
    a->importance = &a->measured;
    if (a->measured.n > 0) return FRIT_OK;   // from a state file, or from writing samples
    frit_engine *engine;
    frit_type_choice_begin(a, "measuring importance");
    a->model->floats_coarse = true;
    frit_status status = frit_type_choice_open_engine(a, &engine);
    a->model->floats_coarse = false;
    FRIT_TRY(status);
    status = observe_windows(a, engine);
    frit_engine_free(engine);
    if (status != FRIT_OK) frit_importance_deinit(&a->measured);   // a part of a text is not used
    return status;
}
