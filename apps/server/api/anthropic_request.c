// SPDX-License-Identifier: MIT
// The requests of Anthropic's Messages: fields, and conversion of content blocks to messages in OpenAI's form.
//
//     text, image              content
//     thinking                 reasoning_content; redacted thinking has no text and is left out
//     tool_use                 tool_calls
//     tool_result              a message of role tool; the blocks after it become another message
#include "server/request/conversation.h"
#include "server/request/message_origins.h"
#include "server/request/request.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// ---------------------------------------------------------------------------------------- fields

static bool parse_stop_sequences(json_t *value, void *request, server_problem *problem)
{
    if (!json_is_array(value)) return server_expect(problem, "stop_sequences", "a list of strings");
    return server_read_stop(request, value, "stop_sequences", problem);
}

static bool parse_format(json_t *value, void *request, server_problem *problem)
{
    const char *type = json_string_value(json_object_get(value, "type"));
    json_t *schema = json_object_get(value, "schema");
    if (json_is_null(value)) return true;
    if (!type || strcmp(type, "json_schema") != 0 || !schema)
        return server_expect(problem, "output_config.format", "an object of type json_schema with a schema");
    return server_set_schema(request, schema, "output_config.format", problem);
}

static bool parse_output_config(json_t *value, void *request, server_problem *problem)
{
    json_t *format = json_object_get(value, "format");
    if (!json_is_object(value)) return server_expect(problem, "output_config", "an object");
    return !format || parse_format(format, request, problem);
}

// ---------------------------------------------------------------------------------------- blocks

typedef struct reading {
    json_t *messages;   // the converted messages
    json_t *content;    // text parts of the current message
    json_t *calls;      // tool calls of the current message
    json_t *thinking;   // thinking of the current message, a string
    server_origins *origins;
    const char *list;   // the field, item and block that are being read; item and block may be SERVER_NO_INDEX
    int item, block;
    server_problem *problem;
} reading;

typedef bool (*block_fn)(reading *r, const json_t *block, const char *field);

static bool add_text(reading *r, json_t *text, const char *field)
{
    if (!json_is_string(text)) return server_expect(r->problem, field, "a text");
    json_array_append_new(r->content, server_text_part(text));
    return true;
}

static bool read_text(reading *r, const json_t *block, const char *field)
{
    return add_text(r, json_object_get(block, "text"), field);
}

// The part of a picture. NULL with a problem.
static json_t *picture_part(const json_t *block, const char *field, server_problem *problem)
{
    const json_t *source = json_object_get(block, "source");
    const char *type = json_string_value(json_object_get(source, "type"));
    if (type && strcmp(type, "base64") == 0)
        return server_picture_of_base64(json_object_get(source, "data"), field, problem);
    if (type && strcmp(type, "url") == 0)
        server_refuse(problem, 400, "unsupported_value", field,
                      "%s: a source of type url is not supported, as frit fetches no pictures: send type base64",
                      field);
    else if (type && strcmp(type, "file") == 0)
        server_refuse(problem, 400, "unsupported_value", field,
                      "%s: a source of type file is not supported, as frit keeps no files: send type base64", field);
    else
        server_expect(problem, field, "a source of type base64 with its data");
    return NULL;
}

static bool read_image(reading *r, const json_t *block, const char *field)
{
    json_t *part = picture_part(block, field, r->problem);
    return part && json_array_append_new(r->content, part) == 0;
}

static bool read_thinking(reading *r, const json_t *block, const char *field)
{
    json_t *text = json_object_get(block, "thinking");
    if (!json_is_string(text)) return server_expect(r->problem, field, "a block with its thinking, a string");
    json_t *joined = r->thinking ? json_pack("s%+%", json_string_value(r->thinking), json_string_length(r->thinking),
                                             json_string_value(text), json_string_length(text))
                                 : json_incref(text);
    json_decref(r->thinking);
    r->thinking = joined;
    return true;
}

static bool skip_block(reading *r, const json_t *block, const char *field)
{
    (void)r, (void)block, (void)field;
    return true;
}

static bool read_use(reading *r, const json_t *block, const char *field)
{
    const char *id = server_need_text(block, "id", field, r->problem);
    const char *name = id ? server_need_text(block, "name", field, r->problem) : NULL;
    const json_t *input = json_object_get(block, "input");
    if (!name) return false;
    if (!input) return server_expect(r->problem, field, "an input that is an object");
    server_origins_add(r->origins, (server_origin){json_array_size(r->messages), 1, (int)json_array_size(r->calls),
                                                   r->list, r->item, r->block});
    json_array_append_new(r->calls, server_call(id, name, input));
    return true;
}

// Notes that the next message comes from the current item, or from block `block` of the item.
static void note_origin(reading *r, int block)
{
    server_origins_add(r->origins,
                       (server_origin){json_array_size(r->messages), 1, SERVER_NO_INDEX, r->list, r->item, block});
}

// Ends the current message.
static void end_message(reading *r, const char *role)
{
    note_origin(r, SERVER_NO_INDEX);
    json_t *message = json_pack("{s:s}", "role", role);
    const bool has_text = json_array_size(r->content) > 0, has_calls = json_array_size(r->calls) > 0;
    if (has_calls) json_object_set(message, "tool_calls", r->calls);
    if (r->thinking) json_object_set(message, "reasoning_content", r->thinking);
    if (has_text)
        json_object_set(message, "content", r->content);
    else
        json_object_set_new(message, "content", has_calls ? json_null() : json_string(""));
    json_array_append_new(r->messages, message);
    json_decref(r->content);
    json_decref(r->calls);
    json_decref(r->thinking);
    r->content = json_array();
    r->calls = json_array();
    r->thinking = NULL;
}

// A part of a tool's result: a text or a picture. NULL with a problem.
static json_t *result_part(const json_t *block, const char *field, server_problem *problem)
{
    const char *type = json_string_value(json_object_get(block, "type"));
    json_t *text = json_object_get(block, "text");
    if (type && strcmp(type, "image") == 0) return picture_part(block, field, problem);
    if (type && strcmp(type, "text") == 0 && json_is_string(text)) return server_text_part(text);
    server_refuse(problem, 400, "unsupported_parameter", field,
                  "%s: only blocks of type 'text' and 'image' are supported", field);
    return NULL;
}

static bool read_result(reading *r, const json_t *block, const char *field)
{
    server_field_name outer;
    snprintf(outer.text, sizeof outer.text, "%s", field);
    const char *id = server_need_text(block, "tool_use_id", field, r->problem);
    const json_t *content = json_object_get(block, "content");
    if (!id) return false;
    if (json_array_size(r->content) > 0) end_message(r, "user");
    json_t *said = json_array();
    if (json_is_string(content)) json_array_append_new(said, server_text_part((json_t *)content));
    for (size_t i = 0; i < json_array_size(content); i++) {
        const server_field_name inner = server_field_in(&outer, "content", i);
        json_t *part = result_part(json_array_get(content, i), inner.text, r->problem);
        if (!part) json_decref(said);
        if (!part) return false;
        json_array_append_new(said, part);
    }
    if (json_array_size(said) == 0) json_array_append_new(said, json_pack("{s:s, s:s}", "type", "text", "text", ""));
    note_origin(r, r->block);
    json_array_append_new(r->messages,
                          json_pack("{s:s, s:s, s:o}", "role", "tool", "tool_call_id", id, "content", said));
    return true;
}

static const struct {
    const char *role, *type;
    block_fn read;
} blocks[] = {
    {"user", "text", read_text},
    {"user", "image", read_image},
    {"user", "tool_result", read_result},
    {"assistant", "text", read_text},
    {"assistant", "thinking", read_thinking},
    {"assistant", "redacted_thinking", skip_block},
    {"assistant", "tool_use", read_use},
    {"system", "text", read_text},
};

static bool read_block(reading *r, const char *role, const json_t *block, const char *field)
{
    const char *type = json_string_value(json_object_get(block, "type"));
    if (!type) return server_expect(r->problem, field, "an object with a type");
    for (size_t i = 0; i < COUNT(blocks); i++)
        if (strcmp(blocks[i].role, role) == 0 && strcmp(blocks[i].type, type) == 0)
            return blocks[i].read(r, block, field);
    return server_refuse(r->problem, 400, "unsupported_parameter", field,
                         "%s: a block of type '%.64s' is not supported in a message of the role %s", field, type, role);
}

static bool read_content(reading *r, const char *role, const json_t *content, const server_field_name *field)
{
    const size_t n_before = json_array_size(r->messages);
    if (json_is_string(content)) {
        add_text(r, (json_t *)content, field->text);
    } else if (!json_is_array(content)) {
        return server_refuse(r->problem, 400, content ? "invalid_type" : "missing_required_parameter", field->text,
                             "%s.content: expected a string or a list of blocks", field->text);
    }
    for (size_t i = 0; i < json_array_size(content); i++) {
        const server_field_name inner = server_field_in(field, "content", i);
        r->block = (int)i;
        if (!read_block(r, role, json_array_get(content, i), inner.text)) return false;
    }
    if (json_array_size(r->content) + json_array_size(r->calls) > 0 || r->thinking ||
        json_array_size(r->messages) == n_before)
        end_message(r, role);
    return true;
}

static bool read_message(reading *r, const json_t *message, size_t i)
{
    static const char *const roles[] = {"user", "assistant", "system"};
    const server_field_name field = server_field_at("messages", i);
    const char *role = json_string_value(json_object_get(message, "role"));
    if (!json_is_object(message)) return server_expect(r->problem, field.text, "an object");
    for (size_t k = 0; role && k < COUNT(roles); k++)
        if (strcmp(roles[k], role) == 0) return read_content(r, roles[k], json_object_get(message, "content"), &field);
    return server_refuse(r->problem, 400, "invalid_value", field.text, "%s.role: '%.64s'; expected user or assistant",
                         field.text, role ? role : "");
}

static bool read_messages(reading *r, const json_t *root)
{
    const json_t *system = json_object_get(root, "system"), *messages = json_object_get(root, "messages");
    const server_field_name field = {"system"};
    r->list = "system";
    r->item = SERVER_NO_INDEX;
    if (!messages)
        return server_refuse(r->problem, 400, "missing_required_parameter", "messages", "messages: is missing");
    if (!json_is_array(messages) || json_array_size(messages) == 0)
        return server_expect(r->problem, "messages", "a list of messages, at least one");
    if (system && !json_is_null(system) && (json_is_string(system) || json_array_size(system) > 0) &&
        !read_content(r, "system", system, &field))
        return false;
    if (system && !json_is_null(system) && !json_is_string(system) && !json_is_array(system))
        return server_expect(r->problem, "system", "a string or a list of blocks of type text");
    r->list = "messages";
    for (size_t i = 0; i < json_array_size(messages); i++) {
        r->item = (int)i;
        if (!read_message(r, json_array_get(messages, i), i)) return false;
    }
    return true;
}

// ---------------------------------------------------------------------------------------- tools and thinking

static json_t *read_tool(const json_t *tool, const char *field, server_problem *problem)
{
    const char *type = json_string_value(json_object_get(tool, "type"));
    if (type && strcmp(type, "custom") != 0) {
        server_refuse(problem, 400, "unsupported_parameter", field,
                      "%s: a tool of type '%.64s' is not supported: the client runs its tools", field, type);
        return NULL;
    }
    const char *name = server_need_text(tool, "name", field, problem);
    if (!name) return NULL;
    return server_tool(name, json_object_get(tool, "description"), json_object_get(tool, "input_schema"),
                       json_object_get(tool, "strict"));
}

static bool read_choice(const json_t *choice, server_generation *request, json_t *out, server_problem *problem)
{
    static const char *const names[][2] = {{"auto", "auto"}, {"any", "required"}, {"none", "none"}};
    const char *type = json_string_value(json_object_get(choice, "type"));
    if (!choice || json_is_null(choice)) return true;
    if (!type) return server_expect(problem, "tool_choice", "an object with a type");
    if (json_is_true(json_object_get(choice, "disable_parallel_tool_use"))) request->format.parallel_calls = false;
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(names[i][0], type) == 0)
            return json_object_set_new(out, "tool_choice", json_string(names[i][1])) == 0;
    if (strcmp(type, "tool") != 0)
        return server_refuse(problem, 400, "invalid_value", "tool_choice",
                             "tool_choice: type '%.64s'; expected auto, any, tool or none", type);
    const char *name = server_need_text(choice, "name", "tool_choice", problem);
    return name && json_object_set_new(out, "tool_choice", server_named_choice(name)) == 0;
}

// Without `thinking` the template is asked for an answer without thinking, if it has such a variable.
static bool read_thinking_config(const json_t *config, json_t *out, server_problem *problem)
{
    static const struct {
        const char *type;
        int enabled;   // -1: the template's default
    } rows[] = {{"enabled", 1}, {"disabled", 0}, {"adaptive", -1}, {"between_tools", -1}};
    const char *type = json_string_value(json_object_get(config, "type"));
    if (!config || json_is_null(config)) type = "disabled";
    for (size_t i = 0; type && i < COUNT(rows); i++) {
        if (strcmp(rows[i].type, type) != 0) continue;
        if (rows[i].enabled >= 0)
            json_object_set_new(out, "chat_template_kwargs", json_pack("{s:b}", "enable_thinking", rows[i].enabled));
        return true;
    }
    return server_expect(problem, "thinking", "an object of type enabled, disabled or adaptive");
}

static bool read_effort(const json_t *config, json_t *out, server_problem *problem)
{
    static const char *const names[][2] = {
        {"low", "low"}, {"medium", "medium"}, {"high", "high"}, {"xhigh", "high"}, {"max", "high"}};
    const json_t *effort = json_object_get(config, "effort");
    if (!effort || json_is_null(effort)) return true;
    for (size_t i = 0; json_is_string(effort) && i < COUNT(names); i++)
        if (strcmp(names[i][0], json_string_value(effort)) == 0)
            return json_object_set_new(out, "reasoning_effort", json_string(names[i][1])) == 0;
    return server_expect(problem, "output_config.effort", "low, medium, high, xhigh or max");
}

// Has the answer continue a last message of the assistant.
static void continue_last(const json_t *messages, json_t *out)
{
    const json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role"));
    if (!role || strcmp(role, "assistant") != 0 || json_object_get(last, "tool_calls")) return;
    json_object_set_new(out, "continue_final_message", json_true());
    json_object_set_new(out, "add_generation_prompt", json_false());
}

static bool convert_body(void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    const json_t *root = request->body.root;
    static const char *const ends[][2] = {{".function.arguments", ".input"},
                                          {".function.name", ".name"},
                                          {".function.parameters", ".input_schema"},
                                          {".function.strict", ".strict"},
                                          {NULL, NULL}};
    json_t *out = json_object();
    request->body.origins = server_origins_new("messages", ends);
    reading r = {.messages = json_array(),
                 .content = json_array(),
                 .calls = json_array(),
                 .origins = request->body.origins,
                 .problem = problem};
    const bool good = read_messages(&r, root) &&
                      server_read_tools(json_object_get(root, "tools"), read_tool, out, problem) &&
                      read_choice(json_object_get(root, "tool_choice"), request, out, problem) &&
                      read_thinking_config(json_object_get(root, "thinking"), out, problem) &&
                      read_effort(json_object_get(root, "output_config"), out, problem);
    if (good) continue_last(r.messages, out);
    json_object_set(out, "messages", r.messages);
    json_decref(r.messages);
    json_decref(r.content);
    json_decref(r.calls);
    json_decref(r.thinking);
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
    {"max_tokens", FIELD_INT, .offset = AT(limits.max_tokens), .min = 0, .max = INT32_MAX, .fallback = -1},
    SERVER_DEFAULT_FIELDS,
    {"stop_sequences", FIELD_CUSTOM, .parse = parse_stop_sequences},
    {"output_config", FIELD_CUSTOM, .parse = parse_output_config},
    {"output_format", FIELD_CUSTOM, .parse = parse_format},
    {"temperature", FIELD_SAMPLER, .offset = AT(sampling.options), .row = "temp"},
    {"seed", FIELD_CUSTOM, .parse = server_parse_seed},
    {"lora", FIELD_CUSTOM, .parse = server_parse_lora},
    {"cache_salt", FIELD_TEXT, .offset = AT(scheduling.cache_salt)},
    {"priority", FIELD_CUSTOM, .parse = server_parse_priority},
    ELSEWHERE("messages"), ELSEWHERE("system"), ELSEWHERE("tools"), ELSEWHERE("tool_choice"), ELSEWHERE("thinking"),
    ELSEWHERE("metadata"), ELSEWHERE("service_tier"), ELSEWHERE("cache_control"), ELSEWHERE("inference_geo"),
    ELSEWHERE("diagnostics"), ELSEWHERE("context_management"), ELSEWHERE("speed"), ELSEWHERE("user_profile_id"),
    ELSEWHERE("workspace_id"),
    REFUSED("mcp_servers", .harmless = "[]", .why = "frit calls no servers: the client runs its tools"),
    REFUSED("container", .why = "frit runs no code: the client runs its tools"),
};
// clang-format on

const server_parser server_anthropic_parser = {.fields = fields,
                                               .n_fields = COUNT(fields),
                                               .n_bytes = sizeof(server_generation),
                                               .deinit = server_generation_deinit,
                                               .convert = convert_body,
                                               .sampler = offsetof(server_generation, sampling.options)};
