// SPDX-License-Identifier: MIT
// frit convert: converts models of other formats to GGUF files.
#include "frit/cli/cli.h"

#include <stdlib.h>

#include <string.h>

typedef struct convert_args {
    cli_common common;
    frit_convert_options convert;
} convert_args;

// In addition to warnings, prints the files that were written: only the library knows their number.
void cli_convert_log(void *ctx, frit_log_level level, const char *sentence)
{
    if (level == FRIT_LOG_INFO)
        cli_note(ctx, "%s", sentence);
    else
        cli_log(ctx, level, sentence);
}

static int run(void *ctx)
{
    convert_args *args = ctx;
    const cli_common *common = &args->common;
    const int n_named = common->model ? 1 : 0;
    if (common->n_positional + n_named != 2)
        return cli_usage("convert: expected a model and the name of the GGUF file to write, as in "
                         "'frit convert DIR OUT.gguf'");
    const char *source = common->model ? common->model : common->positional[0];
    const char *target = common->positional[common->n_positional - 1];
    int code = cli_check_writable(target);
    if (code != CLI_DONE) return code;
    code = cli_convert(common, source, target, &args->convert, "converting");
    if (code == CLI_DONE) cli_note_file(common, target);
    return code;
}

void cli_note_file(const cli_common *common, const char *path)
{
    frit_model *model = NULL;
    frit_model_info info;
    char size[32];
    if (common->quiet || cli_path_kind(path) != CLI_PATH_FILE ||
        frit_model_open(&model, path, &(frit_model_options){.vocab_only = true}) != FRIT_OK)
        return;
    frit_model_get_info(model, &info);
    cli_size_text(info.n_bytes, size);
    if (info.n_params > 0)
        cli_note(common, "%s has %zu tensors, %s, %.2f bits a weight", path, info.n_tensors, size,
                 8 * (double)info.n_bytes / (double)info.n_params);
    frit_model_free(model);
}

int cli_convert(const cli_common *common, const char *named, const char *target, const frit_convert_options *options,
                const char *what)
{
    char *source, *base = NULL;
    int code = cli_find_model(common, named, &source);
    if (code == CLI_DONE && options->base) code = cli_find_model(common, options->base, &base);
    if (code != CLI_DONE) {
        free(source);
        return code;
    }
    cli_check_threads(common, "-t", options->n_threads);
    cli_progress progress;
    cli_progress_start(&progress, common, what);
    frit_convert_options with = *options;
    with.base = base;
    with.progress = cli_progress_step;
    with.progress_ctx = &progress;
    with.log = cli_convert_log;
    with.log_ctx = (void *)common;
    const frit_status status = frit_convert(source, target, &with);
    cli_progress_end(&progress);
    code = cli_report_convert(source, status);
    free(source);
    free(base);
    return code;
}

int cli_report_convert(const char *source, frit_status status)
{
    // The target can be written, so it was the source that was not found. A disk may still become full.
    const bool is_full = status == FRIT_E_IO && cli_path_kind(source) != CLI_PATH_SPECIAL;
    if (status == FRIT_OK) return CLI_DONE;
    return is_full ? cli_report(status) : cli_report_model(status);
}

static const cli_group groups[] = {
    {"Conversion", frit_convert_option_rows, offsetof(convert_args, convert)},
    {"General", cli_common_rows, offsetof(convert_args, common)},
};

const cli_command cli_command_convert = {
    .name = "convert",
    .usage = "MODEL OUT.gguf [options]",
    .summary = "write a Hugging Face folder, or another GGUF file, as GGUF",
    .details =
        "The file has what other engines expect of one: tensor names, order of rows, tokenizer, chat template. "
        "Vectors\n"
        "and what else is small stay f32. The source is read a few rows at a time, and OUT.gguf appears when it is "
        "whole.\n"
        "'frit quantize' has more options for mixes of types.\n"
        "\n"
        "  frit convert Llama-3.2-1B/ llama.gguf\n"
        "  frit convert Llama-3.2-1B/ llama-q8.gguf --type q8_0\n"
        "  frit convert Llama-3.2-1B/ llama-q4.gguf --type q4_k_m\n"
        "  frit convert big.gguf parts.gguf --split-max-size 4G",
    .max_positional = 2,
    .args_bytes = sizeof(convert_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
