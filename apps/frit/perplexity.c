// SPDX-License-Identifier: MIT
// frit perplexity: how well a model predicts a text.
//
// The text is tokenized once with a BOS and cut into windows of n_ctx tokens, the first of which is replaced by BOS.
// Within each window the second half counts: positions n_ctx/2 ... n_ctx-2 each predict the token behind them.
#include "cli.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

typedef struct perplexity_options {
    const char *file;
    int32_t n_windows;
    bool json;
} perplexity_options;

typedef struct perplexity_args {
    cli_common common;
    perplexity_options perplexity;
    frit_engine_options engine;
    frit_model_options model;
} perplexity_args;

typedef struct score {
    const frit_token *window;
    size_t n_ctx;
    double sum, sum_squares;   // of -log p
    size_t n;
} score;

static const frit_option *perplexity_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "file",
         .letter = 'f',
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(perplexity_options, file),
         .metavar = "FILE",
         .help = "the text ('-': stdin)"},
        {.name = "windows",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(perplexity_options, n_windows),
         .min = 0,
         .max = 1e9,
         .fallback = "0",
         .metavar = "N",
         .help = "windows to score at most; 0: all"},
        {.name = "json", .type = FRIT_OPTION_FLAG, .offset = offsetof(perplexity_options, json), .help = "print JSON"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static void score_row(void *ctx, size_t i, const float *logits, size_t n_vocab)
{
    score *s = ctx;
    if (i < s->n_ctx / 2 || i + 1 >= s->n_ctx) return;
    float largest = logits[0];
    for (size_t v = 1; v < n_vocab; v++) largest = logits[v] > largest ? logits[v] : largest;
    double sum = 0;
    for (size_t v = 0; v < n_vocab; v++) sum += exp((double)logits[v] - largest);
    double nll = log(sum) + largest - logits[s->window[i + 1]];
    s->sum += nll;
    s->sum_squares += nll * nll;
    s->n++;
}

static frit_status score_window(frit_engine *engine, frit_session *session, score *s)
{
    frit_push_options push = {.output = FRIT_OUTPUT_ALL, .row = score_row, .row_ctx = s};
    frit_status status = frit_session_truncate(session, 0);
    if (status == FRIT_OK) status = frit_session_push(session, s->window, s->n_ctx, &push);
    while (status == FRIT_OK && frit_session_pending(session) > 0) {
        int32_t n_rows;
        status = frit_engine_step(engine, &n_rows);
    }
    return status;
}

// BOS is what an empty text becomes where the file asks for special tokens.
static bool find_bos(const frit_model *model, frit_token *bos)
{
    size_t n = 0;
    return frit_tokenize(model, "", 0, FRIT_TEXT_SPECIAL, bos, 1, &n) == FRIT_OK && n == 1;
}

static int print_score(const perplexity_args *args, const score *s, size_t n_windows)
{
    double mean = s->sum / (double)s->n, variance = s->sum_squares / (double)s->n - mean * mean;
    double perplexity = exp(mean), error = s->n > 1 ? perplexity * sqrt(variance / ((double)s->n - 1)) : 0;
    if (!args->perplexity.json) {
        printf("perplexity %.4f +- %.4f over %zu tokens in %zu windows of %zu\n", perplexity, error, s->n, n_windows,
               s->n_ctx);
        return CLI_DONE;
    }
    json_t *object = json_pack("{s:f, s:f, s:I, s:I, s:I}", "perplexity", perplexity, "error", error, "tokens",
                               (json_int_t)s->n, "windows", (json_int_t)n_windows, "n_ctx", (json_int_t)s->n_ctx);
    int code = object && json_dumpf(object, stdout, JSON_INDENT(2)) == 0 ? CLI_DONE : cli_fail("could not write JSON");
    putchar('\n');
    json_decref(object);
    return code;
}

static int score_text(const perplexity_args *args, const frit_model *model, frit_engine *engine, const cli_text *text)
{
    size_t n_tokens = 0;
    frit_token *tokens = cli_tokens(model, text->data, text->n, FRIT_TEXT_SPECIAL, &n_tokens);
    if (!tokens) return CLI_FAILED;
    frit_engine_info info;
    frit_engine_get_info(engine, &info);
    score s = {.n_ctx = (size_t)info.n_ctx};
    size_t n_windows = n_tokens / s.n_ctx, limit = (size_t)args->perplexity.n_windows;
    if (limit > 0 && n_windows > limit) n_windows = limit;
    if (n_windows == 0) {
        free(tokens);
        return cli_fail("perplexity: the text has %zu tokens, one window needs %zu; choose a smaller -c", n_tokens,
                        s.n_ctx);
    }
    frit_session *session = NULL;
    frit_status status = frit_session_new(&session, engine);
    frit_token bos;
    bool has_bos = find_bos(model, &bos);
    cli_progress progress;
    cli_progress_start(&progress, &args->common, "scoring");
    for (size_t w = 0; w < n_windows && status == FRIT_OK; w++) {
        if (has_bos) tokens[w * s.n_ctx] = bos;
        s.window = tokens + w * s.n_ctx;
        status = score_window(engine, session, &s);
        if (!cli_progress_step(&progress, (double)(w + 1) / (double)n_windows)) status = FRIT_E_CANCELLED;
    }
    cli_progress_end(&progress);
    frit_session_free(session);
    free(tokens);
    if (status == FRIT_E_CANCELLED) return CLI_INTERRUPTED;
    return status == FRIT_OK ? print_score(args, &s, n_windows) : cli_report(status);
}

static int run(void *ctx)
{
    perplexity_args *args = ctx;
    if (!args->perplexity.file) return cli_usage("perplexity: -f FILE is missing");
    if (args->engine.n_ctx == 0) args->engine.n_ctx = 512;
    if (args->engine.n_ctx < 4)
        return cli_usage("perplexity: -c %d: a window needs at least 4 tokens", args->engine.n_ctx);
    frit_model *model = NULL;
    frit_engine *engine = NULL;
    cli_text text = {0};
    const char *path = args->common.n_positional > 0 ? args->common.positional[0] : NULL;
    int code = cli_read_file(args->perplexity.file, &text);
    if (code == CLI_DONE) code = cli_open_model(&model, &args->common, &args->model, path);
    if (code == CLI_DONE) code = cli_open_engine(&engine, model, &args->engine);
    if (code == CLI_DONE) code = score_text(args, model, engine, &text);
    frit_engine_free(engine);
    frit_model_free(model);
    free(text.data);
    return code;
}

static const cli_group groups[] = {
    {"Text", perplexity_rows, offsetof(perplexity_args, perplexity)},
    {"Engine", frit_engine_option_rows, offsetof(perplexity_args, engine)},
    {"Model", frit_model_option_rows, offsetof(perplexity_args, model)},
    {"General", cli_common_rows, offsetof(perplexity_args, common)},
};

const cli_command cli_command_perplexity = {
    .name = "perplexity",
    .usage = "[MODEL] -f FILE [options]",
    .summary = "measure how well a model predicts a text",
    .details = "The text is cut into windows of -c tokens (512); the second half of each window counts.\n"
               "\n"
               "  frit perplexity model.gguf -f text.txt -c 512",
    .max_positional = 1,
    .args_bytes = sizeof(perplexity_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
