// SPDX-License-Identifier: MIT
// frit quantize --refine: rounds a new file again.
#include "frit/cli/cli.h"

#include <stdlib.h>
#include <string.h>

const frit_option *cli_refine_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "refine",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(cli_refine_options, file),
         .metavar = "FILE",
         .help = "round the weights again with the covariance of inputs on this text ('-': stdin; "
                 "own: the model writes it)"},
        {.name = "fast",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(cli_refine_options, fast),
         .help = "do not round again for a size; by default that is done, with the text that was measured with"},
        {.name = "verbose",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(cli_refine_options, verbose),
         .help = "print the time of each part of the work, by layer"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

bool cli_refine_reads(const cli_refine_options *options)
{
    return options->file && strcmp(options->file, "own") != 0;
}

typedef struct notes {
    const cli_common *common;
    bool verbose;
} notes;

static void note(void *ctx, frit_log_level level, const char *sentence)
{
    const notes *n = ctx;
    if (level == FRIT_LOG_INFO || (level == FRIT_LOG_DEBUG && n->verbose))
        cli_note(n->common, "%s", sentence);
    else
        cli_log((void *)n->common, level, sentence);
}

enum { WINDOW = 512, WINDOWS = 256 };

static size_t window_of(const frit_model *model)
{
    frit_model_info info;
    frit_model_get_info(model, &info);
    return info.n_ctx_train > 0 && info.n_ctx_train < WINDOW ? (size_t)info.n_ctx_train : WINDOW;
}

static size_t windows_of(const cli_refine_job *job)
{
    return job->n_windows > 0 ? (size_t)job->n_windows : WINDOWS;
}

// Makes the model write text, in windows of the length that refining uses.
static frit_status write_samples(frit_model *model, const cli_refine_job *job, cli_progress *progress,
                                 frit_token **tokens, size_t *n_tokens)
{
    const frit_samples_options options = {.n_windows = windows_of(job),
                                          .n_ctx = window_of(model),
                                          .n_threads = job->n_threads,
                                          .progress = cli_progress_step,
                                          .progress_ctx = progress};
    *n_tokens = options.n_windows * options.n_ctx;
    *tokens = calloc(*n_tokens, sizeof **tokens);
    return *tokens ? frit_samples_write(model, &options, *tokens) : FRIT_E_MEMORY;
}

static frit_status tokenize(const frit_model *model, const cli_refine_job *job, frit_token **tokens, size_t *n_tokens)
{
    const cli_text *text = job->text;
    const size_t most = windows_of(job) * (job->by_default ? WINDOW : window_of(model));
    frit_status status = frit_tokenize(model, text->data, text->n, FRIT_TEXT_SPECIAL, NULL, 0, n_tokens);
    if (status != FRIT_OK && status != FRIT_E_LIMIT) return status;   // E_LIMIT: no room for tokens was given yet
    *tokens = calloc(*n_tokens + 1, sizeof **tokens);
    if (!*tokens) return FRIT_E_MEMORY;
    status = frit_tokenize(model, text->data, text->n, FRIT_TEXT_SPECIAL, *tokens, *n_tokens, n_tokens);
    if ((job->by_default || job->n_windows > 0) && *n_tokens > most) *n_tokens = most;
    return status;
}

static frit_status read_tokens(const cli_common *common, const char *source, const cli_refine_job *job,
                               frit_token **tokens, size_t *n_tokens)
{
    const frit_model_options options = {.vocab_only = job->text != NULL};
    frit_model *model = NULL;
    cli_progress progress;
    frit_status status = frit_model_open(&model, source, &options);
    if (status == FRIT_OK && job->text) {
        status = tokenize(model, job, tokens, n_tokens);
    } else if (status == FRIT_OK) {
        cli_progress_start(&progress, common, "writing samples");
        status = write_samples(model, job, &progress, tokens, n_tokens);
        cli_progress_end(&progress);
    }
    frit_model_free(model);
    return status;
}

static frit_status refine(const cli_common *common, const char *source, const char *target, const cli_refine_job *job)
{
    const bool has_tokens = !job->text && job->tokens;
    size_t n_tokens = job->n_tokens;
    frit_token *tokens = NULL;
    cli_progress progress;
    frit_status status = has_tokens ? FRIT_OK : read_tokens(common, source, job, &tokens, &n_tokens);
    if (status == FRIT_OK) {
        cli_progress_start(&progress, common, "refining");
        notes said = {common, job->verbose};
        const frit_refine_options options = {.tokens = has_tokens ? job->tokens : tokens,
                                             .n_tokens = n_tokens,
                                             .n_threads = job->n_threads,
                                             .progress = cli_progress_step,
                                             .progress_ctx = &progress,
                                             .log = note,
                                             .log_ctx = &said};
        status = frit_refine(source, target, &options);
        cli_progress_end(&progress);
    }
    free(tokens);
    return status;
}

int cli_refine_check(const cli_common *common, const char *source, const cli_refine_job *job)
{
    frit_token *tokens = NULL;
    frit_model *model = NULL;
    frit_status status = frit_model_open(&model, source, NULL);
    if (status != FRIT_OK) return cli_report_model(status);
    size_t n_tokens = windows_of(job) * window_of(model);
    status = frit_refine_check(model, SIZE_MAX);   // before its text is read
    if (status == FRIT_OK && job->text) status = read_tokens(common, source, job, &tokens, &n_tokens);
    if (status == FRIT_OK) status = frit_refine_check(model, n_tokens);
    free(tokens);
    frit_model_free(model);
    return status == FRIT_OK ? CLI_DONE : cli_report(status);
}

int cli_refine(const cli_common *common, const char *source, const char *target, const cli_refine_job *job)
{
    const frit_status status = refine(common, source, target, job);
    if (status == FRIT_OK) return CLI_DONE;
    const bool cannot = status == FRIT_E_UNSUPPORTED || status == FRIT_E_INVALID;
    if (!cannot || !job->by_default) return cli_report(status);
    cli_note(common, "%s stays as it was rounded first: %s", target, frit_error());
    return CLI_DONE;
}
