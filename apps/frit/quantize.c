// SPDX-License-Identifier: MIT
// frit quantize: models in mixtures of types, and the table of the resulting tensors.
#include "frit/cli/cli.h"
#include "hub/disk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct quantize_size {
    const char *size, *types, *file, *state, *reuse;
    float bits;
    int32_t n_windows;
} quantize_size;

typedef struct quantize_args {
    cli_common common;
    frit_convert_options convert;
    frit_quantize_options quantize;
    quantize_size size;
    cli_refine_options refine;
    bool plan;
} quantize_args;

static const frit_option *size_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "size",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(quantize_size, size),
         .metavar = "SIZE",
         .help = "bytes of the file at most (300M, 4.5G): each matrix gets the type that serves best"},
        {.name = "bits",
         .type = FRIT_OPTION_FLOAT,
         .offset = offsetof(quantize_size, bits),
         .max = 32,
         .metavar = "N",
         .help = "bits of a number on average, instead of a size (4.25)"},
        {.name = "types",
         .type = FRIT_OPTION_CHOICE,
         .offset = offsetof(quantize_size, types),
         .choices = "k|all",
         .fallback = "k",
         .metavar = "TYPES",
         .help = "k: types that are fast everywhere; all: i-quants too"},
        {.name = "file",
         .letter = 'f',
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(quantize_size, file),
         .metavar = "FILE",
         .help = "the text to measure with ('-': stdin); without one the model writes it"},
        {.name = "windows",
         .aliases = "chunks",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(quantize_size, n_windows),
         .min = 0,
         .max = 1e9,
         .fallback = "0",
         .metavar = "N",
         .help = "windows of the text to measure with at most, of a mix to refine with; 0: 256 (own with --fast: 64), "
                 "all of a mix's text"},
        {.name = "state",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(quantize_size, state),
         .metavar = "FILE",
         .help = "keep what was measured, for other sizes; by default OUT.gguf.state until the file is written"},
        {.name = "reuse",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(quantize_size, reuse),
         .metavar = "FILE",
         .help = "copy tensors that are the same in an earlier file, of a size or with importance, "
                 "instead of encoding them"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static const frit_option *plan_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "plan",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(quantize_args, plan),
         .help = "print what becomes of each tensor, and write nothing",
         .aliases = "dry-run"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

// The text that a size was measured with, if the model wrote it; refining uses the same text.
typedef struct own_samples {
    frit_token *tokens;
    size_t n;
} own_samples;

typedef struct plan {
    uint64_t n_bytes;
    int64_t n_elems;
    size_t n_tensors, n_needing;
    double kl;
    bool has_prices;
} plan;

static void print_tensor(void *ctx, const frit_planned_tensor *tensor, double kl)
{
    plan *p = ctx;
    char shape[96], size[32];
    int n = 0;
    int64_t n_elems = 1;
    for (int i = 0; i < tensor->n_dims; i++) {
        n += snprintf(shape + n, sizeof shape - (size_t)n, "%s%" PRId64, i > 0 ? " x " : "", tensor->shape[i]);
        n_elems *= tensor->shape[i];
    }
    if (p->n_tensors++ == 0)
        cli_print("%-40s %-22s %-8s %-8s %10s  %s%s\n", "tensor", "shape", "from", "to", "size", "importance",
                  p->has_prices ? "  KL divergence" : "");
    cli_size_text(tensor->n_bytes, size);
    const bool lacks = tensor->needs_importance && !tensor->has_importance;
    const char *importance = tensor->has_importance ? "  yes" : lacks ? "  missing" : "";
    cli_print("%-40s %-22s %-8s %-8s %10s%s", tensor->name, shape, tensor->from, tensor->to, size, importance);
    if (p->has_prices && kl > 0) cli_print("%*s%.6f", (int)(14 - strlen(importance)), "", kl);
    cli_print("\n");
    p->kl += kl;
    p->n_bytes += tensor->n_bytes;
    p->n_elems += n_elems;
    p->n_needing += lacks;
}

static void print_unpriced(void *ctx, const frit_planned_tensor *tensor)
{
    print_tensor(ctx, tensor, 0);
}

// ---------------------------------------------------------------------------------------- sizes

typedef struct phases {
    cli_progress progress;
    const cli_common *common;
} phases;

static void begin_phase(void *ctx, const char *what)
{
    phases *p = ctx;
    cli_progress_end(&p->progress);
    cli_progress_start(&p->progress, p->common, what);
}

static bool is_sized(const quantize_args *args)
{
    return args->size.size || args->size.bits > 0;
}

// The path of measurements beside the file, which exists until the file is finished, so that a stopped run can
// continue, also while refining.
static char *state_path(const char *target)
{
    const size_t n = strlen(target) + sizeof ".state";
    char *path = malloc(n);
    if (path) snprintf(path, n, "%s.state", target);
    return path;
}

static int run_allocate(const quantize_args *args, const char *source, const char *target, frit_convert_options *with,
                        frit_allocate_options *options)
{
    phases shown = {.common = &args->common};
    options->phase = begin_phase;
    options->phase_ctx = &shown;
    with->progress = cli_progress_step;
    with->progress_ctx = &shown.progress;
    with->log = cli_convert_log;
    with->log_ctx = (void *)&args->common;
    cli_progress_start(&shown.progress, &args->common, "reading");
    const frit_status status = frit_allocate(source, target, with, options);
    cli_progress_end(&shown.progress);
    const bool is_kept = status == FRIT_E_CANCELLED && options->state;
    if (is_kept) cli_note(&args->common, "the next run continues from %s", options->state);
    return status == FRIT_OK ? CLI_DONE : cli_report_convert(source, status);
}

// Keeps the samples. If memory is short, they are written again later.
static void take_samples(void *ctx, const frit_token *tokens, size_t n)
{
    own_samples *own = ctx;
    own->tokens = malloc(n * sizeof *tokens);
    own->n = own->tokens ? n : 0;
    if (own->tokens) memcpy(own->tokens, tokens, n * sizeof *tokens);
}

// The number of windows that the model writes: importance and prices need fewer than covariance.
static int32_t windows_of(const quantize_args *args, const cli_text *text)
{
    enum { FEW = 64 };
    return args->size.n_windows == 0 && args->refine.fast && !text->data ? FEW : args->size.n_windows;
}

// `table` NULL: writes the file. `text` without data: the model writes a text, which `samples` gets.
static int allocate(const quantize_args *args, const char *source, const char *target, frit_convert_options *with,
                    const cli_text *text, own_samples *samples, plan *table)
{
    const quantize_size *o = &args->size;
    char *own = o->state || table ? NULL : state_path(target);
    frit_allocate_options options = {.size = o->size,
                                     .bits = o->bits,
                                     .types = o->types,
                                     .text = text->data,
                                     .n_text = text->n,
                                     .n_windows = windows_of(args, text),
                                     .tokens = samples && !text->data ? take_samples : NULL,
                                     .tokens_ctx = samples,
                                     .state = o->state ? o->state : own,
                                     .reuse = o->reuse,
                                     .plan = table ? print_tensor : NULL,
                                     .plan_ctx = table};
    const int code = run_allocate(args, source, target, with, &options);
    free(own);
    return code;
}

static int plan_size(const quantize_args *args, const char *source, frit_convert_options *with, plan *table)
{
    cli_text text = {0};
    int code = args->size.file ? cli_read_file(args->size.file, &text) : CLI_DONE;
    if (code == CLI_DONE) code = allocate(args, source, NULL, with, &text, NULL, table);
    free(text.data);
    return code;
}

static int print_plan(const quantize_args *args, const char *source, frit_convert_options *with)
{
    plan p = {.has_prices = is_sized(args)};
    frit_quantize_options quantize = *with->quantize;
    if (!p.has_prices) quantize.plan = print_unpriced;
    quantize.plan_ctx = &p;
    with->quantize = &quantize;
    const int code =
        p.has_prices ? plan_size(args, source, with, &p) : cli_convert(&args->common, source, NULL, with, "reading");
    if (code != CLI_DONE) return code;
    char size[32];
    cli_size_text(p.n_bytes, size);
    cli_print("%zu tensors, %s, %.2f bits a number\n", p.n_tensors, size,
              p.n_elems > 0 ? 8 * (double)p.n_bytes / (double)p.n_elems : 0);
    if (p.has_prices) cli_print("the predicted KL divergence is %.6f, before matrices are rounded again\n", p.kl);
    if (p.n_needing > 0) cli_print("%zu tensors need importance: give --importance FILE\n", p.n_needing);
    return CLI_DONE;
}

// Makes the job that refines a file of a chosen size. It uses the text of the measurement without its limit of windows,
// unless another text is named.
static cli_refine_job refine_job(const quantize_args *args, const cli_text *measured, const cli_text *named,
                                 const own_samples *samples)
{
    const bool reads = cli_refine_reads(&args->refine), by_default = !args->refine.file;
    return (cli_refine_job){.text = reads                          ? named
                                    : by_default && measured->data ? measured
                                                                   : NULL,
                            .tokens = samples->tokens,
                            .n_tokens = samples->n,
                            .n_windows = reads && is_sized(args) ? 0 : args->size.n_windows,
                            .n_threads = args->convert.n_threads,
                            .by_default = by_default,
                            .verbose = args->refine.verbose};
}

// Removes the state file if it was made for this target only.
static void remove_state(const quantize_args *args, const char *target)
{
    char *own = args->size.state ? NULL : state_path(target);
    if (own) remove(own);
    free(own);
}

// Prints the size of the finished file. A split set is several files.
static void say_bytes(const quantize_args *args, const char *target)
{
    const uint64_t n_bytes = hub_file_bytes(target);
    if (n_bytes == UINT64_MAX || args->convert.split_max_size) return;
    if (args->size.size)
        cli_note(&args->common, "%s has %" PRIu64 " bytes, at most %s are allowed", target, n_bytes, args->size.size);
    else
        cli_note(&args->common, "%s has %" PRIu64 " bytes for a requested %g bits a number", target, n_bytes,
                 (double)args->size.bits);
}

static bool refines(const quantize_args *args)
{
    return args->refine.file || (is_sized(args) && !args->refine.fast);
}

// Reads texts, and reports errors that would occur later, before the long work.
static int quantize(const quantize_args *args, const char *source, const char *target, frit_convert_options *with)
{
    const bool sized = is_sized(args);
    cli_text text = {0}, named = {0};
    own_samples samples = {0};
    int code = cli_check_writable(target);
    if (code == CLI_DONE && args->size.file) code = cli_read_file(args->size.file, &text);
    if (code == CLI_DONE && cli_refine_reads(&args->refine)) code = cli_read_file(args->refine.file, &named);
    cli_refine_job job = refine_job(args, &text, &named, &samples);
    if (code == CLI_DONE && args->refine.file) code = cli_refine_check(&args->common, source, &job);
    if (code == CLI_DONE)
        code = sized ? allocate(args, source, target, with, &text, &samples, NULL)
                     : cli_convert(&args->common, source, target, with, "quantizing");
    job = refine_job(args, &text, &named, &samples);   // with the written samples
    if (code == CLI_DONE && refines(args)) code = cli_refine(&args->common, source, target, &job);
    if (code == CLI_DONE && sized) say_bytes(args, target);
    if (code == CLI_DONE) cli_note_file(&args->common, target);
    if (code == CLI_DONE && sized) remove_state(args, target);
    free(text.data);
    free(named.data);
    free(samples.tokens);
    return code;
}

// Refuses options that have no effect or exclude each other. Variables do not count, because they apply to all
// commands.
static int check_options(const quantize_args *args, const char *source)
{
    const cli_common *common = &args->common;
    const bool sized = is_sized(args);
    if (cli_is_typed(common, "bits") && !(args->size.bits > 0))
        return cli_usage("quantize: --bits is %g, expected a number above 0 and up to 32", (double)args->size.bits);
    if (sized && (args->quantize.mix || args->quantize.pure || args->convert.type))
        return cli_usage("quantize: --size and --bits choose types, so --mix, --pure and --type cannot be given too");
    if (!sized && (args->size.file || args->size.state))
        return cli_usage("quantize: -f and --state are for measuring; give --size or --bits too");
    if (!sized && cli_is_typed(common, "types"))
        return cli_usage("quantize: --types is for --size and --bits; a mix has its own types");
    if (!sized && !args->refine.file && cli_is_typed(common, "windows"))
        return cli_usage("quantize: --windows limits a text; give --size, --bits or --refine too");
    if (!sized && args->refine.fast)
        return cli_usage(
            "quantize: --fast is for --size and --bits; a mix is rounded again only where --refine says so");
    if (args->refine.fast && args->refine.file)
        return cli_usage("quantize: --fast does not round again, so --refine cannot be given too");
    const bool stays = !args->refine.file && cli_path_kind(source) == CLI_PATH_FOLDER;   // as rounded first
    if (args->convert.split_max_size && refines(args) && !stays && !args->plan)
        return cli_usage("quantize: --split-max-size makes a set of files, which cannot be rounded again; expected %s",
                         args->refine.file ? "no --refine, or one file" : "--fast, or one file");
    return CLI_DONE;
}

// Checks the files to write: the result and the measurements. `target` NULL: only the plan.
static int check_targets(const quantize_args *args, const char *source, const char *target)
{
    const quantize_size *o = &args->size;
    const char *const inputs[] = {source, args->quantize.importance, o->file, args->refine.file, o->reuse};
    char *own = target && is_sized(args) && !o->state ? state_path(target) : NULL;
    const char *state = o->state ? o->state : own;
    int code = cli_check_target(target, inputs, CLI_COUNT(inputs));
    if (code == CLI_DONE) code = cli_check_target(state, inputs, CLI_COUNT(inputs));
    if (code == CLI_DONE && target && state && (strcmp(target, state) == 0 || hub_is_same_file(target, state)))
        code = cli_usage("quantize: --state is '%s', the file to write; expected another name", state);
    free(own);
    return code;
}

static int find_importance(quantize_args *args, char **path)
{
    const char *named = args->quantize.importance;
    *path = NULL;
    if (!named) return CLI_DONE;
    const int code = cli_find_file(&args->common, named, path);
    if (code == CLI_DONE && cli_path_kind(*path) == CLI_PATH_NONE)
        return cli_fail("quantize: --importance: there is no file '%s'", named);
    if (code == CLI_DONE) args->quantize.importance = *path;
    return code;
}

static int run(void *ctx)
{
    quantize_args *args = ctx;
    const cli_common *common = &args->common;
    const int n = common->n_positional + (common->model ? 1 : 0);
    if (n > 2)   // llama-quantize takes the type as an argument
        return cli_usage(
            "quantize: '%s' is not expected after the file to write; a mix is an option, as in 'frit quantize "
            "MODEL OUT.gguf --mix q4_k_m'",
            common->positional[common->n_positional - (n - 2)]);
    if (!args->plan && n != 2)
        return cli_usage("quantize: expected a model and the name of the GGUF file to write, as in "
                         "'frit quantize DIR OUT.gguf'");
    const char *source = common->model ? common->model : n > 0 ? common->positional[0] : cli_bundled_model();
    const char *target = args->plan ? NULL : common->positional[common->n_positional - 1];
    frit_convert_options with = args->convert;
    int code = check_options(args, source);
    if (code != CLI_DONE) return code;
    if (!args->quantize.mix && !with.type && !is_sized(args)) args->quantize.mix = "q4_k_m";
    if (!is_sized(args)) args->quantize.reuse = args->size.reuse;
    with.quantize = &args->quantize;
    char *path, *importance = NULL;   // of the named file
    code = cli_find_model(common, source, &path);
    if (code == CLI_DONE) code = find_importance(args, &importance);
    if (code == CLI_DONE) code = check_targets(args, path, target);
    if (code == CLI_DONE) code = args->plan ? print_plan(args, path, &with) : quantize(args, path, target, &with);
    free(path);
    free(importance);
    return code;
}

static const cli_group groups[] = {
    {"Quantization", frit_quantize_option_rows, offsetof(quantize_args, quantize)},
    {"Size", size_rows, offsetof(quantize_args, size)},
    {"Refinement", cli_refine_rows, offsetof(quantize_args, refine)},
    {"Plan", plan_rows, 0},
    {"Conversion", frit_convert_option_rows, offsetof(quantize_args, convert)},
    {"General", cli_common_rows, offsetof(quantize_args, common)},
};

const cli_command cli_command_quantize = {
    .name = "quantize",
    .usage = "MODEL OUT.gguf [options]",
    .summary = "write a smaller GGUF file of a model, in a mixture of types",
    .usual = "mix size bits types file importance keep refine fast state plan type threads model hf-repo quiet",
    .details =
        "A mix gives most matrices one type, and those that suffer most from it a finer one. The types, and the\n"
        "bytes too, are those of llama.cpp's llama-quantize. Mixes, from large files to small ones:\n"
        "\n"
        "  q8_0 q6_k q5_k_m q5_k_s q5_1 q5_0 q4_k_m q4_k_s q4_1 q4_0 iq4_nl iq4_xs q3_k_l q3_k_m q3_k_s iq3_m\n"
        "  iq3_s iq3_xs iq3_xxs q2_k q2_k_s iq2_m iq2_s iq2_xs iq2_xxs iq1_m iq1_s, and tq2_0 tq1_0 q2_0 q1_0 for\n"
        "  models of three or two values, mxfp4_moe for experts\n"
        "\n"
        "q2_k_s, iq3_xxs and what is smaller need --importance. MODEL is a folder or a GGUF file, best in bf16 or "
        "f16.\n"
        "\n"
        "  frit quantize Llama-3.2-1B/ llama-q4.gguf\n"
        "  frit quantize model.gguf small.gguf --mix iq3_m --importance model.imatrix\n"
        "  frit quantize model.gguf better.gguf --mix q4_k_m --importance model.imatrix --refine text.txt\n"
        "  frit quantize model.gguf --plan --mix q4_k_m --keep 'ffn_down=q6_k'\n"
        "\n"
        "With --size or --bits each matrix gets the type that serves the whole best, the token table too unless\n"
        "--keep or --embedding-type says otherwise. What each matrix is worth is measured: the KL divergence of the\n"
        "model's predictions with this matrix alone in about three bits, times the error of other types. The text\n"
        "is FILE, or 131,072 tokens that the model writes itself. Then matrices are rounded again with it, in the "
        "same\n"
        "types and bytes: layer by layer, with the covariance of what they read. --fast leaves that out.\n"
        "\n"
        "  frit quantize model.gguf small.gguf --size 4.5G --state model.state\n"
        "  frit quantize model.gguf smaller.gguf --bits 3.5 --types all --state model.state\n"
        "  frit quantize model.gguf --plan --bits 4.25 -f text.txt",
    .max_positional = 4,
    .args_bytes = sizeof(quantize_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
