// SPDX-License-Identifier: MIT
// frit rm: removes models by name.
#include "frit/cli/by_name.h"

typedef struct rm_args {
    cli_common common;
} rm_args;

static int remove_one(const void *ctx, const hub_settings *settings, const hub_name *name, const char *text)
{
    const rm_args *args = ctx;
    char size[32];
    uint64_t freed = 0;
    if (!name->source->remove)
        return cli_usage("%s: models of %s are removed by that program", text, name->source->title);
    const int code = cli_report_hub(name->source->remove(settings, name, &freed));
    cli_size_text(freed, size);
    if (code == CLI_DONE) cli_note(&args->common, "%s is removed; %s are free again", text, size);
    return code;
}

static int run(void *ctx)
{
    const rm_args *args = ctx;
    if (cli_named(&args->common) == NULL && args->common.n_positional == 0)
        return cli_usage("rm: expected the name of a model, as 'frit list' shows it");
    return cli_each_name(&args->common, remove_one, args);
}

static const cli_group groups[] = {
    {"General", cli_common_rows, offsetof(rm_args, common)},
};

const cli_command cli_command_rm = {
    .name = "rm",
    .usage = "NAME [NAME ...] [options]",
    .summary = "remove models by name",
    .details =
        "Removes what 'frit pull' and other programs fetched: hf:ORG/REPO goes whole, hf:ORG/REPO:Q4_K_M only with\n"
        "the files of this quantization. What other models of ollama share stays. Models of LM Studio are removed\n"
        "there.\n"
        "\n"
        "  frit rm hf:Qwen/Qwen3-8B-GGUF:Q8_0\n  frit rm ollama:llama3.2:1b",
    .max_positional = 64,
    .args_bytes = sizeof(rm_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
