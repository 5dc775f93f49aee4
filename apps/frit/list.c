// SPDX-License-Identifier: MIT
// frit list: the models on this machine, by name.
#include "frit/cli/by_name.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct list_options {
    bool json, paths;
} list_options;

typedef struct list_args {
    cli_common common;
    list_options list;
} list_args;

static const frit_option *list_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "json", .type = FRIT_OPTION_FLAG, .offset = offsetof(list_options, json), .help = "print JSON"},
        {.name = "paths",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(list_options, paths),
         .help = "print where each model is, too"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

typedef struct listing {
    json_t *items;
    size_t widest;
} listing;

static void add(void *ctx, const hub_model *model)
{
    listing *list = ctx;
    if (strlen(model->name) > list->widest) list->widest = strlen(model->name);
    json_array_append_new(list->items,
                          json_pack("{s:s, s:s, s:I, s:I}", "name", model->name, "path", model->path, "bytes",
                                    (json_int_t)model->n_bytes, "changed", (json_int_t)model->changed));
}

static void print_row(const listing *list, const json_t *item, bool paths)
{
    char size[32], day[32] = "";
    const char *path = json_string_value(json_object_get(item, "path"));
    const time_t changed = (time_t)json_integer_value(json_object_get(item, "changed"));
    const struct tm *when = localtime(&changed);   // Windows has no localtime_r
    cli_size_text((uint64_t)json_integer_value(json_object_get(item, "bytes")), size);
    if (when) strftime(day, sizeof day, "%Y-%m-%d", when);
    cli_print("%-*s  %10s  %s%s%s\n", (int)list->widest, json_string_value(json_object_get(item, "name")), size, day,
              paths ? "  " : "", paths ? path : "");
}

static int run(void *ctx)
{
    const list_args *args = ctx;
    hub_settings *settings = calloc(1, sizeof *settings);
    listing list = {.items = json_array(), .widest = 4};
    cli_exit_on_signal(true);   // the command writes no file
    int code = settings && list.items ? cli_read_hub(settings) : cli_no_memory();
    const hub_source *source;
    for (size_t i = 0; (source = hub_source_get(i)) && code == CLI_DONE; i++)
        code = cli_report_hub(source->each(settings, add, &list));
    free(settings);
    if (code == CLI_DONE && args->list.json) return cli_print_json(list.items, JSON_INDENT(2));
    const size_t n = json_array_size(list.items);
    if (code == CLI_DONE && n == 0) cli_note(&args->common, "no models are here yet; 'frit pull NAME' fetches one");
    if (code == CLI_DONE && n > 0) cli_print("%-*s  %10s  %s\n", (int)list.widest, "name", "size", "since");
    for (size_t i = 0; i < n && code == CLI_DONE; i++)
        print_row(&list, json_array_get(list.items, i), args->list.paths);
    json_decref(list.items);
    return code;
}

static const cli_group groups[] = {
    {"Output", list_rows, offsetof(list_args, list)},
    {"General", cli_common_rows, offsetof(list_args, common)},
};

const cli_command cli_command_list = {
    .name = "list",
    .usage = "[options]",
    .summary = "list the models that are on this machine, by name",
    .details =
        "The caches of the Hugging Face hub, of ollama, of LM Studio and of 'frit pull'. Every command takes these\n"
        "names in place of a file.\n"
        "\n"
        "  frit list\n  frit list --json --paths",
    .max_positional = 0,
    .args_bytes = sizeof(list_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
