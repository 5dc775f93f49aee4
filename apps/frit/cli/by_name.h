// SPDX-License-Identifier: MIT
// frit/cli/by_name.h: functions of the commands about models by name (pull, list, rm, show).
#pragma once
#include "frit/cli/cli.h"

#include "hub/hub.h"

typedef struct cli_transfer {   // the display of a download
    const cli_common *common;
    bool is_terminal, is_shown;
    const char *name;
    uint64_t first_bytes;   // bytes that existed before the download
    uint64_t last_ns;
    struct {
        uint64_t ns, n_bytes;
    } samples[32];   // of the last seconds, to compute the rate
    size_t n_samples;
} cli_transfer;

void cli_transfer_start(cli_transfer *transfer, const cli_common *common);
void cli_transfer_end(cli_transfer *transfer);
hub_watch cli_transfer_watch(cli_transfer *transfer);

// Reads the environment. Returns an exit code after printing any error.
int cli_read_hub(hub_settings *settings);
int cli_hub_code(hub_status status);   // converts to an exit code
// Prints hub_error() and returns the exit code.
int cli_report_hub(hub_status status);
// The name given by -m or -hf on the command line. Environment variables do not count, because the command may fetch or
// remove the model.
const char *cli_named(const cli_common *common);
// Calls fn for each name on the command line, `text`, until one fails. Returns an exit code after printing any error.
typedef int (*cli_name_fn)(const void *args, const hub_settings *settings, const hub_name *name, const char *text);
int cli_each_name(const cli_common *common, cli_name_fn fn, const void *args);
// For a text that is neither an existing path nor one of frit's names. If other programs would read it as a model's
// name, fails and prints frit's name for the model. Otherwise *path becomes the text, malloc'd, to be opened as a path.
int cli_name_or_path(const char *text, bool is_model, char **path);
// The free memory of the device that has the most; 0: unknown. Opens the bundled model to ask an engine for it.
uint64_t cli_free_memory_bytes(void);
