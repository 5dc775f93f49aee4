// SPDX-License-Identifier: MIT
// Plans by shape class. Classes are 1 row, up to 8, up to 32, up to n_batch rows of short sequences, the same of many
// sequences, and up to n_batch rows with prefill rows. Each class exists for logits, hidden states and sources.
//
// A class is planned once for its largest shape: a step of 5 rows runs the plan for 8. Small steps have plans of their
// own because smaller buffers stay in the processor's caches.
#include "engine/engine.h"
#include "engine/observe.h"

#include <assert.h>
#include <stdlib.h>

static const int32_t class_rows[FRIT_N_CLASSES] = {1, 8, 32, INT32_MAX, INT32_MAX, INT32_MAX};
enum { PREFILL_CLASS = FRIT_N_CLASSES - 1, JOINED_CLASS = FRIT_N_CLASSES - 2 };

static int32_t rows_of(const frit_engine *engine, int i)
{
    return class_rows[i] < engine->n_batch ? class_rows[i] : engine->n_batch;
}

static frit_status build_graph(const frit_engine *engine, int i, frit_plan_key key, frit_shape_class *c)
{
    const bool logits = key.kind == FRIT_PLAN_LOGITS || key.kind == FRIT_PLAN_NEXT;
    const bool all_rows = !logits || engine->model->arch->is_encoder;   // an encoder's results are rows
    int32_t n_rows = rows_of(engine, i);
    int32_t n_outs = all_rows || n_rows < engine->schedule.max_outs ? n_rows : engine->schedule.max_outs;
    frit_graph_init(&c->graph, &c->arena, n_rows, n_outs);
    const frit_model *model = engine->model;
    const frit_adapters adapters = {
        .ckpt = model->ckpt, .n_h = frit_adapter_class_ranks(key.adapted.ranks), .steers = key.adapted.steers};
    const frit_observed_layers layers = engine->observer ? engine->observer->layers : (frit_observed_layers){0};
    const frit_build_options options = {.hidden = key.kind == FRIT_PLAN_HIDDEN,
                                        .keeps_hidden = key.kind == FRIT_PLAN_NEXT,
                                        .encode = key.kind == FRIT_PLAN_ENCODE,
                                        .media = key.media,
                                        .is_residual = layers.is_residual,
                                        .first_layer = layers.first,
                                        .adapters = &adapters};
    frit_hparams hp = engine->hp;
    if (layers.end > 0) hp.n_layer = layers.end;
    FRIT_TRY(frit_arch_build(&c->graph, model->arch, &hp, &model->weights, &options));
    if (!engine->no_fuse) frit_fuse(&c->graph);
    return frit_graph_check(&c->graph);
}

// Returns the matrix that would read hidden states; NULL: none.
static const frit_tensor *hidden_head(const frit_engine *engine, frit_plan_kind kind)
{
    const frit_weights *weights = &engine->model->weights;
    if (kind != FRIT_PLAN_HIDDEN || !frit_arch_has_logits(engine->model->arch, weights)) return NULL;
    return frit_has(&weights->lm_head) ? weights->lm_head.w : weights->tok_embd.w;
}

static frit_status make_plans(const frit_engine *engine, int i, frit_plan_key key, frit_shape_class *c)
{
    FRIT_TRY(build_graph(engine, i, key, c));
    FRIT_TRY(frit_segments_make(&c->segments, &c->graph,
                                key.streams ? &engine->weight_stream.placement : &engine->placement));
    c->planned = frit_arena_new(&c->arena, frit_planned_segment, (size_t)c->segments.n);
    if (!c->planned) return frit_fail_memory((size_t)c->segments.n * sizeof *c->planned, "plans");
    if (key.streams) frit_weight_stream_resolve(engine, c);
    for (int k = 0; k < c->segments.n; k++) {
        frit_device *device = c->planned[k].device = engine->devices[c->segments.list[k].device];
        const frit_plan_options options = {.no_fuse = engine->no_fuse,
                                           .is_fused = true,
                                           .decode_kernels = i < PREFILL_CLASS,
                                           .joins_sequences = i == JOINED_CLASS,
                                           .streams = c->planned[k].streams,
                                           .early_prologues = device->backend->early_prologues,
                                           .can_join = device->backend->can_join,
                                           .device = device};
        if (engine->observer)
            FRIT_TRY(frit_observe_keep(engine, &c->planned[k], &c->segments.list[k].graph,
                                       k == c->segments.output ? hidden_head(engine, key.kind) : NULL));
        FRIT_TRY(frit_engine_shard(engine, device, &c->segments.list[k].graph));
        FRIT_TRY(frit_plan_new(&c->planned[k].plan, &c->segments.list[k].graph, &options));
    }
    return FRIT_OK;
}

static void free_class(frit_shape_class *c)
{
    for (int k = 0; c->planned && k < c->segments.n; k++)
        if (c->planned[k].exec) c->planned[k].device->backend->exec_free(c->planned[k].device, c->planned[k].exec);
    frit_arena_free(&c->arena);
    *c = (frit_shape_class){0};
}

static frit_status make_class(const frit_engine *engine, int i, frit_plan_key key, frit_shape_class *c)
{
    frit_status status = make_plans(engine, i, key, c);
    for (int k = 0; status == FRIT_OK && k < c->segments.n; k++) {
        frit_planned_segment *planned = &c->planned[k];
        const frit_cache *cache = &engine->kv.storages[c->segments.list[k].device].cache;
        status = planned->device->backend->prepare(planned->device, planned->plan, cache, &planned->exec);
    }
    if (status != FRIT_OK) free_class(c);
    return status;
}

static int class_of(const frit_engine *engine, frit_plan_key key)
{
    int i = key.prefill ? PREFILL_CLASS : key.joins ? JOINED_CLASS : 0;
    while (rows_of(engine, i) < key.n_rows) i++;
    return i;
}

static frit_shape_class *cached_class(frit_engine *engine, frit_plan_key key)
{
    return &engine->plans.classes[key.media][key.adapted.steers][key.adapted.ranks][key.kind][class_of(engine, key)];
}

static bool streams_weights(const frit_engine *engine, frit_plan_key key)
{
    return key.prefill && frit_engine_streams_weights(engine, &key.adapted);
}

frit_status frit_plans_get(frit_engine *engine, frit_plan_key key, frit_shape_class **out)
{
    frit_shape_class *c = cached_class(engine, key);
    if (!c->planned) {
        FRIT_TRY(frit_model_check_files(engine->model));   // the plan may load weights
        key.streams = streams_weights(engine, key);
        FRIT_TRY(make_class(engine, class_of(engine, key), key, c));
        engine->plans.n_made++;
    }
    *out = c;
    return FRIT_OK;
}

static uint64_t scratch_bytes_of(const frit_shape_class *c)
{
    uint64_t n_bytes = 0;
    for (int k = 0; c->planned && k < c->segments.n; k++)
        n_bytes += c->planned[k].plan->scratch_bytes + c->planned[k].plan->input_bytes;
    return n_bytes;
}

// A device without exec_bytes needs the scratch of each executable.
frit_status frit_plans_exec_bytes(frit_device *device, frit_plan *plan, frit_exec_bytes *out)
{
    *out = (frit_exec_bytes){.own = plan->scratch_bytes + plan->input_bytes};
    return device->backend->exec_bytes ? device->backend->exec_bytes(device, plan, out) : FRIT_OK;
}

// True if steps use the class: not if the class before is as large, or if no device has kernels for it.
static bool is_used(const frit_engine *engine, int i)
{
    if (i == PREFILL_CLASS) return engine->rows.least[FRIT_ROWS_PREFILL] < INT32_MAX;
    if (i == JOINED_CLASS) return engine->rows.joins_above < engine->n_batch;
    return i == 0 || rows_of(engine, i) > rows_of(engine, i - 1);
}

int frit_plans_list(const frit_engine *engine, frit_plan_kind kind, frit_plan_key keys[FRIT_N_CLASSES])
{
    int n = 0;
    for (int i = 0; i < FRIT_N_CLASSES; i++)
        if (is_used(engine, i))
            keys[n++] = (frit_plan_key){
                .n_rows = rows_of(engine, i), .prefill = i == PREFILL_CLASS, .joins = i == JOINED_CLASS, .kind = kind};
    return n;
}

// Has device k compile the plans that it runs.
static frit_status compile_on(const frit_engine *engine, int k, const frit_shape_class *classes, int n,
                              frit_progress progress)
{
    frit_device *device = engine->devices[k];
    size_t n_planned = 0, n_plans = 0;
    if (!device->backend->compile) return FRIT_OK;
    for (int i = 0; i < n; i++) n_planned += classes[i].planned ? (size_t)classes[i].segments.n : 0;
    frit_plan **plans = calloc(n_planned + 1, sizeof *plans);
    if (!plans) return frit_fail_memory(n_planned * sizeof *plans, "plans");
    for (int i = 0; i < n; i++)
        for (int j = 0; classes[i].planned && j < classes[i].segments.n; j++)
            if (classes[i].segments.list[j].device == k) plans[n_plans++] = classes[i].planned[j].plan;
    const frit_status status =
        device->backend->compile(device, plans, n_plans, &engine->kv.storages[k].cache, progress);
    free(plans);
    return status;
}

frit_status frit_plans_compile(frit_engine *engine, const frit_plan_key *keys, int n, frit_progress progress)
{
    bool any = false;
    for (int k = 0; k < engine->n_devices; k++) any = any || engine->devices[k]->backend->compile;
    frit_shape_class *classes = any ? calloc((size_t)n + 1, sizeof *classes) : NULL;
    if (!any) return FRIT_OK;
    if (!classes) return frit_fail_memory((size_t)n * sizeof *classes, "plans");
    frit_status status = FRIT_OK;
    for (int i = 0; i < n && status == FRIT_OK; i++) {
        frit_plan_key key = keys[i];
        key.streams = streams_weights(engine, key);
        if (!cached_class(engine, key)->planned) status = make_plans(engine, class_of(engine, key), key, &classes[i]);
    }
    for (int k = 0; k < engine->n_devices && status == FRIT_OK; k++)
        status = compile_on(engine, k, classes, n, progress);
    for (int i = 0; i < n; i++) free_class(&classes[i]);
    free(classes);
    return status;
}

// Adds the memory of a class's executables, beside weights: their own, and what they share on each device.
static frit_status add_exec_bytes(const frit_shape_class *c, uint64_t *shared, frit_plan_needs *needs)
{
    for (int k = 0; k < c->segments.n; k++) {
        const int device = c->segments.list[k].device;
        frit_exec_bytes bytes;
        FRIT_TRY(frit_plans_exec_bytes(c->planned[k].device, c->planned[k].plan, &bytes));
        if (bytes.shared > shared[device]) shared[device] = bytes.shared;
        needs->scratch_bytes[device] += bytes.own;
    }
    return FRIT_OK;
}

static frit_status measure_class(const frit_engine *engine, int i, frit_plan_key key, uint64_t *shared,
                                 frit_plan_needs *needs)
{
    frit_shape_class c = {0};
    if (!is_used(engine, i)) return FRIT_OK;
    frit_status status = make_plans(engine, i, key, &c);
    if (status == FRIT_OK) status = add_exec_bytes(&c, shared, needs);
    free_class(&c);
    return status;
}

// Measures all classes of a kind. All of them may exist at once. The plan of the last class, without streamed weights,
// lists the weights that all classes read.
static frit_status measure_kind(const frit_engine *engine, frit_plan_kind kind, frit_shape_class *last,
                                frit_plan_needs *needs)
{
    uint64_t shared[FRIT_MAX_DEVICES] = {0};
    const frit_adapter_class none = {0};
    const bool streams = frit_engine_streams_weights(engine, &none);
    for (int i = 0; i < PREFILL_CLASS; i++)
        FRIT_TRY(measure_class(engine, i, (frit_plan_key){.kind = kind}, shared, needs));
    if (streams)
        FRIT_TRY(measure_class(engine, PREFILL_CLASS, (frit_plan_key){.kind = kind, .streams = true}, shared, needs));
    FRIT_TRY(make_plans(engine, PREFILL_CLASS, (frit_plan_key){.kind = kind}, last));
    if (!streams && is_used(engine, PREFILL_CLASS)) FRIT_TRY(add_exec_bytes(last, shared, needs));
    for (int k = 0; k < last->segments.n; k++)
        FRIT_TRY(frit_weight_uses_add(&needs->weights[last->segments.list[k].device], last->planned[k].plan));
    for (int i = 0; i < engine->n_devices; i++) needs->scratch_bytes[i] += shared[i];
    return FRIT_OK;
}

// Plans for hidden states read the same weights as plans for logits.
frit_status frit_plans_measure(const frit_engine *engine, frit_plan_needs *needs)
{
    *needs = (frit_plan_needs){0};
    FRIT_TRY(measure_kind(engine, FRIT_PLAN_LOGITS, &needs->logits, needs));
    if (!engine->model->arch->is_encoder_decoder) return FRIT_OK;
    return measure_kind(engine, FRIT_PLAN_ENCODE, &needs->source, needs);
}

void frit_plan_needs_free(frit_plan_needs *needs)
{
    for (int i = 0; i < FRIT_MAX_DEVICES; i++) frit_weight_uses_free(&needs->weights[i]);
    free_class(&needs->logits);
    free_class(&needs->source);
    *needs = (frit_plan_needs){0};
}

frit_status frit_plans_each_graph(frit_engine *engine, frit_graph_fn fn, void *ctx)
{
    const frit_plan_kind kinds[] = {FRIT_PLAN_LOGITS, FRIT_PLAN_ENCODE};
    for (int i = 0; i < (engine->model->arch->is_encoder_decoder ? 2 : 1); i++) {
        frit_shape_class c = {0};
        frit_status status = build_graph(engine, PREFILL_CLASS, (frit_plan_key){.kind = kinds[i]}, &c);
        if (status == FRIT_OK) status = fn(engine, &c.graph, ctx);
        free_class(&c);
        FRIT_TRY(status);
    }
    return FRIT_OK;
}

// Returns class i of all classes.
static frit_shape_class *class_at(const frit_engine *engine, int i)
{
    return (frit_shape_class *)(uintptr_t)&engine->plans.classes[0][0][0][0][0] + i;
}

enum { N_ALL = 2 * 2 * FRIT_N_RANKS * FRIT_PLAN_KINDS * FRIT_N_CLASSES };

uint64_t frit_plans_scratch_bytes(const frit_engine *engine)
{
    uint64_t n_bytes = 0;
    for (int i = 0; i < N_ALL; i++) n_bytes += scratch_bytes_of(class_at(engine, i));
    return n_bytes;
}

void frit_plans_free(frit_engine *engine)
{
    for (int i = 0; i < N_ALL; i++) free_class(class_at(engine, i));
    engine->plans.n_made++;
}

// Marks the adapter tensors that nodes of this device read.
static void mark_adapted(const frit_graph *graph, int32_t n_matrices, unsigned device, uint16_t *devices)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const frit_node *node = graph->nodes[i];
        const bool is_adapt = node->op == FRIT_OP_ADAPT_DOWN || node->op == FRIT_OP_ADAPT_UP;
        for (int k = 0; k < 2; k++)
            if (node->adapts >> k & 1 || (is_adapt && k == 0))
                devices[node->adapted[k].matrix] |= (uint16_t)(1u << device);
        if (node->op == FRIT_OP_STEER) devices[n_matrices + node->layer] |= (uint16_t)(1u << device);
    }
}

static_assert(FRIT_MAX_DEVICES <= 16, "a number of 16 bits has a bit for each device");

frit_status frit_plans_find_adapted(const frit_engine *engine, uint16_t *devices)
{
    const frit_plan_kind kinds[] = {FRIT_PLAN_LOGITS, FRIT_PLAN_ENCODE};
    const int32_t n_matrices = (int32_t)engine->model->ckpt->n_tensors + 1;
    for (int i = 0; i < (engine->model->arch->is_encoder_decoder ? 2 : 1); i++) {
        frit_shape_class c = {0};
        const frit_plan_key key = {.kind = kinds[i], .adapted = {.ranks = 1, .steers = true}};
        frit_status status = build_graph(engine, PREFILL_CLASS, key, &c);
        if (status == FRIT_OK) status = frit_segments_make(&c.segments, &c.graph, &engine->placement);
        for (int k = 0; k < c.segments.n && status == FRIT_OK; k++)
            mark_adapted(&c.segments.list[k].graph, n_matrices, (unsigned)c.segments.list[k].device, devices);
        frit_arena_free(&c.arena);
        FRIT_TRY(status);
    }
    return FRIT_OK;
}
