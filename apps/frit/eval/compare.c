// SPDX-License-Identifier: MIT
// frit kl: the loss of smaller files of a model, measured side by side. Each file runs together with the first one on
// the same windows of a text, and nothing is stored on disk.
#include "frit/eval/divergence.h"
#include "frit/eval/plot.h"
#include "frit/eval/text_windows.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct compare_options {
    const char *file, *plot;
    int32_t n_windows;
    bool json;
} compare_options;

typedef struct compare_args {
    cli_common common;
    compare_options compare;
    frit_engine_options engine;
    frit_model_options model;
} compare_args;

// A model with an engine and a session.
typedef struct runner {
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    frit_model_info info;
    uint64_t n_bytes;   // of its files; with --type, of its tensors, because there is no file of this type
} runner;

// A smaller divergence is rounding: two runs of one model have it too.
static const double LEAST_DRAWN = 1e-6;

typedef struct comparison {
    const compare_args *args;
    runner base;
    cli_windows windows;
    float *rows;   // log-probabilities of the base: [n_ctx - 1 - n_ctx / 2][n_vocab]
    const frit_token *window;
    divergence divergence;
    size_t n_models, width;   // width: length of the longest name
    json_t *list;             // output of --json
    plot_point points[CLI_MAX_POSITIONAL];
    size_t n_points;
} comparison;

static const frit_option *compare_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "file",
         .letter = 'f',
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(compare_options, file),
         .metavar = "FILE",
         .help = "the text ('-': stdin)"},
        {.name = "windows",
         .aliases = "chunks",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(compare_options, n_windows),
         .min = 0,
         .max = 1e9,
         .fallback = "0",
         .metavar = "N",
         .help = "windows to run at most; 0: all"},
        {.name = "plot",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(compare_options, plot),
         .metavar = "FILE",
         .help = "draw KL divergence against size, as SVG"},
        {.name = "json", .type = FRIT_OPTION_FLAG, .offset = offsetof(compare_options, json), .help = "print JSON"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

// ---------------------------------------------------------------------------------------- models

static uint64_t bytes_of(const frit_model *model)
{
    frit_model_file file;
    uint64_t n_bytes = 0;
    for (size_t i = 0; frit_model_get_file(model, i, &file); i++) n_bytes += file.n_bytes;
    return n_bytes;
}

static int runner_open(runner *r, const compare_args *args, const char *path)
{
    int code = cli_open_model(&r->model, &args->common, &args->model, path);
    if (code == CLI_DONE) code = cli_check_generates(r->model, false);
    if (code == CLI_DONE) code = cli_check_model_target(args->compare.plot, r->model);
    if (code == CLI_DONE) code = cli_open_engine(&r->engine, &args->common, r->model, &args->engine);
    if (code != CLI_DONE) return code;
    frit_model_get_info(r->model, &r->info);
    r->n_bytes = args->model.type ? r->info.n_bytes : bytes_of(r->model);
    const frit_status status = frit_session_new(&r->session, r->engine);
    return status == FRIT_OK ? CLI_DONE : cli_report(status);
}

static void runner_close(runner *r)
{
    frit_session_free(r->session);
    frit_engine_free(r->engine);
    frit_model_free(r->model);
    *r = (runner){0};
}

static const char *name_of(const char *path)
{
    const char *at = strrchr(path, '/');
    return at && at[1] ? at + 1 : path;
}

// Bits per weight, from the bytes of tensors alone.
static double bits_of(const frit_model_info *info)
{
    return info->n_params > 0 ? 8 * (double)info->n_bytes / (double)info->n_params : 0;
}

// ---------------------------------------------------------------------------------------- running

static bool is_scored(const comparison *c, size_t i)
{
    return i >= c->windows.n_ctx / 2 && i + 1 < c->windows.n_ctx;
}

static float *row_of(const comparison *c, size_t i, size_t n_vocab)
{
    return c->rows + (i - c->windows.n_ctx / 2) * n_vocab;
}

static void keep_row(void *ctx, size_t i, const float *logits, size_t n_vocab)
{
    const comparison *c = ctx;
    if (is_scored(c, i)) divergence_log_probs(logits, n_vocab, row_of(c, i, n_vocab));
}

static void compare_row(void *ctx, size_t i, const float *logits, size_t n_vocab)
{
    comparison *c = ctx;
    if (is_scored(c, i)) divergence_add(&c->divergence, row_of(c, i, n_vocab), logits, n_vocab, c->window[i + 1]);
}

static frit_status run_both(comparison *c, runner *other)
{
    const frit_push_options keep = {.output = FRIT_OUTPUT_ALL, .row = keep_row, .row_ctx = c};
    const frit_push_options compare = {.output = FRIT_OUTPUT_ALL, .row = compare_row, .row_ctx = c};
    frit_status status = FRIT_OK;
    cli_progress progress;
    cli_progress_start(&progress, &c->args->common, "comparing");
    for (size_t w = 0; w < c->windows.n && status == FRIT_OK; w++) {
        c->window = c->windows.tokens + w * c->windows.n_ctx;
        status = cli_run_window(c->base.engine, c->base.session, c->window, c->windows.n_ctx, &keep);
        if (status == FRIT_OK)
            status = cli_run_window(other->engine, other->session, c->window, c->windows.n_ctx, &compare);
        if (!cli_progress_step(&progress, (double)(w + 1) / (double)c->windows.n)) status = FRIT_E_CANCELLED;
    }
    cli_progress_end(&progress);
    return status;
}

// ---------------------------------------------------------------------------------------- printing

static void print_head(const comparison *c)
{
    cli_print("%zu positions in %zu windows of %zu, compared with %s\n\n", c->divergence.n, c->windows.n,
              c->windows.n_ctx, name_of(c->base.info.path));
    cli_print("%-*s %10s %6s  %-20s %9s %9s %9s %9s  %8s %8s %8s  %s\n", (int)c->width, "model", "size", "bits",
              "KL divergence", "90 %", "95 %", "99 %", "99.9 %", "dp RMS", "dp mean", "same top", "perplexity ratio");
}

static void print_row(const comparison *c, const runner *other, const divergence_figures *f)
{
    const frit_model_info *info = &other->info;
    char size[32];
    cli_size_text(other->n_bytes, size);
    cli_print("%-*s %10s %6.3f  %.6f +- %.6f %9.5f %9.5f %9.5f %9.5f  %6.3f %% %6.3f %% %6.2f %%  %.5f +- %.5f\n",
              (int)c->width, name_of(info->path), size, bits_of(info), f->kl.value, f->kl.error, f->kl_90, f->kl_95,
              f->kl_99, f->kl_999, 100 * f->change_rms.value, 100 * f->change.value, 100 * f->same_top.value,
              f->ratio.value, f->ratio.error);
}

static int add_json(comparison *c, const runner *other, const divergence_figures *f)
{
    const frit_model_info *info = &other->info;
    json_t *object =
        json_pack("{s:s, s:I, s:f, s:f, s:f}", "model", name_of(info->path), "bytes", (json_int_t)other->n_bytes,
                  "bits", bits_of(info), "perplexity", f->perplexity.value, "error", f->perplexity.error);
    json_t *figures = divergence_json(f);
    const bool failed = !object || !figures || json_object_update(object, figures) != 0;
    json_decref(figures);
    if (failed || json_array_append_new(c->list, object) != 0) return cli_no_memory();
    return CLI_DONE;
}

static int report(comparison *c, const runner *other)
{
    const divergence_figures f = divergence_finish(&c->divergence);
    c->points[c->n_points].bytes = (double)other->n_bytes;
    c->points[c->n_points].error = f.kl.error;
    c->points[c->n_points++].kl = f.kl.value > LEAST_DRAWN ? f.kl.value : 0;
    if (c->args->compare.json) return add_json(c, other, &f);
    if (c->n_models++ == 0) print_head(c);
    print_row(c, other, &f);
    return cli_flush() ? CLI_DONE : CLI_INTERRUPTED;
}

static int print_json(comparison *c)
{
    const frit_model_info *info = &c->base.info;
    json_t *object = json_pack("{s:{s:s, s:I, s:f}, s:I, s:I, s:O}", "base", "model", name_of(info->path), "bytes",
                               (json_int_t)c->base.n_bytes, "bits", bits_of(info), "windows", (json_int_t)c->windows.n,
                               "n_ctx", (json_int_t)c->windows.n_ctx, "models", c->list);
    return cli_print_json(object, JSON_INDENT(2));
}

// ---------------------------------------------------------------------------------------- the command

static int compare_one(comparison *c, const char *path)
{
    runner other = {0};
    int code = runner_open(&other, c->args, path);
    if (code == CLI_DONE && other.info.n_vocab != c->base.info.n_vocab)
        code = cli_fail("%s: has %d tokens, %s has %d: these are different models", path, other.info.n_vocab,
                        c->base.info.path, c->base.info.n_vocab);
    divergence_free(&c->divergence);
    const frit_status status = code == CLI_DONE ? run_both(c, &other) : FRIT_OK;
    if (status != FRIT_OK) code = cli_report(status);
    if (code == CLI_DONE) code = c->divergence.failed ? cli_no_memory() : report(c, &other);
    runner_close(&other);
    return code;
}

static int compare_all(comparison *c, const char *const *paths, size_t n)
{
    const size_t n_rows = c->windows.n_ctx - 1 - c->windows.n_ctx / 2;
    c->rows = malloc(n_rows * (size_t)c->base.info.n_vocab * sizeof *c->rows);
    c->list = json_array();
    int code = c->rows && c->list ? CLI_DONE : cli_no_memory();
    for (size_t i = 0; i < n; i++)
        if (strlen(name_of(paths[i])) > c->width) c->width = strlen(name_of(paths[i]));
    for (size_t i = 0; i < n && code == CLI_DONE; i++) {
        code = compare_one(c, paths[i]);
        c->points[i].name = name_of(paths[i]);
    }
    if (code == CLI_DONE && c->args->compare.json) code = print_json(c);
    if (code == CLI_DONE && c->args->compare.plot)
        code = plot_write(c->args->compare.plot, name_of(c->base.info.path), c->points, c->n_points);
    json_decref(c->list);
    free(c->rows);
    divergence_free(&c->divergence);
    return code;
}

static int run(void *ctx)
{
    compare_args *args = ctx;
    comparison c = {.args = args, .width = strlen("model")};
    cli_text text = {0};
    const char *const *paths = args->common.positional;
    const int n = args->common.n_positional;
    if (args->common.model) return cli_usage("kl: the models are arguments, as in 'frit kl BASE OTHER -f TEXT'");
    if (n < 2) return cli_usage("kl: expected two models or more, as in 'frit kl BASE OTHER -f TEXT'");
    if (!args->compare.file) return cli_usage("kl: -f FILE is missing");
    if (args->engine.n_ctx != 0 && args->engine.n_ctx < 4)
        return cli_usage("kl: -c %d: a window needs at least 4 tokens", args->engine.n_ctx);
    if (args->engine.n_ctx == 0) args->engine.n_ctx = 512;
    int code = args->compare.plot ? cli_check_writable(args->compare.plot) : CLI_DONE;
    if (code == CLI_DONE) code = cli_check_target(args->compare.plot, paths, (size_t)n);
    if (code == CLI_DONE) code = cli_check_target(args->compare.plot, &args->compare.file, 1);
    if (code != CLI_DONE) return code;
    code = cli_read_file(args->compare.file, &text);
    if (code == CLI_DONE) code = runner_open(&c.base, args, paths[0]);
    if (code == CLI_DONE)
        code = cli_windows_cut(&c.windows, "kl", c.base.model, &text, (size_t)args->engine.n_ctx,
                               (size_t)args->compare.n_windows);
    if (code == CLI_DONE) code = compare_all(&c, paths + 1, (size_t)n - 1);
    cli_windows_free(&c.windows);
    runner_close(&c.base);
    free(text.data);
    return code;
}

static const cli_group groups[] = {
    {"Text", compare_rows, offsetof(compare_args, compare)},
    {"Engine", frit_engine_option_rows, offsetof(compare_args, engine)},
    {"Model", frit_model_option_rows, offsetof(compare_args, model)},
    {"General", cli_common_rows, offsetof(compare_args, common)},
};

const cli_command cli_command_kl = {
    .name = "kl",
    .usage = "BASE MODEL ... -f FILE [options]",
    .summary = "measure side by side what smaller files of a model lose",
    .usual = "file windows plot json ctx threads batch gpu-layers type model hf-repo quiet",
    .details =
        "Each model is run beside the first one, mostly the same one in bf16 or f16, on the same windows of -c\n"
        "tokens (512); the second half of each window counts. For each model: bytes, bits a weight, the mean KL\n"
        "divergence of its predictions from the base's with the error of the mean, the values below which 90, 95,\n"
        "99 and 99.9 % of the positions stay, by how much the probability of the token that follows changes (root\n"
        "mean square and mean), how often both find the same token likeliest, and the ratio of the perplexities.\n"
        "\n"
        "  frit kl model-bf16.gguf model-q4_k_m.gguf model-q3_k_m.gguf -f text.txt --plot sizes.svg",
    .max_positional = CLI_MAX_POSITIONAL,
    .args_bytes = sizeof(compare_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
