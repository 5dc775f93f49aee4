// SPDX-License-Identifier: MIT
// engine/placement/needs.h: the needs of an engine, measured before anything is loaded.
#pragma once
#include "engine/engine.h"
#include "engine/placement/fit.h"

typedef struct frit_engine_needs {
    frit_kv_shape shape;   // of the cache; its types are the first of fit.types
    frit_plan_needs plans;
    frit_fit fit;
} frit_engine_needs;

// Measures an engine whose devices are open: places its layers, makes its plans, and asks devices for their sizes.
// frit_engine_needs_free is called also after a failure.
frit_status frit_engine_measure(frit_engine *engine, const frit_engine_options *options, frit_engine_needs *needs);
void frit_engine_needs_free(frit_engine_needs *needs);
// Makes an engine up to the point where all is measured and nothing is loaded (engine.c). target: NULL, or the GPU that
// the engine compiles kernels for.
frit_status frit_engine_begin(frit_engine **out, frit_model *model, const frit_engine_options *options,
                              const frit_device_target *target, frit_engine_needs *needs);
// Makes an engine without weights and plans for a target GPU. Only frit_engine_compile and frit_engine_free take it.
frit_status frit_engine_new_for(frit_engine **out, frit_model *model, const frit_engine_options *options,
                                const frit_device_target *target);
// Compiles the kernels of all plans of text generation (prepare.c).
frit_status frit_engine_compile(frit_engine *engine, frit_progress progress);
