// SPDX-License-Identifier: MIT
// Checks a conversation and converts it to the template's form.
#include "text/chat/conversation.h"

#include "base/time.h"
#include "text/chat/conversation_tools.h"

#include <stdlib.h>

typedef struct reading {
    const frit_chat *chat;
    const chat_shape *shape;
    json_t *messages;   // in the template's form
    size_t n_images;    // pictures that are given; 0: parts of type image are refused
    size_t *n_found;    // parts of type image
} reading;

// The roles of requests, and their names in templates.
static const struct {
    const char *role, *as;
} roles[] = {
    {"system", "system"}, {"developer", "system"}, {"user", "user"}, {"assistant", "assistant"}, {"tool", "tool"},
};

static frit_status no_memory(void)
{
    return frit_fail_memory(0, "a conversation");
}

static bool is_given(const json_t *value)
{
    return value && !json_is_null(value);
}

// ------------------------------------------------------------------------------------- content

static frit_status bad_content(size_t i, const char *what)
{
    return frit_fail_at(FRIT_E_INVALID, frit_field_name("messages[%zu].content", i).text, FRIT_CODE_INVALID_VALUE, "%s",
                        what);
}

static bool is_image(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    return type && strcmp(type, "image") == 0;
}

// Checks the parts of a list, and counts those of type image.
static frit_status check_parts(const reading *r, const json_t *content, size_t i, size_t *n_images)
{
    *n_images = 0;
    for (size_t p = 0; p < json_array_size(content); p++) {
        const json_t *part = json_array_get(content, p);
        const char *type = json_string_value(json_object_get(part, "type"));
        if (!type) return bad_content(i, "a part is not an object with a type");
        if (r->n_images > 0 && is_image(part))
            ++*n_images;
        else if (strcmp(type, "text") != 0)
            return bad_content(i, r->n_images > 0 ? "only parts of type 'text' and 'image' are supported"
                                                  : "only parts of type 'text' are supported");
        else if (!json_is_string(json_object_get(part, "text")))
            return bad_content(i, "a text part has no text");
    }
    *r->n_found += *n_images;
    return FRIT_OK;
}

// Copies texts and pictures as the parts that templates know.
static json_t *copy_parts(const json_t *content)
{
    json_t *list = json_array();
    for (size_t p = 0; list && p < json_array_size(content); p++) {
        const json_t *part = json_array_get(content, p);
        json_t *copy = is_image(part) ? json_pack("{s:s}", "type", "image")
                                      : json_pack("{s:s, s:O}", "type", "text", "text", json_object_get(part, "text"));
        if (copy && json_array_append_new(list, copy) == 0) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

static json_t *join_parts(const json_t *content)
{
    frit_buf text = {0};
    for (size_t p = 0; p < json_array_size(content); p++) {
        const json_t *piece = json_object_get(json_array_get(content, p), "text");
        frit_buf_append(&text, json_string_value(piece), json_string_length(piece));
    }
    json_t *out = text.failed ? NULL : json_stringn_nocheck(text.data ? text.data : "", text.len);
    frit_buf_free(&text);
    return out;
}

// Reads a string, or a list of parts: texts are joined unless pictures are among them.
static frit_status read_content(const reading *r, const json_t *content, size_t i, json_t **out)
{
    size_t n_images = 0;
    if (!json_is_string(content) && !json_is_array(content))
        return bad_content(i, "expected a string or a list of parts");
    if (json_is_array(content)) FRIT_TRY(check_parts(r, content, i, &n_images));
    *out = json_is_string(content) ? json_copy((json_t *)content)
           : n_images > 0          ? copy_parts(content)
                                   : join_parts(content);
    return *out ? FRIT_OK : no_memory();
}

static json_t *as_parts(json_t *text)
{
    return json_pack("[{s:s, s:o}]", "type", "text", "text", text);
}

static frit_status set_content(const reading *r, json_t *message, const json_t *given, size_t i, bool has_calls)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    if (!is_given(given) && strcmp(role, "assistant") != 0) return bad_content(i, "is missing");
    json_t *content = NULL;
    if (is_given(given)) FRIT_TRY(read_content(r, given, i, &content));
    if (has_calls && json_string_length(content) == 0) {
        json_decref(content);
        content = r->shape->call_content == CHAT_CONTENT_NULL ? json_null() : json_string("");
    } else if (!content) {
        content = json_string("");
    }
    if (r->shape->list_only && json_is_string(content)) content = as_parts(content);
    if (has_calls && r->shape->call_content == CHAT_CONTENT_ABSENT && json_string_length(content) == 0) {
        json_decref(content);
        json_object_del(message, "content");
        return FRIT_OK;
    }
    return json_object_set_new(message, "content", content) == 0 ? FRIT_OK : no_memory();
}

static frit_status set_reasoning(const reading *r, json_t *message)
{
    static const char *const keys[] = {"reasoning_content", "reasoning", "thinking"};
    json_t *thought = NULL;
    for (size_t k = 0; k < FRIT_COUNT(keys); k++) {
        json_t *value = json_object_get(message, keys[k]);
        if (!thought && json_string_length(value) > 0) thought = json_incref(value);
        json_object_del(message, keys[k]);
    }
    if (!thought) return FRIT_OK;
    const char *key = r->shape->reasoning_key;
    int failed = 0;
    if (!key) {
        json_decref(thought);
    } else if (strcmp(key, "parts") != 0) {
        failed = json_object_set_new(message, key, thought);
    } else {
        json_t *parts = json_pack("[{s:s, s:o}]", "type", "thinking", "thinking", thought);
        json_t *content = json_object_get(message, "content");
        json_t *text = json_string_length(content) > 0 ? as_parts(json_incref(content)) : NULL;
        if (text) json_array_extend(parts, text);
        json_decref(text);
        failed = json_object_set_new(message, "content", parts);
    }
    return failed ? no_memory() : FRIT_OK;
}

// ------------------------------------------------------------------------------------- tools

// Fails for a call. `member` is a path within the call, such as ".function.name"; "" is the call itself.
static frit_status bad_call(size_t i, size_t c, const char *member, const char *what)
{
    const frit_field field = frit_field_name("messages[%zu].tool_calls[%zu]%s", i, c, member);
    return frit_fail_at(FRIT_E_INVALID, field.text, FRIT_CODE_INVALID_VALUE, "%s", what);
}

// Returns the object in a text. Models also write texts that are no JSON objects, or are cut off. The conversation
// continues with them, and the model sees the text that it wrote. NULL: no memory.
static json_t *object_of(const json_t *text)
{
    const size_t n = json_string_length(text);
    json_t *object = n > 0 ? json_loadb(json_string_value(text), n, JSON_DECODE_ANY, NULL) : json_object();
    if (json_is_object(object)) return object;
    const bool is_null = json_is_null(object);
    json_decref(object);
    return is_null ? json_object() : json_pack("{s:O}", "arguments", text);
}

// Reads arguments as an object or as text, as the template needs them.
static frit_status read_arguments(const reading *r, const json_t *given, size_t i, size_t c, json_t **out)
{
    const char *text = json_string_value(given);
    if (is_given(given) && !text && !json_is_object(given))
        return bad_call(i, c, ".function.arguments", "expected the text of a JSON object");
    json_t *object = text ? object_of(given) : is_given(given) ? json_incref((json_t *)given) : json_object();
    if (!object) return no_memory();
    if (!r->shape->text_arguments) {
        *out = object;
        return FRIT_OK;
    }
    char *dumped = text && *text ? NULL : json_dumps(object, 0);
    *out = text && *text ? json_incref((json_t *)given) : dumped ? json_string(dumped) : NULL;
    free(dumped);
    json_decref(object);
    return *out ? FRIT_OK : no_memory();
}

static frit_status read_call(const reading *r, const json_t *given, size_t i, size_t c, json_t *calls)
{
    const json_t *function = json_object_get(given, "function");
    const char *name = json_string_value(json_object_get(function, "name"));
    if (!name || !*name)
        return bad_call(i, c, "", "expected {\"id\", \"type\": \"function\", \"function\": {\"name\", ...}}");
    char made[16];
    snprintf(made, sizeof made, "call%05zu", json_array_size(r->messages) * 8 + c);   // 9 letters and digits
    const char *id = json_string_value(json_object_get(given, "id"));
    json_t *arguments = NULL;
    FRIT_TRY(read_arguments(r, json_object_get(function, "arguments"), i, c, &arguments));
    json_t *call = json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", id ? id : made, "type", "function", "function", "name",
                             name, "arguments", arguments);
    return call && json_array_append_new(calls, call) == 0 ? FRIT_OK : no_memory();
}

static frit_status set_calls(const reading *r, json_t *message, const json_t *given, size_t i)
{
    json_t *calls = json_array();
    frit_status status = calls ? FRIT_OK : no_memory();
    for (size_t c = 0; c < json_array_size(given) && status == FRIT_OK; c++)
        status = read_call(r, json_array_get(given, c), i, c, calls);
    if (status == FRIT_OK) return json_object_set_new(message, "tool_calls", calls) == 0 ? FRIT_OK : no_memory();
    json_decref(calls);
    return status;
}

// The name of the tool whose call a result answers; NULL if no earlier message has this call.
static const char *called_name(const json_t *messages, const char *id)
{
    for (size_t m = json_array_size(messages); m-- > 0;) {
        const json_t *calls = json_object_get(json_array_get(messages, m), "tool_calls");
        for (size_t c = 0; c < json_array_size(calls); c++) {
            const json_t *call = json_array_get(calls, c);
            const char *its_id = json_string_value(json_object_get(call, "id"));
            if (!id || (its_id && strcmp(its_id, id) == 0))
                return json_string_value(json_object_get(json_object_get(call, "function"), "name"));
        }
    }
    return NULL;
}

static frit_status complete_result(const reading *r, json_t *message)
{
    if (is_given(json_object_get(message, "name"))) return FRIT_OK;
    const char *name = called_name(r->messages, json_string_value(json_object_get(message, "tool_call_id")));
    if (!name) return FRIT_OK;
    return json_object_set_new(message, "name", json_string(name)) == 0 ? FRIT_OK : no_memory();
}

// ------------------------------------------------------------------------------------- messages

static frit_status read_role(const json_t *given, size_t i, const char **role)
{
    const char *name = json_string_value(json_object_get(given, "role"));
    if (!name)
        return frit_fail_at(FRIT_E_INVALID, frit_field_name("messages[%zu].role", i).text, FRIT_CODE_INVALID_TYPE,
                            "expected an object with a role");
    for (size_t k = 0; k < FRIT_COUNT(roles); k++) {
        *role = roles[k].as;
        if (strcmp(roles[k].role, name) == 0) return FRIT_OK;
    }
    return frit_fail_at(FRIT_E_INVALID, frit_field_name("messages[%zu].role", i).text, FRIT_CODE_INVALID_VALUE,
                        "'%.64s' is unknown; there are system, developer, user, assistant and tool", name);
}

// Copies a message without null members, because templates test if a member exists. NULL: no memory.
static json_t *copy_given(const json_t *given, const char *role)
{
    json_t *copy = json_object();
    const char *key;
    json_t *value;
    bool good = copy != NULL;
    json_object_foreach((json_t *)given, key, value)
    {
        bool is_role = strcmp(key, "role") == 0;
        if (good && is_given(value))
            good = json_object_set_new(copy, key, is_role ? json_string(role) : json_incref(value)) == 0;
    }
    if (good) return copy;
    json_decref(copy);
    return NULL;
}

static frit_status fill_message(const reading *r, json_t *message, const json_t *given, size_t i)
{
    const json_t *calls = json_object_get(given, "tool_calls");
    const char *role = json_string_value(json_object_get(message, "role"));
    bool has_calls = json_is_array(calls) && json_array_size(calls) > 0;
    if (is_given(calls) && !json_is_array(calls))
        return frit_fail_at(FRIT_E_INVALID, frit_field_name("messages[%zu].tool_calls", i).text, FRIT_CODE_INVALID_TYPE,
                            "expected a list");
    if (has_calls && strcmp(role, "assistant") != 0)
        return frit_fail_at(FRIT_E_INVALID, frit_field_name("messages[%zu].tool_calls", i).text,
                            FRIT_CODE_INVALID_VALUE, "only an assistant calls tools, not role '%s'", role);
    if (is_given(json_object_get(given, "function_call")))
        return frit_fail_at(FRIT_E_INVALID, frit_field_name("messages[%zu].function_call", i).text,
                            FRIT_CODE_INVALID_VALUE, "is an old form; use tool_calls");
    if (!has_calls) json_object_del(message, "tool_calls");
    FRIT_TRY(set_content(r, message, json_object_get(given, "content"), i, has_calls));
    FRIT_TRY(set_reasoning(r, message));
    if (has_calls) FRIT_TRY(set_calls(r, message, calls, i));
    if (has_calls && !r->shape->shows_calls && !r->shape->no_calls)
        return frit_fail_at(FRIT_E_INVALID, frit_field_name("messages[%zu].tool_calls", i).text,
                            FRIT_CODE_UNSUPPORTED_PARAMETER, "this model's chat template has no place for tools");
    return strcmp(role, "tool") == 0 ? complete_result(r, message) : FRIT_OK;
}

static frit_status read_message(const reading *r, const json_t *given, size_t i)
{
    const char *role;
    FRIT_TRY(read_role(given, i, &role));
    json_t *message = copy_given(given, role);
    if (!message) return no_memory();
    frit_status status = fill_message(r, message, given, i);
    if (status == FRIT_OK) return json_array_append_new(r->messages, message) == 0 ? FRIT_OK : no_memory();
    json_decref(message);
    return status;
}

// Joins `a` and `b` with `between` between them; b may be NULL. Texts may contain zeros.
static json_t *join_texts(const json_t *a, const char *between, const json_t *b)
{
    frit_buf text = {0};
    frit_buf_append(&text, json_string_value(a), json_string_length(a));
    frit_buf_text(&text, between);
    if (b) frit_buf_append(&text, json_string_value(b), json_string_length(b));
    json_t *json = text.failed ? NULL : json_stringn_nocheck(text.data ? text.data : "", text.len);
    frit_buf_free(&text);
    return json;
}

// Puts the system prompt before the first question if the template has no system prompt.
static void move_system(const reading *r)
{
    json_t *first = json_array_get(r->messages, 0), *second = json_array_get(r->messages, 1);
    if (!r->shape->no_system || strcmp(json_string_value(json_object_get(first, "role")), "system") != 0) return;
    const json_t *system = json_object_get(first, "content"), *said = json_object_get(second, "content");
    bool joins = json_is_string(system) && json_is_string(said) &&
                 strcmp(json_string_value(json_object_get(second, "role")), "user") == 0;
    if (!joins) {
        json_object_set_new(first, "role", json_string("user"));
        return;
    }
    json_t *joined = join_texts(system, "\n\n", said);
    if (joined) json_object_set_new(second, "content", joined);
    json_array_remove(r->messages, 0);
}

static frit_status read_messages(const reading *r, const json_t *given, const json_t *tools)
{
    if (!is_given(given)) return frit_fail_at(FRIT_E_INVALID, "messages", FRIT_CODE_MISSING_PARAMETER, "is missing");
    if (!json_is_array(given))
        return frit_fail_at(FRIT_E_INVALID, "messages", FRIT_CODE_INVALID_TYPE, "expected a list of messages");
    size_t n = json_array_size(given);
    if (n == 0) return frit_fail_at(FRIT_E_INVALID, "messages", FRIT_CODE_INVALID_VALUE, "the list is empty");
    for (size_t i = 0; i < n; i++) FRIT_TRY(read_message(r, json_array_get(given, i), i));
    if (!r->shape->no_tools) tools = NULL;
    if (r->shape->no_calls)
        FRIT_TRY(frit_conversation_write_tools(r->messages, r->shape, frit_chat_get_format(r->chat), tools));
    move_system(r);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- the rest

static frit_status read_flag(const json_t *request, const char *name, bool fallback, bool *out)
{
    const json_t *value = json_object_get(request, name);
    *out = is_given(value) ? json_is_true(value) : fallback;
    if (is_given(value) && !json_is_boolean(value))
        return frit_fail_at(FRIT_E_INVALID, name, FRIT_CODE_INVALID_TYPE, "expected true or false");
    return FRIT_OK;
}

static const json_t *find_tool(const json_t *tools, const char *name)
{
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i);
        const char *its_name = json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
        if (its_name && strcmp(its_name, name) == 0) return tool;
    }
    return NULL;
}

// An answer that calls a tool is not read if the name has control characters.
static bool is_name(const json_t *text)
{
    const char *bytes = json_string_value(text);
    const size_t n = json_string_length(text);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)bytes[i] < ' ' || bytes[i] == 127) return false;
    return n > 0;
}

static frit_status check_tools(const reading *r, const json_t *tools)
{
    if (!json_is_array(tools)) return frit_fail_at(FRIT_E_INVALID, "tools", FRIT_CODE_INVALID_TYPE, "expected a list");
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i), *function = json_object_get(tool, "function");
        const char *type = json_string_value(json_object_get(tool, "type"));
        if (!type || strcmp(type, "function") != 0)
            return frit_fail_at(FRIT_E_INVALID, frit_field_name("tools[%zu].type", i).text, FRIT_CODE_INVALID_VALUE,
                                "expected \"function\"");
        if (!is_name(json_object_get(function, "name")))
            return frit_fail_at(FRIT_E_INVALID, frit_field_name("tools[%zu].function.name", i).text,
                                FRIT_CODE_INVALID_VALUE, "expected a name, without control characters");
        const json_t *parameters = json_object_get(function, "parameters");
        if (is_given(parameters) && !json_is_object(parameters))
            return frit_fail_at(FRIT_E_INVALID, frit_field_name("tools[%zu].function.parameters", i).text,
                                FRIT_CODE_INVALID_VALUE, "expected a JSON schema, an object");
        const json_t *strict = json_object_get(function, "strict");
        if (is_given(strict) && !json_is_boolean(strict))
            return frit_fail_at(FRIT_E_INVALID, frit_field_name("tools[%zu].function.strict", i).text,
                                FRIT_CODE_INVALID_TYPE, "expected true or false");
    }
    if (json_array_size(tools) > 0 && !r->shape->shows_tools && !r->shape->shows_calls && !r->shape->no_tools)
        return frit_fail_at(FRIT_E_INVALID, "tools", FRIT_CODE_UNSUPPORTED_PARAMETER,
                            "this model's chat template has no place for tools");
    return FRIT_OK;
}

static frit_status read_choice(frit_conversation *out, const json_t *choice)
{
    const char *word = json_string_value(choice);
    if (!is_given(choice) || (word && strcmp(word, "auto") == 0)) return FRIT_OK;
    if (word && strcmp(word, "none") == 0) {
        out->tools = NULL;
        return FRIT_OK;
    }
    out->must_call = true;
    out->must_call_name = json_string_value(json_object_get(json_object_get(choice, "function"), "name"));
    if (word ? strcmp(word, "required") != 0 : !out->must_call_name)
        return frit_fail_at(FRIT_E_INVALID, "tool_choice", FRIT_CODE_INVALID_VALUE,
                            "expected \"none\", \"auto\", \"required\" or {\"type\": "
                            "\"function\", \"function\": {\"name\": ...}}");
    if (!out->tools)
        return frit_fail_at(FRIT_E_INVALID, "tool_choice", FRIT_CODE_INVALID_VALUE,
                            "asks for a call, and there are no tools");
    if (out->must_call_name && !find_tool(out->tools, out->must_call_name))
        return frit_fail_at(FRIT_E_INVALID, "tool_choice", FRIT_CODE_INVALID_VALUE, "there is no tool '%.64s'",
                            out->must_call_name);
    return FRIT_OK;
}

static frit_status set_tools(const reading *r, frit_conversation *out, const json_t *request)
{
    json_t *tools = json_object_get(request, "tools");
    if (is_given(tools)) FRIT_TRY(check_tools(r, tools));
    out->tools = json_array_size(tools) > 0 ? tools : NULL;
    FRIT_TRY(read_choice(out, json_object_get(request, "tool_choice")));
    const bool shows = out->tools && !r->shape->no_tools;
    if (shows && json_object_set(out->variables, "tools", out->tools) != 0) return no_memory();
    if (!r->shape->functions_text) return FRIT_OK;
    json_t *functions = json_array();
    for (size_t i = 0; i < json_array_size(out->tools); i++)
        json_array_append(functions, json_object_get(json_array_get(out->tools, i), "function"));
    char *text = json_dumps(functions, JSON_INDENT(4));
    json_decref(functions);
    int failed = text ? json_object_set_new(out->variables, "functions", json_string(text)) : -1;
    free(text);
    struct tm now = frit_time_local();
    char day[64] = "";
    strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &now);
    failed |= json_object_set_new(out->variables, "datetime", json_string(day));
    return failed ? no_memory() : FRIT_OK;
}

// Appends the mark at which the prompt is cut to the last message.
static frit_status mark_end(const reading *r, const json_t *given)
{
    size_t n = json_array_size(r->messages);
    json_t *last = json_array_get(r->messages, n - 1), *content = json_object_get(last, "content");
    const char *role = json_string_value(json_object_get(last, "role"));
    if (strcmp(role, "assistant") != 0 || json_array_size(json_object_get(given, "tool_calls")) > 0)
        return frit_fail_at(FRIT_E_INVALID, "continue_final_message", FRIT_CODE_INVALID_VALUE,
                            "the last message is not a text of the assistant");
    if (json_is_array(content)) {
        last = json_array_get(content, json_array_size(content) - 1);
        content = json_object_get(last, "text");
        if (!content)
            return frit_fail_at(FRIT_E_INVALID, "continue_final_message", FRIT_CODE_INVALID_VALUE,
                                "the last message has no text");
        json_t *marked = join_texts(content, FRIT_CONVERSATION_MARK, NULL);
        return json_object_set_new(last, "text", marked) == 0 ? FRIT_OK : no_memory();
    }
    json_t *marked = join_texts(content, FRIT_CONVERSATION_MARK, NULL);
    return json_object_set_new(last, "content", marked) == 0 ? FRIT_OK : no_memory();
}

static frit_status read_request(reading *r, frit_conversation *out, const json_t *request)
{
    bool prompt;
    const json_t *extra = json_object_get(request, "chat_template_kwargs");
    if (is_given(extra) && !json_is_object(extra))
        return frit_fail_at(FRIT_E_INVALID, "chat_template_kwargs", FRIT_CODE_INVALID_TYPE, "expected an object");
    FRIT_TRY(read_flag(request, "add_generation_prompt", true, &prompt));
    FRIT_TRY(read_flag(request, "continue_final_message", false, &out->continues));
    const json_t *given = json_object_get(request, "messages"), *tools = json_object_get(request, "tools");
    FRIT_TRY(read_messages(r, given, frit_conversation_has_tools(request) ? tools : NULL));
    if (out->continues) FRIT_TRY(mark_end(r, json_array_get(given, json_array_size(given) - 1)));
    const char *effort = json_string_value(json_object_get(request, "reasoning_effort"));
    if (effort) json_object_set_new(out->variables, "reasoning_effort", json_string(effort));
    if (effort && strcmp(effort, "none") == 0) json_object_set_new(out->variables, "enable_thinking", json_false());
    int failed = is_given(extra) ? json_object_update(out->variables, (json_t *)extra) : 0;
    failed |= json_object_set(out->variables, "messages", r->messages);
    failed |= json_object_set_new(out->variables, "add_generation_prompt", json_boolean(prompt && !out->continues));
    if (failed) return no_memory();
    json_object_del(out->variables, "tools");
    return set_tools(r, out, request);
}

bool frit_conversation_has_tools(const json_t *request)
{
    const char *choice = json_string_value(json_object_get(request, "tool_choice"));
    return json_array_size(json_object_get(request, "tools")) > 0 && (!choice || strcmp(choice, "none") != 0);
}

frit_status frit_conversation_read(frit_conversation *out, const frit_chat *chat, const json_t *request,
                                   size_t n_images)
{
    size_t n_found = 0;
    *out = (frit_conversation){.variables = json_object()};
    reading r = {chat, frit_chat_get_shape(chat), json_array(), n_images, &n_found};
    frit_status status = out->variables && r.messages ? FRIT_OK : no_memory();
    if (status == FRIT_OK && !json_is_object(request))
        status = frit_fail(FRIT_E_INVALID, "a conversation is a JSON object with messages");
    if (status == FRIT_OK) status = read_request(&r, out, request);
    if (status == FRIT_OK && n_found != n_images)
        status = frit_fail_at(FRIT_E_INVALID, "messages", FRIT_CODE_INVALID_VALUE,
                              "%zu parts of type 'image' are in the conversation, but %zu pictures are given", n_found,
                              n_images);
    json_decref(r.messages);
    if (status != FRIT_OK) frit_conversation_free(out);
    return status;
}

frit_status frit_conversation_cut(frit_buf *prompt, frit_spans *untrusted)
{
    static const char mark[] = FRIT_CONVERSATION_MARK;
    const size_t n = sizeof mark - 1;
    size_t at = prompt->len < n ? 0 : prompt->len - n + 1;
    while (at > 0 && memcmp(prompt->data + at - 1, mark, n) != 0) at--;
    if (at == 0)
        return frit_fail_at(FRIT_E_INVALID, "continue_final_message", FRIT_CODE_INVALID_VALUE,
                            "the chat template drops the last message");
    prompt->len = at - 1;
    prompt->data[at - 1] = 0;
    if (untrusted) frit_spans_cut(untrusted, at - 1);
    return FRIT_OK;
}

void frit_conversation_free(frit_conversation *conversation)
{
    json_decref(conversation->variables);
    *conversation = (frit_conversation){0};
}
