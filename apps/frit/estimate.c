// SPDX-License-Identifier: MIT
// frit info --estimate: the memory that a model would need on each device, and the free memory.
#include "frit/cli/cli.h"

#include <jansson.h>
#include <string.h>

typedef struct column {
    const char *title, *name;
    size_t offset;   // offset of the bytes in frit_estimate_device; NEEDED: the sum of all but the free bytes
} column;

enum { NEEDED = 0 };   // offset 0 has the name, not bytes

static const column columns[] = {
    {"weights", "packed_bytes", offsetof(frit_estimate_device, packed_bytes)},
    {"mapped", "mapped_bytes", offsetof(frit_estimate_device, mapped_bytes)},
    {"cache", "kv_bytes", offsetof(frit_estimate_device, kv_bytes)},
    {"scratch", "scratch_bytes", offsetof(frit_estimate_device, scratch_bytes)},
    {"needed", "needed_bytes", NEEDED},
    {"free", "free_bytes", offsetof(frit_estimate_device, free_bytes)},
};

static uint64_t bytes_of(const frit_estimate_device *device, const column *c)
{
    if (c->offset == NEEDED)
        return device->packed_bytes + device->mapped_bytes + device->kv_bytes + device->scratch_bytes;
    uint64_t n_bytes;
    memcpy(&n_bytes, (const char *)device + c->offset, sizeof n_bytes);
    return n_bytes;
}

// The host memory that adapters have taken since they were opened.
static uint64_t bytes_of_adapters(const cli_adapters *adapters)
{
    uint64_t n_bytes = 0;
    frit_adapter_info info;
    for (size_t i = 0; i < adapters->n; i++)
        if (frit_adapter_get_info(adapters->items[i], &info) == FRIT_OK) n_bytes += info.n_bytes;
    return n_bytes;
}

static int print_json(const frit_estimate *estimate, const frit_estimate_info *info, const char *path,
                      uint64_t adapter_bytes)
{
    json_t *memories = json_array();
    frit_estimate_device device;
    for (size_t i = 0; frit_estimate_get_device(estimate, i, &device); i++) {
        json_t *row = json_pack("{s:s, s:i}", "name", device.name, "n_layers", device.n_layers);
        for (size_t k = 0; row && k < CLI_COUNT(columns); k++)
            json_object_set_new(row, columns[k].name, json_integer((json_int_t)bytes_of(&device, &columns[k])));
        json_array_append_new(memories, row);
    }
    json_t *object =
        json_pack("{s:s, s:b, s:i, s:i, s:i, s:s, s:s, s:I, s:I, s:o}", "path", path, "fits", !info->why_not, "n_ctx",
                  info->n_ctx, "n_ctx_train", info->n_ctx_train, "n_sessions", info->n_sessions, "cache_type_k",
                  info->cache_type_k, "cache_type_v", info->cache_type_v, "kv_bytes_per_token",
                  (json_int_t)info->kv_token_bytes, "adapter_bytes", (json_int_t)adapter_bytes, "memories", memories);
    if (object && info->why_not) json_object_set_new(object, "why_not", json_string(info->why_not));
    return cli_print_json(object, JSON_INDENT(2));
}

static void print_table(const frit_estimate *estimate, const frit_estimate_info *info, const char *path,
                        uint64_t adapter_bytes)
{
    char size[32];
    cli_size_text(info->kv_token_bytes, size);
    cli_print("file     %s\ncontext  %d tokens; trained for %d\nsessions %d\n", path, info->n_ctx, info->n_ctx_train,
              info->n_sessions);
    cli_print("cache    keys %s, values %s: %s a token\n", info->cache_type_k, info->cache_type_v, size);
    if (adapter_bytes > 0) {
        cli_size_text(adapter_bytes, size);
        cli_print("adapters %s, which are not free any more; a device with layers needs its part of them too\n", size);
    }
    cli_print("\n%-8s %6s", "memory", "layers");
    for (size_t k = 0; k < CLI_COUNT(columns); k++) cli_print(" %11s", columns[k].title);
    cli_print("\n");
    frit_estimate_device device;
    for (size_t i = 0; frit_estimate_get_device(estimate, i, &device); i++) {
        cli_print("%-8s %6d", device.name, device.n_layers);
        for (size_t k = 0; k < CLI_COUNT(columns); k++) {
            cli_size_text(bytes_of(&device, &columns[k]), size);
            cli_print(" %11s", size);
        }
        cli_print("\n");
    }
    cli_print("\n%s\n", info->why_not ? info->why_not : "It fits.");
}

int cli_print_estimate(frit_model *model, const frit_engine_options *options, const cli_adapters *adapters, bool json)
{
    frit_estimate *estimate;
    frit_estimate_info info;
    frit_model_info about;
    const frit_status status = frit_estimate_new(&estimate, model, options);
    if (status != FRIT_OK) return cli_report(status);
    frit_model_get_info(model, &about);
    frit_estimate_get_info(estimate, &info);
    int code = CLI_DONE;
    if (json)
        code = print_json(estimate, &info, about.path, bytes_of_adapters(adapters));
    else
        print_table(estimate, &info, about.path, bytes_of_adapters(adapters));
    if (code == CLI_DONE && info.why_not) code = CLI_NO_MEMORY;
    frit_estimate_free(estimate);
    return code;
}
