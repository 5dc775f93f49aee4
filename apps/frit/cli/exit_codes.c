// SPDX-License-Identifier: MIT
// The exit codes of frit: their descriptions, and the exit code of each status of the library.
#include "frit/cli/cli.h"

static const cli_exit_row rows[] = {
    {CLI_DONE, "done"},
    {CLI_FAILED, "failed: a file cannot be read, written or fetched, a text does not fit, a comparison differs"},
    {CLI_USAGE, "wrong usage: an option, an argument or an id that is not allowed"},
    {CLI_BAD_MODEL, "bad model: the model, its template or an adapter is missing, damaged or not supported"},
    {CLI_NO_MEMORY, "out of memory"},
    {CLI_HUNG_UP, "ended by SIGHUP: the terminal is gone"},
    {CLI_INTERRUPTED, "ended by SIGINT: Ctrl-C"},
    {CLI_PIPE_CLOSED, "the reader of the output closed it, as in `head -1`; ends without a message"},
    {CLI_TERMINATED, "ended by SIGTERM"},
};

const cli_exit_row *cli_exit_rows(size_t *n_rows)
{
    *n_rows = CLI_COUNT(rows);
    return rows;
}

// The exit code of a status, while a model is opened and afterwards.
static const struct {
    frit_status status;
    int opening, running;
} of_status[] = {
    {FRIT_OK, CLI_DONE, CLI_DONE},
    {FRIT_E_INVALID, CLI_USAGE, CLI_USAGE},
    {FRIT_E_MEMORY, CLI_NO_MEMORY, CLI_NO_MEMORY},
    {FRIT_E_IO, CLI_BAD_MODEL, CLI_FAILED},
    {FRIT_E_NOT_FOUND, CLI_BAD_MODEL, CLI_FAILED},
    {FRIT_E_FORMAT, CLI_BAD_MODEL, CLI_BAD_MODEL},
    {FRIT_E_UNSUPPORTED, CLI_BAD_MODEL, CLI_FAILED},
    {FRIT_E_LIMIT, CLI_BAD_MODEL, CLI_FAILED},
    {FRIT_E_CANCELLED, CLI_INTERRUPTED, CLI_INTERRUPTED},
    {FRIT_E_INTERNAL, CLI_FAILED, CLI_FAILED},
};

static int code_of(frit_status status, bool opening)
{
    for (size_t i = 0; i < CLI_COUNT(of_status); i++)
        if (of_status[i].status == status) return opening ? of_status[i].opening : of_status[i].running;
    return CLI_FAILED;
}

static int report(frit_status status, bool opening)
{
    const int code = code_of(status, opening);
    // An interrupt prints nothing.
    if (code != CLI_INTERRUPTED) cli_fail("%s", frit_error()[0] ? frit_error() : frit_status_text(status));
    return code;
}

int cli_report(frit_status status)
{
    return report(status, false);
}

int cli_report_model(frit_status status)
{
    return report(status, true);
}

int cli_no_memory(void)
{
    cli_fail("out of memory");
    return CLI_NO_MEMORY;
}
