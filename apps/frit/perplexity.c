// SPDX-License-Identifier: MIT
// frit perplexity: how well a model predicts a text.
//
// The text is tokenized once with a BOS and cut into windows of n_ctx tokens, the first of which is replaced by BOS.
// Within each window the second half counts: positions n_ctx/2 ... n_ctx-2 each predict the next token.
//
// With --kl-divergence-base FILE the predictions are written to FILE; with --kl-divergence too they are compared with
// those that another model, mostly the same one in its full precision, left there: the text is then the file's.
#include "kl.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

typedef struct perplexity_options {
    const char *file, *base;
    int32_t n_windows;
    bool json, kl;
} perplexity_options;

typedef struct perplexity_args {
    cli_common common;
    perplexity_options perplexity;
    cli_adapter_options adapters;
    frit_engine_options engine;
    frit_model_options model;
} perplexity_args;

typedef struct score {
    const frit_token *window;
    size_t n_ctx;
    double sum, sum_squares;   // of -log p
    size_t n;
    kl_file *write, *read;   // NULL: neither
    float *base;             // log-probabilities of the position, from the file
    double sum_base;         // of -log p
    double *kl;              // of every position
    size_t n_same_top;
    bool cut_off;   // the file has fewer positions than it says
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
         .aliases = "chunks",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(perplexity_options, n_windows),
         .min = 0,
         .max = 1e9,
         .fallback = "0",
         .metavar = "N",
         .help = "windows to score at most; 0: all"},
        {.name = "kl-divergence-base",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(perplexity_options, base),
         .metavar = "FILE",
         .help = "write the predictions to FILE (as llama.cpp does)"},
        {.name = "kl-divergence",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(perplexity_options, kl),
         .help = "compare with the predictions in FILE, on their text"},
        {.name = "json", .type = FRIT_OPTION_FLAG, .offset = offsetof(perplexity_options, json), .help = "print JSON"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

// How far this model's prediction is from the file's: sum of p log(p / q), with p the file's.
static void compare_row(score *s, const float *logits, size_t n_vocab, double log_sum, frit_token next)
{
    size_t top = 0, base_top = 0;
    double kl = 0;
    if (!kl_read_row(s->read, s->base)) {
        s->cut_off = true;
        return;
    }
    for (size_t v = 0; v < n_vocab; v++) {
        if (s->base[v] > -KL_DEEPEST) kl += exp((double)s->base[v]) * (s->base[v] - (logits[v] - log_sum));
        if (logits[v] > logits[top]) top = v;
        if (s->base[v] > s->base[base_top]) base_top = v;
    }
    s->kl[s->n] = kl;
    s->sum_base -= s->base[next];
    s->n_same_top += top == base_top;
}

static void score_row(void *ctx, size_t i, const float *logits, size_t n_vocab)
{
    score *s = ctx;
    if (i < s->n_ctx / 2 || i + 1 >= s->n_ctx) return;
    float largest = logits[0];
    for (size_t v = 1; v < n_vocab; v++) largest = logits[v] > largest ? logits[v] : largest;
    double sum = 0;
    for (size_t v = 0; v < n_vocab; v++) sum += exp((double)logits[v] - largest);
    double log_sum = log(sum) + largest, nll = log_sum - logits[s->window[i + 1]];
    if (s->write) kl_write_row(s->write, logits);
    if (s->read) compare_row(s, logits, n_vocab, log_sum, s->window[i + 1]);
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
        status = cli_interrupted ? FRIT_E_CANCELLED : frit_engine_step(engine, &n_rows);
    }
    return status == FRIT_OK ? frit_session_status(session) : status;
}

// BOS is what an empty text becomes where the file asks for special tokens.
static bool find_bos(const frit_model *model, frit_token *bos)
{
    size_t n = 0;
    return frit_tokenize(model, "", 0, FRIT_TEXT_SPECIAL, bos, 1, &n) == FRIT_OK && n == 1;
}

// ---------------------------------------------------------------------------------------- printing

typedef struct figure {
    double value, error;
} figure;

static figure perplexity_of(const score *s)
{
    double mean = s->sum / (double)s->n, variance = s->sum_squares / (double)s->n - mean * mean;
    figure f = {.value = exp(mean)};
    if (s->n > 1 && variance > 0) f.error = f.value * sqrt(variance / ((double)s->n - 1));
    return f;
}

static int smaller_first(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The mean, and the value that a share of all positions stay below. Sorts the positions.
static figure kl_mean(score *s)
{
    figure f = {0};
    double squares = 0;
    for (size_t i = 0; i < s->n; i++) f.value += s->kl[i] / (double)s->n;
    for (size_t i = 0; i < s->n; i++) squares += (s->kl[i] - f.value) * (s->kl[i] - f.value);
    if (s->n > 1) f.error = sqrt(squares / (double)(s->n - 1) / (double)s->n);
    qsort(s->kl, s->n, sizeof *s->kl, smaller_first);
    return f;
}

static double kl_below(const score *s, double share)
{
    return s->kl[(size_t)((double)(s->n - 1) * share)];
}

static int print_json(const perplexity_args *args, score *s, size_t n_windows)
{
    (void)args;
    figure p = perplexity_of(s);
    json_t *object = json_pack("{s:f, s:f, s:I, s:I, s:I}", "perplexity", p.value, "error", p.error, "tokens",
                               (json_int_t)s->n, "windows", (json_int_t)n_windows, "n_ctx", (json_int_t)s->n_ctx);
    if (object && s->read) {
        figure kl = kl_mean(s);
        json_t *more =
            json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "perplexity_base", exp(s->sum_base / (double)s->n),
                      "kl_divergence", kl.value, "kl_divergence_error", kl.error, "kl_divergence_median",
                      kl_below(s, 0.5), "kl_divergence_99", kl_below(s, 0.99), "kl_divergence_largest", kl_below(s, 1),
                      "same_top", (double)s->n_same_top / (double)s->n);
        json_object_update(object, more);
        json_decref(more);
    }
    return cli_print_json(object, JSON_INDENT(2));
}

static int print_score(const perplexity_args *args, score *s, size_t n_windows)
{
    if (args->perplexity.json) return print_json(args, s, n_windows);
    figure p = perplexity_of(s);
    printf("perplexity %.4f +- %.4f over %zu tokens in %zu windows of %zu\n", p.value, p.error, s->n, n_windows,
           s->n_ctx);
    if (!s->read) return CLI_DONE;
    figure kl = kl_mean(s);
    printf("base perplexity %.4f\n"
           "KL divergence %.6f +- %.6f; median %.6f, 99 %% below %.6f, largest %.6f\n"
           "same likeliest token at %.2f %% of the positions\n",
           exp(s->sum_base / (double)s->n), kl.value, kl.error, kl_below(s, 0.5), kl_below(s, 0.99), kl_below(s, 1),
           100 * (double)s->n_same_top / (double)s->n);
    return CLI_DONE;
}

// ---------------------------------------------------------------------------------------- running

static int score_windows(const perplexity_args *args, frit_model *model, frit_engine *engine, frit_token *tokens,
                         size_t n_windows, score *s)
{
    frit_session *session = NULL;
    cli_adapters adapters;
    int code = cli_open_adapters(&adapters, model, &args->adapters);
    frit_status status = code == CLI_DONE ? frit_session_new(&session, engine) : FRIT_E_INVALID;
    if (status == FRIT_OK) status = cli_use_adapters(&adapters, session);
    cli_close_adapters(&adapters);
    if (code != CLI_DONE) return code;
    frit_token bos;
    bool has_bos = find_bos(model, &bos);
    cli_progress progress;
    cli_progress_start(&progress, &args->common, "scoring");
    for (size_t w = 0; w < n_windows && status == FRIT_OK && !s->cut_off && !(s->write && s->write->made.error); w++) {
        if (has_bos) tokens[w * s->n_ctx] = bos;
        s->window = tokens + w * s->n_ctx;
        status = score_window(engine, session, s);
        if (!cli_progress_step(&progress, (double)(w + 1) / (double)n_windows)) status = FRIT_E_CANCELLED;
    }
    cli_progress_end(&progress);
    frit_session_free(session);
    if (s->cut_off) return cli_fail("%s: ends within its predictions", s->read->path);
    return status == FRIT_OK ? print_score(args, s, n_windows) : cli_report(status);
}

static size_t limit_windows(const perplexity_args *args, size_t n)
{
    size_t limit = (size_t)args->perplexity.n_windows;
    return limit > 0 && n > limit ? limit : n;
}

// The text is that of the file of predictions.
static int compare_with(const perplexity_args *args, frit_model *model, frit_engine *engine, kl_file *base)
{
    frit_model_info info;
    frit_model_get_info(model, &info);
    if (info.n_vocab != base->n_vocab)
        return cli_fail("%s: its predictions are for %d tokens, the model has %d", base->path, base->n_vocab,
                        info.n_vocab);
    size_t n_windows = limit_windows(args, (size_t)base->n_windows), n_ctx = (size_t)base->n_ctx;
    score s = {.n_ctx = n_ctx, .read = base};
    s.kl = calloc(n_windows * n_ctx, sizeof *s.kl);
    s.base = malloc((size_t)base->n_vocab * sizeof *s.base);
    int code = s.kl && s.base ? score_windows(args, model, engine, base->tokens, n_windows, &s) : cli_no_memory();
    free(s.kl);
    free(s.base);
    return code;
}

static int score_text(const perplexity_args *args, frit_model *model, frit_engine *engine, const cli_text *text)
{
    size_t n_tokens = 0;
    cli_exit_on_signal(true);   // a long text takes its time
    frit_token *tokens = cli_tokens(model, text->data, text->n, FRIT_TEXT_SPECIAL, &n_tokens);
    cli_exit_on_signal(false);
    if (!tokens) return CLI_FAILED;
    frit_engine_info engine_info;
    frit_model_info info;
    frit_engine_get_info(engine, &engine_info);
    frit_model_get_info(model, &info);
    score s = {.n_ctx = (size_t)engine_info.n_ctx};
    size_t n_windows = limit_windows(args, n_tokens / s.n_ctx);
    kl_file out = {0};
    int code = CLI_DONE;
    if (n_windows == 0)
        code = cli_fail("perplexity: the text has %zu tokens, one window needs %zu; choose a smaller -c", n_tokens,
                        s.n_ctx);
    if (code == CLI_DONE && args->perplexity.base) {
        code = kl_create(&out, args->perplexity.base, tokens, (int32_t)s.n_ctx, (int32_t)n_windows, info.n_vocab);
        s.write = &out;
    }
    if (code == CLI_DONE) code = score_windows(args, model, engine, tokens, n_windows, &s);
    free(tokens);
    return kl_close(&out, code);   // half a file is of no use
}

static int check_args(const perplexity_args *args)
{
    const perplexity_options *o = &args->perplexity;
    if (o->kl && !o->base) return cli_usage("perplexity: --kl-divergence needs --kl-divergence-base FILE");
    if (o->kl && o->file) return cli_usage("perplexity: --kl-divergence scores the text in its FILE; leave out -f");
    if (!o->kl && !o->file) return cli_usage("perplexity: -f FILE is missing");
    if (args->engine.n_ctx != 0 && args->engine.n_ctx < 4)
        return cli_usage("perplexity: -c %d: a window needs at least 4 tokens", args->engine.n_ctx);
    return CLI_DONE;
}

static int run(void *ctx)
{
    perplexity_args *args = ctx;
    frit_model *model = NULL;
    frit_engine *engine = NULL;
    cli_text text = {0};
    kl_file base = {0};
    const char *path = args->common.n_positional > 0 ? args->common.positional[0] : NULL;
    int code = check_args(args);
    if (code != CLI_DONE) return code;
    if (args->perplexity.kl) {
        code = kl_open(&base, args->perplexity.base);
        if (code == CLI_DONE && args->engine.n_ctx != 0 && args->engine.n_ctx != base.n_ctx)
            code = cli_usage("perplexity: -c %d, but %s has windows of %d tokens", args->engine.n_ctx, base.path,
                             base.n_ctx);
        args->engine.n_ctx = base.n_ctx;
    } else {
        code = cli_read_file(args->perplexity.file, &text);
        if (args->engine.n_ctx == 0) args->engine.n_ctx = 512;
    }
    if (code == CLI_DONE) code = cli_open_model(&model, &args->common, &args->model, path);
    if (code == CLI_DONE) code = cli_open_engine(&engine, &args->common, model, &args->engine);
    if (code == CLI_DONE && args->perplexity.kl) code = compare_with(args, model, engine, &base);
    if (code == CLI_DONE && !args->perplexity.kl) code = score_text(args, model, engine, &text);
    frit_engine_free(engine);
    frit_model_free(model);
    free(text.data);
    return kl_close(&base, code);
}

static const cli_group groups[] = {
    {"Text", perplexity_rows, offsetof(perplexity_args, perplexity)},
    {"Adapters", cli_adapter_rows, offsetof(perplexity_args, adapters)},
    {"Engine", frit_engine_option_rows, offsetof(perplexity_args, engine)},
    {"Model", frit_model_option_rows, offsetof(perplexity_args, model)},
    {"General", cli_common_rows, offsetof(perplexity_args, common)},
};

const cli_command cli_command_perplexity = {
    .name = "perplexity",
    .usage = "[MODEL] -f FILE [options]",
    .summary = "measure how well a model predicts a text",
    .details =
        "The text is cut into windows of -c tokens (512); the second half of each window counts. Predictions can\n"
        "be kept, and those of another model compared with them: what quantization costs.\n"
        "\n"
        "  frit perplexity model.gguf -f text.txt -c 512\n"
        "  frit perplexity model-f32.gguf -f text.txt --kl-divergence-base predictions\n"
        "  frit perplexity model-q4_0.gguf --kl-divergence-base predictions --kl-divergence",
    .max_positional = 1,
    .args_bytes = sizeof(perplexity_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
