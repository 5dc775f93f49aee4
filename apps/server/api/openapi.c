// SPDX-License-Identifier: MIT
// /openapi.json: routes and their field tables as OpenAPI 3.1.
#include "server/api/handlers.h"

#include "frit_tools.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TEXT         "{\"type\": [\"string\", \"null\"]}"
#define OBJECT       "{\"type\": [\"object\", \"null\"]}"
#define OBJECTS      "{\"type\": [\"array\", \"null\"], \"items\": {\"type\": \"object\"}}"
#define TEXTS        "{\"type\": [\"string\", \"array\", \"null\"], \"items\": {\"type\": \"string\"}}"
#define BOOL         "{\"type\": [\"boolean\", \"null\"]}"

// Schemas of fields of type FIELD_CUSTOM and FIELD_ELSEWHERE, by name in all requests. The schema of other such fields
// allows every value.
static const struct {
    const char *name, *schema;
} custom[] = {
    {"messages", OBJECTS},
    {"tools", OBJECTS},
    {"images", "{\"type\": [\"array\", \"null\"], \"items\": {\"type\": \"string\", \"contentEncoding\": \"base64\"}}"},
    {"tool_choice", "{\"type\": [\"string\", \"object\", \"null\"]}"},
    {"chat_template_kwargs", OBJECT},
    {"reasoning_effort", TEXT},
    {"add_generation_prompt", BOOL},
    {"continue_final_message", BOOL},
    {"metadata", OBJECT},
    {"prompt", "{\"type\": [\"string\", \"array\", \"null\"]}"},
    {"input", "{\"type\": [\"string\", \"array\", \"null\"]}"},
    {"system", "{\"type\": [\"string\", \"array\", \"null\"]}"},
    {"content", TEXT},
    {"suffix", TEXT},
    {"input_prefix", TEXT},
    {"input_suffix", TEXT},
    {"input_extra", OBJECTS},
    {"query", TEXT},
    {"documents", "{\"type\": [\"array\", \"null\"]}"},
    {"tokens", "{\"type\": [\"array\", \"null\"], \"items\": {\"type\": \"integer\", \"minimum\": 0}}"},
    {"stop", TEXTS},
    {"stop_sequences", "{\"type\": [\"array\", \"null\"], \"items\": {\"type\": \"string\"}}"},
    {"priority", "{\"type\": [\"integer\", \"null\"]}"},
    {"seed", "{\"type\": [\"integer\", \"string\", \"null\"]}"},
    {"logit_bias", "{\"type\": [\"object\", \"array\", \"null\"]}"},
    {"response_format", OBJECT},
    {"text", OBJECT},
    {"thinking", OBJECT},
    {"reasoning", OBJECT},
    {"prompt_logprobs", "{\"type\": [\"integer\", \"null\"], \"minimum\": 0, \"maximum\": 20}"},
    {"truncation", "{\"enum\": [\"auto\", \"disabled\", null]}"},
    {"options", OBJECT},
    {"output_config", OBJECT},
    {"stream_options", OBJECT},
    {"lora", OBJECTS},
    {"grammar", TEXT},
    {"regex", TEXT},
};

// Media types of replies that are not JSON.
static const struct {
    const char *reply, *media;
} texts[] = {{"text", "text/plain"}, {"html", "text/html"}, {"file", "*/*"}};

static json_t *custom_json(const char *name)
{
    for (size_t i = 0; i < COUNT(custom); i++)
        if (strcmp(custom[i].name, name) == 0) return json_loads(custom[i].schema, 0, NULL);
    return json_object();
}

static json_t *range_json(const char *type, double min, double max)
{
    json_t *json = json_pack("{s:[s, s]}", "type", type, "null");
    const bool whole = strcmp(type, "integer") == 0;
    json_object_set_new(json, "minimum", whole ? json_integer((json_int_t)min) : json_real(min));
    json_object_set_new(json, "maximum", whole ? json_integer((json_int_t)max) : json_real(max));
    return json;
}

static json_t *option_json(const frit_option *row)
{
    const double min = strcmp(row->name, "top-k") == 0 ? -1 : row->min;   // -1 turns top_k off too
    return range_json(row->type == FRIT_OPTION_INT ? "integer" : "number", min, row->max);
}

static json_t *sampler_json(const char *option)
{
    size_t n_rows;
    const frit_option *rows = frit_sampler_option_rows(&n_rows);
    for (size_t i = 0; i < n_rows; i++)
        if (strcmp(rows[i].name, option) == 0) return option_json(&rows[i]);
    return json_object();
}

static json_t *field_json(const server_field *field)
{
    switch (field->type) {
    case FIELD_BOOL:
        return json_pack("{s:[s, s], s:b}", "type", "boolean", "null", "default", field->fallback != 0);
    case FIELD_INT:
        return range_json("integer", field->min, field->max);
    case FIELD_NUMBER:
        return range_json("number", field->min, field->max);
    case FIELD_TEXT:
        return json_loads(TEXT, 0, NULL);
    case FIELD_SAMPLER:
        return sampler_json(field->row);
    case FIELD_CUSTOM:
    case FIELD_ELSEWHERE:
        return custom_json(field->name);
    case FIELD_UNSUPPORTED:
        return NULL;
    }
    return NULL;
}

static json_t *request_json(const server_parser *parser)
{
    json_t *properties = json_object();
    size_t n_rows;
    const frit_option *rows = frit_sampler_option_rows(&n_rows);
    for (size_t i = 0; i < n_rows && parser->sampler > 0; i++) {
        char name[64];
        if (server_name_sampler(&rows[i], name)) json_object_set_new(properties, name, option_json(&rows[i]));
    }
    for (size_t i = 0; i < parser->n_fields; i++) {
        json_t *json = field_json(&parser->fields[i]);
        if (json) json_object_set_new(properties, parser->fields[i].name, json);
    }
    return json_pack("{s:b, s:{s:{s:{s:s, s:o}}}}", "required", 1, "content", "application/json", "schema", "type",
                     "object", "properties", properties);
}

// The schema of a JSON value, used for the errors of a protocol.
static json_t *shape_of(const json_t *value)
{
    const char *key;
    json_t *member, *properties, *required;
    if (!json_is_object(value)) return json_pack("{s:[s, s]}", "type", "string", "null");
    properties = json_object();
    required = json_array();
    for (void *at = json_object_iter((json_t *)value); at; at = json_object_iter_next((json_t *)value, at)) {
        key = json_object_iter_key(at);
        member = json_object_iter_value(at);
        json_object_set_new(properties, key, shape_of(member));
        json_array_append_new(required, json_string(key));
    }
    return json_pack("{s:s, s:o, s:o}", "type", "object", "properties", properties, "required", required);
}

static json_t *error_json(const server_protocol *protocol)
{
    const server_problem problem = {.status = 400, .message = "why"};
    char *text = protocol->problem(&problem);
    json_t *sample = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    json_t *json = json_pack("{s:s, s:{s:{s:o}}}", "description", "An error", "content", "application/json", "schema",
                             shape_of(sample));
    json_decref(sample);
    return json;
}

static json_t *answer_json(const server_route *route)
{
    const char *media = "application/json", *type = route->reply;
    for (size_t i = 0; i < COUNT(texts); i++)
        if (strcmp(route->reply, texts[i].reply) == 0) media = texts[i].media, type = "string";
    json_t *content = json_pack("{s:{s:{s:s}}}", media, "schema", "type", type);
    if (route->protocol->begin && route->parser && route->parser->sampler > 0 && route->protocol->stream_type)
        json_object_set_new(content, route->protocol->stream_type, json_pack("{s:{s:s}}", "schema", "type", "string"));
    return json_pack("{s:s, s:o}", "description", "The answer", "content", content);
}

// Parameters in the query of URLs.
static const struct {
    const char *method, *path, *name, *values;   // values: with '|' between them; NULL: an optional text
} queries[] = {
    {"GET", "/props", "model", NULL},
    {"GET", "/slots", "model", NULL},
    {"GET", "/lora-adapters", "model", NULL},
    {"POST", "/slots/*", "action", "save|restore|erase"},
};

static json_t *parameters_json(const server_route *route)
{
    json_t *list = json_array();
    if (strchr(route->path, '*'))
        json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:{s:s}}", "name", "id", "in", "path", "required", 1,
                                              "schema", "type", "string"));
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        if (strcmp(queries[i].method, route->method) != 0 || strcmp(queries[i].path, route->path) != 0) continue;
        json_t *schema = json_pack("{s:s}", "type", "string"), *values = json_array();
        for (const char *at = queries[i].values; at;) {
            const size_t n = strcspn(at, "|");
            json_array_append_new(values, json_stringn(at, n));
            at = at[n] ? at + n + 1 : NULL;
        }
        if (queries[i].values) json_object_set(schema, "enum", values);
        json_decref(values);
        json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:o}", "name", queries[i].name, "in", "query",
                                              "required", queries[i].values != NULL, "schema", schema));
    }
    return list;
}

static json_t *operation_json(const server_route *route)
{
    char id[96];
    size_t n = 0;
    for (const char *c = route->method; *c && n + 1 < sizeof id; c++) id[n++] = (char)tolower((unsigned char)*c);
    for (const char *c = route->path; *c && n + 1 < sizeof id; c++) id[n++] = isalnum((unsigned char)*c) ? *c : '_';
    id[n] = 0;
    json_t *json = json_pack("{s:s, s:s, s:{s:o, s:o}}", "operationId", id, "summary", route->summary, "responses",
                             "200", answer_json(route), "default", error_json(route->protocol));
    if (route->parser) json_object_set_new(json, "requestBody", request_json(route->parser));
    if (!route->needs_key) json_object_set_new(json, "security", json_array());
    json_t *parameters = parameters_json(route);
    if (json_array_size(parameters) > 0) json_object_set(json, "parameters", parameters);
    json_decref(parameters);
    return json;
}

static json_t *paths_json(void)
{
    size_t n_routes;
    const server_route *routes = server_routes(&n_routes);
    json_t *paths = json_object();
    for (size_t i = 0; i < n_routes; i++) {
        char path[96], method[16];
        const size_t n = strcspn(routes[i].path, "*"), n_method = strlen(routes[i].method);
        snprintf(path, sizeof path, "%.*s%s", (int)n, routes[i].path, routes[i].path[n] ? "{id}" : "");
        for (size_t k = 0; k <= n_method && k < sizeof method; k++)
            method[k] = (char)tolower((unsigned char)routes[i].method[k]);
        if (!json_object_get(paths, path)) json_object_set_new(paths, path, json_object());
        json_object_set_new(json_object_get(paths, path), method, operation_json(&routes[i]));
    }
    return paths;
}

void server_show_openapi(server_exchange *exchange)
{
    json_t *schemes = json_pack("{s:{s:s, s:s}, s:{s:s, s:s, s:s}}", "bearer", "type", "http", "scheme", "bearer",
                                "key", "type", "apiKey", "in", "header", "name", "X-Api-Key");
    server_reply(exchange, json_pack("{s:s, s:{s:s, s:s}, s:o, s:{s:o}, s:[{s:[]}, {s:[]}]}", "openapi", "3.1.0",
                                     "info", "title", "frit", "version", frit_version(), "paths", paths_json(),
                                     "components", "securitySchemes", schemes, "security", "bearer", "key"));
}
