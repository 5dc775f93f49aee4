// SPDX-License-Identifier: MIT
// Assigns layers to devices: by the requested number, by what fits, and by exceptions for tensors.
#include "engine/engine.h"

#include "base/check.h"
#include "text/tokenizer/regex.h"

#include <stdlib.h>
#include <string.h>

enum { ALL = INT32_MAX, AUTO = -1 };

typedef struct placing {
    const frit_placement_options *options;
    int32_t n_wanted;      // layers on other devices than the CPU at most; AUTO: as many as fit
    uint64_t *bytes;       // [device_map.n]: weights and cache of each layer
    uint64_t scratch;      // of a step
    uint64_t crossing;     // bytes of the rows that move to another device
    bool *is_cache_seen;   // [layers of the cache]
} placing;

// ------------------------------------------------------------------------------- what was asked for

static frit_status parse_count(const char *text, int32_t *n)
{
    *n = AUTO;
    if (!text || strcmp(text, "auto") == 0) return FRIT_OK;
    *n = ALL;
    if (strcmp(text, "all") == 0) return FRIT_OK;
    int64_t number = 0;
    size_t i = 0;
    for (; text[i] >= '0' && text[i] <= '9' && number < ALL; i++) number = 10 * number + (text[i] - '0');
    if (i == 0 || text[i])
        return frit_fail(FRIT_E_INVALID, "gpu-layers: '%s' is not a number of layers, expected 0 or more, all or auto",
                         text);
    *n = number < ALL ? (int32_t)number : ALL;
    return FRIT_OK;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

bool frit_device_has_name(const char *device, frit_str name)
{
    size_t i = 0;
    while (i < name.len && lower(name.ptr[i]) == device[i]) i++;
    return i == name.len && !device[i];
}

int frit_engine_find_device(const frit_engine *engine, frit_str name)
{
    for (int i = 0; i < engine->n_devices; i++)
        if (frit_device_has_name(engine->device_names[i], name)) return i;
    return -1;
}

static frit_status fail_device(const frit_engine *engine, frit_str rule, frit_str name)
{
    frit_buf names = {0};
    for (int i = 0; i < engine->n_devices; i++)
        frit_buf_printf(&names, "%s%s", i > 0 ? ", " : "", engine->device_names[i]);
    const frit_status status =
        frit_fail(FRIT_E_INVALID, "override-tensor: '%.*s': this engine has no device '%.*s', it has %s", (int)rule.len,
                  rule.ptr, (int)name.len, name.ptr, names.data ? names.data : "none");
    frit_buf_free(&names);
    return status;
}

// Places the tensors whose names match on the device, unless an earlier rule has placed them.
static frit_status place_matches(frit_engine *engine, frit_matcher *matcher, const frit_regex *regex, int device,
                                 size_t *n)
{
    const frit_checkpoint *ckpt = engine->model->ckpt;
    *n = 0;
    for (size_t i = 0; i < ckpt->n_tensors; i++) {
        const frit_str name = frit_str_of(ckpt->tensors[i].name);
        size_t start, end;
        int64_t placed;
        bool found;
        frit_matcher_allow(matcher, name.len);
        FRIT_TRY(frit_matcher_next(matcher, regex, name, 0, &start, &end, &found));
        *n += found;
        if (!found || frit_map_get(&engine->device_map.tensors, name, &placed)) continue;
        if (!frit_map_put(&engine->device_map.tensors, name, device))
            return frit_fail_memory(sizeof(int64_t), "the devices of tensors");
    }
    return FRIT_OK;
}

static frit_status place_rule(frit_engine *engine, frit_matcher *matcher, frit_str rule)
{
    size_t at = rule.len;
    while (at > 0 && rule.ptr[at - 1] != '=') at--;
    if (at < 2)
        return frit_fail(FRIT_E_INVALID, "override-tensor: '%.*s' is not a rule, expected PATTERN=DEVICE",
                         (int)rule.len, rule.ptr);
    const frit_str name = {rule.ptr + at, rule.len - at};
    const int device = frit_engine_find_device(engine, name);
    if (device < 0) return fail_device(engine, rule, name);
    frit_regex *regex;
    size_t n = 0;
    FRIT_TRY(frit_regex_new(&regex, (frit_str){rule.ptr, at - 1}, FRIT_DIALECT_PLAIN));
    const frit_status status = place_matches(engine, matcher, regex, device, &n);
    frit_regex_free(regex);
    if (status == FRIT_OK && n == 0)
        frit_log_say(&engine->model->log, FRIT_LOG_WARNING, "override-tensor: '%.*s' matches no tensor of %s",
                     (int)rule.len, rule.ptr, engine->model->info.path);
    return status;
}

static frit_status place_tensors(frit_engine *engine, const char *rules)
{
    frit_matcher matcher;
    if (!rules || !*rules) return FRIT_OK;
    FRIT_TRY(frit_matcher_init(&matcher));
    frit_status status = FRIT_OK;
    for (const char *at = rules; status == FRIT_OK && at;) {
        const char *end = strchr(at, ',');
        status = place_rule(engine, &matcher, (frit_str){at, end ? (size_t)(end - at) : strlen(at)});
        at = end ? end + 1 : NULL;
    }
    frit_matcher_deinit(&matcher);
    return status;
}

// ------------------------------------------------------------------------------- what layers need

static void add_bytes(uint64_t *sum, uint64_t n_bytes)
{
    if (!frit_add_u64(*sum, n_bytes, sum)) *sum = UINT64_MAX;
}

static void add_cache(const placing *p, const frit_node *node)
{
    const frit_placement_options *o = p->options;
    const int32_t layer = frit_node_cache_layer(node);
    if (layer < 0 || p->is_cache_seen[layer]) return;
    p->is_cache_seen[layer] = true;
    const frit_kv_shape shape = {
        .specs = &o->shape.specs[layer], .n_layers = 1, .types = o->shape.types, .full_windows = o->shape.full_windows};
    frit_kv_sizes sizes;
    frit_kv_measure(&shape, &sizes);
    add_bytes(&p->bytes[node->depth + 1], frit_kv_bytes(&sizes, &o->room));
}

// True if a tensor that the node reads is placed by an option.
static bool is_placed(const frit_engine *engine, const frit_node *node, int *device)
{
    int64_t placed;
    for (int i = 0; i < node->n_src && engine->device_map.tensors.n > 0; i++) {
        const frit_node *read = frit_node_storage(node->src[i]);
        if (read->op != FRIT_OP_WEIGHT ||
            !frit_map_get(&engine->device_map.tensors, frit_str_of(read->tensor->name), &placed))
            continue;
        *device = (int)placed;
        return true;
    }
    return false;
}

// Adds the weights of a depth as the first device would store them. `some` is scratch with room for all uses.
static frit_status add_weights(const frit_engine *engine, const placing *p, const frit_weight_uses *uses, int depth,
                               frit_weight_uses *some)
{
    frit_device *device = engine->devices[0];
    const frit_backend *backend = device->backend;
    frit_weight_bytes bytes = {0};
    bool crosses = false;
    some->n = 0;
    for (size_t i = 0; i < uses->n; i++) {
        const frit_node *node = uses->list[i].node;
        int placed = 0;
        if (node->depth != depth || !backend->runs(device, node)) continue;
        if (is_placed(engine, node, &placed) && placed > 0)
            crosses = true;
        else
            some->list[some->n++] = uses->list[i];
    }
    if (backend->weight_bytes) FRIT_TRY(backend->weight_bytes(device, some, &bytes));
    for (size_t i = 0; i < some->n && !backend->weight_bytes; i++)
        add_bytes(&bytes.missing, some->list[i].tensor->n_bytes);
    add_bytes(&p->bytes[depth + 1], bytes.missing);
    add_bytes(&p->bytes[depth + 1], bytes.in_place);
    // For rows that leave the layer and results that return.
    if (crosses) add_bytes(&p->bytes[depth + 1], 2 * p->crossing);
    return FRIT_OK;
}

static frit_status add_all_weights(const frit_engine *engine, const placing *p, const frit_plan *plan)
{
    frit_weight_uses uses = {0}, some = {0};
    frit_status status = frit_weight_uses_add(&uses, plan);
    if (status == FRIT_OK && !(some.list = calloc(uses.n + 1, sizeof *some.list)))
        status = frit_fail_memory(uses.n * sizeof *some.list, "the devices of layers");
    for (int i = 0; status == FRIT_OK && i < engine->device_map.n; i++)
        status = add_weights(engine, p, &uses, i - 1, &some);
    frit_weight_uses_free(&uses);
    frit_weight_uses_free(&some);
    return status;
}

// Measures the graph as if the first device ran all of it.
static frit_status measure_graph(frit_engine *engine, frit_graph *graph, void *ctx)
{
    placing *p = ctx;
    frit_device *device = engine->devices[0];
    frit_plan *plan;
    frit_exec_bytes bytes;
    p->crossing = (uint64_t)graph->max_rows * (uint64_t)engine->hp.n_embd * sizeof(float);
    for (int i = 0; i < graph->n_nodes; i++) add_cache(p, graph->nodes[i]);
    FRIT_TRY(frit_engine_shard(engine, device, graph));
    FRIT_TRY(frit_plan_new(&plan, graph,
                           &(frit_plan_options){.is_fused = true,
                                                .early_prologues = device->backend->early_prologues,
                                                .can_join = device->backend->can_join,
                                                .device = device}));
    FRIT_TRY(add_all_weights(engine, p, plan));
    FRIT_TRY(frit_plans_exec_bytes(device, plan, &bytes));
    // Executables of smaller classes take less. The residual of the layers before and the sum need scratch too.
    uint64_t scratch = 2 * p->crossing;
    add_bytes(&scratch, bytes.shared);
    for (int i = 0; i < FRIT_N_CLASSES; i++) add_bytes(&scratch, bytes.own);
    if (scratch > p->scratch) p->scratch = scratch;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- giving them out

// Returns the memory of a device for layers; UINT64_MAX: it has no memory of its own.
static uint64_t room_of(const frit_device *device, uint64_t scratch)
{
    frit_device_info info;
    device->backend->info(device, &info);
    if (info.free_bytes == 0) return UINT64_MAX;
    return info.free_bytes > scratch ? info.free_bytes - scratch : 0;
}

// Bytes that count for the balance of devices: a row of the embedding is read for each token, and no more.
static double weight_of(const placing *p, int32_t i)
{
    return i == 0 ? 0 : (double)p->bytes[i];
}

// The first of the layers, counted from the end, that have room on the devices together. Each device may leave as much
// room as a layer needs.
static int32_t first_that_fits(const frit_engine *engine, const placing *p, const uint64_t *rooms)
{
    uint64_t room = 0, most = 0;
    int32_t first = engine->device_map.n;
    for (int32_t i = 1; i + 1 < engine->device_map.n; i++)
        if (p->bytes[i] > most) most = p->bytes[i];
    for (int d = 0; d < engine->n_split; d++) {
        if (rooms[d] == UINT64_MAX) return 0;
        add_bytes(&room, rooms[d] > most && d > 0 ? rooms[d] - most : rooms[d]);
    }
    while (first > 0 && p->bytes[first - 1] <= room) room -= p->bytes[--first];
    return first;
}

// Divides the layers among the first n_split devices, in order and in proportion to their memory. The CPU runs the
// layers before `first`.
static void divide_layers(frit_engine *engine, const placing *p)
{
    const int32_t n = engine->device_map.n, last = engine->n_split - 1;
    uint64_t rooms[FRIT_MAX_DEVICES];
    double all_room = 0, all = 0, done = 0;
    for (int d = 0; d <= last; d++) {
        rooms[d] = room_of(engine->devices[d], p->scratch);
        all_room += (double)rooms[d];
    }
    int32_t first = p->n_wanted == AUTO ? first_that_fits(engine, p, rooms) : p->n_wanted < n ? n - p->n_wanted : 0;
    for (int32_t i = first; i < n; i++) all += weight_of(p, i);
    double end = all * (double)rooms[0] / all_room;   // where the device's part ends
    uint64_t left = rooms[0];
    for (int32_t i = 0, d = 0; i < n; i++) {
        while (i >= first && d < last && (done + weight_of(p, i) / 2 > end || p->bytes[i] > left)) {
            d++;
            end += all * (double)rooms[d] / all_room;
            left = rooms[d];
        }
        engine->device_map.layers[i] = (int8_t)(i < first ? engine->n_devices - 1 : d);
        if (i < first) continue;
        done += weight_of(p, i);
        left -= p->bytes[i] < left ? p->bytes[i] : left;
    }
}

// Assigns the layers. A requested number is kept even if it does not fit: the last device then gets the rest.
static void assign_layers(frit_engine *engine, const placing *p)
{
    const int cpu = engine->n_devices - 1;
    const int last = p->n_wanted == AUTO ? cpu : cpu - 1;
    int32_t left = p->n_wanted == AUTO ? ALL : p->n_wanted;
    uint64_t room = room_of(engine->devices[0], p->scratch), all = 0, most = 0;
    for (int32_t i = 0; i < engine->device_map.n; i++) {
        add_bytes(&all, p->bytes[i]);
        if (i > 0 && i + 1 < engine->device_map.n && p->bytes[i] > most) most = p->bytes[i];
    }
    // The remaining layers stream their weights for prompts, two layers at a time.
    if (all > room && engine->devices[0]->backend->streams) room -= 2 * most < room ? 2 * most : room;
    for (int32_t i = engine->device_map.n - 1, device = 0; i >= 0; i--) {
        while (device < last && left > 0 && p->bytes[i] > room) {
            device++;
            room = device < cpu ? room_of(engine->devices[device], p->scratch) : UINT64_MAX;
        }
        engine->device_map.layers[i] = (int8_t)(left > 0 ? device : cpu);
        left -= left > 0 && left < ALL;
        room -= p->bytes[i] < room ? p->bytes[i] : room;
    }
}

static frit_status assign_by_size(frit_engine *engine, placing *p)
{
    const size_t n = (size_t)engine->device_map.n, n_caches = (size_t)p->options->shape.n_layers;
    frit_arena arena = {0};
    p->bytes = frit_arena_new(&arena, uint64_t, n);
    p->is_cache_seen = frit_arena_new(&arena, bool, n_caches + 1);
    frit_status status = frit_arena_failed(&arena) ? frit_fail_memory(n * sizeof *p->bytes, "the devices of layers")
                                                   : frit_plans_each_graph(engine, measure_graph, p);
    if (status == FRIT_OK && engine->n_split > 1) divide_layers(engine, p);
    if (status == FRIT_OK && engine->n_split == 1) assign_layers(engine, p);
    frit_arena_free(&arena);
    return status;
}

static void log_placement(const frit_engine *engine, const char *asked, int32_t n_wanted)
{
    const frit_log *log = &engine->model->log;
    int32_t n = 0;
    for (int32_t i = 0; i < engine->device_map.n; i++) n += engine->device_map.layers[i] < engine->n_devices - 1;
    if (engine->n_devices > 1)
        frit_log_say(log, FRIT_LOG_INFO,
                     "%d of %d layers, embedding and output counted, run on %s; the rest on the CPU", (int)n,
                     (int)engine->device_map.n, engine->device_name);
    else if (n_wanted > 0)
        frit_log_say(log, FRIT_LOG_WARNING,
                     "gpu-layers %s: there is no GPU that frit can use, so all layers run on the CPU", asked);
}

static frit_status place_cache(frit_engine *engine, frit_graph *graph, void *ctx)
{
    (void)ctx;
    return frit_segments_place_cache(&engine->placement, graph, engine->cache_devices,
                                     frit_arch_n_cache_layers(&engine->hp));
}

frit_status frit_place_layers(frit_engine *engine, const frit_placement_options *options)
{
    const int32_t n_caches = options->shape.n_layers;
    placing p = {.options = options};
    engine->device_map.n = engine->hp.n_layer + 2;
    engine->device_map.layers = frit_arena_new(&engine->arena, int8_t, (size_t)engine->device_map.n);
    if (!engine->device_map.layers) return frit_fail_memory((size_t)engine->device_map.n, "the devices of layers");
    FRIT_TRY(parse_count(options->gpu_layers, &p.n_wanted));
    FRIT_TRY(place_tensors(engine, options->override_tensor));
    if (engine->n_devices > 1) FRIT_TRY(assign_by_size(engine, &p));
    log_placement(engine, options->gpu_layers, p.n_wanted);
    memset(engine->cache_devices, engine->n_devices > 1 ? -1 : 0, (size_t)n_caches);
    if (engine->n_devices > 1) FRIT_TRY(frit_plans_each_graph(engine, place_cache, NULL));
    for (int32_t i = 0; i < n_caches; i++)
        if (engine->cache_devices[i] < 0) engine->cache_devices[i] = (int8_t)(engine->n_devices - 1);
    return FRIT_OK;
}

void frit_device_map_deinit(frit_device_map *map)
{
    frit_map_free(&map->tensors);
    *map = (frit_device_map){0};
}

int frit_placement_wanted(const void *ctx, const frit_node *node)
{
    const frit_engine *engine = ctx;
    int device;
    return is_placed(engine, node, &device) ? device : engine->device_map.layers[node->depth + 1];
}
