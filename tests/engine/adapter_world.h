// SPDX-License-Identifier: MIT
// engine/adapter_world.h: a model and an engine of four sessions, which tests of adapters load adapters into.
#pragma once
#include "engine/engine.h"
#include "support/support.h"

typedef struct world {
    frit_model *model;
    frit_engine *engine;
    frit_model_info info;
} world;

static inline world open_world(const char *path, const char *cpu)
{
    world w = {0};
    const frit_engine_options options = {
        .cpu = cpu, .n_ctx = 128, .n_sessions = 4, .n_threads = 2, .cache_type_k = "f32", .cache_type_v = "f32"};
    assert_ok(frit_model_open(&w.model, path, NULL));
    assert_ok(frit_engine_new(&w.engine, w.model, &options));
    frit_model_get_info(w.model, &w.info);
    return w;
}

static inline void close_world(world *w)
{
    frit_engine_free(w->engine);
    frit_model_free(w->model);
}
