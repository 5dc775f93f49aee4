// SPDX-License-Identifier: MIT
// Messages, tools and calls in OpenAI's form.
#include "server/request/conversation.h"

#include <stdio.h>
#include <stdlib.h>

server_field_name server_field_at(const char *list, size_t i)
{
    server_field_name field;
    snprintf(field.text, sizeof field.text, "%s[%zu]", list, i);
    return field;
}

server_field_name server_field_in(const server_field_name *outer, const char *list, size_t i)
{
    server_field_name field;
    snprintf(field.text, sizeof field.text, "%.40s.%.12s[%zu]", outer->text, list, i % 1000000);
    return field;
}

bool server_expect(server_problem *problem, const char *field, const char *what)
{
    return server_refuse(problem, 400, "invalid_type", field, "%s: expected %s", field, what);
}

const char *server_need_text(const json_t *object, const char *key, const char *field, server_problem *problem)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (!text) server_refuse(problem, 400, "invalid_type", field, "%s.%s: is missing or no string", field, key);
    return text;
}

json_t *server_text_part(json_t *text)
{
    return json_pack("{s:s, s:O}", "type", "text", "text", text);
}

json_t *server_call(const char *id, const char *name, const json_t *arguments)
{
    json_t *text = NULL;
    if (json_is_string(arguments)) {
        text = json_copy((json_t *)arguments);
    } else if (!arguments || json_is_null(arguments)) {
        text = json_string("{}");
    } else {
        char *dumped = json_dumps(arguments, JSON_COMPACT | JSON_ENCODE_ANY);
        text = dumped ? json_string(dumped) : NULL;
        free(dumped);
    }
    return json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", id, "type", "function", "function", "name", name, "arguments",
                     text);
}

json_t *server_tool(const char *name, json_t *description, json_t *parameters, json_t *strict)
{
    return json_pack("{s:s, s:{s:s, s:O*, s:O*, s:O*}}", "type", "function", "function", "name", name, "description",
                     description, "parameters", parameters, "strict", strict);
}

bool server_read_tools(const json_t *tools, server_tool_fn read, json_t *out, server_problem *problem)
{
    if (!tools || json_is_null(tools)) return true;
    if (!json_is_array(tools)) return server_expect(problem, "tools", "a list of tools");
    json_t *list = json_array();
    json_object_set_new(out, "tools", list);
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const server_field_name field = server_field_at("tools", i);
        json_t *tool = read(json_array_get(tools, i), field.text, problem);
        if (!tool) return false;
        json_array_append_new(list, tool);
    }
    return true;
}

json_t *server_named_choice(const char *name)
{
    return json_pack("{s:s, s:{s:s}}", "type", "function", "function", "name", name);
}
