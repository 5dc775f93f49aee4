// SPDX-License-Identifier: MIT
// --lora and --control-vector: adapters from files, for all sessions of a command.
#include "frit/cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const frit_option *cli_adapter_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "lora",
         .aliases = "lora-scaled",
         .type = FRIT_OPTION_LIST,
         .offset = offsetof(cli_adapter_options, lora),
         .metavar = "FILE[:SCALE]",
         .help = "add a low-rank adapter: a GGUF file, PEFT folder or name (may be given several times)"},
        {.name = "control-vector",
         .aliases = "control-vector-scaled",
         .type = FRIT_OPTION_LIST,
         .offset = offsetof(cli_adapter_options, vectors),
         .metavar = "FILE[:SCALE]",
         .help = "add a control vector: a GGUF file or name (may be given several times)"},
        {.name = "control-vector-layer-range",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(cli_adapter_options, range),
         .metavar = "A,B",
         .help = "the layers that control vectors work on; by default all that they have"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

// Reads "1,20".
static int read_range(const char *text, frit_adapter_options *out)
{
    *out = (frit_adapter_options){0};
    if (!text) return CLI_DONE;
    char *comma = NULL, *end = NULL;
    const long first = strtol(text, &comma, 10), last = *comma == ',' ? strtol(comma + 1, &end, 10) : 0;
    if (!end || *end || end == comma + 1 || first < 1 || last < first || last > 1 << 16)
        return cli_usage("--control-vector-layer-range: '%s' is not two layers like 1,20", text);
    *out = (frit_adapter_options){.first_layer = (int32_t)first, .last_layer = (int32_t)last};
    return CLI_DONE;
}

// Fails if a vector is given as a low-rank adapter, or the other way around.
static int check_kind(const frit_adapter *adapter, const char *path, bool is_lora)
{
    frit_adapter_info info;
    frit_adapter_get_info(adapter, &info);
    if ((strcmp(info.kind, "lora") == 0) == is_lora) return CLI_DONE;
    return is_lora ? cli_usage("--lora %s: the file is a control vector, which --control-vector takes", path)
                   : cli_usage("--control-vector %s: the file is a low-rank adapter, which --lora takes", path);
}

static int open_named(cli_adapters *adapters, frit_model *model, const cli_common *common, const char *name,
                      bool is_lora, const frit_adapter_options *options)
{
    char *path;
    int code = cli_find_model(common, name, &path);
    if (code != CLI_DONE) return code;
    const frit_status status = frit_adapter_open(&adapters->items[adapters->n], model, path, options);
    if (status != FRIT_OK) code = cli_report_model(status);
    // The options were checked before, so the file is not an adapter, or an adapter of another model.
    if (status == FRIT_E_INVALID) code = CLI_BAD_MODEL;
    if (code == CLI_DONE) code = check_kind(adapters->items[adapters->n++], path, is_lora);
    free(path);
    return code;
}

static int open_adapter(cli_adapters *adapters, frit_model *model, const cli_common *common, const char *item,
                        bool is_lora, const frit_adapter_options *options)
{
    static const frit_option scale_row = {.name = "scale", .type = FRIT_OPTION_FLOAT};
    const char *colon = strrchr(item, ':');
    float scale = 1;
    size_t n = strlen(item);
    if (colon && colon[1]) {
        float number;
        if (frit_option_set(&scale_row, &number, colon + 1) == FRIT_OK) scale = number, n = (size_t)(colon - item);
    }
    char *name = malloc(n + 1);
    if (!name) return cli_no_memory();
    memcpy(name, item, n);
    name[n] = 0;
    adapters->scales[adapters->n] = scale;
    const int code = open_named(adapters, model, common, name, is_lora, options);
    free(name);
    return code;
}

int cli_open_adapters(cli_adapters *adapters, frit_model *model, const cli_common *common,
                      const cli_adapter_options *options)
{
    const size_t n = options->lora.n + options->vectors.n;
    frit_adapter_options range;
    *adapters = (cli_adapters){0};
    int code = read_range(options->range, &range);
    if (code != CLI_DONE || n == 0) return code;
    adapters->items = calloc(n, sizeof *adapters->items);
    adapters->scales = calloc(n, sizeof *adapters->scales);
    if (!adapters->items || !adapters->scales) return cli_no_memory();
    for (size_t i = 0; i < n && code == CLI_DONE; i++) {
        const bool is_lora = i < options->lora.n;
        const char *item = is_lora ? options->lora.items[i] : options->vectors.items[i - options->lora.n];
        code = open_adapter(adapters, model, common, item, is_lora, is_lora ? NULL : &range);
    }
    return code;
}

frit_status cli_use_adapters(const cli_adapters *adapters, frit_session *session)
{
    return adapters->n > 0 ? frit_session_set_adapters(session, adapters->items, adapters->scales, adapters->n)
                           : FRIT_OK;
}

void cli_free_adapters(cli_adapters *adapters)
{
    for (size_t i = 0; i < adapters->n; i++) frit_adapter_free(adapters->items[i]);
    free(adapters->items);
    free(adapters->scales);
    *adapters = (cli_adapters){0};
}
