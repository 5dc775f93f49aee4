// SPDX-License-Identifier: MIT
// engine/session/shift_fixture.h: a model and an engine with a short context.
#pragma once
#include "support/engines.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include "engine/engine.h"

enum { N_CTX = 128, N_KEEP = 32, N_DROP = 64, N_NEXT = 8 };

typedef struct fixture {
    frit_model *model;
    frit_engine *engine;
    int32_t n_vocab;
} fixture;

static inline fixture open_model(const char *path, frit_engine_options options)
{
    fixture f;
    frit_model_info info;
    if (options.n_ctx == 0) options.n_ctx = N_CTX;
    if (options.n_threads == 0) options.n_threads = 2;
    f.model = load_model(path);
    f.engine = make_engine(f.model, options);
    assert_ok(frit_model_get_info(f.model, &info));
    f.n_vocab = info.n_vocab;
    return f;
}

static inline fixture open_tiny(const tiny_options *tiny, frit_engine_options options)
{
    return open_model(tiny_model("shift.gguf", tiny), options);
}

static inline void close_model(fixture *f)
{
    frit_engine_free(f->engine);
    frit_model_free(f->model);
}

static inline void push(const fixture *f, frit_session *session, const frit_token *tokens, size_t n)
{
    assert_ok(frit_session_push(session, tokens, n, NULL));
    run_all(f->engine);
}

// Random tokens that are not special.
static inline void plain_tokens(uint64_t seed, frit_token *tokens, size_t n, int32_t n_vocab)
{
    frit_rng rng;
    frit_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) tokens[i] = (frit_token)random_between(&rng, 3, n_vocab - 1);
}

static inline void assert_no_page_is_lost(const fixture *f)
{
    const frit_kv *kv = &f->engine->kv;
    for (int32_t g = 0; g < kv->n_groups; g++) {
        assert_int_equal(kv->groups[g].n_free + kv->groups[g].n_idle, kv->groups[g].n_pages);
        for (int32_t p = 0; p < kv->groups[g].n_pages; p++) assert_int_equal(kv->groups[g].refs[p], 0);
    }
}
