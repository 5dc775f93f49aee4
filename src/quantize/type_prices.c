// SPDX-License-Identifier: MIT
// Prices: the KL divergence of predictions when a single matrix is in its probe type. The matrix is encoded, decoded
// and replaced, so the same kernels run. Layers before it do not change: the input of its layer is stored and the model
// runs from there.
#include "quantize/type_choice.h"
#include "quantize/refine_stream.h"
#include "format/rows.h"
#include "sample/divergence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Early positions with little context do not count. The base predictions are stored, in 512 MiB at most.
enum { FEWEST_TOKENS = 128, FIRST_POSITION = 64, MOST_KEPT = 512 << 20 };

// Limit of operations for all prices: large models read fewer tokens for each price, at least one short window. All
// prices use the same positions, so the choice differs little.
static const double most_operations = 5e14;

typedef struct pricing {
    frit_type_choice *a;
    size_t n_vocab, n_windows;
    size_t n_tokens, n_rows;   // tokens that are read of a window, and the last rows of them, which count
    size_t step;               // distance between used windows
    float *base;               // log-probabilities [n_windows][n_rows][n_vocab] of the model
    float *logits;             // [n_rows][n_vocab] of one window
    double *kl;                // [n_windows][n_rows]
    size_t window;
    frit_token *tokens;          // [n_windows][n_tokens]
    frit_refine_text text;       // of `tokens`
    frit_refine_stream stream;   // the model's, up to the layer whose matrices are measured
    frit_covariance *none;
    double done, all;   // layers that ran for matrices, and all that will run
} pricing;

// ------------------------------------------------------------------------------------- divergence

static float *base_of(const pricing *p, size_t row)
{
    return p->base + (p->window * p->n_rows + row) * p->n_vocab;
}

// Stores the log-probabilities of a window's rows.
static void store_base_rows(void *ctx, int thread, int n_threads)
{
    const pricing *p = ctx;
    for (size_t r = (size_t)thread; r < p->n_rows; r += (size_t)n_threads)
        frit_log_softmax(p->logits + r * p->n_vocab, p->n_vocab, base_of(p, r));
}

static void compare_rows(void *ctx, int thread, int n_threads)
{
    const pricing *p = ctx;
    for (size_t r = (size_t)thread; r < p->n_rows; r += (size_t)n_threads)
        p->kl[p->window * p->n_rows + r] = frit_divergence(base_of(p, r), p->logits + r * p->n_vocab, p->n_vocab);
}

// ------------------------------------------------------------------------------------- windows

static void copy_logits(void *ctx, size_t i, const float *logits, size_t n)
{
    const pricing *p = ctx;
    memcpy(p->logits + i * n, logits, n * sizeof *logits);
}

// Runs all windows from layer `first` on with the stored rows; 0: from the tokens on.
static frit_status run_each(pricing *p, frit_engine *engine, int32_t first, frit_pool_fn then)
{
    const frit_push_options push = {.output = FRIT_OUTPUT_ALL, .row = copy_logits, .row_ctx = p};
    const int64_t n = (int64_t)p->n_tokens, n_rows = (int64_t)p->n_rows;
    if (first > 0) FRIT_TRY(frit_engine_observe_covariance(engine, p->none));
    frit_observe_layers(engine, (frit_observed_layers){.first = first});
    frit_engine_allow_outs(engine, (int32_t)n_rows);   // a window is one step, for any vocabulary
    for (size_t w = 0; w < p->n_windows; w++) {
        p->window = w;
        const frit_observed_rows rows = {.given = p->stream.rows + w * p->n_tokens * (size_t)p->a->model->hp.n_embd};
        if (first > 0) frit_observe_rows(engine, rows);
        FRIT_TRY(frit_refine_text_run(&p->text, engine, (int64_t)w, n, n - n_rows, &push));
        frit_pool_run(p->a->pool, then, p);
    }
    return FRIT_OK;
}

static frit_status run_windows(pricing *p, int32_t first, frit_pool_fn then)
{
    frit_engine *engine;
    FRIT_TRY(frit_type_choice_open_engine(p->a, &engine));
    const frit_status status = run_each(p, engine, first, then);
    frit_engine_free(engine);
    return status;
}

static frit_status run_layer(pricing *p)
{
    FRIT_TRY(frit_refine_stream_begin(&p->stream, p->none, p->stream.layer, true));
    for (size_t w = 0; w < p->n_windows; w++)
        FRIT_TRY(frit_refine_stream_run(&p->stream, (frit_refine_windows){(int64_t)w, 1, 1}, (int64_t)p->n_tokens));
    p->stream.layer++;
    return FRIT_OK;
}

// Advances the stored rows by one layer. Its engine is freed before others get another matrix.
static frit_status advance_rows(pricing *p)
{
    FRIT_TRY(frit_type_choice_open_engine(p->a, &p->stream.engine));
    const frit_status status = run_layer(p);
    frit_engine_free(p->stream.engine);
    p->stream.engine = NULL;
    return status;
}

static double mean_of(const double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += values[i];
    return sum > 0 ? sum / (double)n : 0;
}

// ------------------------------------------------------------------------------------- probes

// Replaces a tensor by its numbers rounded to the probe type, in the tensor's own type. Rows are computed when an
// engine loads them.
static frit_status make_probe(pricing *p, frit_type_choice_matrix *m, frit_arena *arena, frit_tensor *probe,
                              float **means)
{
    const frit_dtype type = probe->dtype;
    const int64_t n_matrices = probe->n_dims > 2 ? probe->shape[probe->n_dims - 3] : 1;
    FRIT_TRY(frit_type_choice_column_means(p->a, probe, means));
    FRIT_TRY(frit_encode_weighted(arena, probe, m->probe, *means, n_matrices));
    return frit_encode(arena, probe, type);
}

static frit_status measure_one(pricing *p, frit_type_choice_matrix *m, int32_t first)
{
    frit_model *model = p->a->model;
    const frit_tensor *found = frit_checkpoint_find(model->ckpt, m->name);
    if (!found) return frit_fail(FRIT_E_INTERNAL, "the model has no tensor '%s'", m->name);
    frit_tensor *tensor = &model->ckpt->tensors[found - model->ckpt->tensors], kept = *tensor;
    frit_arena arena = {0};
    float *means = NULL;
    frit_status status = make_probe(p, m, &arena, tensor, &means);
    if (status == FRIT_OK) status = frit_model_bind_again(model, &arena);
    if (status == FRIT_OK) status = run_windows(p, first, compare_rows);
    if (status == FRIT_OK) m->probe_kl = mean_of(p->kl, p->n_windows * p->n_rows);
    for (size_t w = 0; w < p->n_windows && status == FRIT_OK; w++)
        p->a->window_kl[(size_t)(m - p->a->list) * FRIT_PRICED_WINDOWS + w] = mean_of(p->kl + w * p->n_rows, p->n_rows);
    *tensor = kept;
    free(means);
    frit_arena_free(&arena);
    return status;
}

// Returns the layer of a matrix; 0: the model must run from the tokens on.
static int32_t layer_of(const pricing *p, const frit_type_choice_matrix *m)
{
    int layer = 0;
    if (!p->stream.rows || sscanf(m->name, "blk.%d.", &layer) != 1) return 0;
    return layer > 0 && layer < p->a->model->hp.n_layer ? layer : 0;
}

// True if neither a state file nor this run has its price.
static bool is_missing(const frit_type_choice_matrix *m)
{
    return m->probe_kl < 0 && !m->is_kept;
}

static frit_status measure_layer(pricing *p, int32_t layer)
{
    frit_type_choice *a = p->a;
    for (size_t k = 0; k < a->n; k++) {
        if (layer_of(p, &a->list[k]) != layer || !is_missing(&a->list[k])) continue;
        FRIT_TRY(frit_type_choice_report(a, p->done / p->all));
        FRIT_TRY(measure_one(p, &a->list[k], layer));
        FRIT_TRY(frit_type_choice_save_sometimes(a));
        p->done += a->model->hp.n_layer - layer;
    }
    return FRIT_OK;
}

static frit_status measure_all(pricing *p)
{
    frit_type_choice *a = p->a;
    int32_t last = 0;
    FRIT_TRY(run_windows(p, 0, store_base_rows));
    for (size_t k = 0; k < a->n; k++) {
        const int32_t layer = layer_of(p, &a->list[k]);
        if (!is_missing(&a->list[k])) continue;
        p->all += a->model->hp.n_layer - layer;
        last = layer > last ? layer : last;
    }
    for (int32_t layer = 0; layer <= last; layer++) {
        FRIT_TRY(measure_layer(p, layer));
        FRIT_TRY(frit_model_bind_again(a->model, &a->arena));
        if (layer < last) FRIT_TRY(advance_rows(p));
    }
    return FRIT_OK;
}

static bool wants_none(void *ctx, const char *name)
{
    (void)ctx, (void)name;
    return false;
}

// Copies the tokens, and opens a stream of layer inputs if the model can begin with a later layer.
static frit_status open_text(pricing *p)
{
    const frit_type_choice *a = p->a;
    const frit_covariance_options none = {.wants = wants_none};
    p->tokens = calloc(p->n_windows * p->n_tokens, sizeof *p->tokens);
    if (!p->tokens) return frit_fail_memory(p->n_windows * p->n_tokens * sizeof *p->tokens, "windows of text");
    for (size_t w = 0; w < p->n_windows; w++)
        memcpy(p->tokens + w * p->n_tokens, a->tokens + w * p->step * a->n_ctx, p->n_tokens * sizeof *p->tokens);
    p->text = (frit_refine_text){// BOS is in the tokens.
                                 .tokens = p->tokens,
                                 .n_windows = (int64_t)p->n_windows,
                                 .window = (int64_t)p->n_tokens};
    p->stream.text = &p->text;
    FRIT_TRY(frit_covariance_new(&p->none, &none));
    return frit_refine_stream_open(&p->stream, a->model, MOST_KEPT);
}

static void close_text(pricing *p)
{
    frit_refine_stream_close(&p->stream);
    frit_covariance_free(p->none);
    free(p->tokens);
}

// Estimates the operations of one token for all prices.
static double operations_of(const frit_type_choice *a)
{
    double n = 0;
    for (size_t i = 0; i < a->ckpt->n_tensors; i++) {
        const frit_tensor *tensor = &a->ckpt->tensors[i];
        const bool is_of_experts = tensor->n_dims > 2 && a->model->hp.n_expert > 0;
        const double share = is_of_experts ? (double)a->model->hp.n_expert_used / a->model->hp.n_expert : 1;
        n += 2 * share * (double)frit_tensor_n_elems(tensor);
    }
    return n * (double)a->n;
}

frit_priced_text frit_type_choice_priced_text(double operations, size_t n_windows, size_t n_ctx, size_t n_vocab)
{
    const double most_tokens = most_operations / operations;
    frit_priced_text text = {n_windows < FRIT_PRICED_WINDOWS ? n_windows : FRIT_PRICED_WINDOWS, n_ctx, n_ctx};
    if (most_tokens < (double)n_ctx && n_ctx > FEWEST_TOKENS)
        text.n_tokens = most_tokens > FEWEST_TOKENS ? (size_t)most_tokens : FEWEST_TOKENS;
    text.n_rows = text.n_tokens > 2 * FIRST_POSITION ? text.n_tokens - FIRST_POSITION : text.n_tokens / 2;
    const size_t bytes_of_window = text.n_rows * n_vocab * sizeof(float);
    while (text.n_windows > 1 &&
           (text.n_windows * bytes_of_window > MOST_KEPT || (double)(text.n_windows * text.n_tokens) > most_tokens))
        text.n_windows--;
    return text;
}

frit_status frit_type_choice_measure_prices(frit_type_choice *a)
{
    size_t n_missing = 0;
    for (size_t k = 0; k < a->n; k++) n_missing += is_missing(&a->list[k]);
    if (n_missing == 0) return FRIT_OK;
    pricing p = {.a = a, .n_vocab = (size_t)a->model->info.n_vocab};
    const frit_priced_text text = frit_type_choice_priced_text(operations_of(a), a->n_windows, a->n_ctx, p.n_vocab);
    p.n_windows = text.n_windows;
    p.n_tokens = text.n_tokens;
    p.n_rows = text.n_rows;
    p.step = a->n_windows / p.n_windows;   // even distances in the text
    frit_type_choice_begin(a, "measuring prices");
    p.base = malloc(p.n_windows * p.n_rows * p.n_vocab * sizeof *p.base);
    p.logits = malloc(p.n_rows * p.n_vocab * sizeof *p.logits);
    p.kl = calloc(p.n_windows * p.n_rows, sizeof *p.kl);
    frit_status status =
        p.base && p.logits && p.kl
            ? open_text(&p)
            : frit_fail_memory(p.n_windows * p.n_rows * p.n_vocab * sizeof *p.base, "a model's predictions");
    if (status == FRIT_OK) status = measure_all(&p);
    close_text(&p);
    free(p.base);
    free(p.logits);
    free(p.kl);
    return status;
}
