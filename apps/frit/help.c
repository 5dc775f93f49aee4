// SPDX-License-Identifier: MIT
// frit help and its man page: both written from the command and option rows.
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

static void print_exit_codes(void)
{
    size_t n_rows;
    const cli_exit_row *rows = cli_exit_rows(&n_rows);
    for (size_t i = 0; i < n_rows; i++) printf("  %-3d  %s\n", rows[i].code, rows[i].meaning);
}

// The other names of an option, beside the one that is shown.
static void print_aliases(const frit_option *row)
{
    const char *before = "; also";
    if (row->letter && row->letters) {
        printf("%s -%s", before, row->letters);
        before = ",";
    }
    for (const char *at = row->aliases; at; before = ",") {
        const int n = (int)strcspn(at, "|");
        printf("%s --%.*s", before, n, at);
        at = at[n] ? at + n + 1 : NULL;
    }
}

static void print_option(const frit_option *row)
{
    char left[80];
    int n = row->letter    ? snprintf(left, sizeof left, "  -%c, --%s", row->letter, row->name)
            : row->letters ? snprintf(left, sizeof left, "  -%s, --%s", row->letters, row->name)
                           : snprintf(left, sizeof left, "      --%s", row->name);
    const char *value = row->type == FRIT_OPTION_CHOICE ? row->choices : row->metavar;
    if (row->type != FRIT_OPTION_FLAG && value) snprintf(left + n, sizeof left - (size_t)n, " %s", value);
    printf("%-32s %s", left, row->help);
    if (row->fallback) printf(" (%s)", row->fallback);
    print_aliases(row);
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
        "\nEvery option can be set by the environment as well: --top-k is FRIT_TOP_K. Defaults are in parentheses;\n"
        "what a model's file recommends for sampling goes before them. Names after 'also' are those of llama.cpp.\n");
}

static void print_overview(void)
{
    printf("frit %s runs large language models.\n\nUsage: frit COMMAND [MODEL] [options]\n\nCommands:\n",
           frit_version());
    const cli_command *command;
    for (size_t i = 0; (command = cli_command_get(i)); i++) printf("  %-12s %s\n", command->name, command->summary);
    printf("\nA model is a GGUF file, a safetensors file or a Hugging Face folder, or the name of one, as "
           "'frit help pull'\nlists; without one the bundled model is used.\n"
           "'frit help COMMAND' tells more; 'frit --version' the version.\n\nExit codes:\n");
    print_exit_codes();
}

// ---------------------------------------------------------------------------------------- the man page

// Roff reads a hyphen as a dash, a backslash as an escape, and a line that begins with a dot or a quote as a request.
static void print_roff(const char *text)
{
    for (bool line_start = true; *text; text++) {
        if (line_start && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        if (*text == '\\') {
            fputs("\\e", stdout);
        } else {
            if (*text == '-') putchar('\\');
            putchar(*text);
        }
        line_start = *text == '\n';
    }
}

static void print_man_option(const frit_option *row)
{
    const char *value = row->type == FRIT_OPTION_CHOICE ? row->choices : row->metavar;
    fputs(".TP\n\\fB", stdout);
    if (row->letter) printf("\\-%c\\fR, \\fB", row->letter);
    if (row->letters) printf("\\-%s\\fR, \\fB", row->letters);
    fputs("\\-\\-", stdout);
    print_roff(row->name);
    fputs("\\fR", stdout);
    if (row->type != FRIT_OPTION_FLAG && value) {
        fputs(" \\fI", stdout);
        print_roff(value);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    print_roff(row->help);
    if (row->fallback) {
        fputs(" (", stdout);
        print_roff(row->fallback);
        putchar(')');
    }
    print_aliases(row);
    putchar('\n');
}

static void print_man_command(const cli_command *command)
{
    printf(".SS frit %s ", command->name);
    print_roff(command->usage);
    putchar('\n');
    print_roff(command->summary);
    fputs(".\n.PP\n.nf\n", stdout);
    print_roff(command->details);
    fputs("\n.fi\n", stdout);
    for (size_t g = 0; g < command->n_groups; g++) {
        size_t n_rows;
        const frit_option *rows = command->groups[g].rows(&n_rows);
        if (n_rows > 0) printf(".PP\n%s:\n", command->groups[g].title);
        for (size_t i = 0; i < n_rows; i++) print_man_option(&rows[i]);
    }
}

static void print_man(void)
{
    printf(".TH FRIT 1 \"\" \"frit %s\"\n.SH NAME\nfrit \\- run large language models\n.SH SYNOPSIS\n.B frit\n"
           "COMMAND [MODEL] [options]\n.SH DESCRIPTION\nA model is a GGUF file, a safetensors file or a Hugging Face "
           "folder, or the name of one, as under pull; without one the bundled model is used.\nDefaults are in "
           "parentheses; what a model's file recommends for sampling goes before them.\n.SH COMMANDS\n",
           frit_version());
    const cli_command *command;
    for (size_t i = 0; (command = cli_command_get(i)); i++) print_man_command(command);
    printf(".SH EXIT STATUS\n.nf\n");
    print_exit_codes();
    printf(".fi\n.SH ENVIRONMENT\nEvery option can be set by a variable: \\-\\-top\\-k is FRIT_TOP_K.\n"
           "The command line wins.\n");
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
        print_exit_codes();
        return CLI_DONE;
    }
    const cli_command *command = cli_command_find(topic);
    if (!command) return cli_usage("no command '%s'; 'frit help' lists them", topic);
    print_command(command);
    return CLI_DONE;
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
