// SPDX-License-Identifier: MIT
// Measures the needs of an engine: its cache, the placement of layers, its plans, and its weights as devices store
// them.
#include "engine/placement/needs.h"

#include "base/machine/cpu.h"

#include <string.h>

enum { DEFAULT_SNAPSHOTS = 2 };   // for the last two turns of a chat

static bool is_exact(const frit_engine_options *options)
{
    return options->cpu && strcmp(options->cpu, "reference") == 0;
}

// --cpu reference computes the formulas exactly, so its cache does not round.
static frit_kv_types choose_kv_types(const frit_engine_options *options)
{
    const frit_dtype dtype = is_exact(options) ? FRIT_DTYPE_F32 : FRIT_DTYPE_F16;
    frit_kv_types types = {.k = dtype, .v = dtype};
    if (options->cache_type_k) frit_dtype_from_name(options->cache_type_k, &types.k);
    if (options->cache_type_v) frit_dtype_from_name(options->cache_type_v, &types.v);
    return types;
}

static frit_status shape_cache(frit_engine *engine, const frit_engine_options *options, frit_kv_shape *shape)
{
    const int32_t n_layers = frit_arch_n_cache_layers(&engine->hp);
    frit_cache_spec *specs = frit_arena_new(&engine->arena, frit_cache_spec, (size_t)n_layers);
    if (!specs) return frit_fail_memory((size_t)n_layers * sizeof *specs, "the layers' caches");
    FRIT_TRY(frit_arch_cache_specs(&engine->hp, specs));
    *shape = (frit_kv_shape){.specs = specs,
                             .n_layers = n_layers,
                             .types = choose_kv_types(options),
                             .devices = engine->cache_devices,
                             .full_windows = options->full_windows || engine->hp.is_bidirectional,
                             .parts = engine->cache_parts};
    return frit_kv_check(shape);
}

static frit_kv_room room_of(const frit_engine *engine, const frit_engine_options *options)
{
    const int32_t n_snapshots = options->n_state_copies;
    const int32_t most = engine->n_split > FRIT_MAX_FLIGHTS ? FRIT_MAX_FLIGHTS : engine->n_split;
    return (frit_kv_room){.n_sessions = options->n_sessions > 0 ? options->n_sessions : 1,
                          .n_rows = (most > 2 ? most : 2) * engine->n_batch,
                          .host_bytes = (uint64_t)options->prefix_host_mib << 20,
                          .prefixes = !options->no_prefix_cache && !engine->hp.is_bidirectional &&
                                      !engine->model->arch->is_encoder_decoder && !engine->hp.is_next,
                          .n_snapshots = n_snapshots == 0  ? DEFAULT_SNAPSHOTS
                                         : n_snapshots < 0 ? 0
                                                           : n_snapshots};
}

// Returns the context that layers are placed for.
static int32_t context_to_place(const frit_engine *engine, const frit_engine_options *options)
{
    enum { LONG_ENOUGH = 4096 };
    const int32_t n_train = engine->hp.n_ctx_train;
    if (options->n_ctx > 0) return options->n_ctx;
    return n_train > 0 && n_train < LONG_ENOUGH ? n_train : LONG_ENOUGH;
}

static frit_status place_layers(frit_engine *engine, const frit_engine_options *options, const frit_engine_needs *needs)
{
    frit_placement_options place = {.gpu_layers = options->gpu_layers,
                                    .override_tensor = options->override_tensor,
                                    .shape = needs->shape,
                                    .room = needs->fit.room};
    place.room.n_ctx = context_to_place(engine, options);
    return frit_place_layers(engine, &place);
}

static frit_device_info info_of(const frit_engine *engine, int device)
{
    frit_device_info info;
    engine->devices[device]->backend->info(engine->devices[device], &info);
    return info;
}

static uint64_t own_memory(const frit_engine *engine, int device)
{
    return info_of(engine, device).free_bytes;
}

// Adds host memory for pages that devices evict.
static void add_evicted(const frit_engine_needs *needs, frit_fit_memory *memory)
{
    frit_kv_shape shape = needs->shape;
    frit_kv_sizes sizes;
    for (int t = 0; t < needs->fit.n_types && needs->fit.room.prefixes; t++) {
        shape.types = needs->fit.types[t];
        frit_kv_measure(&shape, &sizes);
        memory->evicted_bytes[t] =
            (uint64_t)frit_kv_n_host_pages(&sizes, &needs->fit.room) * frit_kv_host_page_bytes(&sizes);
    }
}

// Returns the needs of device i. Devices without memory of their own count as host memory.
static frit_fit_memory memory_of(const frit_engine *engine, const frit_engine_needs *needs, int i)
{
    const bool is_host = i == engine->n_devices - 1;
    frit_fit_memory memory = {.device = engine->device_names[i],
                              .n_ranks = is_host ? 0 : info_of(engine, i).n_ranks,
                              .available = is_host ? frit_memory_available() : own_memory(engine, i)};
    frit_kv_shape shape = needs->shape;
    for (int d = 0; d < engine->n_devices; d++) {
        if (d != i && (!is_host || own_memory(engine, d) > 0)) continue;
        for (int t = 0; t < needs->fit.n_types; t++) {
            shape.types = needs->fit.types[t];
            shape.of_rank = own_memory(engine, d) > 0;
            frit_kv_measure_on(&shape, d, &memory.sizes[t]);
        }
        for (int32_t k = 0; k < engine->device_map.n; k++) memory.n_layers += engine->device_map.layers[k] == d;
        memory.weight_bytes += engine->weights[d].missing;
        memory.mapped_bytes += engine->weights[d].in_place;
        memory.scratch_bytes += needs->plans.scratch_bytes[d];
    }
    if (is_host) add_evicted(needs, &memory);
    return memory;
}

// Lists the cache types: those of the options, or f16 and then q8_0, which only the CPU reads fast.
static void list_types(const frit_engine *engine, const frit_engine_options *options, frit_engine_needs *needs)
{
    frit_fit *fit = &needs->fit;
    frit_kv_shape narrow = needs->shape;
    fit->types[fit->n_types++] = needs->shape.types;
    if (options->cache_type_k || options->cache_type_v || is_exact(options) || options->deterministic) return;
    narrow.types = (frit_kv_types){FRIT_DTYPE_Q8_0, FRIT_DTYPE_Q8_0};
    if (engine->n_devices == 1 && frit_kv_can(&narrow)) fit->types[fit->n_types++] = narrow.types;
}

static void describe_fit(const frit_engine *engine, const frit_engine_options *options, frit_engine_needs *needs)
{
    frit_fit *fit = &needs->fit;
    const int host = engine->n_devices - 1;
    fit->path = engine->model->info.path;
    fit->log = &engine->model->log;
    fit->off = options->fit && strcmp(options->fit, "off") == 0;
    fit->n_ctx = options->n_ctx;
    fit->n_ctx_train = engine->hp.n_ctx_train;
    list_types(engine, options, needs);
    for (int i = 0; i < host; i++)
        if (own_memory(engine, i) > 0) fit->memories[fit->n_memories++] = memory_of(engine, needs, i);
    fit->memories[fit->n_memories++] = memory_of(engine, needs, host);
    fit->places_auto = !options->gpu_layers || strcmp(options->gpu_layers, "auto") == 0;
}

frit_status frit_engine_measure(frit_engine *engine, const frit_engine_options *options, frit_engine_needs *needs)
{
    FRIT_TRY(shape_cache(engine, options, &needs->shape));
    needs->fit.room = room_of(engine, options);
    FRIT_TRY(place_layers(engine, options, needs));
    FRIT_TRY(frit_weight_stream_decide(engine, options->deterministic));
    FRIT_TRY(frit_plans_measure(engine, &needs->plans));
    FRIT_TRY(frit_engine_count_weights(engine, &needs->plans));
    describe_fit(engine, options, needs);
    return FRIT_OK;
}

void frit_engine_needs_free(frit_engine_needs *needs)
{
    frit_plan_needs_free(&needs->plans);
}
