// SPDX-License-Identifier: MIT
// frit perplexity: the perplexity of a model on a text.
//
// The text is tokenized once with a BOS and cut into windows of n_ctx tokens, whose first token is replaced by BOS. In
// each window only the second half counts: positions n_ctx/2 ... n_ctx-2 each predict the next token.
//
// With --kl-divergence-base FILE the predictions are written to FILE. With --kl-divergence as well, FILE is read
// instead: its predictions, usually of the same model in full precision, are compared on the text in FILE.
#include "frit/eval/kl.h"
#include "frit/eval/text_windows.h"

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
    divergence divergence;
    bool cut_off;   // the file has fewer positions than its header says
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

static void score_row(void *ctx, size_t i, const float *logits, size_t n_vocab)
{
    score *s = ctx;
    if (i < s->n_ctx / 2 || i + 1 >= s->n_ctx) return;
    const double nll = divergence_loss(logits, n_vocab, s->window[i + 1]);
    if (s->write) kl_write_row(s->write, logits);
    if (s->read && !kl_read_row(s->read, s->base)) s->cut_off = true;
    if (s->cut_off) return;
    if (s->read) divergence_add(&s->divergence, s->base, logits, n_vocab, s->window[i + 1]);
    s->sum += nll;
    s->sum_squares += nll * nll;
    s->n++;
}

// ---------------------------------------------------------------------------------------- printing

static figure perplexity_of(const score *s)
{
    double mean = s->sum / (double)s->n, variance = s->sum_squares / (double)s->n - mean * mean;
    figure f = {.value = exp(mean)};
    if (s->n > 1 && variance > 0) f.error = f.value * sqrt(variance / ((double)s->n - 1));
    return f;
}

static int print_json(score *s, size_t n_windows)
{
    figure p = perplexity_of(s);
    json_t *object = json_pack("{s:f, s:f, s:I, s:I, s:I}", "perplexity", p.value, "error", p.error, "tokens",
                               (json_int_t)s->n, "windows", (json_int_t)n_windows, "n_ctx", (json_int_t)s->n_ctx);
    if (object && s->read) {
        const divergence_figures f = divergence_finish(&s->divergence);
        json_t *more = divergence_json(&f);
        json_object_update(object, more);
        json_decref(more);
    }
    return cli_print_json(object, JSON_INDENT(2));
}

// Prints the figures of llama-perplexity, with the same number of digits.
static void print_divergence(const divergence_figures *f)
{
    printf("base perplexity %.4f +- %.4f; ratio %.6f +- %.6f, of logarithms %.6f +- %.6f; correlation %.2f %%\n",
           f->base_perplexity.value, f->base_perplexity.error, f->ratio.value, f->ratio.error, f->log_ratio.value,
           f->log_ratio.error, 100 * f->correlation);
    printf("KL divergence %.6f +- %.6f; median %.6f, 90 %% below %.6f, 95 %% below %.6f, 99 %% below %.6f, "
           "99.9 %% below %.6f, largest %.6f\n",
           f->kl.value, f->kl.error, f->kl_median, f->kl_90, f->kl_95, f->kl_99, f->kl_999, f->kl_largest);
    printf("probability of the next token changes by %.3f +- %.3f %%, root mean square %.3f +- %.3f %%\n",
           100 * f->change.value, 100 * f->change.error, 100 * f->change_rms.value, 100 * f->change_rms.error);
    printf("same likeliest token at %.3f +- %.3f %% of the positions\n", 100 * f->same_top.value,
           100 * f->same_top.error);
}

static int print_score(const perplexity_args *args, score *s, size_t n_windows)
{
    if (s->divergence.failed) return cli_no_memory();
    if (args->perplexity.json) return print_json(s, n_windows);
    figure p = perplexity_of(s);
    printf("perplexity %.4f +- %.4f over %zu tokens in %zu windows of %zu\n", p.value, p.error, s->n, n_windows,
           s->n_ctx);
    if (!s->read) return CLI_DONE;
    const divergence_figures f = divergence_finish(&s->divergence);
    print_divergence(&f);
    return CLI_DONE;
}

// ---------------------------------------------------------------------------------------- running

static int score_windows(const perplexity_args *args, frit_model *model, frit_engine *engine,
                         const cli_windows *windows, score *s)
{
    const frit_push_options push = {.output = FRIT_OUTPUT_ALL, .row = score_row, .row_ctx = s};
    frit_session *session = NULL;
    cli_adapters adapters;
    int code = cli_open_adapters(&adapters, model, &args->common, &args->adapters);
    frit_status status = code == CLI_DONE ? frit_session_new(&session, engine) : FRIT_E_INVALID;
    if (status == FRIT_OK) status = cli_use_adapters(&adapters, session);
    cli_free_adapters(&adapters);
    if (code != CLI_DONE) return code;
    cli_progress progress;
    cli_progress_start(&progress, &args->common, "scoring");
    for (size_t w = 0; w < windows->n && status == FRIT_OK && !s->cut_off && !(s->write && s->write->made.error); w++) {
        s->window = windows->tokens + w * s->n_ctx;
        status = cli_run_window(engine, session, s->window, s->n_ctx, &push);
        if (!cli_progress_step(&progress, (double)(w + 1) / (double)windows->n)) status = FRIT_E_CANCELLED;
    }
    cli_progress_end(&progress);
    frit_session_free(session);
    if (s->cut_off) return cli_fail("%s: ends within its predictions", s->read->path);
    return status == FRIT_OK ? print_score(args, s, windows->n) : cli_report(status);
}

static size_t limit_windows(const perplexity_args *args, size_t n)
{
    size_t limit = (size_t)args->perplexity.n_windows;
    return limit > 0 && n > limit ? limit : n;
}

// Compares predictions on the text of the file.
static int compare_with(const perplexity_args *args, frit_model *model, frit_engine *engine, kl_file *base)
{
    frit_model_info info;
    frit_model_get_info(model, &info);
    if (info.n_vocab != base->n_vocab)
        return cli_fail("%s: its predictions are for %d tokens, the model has %d", base->path, base->n_vocab,
                        info.n_vocab);
    cli_windows windows = {base->tokens, limit_windows(args, (size_t)base->n_windows), (size_t)base->n_ctx};
    score s = {.n_ctx = windows.n_ctx, .read = base};
    cli_windows_begin_with_bos(&windows, model);
    s.base = malloc((size_t)base->n_vocab * sizeof *s.base);
    int code = s.base ? score_windows(args, model, engine, &windows, &s) : cli_no_memory();
    divergence_free(&s.divergence);
    free(s.base);
    return code;
}

static int score_text(const perplexity_args *args, frit_model *model, frit_engine *engine, const cli_text *text)
{
    frit_engine_info engine_info;
    frit_model_info info;
    cli_windows windows = {0};
    frit_engine_get_info(engine, &engine_info);
    frit_model_get_info(model, &info);
    score s = {.n_ctx = (size_t)engine_info.n_ctx};
    kl_file out = {0};
    int code = cli_windows_cut(&windows, "perplexity", model, text, s.n_ctx, (size_t)args->perplexity.n_windows);
    if (code == CLI_DONE && args->perplexity.base) {
        code =
            kl_create(&out, args->perplexity.base, windows.tokens, (int32_t)s.n_ctx, (int32_t)windows.n, info.n_vocab);
        s.write = &out;
    }
    if (code == CLI_DONE) code = score_windows(args, model, engine, &windows, &s);
    cli_windows_free(&windows);
    return kl_close(&out, code);   // an incomplete file is removed
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

// Checks that the file of predictions can be written, if one is requested.
static int check_base(const perplexity_args *args, const char *model)
{
    const perplexity_options *o = &args->perplexity;
    const char *const inputs[] = {model, args->common.model, o->file};
    if (o->kl) return CLI_DONE;
    const int code = cli_check_target(o->base, inputs, CLI_COUNT(inputs));
    return code == CLI_DONE ? cli_check_adapters_target(o->base, &args->adapters) : code;
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
    if (code == CLI_DONE) code = check_base(args, path);
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
    if (code == CLI_DONE && !args->perplexity.kl) code = cli_check_model_target(args->perplexity.base, model);
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
    .usual =
        "file windows kl-divergence-base kl-divergence json lora ctx threads batch gpu-layers type model hf-repo quiet",
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
