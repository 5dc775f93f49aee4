// SPDX-License-Identifier: MIT
// The requests of OpenAI's Responses: fields, and conversion of input items to messages in OpenAI's form.
//
//     message                  a message; its parts input_text, output_text and refusal are text, input_image pictures
//     reasoning                reasoning_content of the assistant's message that follows
//     function_call            tool_calls of the assistant's message
//     function_call_output     a message of role tool
#include "server/request/conversation.h"
#include "server/request/message_origins.h"
#include "server/request/request.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// ---------------------------------------------------------------------------------------- items of the input

typedef struct reading {
    json_t *messages;
    json_t *assistant;   // the message that further items of the assistant extend, borrowed from messages; NULL: none
    server_origins *origins;
    const char *list;   // the field that is being read
    int item;           // index of the item in this field, or SERVER_NO_INDEX
    server_problem *problem;
} reading;

static json_t *add_message(reading *r, const char *role)
{
    json_t *message = json_pack("{s:s, s:s}", "role", role, "content", "");
    server_origins_add(r->origins, (server_origin){json_array_size(r->messages), 1, SERVER_NO_INDEX, r->list, r->item,
                                                   SERVER_NO_INDEX});
    json_array_append_new(r->messages, message);
    r->assistant = strcmp(role, "assistant") == 0 ? message : NULL;
    return message;
}

// The message of the current item of the assistant. Consecutive items of the assistant make one message.
static json_t *assistant_of(reading *r)
{
    return r->assistant ? r->assistant : add_message(r, "assistant");
}

static json_t *picture_part(const json_t *part, const char *field, server_problem *problem)
{
    const json_t *file = json_object_get(part, "file_id");
    if (!file || json_is_null(file))
        return server_picture_of_url(json_object_get(part, "image_url"), json_object_get(part, "detail"), field,
                                     problem);
    server_refuse(problem, 400, "unsupported_value", field,
                  "%s.file_id: is not supported, as frit keeps no files: send image_url, a data URI", field);
    return NULL;
}

// Converts a string or a list of parts to a list of parts of type text, and pictures. NULL with a problem.
static json_t *read_parts(const json_t *content, const char *field, server_problem *problem)
{
    static const char *const types[][2] = {{"input_text", "text"},     {"output_text", "text"},
                                           {"text", "text"},           {"refusal", "refusal"},
                                           {"reasoning_text", "text"}, {"summary_text", "text"}};
    json_t *parts = json_array();
    if (json_is_string(content)) json_array_append_new(parts, server_text_part((json_t *)content));
    for (size_t i = 0; i < json_array_size(content); i++) {
        const json_t *part = json_array_get(content, i);
        const char *type = json_string_value(json_object_get(part, "type"));
        json_t *text = NULL;
        if (type && strcmp(type, "input_image") == 0) {
            server_field_name outer;
            snprintf(outer.text, sizeof outer.text, "%s", field);
            const server_field_name inner = server_field_in(&outer, "content", i);
            json_t *picture = picture_part(part, inner.text, problem);
            if (picture && json_array_append_new(parts, picture) == 0) continue;
            json_decref(parts);
            return NULL;
        }
        for (size_t k = 0; type && k < COUNT(types); k++)
            if (strcmp(types[k][0], type) == 0) text = json_object_get(part, types[k][1]);
        if (json_is_string(text)) {
            json_array_append_new(parts, server_text_part(text));
            continue;
        }
        json_decref(parts);
        server_refuse(problem, 400, "unsupported_parameter", field,
                      "%s.content[%zu]: a part of type '%.64s' is not supported, or has no text", field, i,
                      type ? type : "");
        return NULL;
    }
    if (json_is_string(content) || json_is_array(content)) return parts;
    json_decref(parts);
    server_expect(problem, field, "content that is a string or a list of parts");
    return NULL;
}

static bool read_message(reading *r, const json_t *item, const char *field)
{
    static const char *const roles[] = {"user", "assistant", "system", "developer"};
    const char *role = json_string_value(json_object_get(item, "role"));
    size_t k = 0;
    while (role && k < COUNT(roles) && strcmp(roles[k], role) != 0) k++;
    if (!role || k == COUNT(roles))
        return server_refuse(r->problem, 400, "invalid_value", field,
                             "%s.role: '%.64s'; expected user, assistant, system or developer", field,
                             role ? role : "");
    json_t *parts = read_parts(json_object_get(item, "content"), field, r->problem);
    if (!parts) return false;
    const bool continues = strcmp(role, "assistant") == 0 && r->assistant &&
                           !json_object_get(r->assistant, "tool_calls") &&
                           json_is_string(json_object_get(r->assistant, "content"));
    json_object_set_new(continues ? r->assistant : add_message(r, role), "content", parts);
    return true;
}

static bool read_call(reading *r, const json_t *item, const char *field)
{
    const char *id = server_need_text(item, "call_id", field, r->problem);
    const char *name = id ? server_need_text(item, "name", field, r->problem) : NULL;
    const json_t *arguments = json_object_get(item, "arguments");
    if (!name) return false;
    if (arguments && !json_is_string(arguments) && !json_is_object(arguments) && !json_is_null(arguments))
        return server_refuse(r->problem, 400, "invalid_type", field, "%s.arguments: expected a text or an object",
                             field);
    json_t *message = assistant_of(r), *calls = json_object_get(message, "tool_calls");
    if (!calls) json_object_set_new(message, "tool_calls", calls = json_array());
    server_origins_add(r->origins, (server_origin){json_array_size(r->messages) - 1, 1, (int)json_array_size(calls),
                                                   r->list, r->item, SERVER_NO_INDEX});
    json_array_append_new(calls, server_call(id, name, arguments));
    return true;
}

static bool read_output(reading *r, const json_t *item, const char *field)
{
    const char *id = server_need_text(item, "call_id", field, r->problem);
    json_t *parts = id ? read_parts(json_object_get(item, "output"), field, r->problem) : NULL;
    if (!parts) return false;
    if (json_array_size(parts) == 0) json_array_append_new(parts, json_pack("{s:s, s:s}", "type", "text", "text", ""));
    json_t *message = add_message(r, "tool");
    json_object_set_new(message, "content", parts);
    json_object_set_new(message, "tool_call_id", json_string(id));
    return true;
}

static bool read_reasoning(reading *r, const json_t *item, const char *field)
{
    const json_t *content = json_object_get(item, "content");
    if (json_array_size(content) == 0) content = json_object_get(item, "summary");
    if (json_array_size(content) == 0) return true;   // encrypted reasoning, which only its author could read
    const json_t *first = json_array_get(content, 0);
    json_t *parts = read_parts(content, field, r->problem);
    if (!parts) return false;
    r->assistant = NULL;
    if (json_array_size(parts) == 1)
        json_object_set(add_message(r, "assistant"), "reasoning_content", json_object_get(first, "text"));
    json_decref(parts);
    return true;
}

static const struct {
    const char *type;
    bool (*read)(reading *r, const json_t *item, const char *field);
} items[] = {
    {"message", read_message},
    {"function_call", read_call},
    {"function_call_output", read_output},
    {"reasoning", read_reasoning},
};

static bool read_item(reading *r, const json_t *item, size_t i)
{
    const server_field_name field = server_field_at("input", i);
    const json_t *given = json_object_get(item, "type");
    const char *type = !given && json_object_get(item, "role") ? "message" : json_string_value(given);
    if (!json_is_object(item) || !type) return server_expect(r->problem, field.text, "an object with a type or a role");
    for (size_t k = 0; k < COUNT(items); k++)
        if (strcmp(items[k].type, type) == 0) return items[k].read(r, item, field.text);
    return server_refuse(r->problem, 400, "unsupported_parameter", field.text,
                         "%s: an item of type '%.64s' is not supported", field.text, type);
}

static bool read_input(reading *r, const json_t *root)
{
    const json_t *input = json_object_get(root, "input"), *instructions = json_object_get(root, "instructions");
    r->list = "instructions";
    r->item = SERVER_NO_INDEX;
    if (json_is_string(instructions)) json_object_set(add_message(r, "system"), "content", (json_t *)instructions);
    r->list = "input";
    if (!input || json_is_null(input))
        return server_refuse(r->problem, 400, "missing_required_parameter", "input", "input: is missing");
    if (json_is_string(input)) return json_object_set(add_message(r, "user"), "content", (json_t *)input) == 0;
    if (!json_is_array(input) || json_array_size(input) == 0)
        return server_expect(r->problem, "input", "a string or a list of items, at least one");
    for (size_t i = 0; i < json_array_size(input); i++) {
        r->item = (int)i;
        if (!read_item(r, json_array_get(input, i), i)) return false;
    }
    return true;
}

// ---------------------------------------------------------------------------------------- tools, format, effort

static json_t *read_tool(const json_t *tool, const char *field, server_problem *problem)
{
    const char *type = server_need_text(tool, "type", field, problem);
    if (!type) return NULL;
    if (strcmp(type, "function") != 0) {
        server_refuse(problem, 400, "unsupported_parameter", field,
                      "%s: a tool of type '%.64s' is not supported, only functions", field, type);
        return NULL;
    }
    const char *name = server_need_text(tool, "name", field, problem);
    json_t *strict = json_object_get(tool, "strict");
    if (!name) return NULL;
    return server_tool(name, json_object_get(tool, "description"), json_object_get(tool, "parameters"),
                       json_is_true(strict) ? strict : NULL);
}

static bool read_choice(json_t *choice, json_t *out, server_problem *problem)
{
    if (!choice || json_is_null(choice)) return true;
    if (json_is_string(choice)) return json_object_set(out, "tool_choice", choice) == 0;
    const char *type = json_string_value(json_object_get(choice, "type"));
    if (!type || strcmp(type, "function") != 0)
        return server_refuse(problem, 400, "unsupported_parameter", "tool_choice",
                             "tool_choice: expected auto, none, required, or an object of type function");
    const char *name = server_need_text(choice, "name", "tool_choice", problem);
    return name && json_object_set_new(out, "tool_choice", server_named_choice(name)) == 0;
}

static bool parse_text(json_t *value, void *ctx, server_problem *problem)
{
    json_t *format = json_object_get(value, "format"), *schema = json_object_get(format, "schema");
    if (!json_is_object(value)) return server_expect(problem, "text", "an object");
    if (!format || json_is_null(format)) return true;
    const char *type = json_string_value(json_object_get(format, "type"));
    if (type && strcmp(type, "text") == 0) return true;
    if (type && strcmp(type, "json_schema") == 0 && schema)
        return server_set_schema(ctx, schema, "text.format", problem);
    if (!type || strcmp(type, "json_object") != 0)
        return server_expect(problem, "text.format", "type text, json_object, or json_schema with a schema");
    json_t *any = json_pack("{s:s}", "type", "object");
    const bool good = server_set_schema(ctx, any, "text.format", problem);
    json_decref(any);
    return good;
}

static bool parse_truncation(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    const char *how = json_string_value(value);
    request->prompt.truncates = how && strcmp(how, "auto") == 0;
    if (request->prompt.truncates || (how && strcmp(how, "disabled") == 0)) return true;
    return server_refuse(problem, 400, "invalid_value", "truncation", "truncation: expected \"auto\" or \"disabled\"");
}

static bool read_effort(json_t *reasoning, json_t *out, server_problem *problem)
{
    json_t *effort = json_object_get(reasoning, "effort");
    if (!reasoning || json_is_null(reasoning)) return true;
    if (!json_is_object(reasoning)) return server_expect(problem, "reasoning", "an object");
    if (!effort || json_is_null(effort)) return true;
    if (!json_is_string(effort)) return server_expect(problem, "reasoning.effort", "a string");
    return json_object_set(out, "reasoning_effort", effort) == 0;
}

static bool convert_body(void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    json_t *root = request->body.root, *out = json_object();
    static const char *const ends[][2] = {{".function.arguments", ".arguments"},
                                          {".function.name", ".name"},
                                          {".function.parameters", ".parameters"},
                                          {".function.strict", ".strict"},
                                          {NULL, NULL}};
    request->body.origins = server_origins_new("input", ends);
    reading r = {.messages = json_array(), .origins = request->body.origins, .problem = problem};
    const bool good = read_input(&r, root) &&
                      server_read_tools(json_object_get(root, "tools"), read_tool, out, problem) &&
                      read_choice(json_object_get(root, "tool_choice"), out, problem) &&
                      read_effort(json_object_get(root, "reasoning"), out, problem);
    json_object_set_new(out, "messages", r.messages);
    if (good) return server_body_convert(&request->body, out, problem);
    json_decref(out);
    return false;
}

// ---------------------------------------------------------------------------------------- the table

#define AT(field) offsetof(server_generation, field)
#define ELSEWHERE SERVER_FIELD_ELSEWHERE
#define REFUSED   SERVER_FIELD_REFUSED

// clang-format off
static const server_field fields[] = {
    {"model", FIELD_TEXT, .offset = AT(model)},
    {"stream", FIELD_BOOL, .offset = AT(stream.is_wanted)},
    {"store", FIELD_BOOL, .offset = AT(response.is_stored), .fallback = 1},
    {"previous_response_id", FIELD_TEXT, .offset = AT(response.previous_id)},
    {"instructions", FIELD_TEXT, .offset = AT(response.instructions)},
    {"max_output_tokens", FIELD_INT, .offset = AT(limits.max_tokens), .min = -1, .max = INT32_MAX, .fallback = -1},
    SERVER_DEFAULT_FIELDS,
    {"text", FIELD_CUSTOM, .parse = parse_text},
    {"temperature", FIELD_SAMPLER, .offset = AT(sampling.options), .row = "temp"},
    {"seed", FIELD_CUSTOM, .parse = server_parse_seed},
    {"lora", FIELD_CUSTOM, .parse = server_parse_lora},
    {"cache_salt", FIELD_TEXT, .offset = AT(scheduling.cache_salt)},
    {"priority", FIELD_CUSTOM, .parse = server_parse_priority},
    ELSEWHERE("input"), ELSEWHERE("tools"), ELSEWHERE("tool_choice"), ELSEWHERE("reasoning"), ELSEWHERE("metadata"),
    ELSEWHERE("user"), ELSEWHERE("service_tier"), ELSEWHERE("safety_identifier"), ELSEWHERE("prompt_cache_key"),
    ELSEWHERE("prompt_cache_retention"), ELSEWHERE("prompt_cache_options"), ELSEWHERE("max_tool_calls"),
    {"stream_options", FIELD_CUSTOM, .parse = server_parse_stream_options},
    {"background", FIELD_BOOL, .offset = AT(response.is_background)},
    REFUSED("include", .harmless = "[]|[\"reasoning.encrypted_content\"]", .why = "reasoning comes as text"),
    REFUSED("top_logprobs", .harmless = "0", .why = "chat completions have them"),
    {"truncation", FIELD_CUSTOM, .parse = parse_truncation},
    REFUSED("conversation", .why = "use previous_response_id"),
    REFUSED("prompt", .why = "send its text"),
    REFUSED("context_management", .harmless = "[]", .why = "truncation drops the oldest turns"),
    REFUSED("moderation", .why = "frit moderates nothing"),
};
// clang-format on

const server_parser server_responses_parser = {.fields = fields,
                                               .n_fields = COUNT(fields),
                                               .n_bytes = sizeof(server_generation),
                                               .deinit = server_generation_deinit,
                                               .convert = convert_body,
                                               .sampler = offsetof(server_generation, sampling.options)};
