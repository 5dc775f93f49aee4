// SPDX-License-Identifier: MIT
// --grammar, --json-schema, --regex and --structural-tag: grammars of answers.
#include "frit/cli/cli.h"

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
        {.name = "structural-tag",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(cli_grammar_options, tags),
         .metavar = "FILE|TEXT",
         .help = "answers are text in which triggers begin JSON or other forms, as this JSON says (docs/grammar.md)"},
        {.name = "open-objects",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(cli_grammar_options, open_objects),
         .help = "objects of JSON schemas may have properties that the schema does not name, as the drafts say"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

typedef struct given {
    const char *name, *value;   // of an option
    frit_grammar_kind kind;
    bool open_objects;
} given;

static int find_given(const cli_grammar_options *options, given *found)
{
    const given all[] = {{.name = "grammar", .value = options->gbnf, .kind = FRIT_GRAMMAR_GBNF},
                         {.name = "json-schema", .value = options->schema, .kind = FRIT_GRAMMAR_SCHEMA},
                         {.name = "regex", .value = options->regex, .kind = FRIT_GRAMMAR_REGEX},
                         {.name = "structural-tag", .value = options->tags, .kind = FRIT_GRAMMAR_TAGS}};
    int n = 0;
    *found = (given){0};
    for (size_t i = 0; i < CLI_COUNT(all); i++) {
        if (!all[i].value) continue;
        *found = all[i];
        found->open_objects = options->open_objects;
        n++;
    }
    if (n > 1)
        return cli_usage("--grammar, --json-schema, --regex and --structural-tag each say what an answer may be; give "
                         "one of them");
    return CLI_DONE;
}

// True if the value is a grammar itself: every grammar has a rule, and a schema is an object, true or false. Other
// values are file names.
static bool is_text(const given *found)
{
    const char *at = found->value;
    if (found->kind == FRIT_GRAMMAR_GBNF) return strstr(at, "::=") != NULL;
    at += strspn(at, " \t\r\n");
    if (found->kind == FRIT_GRAMMAR_TAGS) return *at == '{';
    return *at == '{' || strncmp(at, "true", 4) == 0 || strncmp(at, "false", 5) == 0;
}

static const char *why_no_text(frit_grammar_kind kind)
{
    if (kind == FRIT_GRAMMAR_GBNF) return "a grammar: it has no '::='";
    if (kind == FRIT_GRAMMAR_TAGS) return "a structural tag: it does not begin with '{'";
    return "a JSON schema: it does not begin with '{'";
}

static int read_given(const given *found, cli_text *text)
{
    *text = (cli_text){0};
    if (found->kind != FRIT_GRAMMAR_REGEX && strlen(found->value) < 4096 &&
        cli_path_kind(found->value) == CLI_PATH_FILE)
        return cli_read_file(found->value, text);
    if (found->kind != FRIT_GRAMMAR_REGEX && !is_text(found))
        return cli_usage("--%s: there is no file '%.200s', and it is not %s", found->name, found->value,
                         why_no_text(found->kind));
    cli_text_add(text, found->value, strlen(found->value));
    return CLI_DONE;
}

int cli_read_grammar(cli_text *text, const char **name, const cli_grammar_options *options)
{
    given found;
    *text = (cli_text){0};
    const int code = find_given(options, &found);
    *name = found.name;
    return code == CLI_DONE && found.value ? read_given(&found, text) : code;
}

static int compile(frit_grammar **out, const frit_model *model, const given *found, const cli_text *text)
{
    const frit_grammar_options options = {.kind = found->kind, .open_objects = found->open_objects};
    if (frit_grammar_new(out, model, text->data ? text->data : "", text->n, &options) == FRIT_OK) return CLI_DONE;
    return cli_usage("--%s: %s", found->name, frit_error());
}

int cli_begin_grammar(cli_grammar *grammar, const frit_model *model, const cli_grammar_options *options)
{
    given found;
    cli_text text = {0};
    *grammar = (cli_grammar){0};
    int code = find_given(options, &found);
    if (code == CLI_DONE && found.value) code = read_given(&found, &text);
    if (code == CLI_DONE && found.value) {
        const frit_grammar_options how = {.kind = found.kind, .open_objects = found.open_objects};
        grammar->name = found.name;
        const frit_status status = frit_grammar_begin(&grammar->job, model, text.data ? text.data : "", text.n, &how);
        if (status != FRIT_OK) code = cli_usage("--%s: %s", grammar->name, frit_error());
    }
    free(text.data);
    return code;
}

int cli_finish_grammar(cli_grammar *grammar)
{
    if (!grammar->job) return CLI_DONE;
    const frit_status status = frit_grammar_finish(grammar->job, &grammar->grammar);
    grammar->job = NULL;
    return status == FRIT_OK ? CLI_DONE : cli_usage("--%s: %s", grammar->name, frit_error());
}

int cli_use_grammar(cli_grammar *grammar, frit_sampler *sampler)
{
    if (!grammar->job) return CLI_DONE;
    const int code = cli_finish_grammar(grammar);
    if (code != CLI_DONE) return code;
    const frit_status set = frit_sampler_set_grammar(sampler, grammar->grammar);
    return set == FRIT_OK ? CLI_DONE : cli_report(set);
}

void cli_grammar_free(cli_grammar *grammar)
{
    if (grammar->job) frit_grammar_finish(grammar->job, NULL);
    frit_grammar_free(grammar->grammar);
}

int cli_read_format(frit_turn_grammar_options *out, const frit_model *model, const cli_grammar_options *options)
{
    given found;
    cli_text text = {0};
    frit_grammar *grammar = NULL;
    *out = (frit_turn_grammar_options){.open_objects = options->open_objects};   // also for tools
    int code = find_given(options, &found);
    if (code != CLI_DONE || !found.value) return code;
    code = read_given(&found, &text);
    if (code == CLI_DONE) code = compile(&grammar, model, &found, &text);   // reports mistakes before the long work
    frit_grammar_free(grammar);
    if (code == CLI_DONE) cli_text_add(&text, "", 0);
    if (code != CLI_DONE) free(text.data);
    if (code == CLI_DONE)
        *out = (frit_turn_grammar_options){
            .format = text.data, .n_format = text.n, .kind = found.kind, .open_objects = options->open_objects};
    return code;
}
