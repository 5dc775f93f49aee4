// SPDX-License-Identifier: MIT
// Makes engines: opens devices, chooses a context that fits, and makes the cache and the first plans.
#include "engine/placement/needs.h"
#include "engine/observe.h"
#include "engine/sched/late.h"

#include "base/check.h"
#include "base/machine/cpu.h"
#include "base/option.h"

#include <stdlib.h>

enum {
    DEFAULT_BATCH = 512,
    LARGE_BATCH = 2048,
    LOGITS_BYTES = 64 << 20,   // most bytes of a step's logits, if it has more rows of them than sessions
    LARGE_OUTS = 256,          // sessions that may generate together on devices with much memory
};

static frit_status check_model(const frit_model *model)
{
    if (!model->vocab_only) return FRIT_OK;
    return frit_fail_file(FRIT_E_INVALID, "%s: %s, an engine needs its weights", model->info.path,
                          model->ckpt->n_tensors == 0 ? "holds a vocabulary and no tensors"
                                                      : "was opened for its vocabulary only");
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
    if (engine->hp.is_next) step->given = frit_arena_new(&engine->arena, float, n *(size_t)engine->hp.n_embd);
}

static frit_status make_step_buffers(frit_engine *engine)
{
    const size_t n = (size_t)engine->n_batch;
    for (int i = 0; i < FRIT_MAX_FLIGHTS; i++) make_step(engine, &engine->flights.ring[i].step, n);
    return frit_arena_failed(&engine->arena) ? frit_fail_memory(n * sizeof(frit_seq), "a step's rows") : FRIT_OK;
}

// Sets the rows of a step, and its rows with logits: as many as LOGITS_BYTES hold, at least one for each of n_sessions,
// or all if rows cannot be cut.
static void set_batch(frit_engine *engine, int32_t n_batch, int32_t n_sessions)
{
    const int64_t row_bytes = (int64_t)engine->hp.n_vocab * (int64_t)sizeof(float);
    int64_t max_outs = engine->hp.is_bidirectional ? n_batch : LOGITS_BYTES / row_bytes;
    if (max_outs < n_sessions) max_outs = n_sessions;
    engine->n_batch = n_batch;
    engine->schedule.max_outs = max_outs < 1 ? 1 : max_outs > n_batch ? n_batch : (int32_t)max_outs;
}

void frit_engine_only_prefill(frit_engine *engine)
{
    engine->rows.only_prefill = true;
    engine->rows.mixes_classes = false;
    engine->rows.least[FRIT_ROWS_PREFILL] = INT32_MAX;   // steps do not alternate
}

void frit_engine_allow_outs(frit_engine *engine, int32_t n_rows)
{
    if (n_rows > engine->n_batch) n_rows = engine->n_batch;
    if (n_rows <= engine->schedule.max_outs) return;
    frit_flight_wait_all(engine);
    frit_plans_free(engine);   // steps make new ones
    engine->schedule.max_outs = n_rows;
}

frit_status frit_engine_grow(frit_engine *engine, size_t n_rows)
{
    const int32_t before = engine->n_batch, max_outs = engine->schedule.max_outs;
    if (n_rows <= (size_t)before) return FRIT_OK;
    frit_flight_wait_all(engine);   // its plans are in use
    int64_t n = before;
    while (n < (int64_t)n_rows) n *= 2;
    set_batch(engine, n < engine->n_ctx ? (int32_t)n : engine->n_ctx, max_outs);
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
        set_batch(engine, before, max_outs);
    else
        frit_plans_free(engine);
    return status;
}

static frit_status make_pick_run(frit_engine *engine)
{
    bool all = true;
    for (int i = 0; i < engine->n_devices; i++) all = all && engine->devices[i]->backend->picks;
    return all ? FRIT_OK : frit_pick_runner_new(&engine->pick_runner, 1, FRIT_PICK_BATCH);
}

// Chooses the context and the cache's types by the memory that the weights will need, then loads the weights.
static frit_status make_cache(frit_engine *engine, const frit_engine_options *options, bool loads_now,
                              frit_engine_needs *needs)
{
    frit_fit_choice choice;
    FRIT_TRY(frit_fit_choose(&needs->fit, &choice));
    frit_fit_tell(&needs->fit, choice);
    engine->n_ctx = choice.n_ctx;
    needs->shape.types = needs->fit.types[choice.types];
    engine->kv_token_bytes = frit_kv_token_bytes(&needs->shape);
    frit_kv_room room = needs->fit.room;
    room.n_ctx = engine->n_ctx;
    FRIT_TRY(frit_kv_init(&engine->kv, engine->devices, engine->n_devices, &needs->shape, &room));
    if (!loads_now) return FRIT_OK;
    return frit_engine_load_weights(engine, &needs->plans, (frit_progress){options->progress, options->progress_ctx});
}

// Reads from the devices at which row count they switch to prefill kernels, and whether they can mix both in one step.
// Bit i of `used`: steps run on device i.
static void find_row_rules(frit_engine *engine, uint32_t used)
{
    int32_t prefill = 0, long_prefill = 0, joins_above = INT32_MAX;
    bool mixes = true;
    for (int i = 0; i < engine->n_devices; i++) {
        frit_device_info info;
        if (!(used >> i & 1)) continue;
        engine->devices[i]->backend->info(engine->devices[i], &info);
        const int32_t *least = info.least_rows;
        if (least[FRIT_ROWS_PREFILL] > prefill) prefill = least[FRIT_ROWS_PREFILL];
        if (least[FRIT_ROWS_LONG_PREFILL] > long_prefill) long_prefill = least[FRIT_ROWS_LONG_PREFILL];
        if (info.joins_above > 0 && info.joins_above < joins_above) joins_above = info.joins_above;
        mixes = mixes && info.mixes_classes;
    }
    engine->rows.least[FRIT_ROWS_PREFILL] = prefill > 0 && engine->n_batch >= 2 * prefill ? prefill : INT32_MAX;
    engine->rows.mixes_classes =
        mixes && engine->rows.least[FRIT_ROWS_PREFILL] < INT32_MAX && !engine->hp.is_bidirectional;
    engine->rows.least[FRIT_ROWS_LONG_PREFILL] = long_prefill > 0 ? long_prefill : INT32_MAX;
    engine->rows.joins_above = joins_above;
}

// True if a device has much memory of its own.
static bool has_large_device(const frit_engine *engine)
{
    const uint64_t much = (uint64_t)16 << 30;
    for (int i = 0; i < engine->n_devices; i++) {
        frit_device_info info;
        engine->devices[i]->backend->info(engine->devices[i], &info);
        if (info.free_bytes >= much) return true;
    }
    return false;
}

// Devices with much memory read weights fast, and more rows use each read better.
static void choose_batch(frit_engine *engine, const frit_engine_options *options)
{
    const bool is_large = has_large_device(engine);
    const int32_t n_batch = options->n_batch > 0 ? options->n_batch : is_large ? LARGE_BATCH : DEFAULT_BATCH;
    const int32_t n_sessions = options->n_sessions > 0 ? options->n_sessions : 1;
    set_batch(engine, n_batch, is_large && n_sessions < LARGE_OUTS ? LARGE_OUTS : n_sessions);
}

static uint32_t devices_of(const frit_shape_class *c)
{
    uint32_t used = 0;
    for (int k = 0; k < c->segments.n; k++) used |= 1u << c->segments.list[k].device;
    return used;
}

// Each segment on a device of its own whose queue is left only for the results: a device works on the next step while
// later ones finish this one.
static int32_t count_stages(const frit_engine *engine, const frit_shape_class *c)
{
    uint32_t used = 0;
    if (c->segments.n < 2 || !engine->devices[c->segments.list[c->segments.output].device]->backend->picks) return 1;
    for (int k = 0; k < c->segments.n; k++) {
        const int device = c->segments.list[k].device;
        const frit_backend *backend = engine->devices[device]->backend;
        if (used >> device & 1 || !backend->queues || !backend->receive) return 1;
        used |= 1u << device;
    }
    return c->segments.n;
}

static frit_status measure_engine(frit_engine *engine, const frit_engine_options *options,
                                  const frit_device_target *target, frit_engine_needs *needs)
{
    engine->hp = engine->model->hp;
    engine->no_fuse = options->no_fuse;
    engine->schedule.prompt_budget = options->prompt_budget;
    engine->schedule.n_stages = 1;
    FRIT_TRY(frit_engine_open_devices(engine, options, target));
    choose_batch(engine, options);
    find_row_rules(engine, UINT32_MAX);
    FRIT_TRY(frit_engine_measure(engine, options, needs));
    // The CPU is a device of every engine. Where all layers are on a GPU, its row classes must not divide the steps.
    const uint32_t used = devices_of(&needs->plans.logits) | devices_of(&needs->plans.source);
    if (used != 0 && !engine->weight_stream.is_on) find_row_rules(engine, used);
    if (!engine->weight_stream.is_on) engine->schedule.n_stages = count_stages(engine, &needs->plans.logits);
    return FRIT_OK;
}

static frit_status finish_engine(frit_engine *engine, const frit_engine_options *options, bool loads_now,
                                 frit_engine_needs *needs)
{
    FRIT_TRY(make_cache(engine, options, loads_now, needs));
    FRIT_TRY(frit_rope_init(&engine->hp, engine->n_ctx, &engine->arena));
    FRIT_TRY(make_step_buffers(engine));
    FRIT_TRY(make_pick_run(engine));
    if (!loads_now) return FRIT_OK;
    // Makes the plans that every text needs now, rather than at the first token.
    frit_shape_class *c;
    const bool has_prefill = engine->rows.least[FRIT_ROWS_PREFILL] < INT32_MAX;
    if (options->prefix_disk) FRIT_TRY(frit_prefix_open_disk(engine, options->prefix_disk));
    const frit_plan_kind kind = engine->hp.is_next ? FRIT_PLAN_NEXT : FRIT_PLAN_LOGITS;
    FRIT_TRY(
        frit_plans_get(engine, (frit_plan_key){.n_rows = engine->n_batch, .prefill = has_prefill, .kind = kind}, &c));
    return frit_plans_get(engine, (frit_plan_key){.n_rows = 1, .kind = kind}, &c);
}

static frit_status check_options(const frit_model *model, const frit_engine_options *options)
{
    size_t n_rows;
    const frit_option *rows = frit_engine_option_rows(&n_rows);
    FRIT_TRY(frit_options_check(rows, n_rows, options));
    if (options->n_sessions < 0)
        return frit_fail(FRIT_E_INVALID, "n_sessions is %d, expected 0 or more", options->n_sessions);
    FRIT_TRY(check_model(model));
    return frit_model_check_files(model);
}

frit_status frit_engine_begin(frit_engine **out, frit_model *model, const frit_engine_options *options,
                              const frit_device_target *target, frit_engine_needs *needs)
{
    *out = NULL;
    *needs = (frit_engine_needs){0};
    FRIT_TRY(check_options(model, options));
    frit_engine *engine = calloc(1, sizeof *engine);
    if (!engine) return frit_fail_memory(sizeof *engine, "an engine");
    frit_model_ref(model);
    engine->model = model;
    const frit_status status = measure_engine(engine, options, target, needs);
    if (status == FRIT_OK)
        *out = engine;
    else
        frit_engine_free(engine);
    return status;
}

frit_status frit_engine_new_for(frit_engine **out, frit_model *model, const frit_engine_options *options,
                                const frit_device_target *target)
{
    frit_engine_needs needs;
    frit_engine *engine;
    *out = NULL;
    frit_status status = frit_engine_begin(&engine, model, options, target, &needs);
    if (status == FRIT_OK) status = finish_engine(engine, options, !target && !model->loads_late, &needs);
    frit_engine_needs_free(&needs);
    if (status != FRIT_OK)
        frit_engine_free(engine);
    else
        *out = engine;
    return status;
}

frit_status frit_engine_new(frit_engine **out, frit_model *model, const frit_engine_options *options)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(model);
    const frit_engine_options chosen = options ? *options : (frit_engine_options){0};
    return frit_engine_new_for(out, model, &chosen, NULL);
}

void frit_engine_free(frit_engine *engine)
{
    if (!engine) return;
    frit_flight_drop_all(engine);
    for (frit_session *s = engine->sessions; s; s = s->next) s->engine = NULL;   // from now on they can only be freed
    frit_plans_free(engine);
    frit_pictures_free(engine->pictures);
    frit_soft_runs_free(engine);
    frit_engine_adapters_deinit(&engine->adapters);
    frit_kv_deinit(&engine->kv);
    free(engine->adapter_numbers.items);
    for (int i = 0; i < FRIT_MAX_FLIGHTS; i++) {
        frit_step_free_tables(&engine->flights.ring[i].step.tables);
        frit_pick_lists_free(&engine->flights.ring[i].step.lists);
        frit_late_free(&engine->flights.ring[i].late);
        free(engine->flights.ring[i].hidden);
    }
    frit_pick_runner_free(engine->pick_runner);
    frit_observer_free(engine->observer);
    frit_device_map_deinit(&engine->device_map);
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
        .backend = engine->device_name,
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
    frit_flight_wait_all(engine);
    for (int i = 0; i < engine->n_devices; i++) {
        const frit_backend *backend = engine->devices[i]->backend;
        if (!backend->profile)
            return frit_fail(FRIT_E_UNSUPPORTED, "backend %s does not measure the time of phases", backend->name);
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
