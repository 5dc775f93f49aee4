// SPDX-License-Identifier: MIT
// --speculate: several tokens in a step, in run, chat and serve.
#include "frit/cli/cli.h"
#include "common/speculate.h"

#include <string.h>

const frit_option *cli_speculate_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "speculate",
         .type = FRIT_OPTION_CHOICE,
         .offset = offsetof(cli_speculate_options, kind),
         .choices = "auto|ngram|draft|mtp|none",
         .fallback = "auto",
         .metavar = "HOW",
         .help = "draft next tokens and verify them in one step, where that is faster; ngram: from the text so far, "
                 "draft: by --model-draft, auto: both; mtp: by the model's own layer for multi-token prediction"},
        {.name = "draft-max",
         .aliases = "draft-n",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(cli_speculate_options, max_drafts),
         .min = 1,
         .max = 64,
         .fallback = "16",
         .metavar = "N",
         .help = "tokens that are drafted for one step at most"},
        {.name = "draft-p-min",
         .aliases = "draft-min-p",
         .type = FRIT_OPTION_FLOAT,
         .offset = offsetof(cli_speculate_options, min_p),
         .min = 0,
         .max = 1,
         .metavar = "P",
         .help = "the draft model stops before a token to which it gives less probability"},
        {.name = "draft-always",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(cli_speculate_options, always),
         .help = "draft as much as --draft-max allows, whether it is faster or not"},
        {.name = "model-draft",
         .aliases = "draft|draft-model",
         .letters = "md",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(cli_speculate_options, draft),
         .metavar = "FILE",
         .help = "a smaller model with the same vocabulary, which makes the drafts"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static int open_drafter(cli_drafter *drafter, const cli_speculate_options *how, frit_model *model,
                        const cli_common *common, const frit_engine_options *engine)
{
    cli_common named = *common;
    frit_engine_options options = *engine;
    const bool is_next = strcmp(how->kind, "mtp") == 0;
    int code = CLI_DONE;
    named.model = how->draft;
    options.override_tensor = NULL;   // names tensors of the other model
    if (is_next && how->draft)
        return cli_usage("--speculate mtp: the model itself makes the drafts; leave out --model-draft");
    if (!is_next && !how->draft) return CLI_DONE;
    if (strcmp(how->kind, "ngram") == 0 || strcmp(how->kind, "none") == 0) {
        cli_note(common, "--speculate %s uses no draft model: %s is not opened", how->kind, how->draft);
        return CLI_DONE;
    }
    if (is_next) options.prefix_disk = NULL;
    if (is_next && frit_model_open_next(&drafter->model, model) != FRIT_OK) {
        cli_note(common, "%s; it answers without speculation", frit_error());
        return CLI_DONE;
    }
    if (!is_next) code = cli_open_model(&drafter->model, &named, &(frit_model_options){0}, NULL);
    return code == CLI_DONE ? cli_open_engine(&drafter->engine, common, drafter->model, &options) : code;
}

int cli_open_drafter(cli_drafter *drafter, const cli_speculate_options *options, frit_model *model,
                     const cli_common *common, const frit_engine_options *engine, frit_speculate_options *how)
{
    const int code = open_drafter(drafter, options, model, common, engine);
    if (code != CLI_DONE) return code;
    *how = (frit_speculate_options){.kind = options->kind,
                                    .draft = drafter->engine,
                                    .max_drafts = options->max_drafts,
                                    .min_p = options->min_p,
                                    .always = options->always};
    if (strcmp(how->kind, "mtp") == 0 && !how->draft) how->kind = "none";
    return how->draft || strcmp(how->kind, "draft") != 0 ? CLI_DONE
                                                         : cli_usage("--speculate draft: needs --model-draft FILE");
}

int cli_use_speculation(cli_drafter *drafter, const cli_speculate_options *options, frit_model *model,
                        const cli_common *common, const frit_engine_options *engine, frit_session *session)
{
    frit_speculate_options how;
    const int code = cli_open_drafter(drafter, options, model, common, engine, &how);
    if (code != CLI_DONE) return code;
    const frit_status status = app_speculate(session, &how);
    return status == FRIT_OK ? CLI_DONE : cli_report(status);
}

void cli_drafter_free(cli_drafter *drafter)
{
    frit_engine_free(drafter->engine);
    frit_model_free(drafter->model);
}
