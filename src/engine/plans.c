// SPDX-License-Identifier: MIT
// Plans by shape class: 1 row, up to 8, up to 32, up to n_batch rows in short runs, and up to n_batch rows in runs of
// many rows each; every class for logits, for hidden states, or for sources.
//
// A class is planned once for its largest shape: a step of 5 rows runs the plan for 8, narrowed. Small steps get plans
// of their own because their buffers are smaller and stay in the processor's caches.
#include "engine/engine.h"

static const int32_t class_rows[FRIT_N_CLASSES] = {1, 8, 32, INT32_MAX, INT32_MAX};
enum { MANY_CLASS = FRIT_N_CLASSES - 1 };

static int32_t rows_of(const frit_engine *engine, int i)
{
    return class_rows[i] < engine->n_batch ? class_rows[i] : engine->n_batch;
}

static frit_status make_plan(const frit_engine *engine, const frit_hparams *hp, int i, frit_plan_wish wish,
                             frit_plan_class *c)
{
    const bool narrow = wish.kind != FRIT_PLAN_LOGITS || engine->model->arch->is_encoder;   // results as long as rows
    int32_t n_rows = rows_of(engine, i);
    int32_t n_outs = narrow || n_rows < engine->max_outs ? n_rows : engine->max_outs;
    frit_graph_init(&c->graph, &c->arena, n_rows, n_outs);
    const frit_build_options options = {.hidden = wish.kind == FRIT_PLAN_HIDDEN,
                                        .encode = wish.kind == FRIT_PLAN_ENCODE,
                                        .adapters = wish.adapted ? &engine->adapters.bound : NULL};
    const frit_model *model = engine->model;
    if (wish.adapted && !engine->adapters.bound.matrices)
        return frit_fail_memory(sizeof(frit_adapters), "an engine's adapters");
    FRIT_TRY(frit_arch_build(&c->graph, model->arch, hp, &model->weights, &options));
    return frit_plan_new(&c->plan, &c->graph,
                         &(frit_plan_options){.no_fuse = engine->no_fuse,
                                              .few_rows = i < MANY_CLASS,
                                              .takes = engine->device->backend->takes,
                                              .device = engine->device});
}

static void free_class(frit_engine *engine, frit_plan_class *c)
{
    if (c->exec) engine->device->backend->exec_free(engine->device, c->exec);
    frit_arena_free(&c->arena);
    *c = (frit_plan_class){0};
}

frit_status frit_plans_get(frit_engine *engine, frit_plan_wish wish, frit_plan_class **out)
{
    int i = wish.many ? MANY_CLASS : 0;
    while (rows_of(engine, i) < wish.n_rows) i++;
    frit_plan_class *c = &engine->plans.classes[wish.adapted][wish.kind][i];
    if (!c->exec) {
        frit_status status = make_plan(engine, &engine->hp, i, wish, c);
        if (status == FRIT_OK) status = engine->device->backend->prepare(engine->device, c->plan, &c->exec);
        if (status != FRIT_OK) {
            free_class(engine, c);
            return status;
        }
    }
    *out = c;
    return FRIT_OK;
}

frit_status frit_plans_measure(const frit_engine *engine, uint64_t *scratch_bytes)
{
    frit_plan_class c = {0};
    frit_hparams hp = engine->hp;
    frit_status status = frit_rope_init(&hp, hp.n_ctx_train, &c.arena);
    if (status == FRIT_OK) status = make_plan(engine, &hp, MANY_CLASS, (frit_plan_wish){0}, &c);
    if (status == FRIT_OK) *scratch_bytes = c.plan->scratch_bytes;
    frit_arena_free(&c.arena);
    return status;
}

// All classes, in sequence.
static frit_plan_class *class_at(const frit_engine *engine, int i)
{
    return (frit_plan_class *)(uintptr_t)&engine->plans.classes[0][0][0] + i;
}

enum { N_ALL = 2 * FRIT_PLAN_KINDS * FRIT_N_CLASSES };

uint64_t frit_plans_scratch_bytes(const frit_engine *engine)
{
    uint64_t n_bytes = 0;
    for (int i = 0; i < N_ALL; i++)
        if (class_at(engine, i)->exec) n_bytes += class_at(engine, i)->plan->scratch_bytes;
    return n_bytes;
}

void frit_plans_free(frit_engine *engine)
{
    for (int i = 0; i < N_ALL; i++) free_class(engine, class_at(engine, i));
}

void frit_plans_drop_adapted(frit_engine *engine)
{
    for (int i = N_ALL / 2; i < N_ALL; i++) free_class(engine, class_at(engine, i));
}
