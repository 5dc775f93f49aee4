// SPDX-License-Identifier: MIT
// Embeddings: each item runs as a session, many of them in one step. Hidden states are pooled as they come.
//
// If pooling reads one row, the other rows have no result, which spares the last layer most of its work.
#include "base/option.h"
#include "engine/engine.h"
#include "engine/session/classifier.h"
#include "engine/session/pooling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RUNNING = 64 };   // items

typedef enum scaling { SCALING_L2, SCALING_L1, SCALING_MAX, SCALING_NONE, SCALING_COUNT } scaling;
static const char *const scaling_names[SCALING_COUNT] = {"l2", "l1", "max", "none"};

// clang-format off
#define ROW(field, ...) FRIT_OPTION(frit_embed_options, field, __VA_ARGS__)
static const frit_option rows[] = {
    ROW(pooling, .name = "pooling", .type = FRIT_OPTION_TEXT, .metavar = "KIND",
        .help = "how tokens' vectors become one: mean, cls, last, max, mean_sqrt_len, weighted_mean, several joined by "
                "'+', splade, rank; none: one for each token; by default what the model's files say"),
    ROW(prompt_name, .name = "prompt-name", .type = FRIT_OPTION_TEXT, .metavar = "NAME",
        .help = "put the model's prompt of this name, such as query, before each text"),
    ROW(normalize, .name = "normalize", .type = FRIT_OPTION_CHOICE, .choices = "l2|l1|max|none", .metavar = "KIND",
        .help = "make vectors comparable: length 1 (the default, but for scores), sum 1 or largest number 1"),
    ROW(n_dims, .name = "dims", .aliases = "dimensions", .type = FRIT_OPTION_INT, .min = 0, .max = 1 << 20, .metavar = "N",
        .help = "keep the first N numbers of each vector, for models that were trained for it; 0: as the model's files say, "
                "mostly all"),
};
// clang-format on

const frit_option *frit_embed_option_rows(size_t *n_rows)
{
    FRIT_REQUIRE_OR(NULL, n_rows);
    *n_rows = FRIT_COUNT(rows);
    return rows;
}

typedef struct embedding embedding;

typedef struct running {   // an item that runs
    embedding *owner;
    frit_session *session;
    size_t item, n_tokens, n_seen;
    bool busy;
    frit_pooler pooler;
} running;

struct embedding {
    frit_engine *engine;
    bool encodes;                         // the model is an encoder-decoder: items are sources
    frit_pooling_list pooling, of_rows;   // of_rows: what the classifier reads; without a classifier, `pooling`
    scaling scaling;
    frit_classifier classifier;
    frit_dense_list dense;
    frit_str prompt;               // before each text
    size_t n_embd, width, n_out;   // numbers of a hidden state, of a whole vector, of a result
    frit_embed_fn row;
    void *row_ctx;
    running running[MAX_RUNNING];
    size_t n_running;   // items of `running` that have been made
    float *scores, *scratch;
};

// ------------------------------------------------------------------------------- options

static frit_status find_name(const char *what, const char *name, const char *const *names, int n, int *out)
{
    for (*out = 0; *out < n; ++*out)
        if (strcmp(names[*out], name) == 0) return FRIT_OK;
    frit_buf all = {0};
    for (int i = 0; i < n; i++) frit_buf_printf(&all, "%s%s", i == 0 ? "" : i == n - 1 ? " or " : ", ", names[i]);
    const frit_status status =
        frit_fail(FRIT_E_INVALID, "%s is '%.40s', expected %s", what, name, all.failed ? "another name" : all.data);
    frit_buf_free(&all);
    return status;
}

// Finds what follows pooling, and the size of its result.
static frit_status choose_end(embedding *e, const frit_model *model)
{
    const size_t n_embd = (size_t)frit_hidden_width(&model->hp);
    e->of_rows = e->pooling;
    e->width = n_embd * (size_t)e->pooling.n;
    if (frit_pooling_is_sparse(&e->pooling)) e->width = (size_t)model->hp.n_vocab;
    if (frit_pooling_is(&e->pooling, FRIT_POOLING_RANK)) {
        FRIT_TRY(frit_classifier_find(&e->classifier, model));
        e->width = (size_t)e->classifier.n_scores;
        e->of_rows.kinds[0] = !model->arch->is_encoder     ? FRIT_POOLING_LAST
                              : model->arch->ranks_by_mean ? FRIT_POOLING_MEAN
                                                           : FRIT_POOLING_CLS;
        return FRIT_OK;
    }
    if (frit_pooling_is_sparse(&e->pooling) || frit_pooling_is(&e->pooling, FRIT_POOLING_NONE)) return FRIT_OK;
    FRIT_TRY(frit_dense_find(&e->dense, model, e->width));
    e->width = e->dense.n_out;
    return FRIT_OK;
}

static frit_status choose_options(embedding *e, const frit_model *model, const frit_embed_options *options)
{
    int chosen;
    FRIT_TRY(frit_pooling_of(&e->pooling, model, options->pooling));
    const bool is_free = frit_pooling_is(&e->pooling, FRIT_POOLING_RANK) || frit_pooling_is_sparse(&e->pooling);
    chosen = is_free ? SCALING_NONE : SCALING_L2;
    if (options->normalize) FRIT_TRY(find_name("normalize", options->normalize, scaling_names, SCALING_COUNT, &chosen));
    e->scaling = (scaling)chosen;
    e->n_embd = (size_t)frit_hidden_width(&model->hp);
    FRIT_TRY(choose_end(e, model));
    FRIT_TRY(frit_embed_prompt(model, options->prompt_name, &e->prompt.ptr, &e->prompt.len));
    if (options->n_dims < 0 || (size_t)options->n_dims > e->width)
        return frit_fail_at(FRIT_E_INVALID, "dims", FRIT_CODE_INVALID_VALUE,
                            "%d numbers of each vector are asked for, this model's have %zu", (int)options->n_dims,
                            e->width);
    int64_t n_dims = options->n_dims;
    if (n_dims == 0 && !is_free) FRIT_TRY(frit_meta_get_i64(&model->ckpt->meta, "frit.embed.dims", &n_dims, NULL));
    e->n_out = n_dims > 0 && n_dims < (int64_t)e->width ? (size_t)n_dims : e->width;
    return FRIT_OK;
}

frit_status frit_embed_width(const frit_model *model, const frit_embed_options *options, size_t *n)
{
    FRIT_REQUIRE(n);
    FRIT_REQUIRE(model);
    FRIT_REQUIRE_UNUSED(options);
    static const frit_embed_options defaults;
    embedding *e = calloc(1, sizeof *e);
    if (!e) return frit_fail_memory(sizeof *e, "embeddings");
    frit_status status = choose_options(e, model, options ? options : &defaults);
    if (status == FRIT_OK) *n = e->n_out;
    free(e);
    return status;
}

// ------------------------------------------------------------------------------- results

static void normalize(float *x, size_t n, scaling kind)
{
    double size = 0;
    for (size_t i = 0; i < n; i++) {
        const double magnitude = fabs((double)x[i]);
        if (kind == SCALING_L2) size += magnitude * magnitude;
        if (kind == SCALING_L1) size += magnitude;
        if (kind == SCALING_MAX) size = fmax(size, magnitude);
    }
    if (kind == SCALING_L2) size = sqrt(size);
    for (size_t i = 0; i < n && kind != SCALING_NONE; i++) x[i] = size > 0 ? (float)(x[i] / size) : 0;
}

static void deliver_vector(embedding *e, size_t item, size_t i, float *values)
{
    normalize(values, e->n_out, e->scaling);
    e->row(e->row_ctx, item, i, values, e->n_out);
}

static void pool_row(void *ctx, size_t i, const float *values, size_t n)
{
    running *r = ctx;
    embedding *e = r->owner;
    if (frit_pooling_is(&e->pooling, FRIT_POOLING_NONE)) {
        memcpy(r->pooler.values, values, n * sizeof *values);
        deliver_vector(e, r->item, i, r->pooler.values);
        return;
    }
    frit_pooler_add(&r->pooler, r->n_seen++, values);
}

static frit_status finish_item(running *r)
{
    embedding *e = r->owner;
    float *values = r->pooler.values;
    r->busy = false;
    if (frit_pooling_is(&e->pooling, FRIT_POOLING_NONE)) return FRIT_OK;
    frit_pooler_finish(&r->pooler, r->n_seen);
    if (frit_pooling_is(&e->pooling, FRIT_POOLING_RANK)) {
        FRIT_TRY(frit_classifier_run(&e->classifier, values, e->scores, e->scratch));
        values = e->scores;
    } else if (e->dense.n > 0) {
        FRIT_TRY(frit_dense_run(&e->dense, values, e->scores, e->scratch));
        values = e->scores;
    }
    deliver_vector(e, r->item, 0, values);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- running

// Pushes an item's tokens. Only rows that pooling reads give results.
static frit_status push_item(running *r, const frit_token *tokens)
{
    const frit_pooling_list *of_rows = &r->owner->of_rows;
    const size_t n = r->n_tokens, first = frit_pooling_is(of_rows, FRIT_POOLING_LAST) ? n - 1 : 0;
    const size_t end = frit_pooling_is(of_rows, FRIT_POOLING_CLS) ? 1 : n;
    const frit_output output = frit_pooling_is_sparse(of_rows) ? FRIT_OUTPUT_ALL : FRIT_OUTPUT_EMBEDDINGS;
    const frit_push_options wanted = {.output = output, .row = pool_row, .row_ctx = r},
                            none = {.output = FRIT_OUTPUT_NONE};
    if (r->owner->encodes) return frit_session_encode(r->session, tokens, n, &wanted);
    FRIT_TRY(frit_session_push(r->session, tokens, first, &none));
    FRIT_TRY(frit_session_push(r->session, tokens + first, end - first, &wanted));
    return frit_session_push(r->session, tokens + end, n - end, &none);
}

static frit_status make_running(embedding *e, running **out)
{
    for (size_t i = 0; i < e->n_running; i++) {
        *out = &e->running[i];
        if (!e->running[i].busy) return FRIT_OK;
    }
    *out = NULL;
    if (e->n_running == MAX_RUNNING) return FRIT_OK;
    running *r = &e->running[e->n_running];
    *r = (running){.owner = e};
    FRIT_TRY(frit_pooler_init(&r->pooler, &e->of_rows, e->engine->model));
    const frit_status status = frit_session_new(&r->session, e->engine);
    if (status != FRIT_OK) {
        frit_pooler_deinit(&r->pooler);
        return status;
    }
    frit_prefix_leave(r->session);   // texts may be private, and most of their tokens have results
    e->n_running++;
    *out = r;
    return FRIT_OK;
}

static frit_status start_tokens(running *r, size_t i, const frit_token *tokens, size_t n)
{
    const frit_engine *engine = r->owner->engine;
    if (n == 0) return frit_fail(FRIT_E_INVALID, "item %zu has no tokens", i);
    if (n > (size_t)engine->n_ctx)
        return frit_fail(FRIT_E_INVALID, "item %zu has %zu tokens, the context is %d", i, n, (int)engine->n_ctx);
    r->item = i;
    r->n_tokens = n;
    r->n_seen = 0;
    frit_pooler_reset(&r->pooler);
    frit_status status = push_item(r, tokens);
    r->busy = status == FRIT_OK;
    if (status != FRIT_OK) {
        frit_session_truncate(r->session, 0);
        frit_session_release_source(r->session);
    }
    return status;
}

static frit_status start_text(running *r, size_t i, const char *text, size_t n_bytes)
{
    const frit_model *model = r->owner->engine->model;
    frit_token *tokens = NULL;
    size_t n = 0, capacity = n_bytes / 2 + 16;
    frit_status status = FRIT_E_LIMIT;
    for (int pass = 0; pass < 2 && status == FRIT_E_LIMIT; pass++) {
        free(tokens);
        tokens = malloc(capacity * sizeof *tokens);
        if (!tokens) return frit_fail_memory(capacity * sizeof *tokens, "tokens");
        status = frit_tokenize(model, text, n_bytes, FRIT_TEXT_SPECIAL, tokens, capacity, &n);
        capacity = n + 1;
    }
    if (status == FRIT_E_LIMIT) status = frit_fail(FRIT_E_INVALID, "item %zu: %s", i, frit_error());
    if (status == FRIT_OK) status = frit_embed_cut(model, 0, tokens, &n);
    if (status == FRIT_OK) status = start_tokens(r, i, tokens, n);
    free(tokens);
    return status;
}

static frit_status start_item(running *r, size_t i, const frit_embed_item *item)
{
    const frit_str prompt = r->owner->prompt;
    if (item->tokens) return start_tokens(r, i, item->tokens, item->n_tokens);
    if (prompt.len == 0) return start_text(r, i, item->text, item->n_bytes);
    frit_buf whole = {0};
    frit_buf_append(&whole, prompt.ptr, prompt.len);
    frit_buf_append(&whole, item->text, item->n_bytes);
    const frit_status status = whole.failed ? frit_fail_memory(item->n_bytes, "a text with its prompt")
                                            : start_text(r, i, whole.data, whole.len);
    frit_buf_free(&whole);
    return status;
}

static size_t count_busy(const embedding *e, size_t *n_rows)
{
    size_t n = 0;
    *n_rows = 0;
    for (size_t i = 0; i < e->n_running; i++) {
        n += e->running[i].busy;
        if (e->running[i].busy) *n_rows += frit_session_pending(e->running[i].session);
    }
    return n;
}

// Starts items until the next step or the cache (FRIT_E_LIMIT) is full.
static frit_status start_items(embedding *e, const frit_embed_item *items, size_t n_items, size_t *next)
{
    while (*next < n_items) {
        size_t n_rows;
        running *r;
        const size_t n_busy = count_busy(e, &n_rows);
        if (n_busy > 0 && n_rows >= (size_t)e->engine->n_batch) return FRIT_OK;
        FRIT_TRY(make_running(e, &r));
        if (!r) return FRIT_OK;
        frit_status status = start_item(r, *next, &items[*next]);
        if (status == FRIT_E_LIMIT && n_busy > 0) return FRIT_OK;
        FRIT_TRY(status);
        ++*next;
    }
    return FRIT_OK;
}

static frit_status run_all(embedding *e, const frit_embed_item *items, size_t n_items)
{
    size_t next = 0, n_rows;
    for (;;) {
        FRIT_TRY(start_items(e, items, n_items, &next));
        if (count_busy(e, &n_rows) == 0) return FRIT_OK;
        FRIT_TRY(frit_engine_step(e->engine, NULL));
        for (size_t i = 0; i < e->n_running; i++) {
            running *r = &e->running[i];
            if (!r->busy || frit_session_pending(r->session) > 0) continue;
            FRIT_TRY(frit_session_status(r->session));
            FRIT_TRY(finish_item(r));
            FRIT_TRY(frit_session_truncate(r->session, 0));
            frit_session_release_source(r->session);
        }
    }
}

// Allocates the vectors of a classifier or of dense layers.
static frit_status reserve_end(embedding *e)
{
    const size_t n_hidden = (size_t)e->classifier.n_hidden;
    const size_t n = e->n_embd + n_hidden + e->width + e->dense.n_most;
    e->scores = calloc(n, sizeof *e->scores);
    e->scratch = calloc(n + n_hidden + e->dense.n_most, sizeof *e->scratch);
    return e->scores && e->scratch ? FRIT_OK : frit_fail_memory(2 * n * sizeof *e->scores, "a vector's scratch");
}

frit_status frit_embed_texts(frit_engine *engine, const frit_embed_item *items, size_t n_items,
                             const frit_embed_options *options, frit_embed_fn row, void *row_ctx)
{
    FRIT_REQUIRE(engine);
    FRIT_REQUIRE_ITEMS(items, n_items);
    FRIT_REQUIRE(row);
    FRIT_REQUIRE_UNUSED(options);
    FRIT_REQUIRE_UNUSED_ITEMS(items, n_items);
    static const frit_embed_options defaults;
    if (engine->in_step) return frit_fail(FRIT_E_INVALID, "texts cannot be embedded from within a row function");
    embedding *e = calloc(1, sizeof *e);
    if (!e) return frit_fail_memory(sizeof *e, "embeddings");
    e->engine = engine;
    e->encodes = engine->model->arch->is_encoder_decoder;
    e->row = row;
    e->row_ctx = row_ctx;
    frit_status status = choose_options(e, engine->model, options ? options : &defaults);
    if (status == FRIT_OK) status = reserve_end(e);
    if (status == FRIT_OK) status = run_all(e, items, n_items);
    for (size_t i = 0; i < e->n_running; i++) {
        frit_session_free(e->running[i].session);
        frit_pooler_deinit(&e->running[i].pooler);
    }
    free(e->scores);
    free(e->scratch);
    free(e);
    return status;
}
