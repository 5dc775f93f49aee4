// SPDX-License-Identifier: MIT
// Ollama's requests: fields, options, and conversion of messages to OpenAI's form.
//
// Tool calls without an id are numbered, and tool results without an id belong to the calls in order.
#include "server/request/conversation.h"
#include "server/request/message_origins.h"
#include "server/request/request.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// ---------------------------------------------------------------------------------------- fields

static bool parse_num_predict(const json_t *value, server_generation *request, server_problem *problem)
{
    json_int_t n;
    if (!server_integer(value, &n) || n > INT32_MAX)
        return server_expect(problem, "options.num_predict", "an integer below 2^31");
    request->limits.max_tokens = n < 0 ? -1 : (int32_t)n;
    return true;
}

static bool parse_options(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    json_t *stop = json_object_get(value, "stop"), *seed = json_object_get(value, "seed");
    const json_t *n = json_object_get(value, "num_predict");
    if (!json_is_object(value)) return server_expect(problem, "options", "an object");
    if (!server_read_sampling(value, &request->sampling.options, problem)) return false;
    if (stop && !json_is_null(stop) && !server_read_stop(request, stop, "options.stop", problem)) return false;
    if (seed && !json_is_null(seed) && !server_parse_seed(seed, request, problem)) {
        const server_problem own = *problem;
        return server_refuse(problem, own.status, own.code, "options.seed", "options.%.500s", own.message);
    }
    return !n || json_is_null(n) || parse_num_predict(n, request, problem);
}

static bool parse_format(json_t *value, void *request, server_problem *problem)
{
    const char *name = json_string_value(value);
    if (json_is_object(value)) return server_set_schema(request, value, "format", problem);
    if (name && !*name) return true;
    if (!name || strcmp(name, "json") != 0) return server_expect(problem, "format", "\"json\" or a JSON schema");
    json_t *any = json_pack("{s:s}", "type", "object");
    const bool good = server_set_schema(request, any, "format", problem);
    json_decref(any);
    return good;
}

// ---------------------------------------------------------------------------------------- messages

typedef struct reading {
    json_t *messages;
    int n_calls, n_results;   // so far, for ids
    server_problem *problem;
} reading;

static json_t *numbered_id(int i)
{
    return json_sprintf("call%05d", i);
}

static bool add_calls(reading *r, const json_t *calls, json_t *message, const server_field_name *field)
{
    json_t *list = json_array();
    json_object_set_new(message, "tool_calls", list);
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i), *function = json_object_get(call, "function");
        const json_t *arguments = json_object_get(function, "arguments");
        const server_field_name inner = server_field_in(field, "tool_calls", i);
        const char *name = server_need_text(function, "name", inner.text, r->problem);
        if (!name) return false;
        if (arguments && !json_is_object(arguments) && !json_is_string(arguments) && !json_is_null(arguments))
            return server_expect(r->problem, inner.text, "arguments that are an object");
        json_t *id = json_object_get(call, "id");
        id = json_is_string(id) ? json_incref(id) : numbered_id(r->n_calls);
        r->n_calls++;
        json_array_append_new(list, server_call(json_string_value(id), name, arguments));
        json_decref(id);
    }
    return true;
}

// Content that begins with pictures: a new reference. NULL with a problem.
static json_t *with_images(const json_t *images, const char *list, json_t *text, server_problem *problem)
{
    json_t *parts = json_array();
    for (size_t i = 0; i < json_array_size(images); i++) {
        const server_field_name field = server_field_at(list, i);
        json_t *part = server_picture_of_base64(json_array_get(images, i), field.text, problem);
        if (part && json_array_append_new(parts, part) == 0) continue;
        json_decref(parts);
        return NULL;
    }
    if (json_string_length(text) > 0) json_array_append_new(parts, server_text_part(text));
    return parts;
}

// Sets the content of a message: a text, with the pictures of a list. `given` may be NULL.
static bool set_content(json_t *message, const json_t *images, const char *list, json_t *text, server_problem *problem)
{
    if (images && !json_is_null(images) && !json_is_array(images))
        return server_expect(problem, list, "a list of pictures, files in base64");
    if (json_array_size(images) == 0)
        return json_object_set_new(message, "content", json_is_string(text) ? json_incref(text) : json_string("")) == 0;
    json_t *parts = with_images(images, list, text, problem);
    return parts && json_object_set_new(message, "content", parts) == 0;
}

static bool read_message(reading *r, const json_t *given, size_t i)
{
    const server_field_name field = server_field_at("messages", i);
    const char *role = server_need_text(given, "role", field.text, r->problem);
    json_t *content = json_object_get(given, "content"), *thinking = json_object_get(given, "thinking");
    const json_t *calls = json_object_get(given, "tool_calls");
    if (!role) return false;
    json_t *message = json_pack("{s:s}", "role", role);
    json_array_append_new(r->messages, message);
    server_field_name list;
    snprintf(list.text, sizeof list.text, "%.40s.images", field.text);
    if (!set_content(message, json_object_get(given, "images"), list.text, content, r->problem)) return false;
    if (json_string_length(thinking) > 0) json_object_set(message, "reasoning_content", thinking);
    if (strcmp(role, "tool") == 0) {
        json_t *id = json_object_get(given, "tool_call_id");
        json_object_set_new(message, "tool_call_id",
                            json_string_length(id) > 0 ? json_incref(id) : numbered_id(r->n_results));
        r->n_results++;
    }
    return json_array_size(calls) == 0 || add_calls(r, calls, message, &field);
}

static bool read_think(json_t *think, json_t *out, server_problem *problem)
{
    if (!think || json_is_null(think)) return true;
    if (json_is_string(think)) return json_object_set(out, "reasoning_effort", think) == 0;
    if (!json_is_boolean(think)) return server_expect(problem, "think", "true, false, or an effort");
    return json_object_set_new(out, "chat_template_kwargs",
                               json_pack("{s:b}", "enable_thinking", json_is_true(think))) == 0;
}

static bool finish_conversion(server_generation *request, reading *r, json_t *out, bool good)
{
    json_object_set_new(out, "messages", r->messages);
    if (good) return server_body_convert(&request->body, out, r->problem);
    json_decref(out);
    return false;
}

static bool convert_chat(void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    const json_t *root = request->body.root, *messages = json_object_get(root, "messages");
    json_t *tools = json_object_get(root, "tools"), *out = json_object();
    reading r = {.messages = json_array(), .problem = problem};
    bool good = read_think(json_object_get(root, "think"), out, problem);
    if (good && messages && !json_is_array(messages)) good = server_expect(problem, "messages", "a list of messages");
    for (size_t i = 0; i < json_array_size(messages) && good; i++)
        good = read_message(&r, json_array_get(messages, i), i);
    if (json_array_size(tools) > 0 || (tools && !json_is_array(tools) && !json_is_null(tools)))
        json_object_set(out, "tools", tools);
    return finish_conversion(request, &r, out, good);
}

static bool convert_generate(void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    const json_t *root = request->body.root;
    json_t *system = json_object_get(root, "system"), *prompt = json_object_get(root, "prompt"), *out = json_object();
    reading r = {.messages = json_array(), .problem = problem};
    bool good = read_think(json_object_get(root, "think"), out, problem);
    if (good && prompt && !json_is_string(prompt) && !json_is_null(prompt))
        good = server_expect(problem, "prompt", "a string");
    if (good && system && !json_is_string(system) && !json_is_null(system))
        good = server_expect(problem, "system", "a string");
    if (json_string_length(system) > 0)
        json_array_append_new(r.messages, json_pack("{s:s, s:O}", "role", "system", "content", system));
    request->prompt.text = json_is_string(prompt) ? json_string_value(prompt) : "";
    request->prompt.n_text = json_string_length(prompt);
    request->body.origins = server_origins_new("prompt", NULL);
    const size_t n = json_array_size(r.messages);
    if (n > 0)
        server_origins_add(request->body.origins,
                           (server_origin){0, n, SERVER_NO_INDEX, "system", SERVER_NO_INDEX, SERVER_NO_INDEX});
    server_origins_add(request->body.origins,
                       (server_origin){n, 1, SERVER_NO_INDEX, "prompt", SERVER_NO_INDEX, SERVER_NO_INDEX});
    json_t *message = json_pack("{s:s}", "role", "user"),
           *text = json_stringn(request->prompt.text, request->prompt.n_text);
    const json_t *images = json_object_get(root, "images");
    json_array_append_new(r.messages, message);
    if (good && json_array_size(images) > 0 && (request->prompt.is_raw || request->prompt.suffix))
        good = server_refuse(problem, 400, "unsupported_parameter", "images",
                             "images: pictures need the model's chat template: not with raw or suffix");
    good = good && set_content(message, images, "images", text, problem);
    json_decref(text);
    return finish_conversion(request, &r, out, good);
}

static bool parse_suffix(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    if (!json_is_string(value)) return server_expect(problem, "suffix", "a string");
    request->prompt.suffix = value;
    return true;
}

// ---------------------------------------------------------------------------------------- the tables

#define AT(field) offsetof(server_generation, field)
#define ELSEWHERE SERVER_FIELD_ELSEWHERE
#define REFUSED   SERVER_FIELD_REFUSED

// clang-format off
#define COMMON_FIELDS                                                                                         \
    {"model", FIELD_TEXT, .offset = AT(model)},                                                               \
    {"stream", FIELD_BOOL, .offset = AT(stream.is_wanted), .fallback = 1},                                    \
    {"format", FIELD_CUSTOM, .parse = parse_format},                                                          \
    {"num_predict", FIELD_INT, .offset = AT(limits.max_tokens), .min = -1, .max = INT32_MAX, .fallback = -1}, \
    SERVER_DEFAULT_FIELDS,                                                                                    \
    {"options", FIELD_CUSTOM, .parse = parse_options},                                                        \
    ELSEWHERE("think"), ELSEWHERE("keep_alive"),                                                              \
    REFUSED("logprobs", .harmless = "false", .why = "/v1/chat/completions has them"),                         \
    REFUSED("top_logprobs", .harmless = "0", .why = "/v1/chat/completions has them")

static const server_field chat_fields[] = {
    COMMON_FIELDS, ELSEWHERE("messages"), ELSEWHERE("tools"),
};
static const server_field generate_fields[] = {
    COMMON_FIELDS, ELSEWHERE("prompt"), ELSEWHERE("system"),
    {"raw", FIELD_BOOL, .offset = AT(prompt.is_raw)},
    {"suffix", FIELD_CUSTOM, .parse = parse_suffix},
    REFUSED("template", .harmless = "\"\"", .why = "the server's template is used; --chat-template sets it"),
    REFUSED("context", .harmless = "[]", .why = "send the conversation to /api/chat"),
    ELSEWHERE("images"),
};
// clang-format on

const server_parser server_ollama_chat_parser = {.fields = chat_fields,
                                                 .n_fields = COUNT(chat_fields),
                                                 .n_bytes = sizeof(server_generation),
                                                 .deinit = server_generation_deinit,
                                                 .convert = convert_chat,
                                                 .sampler = offsetof(server_generation, sampling.options)};
const server_parser server_ollama_generate_parser = {.fields = generate_fields,
                                                     .n_fields = COUNT(generate_fields),
                                                     .n_bytes = sizeof(server_generation),
                                                     .deinit = server_generation_deinit,
                                                     .convert = convert_generate,
                                                     .sampler = offsetof(server_generation, sampling.options)};
