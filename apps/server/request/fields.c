// SPDX-License-Identifier: MIT
// The parser of request bodies, which reads every field table.
#include "server/request/fields.h"

#include "server/ops/trim_memory.h"
#include "server/request/message_origins.h"
#include "server/request/pictures.h"

#include "frit_tools.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *type_name(const json_t *value)
{
    static const char *const names[] = {"an object", "a list", "a string", "an integer",
                                        "a number",  "a bool", "a bool",   "null"};
    return names[json_typeof(value)];
}

static bool refuse_type(server_problem *problem, const server_field *field, const json_t *value, const char *expected)
{
    return server_refuse(problem, 400, "invalid_type", field->name, "%s: expected %s, found %s", field->name, expected,
                         type_name(value));
}

static bool refuse_range(server_problem *problem, const server_field *field, double value, double min, double max)
{
    return server_refuse(problem, 400, "invalid_value", field->name, "%s: %.10g is outside of %.10g to %.10g",
                         field->name, value, min, max);
}

bool server_integer(const json_t *value, json_int_t *out)
{
    static const double most = 9007199254740992;   // 2^53: all larger doubles are whole numbers
    const double number = json_real_value(value);
    *out = 0;
    if (json_is_integer(value)) *out = json_integer_value(value);
    if (json_is_integer(value) || !json_is_real(value) || !(fabs(number) <= most)) return json_is_integer(value);
    const json_int_t whole = (json_int_t)number;
    if ((double)whole < number || (double)whole > number) return false;
    *out = whole;
    return true;
}

server_field_name server_body_field(const server_body *body, const char *field)
{
    server_field_name name;
    server_origins_name(body->origins, field, name.text, sizeof name.text);
    return name;
}

static bool read_int(const server_field *field, const json_t *value, double min, double max, int32_t *out,
                     server_problem *problem)
{
    json_int_t whole;
    if (!server_integer(value, &whole)) return refuse_type(problem, field, value, "an integer");
    const double number = (double)whole;
    if (number < min || number > max) return refuse_range(problem, field, number, min, max);
    *out = (int32_t)whole;
    return true;
}

static bool read_number(const server_field *field, const json_t *value, double min, double max, double *out,
                        server_problem *problem)
{
    if (!json_is_number(value)) return refuse_type(problem, field, value, "a number");
    *out = json_number_value(value);
    return *out >= min && *out <= max ? true : refuse_range(problem, field, *out, min, max);
}

// top_k -1 turns the stage off in other servers; frit's option has 0 for it.
static bool is_off(const frit_option *row, const json_t *value)
{
    json_int_t whole;
    return strcmp(row->name, "top-k") == 0 && server_integer(value, &whole) && whole == -1;
}

// Reads a sampler option. The option's row gives type, offset and range.
static bool read_option(const server_field *field, const frit_option *row, const json_t *value, char *options,
                        server_problem *problem)
{
    if (is_off(row, value)) {
        *(int32_t *)(options + row->offset) = 0;
        return true;
    }
    if (row->type == FRIT_OPTION_INT)
        return read_int(field, value, row->min, row->max, (int32_t *)(options + row->offset), problem);
    double number = 0;
    if (!read_number(field, value, row->min, row->max, &number, problem)) return false;
    *(float *)(options + row->offset) = (float)number;
    return true;
}

static bool read_sampler(const server_field *field, const json_t *value, char *options, server_problem *problem)
{
    size_t n_rows;
    const frit_option *row = frit_sampler_option_rows(&n_rows);
    while (strcmp(row->name, field->row) != 0)
        row++;   // every name in a field table is an option: tests set each field
    return read_option(field, row, value, options, problem);
}

bool server_name_sampler(const frit_option *row, char name[64])
{
    snprintf(name, 64, "%s", row->name);
    for (char *at = name; (at = strchr(at, '-')) != NULL;) *at = '_';
    return row->type == FRIT_OPTION_INT || row->type == FRIT_OPTION_FLOAT;
}

// `prefix` stands before the names of fields in errors.
static bool read_samplers(const json_t *root, const char *prefix, char *options, server_problem *problem)
{
    size_t n_rows;
    const frit_option *rows = frit_sampler_option_rows(&n_rows);
    for (size_t i = 0; i < n_rows; i++) {
        char name[64], full[96];
        if (!server_name_sampler(&rows[i], name)) continue;
        const json_t *value = json_object_get(root, name);
        snprintf(full, sizeof full, "%s%s", prefix, name);
        const server_field field = {.name = full};
        if (value && !json_is_null(value) && !read_option(&field, &rows[i], value, options, problem)) return false;
    }
    return true;
}

bool server_read_sampling(const json_t *object, void *options, server_problem *problem)
{
    const server_field temperature = {.name = "options.temperature", .row = "temp"};
    const json_t *value = json_object_get(object, "temperature");
    if (value && !json_is_null(value) && !read_sampler(&temperature, value, options, problem)) return false;
    return read_samplers(object, "options.", options, problem);
}

static bool is_harmless(const server_field *field, const json_t *value)
{
    if (!field->harmless) return false;
    json_int_t whole;
    json_t *number = server_integer(value, &whole) ? json_integer(whole) : NULL;
    char *text = json_dumps(number ? number : value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);
    json_decref(number);
    bool found = false;
    for (const char *at = field->harmless; text && at && !found;) {
        size_t n = strcspn(at, "|");
        found = strlen(text) == n && memcmp(text, at, n) == 0;
        at = at[n] ? at + n + 1 : NULL;
    }
    free(text);
    return found;
}

static bool read_field(const server_field *field, json_t *value, char *request, server_problem *problem)
{
    char *at = request + field->offset;
    switch (field->type) {
    case FIELD_BOOL:
        if (!json_is_boolean(value)) return refuse_type(problem, field, value, "true or false");
        *(bool *)at = json_is_true(value);
        return true;
    case FIELD_INT:
        return read_int(field, value, field->min, field->max, (int32_t *)at, problem);
    case FIELD_NUMBER:
        return read_number(field, value, field->min, field->max, (double *)at, problem);
    case FIELD_TEXT:
        if (!json_is_string(value)) return refuse_type(problem, field, value, "a string");
        if (strlen(json_string_value(value)) < json_string_length(value))
            return server_refuse(problem, 400, "invalid_value", field->name, "%s: has a zero character", field->name);
        *(const char **)at = json_string_value(value);
        return true;
    case FIELD_SAMPLER:
        return read_sampler(field, value, at, problem);
    case FIELD_CUSTOM:
        return field->parse(value, request, problem);
    case FIELD_UNSUPPORTED:
        if (is_harmless(field, value)) return true;
        return server_refuse(problem, 400, "unsupported_parameter", field->name, "%s is not supported: %s", field->name,
                             field->why);
    case FIELD_ELSEWHERE:
        return true;
    }
    return false;
}

static void set_defaults(const server_parser *parser, char *request)
{
    for (size_t i = 0; i < parser->n_fields; i++) {
        const server_field *field = &parser->fields[i];
        char *at = request + field->offset;
        if (field->type == FIELD_BOOL) *(bool *)at = field->fallback != 0;
        if (field->type == FIELD_INT) *(int32_t *)at = (int32_t)field->fallback;
        if (field->type == FIELD_NUMBER) *(double *)at = field->fallback;
    }
}

size_t server_count_values(const char *body, size_t n)
{
    size_t count = 1;
    bool in_text = false;
    for (size_t i = 0; i < n; i++) {
        char c = body[i];
        if (in_text && c == '\\')
            i++;
        else if (c == '"')
            in_text = !in_text;
        else if (!in_text)
            count += c == ',' || c == ':' || c == '[' || c == '{';
    }
    return count;
}

// Finds the value of the body's field "seed", not of a nested object's. Returns the number of digits at *at, 0 if there
// is no such integer.
static size_t find_seed(const char *body, size_t n, size_t *at)
{
    static const char name[] = "\"seed\"";
    int depth = 0;
    for (size_t i = 0; i < n; i++) {
        if (body[i] == '{' || body[i] == '[') depth++;
        if (body[i] == '}' || body[i] == ']') depth--;
        if (body[i] != '"') continue;
        const size_t begin = i;
        for (i++; i < n && body[i] != '"'; i++) i += body[i] == '\\';
        if (i >= n) return 0;   // the body ends within a text
        if (depth != 1 || i - begin + 1 != sizeof name - 1 || memcmp(body + begin, name, sizeof name - 1) != 0)
            continue;
        size_t digits = i + 1;
        while (digits < n && strchr(" \t\r\n:", body[digits]) && body[digits]) digits++;
        for (*at = digits; digits < n && body[digits] >= '0' && body[digits] <= '9';) digits++;
        if (digits > *at) return digits - *at;
    }
    return 0;
}

// Parses the body. The JSON library reads integers up to 2^63 - 1, and seeds go up to 2^64 - 1, so the body is changed
// to give a larger seed as a string.
static json_t *load_root(server_body *body, json_error_t *error)
{
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
    json_t *root = json_loadb(body->text, body->n_text, flags, error);
    size_t at = 0;
    if (root || json_error_code(error) != json_error_numeric_overflow) return root;
    const size_t n_digits = find_seed(body->text, body->n_text, &at);
    if (n_digits == 0) return NULL;
    char *copy = malloc(body->n_text + 2);
    if (!copy) error->text[0] = 0;
    if (!copy) return NULL;
    const size_t after = at + n_digits;
    memcpy(copy, body->text, at);
    copy[at] = '"';
    memcpy(copy + at + 1, body->text + at, n_digits);
    copy[after + 1] = '"';
    memcpy(copy + after + 2, body->text + after, body->n_text - after);
    body->owned = copy;
    body->text = copy;
    body->n_text += 2;
    return json_loadb(body->text, body->n_text, flags, error);
}

bool server_load_body(const server_parser *parser, const char *body, size_t n, void *request, server_problem *problem)
{
    server_body *holder = request;
    if (n >= 3 && memcmp(body, "\xef\xbb\xbf", 3) == 0) body += 3, n -= 3;   // a byte order mark
    if (n == 0) return server_refuse(problem, 400, NULL, NULL, "the body is empty, a JSON object is expected");
    if (server_count_values(body, n) > SERVER_MAX_VALUES)
        return server_refuse(problem, 413, "body_too_large", NULL, "the body has more than %d values",
                             SERVER_MAX_VALUES);
    if (!server_memory_has_room(n, server_count_values(body, n)))
        return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    json_error_t error;
    *holder = (server_body){.text = body, .n_text = n, .parser = parser};
    json_t *root = holder->root = load_root(holder, &error);
    if (!root && (error.line < 0 || !error.text[0]))   // Jansson gives no line or no text when memory is short
        return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    if (!root)
        return server_refuse(problem, 400, "invalid_json", NULL,
                             "the body is not JSON: line %d, column %d (byte %d): %s", error.line, error.column,
                             error.position, error.text);
    if (parser->list && json_is_array(root)) holder->root = json_pack("{s:o}", parser->list, root);
    if (!holder->root) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    root = holder->root;
    if (!json_is_object(root))
        return server_refuse(problem, 400, NULL, NULL, "the body is %s, a JSON object is expected", type_name(root));
    return true;
}

bool server_parse_body(const server_parser *parser, void *request, server_problem *problem)
{
    const json_t *root = ((server_body *)request)->root;
    set_defaults(parser, request);
    for (size_t i = 0; i < parser->n_fields; i++) {
        json_t *value = json_object_get(root, parser->fields[i].name);
        if (!value || json_is_null(value)) continue;
        if (!read_field(&parser->fields[i], value, request, problem)) return false;
    }
    if (parser->sampler > 0 && !read_samplers(root, "", (char *)request + parser->sampler, problem)) return false;
    return !parser->convert || parser->convert(request, problem);
}

bool server_parse(const server_parser *parser, const char *body, size_t n, void *request, server_problem *problem)
{
    return server_load_body(parser, body, n, request, problem) && server_parse_body(parser, request, problem);
}

bool server_body_convert(server_body *body, json_t *root, server_problem *problem)
{
    json_t *shown = root ? server_without_pictures(root) : NULL;
    char *text = shown ? json_dumps(shown, JSON_COMPACT) : NULL;
    json_decref(shown);
    if (!text) {
        json_decref(root);
        return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    }
    if (body->given)
        json_decref(body->root);
    else
        body->given = body->root;
    free(body->owned);
    body->root = root;
    body->text = body->owned = text;
    body->n_text = strlen(text);
    return true;
}

static bool is_known(const server_parser *parser, const char *key)
{
    for (size_t i = 0; i < parser->n_fields; i++)
        if (strcmp(parser->fields[i].name, key) == 0) return true;
    size_t n_rows;
    const frit_option *rows = frit_sampler_option_rows(&n_rows);
    char name[64];
    for (size_t i = 0; i < n_rows && parser->sampler > 0; i++)
        if (server_name_sampler(&rows[i], name) && strcmp(name, key) == 0) return true;
    return false;
}

bool server_parse_strictly(const server_parser *parser, const void *request, server_problem *problem)
{
    const server_body *body = request;
    json_t *root = body->given ? body->given : body->root;
    for (void *at = json_object_iter(root); at; at = json_object_iter_next(root, at)) {
        const char *key = json_object_iter_key(at);
        if (!is_known(parser, key))
            return server_refuse(problem, 400, "unknown_parameter", key, "%.64s: is not a field of this request", key);
    }
    return true;
}

void server_request_deinit(const server_parser *parser, void *request)
{
    if (parser->deinit) parser->deinit(request);
    server_body *body = request;
    json_decref(body->root);
    json_decref(body->given);
    free(body->owned);
    server_origins_free(body->origins);
    memset(request, 0, parser->n_bytes);
}
