// SPDX-License-Identifier: MIT
// frit quantize --refine: rounding a file that was just written again.
#include "cli.h"

#include <stdlib.h>

const frit_option *cli_refine_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "refine",
         .type = FRIT_OPTION_TEXT,
         .offset = 0,
         .metavar = "FILE",
         .help = "round again with how inputs belong together on this text ('-': stdin): slower, errors fall"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static void note(void *ctx, frit_log_level level, const char *sentence)
{
    if (level == FRIT_LOG_INFO)
        cli_note(ctx, "%s", sentence);
    else
        cli_log(ctx, level, sentence);
}

int cli_refine(const cli_common *common, const char *source, const char *target, int32_t n_threads,
               const cli_text *text)
{
    const frit_model_options vocab = {.vocab_only = true};
    frit_model *model = NULL;
    size_t n_tokens = 0;
    cli_progress progress;
    frit_status status = frit_model_open(&model, source, &vocab);
    if (status != FRIT_OK) return cli_report_model(status);
    frit_token *tokens = cli_tokens(model, text->data, text->n, FRIT_TEXT_SPECIAL, &n_tokens);
    frit_model_free(model);
    if (!tokens) return CLI_FAILED;
    cli_progress_start(&progress, common, "refining");
    const frit_refine_options options = {.tokens = tokens,
                                         .n_tokens = n_tokens,
                                         .n_threads = n_threads,
                                         .progress = cli_progress_step,
                                         .progress_ctx = &progress,
                                         .log = note,
                                         .log_ctx = (void *)common};
    status = frit_refine(source, target, &options);
    cli_progress_end(&progress);
    free(tokens);
    return status == FRIT_OK ? CLI_DONE : cli_report(status);
}
