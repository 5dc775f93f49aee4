// SPDX-License-Identifier: MIT
// frit kernels: compiles the kernels of models for NVIDIA GPUs, as archives for machines without NVRTC.
#include "frit/cli/cli.h"

#include <string.h>

typedef struct kernels_options {
    const char *folder, *gpus;
    frit_option_list shapes;
} kernels_options;

typedef struct kernels_args {
    cli_common common;
    kernels_options kernels;
    frit_engine_options engine;
    frit_model_options model;
} kernels_args;

#define KERNELS(field, ...)                                     \
    {                                                           \
        .offset = offsetof(kernels_options, field), __VA_ARGS__ \
    }

// clang-format off
static const frit_option kernels_options_rows[] = {
    KERNELS(folder, .name = "output", .letter = 'o', .type = FRIT_OPTION_TEXT, .metavar = "FOLDER",
            .help = "the folder of the archives, one for each architecture; kernels are added to those that are there"),
    KERNELS(gpus, .name = "gpu", .type = FRIT_OPTION_TEXT, .metavar = "NAMES",
            .help = "the GPUs, with commas between them, or sm_90 for all of an architecture; without it they are listed"),
    KERNELS(shapes, .name = "random", .type = FRIT_OPTION_LIST, .metavar = "SHAPE",
            .help = "a known model without its file, as of 'frit bench'; --type names the type of its matrices"),
};
// clang-format on

static const frit_option *kernels_rows(size_t *n_rows)
{
    *n_rows = CLI_COUNT(kernels_options_rows);
    return kernels_options_rows;
}

static int list_gpus(void)
{
    frit_kernels_gpu gpu;
    cli_print("%-12s %-8s %s\n", "gpu", "arch", "multiprocessors");
    for (size_t i = 0; frit_kernels_get_gpu(i, &gpu); i++)
        cli_print("%-12s sm_%-5d %d\n", gpu.name, gpu.arch, gpu.n_multiprocessors);
    return CLI_DONE;
}

// True if the list has the GPU's name or its architecture.
static bool is_wanted(const char *list, const frit_kernels_gpu *gpu)
{
    char arch[16];
    snprintf(arch, sizeof arch, "sm_%d", gpu->arch);
    for (const char *at = list; *at;) {
        const size_t n = strcspn(at, ",");
        if ((n == strlen(gpu->name) && strncmp(at, gpu->name, n) == 0) || (n == strlen(arch) && !strncmp(at, arch, n)))
            return true;
        at += n + (at[n] == ',');
    }
    return false;
}

static int write_kernels(const kernels_args *args, frit_model *model, const char *gpu)
{
    char what[64];
    frit_kernels_report report;
    cli_progress progress;
    snprintf(what, sizeof what, "compiling for %s", gpu);
    cli_progress_start(&progress, &args->common, what);
    const frit_kernels_options options = {
        .folder = args->kernels.folder, .gpu = gpu, .progress = cli_progress_step, .progress_ctx = &progress};
    const frit_status status = frit_kernels_write(model, &args->engine, &options, &report);
    cli_progress_end(&progress);
    if (status != FRIT_OK) return cli_report(status);
    cli_print("%s  %s  %llu kernels, %llu new, %.1f MB\n", gpu, report.path, (unsigned long long)report.n_kernels,
              (unsigned long long)report.n_added, (double)report.n_bytes / 1e6);
    return CLI_DONE;
}

static int write_model(const kernels_args *args, frit_model *model)
{
    int code = CLI_DONE;
    bool any = false;
    frit_kernels_gpu gpu;
    for (size_t i = 0; code == CLI_DONE && frit_kernels_get_gpu(i, &gpu); i++) {
        if (!is_wanted(args->kernels.gpus, &gpu)) continue;
        any = true;
        code = write_kernels(args, model, gpu.name);
    }
    if (any) return code;
    return cli_usage("kernels: --gpu %s names no known GPU; 'frit kernels' without arguments lists them",
                     args->kernels.gpus);
}

static int write_shape(const kernels_args *args, const char *shape)
{
    const frit_random_options random = {.shape = shape, .type = args->model.type};
    const frit_model_options options = {.log = cli_log, .log_ctx = (void *)&args->common};
    frit_model *model;
    const frit_status status = frit_model_open_random(&model, &random, &options);
    if (status == FRIT_E_INVALID) return cli_usage("kernels: %s", frit_error());
    if (status != FRIT_OK) return cli_report(status);
    const int code = write_model(args, model);
    frit_model_free(model);
    return code;
}

static int write_file(const kernels_args *args, const char *path)
{
    frit_model *model;
    int code = cli_open_model(&model, &args->common, &args->model, path);
    if (code != CLI_DONE) return code;
    code = write_model(args, model);
    frit_model_free(model);
    return code;
}

static int run(void *ctx)
{
    const kernels_args *args = ctx;
    const cli_common *common = &args->common;
    const kernels_options *o = &args->kernels;
    int code = CLI_DONE;
    const bool has_model = o->shapes.n > 0 || common->n_positional > 0 || common->model || common->hf_repo;
    if (!o->gpus && !o->folder && !has_model) return list_gpus();
    if (!o->gpus) return cli_usage("kernels: --gpu NAMES is missing; 'frit kernels' without arguments lists them");
    if (!o->folder) return cli_usage("kernels: -o FOLDER is missing, the folder of the archives");
    for (size_t i = 0; i < o->shapes.n && code == CLI_DONE; i++) code = write_shape(args, o->shapes.items[i]);
    for (int i = 0; i < common->n_positional && code == CLI_DONE; i++) code = write_file(args, common->positional[i]);
    if (code == CLI_DONE && common->n_positional == 0 && o->shapes.n == 0) code = write_file(args, NULL);
    return code;
}

static const cli_group groups[] = {
    {"Kernels", kernels_rows, offsetof(kernels_args, kernels)},
    {"Engine", frit_engine_option_rows, offsetof(kernels_args, engine)},
    {"Model", frit_model_option_rows, offsetof(kernels_args, model)},
    {"General", cli_common_rows, offsetof(kernels_args, common)},
};

const cli_command cli_command_kernels = {
    .name = "kernels",
    .usage = "[MODEL...] -o FOLDER --gpu NAMES [options]",
    .summary = "compile a model's kernels for NVIDIA GPUs that need not be here",
    .usual = "output gpu random threads cache-type-k cache-type-v deterministic type model quiet",
    .details =
        "frit compiles kernels with NVRTC at the first start of a model. This command compiles them in advance, for\n"
        "machines without NVRTC: each architecture has an archive, FOLDER/sm_90.kernels, which engines find in a\n"
        "folder 'kernels' beside the program or library, in share/frit/kernels, or in the folder of --weights-cache.\n"
        "Neither weights nor a GPU are needed. Kernels depend on the type of the cache (-ctk, -ctv), which has to be\n"
        "the one that the engine will have.\n"
        "\n"
        "  frit kernels                                               the known GPUs\n"
        "  frit kernels model.gguf -o kernels --gpu h100,a100         two GPUs\n"
        "  frit kernels --random llama-8b --type q4_k_m -o kernels --gpu sm_90",
    .max_positional = CLI_MAX_POSITIONAL,
    .args_bytes = sizeof(kernels_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
