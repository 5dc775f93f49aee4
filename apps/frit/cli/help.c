// SPDX-License-Identifier: MIT
// frit help and its man page, made from the command and option rows.
#include "frit/cli/cli.h"

#include "frit/os/screen.h"
#include "frit/cli/wrap.h"

#include <stdlib.h>
#include <string.h>

typedef struct help_options {
    bool man, all;
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
        {.name = "all",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(help_options, all),
         .help = "show all options of the command, not only the usual ones"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static void add_exit_codes(cli_text *out)
{
    size_t n_rows;
    const cli_exit_row *rows = cli_exit_rows(&n_rows);
    for (size_t i = 0; i < n_rows; i++) cli_text_print(out, "  %-3d  %s\n", rows[i].code, rows[i].meaning);
}

// Prints a code a line, without breaking lines.
static void print_exit_codes(void)
{
    cli_text out = {0};
    add_exit_codes(&out);
    fputs(out.data, stdout);
    free(out.data);
}

// ---------------------------------------------------------------------------------------- text

enum { LEFT = 28, WIDTH = 80 };   // widths of the column of names and values, and of a line

// A width that is easy to read; piped output has the width of old terminals.
static int width_of_help(void)
{
    enum { WIDEST = 100, USUAL = WIDTH };
    const int columns = cli_columns(stdout);
    return columns == 0 ? USUAL : columns < WIDEST ? columns : WIDEST;
}

// Joins the lines of a paragraph and breaks them again; lines that begin with a blank stay unchanged.
static void add_paragraphs(cli_text *out, const char *text)
{
    for (const char *line = text; *line;) {
        const size_t n = strcspn(line, "\n");
        const char *next = line + n + (line[n] == '\n');
        const bool goes_on = n > 0 && line[0] != ' ' && *next && *next != '\n' && *next != ' ';
        cli_text_print(out, "%.*s%c", (int)n, line, goes_on ? ' ' : '\n');
        line = next;
    }
}

// ---------------------------------------------------------------------------------------- options

// Adds the other names of an option.
static void add_aliases(cli_text *out, const frit_option *row)
{
    const char *before = "; also";
    if (row->letter && row->letters) {
        cli_text_print(out, "%s -%s", before, row->letters);
        before = ",";
    }
    for (const char *at = row->aliases; at; before = ",") {
        const int n = (int)strcspn(at, "|");
        cli_text_print(out, "%s --%.*s", before, n, at);
        at = at[n] ? at + n + 1 : NULL;
    }
}

// The length of an option's short help: up to the first ';' or a final remark in parentheses; if it is still too long,
// up to the first clause.
static size_t short_help(const char *help)
{
    size_t n = strlen(help), n_clause = 0;
    int n_blanks = 0, depth = 0;
    for (size_t i = 0; i < n; i++) {
        depth += (help[i] == '(') - (help[i] == ')');
        n_blanks += help[i] == ' ';
        if (depth == 0 && help[i] == ';') n = i;
        const bool ends_clause = help[i] == ':' || help[i] == ',';
        if (n_clause == 0 && depth == 0 && ends_clause && help[i + 1] == ' ' && n_blanks > 1) n_clause = i;
    }
    const char *remark = strstr(help, " (may ");
    if (remark && (size_t)(remark - help) < n) n = (size_t)(remark - help);
    return n > WIDTH - LEFT && n_clause > 0 && n_clause < n ? n_clause : n;
}

static void add_option(cli_text *out, const frit_option *row, bool is_short)
{
    char left[160];
    int n = row->letter    ? snprintf(left, sizeof left, "  -%c, --%s", row->letter, row->name)
            : row->letters ? snprintf(left, sizeof left, "  -%s, --%s", row->letters, row->name)
                           : snprintf(left, sizeof left, "      --%s", row->name);
    const char *value = row->type == FRIT_OPTION_CHOICE ? row->choices : row->metavar;
    if (row->type != FRIT_OPTION_FLAG && value) n += snprintf(left + n, sizeof left - (size_t)n, " %s", value);
    // In short help, names and values that are too long for the column are on a line of their own.
    if (n > LEFT - 2)
        cli_text_print(out, "%s\n%*s", left, LEFT, "");
    else
        cli_text_print(out, "%-*s", LEFT, left);
    cli_text_print(out, "%.*s", (int)(is_short ? short_help(row->help) : strlen(row->help)), row->help);
    if (row->fallback && (!is_short || strcmp(row->fallback, "-1") != 0)) cli_text_print(out, " (%s)", row->fallback);
    if (!is_short) add_aliases(out, row);
    cli_text_print(out, "\n");
}

// True if the word occurs in a list of words.
static bool has_word(const char *words, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = words; (at = strstr(at, word)); at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return true;
    return false;
}

// Adds the options of all groups, or only the usual ones. Returns the number of all options.
static size_t add_options(cli_text *out, const cli_command *command, bool is_short)
{
    size_t n_all = 0;
    for (size_t g = 0; g < command->n_groups; g++) {
        size_t n_rows, n_shown = 0;
        const frit_option *rows = command->groups[g].rows(&n_rows);
        for (size_t i = 0; i < n_rows; i++) {
            if (is_short && !has_word(command->usual, rows[i].name)) continue;
            if (n_shown++ == 0) cli_text_print(out, "%s%s:\n", is_short ? "" : "\n", command->groups[g].title);
            add_option(out, &rows[i], is_short);
        }
        n_all += n_rows;
    }
    return n_all;
}

// ---------------------------------------------------------------------------------------- commands

// The length of the first sentences of a text, up to the end of its first paragraph.
static size_t first_sentences(const char *text)
{
    enum { ENOUGH = 160 };
    const char *end = strstr(text, "\n\n");
    const size_t n = end ? (size_t)(end - text) : strlen(text);
    for (size_t i = ENOUGH; i < n; i++)
        if (text[i] == '.' && (text[i + 1] == ' ' || text[i + 1] == '\n')) return i + 1;
    return n;
}

// Adds the first sentences, and examples: indented lines with the command's name, and their continuation lines.
static void add_short_details(cli_text *out, const char *details)
{
    enum { MOST_EXAMPLES = 4 };
    int n_examples = 0;
    bool is_example = false;
    cli_text first = {0};
    cli_text_add(&first, details, first_sentences(details));
    if (details[0] != ' ') add_paragraphs(out, first.data), cli_text_print(out, "\n");
    for (const char *line = details; *line && n_examples <= MOST_EXAMPLES;) {
        const size_t n = strcspn(line, "\n");
        const char *name = strstr(line, "frit ");
        const bool goes_on = is_example && strncmp(line, "      ", 6) == 0;
        is_example = goes_on || (line[0] == ' ' && name && name < line + n);
        n_examples += is_example && !goes_on;
        if (is_example && n_examples <= MOST_EXAMPLES) cli_text_print(out, "%.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
    if (n_examples > 0) cli_text_print(out, "\n");
    free(first.data);
}

static bool has_sampling(const cli_command *command)
{
    for (size_t g = 0; g < command->n_groups; g++)
        if (command->groups[g].rows == frit_sampler_option_rows) return true;
    return false;
}

static void print_command(const cli_command *command, bool all)
{
    cli_text out = {0};
    const bool is_short = command->usual && !all;
    cli_text_print(&out, "frit %s: %s\n\nUsage: frit %s %s\n\n", command->name, command->summary, command->name,
                   command->usage);
    if (is_short)
        add_short_details(&out, command->details);
    else
        add_paragraphs(&out, command->details);
    const size_t n_all = add_options(&out, command, is_short);
    if (is_short)
        cli_text_print(&out, "\n'frit %s --help-all' shows all %zu options, with their other names.\n", command->name,
                       n_all);
    else if (n_all > 0)
        cli_text_print(
            &out,
            "\nA value in parentheses is what holds without the option%s. Each option can also be set in the "
            "environment: --top-k is FRIT_TOP_K. Names after 'also' mean the same, as llama.cpp calls it.\n",
            has_sampling(command) ? "; for sampling, what the model's file recommends comes first" : "");
    cli_wrap_print(stdout, width_of_help(), out.data);
    free(out.data);
}

static void print_overview(void)
{
    cli_text out = {0};
    cli_text_print(&out, "frit %s runs large language models.\n\nUsage: frit COMMAND [MODEL] [options]\n\nCommands:\n",
                   frit_version());
    const cli_command *command;
    for (size_t i = 0; (command = cli_command_get(i)); i++)
        cli_text_print(&out, "  %-12s  %s\n", command->name, command->summary);
    cli_text_print(
        &out,
        "\nA model is a GGUF file, a safetensors file or a Hugging Face folder, or the name of one, as 'frit help "
        "pull' lists; without one the bundled model is used. 'frit MODEL' is a conversation.\n"
        "'frit help COMMAND' tells more, 'frit help models' which models run; 'frit --version' the version.\n\nExit "
        "codes:\n");
    add_exit_codes(&out);
    cli_wrap_print(stdout, width_of_help(), out.data);
    free(out.data);
}

// ---------------------------------------------------------------------------------------- the man page

// Escapes text for roff, which reads a hyphen as a dash, a backslash as an escape, and a line that begins with a dot or
// a quote as a request.
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
    cli_text aliases = {0};
    add_aliases(&aliases, row);
    fputs(aliases.data ? aliases.data : "", stdout);
    free(aliases.data);
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
    if (strcmp(topic, "models") == 0) {
        cli_print_models();
        return CLI_DONE;
    }
    const cli_command *command = cli_command_find(topic);
    if (!command) return cli_unknown_command(topic);
    print_command(command, args->help.all);
    return CLI_DONE;
}

static const cli_group help_groups[] = {{"Options", help_rows, offsetof(help_args, help)}};

const cli_command cli_command_help = {
    .name = "help",
    .usage = "[COMMAND | models | exit-codes] [--all | --man]",
    .summary = "tell about frit or one of its commands",
    .details = "  frit help run\n  frit help run --all\n  frit help models\n  frit help --man > frit.1",
    .max_positional = 1,
    .args_bytes = sizeof(help_args),
    .groups = help_groups,
    .n_groups = CLI_COUNT(help_groups),
    .run = run_help,
};
