// SPDX-License-Identifier: MIT
// frit info: the contents of a model file, and the features of this build on this machine.
#include "frit/cli/cli.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct info_options {
    bool tensors, estimate, json, ops, machine, architectures;
} info_options;

typedef struct info_args {
    cli_common common;
    info_options info;
    frit_model_options model;
    frit_engine_options engine;
    cli_adapter_options adapters;
} info_args;

static const frit_option *info_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "tensors",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(info_options, tensors),
         .help = "list the tensors"},
        {.name = "estimate",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(info_options, estimate),
         .help = "show what the model needs of memory with the engine's options, and what is free"},
        {.name = "json",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(info_options, json),
         .help = "print JSON; a list of more than 256 items is {\"length\": N, \"first\": [...]}"},
        {.name = "ops",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(info_options, ops),
         .help = "list the ops and how this machine runs them (needs no model)"},
        {.name = "architectures",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(info_options, architectures),
         .help = "list the architectures that this build runs (needs no model)"},
        {.name = "machine",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(info_options, machine),
         .help = "measure this machine's memory and arithmetic, and list its devices (needs no model)"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static int print(json_t *value)
{
    return cli_print_json(value, JSON_INDENT(2) | JSON_REAL_PRECISION(15));   // 1e-5, not 1.0000000000000001e-5
}

static int print_ops(bool json)
{
    json_t *list = json_array();
    frit_op_info op;
    if (!json) cli_print("%-12s %-10s %s\n", "op", "cpu", "computes");
    for (size_t i = 0; frit_op_get_info(i, &op); i++) {
        if (json) {
            json_array_append_new(list,
                                  json_pack("{s:s, s:s, s:s}", "name", op.name, "cpu", op.cpu, "formula", op.formula));
        } else {
            cli_print("%-12s %-10s %s\n", op.name, op.cpu, op.formula);
        }
    }
    if (json) return print(list);
    json_decref(list);
    return CLI_DONE;
}

static int print_architectures(bool json)
{
    json_t *list = json_array();
    frit_architecture_info arch;
    for (size_t i = 0; frit_architecture_get_info(i, &arch); i++) {
        if (json)
            json_array_append_new(list, json_pack("{s:s, s:s}", "name", arch.name, "title", arch.title));
        else
            cli_print("%-16s %s\n", arch.name, arch.title);
    }
    if (json) return print(list);
    json_decref(list);
    return CLI_DONE;
}

static json_t *reached_json(uint64_t reaches)
{
    json_t *list = json_array();
    for (int k = 0; k < 64; k++)
        if (reaches >> k & 1) json_array_append_new(list, json_integer(k));
    return list;
}

static json_t *devices_json(void)
{
    json_t *list = json_array();
    frit_machine_device device;
    for (size_t i = 0; frit_machine_get_device(i, &device); i++)
        json_array_append_new(list, json_pack("{s:s, s:b, s:s, s:I, s:o}", "name", device.name, "usable",
                                              device.is_usable, "kind", device.kind, "free_bytes",
                                              (json_int_t)device.free_bytes, "reaches", reached_json(device.reaches)));
    return list;
}

// Numbers of the devices whose memory the device reaches, which a group with '--split tensor' needs.
static void print_reached(const frit_machine_device *device)
{
    const char *before = "; reaches ";
    for (int k = 0; k < 64; k++) {
        if (!(device->reaches >> k & 1)) continue;
        cli_print("%s%d", before, k);
        before = ", ";
    }
    cli_print("\n");
}

static void print_devices(void)
{
    frit_machine_device device;
    for (size_t i = 0; frit_machine_get_device(i, &device); i++)
        if (device.is_usable) {
            cli_print("%-10s %s, %.1f GB free", device.name, device.kind, (double)device.free_bytes / 1e9);
            print_reached(&device);
        } else
            cli_print("%-10s not usable: %s\n", device.name, device.kind);
}

// The groups that --numa tensor makes.
static void print_groups(const frit_machine *machine)
{
    if (machine->n_nodes > 1)
        cli_print("groups     cpu:0-%d: the %d memory nodes, each with its part of the model\n",
                  (int)machine->n_nodes - 1, (int)machine->n_nodes);
    else if (machine->n_cores > 1)
        cli_print("groups     cpu:0-1: two halves of the cores, on one memory node\n");
}

static int print_machine(const cli_common *common, bool json)
{
    frit_machine machine = {0};
    const frit_status status = frit_machine_probe(&machine, 0);   // reads only names
    const int code = status == FRIT_OK ? cli_probe(common, &machine, machine.n_cores) : cli_report(status);
    if (code != CLI_DONE) return code;
    if (json) {
        return print(json_pack("{s:s, s:s, s:i, s:I, s:s, s:f, s:f, s:f, s:o}", "cpu", machine.cpu_name, "isa",
                               machine.isa, "cores", machine.n_cores, "nodes", (json_int_t)machine.n_nodes, "cores_by",
                               machine.cores_by, "read_gbps", machine.read_gbps, "int8_tops", machine.int8_tops,
                               "float_tops", machine.float_tops, "devices", devices_json()));
    }
    cli_print(
        "cpu        %s, %d cores (%s)\nisa        %s\nmemory     %.1f GB/s read\nint8       %.2f TOPS\nfloats     %.2f "
        "TOPS\n",
        machine.cpu_name, machine.n_cores, machine.cores_by, machine.isa, machine.read_gbps, machine.int8_tops,
        machine.float_tops);
    print_devices();
    print_groups(&machine);
    return CLI_DONE;
}

static json_t *tensor_json(const frit_tensor_info *tensor)
{
    json_t *shape = json_array();
    for (int d = 0; d < tensor->n_dims; d++) json_array_append_new(shape, json_integer(tensor->shape[d]));
    return json_pack("{s:s, s:s, s:o, s:I}", "name", tensor->name, "type", tensor->type, "shape", shape, "bytes",
                     (json_int_t)tensor->n_bytes);
}

// Longer lists are shortened, with a note.
enum { MAX_ITEMS = 256 };

static json_t *meta_json(const frit_model *model, size_t i)
{
    size_t n;
    frit_model_get_meta_json(model, i, NULL, 0, MAX_ITEMS, &n);
    char *text = malloc(n + 1);
    if (!text) return NULL;
    frit_model_get_meta_json(model, i, text, n + 1, MAX_ITEMS, &n);
    json_t *value = json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    // An integer beyond 2^63.
    if (!value) value = json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    free(text);
    return value;
}

static int print_model_json(const frit_model *model, const frit_model_info *info, uint64_t kv_bytes, bool tensors)
{
    json_t *meta = json_object(), *object;
    const char *key;
    for (size_t i = 0; (key = frit_model_get_meta(model, i, NULL, 0, 0)); i++) {
        json_t *value = meta_json(model, i);
        if (!value || json_object_set_new(meta, key, value) != 0) {   // the key is not valid text
            json_decref(meta);
            return cli_no_memory();
        }
    }
    object = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:o}",
                       "path", info->path, "format", info->format, "architecture", info->architecture, "name",
                       info->name, "file_type", info->file_type, "tokenizer", info->tokenizer, "chat_format",
                       info->chat_format, "n_params", (json_int_t)info->n_params, "n_bytes", (json_int_t)info->n_bytes,
                       "n_vocab", info->n_vocab, "n_ctx_train", info->n_ctx_train, "n_embd", info->n_embd, "n_layer",
                       info->n_layer, "n_head", info->n_head, "n_head_kv", info->n_head_kv, "n_ff", info->n_ff,
                       "n_tensors", (json_int_t)info->n_tensors, "metadata", meta);
    static const char *const kinds[] = {"decoder", "encoder", "encoder-decoder"};
    if (object) json_object_set_new(object, "kind", json_string(kinds[info->kind]));
    if (object && info->n_layer_next > 0) json_object_set_new(object, "n_layer_next", json_integer(info->n_layer_next));
    if (object) json_object_set_new(object, "pooling", json_string(info->pooling));
    if (object && info->n_embed_tokens > 0)
        json_object_set_new(object, "n_embed_tokens", json_integer((json_int_t)info->n_embed_tokens));
    if (object) json_object_set_new(object, "kv_bytes_per_token", json_integer((json_int_t)kv_bytes));
    if (object && tensors) {
        json_t *list = json_array();
        frit_tensor_info tensor;
        for (size_t i = 0; frit_model_get_tensor(model, i, &tensor); i++)
            json_array_append_new(list, tensor_json(&tensor));
        json_object_set_new(object, "tensors", list);
    }
    return print(object);
}

static void print_tensors(const frit_model *model)
{
    frit_tensor_info tensor;
    cli_print("\n%-40s %-8s %-24s %12s\n", "tensor", "type", "shape", "bytes");
    for (size_t i = 0; frit_model_get_tensor(model, i, &tensor); i++) {
        char shape[96] = "[";
        for (int d = 0; d < tensor.n_dims; d++) {
            size_t n = strlen(shape);
            snprintf(shape + n, sizeof shape - n, d ? ", %lld" : "%lld", (long long)tensor.shape[d]);
        }
        strcat(shape, "]");
        cli_print("%-40s %-8s %-24s %12llu\n", tensor.name, tensor.type, shape, (unsigned long long)tensor.n_bytes);
    }
}

static const char *kind_text(frit_model_kind kind)
{
    static const char *const texts[] = {
        [FRIT_KIND_DECODER] = "decoder: continues a text",
        [FRIT_KIND_ENCODER] = "encoder: gives embeddings, generates no text",
        [FRIT_KIND_ENCODER_DECODER] = "encoder-decoder: turns one text into another",
    };
    return texts[kind];
}

static void print_model(const frit_model *model, const frit_model_info *info, uint64_t kv_bytes)
{
    char size[32], params[32], value[256];
    cli_size_text(info->n_bytes, size);
    cli_count_text(info->n_params, params);
    cli_print("file           %s\nformat         %s\narchitecture   %s\nname           %s\ntype           %s\n",
              info->path, info->format, info->architecture, info->name, info->file_type);
    cli_print("kind           %s; embeddings by '%s'\n", kind_text(info->kind), info->pooling);
    if (info->n_embed_tokens > 0)
        cli_print("               texts to embed are cut to %lld tokens\n", (long long)info->n_embed_tokens);
    cli_print("parameters     %s in %zu tensors, %s\n", params, info->n_tensors, size);
    cli_print("layers         %d of width %d, feed-forward %d\n", info->n_layer, info->n_embd, info->n_ff);
    if (info->n_layer_next > 0)
        cli_print("               %d for multi-token prediction (--speculate mtp)\n", info->n_layer_next);
    cli_print("heads          %d, %d for keys and values\n", info->n_head, info->n_head_kv);
    cli_print("context        %d tokens\nvocabulary     %d tokens, %s\nchat format    %s\n", info->n_ctx_train,
              info->n_vocab, info->tokenizer, info->chat_format[0] ? info->chat_format : "none");
    if (kv_bytes > 0) {
        cli_size_text(kv_bytes, size);
        cli_print("cache          %s a token\n", size);
    }
    cli_print("\nmetadata\n");
    const char *key;
    for (size_t i = 0; (key = frit_model_get_meta(model, i, value, 100, 4)); i++) {
        for (char *c = value; *c; c++) {
            if (*c == '\n') *c = ' ';
        }
        cli_print("  %-44s %s\n", key, value);
    }
}

// Adapters are opened first, as in commands that use them, because they take free memory.
static int estimate(const info_args *args, frit_model *model)
{
    cli_adapters adapters;
    int code = cli_open_adapters(&adapters, model, &args->common, &args->adapters);
    if (code == CLI_DONE) code = cli_print_estimate(model, &args->engine, &adapters, args->info.json);
    cli_free_adapters(&adapters);
    return code;
}

static int run(void *ctx)
{
    const info_args *args = ctx;
    const info_options *options = &args->info;
    cli_exit_on_signal(true);   // the command writes no file
    if (options->ops) return print_ops(options->json);
    if (options->architectures) return print_architectures(options->json);
    if (options->machine) return print_machine(&args->common, options->json);
    frit_model *model = NULL;
    frit_model_options with = args->model;
    const char *path = args->common.n_positional > 0 ? args->common.positional[0] : NULL;
    if (!options->estimate && args->adapters.lora.n + args->adapters.vectors.n > 0)
        return cli_usage("info: adapters are used by --estimate only; give --estimate too");
    with.vocab_only = !options->estimate;   // allows files with an unknown architecture
    int code = cli_open_model(&model, &args->common, &with, path);
    if (code != CLI_DONE) return code;
    if (options->estimate) {
        code = estimate(args, model);
        frit_model_free(model);
        return code;
    }
    frit_model_info info;
    frit_model_get_info(model, &info);
    const uint64_t kv_bytes = frit_model_kv_bytes(model, args->engine.cache_type_k, args->engine.cache_type_v);
    if (options->json) {
        code = print_model_json(model, &info, kv_bytes, options->tensors);
    } else {
        print_model(model, &info, kv_bytes);
        if (options->tensors) print_tensors(model);
    }
    frit_model_free(model);
    return code;
}

static const cli_group groups[] = {
    {"Output", info_rows, offsetof(info_args, info)},
    {"Model", frit_model_option_rows, offsetof(info_args, model)},
    {"Engine", frit_engine_option_rows, offsetof(info_args, engine)},
    {"Adapters", cli_adapter_rows, offsetof(info_args, adapters)},
    {"General", cli_common_rows, offsetof(info_args, common)},
};

const cli_command cli_command_info = {
    .name = "info",
    .usage = "[MODEL] [options]",
    .summary = "show what a model file holds",
    .usual = "tensors estimate json ops architectures machine ctx cache-type-k cache-type-v gpu-layers lora type model "
             "hf-repo quiet",
    .details = "  frit info model.gguf\n  frit info model.gguf --tensors --json\n  frit info model.gguf --estimate -c "
               "32768 -ctk q8_0 "
               "-ctv q8_0\n  frit info --ops\n  frit info "
               "--architectures\n  frit info --machine",
    .max_positional = 1,
    .args_bytes = sizeof(info_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
