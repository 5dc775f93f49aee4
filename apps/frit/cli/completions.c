// SPDX-License-Identifier: MIT
// frit completions: completion files for shells, made from the command and option rows.
#include "frit/cli/cli.h"

#include <string.h>

typedef struct completions_args {
    cli_common common;
} completions_args;

typedef void (*row_fn)(const cli_command *command, const frit_option *row);

static void each_option(const cli_command *command, row_fn print)
{
    for (size_t g = 0; g < command->n_groups; g++) {
        size_t n_rows;
        const frit_option *rows = command->groups[g].rows(&n_rows);
        for (size_t i = 0; i < n_rows; i++) print(command, &rows[i]);
    }
}

static void each_command(void (*print)(const cli_command *command))
{
    const cli_command *command;
    for (size_t i = 0; (command = cli_command_get(i)); i++) print(command);
}

// Prints text inside single quotes of a shell; characters of `escaped` get a backslash.
static void print_quoted(const char *text, const char *escaped)
{
    for (; *text; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
        } else {
            if (strchr(escaped, *text)) putchar('\\');
            putchar(*text);
        }
    }
}

// Prints "md|json" as words.
static void print_choices(const char *choices)
{
    for (; *choices; choices++) putchar(*choices == '|' ? ' ' : *choices);
}

// ---------------------------------------------------------------------------------------- bash

static void print_bash_name(const cli_command *command)
{
    printf("%s ", command->name);
}

static void print_bash_option(const cli_command *command, const frit_option *row)
{
    (void)command;
    printf(" --%s", row->name);
}

static void print_bash_options(const cli_command *command)
{
    printf("    %s) words=\"", command->name);
    each_option(command, print_bash_option);
    printf(" --help --help-all\" ;;\n");
}

static void print_bash_choice(const cli_command *command, const frit_option *row)
{
    if (row->type != FRIT_OPTION_CHOICE) return;
    printf("    %s:--%s", command->name, row->name);
    if (row->letter) printf("|%s:-%c", command->name, row->letter);
    if (row->letters) printf("|%s:-%s", command->name, row->letters);
    printf(") words=\"");
    print_choices(row->choices);
    printf("\"; choice=1 ;;\n");
}

static void print_bash_choices(const cli_command *command)
{
    each_option(command, print_bash_choice);
}

static void print_bash(void)
{
    printf(
        "_frit() {\n    local words choice= word=\"${COMP_WORDS[COMP_CWORD]}\"\n    if [ \"$COMP_CWORD\" = 1 ]; then\n"
        "        COMPREPLY=($(compgen -W \"");
    each_command(print_bash_name);
    printf("\" -- \"$word\"))\n        return\n    fi\n    case \"${COMP_WORDS[1]}\" in\n");
    each_command(print_bash_options);
    printf("    esac\n    case \"${COMP_WORDS[1]}:${COMP_WORDS[COMP_CWORD-1]}\" in\n");
    each_command(print_bash_choices);
    printf("    esac\n    if [ -n \"$choice\" ] || [ \"${word#-}\" != \"$word\" ]; then\n"
           "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n    else\n"
           "        COMPREPLY=($(compgen -f -- \"$word\"))\n    fi\n}\ncomplete -o filenames -F _frit frit\n");
}

// ---------------------------------------------------------------------------------------- zsh

static void print_zsh_name(const cli_command *command)
{
    printf("        '%s:", command->name);
    print_quoted(command->summary, "");
    printf("'\n");
}

static void print_zsh_spelling(const frit_option *row, const char *dashes, const char *name, size_t n)
{
    printf(" \\\n        '%s%.*s[", dashes, (int)n, name);
    print_quoted(row->help, "[]");
    printf("]");
    if (row->type == FRIT_OPTION_CHOICE) {
        printf(":value:(");
        print_choices(row->choices);
        printf(")");
    } else if (row->type != FRIT_OPTION_FLAG) {
        printf(":value:_files");
    }
    printf("'");
}

static void print_zsh_option(const cli_command *command, const frit_option *row)
{
    (void)command;
    if (row->letter) print_zsh_spelling(row, "-", &row->letter, 1);
    if (row->letters) print_zsh_spelling(row, "-", row->letters, strlen(row->letters));
    print_zsh_spelling(row, row->type == FRIT_OPTION_LIST ? "*--" : "--", row->name, strlen(row->name));
}

static void print_zsh_options(const cli_command *command)
{
    printf("    %s) _arguments '*:file:_files'", command->name);
    each_option(command, print_zsh_option);
    printf(" ;;\n");
}

// The file works in two ways: it may be in a folder of fpath, where it is the function's body, or be sourced.
static void print_zsh(void)
{
    printf("#compdef frit\n_frit() {\n    local -a commands\n    commands=(\n");
    each_command(print_zsh_name);
    printf("    )\n    if (( CURRENT == 2 )); then _describe command commands; return; fi\n    local name=$words[2]\n"
           "    shift words; (( CURRENT-- ))\n    case $name in\n");
    each_command(print_zsh_options);
    printf("    esac\n}\nif [[ $funcstack[1] == _frit ]]; then _frit \"$@\"; else compdef _frit frit; fi\n");
}

// ---------------------------------------------------------------------------------------- fish

static void print_fish_option(const cli_command *command, const frit_option *row)
{
    printf("complete -c frit -n '__fish_seen_subcommand_from %s' -l %s", command->name, row->name);
    if (row->letter) printf(" -s %c", row->letter);
    if (row->letters) printf(" -o %s", row->letters);
    if (row->type == FRIT_OPTION_CHOICE) {
        printf(" -x -a '");
        print_choices(row->choices);
        printf("'");
    } else if (row->type != FRIT_OPTION_FLAG) {
        printf(" -r");
    }
    printf(" -d '");
    print_quoted(row->help, "\\");
    printf("'\n");
}

static void print_fish_command(const cli_command *command)
{
    printf("complete -c frit -n __fish_use_subcommand -a %s -d '", command->name);
    print_quoted(command->summary, "\\");
    printf("'\n");
    each_option(command, print_fish_option);
}

static void print_fish(void)
{
    each_command(print_fish_command);
}

// ---------------------------------------------------------------------------------------- the command

static int run(void *ctx)
{
    const completions_args *args = ctx;
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

const cli_command cli_command_completions = {
    .name = "completions",
    .usage = "bash|zsh|fish",
    .summary = "print completions for a shell",
    .details = "`make install` puts them where the shells look. For one user:\n"
               "\n"
               "  frit completions bash > ~/.local/share/bash-completion/completions/frit\n"
               "  frit completions zsh > ~/.zfunc/_frit        (a folder of fpath)\n"
               "  frit completions fish > ~/.config/fish/completions/frit.fish",
    .max_positional = 1,
    .args_bytes = sizeof(completions_args),
    .groups = NULL,
    .n_groups = 0,
    .run = run,
};
