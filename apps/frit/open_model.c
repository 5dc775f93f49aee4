// SPDX-License-Identifier: MIT
// Opens the model that a command line names, or the bundled one. This function has a file of its own, so that a fuzz
// target can replace it by one that returns an open model.
#include "frit/cli/cli.h"

#include <stdlib.h>
#include <string.h>

int cli_open_model(frit_model **model, const cli_common *common, const frit_model_options *options,
                   const char *positional)
{
    const char *named = common->model ? common->model : positional ? positional : cli_bundled_model();
    char *path;
    if (common->model && positional)
        return cli_usage("the model is named twice: '%s' and -m %s", positional, common->model);
    int code = cli_find_model(common, named, &path);
    if (code != CLI_DONE) return code;
    cli_progress progress;
    cli_progress_start(&progress, common, "loading");
    frit_model_options with = *options;
    with.progress = cli_progress_step;
    with.progress_ctx = &progress;
    with.log = cli_log;
    with.log_ctx = (void *)common;
    cli_begin_wait();
    frit_status status = frit_model_open(model, path, &with);
    cli_end_wait();
    cli_progress_end(&progress);
    if (status != FRIT_OK) code = cli_report_model(status);
    if (status == FRIT_E_NOT_FOUND && strchr(path, ' '))
        cli_fail("'%s' was taken as a model; a prompt is given with -p", path);
    free(path);
    return code;
}
