// SPDX-License-Identifier: MIT
// Finds the rotations that move a model's cached keys to other positions, for context shifts.
#include "engine/engine.h"

// Returns why keys cannot move, as a clause; NULL if only the graph can tell.
static const char *why_not(const frit_engine *engine)
{
    const frit_arch *arch = engine->model->arch;
    if (arch->is_encoder) return "an encoder generates no text";
    if (arch->is_encoder_decoder) return "an encoder-decoder reads its source whole";
    if (engine->hp.is_bidirectional) return "every token sees all others";
    if (engine->kv.state_bytes > 0) return "a recurrent state has no keys that could move";
    return NULL;
}

static frit_status read_graph(frit_engine *engine, frit_key_rotation *rotations)
{
    frit_arena arena = {0};
    frit_graph graph;
    const frit_model *model = engine->model;
    frit_graph_init(&graph, &arena, 1, 1);
    frit_status status = frit_arch_build(&graph, model->arch, &engine->hp, &model->weights, NULL);
    if (status == FRIT_OK) status = frit_graph_find_rotations(&graph, engine->n_ctx, rotations, engine->kv.n_layers);
    frit_arena_free(&arena);
    return status;
}

frit_status frit_engine_find_rotations(frit_engine *engine)
{
    if (engine->rotations) return FRIT_OK;
    const char *why = why_not(engine);
    if (why) return frit_fail(FRIT_E_UNSUPPORTED, "%s", why);
    const size_t n = (size_t)engine->kv.n_layers;
    frit_key_rotation *rotations = frit_arena_new(&engine->arena, frit_key_rotation, n + 1);
    if (!rotations) return frit_fail_memory(n * sizeof *rotations, "the rotations of keys");
    FRIT_TRY(read_graph(engine, rotations));
    engine->rotations = rotations;
    return FRIT_OK;
}
