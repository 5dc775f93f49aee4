// SPDX-License-Identifier: MIT
// The devices of an engine: opening them, and loading their weights.
#include "engine/engine.h"

#include "backend/group.h"
#include "base/checksum.h"
#include "base/machine/topology.h"
#include "base/number.h"
#include "format/rows.h"

#include <stdio.h>
#include <string.h>

// Hashes sizes and times of the files, wherever they lie.
static uint64_t files_hash(const frit_checkpoint *ckpt)
{
    frit_checksum sum = {0};
    for (size_t i = 0; i < ckpt->n_files; i++) {
        const uint64_t known[] = {frit_file_size(ckpt->files[i]), frit_file_changed(ckpt->files[i])};
        frit_checksum_add(&sum, known, sizeof known);
    }
    return frit_checksum_value(&sum);
}

static bool runs(const void *ctx, int device, const frit_node *node)
{
    const frit_engine *engine = ctx;
    return engine->devices[device]->backend->runs(engine->devices[device], node);
}

static bool is_named(const frit_backend *backend, const char *name)
{
    return frit_device_has_name(backend->name, frit_str_of(name));
}

static frit_status add_device(frit_engine *engine, frit_device *device, const char *name,
                              const frit_device_options *options)
{
    frit_device_info info;
    engine->device_names[engine->n_devices] = name;
    engine->devices[engine->n_devices++] = device;
    device->backend->info(device, &info);
    if (!options->deterministic || info.least_rows[FRIT_ROWS_PREFILL] == 0) return FRIT_OK;
    return frit_fail(
        FRIT_E_UNSUPPORTED,
        "deterministic: device %s computes different numbers with %d rows or more; exclude it with --device", name,
        (int)info.least_rows[FRIT_ROWS_PREFILL]);
}

// Opens device i of the list alone. Members of the CPU have a part of its cores.
static frit_status open_one(frit_device **out, const frit_backend *kind, const frit_device_list *list, int32_t i,
                            const frit_device_options *options)
{
    frit_device_options one = *options;
    one.number = kind->numbered ? list->numbers[i] : i;
    one.n_members = kind->numbered ? 1 : list->n;
    if (!kind->numbered) one.numa = "off";   // the caller's thread is bound to no member
    const frit_status status = kind->open(out, &one);
    if (status == FRIT_OK && !*out)
        return frit_fail(FRIT_E_INVALID, "device: '%s:%d' is not a device that frit can use here", kind->name,
                         (int)one.number);
    if (status != FRIT_E_NOT_FOUND) return status;
    return frit_fail(FRIT_E_INVALID, "device: '%s:%d' is not a device that frit can use here: %s", kind->name,
                     (int)one.number, frit_error());
}

static frit_status open_tensor(frit_engine *engine, const frit_backend *kind, const frit_device_list *list,
                               const frit_device_options *options)
{
    frit_device *device;
    FRIT_TRY(frit_group_open(&device, kind, list, options));
    return add_device(engine, device, device->backend->name, options);
}

static frit_status open_layers(frit_engine *engine, const frit_backend *kind, const frit_device_list *list,
                               const frit_device_options *options)
{
    char name[64];
    if (list->n >= FRIT_MAX_DEVICES)
        return frit_fail(FRIT_E_INVALID, "device: layers are to be divided among %d devices of %s, expected %d at most",
                         (int)list->n, kind->name, (int)FRIT_MAX_DEVICES - 1);
    for (int32_t i = 0; i < list->n; i++) {
        frit_device *device;
        FRIT_TRY(open_one(&device, kind, list, i, options));
        frit_format(name, sizeof name, "%s:%d", kind->name, (int)list->numbers[i]);
        const char *own = frit_arena_text(&engine->arena, name, strlen(name));
        FRIT_TRY(add_device(engine, device, own ? own : kind->name, options));
    }
    engine->n_split = list->n;
    frit_device_list_name(list, name, sizeof name);
    engine->device_name = frit_arena_text(&engine->arena, name, strlen(name));
    return engine->device_name ? FRIT_OK : frit_fail_memory(sizeof name, "the name of devices");
}

// Opens the devices of the list as the options say. Without options they compute each layer together, where they can.
static frit_status open_split(frit_engine *engine, const frit_backend *kind, const frit_device_list *list,
                              const char *split, const frit_device_options *options)
{
    char name[64], why[FRIT_ERROR_BYTES];
    if (split && strcmp(split, "layer") == 0) return open_layers(engine, kind, list, options);
    const frit_status status = open_tensor(engine, kind, list, options);
    const bool is_fixed = (split && strcmp(split, "tensor") == 0) || options->deterministic;
    if (status != FRIT_E_UNSUPPORTED || is_fixed) return status;
    frit_format(why, sizeof why, "%s", frit_error());
    FRIT_TRY(open_layers(engine, kind, list, options));
    frit_device_list_name(list, name, sizeof name);
    frit_log_say(&engine->model->log, FRIT_LOG_WARNING, "%s: each device has some of the layers (split layer): %s",
                 name, why);
    return FRIT_OK;
}

// Opens the devices with these numbers, if it is a name of such. One device is a group only where sums are to be those
// of more devices, or where the backend has no numbers.
static frit_status open_list(frit_engine *engine, const char *name, const char *split,
                             const frit_device_options *options, bool *is_opened)
{
    frit_device_list list;
    *is_opened = false;
    if (!name || !frit_device_list_parse(name, &list)) return FRIT_OK;
    const frit_backend *kind = frit_backend_find(list.backend);
    if (!kind || (!kind->join && !kind->numbered)) return FRIT_OK;
    *is_opened = true;
    if (list.n > 1) return open_split(engine, kind, &list, split, options);
    if (!kind->numbered || (kind->join && options->deterministic)) return open_tensor(engine, kind, &list, options);
    frit_device *device;
    FRIT_TRY(open_one(&device, kind, &list, 0, options));
    return add_device(engine, device, kind->name, options);
}

// Opens the CPU, and the device with this name or all devices.
static frit_status open_all(frit_engine *engine, const char *name, const char *split,
                            const frit_device_options *options)
{
    const frit_backend *backend;
    bool is_opened;
    FRIT_TRY(open_list(engine, name, split, options, &is_opened));
    is_opened = is_opened || !name;
    for (int i = 0; (backend = frit_backend_get(i)) != NULL; i++) {
        const bool is_cpu = !frit_backend_get(i + 1);
        if (name && !is_cpu && !is_named(backend, name)) continue;
        if (!name && backend->by_name) continue;
        frit_device *device;
        frit_status status = backend->open(&device, options);
        if (status == FRIT_E_NOT_FOUND && name && !is_cpu)
            return frit_fail(FRIT_E_INVALID, "device: '%s' is not a device that frit can use here: %s", name,
                             frit_error());
        FRIT_TRY(status);
        if (!device) continue;
        is_opened = is_opened || is_named(backend, name);
        FRIT_TRY(add_device(engine, device, device->backend->name, options));
    }
    if (is_opened) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID, "device: '%s' is not a device that frit can use here; the CPU is 'cpu'", name);
}

// The device of the options. --numa tensor names a group: a member for each memory node, at least two.
static frit_status name_device(const frit_engine_options *options, char text[16], const char **name)
{
    *name = options->device;
    if (!options->numa || strcmp(options->numa, "tensor") != 0) return FRIT_OK;
    if (options->device)
        return frit_fail(FRIT_E_INVALID, "numa: 'tensor' names the device itself, but the device '%s' is asked for",
                         options->device);
    frit_topology topology;
    frit_topology_get(&topology);
    const int n = topology.nodes.n > FRIT_MAX_RANKS ? FRIT_MAX_RANKS : topology.nodes.n > 2 ? topology.nodes.n : 2;
    snprintf(text, 16, "cpu:0-%d", n - 1);
    *name = text;
    return FRIT_OK;
}

frit_status frit_engine_open_devices(frit_engine *engine, const frit_engine_options *options,
                                     const frit_device_target *target)
{
    const frit_model *model = engine->model;
    const char *weights_cache = model->ckpt->n_files > 0 ? options->weights_cache : NULL;
    if (options->weights_cache && !weights_cache)
        frit_log_say(&model->log, FRIT_LOG_WARNING, "%s: is not from a file, so its packed weights are not cached",
                     model->info.path);
    const char *name;
    char group[16];
    FRIT_TRY(name_device(options, group, &name));
    const frit_device_options device = {.n_threads = options->n_threads,
                                        .n_threads_batch = options->n_threads_batch,
                                        .cpu = options->cpu,
                                        .numa = options->numa,
                                        .weights_cache = weights_cache,
                                        .weights_source = files_hash(model->ckpt),
                                        .deterministic = options->deterministic,
                                        .in_place = model->floats_in_place,
                                        .coarse = model->floats_coarse,
                                        .fp8_inputs = model->fp8_inputs,
                                        .stores = model->stores,
                                        .target = target,
                                        .log = &model->log};
    engine->n_split = 1;
    FRIT_TRY(open_all(engine, name, options->split, &device));
    if (!engine->device_name) engine->device_name = engine->device_names[0];
    const int32_t n_layers = frit_arch_n_cache_layers(&engine->hp);
    engine->cache_devices = frit_arena_new(&engine->arena, int8_t, (size_t)n_layers + 1);
    if (!engine->cache_devices) return frit_fail_memory((size_t)n_layers, "the layers' devices");
    FRIT_TRY(frit_engine_prepare_groups(engine));
    engine->placement = (frit_placement){.n_devices = engine->n_devices,
                                         .ctx = engine,
                                         .wanted = frit_placement_wanted,
                                         .runs = runs,
                                         .cache_devices = engine->cache_devices};
    return FRIT_OK;
}

frit_status frit_engine_count_weights(frit_engine *engine, const frit_plan_needs *needs)
{
    memset(engine->weights, 0, sizeof engine->weights);
    engine->reads_files = false;
    for (int i = 0; i < engine->n_devices; i++) {
        frit_device *device = engine->devices[i];
        frit_weight_bytes *bytes = &engine->weights[i];
        if (device->backend->weight_bytes) FRIT_TRY(device->backend->weight_bytes(device, &needs->weights[i], bytes));
        engine->reads_files =
            engine->reads_files || bytes->in_place > 0 || (bytes->stored > 0 && !device->backend->queues);
    }
    return FRIT_OK;
}

static frit_status load_device(frit_device *device, const frit_weight_uses *uses, frit_progress progress)
{
    if (device->backend->load) FRIT_TRY(device->backend->load(device, uses, progress));
    for (size_t i = 0; i < uses->n; i++) FRIT_TRY(frit_tensor_check(uses->list[i].tensor));
    return FRIT_OK;
}

// Errors about tensors get the path of the file.
frit_status frit_engine_load_weights(frit_engine *engine, const frit_plan_needs *needs, frit_progress progress)
{
    const char *path = engine->model->info.path;
    for (int i = 0; i < engine->n_devices; i++) {
        const frit_status status = load_device(engine->devices[i], &needs->weights[i], progress);
        const bool is_model = status == FRIT_E_FORMAT || status == FRIT_E_UNSUPPORTED;
        if (status != FRIT_OK) return is_model ? frit_fail_in(path, status) : status;
    }
    return FRIT_OK;
}

void frit_engine_close_devices(frit_engine *engine)
{
    for (int i = 0; i < engine->n_devices; i++) engine->devices[i]->backend->close(engine->devices[i]);
    engine->n_devices = 0;
}
