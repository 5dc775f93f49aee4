// SPDX-License-Identifier: MIT
// frit help, its man page, and frit completions: all written from the command and option rows.
#include "cli.h"

#include <stdlib.h>
#include <string.h>

typedef struct help_options {
    bool man;
} help_options;

typedef struct help_args {
    cli_common common;
    help_options help;
} help_args;

static const frit_option *help_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "man",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(help_options, man),
         .help = "print the manual page (roff)"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static const char exit_codes[] = "  0    done\n"
                                 "  1    failed\n"
                                 "  2    wrong usage\n"
                                 "  3    bad model file\n"
                                 "  4    out of memory\n"
                                 "  130  interrupted\n";

static void print_option(const frit_option *row)
{
    char left[80], env[80];
    int n = row->letter    ? snprintf(left, sizeof left, "  -%c, --%s", row->letter, row->name)
            : row->letters ? snprintf(left, sizeof left, "  -%s, --%s", row->letters, row->name)
                           : snprintf(left, sizeof left, "      --%s", row->name);
    const char *value = row->type == FRIT_OPTION_CHOICE ? row->choices : row->metavar;
    if (row->type != FRIT_OPTION_FLAG && value) snprintf(left + n, sizeof left - (size_t)n, " %s", value);
    cli_env_name(row->name, env, sizeof env);
    printf("%-32s %s", left, row->help);
    if (row->fallback) printf(" (%s)", row->fallback);
    putchar('\n');
}

static void print_command(const cli_command *command)
{
    printf("frit %s: %s\n\nUsage: frit %s %s\n\n%s\n", command->name, command->summary, command->name, command->usage,
           command->details);
    for (size_t g = 0; g < command->n_groups; g++) {
        size_t n_rows;
        const frit_option *rows = command->groups[g].rows(&n_rows);
        if (n_rows > 0) printf("\n%s:\n", command->groups[g].title);
        for (size_t i = 0; i < n_rows; i++) print_option(&rows[i]);
    }
    printf(
        "\nEvery option can be set by the environment as well: --top-k is FRIT_TOP_K. Defaults are in parentheses.\n");
}

static void print_overview(void)
{
    printf("frit %s runs large language models.\n\nUsage: frit COMMAND [MODEL] [options]\n\nCommands:\n",
           frit_version());
    const cli_command *command;
    for (size_t i = 0; (command = cli_command_get(i)); i++) printf("  %-12s %s\n", command->name, command->summary);
    printf("\nA model is a GGUF file, a safetensors file or a Hugging Face folder; without one the bundled model is "
           "used.\n"
           "'frit help COMMAND' tells more; 'frit --version' the version.\n\nExit codes:\n%s",
           exit_codes);
}

// Roff wants hyphens and backslashes escaped.
static void print_roff(const char *text)
{
    for (bool line_start = true; *text; text++) {
        if (line_start && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        if (*text == '\\' || *text == '-') putchar('\\');
        putchar(*text);
        line_start = *text == '\n';
    }
}

static void print_man_command(const cli_command *command)
{
    printf(".SS frit %s ", command->name);
    print_roff(command->usage);
    fputs("\n.nf\n", stdout);
    print_roff(command->details);
    fputs("\n.fi\n", stdout);
    for (size_t g = 0; g < command->n_groups; g++) {
        size_t n_rows;
        const frit_option *rows = command->groups[g].rows(&n_rows);
        for (size_t i = 0; i < n_rows; i++) {
            fputs(".TP\n.B ", stdout);
            if (rows[i].letter) printf("\\-%c, ", rows[i].letter);
            if (rows[i].letters) printf("\\-%s, ", rows[i].letters);
            fputs("\\-\\-", stdout);
            print_roff(rows[i].name);
            if (rows[i].metavar) printf(" %s", rows[i].metavar);
            putchar('\n');
            print_roff(rows[i].help);
            putchar('\n');
        }
    }
}

static void print_man(void)
{
    printf(".TH FRIT 1 \"\" \"frit %s\"\n.SH NAME\nfrit \\- run large language models\n.SH SYNOPSIS\n.B frit\n"
           "COMMAND [MODEL] [options]\n.SH COMMANDS\n",
           frit_version());
    const cli_command *command;
    for (size_t i = 0; (command = cli_command_get(i)); i++) print_man_command(command);
    printf(".SH EXIT STATUS\n.nf\n%s.fi\n.SH ENVIRONMENT\nEvery option can be set by a variable: \\-\\-top\\-k is "
           "FRIT_TOP_K.\n",
           exit_codes);
}

static int run_help(void *ctx)
{
    const help_args *args = ctx;
    if (args->help.man) {
        print_man();
        return CLI_DONE;
    }
    if (args->common.n_positional == 0) {
        print_overview();
        return CLI_DONE;
    }
    const char *topic = args->common.positional[0];
    if (strcmp(topic, "exit-codes") == 0) {
        fputs(exit_codes, stdout);
        return CLI_DONE;
    }
    const cli_command *command = cli_command_find(topic);
    if (!command) return cli_usage("no command '%s'; 'frit help' lists them", topic);
    print_command(command);
    return CLI_DONE;
}

// ---------------------------------------------------------------------------------------- completions

static void print_option_words(const cli_command *command)
{
    for (size_t g = 0; g < command->n_groups; g++) {
        size_t n_rows;
        const frit_option *rows = command->groups[g].rows(&n_rows);
        for (size_t i = 0; i < n_rows; i++) printf(" --%s", rows[i].name);
    }
}

static void print_bash(void)
{
    const cli_command *command;
    printf("_frit() {\n    local words\n    case \"${COMP_WORDS[1]}\" in\n");
    for (size_t i = 0; (command = cli_command_get(i)); i++) {
        printf("    %s) words=\"", command->name);
        print_option_words(command);
        printf(" --help\" ;;\n");
    }
    printf("    esac\n    local word=\"${COMP_WORDS[COMP_CWORD]}\"\n    if [ \"$COMP_CWORD\" = 1 ]; then\n"
           "        COMPREPLY=($(compgen -W \"");
    for (size_t i = 0; (command = cli_command_get(i)); i++) printf("%s ", command->name);
    printf("\" -- \"$word\"))\n    elif [ \"${word#-}\" != \"$word\" ]; then\n"
           "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n    else\n"
           "        COMPREPLY=($(compgen -f -- \"$word\"))\n    fi\n}\ncomplete -o filenames -F _frit frit\n");
}

// A description inside single quotes of zsh or fish.
static void print_quoted(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
        } else {
            if (*text == '[' || *text == ']' || *text == ':') putchar('\\');
            putchar(*text);
        }
    }
}

static void print_zsh_command(const cli_command *command)
{
    printf("    %s) _arguments '*:file:_files'", command->name);
    for (size_t g = 0; g < command->n_groups; g++) {
        size_t n_rows;
        const frit_option *rows = command->groups[g].rows(&n_rows);
        for (size_t i = 0; i < n_rows; i++) {
            printf(" \\\n        '--%s[", rows[i].name);
            print_quoted(rows[i].help);
            printf(rows[i].type == FRIT_OPTION_FLAG ? "]'" : "]:value:_files'");
        }
    }
    printf(" ;;\n");
}

static void print_zsh(void)
{
    const cli_command *command;
    printf("#compdef frit\n_frit() {\n    local -a commands\n    commands=(\n");
    for (size_t i = 0; (command = cli_command_get(i)); i++)
        printf("        '%s:%s'\n", command->name, command->summary);
    printf("    )\n    if (( CURRENT == 2 )); then _describe command commands; return; fi\n    local name=$words[2]\n"
           "    shift words; (( CURRENT-- ))\n    case $name in\n");
    for (size_t i = 0; (command = cli_command_get(i)); i++) print_zsh_command(command);
    printf("    esac\n}\ncompdef _frit frit\n");
}

static void print_fish(void)
{
    const cli_command *command;
    for (size_t c = 0; (command = cli_command_get(c)); c++) {
        printf("complete -c frit -n __fish_use_subcommand -a %s -d '%s'\n", command->name, command->summary);
        for (size_t g = 0; g < command->n_groups; g++) {
            size_t n_rows;
            const frit_option *rows = command->groups[g].rows(&n_rows);
            for (size_t i = 0; i < n_rows; i++) {
                printf("complete -c frit -n '__fish_seen_subcommand_from %s' -l %s", command->name, rows[i].name);
                if (rows[i].letter) printf(" -s %c", rows[i].letter);
                if (rows[i].letters) printf(" -o %s", rows[i].letters);
                if (rows[i].type != FRIT_OPTION_FLAG) printf(" -r");
                printf(" -d '");
                print_quoted(rows[i].help);
                printf("'\n");
            }
        }
    }
}

static int run_completions(void *ctx)
{
    const help_args *args = ctx;
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    const char *shell = args->common.n_positional > 0 ? args->common.positional[0] : "";
    for (size_t i = 0; i < CLI_COUNT(shells); i++) {
        if (strcmp(shells[i].name, shell) != 0) continue;
        shells[i].print();
        return CLI_DONE;
    }
    if (!shell[0]) return cli_usage("completions: name a shell: bash, zsh or fish");
    return cli_usage("completions: no shell '%s'; there are bash, zsh and fish", shell);
}

static const cli_group help_groups[] = {{"Options", help_rows, offsetof(help_args, help)}};

const cli_command cli_command_help = {
    .name = "help",
    .usage = "[COMMAND | exit-codes] [--man]",
    .summary = "tell about frit or one of its commands",
    .details = "  frit help run\n  frit help --man > frit.1",
    .max_positional = 1,
    .args_bytes = sizeof(help_args),
    .groups = help_groups,
    .n_groups = CLI_COUNT(help_groups),
    .run = run_help,
};

const cli_command cli_command_completions = {
    .name = "completions",
    .usage = "bash|zsh|fish",
    .summary = "print completions for a shell",
    .details = "  frit completions bash > ~/.local/share/bash-completion/completions/frit\n"
               "  frit completions zsh > ~/.zfunc/_frit\n"
               "  frit completions fish > ~/.config/fish/completions/frit.fish",
    .max_positional = 1,
    .args_bytes = sizeof(help_args),
    .groups = NULL,
    .n_groups = 0,
    .run = run_completions,
};
