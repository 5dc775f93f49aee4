// SPDX-License-Identifier: MIT
// frit show: a model by name, on this machine and at its server.
#include "frit/cli/by_name.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct show_options {
    bool json;
} show_options;

typedef struct show_args {
    cli_common common;
    show_options show;
} show_args;

static const frit_option *show_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "json", .type = FRIT_OPTION_FLAG, .offset = offsetof(show_options, json), .help = "print JSON"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static void print_variants(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        char size[32];
        const json_t *item = json_array_get(list, i);
        cli_size_text((uint64_t)json_integer_value(json_object_get(item, "bytes")), size);
        cli_print("  %-12s %10s  %s%s\n", json_string_value(json_object_get(item, "quantization")), size,
                  json_string_value(json_object_get(item, "file")),
                  json_is_true(json_object_get(item, "here")) ? "  (here)" : "");
    }
}

static void print_shown(json_t *shown)
{
    const char *key;
    json_t *value;
    json_object_foreach(shown, key, value)
    {
        char size[32];
        if (json_is_integer(value)) cli_size_text((uint64_t)json_integer_value(value), size);
        if (json_is_array(value))
            cli_print("%s\n", key), print_variants(value);
        else
            cli_print("%-14s %s\n", strcmp(key, "bytes") == 0 ? "size" : key,
                      json_is_integer(value) ? size : json_string_value(value));
    }
}

static int show(const void *ctx, const hub_settings *settings, const hub_name *name, const char *text)
{
    const show_args *args = ctx;
    cli_transfer transfer;
    json_t *shown = NULL;
    cli_transfer_start(&transfer, &args->common);
    const hub_pull pull = {.settings = settings,
                           .typed = text,
                           .room_bytes = name->part[0] ? 0 : cli_free_memory_bytes(),
                           .watch = cli_transfer_watch(&transfer)};
    const int code = cli_report_hub(name->source->show(&pull, name, &shown));
    cli_transfer_end(&transfer);
    if (code != CLI_DONE) return code;
    if (args->show.json) return cli_print_json(shown, JSON_INDENT(2));
    print_shown(shown);
    json_decref(shown);
    return CLI_DONE;
}

static int run(void *ctx)
{
    const show_args *args = ctx;
    cli_exit_on_signal(true);   // the command writes no file
    if (cli_named(&args->common) == NULL && args->common.n_positional == 0)
        return cli_usage("show: expected the name of a model; 'frit info' shows what is in a file");
    return cli_each_name(&args->common, show, args);
}

static const cli_group groups[] = {
    {"Output", show_rows, offsetof(show_args, show)},
    {"General", cli_common_rows, offsetof(show_args, common)},
};

const cli_command cli_command_show = {
    .name = "show",
    .usage = "NAME [options]",
    .summary = "show what there is of a model by name: files, sizes, license",
    .details =
        "Asks the server which quantizations there are, says which one 'frit pull' would choose for this machine, and\n"
        "which are here. 'frit info NAME' shows what is in the file.\n"
        "\n"
        "  frit show hf:Qwen/Qwen3-8B-GGUF\n  frit show ollama:llama3.2:1b --json",
    .max_positional = 1,
    .args_bytes = sizeof(show_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
