// SPDX-License-Identifier: MIT
// vLLM's fields that say what an answer may be: guided_choice and structured_outputs.
#include "server/request/request.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_CHOICES = 4096 };

static char *put_text(char *at, const char *text)
{
    const size_t n = strlen(text);
    memcpy(at, text, n);
    return at + n;
}

// Writes a literal of GBNF: "..." with quotes, backslashes and control characters escaped.
static char *put_literal(char *at, const char *text, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    *at++ = '"';
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c < 32) {
            at = put_text(at, "\\x");
            *at++ = digits[c >> 4];
            *at++ = digits[c & 15];
            continue;
        }
        if (c == '"' || c == '\\') *at++ = '\\';
        *at++ = (char)c;
    }
    *at++ = '"';
    return at;
}

static bool set_choices(json_t *value, server_generation *request, const char *param, server_problem *problem)
{
    const size_t n = json_array_size(value);
    size_t n_bytes = 64;
    if (n == 0 || n > MAX_CHOICES)
        return server_refuse(problem, 400, "invalid_type", param, "%s: expected a list of 1 to %d strings", param,
                             MAX_CHOICES);
    for (size_t i = 0; i < n; i++) {
        const json_t *text = json_array_get(value, i);
        if (json_string_length(text) == 0)
            return server_refuse(problem, 400, "invalid_type", param, "%s[%zu]: expected a string that is not empty",
                                 param, i);
        n_bytes += 4 * json_string_length(text) + 8;
    }
    char *rules = malloc(n_bytes);
    if (!rules) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    char *at = put_text(rules, "root ::= ");
    for (size_t i = 0; i < n; i++) {
        const json_t *text = json_array_get(value, i);
        if (i > 0) at = put_text(at, " | ");
        at = put_literal(at, json_string_value(text), json_string_length(text));
    }
    json_t *grammar = json_stringn(rules, (size_t)(at - rules));
    bool good = grammar && server_set_format(request, FRIT_GRAMMAR_GBNF, param, grammar, problem);
    json_decref(grammar);
    free(request->format.owned);
    request->format.owned = rules;
    request->format.text = rules;
    return good;
}

bool server_parse_guided_choice(json_t *value, void *request, server_problem *problem)
{
    return set_choices(value, request, "guided_choice", problem);
}

static bool set_text(json_t *value, server_generation *request, frit_grammar_kind kind, server_problem *problem)
{
    if (!json_is_string(value))
        return server_refuse(problem, 400, "invalid_type", "structured_outputs",
                             "structured_outputs: regex and grammar: expected a string");
    return server_set_format(request, kind, "structured_outputs", value, problem);
}

// Structural tags are an object, or the JSON text of one.
static bool set_tags(json_t *value, server_generation *request, const char *param, server_problem *problem)
{
    if (!json_is_string(value) && !json_is_object(value))
        return server_refuse(problem, 400, "invalid_type", param, "%s.structural_tag: expected an object or its text",
                             param);
    return server_set_format(request, FRIT_GRAMMAR_TAGS, param, value, problem);
}

// An object with one of the members "json" (a schema), "regex", "choice" (a list of strings), "grammar",
// "structural_tag" (an object) and "json_object" (true).
bool server_parse_structured_outputs(json_t *value, void *ctx, server_problem *problem)
{
    static const char param[] = "structured_outputs";
    server_generation *request = ctx;
    const char *key;
    json_t *inner;
    if (!json_is_object(value))
        return server_refuse(problem, 400, "invalid_type", param, "%s: expected an object", param);
    json_object_foreach(value, key, inner)
    {
        bool good = true;
        if (json_is_null(inner) || json_is_false(inner)) continue;
        if (strcmp(key, "choice") == 0)
            good = set_choices(inner, request, param, problem);
        else if (strcmp(key, "regex") == 0)
            good = set_text(inner, request, FRIT_GRAMMAR_REGEX, problem);
        else if (strcmp(key, "grammar") == 0)
            good = set_text(inner, request, FRIT_GRAMMAR_GBNF, problem);
        else if (strcmp(key, "json") == 0 && json_is_string(inner))
            good = server_set_format(request, FRIT_GRAMMAR_SCHEMA, param, inner, problem);
        else if (strcmp(key, "json") == 0)
            good = server_set_schema(request, inner, param, problem);
        else if (strcmp(key, "structural_tag") == 0)
            good = set_tags(inner, request, param, problem);
        else if (strcmp(key, "json_object") == 0) {
            json_t *any = json_pack("{s:s}", "type", "object");
            good = any && server_set_schema(request, any, param, problem);
            json_decref(any);
        } else
            good = server_refuse(problem, 400, "unsupported_parameter", param, "%s.%.64s is not supported", param, key);
        if (!good) return false;
    }
    return true;
}
