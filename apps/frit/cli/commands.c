// SPDX-License-Identifier: MIT
// The table of commands, and the choice of a command from argv.
#include "frit/cli/cli.h"

#include "hub/hub.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const cli_command *const commands[] = {
    &cli_command_run,      &cli_command_chat,        &cli_command_serve,    &cli_command_pull,
    &cli_command_list,     &cli_command_show,        &cli_command_rm,       &cli_command_info,
    &cli_command_bench,    &cli_command_perplexity,  &cli_command_tokenize, &cli_command_detokenize,
    &cli_command_template, &cli_command_logits,      &cli_command_embed,    &cli_command_rerank,
    &cli_command_convert,  &cli_command_quantize,    &cli_command_imatrix,  &cli_command_kl,
    &cli_command_kernels,  &cli_command_completions, &cli_command_help,
};

const cli_command *cli_command_get(size_t i)
{
    return i < CLI_COUNT(commands) ? commands[i] : NULL;
}

const cli_command *cli_command_find(const char *name)
{
    for (size_t i = 0; i < CLI_COUNT(commands); i++) {
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    }
    return NULL;
}

const frit_option *cli_common_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "model",
         .letter = 'm',
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(cli_common, model),
         .metavar = "FILE",
         .help = "the model, a file or a name, if it is not the first argument"},
        {.name = "hf-repo",
         .letters = "hf",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(cli_common, hf_repo),
         .metavar = "ORG/REPO",
         .help = "the model hf:ORG/REPO, as other programs name it; ':' and a quantization may follow"},
        {.name = "quiet",
         .letter = 'q',
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(cli_common, quiet),
         .help = "no progress, no notes and no report on stderr"},
        {.name = "no-color",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(cli_common, no_color),
         .help = "plain text on terminals too"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static int run_command(const cli_command *command, int argc, char **argv)
{
    cli_parse parse = {.command = command, .args = calloc(1, command->args_bytes)};
    if (!parse.args) return cli_no_memory();
    int code = cli_parse_options(&parse, argc, argv);
    if (code == CLI_DONE && parse.help) {
        char *topic[] = {(char *)command->name, "--all"};
        bool all = parse.help_all;
        for (int i = 0; i < argc; i++) all = all || strcmp(argv[i], "--all") == 0;
        cli_parse help = {.command = &cli_command_help, .args = calloc(1, cli_command_help.args_bytes)};
        code = help.args ? cli_parse_options(&help, all ? 2 : 1, topic) : cli_no_memory();
        if (code == CLI_DONE) code = cli_command_help.run(help.args);
        cli_parse_free(&help);
    } else if (code == CLI_DONE) {
        code = command->run(parse.args);
    }
    cli_parse_free(&parse);
    return code;
}

// Names that other programs have for commands.
static const struct {
    const char *word, *command;
} others[] = {
    {"cp", NULL},           {"create", NULL},         {"login", NULL},        {"ps", NULL},
    {"push", NULL},         {"stop", NULL},           {"ask", "run"},         {"benchmark", "bench"},
    {"complete", "run"},    {"decode", "detokenize"}, {"delete", "rm"},       {"download", "pull"},
    {"embedding", "embed"}, {"embeddings", "embed"},  {"encode", "tokenize"}, {"fetch", "pull"},
    {"generate", "run"},    {"get", "pull"},          {"inspect", "info"},    {"ls", "list"},
    {"models", "list"},     {"ppl", "perplexity"},    {"prompt", "run"},      {"remove", "rm"},
    {"server", "serve"},    {"start", "serve"},
};

int cli_unknown_command(const char *name)
{
    const char *names[CLI_COUNT(commands)], *nearest = NULL;
    bool is_known = false;
    hub_path guess;
    for (size_t i = 0; i < CLI_COUNT(others); i++)
        if (strcmp(name, others[i].word) == 0) nearest = others[i].command, is_known = true;
    for (size_t i = 0; i < CLI_COUNT(commands); i++) names[i] = commands[i]->name;
    if (!is_known) nearest = frit_name_nearest(name, names, CLI_COUNT(commands));
    if (nearest) return cli_usage("no command '%s'; did you mean 'frit %s'?", name, nearest);
    if (hub_guess_name(name, &guess) == HUB_OK)
        return cli_usage("no command '%s'; if it is a model, it is run by 'frit run %s'", name, guess.text);
    if (name[0] == '-') return cli_usage("no option '%s' without a command; 'frit help' lists commands", name);
    if (strchr(name, ' ')) return cli_usage("no command '%s'; a prompt is given by 'frit run -p TEXT'", name);
    return cli_usage("no command '%s'; 'frit help' lists them", name);
}

// The command meant by a command line that begins with a model: "frit MODEL" is a chat on a terminal, otherwise an
// answer; "frit MODEL PROMPT" and "frit -m MODEL -p PROMPT" are answers. NULL: no model is named.
static const cli_command *meant(int argc, char **argv)
{
    const bool is_option = argv[1][0] == '-';
    if (is_option ? !cli_takes_option(&cli_command_run, argv[1]) : !cli_is_model_path(argv[1]) && !hub_is_name(argv[1]))
        return NULL;
    const bool is_alone = is_option ? argc == 3 && argv[1][1] != 'p' && argv[1][1] != 'f' : argc == 2;
    return is_alone && isatty(STDIN_FILENO) ? &cli_command_chat : &cli_command_run;
}

int cli_main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "help";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
    if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0 || strcmp(name, "-v") == 0) {
        printf("frit %s\n", frit_version());
        return CLI_DONE;
    }
    const cli_command *command = cli_command_find(name);
    if (command) return run_command(command, argc > 2 ? argc - 2 : 0, argv + 2);
    command = meant(argc, argv);
    return command ? run_command(command, argc - 1, argv + 1) : cli_unknown_command(name);
}
