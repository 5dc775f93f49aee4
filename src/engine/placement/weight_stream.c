// SPDX-License-Identifier: MIT
// Decides which prompts stream weights, and assigns the segments of their plans.
#include "engine/placement/weight_stream.h"
#include "engine/engine.h"

// Numbers of devices in the placement of the weight stream, beside the engine's own devices.
static int streamed(const frit_engine *engine)
{
    return engine->n_devices - 1;
}

static int cpu(const frit_engine *engine)
{
    return engine->n_devices;
}

static int wanted(const void *ctx, const frit_node *node)
{
    const frit_engine *engine = ctx;
    const int device = frit_placement_wanted(ctx, node);
    if (device < streamed(engine)) return device;
    // Embedding and output compute few rows, so they stay on the CPU.
    return node->depth >= 0 && node->depth < engine->hp.n_layer ? streamed(engine) : cpu(engine);
}

static bool runs(const void *ctx, int device, const frit_node *node)
{
    const frit_engine *engine = ctx;
    const int real = device == streamed(engine) ? 0 : device == cpu(engine) ? device - 1 : device;
    return engine->placement.runs(ctx, real, node);
}

void frit_weight_stream_resolve(const frit_engine *engine, frit_shape_class *c)
{
    for (int i = 0; i < c->segments.n; i++) {
        frit_segment *segment = &c->segments.list[i];
        c->planned[i].streams = segment->device == streamed(engine);
        if (segment->device == streamed(engine))
            segment->device = 0;
        else if (segment->device == cpu(engine))
            segment->device--;
    }
}

// Returns from how many rows on streaming gains: about where the CPU takes as long as the copy of the weights. Each row
// uses few of the experts.
static int32_t least_rows(const frit_hparams *hp)
{
    enum { DENSE = 32 };
    const int32_t used = hp->n_expert_used > 0 ? hp->n_expert_used : 1;
    return hp->n_expert > used ? DENSE * (hp->n_expert / used) : DENSE;
}

static bool any_layer_on_cpu(const frit_engine *engine)
{
    for (int32_t i = 0; i < engine->hp.n_layer; i++)
        if (engine->device_map.layers[i + 1] == engine->n_devices - 1) return true;
    return engine->device_map.tensors.n > 0;   // tensors that options place may be on the CPU
}

frit_status frit_weight_stream_decide(frit_engine *engine, bool is_deterministic)
{
    frit_weight_stream *s = &engine->weight_stream;
    const int32_t rows = least_rows(&engine->hp), n_caches = frit_arch_n_cache_layers(&engine->hp);
    if (engine->n_devices < 2 || engine->n_devices == FRIT_MAX_DEVICES || is_deterministic ||
        !engine->devices[0]->backend->streams || engine->n_batch < 2 * rows || !any_layer_on_cpu(engine))
        return FRIT_OK;
    int8_t *devices = frit_arena_new(&engine->arena, int8_t, (size_t)n_caches + 1);
    if (!devices) return frit_fail_memory((size_t)n_caches, "the layers' devices");
    for (int32_t i = 0; i < n_caches; i++) {
        const int8_t own = engine->cache_devices[i];
        devices[i] = own == streamed(engine) ? (int8_t)cpu(engine) : own;
    }
    s->placement = (frit_placement){
        .n_devices = engine->n_devices + 1, .ctx = engine, .wanted = wanted, .runs = runs, .cache_devices = devices};
    s->is_on = true;
    engine->rows.mixes_classes = false;   // prefill rows of layers on the CPU run on another device
    int32_t *least = &engine->rows.least[FRIT_ROWS_PREFILL];
    if (*least == INT32_MAX || *least < rows) *least = rows;
    return FRIT_OK;
}

bool frit_engine_streams_weights(const frit_engine *engine, const frit_adapter_class *adapted)
{
    return engine->weight_stream.is_on && !engine->observer && adapted->ranks == 0 && !adapted->steers;
}
