// SPDX-License-Identifier: MIT
// The KL divergence of a quantized file's predictions from the model's, over some windows of a text.
#include "quantize/refine_stream.h"
#include "sample/divergence.h"

#include <stdlib.h>

typedef struct comparing {
    float *base;   // log-probabilities [rows, n_vocab] of the model
    double sum;
    size_t n;
} comparing;

static void keep_row(void *ctx, size_t i, const float *logits, size_t n)
{
    const comparing *c = ctx;
    frit_log_softmax(logits, n, c->base + i * n);
}

static void compare_row(void *ctx, size_t i, const float *logits, size_t n)
{
    comparing *c = ctx;
    c->sum += frit_divergence(c->base + i * n, logits, n);
    c->n++;
}

frit_status frit_refine_measure(const frit_refine_stream *model, const frit_refine_stream *file, int64_t first,
                                int64_t step, int64_t most, double *kl)
{
    const frit_refine_text *text = model->text;
    const int64_t n = text->window, begin = n / 2;   // earlier tokens have little context
    const size_t n_bytes = (size_t)((n - begin) * model->engine->model->info.n_vocab) * sizeof(float);
    comparing c = {.base = malloc(n_bytes)};
    frit_engine_allow_outs(model->engine, (int32_t)(n - begin));   // a window is one step
    frit_engine_allow_outs(file->engine, (int32_t)(n - begin));
    frit_status status = c.base ? FRIT_OK : frit_fail_memory(n_bytes, "a model's predictions");
    const frit_push_options keep = {.output = FRIT_OUTPUT_ALL, .row = keep_row, .row_ctx = &c},
                            compare = {.output = FRIT_OUTPUT_ALL, .row = compare_row, .row_ctx = &c};
    for (int64_t w = first; w < text->n_windows && most-- > 0 && status == FRIT_OK; w += step) {
        status = frit_refine_text_run(text, model->engine, w, n, begin, &keep);
        if (status == FRIT_OK) status = frit_refine_text_run(text, file->engine, w, n, begin, &compare);
    }
    free(c.base);
    *kl = c.n > 0 ? c.sum / (double)c.n : 0;
    return status;
}
