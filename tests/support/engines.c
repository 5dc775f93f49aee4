// SPDX-License-Identifier: MIT
// Models, engines and sessions.
#include "support/engines.h"

#include "support/support.h"

frit_model *load_model(const char *path)
{
    frit_model *model = NULL;
    assert_ok(frit_model_open(&model, path, NULL));
    return model;
}

frit_model *load_tiny(const tiny_options *tiny)
{
    char name[32];   // files of models that are open stay as they are
    static int n_files;
    snprintf(name, sizeof name, "%d_tiny.gguf", n_files++);
    return load_model(tiny_model(name, tiny));
}

frit_engine *make_engine(frit_model *model, frit_engine_options options)
{
    frit_engine *engine = NULL;
    assert_ok(frit_engine_new(&engine, model, &options));
    return engine;
}

static frit_engine *keep_model(frit_model *model, frit_engine_options options)
{
    frit_engine *engine = make_engine(model, options);
    frit_model_free(model);
    return engine;
}

frit_engine *load_engine(const char *path, frit_engine_options options)
{
    return keep_model(load_model(path), options);
}

frit_engine *tiny_engine(const tiny_options *tiny, frit_engine_options options)
{
    return keep_model(load_tiny(tiny), options);
}

frit_session *make_session(frit_engine *engine)
{
    frit_session *session = NULL;
    assert_ok(frit_session_new(&session, engine));
    return session;
}

frit_session *begin_session(frit_engine *engine, frit_token first, size_t n)
{
    frit_session *session = make_session(engine);
    for (size_t i = 0; i < n; i++, first = (first * 7 + 3) % TINY_VOCAB)
        assert_ok(frit_session_push(session, &first, 1, NULL));
    return session;
}

void make_tokens(uint64_t seed, frit_token *tokens, size_t n, int32_t n_vocab)
{
    frit_rng rng;
    frit_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) tokens[i] = (frit_token)random_between(&rng, 0, n_vocab - 1);
}

void run_all(frit_engine *engine)
{
    int32_t n_rows;
    do assert_ok(frit_engine_step(engine, &n_rows));
    while (n_rows > 0);
}
