// SPDX-License-Identifier: MIT
// Pictures in the messages of chat completions: {"type": "image_url", "image_url": {"url": ..., "detail": ...}}.
#include "server/request/conversation.h"
#include "server/request/pictures.h"
#include "server/request/request.h"

#include <string.h>

static bool is_of_type(const json_t *part, const char *type)
{
    const char *own = json_string_value(json_object_get(part, "type"));
    return own && strcmp(own, type) == 0;
}

static bool has_pictures(const json_t *messages)
{
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *content = json_object_get(json_array_get(messages, i), "content");
        for (size_t k = 0; k < json_array_size(content); k++) {
            const json_t *part = json_array_get(content, k);
            if (is_of_type(part, "image_url") || is_of_type(part, "image")) return true;
        }
    }
    return false;
}

// A new reference to the part in the server's form. NULL with a problem.
static json_t *convert_part(json_t *part, const char *field, server_problem *problem)
{
    json_t *image = json_object_get(part, "image_url");
    if (is_of_type(part, "image")) {
        server_refuse(problem, 400, "invalid_value", field,
                      "%s: a part of type 'image' has no picture, expected type 'image_url' with a data URI", field);
        return NULL;
    }
    if (!is_of_type(part, "image_url")) return json_incref(part);
    if (json_is_object(image))
        return server_picture_of_url(json_object_get(image, "url"), json_object_get(image, "detail"), field, problem);
    return server_picture_of_url(image, NULL, field, problem);
}

static bool convert_content(json_t *message, size_t i, server_problem *problem)
{
    const server_field_name field = server_field_at("messages", i);
    const json_t *content = json_object_get(message, "content");
    if (!json_is_array(content)) return true;
    json_t *list = json_array();
    bool good = list != NULL;
    for (size_t k = 0; k < json_array_size(content) && good; k++) {
        const server_field_name inner = server_field_in(&field, "content", k);
        json_t *part = convert_part(json_array_get(content, k), inner.text, problem);
        good = part && json_array_append_new(list, part) == 0;
    }
    if (good) return json_object_set_new(message, "content", list) == 0;
    json_decref(list);
    return problem->status ? false : server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
}

bool server_convert_chat_parts(void *ctx, server_problem *problem)
{
    server_body *body = &((server_generation *)ctx)->body;
    const json_t *messages = json_object_get(body->root, "messages");
    if (!has_pictures(messages)) return true;
    json_t *root = json_copy(body->root), *list = json_array();
    bool good = root && list;
    for (size_t i = 0; i < json_array_size(messages) && good; i++) {
        json_t *message = json_copy(json_array_get(messages, i));
        good = message && json_array_append_new(list, message) == 0 && convert_content(message, i, problem);
    }
    json_object_set_new(root, "messages", list);
    if (good) return server_body_convert(body, root, problem);
    json_decref(root);
    return problem->status ? false : server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
}
