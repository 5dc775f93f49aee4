// SPDX-License-Identifier: MIT
// The graphs of groups of devices: each segment that a group runs is divided among its ranks.
#include "engine/engine.h"

#include "graph/shard.h"

// Numbers of a matrix from which a cut gains more than it costs to gather the result: ranks that share the host's
// memory exchange values faster than GPUs do.
enum { LEAST_ON_HOST = 1 << 14, LEAST_ON_DEVICE = 1 << 20 };

frit_status frit_engine_prepare_groups(frit_engine *engine)
{
    frit_device_info info;
    const int32_t n_layers = frit_arch_n_cache_layers(&engine->hp);
    engine->devices[0]->backend->info(engine->devices[0], &info);
    if (info.n_ranks == 0) return FRIT_OK;
    engine->cache_parts = frit_arena_new(&engine->arena, int8_t, (size_t)n_layers + 1);
    return engine->cache_parts ? FRIT_OK : frit_fail_memory((size_t)n_layers, "the layers' heads");
}

frit_status frit_engine_shard(const frit_engine *engine, frit_device *device, frit_graph *graph)
{
    frit_device_info info;
    if (!engine->cache_parts) return FRIT_OK;
    device->backend->info(device, &info);
    if (info.n_ranks == 0) return FRIT_OK;
    const frit_shard_options options = {.n_ranks = info.n_ranks,
                                        .is_exact = info.is_exact,
                                        .least_elems = info.free_bytes > 0 ? LEAST_ON_DEVICE : LEAST_ON_HOST,
                                        .cache_parts = engine->cache_parts};
    return frit_shard_graph(graph, &options);
}
