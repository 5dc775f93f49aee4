// SPDX-License-Identifier: MIT
// frit/cli/by_name.h: what the commands about models by name share (pull, list, rm, show).
#pragma once
#include "frit/cli/cli.h"

#include "hub/hub.h"

typedef struct cli_transfer {   // what is shown of a download
    const cli_common *common;
    bool is_terminal, is_shown;
    const char *name;
    uint64_t first_bytes;   // that were there when it began
    uint64_t last_ns;
    struct {
        uint64_t ns, n_bytes;
    } samples[32];   // of the last seconds, for the rate
    size_t n_samples;
} cli_transfer;

void cli_transfer_start(cli_transfer *transfer, const cli_common *common);
void cli_transfer_end(cli_transfer *transfer);
hub_watch cli_transfer_watch(cli_transfer *transfer);

// Reads the environment. Exit codes, having said why not.
int cli_read_hub(hub_settings *settings);
int cli_hub_code(hub_status status);   // an exit code
// Says hub_error() and gives the exit code.
int cli_report_hub(hub_status status);
// The name that -m or -hf gives on the command line, where a name may be fetched or removed: no variable means that.
const char *cli_named(const cli_common *common);
// Calls fn for each name of the command line, `text`, until one fails; an exit code, having said why.
typedef int (*cli_name_fn)(const void *args, const hub_settings *settings, const hub_name *name, const char *text);
int cli_each_name(const cli_common *common, cli_name_fn fn, const void *args);
// For a text that is neither a path nor a name of ours: if other programs would take it as a model's name, says how the
// model is called here and fails; else *path is the text, to be opened as a path.
int cli_refuse_name(const char *text, bool is_model, char **path);
// Memory that is free on the device that has the most; 0: unknown.
uint64_t cli_free_memory(void);
