// SPDX-License-Identifier: MIT
// Placing a model on this machine: device, context that fits, cache, the first plans.
#include "engine/engine.h"
#include "engine/fit.h"

#include "base/check.h"
#include "base/cpu.h"
#include "base/option.h"

#include <stdlib.h>

enum {
    DEFAULT_BATCH = 512,
    DEFAULT_COPIES = 2,   // of states: the last two turns
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

// Of one session with its copies.
static uint64_t all_states_bytes(const frit_kv_shape *shape, int32_t n_copies)
{
    uint64_t n_bytes;
    return frit_mul_u64(frit_kv_state_bytes(shape), (uint64_t)n_copies + 1, &n_bytes) ? n_bytes : UINT64_MAX;
}

static frit_status choose_context(frit_engine *engine, const frit_engine_options *options, const frit_cache_spec *specs,
                                  const frit_plan_needs *needs)
{
    const frit_kv_shape shape = {.specs = specs,
                                 .n_layers = frit_arch_n_cache_layers(&engine->hp),
                                 .types = choose_kv_types(options),
                                 .devices = engine->cache_devices};
    const frit_model *model = engine->model;
    const int32_t n_copies = options->n_state_copies == 0  ? DEFAULT_COPIES
                             : options->n_state_copies < 0 ? 0
                                                           : options->n_state_copies;
    const int32_t n_maps = model->arch->is_encoder_decoder ? 2 : 1;   // of a session: a source may be as long as a text
    FRIT_TRY(frit_kv_check(&shape));
    const uint64_t page_bytes = frit_kv_page_bytes(&shape);
    if (page_bytes > UINT64_MAX / 2) return frit_fail(FRIT_E_MEMORY, "the size of a page of the cache is no number");
    frit_fit fit = {
        .path = model->info.path,
        .log = &model->log,
        .n_ctx = options->n_ctx,
        .n_ctx_train = engine->hp.n_ctx_train,
        .n_sessions = options->n_sessions > 0 ? options->n_sessions : 1,
        .page_bytes = page_bytes * (uint64_t)n_maps,
        .state_bytes = all_states_bytes(&shape, n_copies),
        .weight_bytes = engine->weights.missing + engine->weights.in_place,
        .scratch_bytes = needs->scratch_bytes,
        .available = frit_memory_available(),
    };
    FRIT_TRY(frit_fit_context(&fit, &engine->n_ctx));
    engine->kv_token_bytes = frit_kv_token_bytes(&shape);
    const frit_kv_room room = {.n_pages = n_maps * fit.n_sessions * frit_kv_pages_of(engine->n_ctx),
                               .n_slots = fit.n_sessions,
                               .n_copies = n_copies};
    return frit_kv_init(&engine->kv, engine->devices, engine->n_devices, &shape, room);
}

static void make_step(frit_engine *engine, frit_step *step, size_t n)
{
    step->tokens = frit_arena_new(&engine->arena, int32_t, n);
    step->positions = frit_arena_new(&engine->arena, int32_t, n);
    step->out_rows = frit_arena_new(&engine->arena, int32_t, n);
    step->runs = frit_arena_new(&engine->arena, frit_run, n);
    step->taken = frit_arena_new(&engine->arena, frit_taken, n);
    step->owners = frit_arena_new(&engine->arena, frit_session *, n);
    step->picks = frit_arena_new(&engine->arena, frit_pick, n);
    step->picked = frit_arena_new(&engine->arena, frit_picked_token, n);
}

static frit_status make_step_buffers(frit_engine *engine)
{
    const size_t n = (size_t)engine->n_batch;
    for (int i = 0; i < FRIT_MAX_FLIGHTS; i++) make_step(engine, &engine->flights[i].step, n);
    return frit_arena_failed(&engine->arena) ? frit_fail_memory(n * sizeof(frit_run), "a step's rows") : FRIT_OK;
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
    const uint64_t n_bytes = needs.scratch_bytes;
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
static frit_status place(frit_engine *engine, const frit_engine_options *options, const frit_plan_needs *needs)
{
    const size_t n_layers = (size_t)frit_arch_n_cache_layers(&engine->hp);
    frit_cache_spec *specs = frit_arena_new(&engine->arena, frit_cache_spec, n_layers);
    if (!specs) return frit_fail_memory(n_layers * sizeof *specs, "the layers' caches");
    FRIT_TRY(frit_arch_cache_specs(&engine->hp, specs));
    FRIT_TRY(frit_engine_count_weights(engine, needs));
    FRIT_TRY(choose_context(engine, options, specs, needs));
    return frit_engine_load_weights(engine, needs, (frit_progress){options->progress, options->progress_ctx});
}

static frit_status set_up(frit_engine *engine, const frit_engine_options *options)
{
    engine->hp = engine->model->hp;
    engine->no_fuse = options->no_fuse;
    engine->prompt_budget = options->prompt_budget;
    set_batch(engine, options->n_batch > 0 ? options->n_batch : DEFAULT_BATCH);
    FRIT_TRY(frit_engine_open_devices(engine, options));
    FRIT_TRY(frit_plans_place_cache(engine));
    frit_plan_needs needs;
    frit_status status = frit_plans_measure(engine, &needs);
    if (status == FRIT_OK) status = place(engine, options, &needs);
    frit_plan_needs_free(&needs);
    FRIT_TRY(status);
    FRIT_TRY(frit_rope_init(&engine->hp, engine->n_ctx, &engine->arena));
    FRIT_TRY(make_step_buffers(engine));
    FRIT_TRY(make_pick_run(engine));
    // The plans that every run needs, here rather than at the first token.
    frit_plan_class *c;
    frit_device_info cpu;
    frit_engine_cpu(engine)->backend->info(frit_engine_cpu(engine), &cpu);
    const bool has_many = cpu.many_rows > 0 && engine->n_batch >= 2 * cpu.many_rows;
    engine->many_rows = has_many ? cpu.many_rows : INT32_MAX;
    FRIT_TRY(frit_plans_get(engine, (frit_plan_key){.n_rows = engine->n_batch, .many = has_many}, &c));
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
    for (int i = 0; i < FRIT_MAX_FLIGHTS; i++) {
        frit_step_free_tables(&engine->flights[i].step.tables);
        frit_pick_lists_free(&engine->flights[i].step.lists);
    }
    frit_pick_run_free(engine->pick_run);
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
        .weight_bytes = engine->weights.stored + engine->weights.in_place,
        .packed_bytes = engine->weights.stored,
    };
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
