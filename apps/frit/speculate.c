// SPDX-License-Identifier: MIT
// --speculate: several tokens in a step, in run and chat.
#include "cli.h"

#include <string.h>

const frit_option *cli_speculate_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "speculate",
         .type = FRIT_OPTION_CHOICE,
         .offset = offsetof(cli_speculate_options, kind),
         .choices = "auto|ngram|none",
         .fallback = "auto",
         .metavar = "HOW",
         .help = "guess next tokens and verify them in one step, where that is faster; ngram: from the text so far"},
        {.name = "draft-max",
         .aliases = "draft-n",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(cli_speculate_options, max_drafts),
         .min = 1,
         .max = 64,
         .fallback = "16",
         .metavar = "N",
         .help = "tokens that are guessed for one step at most"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

frit_status cli_use_speculation(const cli_speculate_options *options, frit_session *session)
{
    const frit_status status = frit_session_speculate(
        session, &(frit_speculate_options){.kind = options->kind, .max_drafts = options->max_drafts});
    const bool is_wish = strcmp(options->kind, "auto") != 0;
    return status == FRIT_E_UNSUPPORTED && !is_wish ? FRIT_OK : status;
}
