// SPDX-License-Identifier: MIT
// Any command line and environment: accepted values lie within the limits of their option rows, and a refusal is a
// usage error. No command runs.
//
//     input: a command, then words with a zero after each. A word that begins with a low byte gets the name of an
//     option in front, so that the fuzzer need not find the names: 1 "--name", 2 "--name=", 3 "-letter", 4 "-letters",
//     5 an alias, 6 the variable of the option, which is set; the next byte selects the option.
#include "frit/bench/bench.h"
#include "frit/cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

enum { MAX_WORDS = 64, WORD_BYTES = 512 };

static void require(bool good)
{
    if (!good) abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    stderr = fopen("/dev/null", "w");   // the fuzzer has a copy of stderr
    require(stderr != NULL);
    return 0;
}

// ---------------------------------------------------------------------------------------- words

// The option of a command with index i modulo their number.
static const frit_option *option_at(const cli_command *command, size_t i)
{
    size_t n_all = 0, n_rows;
    for (size_t g = 0; g < command->n_groups; g++) {
        command->groups[g].rows(&n_rows);
        n_all += n_rows;
    }
    if (n_all == 0) return NULL;
    i %= n_all;
    for (size_t g = 0;; g++) {
        const frit_option *rows = command->groups[g].rows(&n_rows);
        if (i < n_rows) return &rows[i];
        i -= n_rows;
    }
}

static void name_option(const frit_option *row, int how, const char *rest, char *word)
{
    const char *alias = row->aliases ? row->aliases : row->name;
    switch (how) {
    case 1:
        snprintf(word, WORD_BYTES, "--%s%s", row->name, rest);
        break;
    case 2:
        snprintf(word, WORD_BYTES, "--%s=%s", row->name, rest);
        break;
    case 3:
        snprintf(word, WORD_BYTES, "-%c%s", row->letter ? row->letter : 'x', rest);
        break;
    case 4:
        snprintf(word, WORD_BYTES, "-%s%s", row->letters ? row->letters : "xy", rest);
        break;
    default:
        snprintf(word, WORD_BYTES, "--%.*s%s", (int)strcspn(alias, "|"), alias, rest);
    }
}

typedef struct words {
    char text[MAX_WORDS][WORD_BYTES], variables[MAX_WORDS][WORD_BYTES];
    char *argv[MAX_WORDS];
    int argc, n_variables;
} words;

static void add_word(words *w, const cli_command *command, const char *text)
{
    const unsigned char how = (unsigned char)text[0];
    const frit_option *row = how >= 1 && how <= 6 && text[1] ? option_at(command, (unsigned char)text[1]) : NULL;
    if (!row) {
        snprintf(w->text[w->argc], WORD_BYTES, "%s", text);
    } else if (how == 6) {
        char *name = w->variables[w->n_variables++];
        cli_env_name(row->name, name, WORD_BYTES);
        setenv(name, text + 2, 1);
        return;
    } else {
        name_option(row, how, text + 2, w->text[w->argc]);
    }
    w->argv[w->argc] = w->text[w->argc];
    w->argc++;
}

// ---------------------------------------------------------------------------------------- checks

static bool is_choice(const char *choices, const char *text)
{
    const size_t n = strlen(text);
    for (const char *at = choices; n > 0 && (at = strstr(at, text)); at++)
        if ((at == choices || at[-1] == '|') && (at[n] == 0 || at[n] == '|')) return true;
    return false;
}

static void check_number(const frit_option *row, double value)
{
    require(isfinite(value));
    if (row->min != 0 || row->max != 0) require(value == 0 || (value >= row->min && value <= row->max));
}

static void check_field(const frit_option *row, const char *fields)
{
    const char *at = fields + row->offset, *text;
    unsigned char flag;
    int32_t integer;
    float number;
    frit_option_list list;
    switch (row->type) {
    case FRIT_OPTION_FLAG:
        memcpy(&flag, at, 1);
        require(flag <= 1);
        return;
    case FRIT_OPTION_INT:
        memcpy(&integer, at, sizeof integer);
        check_number(row, integer);
        return;
    case FRIT_OPTION_FLOAT:
        memcpy(&number, at, sizeof number);
        check_number(row, (double)number);
        return;
    case FRIT_OPTION_CHOICE:
        memcpy(&text, at, sizeof text);
        require(!text || is_choice(row->choices, text));
        return;
    case FRIT_OPTION_LIST:
        memcpy(&list, at, sizeof list);
        for (size_t i = 0; i < list.n; i++) require(list.items[i] != NULL);
        return;
    default:
        return;
    }
}

static void check_all(const cli_command *command, const char *args)
{
    const cli_common *common = (const cli_common *)(const void *)args;
    require(common->n_positional <= command->max_positional);
    for (size_t g = 0; g < command->n_groups; g++) {
        size_t n_rows;
        const frit_option *rows = command->groups[g].rows(&n_rows);
        for (size_t i = 0; i < n_rows; i++) check_field(&rows[i], args + command->groups[g].offset);
    }
}

// bench expands its lists to rows before anything is opened.
static void plan(const char *args)
{
    const bench_args *bench = (const bench_args *)(const void *)args;
    bench_plan made = {0};
    const int code =
        bench_plan_make(&made, bench, bench->common.n_positional > 0 ? (size_t)bench->common.n_positional : 1);
    require(code == CLI_DONE ? made.n > 0 : code == CLI_USAGE);
    bench_plan_free(&made);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    static words w;
    if (n_bytes < 2 || n_bytes > 1 << 12) return 0;
    size_t n_commands = 0;
    while (cli_command_get(n_commands)) n_commands++;
    const cli_command *command = cli_command_get(bytes[0] % n_commands);
    char *copy = malloc(n_bytes);
    require(copy != NULL);
    memcpy(copy, bytes + 1, n_bytes - 1);
    copy[n_bytes - 1] = 0;
    w.argc = w.n_variables = 0;
    for (size_t at = 0; at < n_bytes && w.argc < MAX_WORDS && w.n_variables < MAX_WORDS; at += strlen(copy + at) + 1)
        add_word(&w, command, copy + at);
    cli_parse parse = {.command = command, .args = calloc(1, command->args_bytes)};
    require(parse.args != NULL);
    const int code = cli_parse_options(&parse, w.argc, w.argv);
    require(code == CLI_DONE || code == CLI_USAGE);
    if (code == CLI_DONE && !parse.help) check_all(command, parse.args);
    if (code == CLI_DONE && !parse.help && command == &cli_command_bench) plan(parse.args);
    cli_parse_free(&parse);
    for (int i = 0; i < w.n_variables; i++) unsetenv(w.variables[i]);
    free(copy);
    return 0;
}
