// SPDX-License-Identifier: MIT
// engine/media/golden_session.h: cases of golden_media.h as texts of sessions, whose pictures are reference features.
#pragma once
#include "engine/media/encoder.h"
#include "engine/media/golden_media.h"
#include "support/engines.h"

typedef struct known {
    const char *name;
    double most;   // NMSE of a row of logits; delta nets of transformers differ more between f32 and f64
} known;

typedef struct fixture {
    media_golden gold;
    frit_model *model;
    frit_engine *engine;
    const json_t *one;   // the case
    const float *logits;
    float *features;   // NULL: the case has no pictures
    int64_t n_ids, n_vocab, width;
    size_t n_equal;
    double worst;   // NMSE of a row of logits
} fixture;

static inline fixture open_fixture(const char *name, size_t i_case, frit_engine_options options)
{
    fixture f = {.gold = media_golden_open(name)};
    options.cache_type_k = options.cache_type_v = "f32";
    options.n_threads = 2;
    if (options.n_ctx == 0) options.n_ctx = 128;
    assert_ok(frit_model_open(&f.model, f.gold.folder, NULL));
    assert_ok(frit_engine_new(&f.engine, f.model, &options));
    f.one = json_array_get(json_object_get(f.gold.root, "cases"), i_case);
    int64_t n;
    if (json_object_get(f.one, "features")) f.features = media_golden_features(&f.gold, f.one, &n, &f.width);
    f.logits = media_golden_array(&f.gold, media_golden_text(f.one, "logits"), &f.n_ids, &f.n_vocab);
    return f;
}

static inline void close_fixture(fixture *f)
{
    free(f->features);
    frit_engine_free(f->engine);
    frit_model_free(f->model);
    media_golden_close(&f->gold);
}

typedef struct expected_rows {
    fixture *f;
    size_t first;
} expected_rows;

static inline void compare_row(void *ctx, size_t i, const float *values, size_t n)
{
    expected_rows *e = ctx;
    assert_int_equal(n, e->f->n_vocab);
    const double error = nmse(values, e->f->logits + (e->first + i) * n, n);
    if (error > e->f->worst) e->f->worst = error;
    e->f->n_equal++;
}

static inline frit_soft_run *picture_of(const fixture *f, size_t i, int32_t n_tokens, const float **features)
{
    const json_t *grid = json_array_get(json_object_get(f->one, "image_grid_thw"), i);
    const int32_t width = grid ? (int32_t)json_integer_value(json_array_get(grid, 2)) / 2 : n_tokens;
    frit_soft_run *run;
    const uint8_t digest[32] = {(uint8_t)i, 7};
    assert_ok(frit_soft_run_new(&run, f->engine, *features, n_tokens / width, width, (int32_t)f->width, digest, grid));
    *features += (int64_t)n_tokens * f->width;
    return run;
}

// Pushes ids [first, end) of the case, with its logits as results.
static inline void push_text(fixture *f, frit_session *session, const json_t *ids, expected_rows *rows, size_t end)
{
    frit_token tokens[256];
    for (size_t i = rows->first; i < end; i++)
        tokens[i - rows->first] = (frit_token)json_integer_value(json_array_get(ids, i));
    const frit_push_options all = {.output = FRIT_OUTPUT_ALL, .row = compare_row, .row_ctx = rows};
    assert_ok(frit_session_push(session, tokens, end - rows->first, &all));
    (void)f;
}

// Pushes the whole case; text pushes end where a picture begins. Returns how many texts there were.
static inline size_t push_case(fixture *f, frit_session *session, expected_rows rows[8])
{
    const json_t *ids = json_object_get(f->one, "ids"), *types = json_object_get(f->one, "token_types");
    const float *features = f->features;
    size_t n_texts = 0, n_pictures = 0;
    for (size_t i = 0; i < json_array_size(ids);) {
        size_t end = i;
        const json_int_t type = json_integer_value(json_array_get(types, i));
        while (end < json_array_size(ids) && json_integer_value(json_array_get(types, end)) == type) end++;
        if (type == 0) {
            rows[n_texts] = (expected_rows){f, i};
            push_text(f, session, ids, &rows[n_texts++], end);
        } else {
            frit_soft_run *run = picture_of(f, n_pictures++, (int32_t)(end - i), &features);
            assert_int_equal(run->n_tokens, end - i);
            assert_ok(frit_session_push(session, run->ids, (size_t)run->n_tokens, NULL));
            frit_soft_run_unref(run);
        }
        i = end;
    }
    return n_texts;
}

static inline void expect_continuation(fixture *f, frit_session *session)
{
    const json_t *texts = json_object_get(f->one, "continuation");
    frit_sampler *sampler;
    assert_ok(frit_sampler_new(&sampler, f->model, NULL));
    for (size_t i = 0; i < json_array_size(texts); i++) {
        frit_token token;
        assert_ok(frit_session_next(session, sampler, &token));
        assert_int_equal(token, json_integer_value(json_array_get(texts, i)));
    }
    frit_sampler_free(sampler);
}

static inline void expect_accuracy(const fixture *f, const known *model, size_t i_case)
{
    if (!(f->worst <= model->most)) fail_msg("%s, case %zu: NMSE %.3g", model->name, i_case, f->worst);
}

static inline void compare_case(const known *model, size_t i_case, frit_engine_options options)
{
    fixture f = open_fixture(model->name, i_case, options);
    frit_session *session;
    expected_rows rows[8];
    assert_ok(frit_session_new(&session, f.engine));
    push_case(&f, session, rows);
    run_all(f.engine);
    assert_true(f.n_equal > 10);
    expect_accuracy(&f, model, i_case);
    expect_continuation(&f, session);
    frit_session_free(session);
    close_fixture(&f);
}
