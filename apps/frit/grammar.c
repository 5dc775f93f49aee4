// SPDX-License-Identifier: MIT
// --grammar, --json-schema and --regex: what answers may be.
#include "cli.h"

#include <stdlib.h>
#include <string.h>

const frit_option *cli_grammar_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "grammar",
         .aliases = "grammar-file",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(cli_grammar_options, gbnf),
         .metavar = "FILE|TEXT",
         .help = "answers follow this grammar in GBNF; a file's name, or the rules themselves"},
        {.name = "json-schema",
         .letter = 'j',
         .aliases = "json-schema-file",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(cli_grammar_options, schema),
         .metavar = "FILE|TEXT",
         .help = "answers are JSON that this schema allows ('{}': any JSON)"},
        {.name = "regex",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(cli_grammar_options, regex),
         .metavar = "REGEX",
         .help = "answers match this regular expression as a whole"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static int compile(frit_grammar **out, const frit_model *model, const char *name, const char *value,
                   frit_grammar_kind kind)
{
    cli_text text = {0};
    int code = CLI_DONE;
    if (kind != FRIT_GRAMMAR_REGEX && strlen(value) < 4096 && cli_path_kind(value) == CLI_PATH_FILE)
        code = cli_read_file(value, &text);
    else
        cli_text_add(&text, value, strlen(value));
    const frit_grammar_options options = {.kind = kind};
    if (code == CLI_DONE && frit_grammar_new(out, model, text.data ? text.data : "", text.n, &options) != FRIT_OK)
        code = cli_usage("--%s: %s", name, frit_error());
    free(text.data);
    return code;
}

int cli_open_grammar(frit_grammar **out, const frit_model *model, const cli_grammar_options *options)
{
    *out = NULL;
    if ((options->gbnf != NULL) + (options->schema != NULL) + (options->regex != NULL) > 1)
        return cli_usage("--grammar, --json-schema and --regex each say what an answer may be; give one of them");
    if (options->gbnf) return compile(out, model, "grammar", options->gbnf, FRIT_GRAMMAR_GBNF);
    if (options->schema) return compile(out, model, "json-schema", options->schema, FRIT_GRAMMAR_SCHEMA);
    if (options->regex) return compile(out, model, "regex", options->regex, FRIT_GRAMMAR_REGEX);
    return CLI_DONE;
}
