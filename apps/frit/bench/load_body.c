// SPDX-License-Identifier: MIT
// Bodies of requests to a server. Prompts may have thousands of tokens, and the thread that writes bodies also notes
// when events arrive, so ids are written without printf, which is slow.
#include "frit/bench/load.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

// Words that are a token each, with the space before them, in the vocabularies of most models.
static const char words[LOAD_WORDS][8] = {
    "the",  "of",  "and",  "to",    "in",    "is",    "that", "for",   "it",   "as",    "was",  "with",  "be",
    "by",   "on",  "not",  "he",    "his",   "but",   "at",   "are",   "this", "have",  "had",  "from",  "they",
    "one",  "all", "we",   "her",   "she",   "there", "been", "if",    "more", "when",  "will", "would", "over",
    "so",   "no",  "out",  "up",    "said",  "what",  "its",  "about", "than", "into",  "them", "can",   "only",
    "time", "new", "some", "could", "these", "two",   "may",  "first", "then", "other", "do",   "any",
};

// Fields of `more` replace the fields that are always sent; a field that is null is left out.
static int merge(json_t *fields, const char *more)
{
    const char *name;
    json_t *value, *object = json_loads(more, 0, NULL);
    void *next;
    if (!json_is_object(object)) {
        json_decref(object);
        return cli_usage("bench: --body: '%s' is no JSON object like {\"top_k\": 40}", more);
    }
    const bool good = json_object_update(fields, object) == 0;
    json_decref(object);
    json_object_foreach_safe(fields, next, name, value)
    {
        if (json_is_null(value)) json_object_del(fields, name);
    }
    if (json_object_get(fields, "prompt") || json_object_get(fields, "max_tokens"))
        return cli_usage("bench: --body has a prompt or max_tokens, which --in and --out set");
    return good ? CLI_DONE : cli_no_memory();
}

int load_body_fields(char **fields, const char *model, const char *more)
{
    json_t *object = json_pack("{s:s, s:b, s:{s:b}, s:i, s:b}", "model", model, "stream", 1, "stream_options",
                               "include_usage", 1, "temperature", 0, "ignore_eos", 1);
    const int code = object && more ? merge(object, more) : CLI_DONE;
    *fields = object && code == CLI_DONE ? json_dumps(object, JSON_PRESERVE_ORDER) : NULL;
    json_decref(object);
    if (code != CLI_DONE) return code;
    if (!*fields) return cli_no_memory();
    (*fields)[strlen(*fields) - 1] = 0;
    return CLI_DONE;
}

// The field for the grammar of an option. A schema has OpenAI's field, other grammars have vLLM's.
static json_t *grammar_field(const char *option, const char *text)
{
    static const struct {
        const char *option, *member;   // of structured_outputs
    } others[] = {{"regex", "regex"}, {"grammar", "grammar"}, {"structural-tag", "structural_tag"}};
    if (strcmp(option, "json-schema") == 0) {
        json_t *schema = json_loads(text, JSON_DECODE_ANY, NULL);
        return schema ? json_pack("{s:{s:s, s:{s:s, s:o}}}", "response_format", "type", "json_schema", "json_schema",
                                  "name", "answer", "schema", schema)
                      : NULL;
    }
    for (size_t i = 0; i < CLI_COUNT(others); i++)
        if (strcmp(option, others[i].option) == 0)
            return json_pack("{s:{s:s}}", "structured_outputs", others[i].member, text);
    return NULL;
}

int load_body_add_grammar(char **out, const char *fields, const char *option, const char *text)
{
    cli_text all = {0};
    json_t *field = grammar_field(option, text);
    char *more = field ? json_dumps(field, 0) : NULL;
    json_decref(field);
    *out = NULL;
    if (!more && strcmp(option, "json-schema") == 0) return cli_usage("bench: --json-schema: the schema is not JSON");
    if (!more) return cli_no_memory();
    more[strlen(more) - 1] = 0;
    cli_text_print(&all, "%s%s%s", fields, fields[1] ? ", " : "", more + 1);
    free(more);
    *out = all.data;
    return CLI_DONE;
}

size_t load_body_size(const char *fields, const load_case *load)
{
    enum { REST = 64, ITEM = 12 };   // "max_tokens" and brackets; an id or a word, and what is between two
    return strlen(fields) + REST + ITEM * (size_t)load->n_in;
}

static char *write_id(char *at, frit_token id)
{
    char digits[12];
    int n = 0;
    do digits[n++] = (char)('0' + id % 10);
    while ((id /= 10) > 0);
    while (n > 0) *at++ = digits[--n];
    return at;
}

static char *write_word(char *at, const char *word)
{
    while (*word) *at++ = *word++;
    return at;
}

size_t load_body_write(char *out, const char *fields, const load_case *load, int32_t i, bool is_text,
                       frit_token *tokens)
{
    load_case_prompt(load, i, tokens);
    const int n_head = snprintf(out, load_body_size(fields, load), "%s%s\"max_tokens\": %d, \"prompt\": %c", fields,
                                fields[1] ? ", " : "", load->n_out, is_text ? '"' : '[');
    char *at = out + n_head;
    for (int32_t k = 0; k < load->n_in; k++) {
        if (k > 0) *at++ = is_text ? ' ' : ',';
        at = is_text ? write_word(at, words[tokens[k]]) : write_id(at, tokens[k]);
    }
    *at++ = is_text ? '"' : ']';
    *at++ = '}';
    return (size_t)(at - out);
}
