// SPDX-License-Identifier: MIT
// frit quantize: models in mixtures of types, and the table of what would become of each tensor.
#include "cli.h"

#include <inttypes.h>
#include <string.h>

typedef struct quantize_args {
    cli_common common;
    frit_convert_options convert;
    frit_quantize_options quantize;
    bool plan;
} quantize_args;

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

typedef struct plan {
    uint64_t n_bytes;
    int64_t n_elems;
    size_t n_tensors, n_needing;
} plan;

static void print_tensor(void *ctx, const frit_planned_tensor *tensor)
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
        printf("%-40s %-22s %-8s %-8s %10s  %s\n", "tensor", "shape", "from", "to", "size", "importance");
    cli_size_text(tensor->n_bytes, size);
    const bool lacks = tensor->needs_importance && !tensor->has_importance;
    const char *importance = tensor->has_importance ? "  yes" : lacks ? "  missing" : "";
    printf("%-40s %-22s %-8s %-8s %10s%s\n", tensor->name, shape, tensor->from, tensor->to, size, importance);
    p->n_bytes += tensor->n_bytes;
    p->n_elems += n_elems;
    p->n_needing += lacks;
}

static int print_plan(const quantize_args *args, const char *source, frit_convert_options *with)
{
    plan p = {0};
    frit_quantize_options quantize = *with->quantize;
    quantize.plan = print_tensor;
    quantize.plan_ctx = &p;
    with->quantize = &quantize;
    const int code = cli_convert(&args->common, source, NULL, with, "reading");
    if (code != CLI_DONE) return code;
    char size[32];
    cli_size_text(p.n_bytes, size);
    printf("%zu tensors, %s, %.2f bits a number\n", p.n_tensors, size,
           p.n_elems > 0 ? 8 * (double)p.n_bytes / (double)p.n_elems : 0);
    if (p.n_needing > 0) printf("%zu tensors need importance: give --importance FILE\n", p.n_needing);
    return CLI_DONE;
}

static int run(void *ctx)
{
    quantize_args *args = ctx;
    const cli_common *common = &args->common;
    const int n = common->n_positional + (common->model ? 1 : 0);
    if (!args->plan && n != 2)
        return cli_usage("quantize: expected a model and the name of the GGUF file to write, as in "
                         "'frit quantize DIR OUT.gguf'");
    const char *source = common->model ? common->model : n > 0 ? common->positional[0] : cli_bundled_model();
    frit_convert_options with = args->convert;
    if (!args->quantize.mix && !with.type) args->quantize.mix = "q4_k_m";
    with.quantize = &args->quantize;
    if (args->plan) return print_plan(args, source, &with);
    const char *target = common->positional[common->n_positional - 1];
    const int code = cli_check_writable(target);
    return code != CLI_DONE ? code : cli_convert(common, source, target, &with, "quantizing");
}

static const cli_group groups[] = {
    {"Quantization", frit_quantize_option_rows, offsetof(quantize_args, quantize)},
    {"Plan", plan_rows, 0},
    {"Conversion", frit_convert_option_rows, offsetof(quantize_args, convert)},
    {"General", cli_common_rows, offsetof(quantize_args, common)},
};

const cli_command cli_command_quantize = {
    .name = "quantize",
    .usage = "MODEL OUT.gguf [options]",
    .summary = "write a smaller GGUF file of a model, in a mixture of types",
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
        "  frit quantize model.gguf --plan --mix q4_k_m --keep 'ffn_down=q6_k'",
    .max_positional = 2,
    .args_bytes = sizeof(quantize_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
