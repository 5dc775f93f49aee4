// SPDX-License-Identifier: MIT
// Fields that say what the answer may be: grammars, regular expressions and JSON schemas.
#include "server/request/request.h"

#include <string.h>

static bool no_memory(server_problem *problem)
{
    return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
}

bool server_set_format(server_generation *request, frit_grammar_kind kind, const char *param, json_t *value,
                       server_problem *problem)
{
    if (request->format.param)
        return server_refuse(problem, 400, "invalid_value", param, "%s: %s already gives the form of the answer", param,
                             request->format.param);
    request->format.kind = kind;
    request->format.param = param;
    if (json_is_string(value)) {
        request->format.text = json_string_value(value);
        request->format.n_text = json_string_length(value);
        return true;
    }
    request->format.text = request->format.owned = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    if (!request->format.text) return no_memory(problem);
    request->format.n_text = strlen(request->format.text);
    return true;
}

static bool set_text_format(json_t *value, void *ctx, frit_grammar_kind kind, const char *param,
                            server_problem *problem)
{
    if (!json_is_string(value))
        return server_refuse(problem, 400, "invalid_type", param, "%s: expected a string", param);
    if (json_string_length(value) == 0) return true;
    return server_set_format(ctx, kind, param, value, problem);
}

bool server_set_schema(server_generation *request, json_t *value, const char *param, server_problem *problem)
{
    if (!json_is_object(value) && !json_is_boolean(value))
        return server_refuse(problem, 400, "invalid_type", param, "%s: expected a JSON schema, an object", param);
    return server_set_format(request, FRIT_GRAMMAR_SCHEMA, param, value, problem);
}

bool server_parse_grammar(json_t *value, void *ctx, server_problem *problem)
{
    return set_text_format(value, ctx, FRIT_GRAMMAR_GBNF, "grammar", problem);
}

bool server_parse_regex(json_t *value, void *ctx, server_problem *problem)
{
    return set_text_format(value, ctx, FRIT_GRAMMAR_REGEX, "regex", problem);
}

bool server_parse_json_schema(json_t *value, void *ctx, server_problem *problem)
{
    return server_set_schema(ctx, value, "json_schema", problem);
}

bool server_parse_guided_grammar(json_t *value, void *ctx, server_problem *problem)
{
    return set_text_format(value, ctx, FRIT_GRAMMAR_GBNF, "guided_grammar", problem);
}

bool server_parse_guided_regex(json_t *value, void *ctx, server_problem *problem)
{
    return set_text_format(value, ctx, FRIT_GRAMMAR_REGEX, "guided_regex", problem);
}

bool server_parse_guided_json(json_t *value, void *ctx, server_problem *problem)
{
    if (json_is_string(value)) return set_text_format(value, ctx, FRIT_GRAMMAR_SCHEMA, "guided_json", problem);
    return server_set_schema(ctx, value, "guided_json", problem);
}

// {"type": "text"}, {"type": "json_object"}, {"type": "json_schema", "json_schema": {"name": ..., "schema": {...}}}, or
// {"type": "structural_tag"} with "structures" and "triggers", or with "format".
bool server_parse_response_format(json_t *value, void *ctx, server_problem *problem)
{
    static const char param[] = "response_format";
    server_generation *request = ctx;
    const char *type = json_string_value(json_object_get(value, "type"));
    if (!type)
        return server_refuse(problem, 400, "invalid_type", param, "%s: expected an object with a type, a string",
                             param);
    if (strcmp(type, "text") == 0) return true;
    if (strcmp(type, "structural_tag") == 0)
        return server_set_format(request, FRIT_GRAMMAR_TAGS, param, value, problem);
    json_t *schema = json_object_get(value, "schema"), *inner = json_object_get(value, "json_schema");
    if (strcmp(type, "json_schema") == 0) {
        if (!schema) schema = json_object_get(inner, "schema");
        if (!schema)
            return server_refuse(problem, 400, "missing_required_parameter", param, "%s.json_schema.schema: is missing",
                                 param);
        return server_set_schema(request, schema, param, problem);
    }
    if (strcmp(type, "json_object") != 0)
        return server_refuse(problem, 400, "unsupported_parameter", param,
                             "%s: type '%.64s' is not known; expected text, json_object, json_schema or structural_tag",
                             param, type);
    if (schema) return server_set_schema(request, schema, param, problem);
    json_t *any = json_pack("{s:s}", "type", "object");
    if (!any) return no_memory(problem);
    const bool good = server_set_format(request, FRIT_GRAMMAR_SCHEMA, param, any, problem);
    json_decref(any);
    return good;
}
