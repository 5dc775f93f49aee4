// SPDX-License-Identifier: MIT
// The option rows of all commands, as the parser reads them.
#include "frit/cli/cli.h"
#include "support/support.h"

typedef struct names {
    char names[512][64];
    size_t n;
} names;

static void add(names *all, const cli_command *command, const char *format, const char *name, size_t n_name)
{
    char text[64];
    snprintf(text, sizeof text, format, (int)n_name, name);
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->names[i], text) == 0) fail_msg("frit %s has two options %s", command->name, text);
    assert_true(all->n < FRIT_COUNT(all->names));
    snprintf(all->names[all->n++], sizeof all->names[0], "%s", text);
}

static void add_row(names *all, const cli_command *command, const frit_option *row)
{
    add(all, command, "--%.*s", row->name, strlen(row->name));
    if (row->letter) add(all, command, "-%.*s", &row->letter, 1);
    if (row->letters) add(all, command, "-%.*s", row->letters, strlen(row->letters));
    for (const char *at = row->aliases; at;) {
        const size_t n = strcspn(at, "|");
        assert_true(n > 0);
        add(all, command, "--%.*s", at, n);
        at = at[n] ? at + n + 1 : NULL;
    }
}

static void no_name_of_an_option_means_two_things(void **state)
{
    (void)state;
    static names all;
    const cli_command *command;
    for (size_t c = 0; (command = cli_command_get(c)); c++) {
        all.n = 0;
        add(&all, command, "--%.*s", "help", 4);
        add(&all, command, "-%.*s", "h", 1);
        for (size_t g = 0; g < command->n_groups; g++) {
            size_t n_rows;
            const frit_option *rows = command->groups[g].rows(&n_rows);
            for (size_t i = 0; i < n_rows; i++) add_row(&all, command, &rows[i]);
        }
    }
}

static void rows_have_what_help_shows(void **state)
{
    (void)state;
    const cli_command *command;
    for (size_t c = 0; (command = cli_command_get(c)); c++) {
        for (size_t g = 0; g < command->n_groups; g++) {
            size_t n_rows;
            const frit_option *rows = command->groups[g].rows(&n_rows);
            for (size_t i = 0; i < n_rows; i++) {
                const frit_option *row = &rows[i];
                const bool shows_value = row->metavar || row->choices || row->type == FRIT_OPTION_FLAG;
                if (!row->help || !shows_value)
                    fail_msg("frit %s: --%s lacks help or metavar", command->name, row->name);
                if (row->type == FRIT_OPTION_CHOICE) assert_non_null(row->choices);
                assert_true(row->min <= row->max);
            }
        }
    }
}

// cli_parse sets defaults; the rows of every command allow their own defaults.
static void defaults_are_allowed(void **state)
{
    (void)state;
    const cli_command *command;
    for (size_t c = 0; (command = cli_command_get(c)); c++) {
        cli_parse parse = {.command = command, .args = calloc(1, command->args_bytes)};
        assert_non_null(parse.args);
        assert_int_equal(cli_parse_options(&parse, 0, NULL), CLI_DONE);
        cli_parse_free(&parse);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_name_of_an_option_means_two_things),
        cmocka_unit_test(rows_have_what_help_shows),
        cmocka_unit_test(defaults_are_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
