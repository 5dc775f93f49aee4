// SPDX-License-Identifier: MIT
// frit imatrix: importance files: the importance of the columns of matrices, measured over a text.
//
// The text is tokenized once with a BOS and cut into windows of n_ctx tokens, whose first token is replaced by BOS, as
// in llama-imatrix. All positions count.
#include "frit/eval/text_windows.h"

#include "hub/disk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct imatrix_options {
    const char *file, *show;
    frit_option_list merge;
    int32_t n_windows;
    bool legacy;
} imatrix_options;

typedef struct imatrix_args {
    cli_common common;
    imatrix_options imatrix;
    frit_engine_options engine;
    frit_model_options model;
    const char *target;
} imatrix_args;

static const frit_option *imatrix_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "file",
         .letter = 'f',
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(imatrix_options, file),
         .metavar = "FILE",
         .help = "the text ('-': stdin); without one the model writes 131,072 tokens itself"},
        {.name = "windows",
         .aliases = "chunks",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(imatrix_options, n_windows),
         .min = 0,
         .max = 1e9,
         .fallback = "0",
         .metavar = "N",
         .help = "windows to read at most; 0: all"},
        {.name = "merge",
         .aliases = "in-file",
         .type = FRIT_OPTION_LIST,
         .offset = offsetof(imatrix_options, merge),
         .metavar = "FILE",
         .help = "add the sums of this importance file; may be repeated"},
        {.name = "legacy",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(imatrix_options, legacy),
         .help = "write the older format (.dat)"},
        {.name = "show",
         .aliases = "show-statistics",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(imatrix_options, show),
         .metavar = "FILE",
         .help = "print what an importance file says about each matrix, and end"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static int done_or_report(frit_status status)
{
    return status == FRIT_OK ? CLI_DONE : cli_report(status);
}

// ---------------------------------------------------------------------------------------- statistics

static int show(const char *path)
{
    frit_importance *importance;
    frit_importance_info info;
    const frit_status status = frit_importance_read(&importance, path);
    if (status != FRIT_OK) return cli_report(status);
    cli_print("%-36s %8s %10s %12s %12s %12s %12s %8s %8s\n", "matrix", "columns", "tokens", "sum", "min", "max",
              "mean", "active", "entropy");
    for (size_t i = 0; frit_importance_get_info(importance, i, &info); i++) {
        cli_print("%-36s %8" PRIu64 " %10" PRId64 " %12.5g %12.5g %12.5g %12.5g %7.2f%% %8.3f", info.name,
                  info.n_values, info.n_tokens, info.sum, info.min, info.max, info.mean, 100 * info.active,
                  info.entropy);
        if (info.n_counts_zero > 0)
            cli_print("  %" PRIu64 " of %" PRIu64 " experts without tokens", info.n_counts_zero, info.n_counts);
        cli_print("\n");
    }
    frit_importance_free(importance);
    return CLI_DONE;
}

// ---------------------------------------------------------------------------------------- measuring

static void ignore_row(void *ctx, size_t i, const float *values, size_t n)
{
    (void)ctx, (void)i, (void)values, (void)n;
}

static frit_status run_windows(const imatrix_args *args, frit_engine *engine, const cli_windows *windows)
{
    const frit_push_options push = {.output = FRIT_OUTPUT_EMBEDDINGS, .row = ignore_row};
    frit_session *session;
    cli_progress progress;
    frit_status status = frit_session_new(&session, engine);
    if (status != FRIT_OK) return status;
    cli_progress_start(&progress, &args->common, "measuring");
    for (size_t w = 0; w < windows->n && status == FRIT_OK; w++) {
        status = cli_run_window(engine, session, windows->tokens + w * windows->n_ctx, windows->n_ctx, &push);
        if (!cli_progress_step(&progress, (double)(w + 1) / (double)windows->n)) status = FRIT_E_CANCELLED;
    }
    cli_progress_end(&progress);
    frit_session_free(session);
    return status;
}

// Measures over text that the model writes.
static int write_windows(const imatrix_args *args, frit_model *model, size_t n_ctx, cli_windows *windows)
{
    enum { WINDOWS = 256 };
    cli_progress progress;
    const size_t n = args->imatrix.n_windows > 0 ? (size_t)args->imatrix.n_windows : WINDOWS;
    const frit_samples_options options = {.n_windows = n,
                                          .n_ctx = n_ctx,
                                          .n_threads = args->engine.n_threads,
                                          .progress = cli_progress_step,
                                          .progress_ctx = &progress};
    *windows = (cli_windows){calloc(n * n_ctx, sizeof *windows->tokens), n, n_ctx};
    if (!windows->tokens) return cli_no_memory();
    cli_progress_start(&progress, &args->common, "writing samples");
    const frit_status status = frit_samples_write(model, &options, windows->tokens);
    cli_progress_end(&progress);
    return done_or_report(status);
}

static int measure_text(const imatrix_args *args, frit_model *model, frit_engine *engine, const cli_text *text,
                        frit_importance_file *file)
{
    frit_engine_info info;
    cli_windows windows = {0};
    frit_engine_get_info(engine, &info);
    int code = !text->data ? write_windows(args, model, (size_t)info.n_ctx, &windows)
                           : cli_windows_cut(&windows, "imatrix", model, text, (size_t)info.n_ctx,
                                             (size_t)args->imatrix.n_windows);
    if (code == CLI_DONE) code = done_or_report(run_windows(args, engine, &windows));
    file->n_chunks += (int32_t)windows.n;
    file->chunk_size = info.n_ctx;
    file->dataset = args->imatrix.file ? args->imatrix.file : "own samples";
    cli_windows_free(&windows);
    return code;
}

static int measure(imatrix_args *args, frit_importance *importance, const char *path, frit_importance_file *file)
{
    frit_model *model = NULL;
    frit_engine *engine = NULL;
    cli_text text = {0};
    int code = args->imatrix.file ? cli_read_file(args->imatrix.file, &text) : CLI_DONE;
    if (args->engine.n_ctx == 0) args->engine.n_ctx = 512;
    if (!args->engine.device) args->engine.device = "cpu";
    if (code == CLI_DONE) code = cli_open_model(&model, &args->common, &args->model, path);
    if (code == CLI_DONE) code = cli_check_model_target(args->target, model);
    if (code == CLI_DONE) code = cli_open_engine(&engine, &args->common, model, &args->engine);
    if (code == CLI_DONE) code = done_or_report(frit_engine_observe(engine, importance));
    if (code == CLI_DONE) code = measure_text(args, model, engine, &text, file);
    frit_engine_free(engine);
    frit_model_free(model);
    free(text.data);
    return code;
}

// ---------------------------------------------------------------------------------------- files

static int merge_files(const imatrix_args *args, frit_importance *importance)
{
    for (size_t i = 0; i < args->imatrix.merge.n; i++) {
        const char *path = args->imatrix.merge.items[i];
        frit_importance *other;
        frit_status status = frit_importance_read(&other, path);
        if (status != FRIT_OK) return cli_report(status);
        status = frit_importance_merge(importance, other);
        frit_importance_free(other);
        if (status == FRIT_E_INVALID) return cli_usage("%s: %s", path, frit_error());
        if (status != FRIT_OK) return cli_report(status);
    }
    return CLI_DONE;
}

static void say_written(const imatrix_args *args, const frit_importance *importance)
{
    frit_importance_info info;
    size_t n = 0;
    uint64_t n_values = 0;
    for (; frit_importance_get_info(importance, n, &info); n++) n_values += info.n_values;
    char size[32];
    const uint64_t n_bytes = hub_file_bytes(args->target);
    cli_size_text(n_bytes, size);
    cli_note(&args->common, "%s is written: %zu matrices with %" PRIu64 " columns, %s%s", args->target, n, n_values,
             n_bytes == UINT64_MAX ? "" : size, n_bytes == UINT64_MAX ? "of unknown size" : "");
}

static int make_file(imatrix_args *args, const char *model)
{
    frit_importance *importance, *measured;
    frit_importance_file file = {.legacy = args->imatrix.legacy};
    if (frit_importance_new(&importance) != FRIT_OK || frit_importance_new(&measured) != FRIT_OK)
        return cli_no_memory();
    const bool measures = args->imatrix.file || args->imatrix.merge.n == 0;
    int code = measures ? measure(args, measured, model, &file) : CLI_DONE;
    if (code == CLI_DONE && measures) code = done_or_report(frit_importance_merge(importance, measured));
    if (code == CLI_DONE) code = merge_files(args, importance);
    if (args->imatrix.merge.n > 0) file.n_chunks = 0;   // the windows of the merged files are counted already
    if (code == CLI_DONE) code = done_or_report(frit_importance_write(importance, args->target, &file));
    if (code == CLI_DONE) say_written(args, importance);
    frit_importance_free(importance);
    frit_importance_free(measured);
    return code;
}

// A single argument may be the model by mistake, and the importance of the bundled model would overwrite it.
static bool is_model(const char *path)
{
    frit_model *model;
    const char *type;
    size_t n = 0;
    if (cli_path_kind(path) != CLI_PATH_FILE ||
        frit_model_open(&model, path, &(frit_model_options){.vocab_only = true}) != FRIT_OK)
        return false;
    const bool is_importance = frit_model_meta_text(model, "general.type", 0, &type, &n) == FRIT_OK && n == 7 &&
                               memcmp(type, "imatrix", n) == 0;
    frit_model_free(model);
    return !is_importance;
}

static int check_target(const imatrix_args *args, const char *model)
{
    const char *const inputs[] = {model ? model : args->common.model, args->imatrix.file};
    int code = cli_check_writable(args->target);
    if (code == CLI_DONE) code = cli_check_target(args->target, inputs, CLI_COUNT(inputs));
    if (code == CLI_DONE) code = cli_check_target(args->target, args->imatrix.merge.items, args->imatrix.merge.n);
    if (code == CLI_DONE && is_model(args->target))
        code = cli_usage("imatrix: '%s' is a model, expected the name of the importance file to write after it, as in "
                         "'frit imatrix MODEL OUT.gguf -f TEXT'",
                         args->target);
    return code;
}

static int run(void *ctx)
{
    imatrix_args *args = ctx;
    const imatrix_options *o = &args->imatrix;
    const cli_common *common = &args->common;
    if (o->show) return show(o->show);
    const int n = common->n_positional, n_most = (o->file || o->merge.n == 0) && !common->model ? 2 : 1;
    const bool is_bare = !o->file && !common->model && o->merge.n == 0;
    if (is_bare && n == 0) return cli_usage("imatrix: MODEL, --merge FILE or --show FILE is missing");
    if (is_bare && n == 1)
        return cli_usage("imatrix: OUT.gguf is missing, the name of the file to write, as in 'frit imatrix MODEL "
                         "OUT.gguf'");
    if (n < 1 || n > n_most)
        return cli_usage("imatrix: expected the name of the file to write, as in 'frit imatrix MODEL OUT.gguf -f TEXT' "
                         "or 'frit imatrix OUT.gguf --merge A --merge B'");
    if (args->engine.n_ctx != 0 && args->engine.n_ctx < 16)
        return cli_usage("imatrix: -c %d: a window needs at least 16 tokens", args->engine.n_ctx);
    const char *model = n == 2 ? common->positional[0] : NULL;
    args->target = common->positional[common->n_positional - 1];
    const int code = check_target(args, model);
    return code == CLI_DONE ? make_file(args, model) : code;
}

static const cli_group groups[] = {
    {"Text", imatrix_rows, offsetof(imatrix_args, imatrix)},
    {"Engine", frit_engine_option_rows, offsetof(imatrix_args, engine)},
    {"Model", frit_model_option_rows, offsetof(imatrix_args, model)},
    {"General", cli_common_rows, offsetof(imatrix_args, common)},
};

const cli_command cli_command_imatrix = {
    .name = "imatrix",
    .usage = "MODEL OUT.gguf [-f TEXT] [options]",
    .summary = "measure which columns of a model's matrices matter, for quantize",
    .usual = "file windows merge legacy show ctx threads batch gpu-layers type model hf-repo quiet",
    .details =
        "The text is cut into windows of -c tokens (512); without -f the model writes 131,072 tokens itself. For\n"
        "each matrix the file has the sums of the squares of what it multiplies, and how many tokens these were; of\n"
        "experts for each. llama-quantize reads the files,\n"
        "and 'frit quantize --importance' those of llama-imatrix.\n"
        "\n"
        "  frit imatrix model.gguf model.imatrix.gguf -f text.txt\n"
        "  frit quantize model.gguf small.gguf --mix q4_k_m --importance model.imatrix.gguf\n"
        "  frit imatrix both.gguf --merge a.gguf --merge b.gguf\n"
        "  frit imatrix --show both.gguf",
    .max_positional = 2,
    .args_bytes = sizeof(imatrix_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
