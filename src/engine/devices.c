// SPDX-License-Identifier: MIT
// The devices of an engine, and what runs on which: every layer on the first device, as far as it runs the layer's ops;
// the rest on the CPU.
#include "engine/engine.h"

#include "base/checksum.h"

// Of what the system knows of the files, wherever they lie.
static uint64_t files_hash(const frit_checkpoint *ckpt)
{
    frit_checksum sum = {0};
    for (size_t i = 0; i < ckpt->n_files; i++) {
        const uint64_t known[] = {frit_file_size(ckpt->files[i]), frit_file_changed(ckpt->files[i])};
        frit_checksum_add(&sum, known, sizeof known);
    }
    return frit_checksum_value(&sum);
}

static int wanted(const void *ctx, const frit_node *node)
{
    (void)ctx, (void)node;
    return 0;
}

static bool runs(const void *ctx, int device, const frit_node *node)
{
    const frit_engine *engine = ctx;
    return engine->devices[device]->backend->runs(engine->devices[device], node);
}

frit_status frit_engine_open_devices(frit_engine *engine, const frit_engine_options *options)
{
    const frit_model *model = engine->model;
    const char *weights_cache = model->ckpt->n_files > 0 ? options->weights_cache : NULL;
    if (options->weights_cache && !weights_cache)
        frit_log_say(&model->log, FRIT_LOG_WARNING, "%s: comes from no file, so its packed weights are not kept",
                     model->info.path);
    const frit_device_options device = {.n_threads = options->n_threads,
                                        .n_threads_batch = options->n_threads_batch,
                                        .cpu = options->cpu,
                                        .numa = options->numa,
                                        .weights_cache = weights_cache,
                                        .weights_source = files_hash(model->ckpt),
                                        .stores = model->stores,
                                        .log = &model->log};
    const frit_backend *backend;
    for (int i = 0; (backend = frit_backend_get(i)) != NULL; i++) {
        FRIT_TRY(backend->open(&engine->devices[i], &device));
        engine->n_devices++;
    }
    const int32_t n_layers = frit_arch_n_cache_layers(&engine->hp);
    engine->cache_devices = frit_arena_new(&engine->arena, int8_t, (size_t)n_layers + 1);
    if (!engine->cache_devices) return frit_fail_memory((size_t)n_layers, "the layers' devices");
    engine->placement = (frit_placement){.n_devices = engine->n_devices,
                                         .ctx = engine,
                                         .wanted = wanted,
                                         .runs = runs,
                                         .cache_devices = engine->cache_devices};
    return FRIT_OK;
}

frit_status frit_engine_count_weights(frit_engine *engine, const frit_plan_needs *needs)
{
    engine->weights = (frit_weight_bytes){0};
    for (int i = 0; i < engine->n_devices; i++) {
        frit_device *device = engine->devices[i];
        frit_weight_bytes bytes = {0};
        if (!device->backend->weight_bytes) continue;
        FRIT_TRY(device->backend->weight_bytes(device, &needs->weights[i], &bytes));
        engine->weights.stored += bytes.stored;
        engine->weights.missing += bytes.missing;
        engine->weights.in_place += bytes.in_place;
    }
    return FRIT_OK;
}

frit_status frit_engine_load_weights(frit_engine *engine, const frit_plan_needs *needs, frit_progress progress)
{
    for (int i = 0; i < engine->n_devices; i++) {
        const frit_backend *backend = engine->devices[i]->backend;
        if (backend->load) FRIT_TRY(backend->load(engine->devices[i], &needs->weights[i], progress));
    }
    return FRIT_OK;
}

void frit_engine_close_devices(frit_engine *engine)
{
    for (int i = 0; i < engine->n_devices; i++) engine->devices[i]->backend->close(engine->devices[i]);
    engine->n_devices = 0;
}
