// SPDX-License-Identifier: MIT
// Makes the plans of text generation before the first step needs them.
#include "engine/placement/needs.h"

#include <stdatomic.h>

enum { MOST_PLANS = FRIT_PLAN_KINDS * FRIT_N_CLASSES };
static const double compiling = 0.9;   // part of the progress, if a device compiles

typedef struct plans_job {
    frit_plan_key keys[MOST_PLANS];   // [n]
    int n;
    double compiled;   // the progress before plans are made
    frit_progress progress;
} plans_job;

static void add_kind(const frit_engine *engine, frit_plan_kind kind, plans_job *job)
{
    job->n += frit_plans_list(engine, kind, job->keys + job->n);
}

static void list_plans(const frit_engine *engine, plans_job *job)
{
    const frit_model *model = engine->model;
    if (model->arch->is_encoder) {
        add_kind(engine, FRIT_PLAN_HIDDEN, job);
        return;
    }
    if (!engine->hp.is_next) add_kind(engine, FRIT_PLAN_LOGITS, job);
    if (engine->hp.is_next || atomic_load(&model->is_drafted)) add_kind(engine, FRIT_PLAN_NEXT, job);
    if (model->arch->is_encoder_decoder) add_kind(engine, FRIT_PLAN_ENCODE, job);
}

static bool report(const plans_job *job, double done)
{
    return !job->progress.fn || job->progress.fn(job->progress.ctx, done);
}

static bool report_compiled(void *ctx, double done)
{
    plans_job *job = ctx;
    job->compiled = compiling;
    return report(job, compiling * done);
}

static frit_status tune(const frit_shape_class *c)
{
    for (int k = 0; k < c->segments.n; k++) {
        const frit_backend *backend = c->planned[k].device->backend;
        if (backend->tune) FRIT_TRY(backend->tune(c->planned[k].exec));
    }
    return FRIT_OK;
}

frit_status frit_engine_compile(frit_engine *engine, frit_progress progress)
{
    plans_job job = {0};
    list_plans(engine, &job);
    return frit_plans_compile(engine, job.keys, job.n, progress);
}

frit_status frit_engine_prepare(frit_engine *engine, frit_progress_fn progress, void *ctx)
{
    FRIT_REQUIRE(engine);
    if (engine->in_step) return frit_fail(FRIT_E_INVALID, "a row function cannot prepare plans");
    plans_job job = {.progress = {progress, ctx}};
    list_plans(engine, &job);
    FRIT_TRY(frit_flight_wait_all(engine));
    FRIT_TRY(frit_plans_compile(engine, job.keys, job.n, (frit_progress){report_compiled, &job}));
    for (int i = 0; i < job.n; i++) {
        frit_shape_class *c;
        if (!report(&job, job.compiled + (1 - job.compiled) * i / job.n))
            return frit_fail(FRIT_E_CANCELLED, "preparing the engine was cancelled");
        FRIT_TRY(frit_plans_get(engine, job.keys[i], &c));
        FRIT_TRY(tune(c));
    }
    report(&job, 1);
    return FRIT_OK;
}
