// SPDX-License-Identifier: MIT
// Placing a model on this machine: device, context that fits, cache, the first plans.
#include "engine/engine.h"
#include "engine/fit.h"

#include "base/check.h"
#include "base/cpu.h"
#include "base/option.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    DEFAULT_BATCH = 512,
    DEFAULT_SNAPSHOTS = 2,   // the last two turns
    LOGITS_BYTES = 64 << 20
};   // of one step's logits at most, if more than one row wants them

// --cpu reference computes what the formulas say, so its cache does not round either.
static frit_kv_types choose_kv_types(const frit_engine_options *options)
{
    const bool exact = options->cpu && strcmp(options->cpu, "reference") == 0;
    frit_kv_types types = {.k = exact ? FRIT_DTYPE_F32 : FRIT_DTYPE_F16, .v = exact ? FRIT_DTYPE_F32 : FRIT_DTYPE_F16};
    if (options->cache_type_k) frit_dtype_from_name(options->cache_type_k, &types.k);
    if (options->cache_type_v) frit_dtype_from_name(options->cache_type_v, &types.v);
    return types;
}

static frit_status check_model(const frit_model *model)
{
    if (!model->vocab_only) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID, "%s: %s, an engine needs its weights", model->info.path,
                     model->ckpt->n_tensors == 0 ? "holds a vocabulary and no tensors"
                                                 : "was opened for its vocabulary only");
}

// What the cache is made for.
typedef struct cache_wish {
    frit_kv_shape shape;
    frit_kv_room room;   // without n_ctx
} cache_wish;

static frit_status choose_cache(frit_engine *engine, const frit_engine_options *options, cache_wish *wish)
{
    const int32_t n_layers = frit_arch_n_cache_layers(&engine->hp), n_snapshots = options->n_state_copies;
    frit_cache_spec *specs = frit_arena_new(&engine->arena, frit_cache_spec, (size_t)n_layers);
    if (!specs) return frit_fail_memory((size_t)n_layers * sizeof *specs, "the layers' caches");
    FRIT_TRY(frit_arch_cache_specs(&engine->hp, specs));
    *wish = (cache_wish){.shape = {.specs = specs,
                                   .n_layers = n_layers,
                                   .types = choose_kv_types(options),
                                   .devices = engine->cache_devices,
                                   .full_windows = options->full_windows || engine->hp.is_bidirectional},
                         .room = {.n_sessions = options->n_sessions > 0 ? options->n_sessions : 1,
                                  .n_rows = FRIT_MAX_FLIGHTS * engine->n_batch,
                                  .host_bytes = (uint64_t)options->prefix_host_mib << 20,
                                  .prefixes = !options->no_prefix_cache && !engine->hp.is_bidirectional &&
                                              !engine->model->arch->is_encoder_decoder,
                                  .n_snapshots = n_snapshots == 0  ? DEFAULT_SNAPSHOTS
                                                 : n_snapshots < 0 ? 0
                                                                   : n_snapshots}};
    return frit_kv_check(&wish->shape);
}

// Layers go where there is room for them with a context of this length.
static int32_t context_to_place(const frit_engine *engine, const frit_engine_options *options)
{
    enum { LONG_ENOUGH = 4096 };
    const int32_t n_train = engine->hp.n_ctx_train;
    if (options->n_ctx > 0) return options->n_ctx;
    return n_train > 0 && n_train < LONG_ENOUGH ? n_train : LONG_ENOUGH;
}

static frit_status place_layers(frit_engine *engine, const frit_engine_options *options, const cache_wish *wish)
{
    frit_place_options place = {.gpu_layers = options->gpu_layers,
                                .override_tensor = options->override_tensor,
                                .shape = wish->shape,
                                .room = wish->room};
    place.room.n_ctx = context_to_place(engine, options);
    return frit_place_layers(engine, &place);
}

static uint64_t own_memory(const frit_engine *engine, int device)
{
    frit_device_info info;
    engine->devices[device]->backend->info(engine->devices[device], &info);
    return info.free_bytes;
}

// What device i needs; on the CPU's account also devices without memory of their own.
static frit_fit fit_of(const frit_engine *engine, const cache_wish *wish, const frit_plan_needs *needs, int i)
{
    const bool is_host = i == engine->n_devices - 1;
    frit_fit fit = {.path = engine->model->info.path,
                    .log = &engine->model->log,
                    .n_ctx_train = engine->hp.n_ctx_train,
                    .room = wish->room,
                    .available = is_host ? frit_memory_available() : own_memory(engine, i)};
    for (int d = 0; d < engine->n_devices; d++) {
        if (d != i && (!is_host || own_memory(engine, d) > 0)) continue;
        frit_kv_measure_on(&wish->shape, d, &fit.sizes);
        fit.weight_bytes += engine->weights[d].missing + engine->weights[d].in_place;
        fit.scratch_bytes += needs->scratch_bytes[d];
    }
    return fit;
}

// The longest context for which every device has room.
static frit_status choose_context(frit_engine *engine, const frit_engine_options *options, const cache_wish *wish,
                                  const frit_plan_needs *needs)
{
    for (int i = engine->n_devices - 1; i >= 0; i--) {
        const bool is_host = i == engine->n_devices - 1;
        frit_fit fit = fit_of(engine, wish, needs, i);
        char name[FRIT_ERROR_BYTES];
        if (!is_host && own_memory(engine, i) == 0) continue;
        snprintf(name, sizeof name, "%s on %s", fit.path, engine->devices[i]->backend->name);
        if (!is_host) fit.path = name;
        fit.n_ctx = options->n_ctx;
        if (!is_host && options->n_ctx == 0) fit.n_ctx_train = engine->n_ctx;
        FRIT_TRY(frit_fit_context(&fit, &engine->n_ctx));
    }
    engine->kv_token_bytes = frit_kv_token_bytes(&wish->shape);
    frit_kv_room room = wish->room;
    room.n_ctx = engine->n_ctx;
    return frit_kv_init(&engine->kv, engine->devices, engine->n_devices, &wish->shape, &room);
}

static void make_step(frit_engine *engine, frit_step *step, size_t n)
{
    step->tokens = frit_arena_new(&engine->arena, int32_t, n);
    step->positions = frit_arena_new(&engine->arena, int32_t, n);
    step->out_rows = frit_arena_new(&engine->arena, int32_t, n);
    step->seqs = frit_arena_new(&engine->arena, frit_seq, n);
    step->taken = frit_arena_new(&engine->arena, frit_out_row, n);
    step->owners = frit_arena_new(&engine->arena, frit_session *, n);
    step->picks = frit_arena_new(&engine->arena, frit_pick, n);
    step->picked = frit_arena_new(&engine->arena, frit_picked_token, n);
}

static frit_status make_step_buffers(frit_engine *engine)
{
    const size_t n = (size_t)engine->n_batch;
    for (int i = 0; i < FRIT_MAX_FLIGHTS; i++) make_step(engine, &engine->flights[i].step, n);
    return frit_arena_failed(&engine->arena) ? frit_fail_memory(n * sizeof(frit_seq), "a step's rows") : FRIT_OK;
}

// Logits of one step: a few MiB of them, but whatever a session asks for where its rows cannot be cut.
static void set_batch(frit_engine *engine, int32_t n_batch)
{
    const int64_t row_bytes = (int64_t)engine->hp.n_vocab * (int64_t)sizeof(float);
    int64_t max_outs = engine->hp.is_bidirectional ? n_batch : LOGITS_BYTES / row_bytes;
    engine->n_batch = n_batch;
    engine->max_outs = max_outs < 1 ? 1 : max_outs > n_batch ? n_batch : (int32_t)max_outs;
}

frit_status frit_engine_grow(frit_engine *engine, size_t n_rows)
{
    const int32_t before = engine->n_batch;
    if (n_rows <= (size_t)before) return FRIT_OK;
    frit_flight_land_all(engine);   // its plans are in use
    int64_t n = before;
    while (n < (int64_t)n_rows) n *= 2;
    set_batch(engine, n < engine->n_ctx ? (int32_t)n : engine->n_ctx);
    frit_plan_needs needs;
    const uint64_t available = frit_memory_available();
    frit_status status = frit_plans_measure(engine, &needs);
    const uint64_t n_bytes = needs.scratch_bytes[engine->n_devices - 1];
    frit_plan_needs_free(&needs);
    if (status == FRIT_OK && n_bytes > available)
        status =
            frit_fail(FRIT_E_MEMORY,
                      "%zu tokens that see each other must run in one step, and n_batch is %d: room for more needs "
                      "%llu bytes of scratch, %llu are available",
                      n_rows, (int)before, (unsigned long long)n_bytes, (unsigned long long)available);
    if (status == FRIT_OK) status = make_step_buffers(engine);
    if (status != FRIT_OK)
        set_batch(engine, before);
    else
        frit_plans_free(engine);
    return status;
}

static frit_status make_pick_run(frit_engine *engine)
{
    bool all = true;
    for (int i = 0; i < engine->n_devices; i++) all = all && engine->devices[i]->backend->picks;
    return all ? FRIT_OK : frit_pick_run_new(&engine->pick_run, 1, FRIT_PICK_BATCH);
}

// The context is chosen by what the weights will need; then they are loaded.
static frit_status place(frit_engine *engine, const frit_engine_options *options, const cache_wish *wish,
                         const frit_plan_needs *needs)
{
    FRIT_TRY(frit_engine_count_weights(engine, needs));
    FRIT_TRY(choose_context(engine, options, wish, needs));
    return frit_engine_load_weights(engine, needs, (frit_progress){options->progress, options->progress_ctx});
}

// From so many rows on some device has other kernels; 0: none has.
static int32_t prefill_rows_of(const frit_engine *engine)
{
    int32_t rows = 0;
    for (int i = 0; i < engine->n_devices; i++) {
        frit_device_info info;
        engine->devices[i]->backend->info(engine->devices[i], &info);
        if (info.prefill_rows > rows) rows = info.prefill_rows;
    }
    return rows;
}

static frit_status set_up(frit_engine *engine, const frit_engine_options *options)
{
    engine->hp = engine->model->hp;
    engine->no_fuse = options->no_fuse;
    engine->prompt_budget = options->prompt_budget;
    set_batch(engine, options->n_batch > 0 ? options->n_batch : DEFAULT_BATCH);
    FRIT_TRY(frit_engine_open_devices(engine, options));
    cache_wish wish;
    FRIT_TRY(choose_cache(engine, options, &wish));
    FRIT_TRY(place_layers(engine, options, &wish));
    frit_plan_needs needs;
    frit_status status = frit_plans_measure(engine, &needs);
    if (status == FRIT_OK) status = place(engine, options, &wish, &needs);
    frit_plan_needs_free(&needs);
    FRIT_TRY(status);
    FRIT_TRY(frit_rope_init(&engine->hp, engine->n_ctx, &engine->arena));
    FRIT_TRY(make_step_buffers(engine));
    FRIT_TRY(make_pick_run(engine));
    // The plans that every run needs, here rather than at the first token.
    frit_plan_class *c;
    const int32_t rows = prefill_rows_of(engine);
    const bool has_prefill = rows > 0 && engine->n_batch >= 2 * rows;
    engine->prefill_rows = has_prefill ? rows : INT32_MAX;
    FRIT_TRY(frit_plans_get(engine, (frit_plan_key){.n_rows = engine->n_batch, .prefill = has_prefill}, &c));
    return frit_plans_get(engine, (frit_plan_key){.n_rows = 1}, &c);
}

frit_status frit_engine_new(frit_engine **out, frit_model *model, const frit_engine_options *options)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(model);
    FRIT_REQUIRE_UNUSED(options);
    const frit_engine_options chosen = options ? *options : (frit_engine_options){0};
    size_t n_rows;
    const frit_option *rows = frit_engine_option_rows(&n_rows);
    FRIT_TRY(frit_options_check(rows, n_rows, &chosen));
    if (chosen.n_sessions < 0)
        return frit_fail(FRIT_E_INVALID, "n_sessions is %d, expected 0 or more", chosen.n_sessions);
    FRIT_TRY(check_model(model));
    FRIT_TRY(frit_model_check_files(model));
    frit_engine *engine = calloc(1, sizeof *engine);
    if (!engine) return frit_fail_memory(sizeof *engine, "an engine");
    frit_model_retain(model);
    engine->model = model;
    frit_status status = set_up(engine, &chosen);
    if (status != FRIT_OK) {
        frit_engine_free(engine);
        return status;
    }
    *out = engine;
    return FRIT_OK;
}

void frit_engine_free(frit_engine *engine)
{
    if (!engine) return;
    frit_flight_drop_all(engine);
    for (frit_session *s = engine->sessions; s; s = s->next) s->engine = NULL;   // they can only be freed now
    frit_plans_free(engine);
    frit_adapter_slots_deinit(&engine->adapters);
    frit_kv_deinit(&engine->kv);
    free(engine->noted);
    for (int i = 0; i < FRIT_MAX_FLIGHTS; i++) {
        frit_step_free_tables(&engine->flights[i].step.tables);
        frit_pick_lists_free(&engine->flights[i].step.lists);
    }
    frit_pick_run_free(engine->pick_run);
    frit_places_deinit(&engine->places);
    frit_engine_close_devices(engine);
    frit_arena_free(&engine->arena);
    frit_model_free(engine->model);
    free(engine);
}

frit_status frit_engine_get_info(const frit_engine *engine, frit_engine_info *info)
{
    FRIT_REQUIRE(info);
    *info = (frit_engine_info){0};
    FRIT_REQUIRE(engine);
    frit_device_info first, cpu;
    engine->devices[0]->backend->info(engine->devices[0], &first);
    frit_engine_cpu(engine)->backend->info(frit_engine_cpu(engine), &cpu);
    *info = (frit_engine_info){
        .backend = engine->devices[0]->backend->name,
        .isa = first.isa,
        .n_ctx = engine->n_ctx,
        .n_threads = cpu.n_threads,
        .n_threads_batch = cpu.n_threads_batch,
        .n_batch = engine->n_batch,
        .kv_bytes = engine->kv.n_bytes,
        .kv_token_bytes = engine->kv_token_bytes,
        .scratch_bytes = frit_plans_scratch_bytes(engine),
    };
    for (int i = 0; i < engine->n_devices; i++) {
        info->weight_bytes += engine->weights[i].stored + engine->weights[i].in_place;
        info->packed_bytes += engine->weights[i].stored;
    }
    return FRIT_OK;
}

frit_status frit_engine_profile(frit_engine *engine, bool on)
{
    FRIT_REQUIRE(engine);
    frit_flight_land_all(engine);
    for (int i = 0; i < engine->n_devices; i++) {
        const frit_backend *backend = engine->devices[i]->backend;
        if (!backend->profile)
            return frit_fail(FRIT_E_UNSUPPORTED, "backend %s does not count where time goes", backend->name);
        FRIT_TRY(backend->profile(engine->devices[i], on));
    }
    return FRIT_OK;
}

bool frit_engine_get_profile(const frit_engine *engine, size_t i, frit_profile_row *row)
{
    FRIT_REQUIRE_OR(false, engine);
    FRIT_REQUIRE_OR(false, row);
    for (int k = 0; k < engine->n_devices; k++) {
        const frit_device *device = engine->devices[k];
        size_t n = 0;
        for (; n < i && device->backend->profile && device->backend->profile_row(device, n, row); n++) {
        }
        if (n == i && device->backend->profile && device->backend->profile_row(device, i, row)) return true;
        i -= n;
    }
    return false;
}
