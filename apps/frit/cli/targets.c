// SPDX-License-Identifier: MIT
// Refuses to overwrite an input of the command. Files are compared, not their names.
#include "frit/cli/cli.h"
#include "hub/disk.h"

#include <stdlib.h>
#include <string.h>

static int refuse(const char *path)
{
    return cli_usage("%s: is an input too; expected another name for the file to write", path);
}

// An adapter's path may end in ":SCALE".
static bool is_input(const char *path, const char *input)
{
    const char *colon = strrchr(input, ':');
    if (hub_is_same_file(path, input)) return true;
    char *name = colon ? strdup(input) : NULL;
    if (!name) return false;
    name[colon - input] = 0;
    const bool is_same = hub_is_same_file(path, name);
    free(name);
    return is_same;
}

int cli_check_target(const char *path, const char *const *inputs, size_t n)
{
    for (size_t i = 0; path && i < n; i++)
        if (inputs[i] && is_input(path, inputs[i])) return refuse(path);
    return CLI_DONE;
}

int cli_check_adapters_target(const char *path, const cli_adapter_options *adapters)
{
    const int code = cli_check_target(path, adapters->lora.items, adapters->lora.n);
    return code == CLI_DONE ? cli_check_target(path, adapters->vectors.items, adapters->vectors.n) : code;
}

int cli_check_model_target(const char *path, const frit_model *model)
{
    frit_model_file file;
    for (size_t i = 0; path && frit_model_get_file(model, i, &file); i++)
        if (hub_is_same_file(path, file.path)) return refuse(path);
    return CLI_DONE;
}
