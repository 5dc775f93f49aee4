// SPDX-License-Identifier: MIT
// The KL divergence of a quantized file's predictions from the model's, over some windows of a text.
#include "engine/refine_stream.h"
#include "sample/divergence.h"

#include <stdlib.h>

typedef struct comparing {
    size_t first, n_vocab;   // position that counts first: those before it have seen little text
    float *base;             // log-probabilities [window - first, n_vocab] of the model
    double sum;
    size_t n;
} comparing;

static void keep_row(void *ctx, size_t i, const float *logits, size_t n)
{
    const comparing *c = ctx;
    if (i < c->first) return;
    frit_log_softmax(logits, n, c->base + (i - c->first) * n);
}

static void compare_row(void *ctx, size_t i, const float *logits, size_t n)
{
    comparing *c = ctx;
    if (i < c->first) return;
    c->sum += frit_divergence(c->base + (i - c->first) * n, logits, n);
    c->n++;
}

frit_status frit_refine_measure(const frit_refine_stream *model, const frit_refine_stream *file, int64_t first,
                                int64_t step, int64_t most, double *kl)
{
    const frit_refine_text *text = model->text;
    comparing c = {.first = (size_t)text->window / 2, .n_vocab = (size_t)model->engine->model->info.n_vocab};
    const size_t n_bytes = ((size_t)text->window - c.first) * c.n_vocab * sizeof(float);
    c.base = malloc(n_bytes);
    frit_status status = c.base ? FRIT_OK : frit_fail_memory(n_bytes, "a model's predictions");
    const frit_push_options keep = {.output = FRIT_OUTPUT_ALL, .row = keep_row, .row_ctx = &c},
                            compare = {.output = FRIT_OUTPUT_ALL, .row = compare_row, .row_ctx = &c};
    for (int64_t w = first; w < text->n_windows && most-- > 0 && status == FRIT_OK; w += step) {
        status = frit_refine_text_run(text, model->engine, w, text->window, &keep);
        if (status == FRIT_OK) status = frit_refine_text_run(text, file->engine, w, text->window, &compare);
    }
    free(c.base);
    *kl = c.n > 0 ? c.sum / (double)c.n : 0;
    return status;
}
