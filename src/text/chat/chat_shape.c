// SPDX-License-Identifier: MIT
// Finds the features that a chat template supports.
#include "text/chat/chat_shape.h"

#include "text/chat/chat.h"

#include <jansson.h>
#include <stdlib.h>
#include <time.h>

// ------------------------------------------------------------------------------------- sample conversations

static json_t *probe_tools(void)
{
    return json_pack("[{s:s, s:{s:s, s:s, s:{s:s, s:{s:{s:s, s:s}, s:{s:s, s:s}}, s:[s]}}}]", "type", "function",
                     "function", "name", PROBE_TOOL, "description", "Probes.", "parameters", "type", "object",
                     "properties", PROBE_KEY_1, "type", "string", "description", "A text.", PROBE_KEY_2, "type",
                     "integer", "description", "A number.", "required", PROBE_KEY_1);
}

static json_t *user_message(const chat_shape *shape)
{
    json_t *content = json_string(PROBE_QUESTION);
    if (shape->list_only) content = json_pack("[{s:s, s:o}]", "type", "text", "text", content);
    return json_pack("{s:s, s:o}", "role", "user", "content", content);
}

json_t *frit_probe_chat(const chat_shape *shape, json_t *answer, bool tools, bool prompt)
{
    json_t *messages = json_pack("[o]", user_message(shape));
    if (answer) json_array_append_new(messages, answer);
    json_t *chat = json_pack("{s:o, s:b}", "messages", messages, "add_generation_prompt", prompt);
    if (tools) json_object_set_new(chat, "tools", probe_tools());
    if (shape->functions_text) {
        json_object_set_new(chat, "functions", json_string(tools ? "[" PROBE_TOOL "]" : "[]"));
        json_object_set_new(chat, "datetime", json_string("today"));
    }
    return chat;
}

static json_t *probe_call(const chat_shape *shape, const char *name, const char *id)
{
    json_t *arguments = json_pack("{s:s, s:i}", PROBE_KEY_1, PROBE_VALUE_1, PROBE_KEY_2, PROBE_VALUE_2);
    if (shape->text_arguments) {
        char *text = json_dumps(arguments, 0);
        json_decref(arguments);
        arguments = text ? json_string(text) : NULL;
        free(text);
    }
    return json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", id, "type", "function", "function", "name", name, "arguments",
                     arguments);
}

json_t *frit_probe_calls(const chat_shape *shape, const char *content, const char *first_name, int n)
{
    json_t *calls = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(calls,
                              probe_call(shape, i == 0 ? first_name : PROBE_OTHER, i == 0 ? PROBE_ID : PROBE_ID_2));
    json_t *message = json_pack("{s:s}", "role", "assistant");
    if (content)
        json_object_set_new(message, "content", json_string(content));
    else if (shape->call_content == CHAT_CONTENT_EMPTY)
        json_object_set_new(message, "content", json_string(""));
    else if (shape->call_content == CHAT_CONTENT_NULL)
        json_object_set_new(message, "content", json_null());
    json_object_set_new(message, "tool_calls", calls);
    return message;
}

json_t *frit_probe_thought(const char *reasoning_key)
{
    if (strcmp(reasoning_key, "parts") == 0)
        return json_pack("{s:s, s:[{s:s, s:s}, {s:s, s:s}]}", "role", "assistant", "content", "type", "thinking",
                         "thinking", PROBE_REASONING, "type", "text", "text", PROBE_TEXT);
    return json_pack("{s:s, s:s, s:s}", "role", "assistant", "content", PROBE_TEXT, reasoning_key, PROBE_REASONING);
}

bool frit_probe_render(const frit_chat *chat, json_t *conversation, frit_buf *out)
{
    static const struct tm day = {.tm_year = 126, .tm_mday = 2, .tm_hour = 3, .tm_wday = 5, .tm_yday = 1};
    frit_buf_clear(out);
    bool good = conversation && frit_chat_probe(chat, conversation, &day, out) == FRIT_OK && !out->failed;
    json_decref(conversation);
    return good;
}

// ------------------------------------------------------------------------------------- questions

static bool shows(const frit_buf *text, const char *part)
{
    return text->data && strstr(text->data, part) != NULL;
}

// True if the rendered text has both keys, but not as a printed Python dictionary.
static bool shows_arguments(const frit_buf *text)
{
    return shows(text, PROBE_KEY_1) && shows(text, PROBE_KEY_2) && !shows(text, "'" PROBE_KEY_1 "'") &&
           !shows(text, "\\\"" PROBE_KEY_1);
}

static void find_user(const frit_chat *chat, chat_shape *shape, frit_buf *out)
{
    for (int i = 0; i < 4; i++) {
        shape->functions_text = i & 1;
        shape->list_only = i & 2;
        if (frit_probe_render(chat, frit_probe_chat(shape, NULL, false, true), out) && shows(out, PROBE_QUESTION) &&
            !shows(out, "'type'"))
            return;
    }
    shape->functions_text = shape->list_only = false;
}

static void find_system(const frit_chat *chat, chat_shape *shape, frit_buf *out)
{
    json_t *conversation = frit_probe_chat(shape, NULL, false, true);
    json_array_insert_new(json_object_get(conversation, "messages"), 0,
                          json_pack("{s:s, s:s}", "role", "system", "content", PROBE_TEXT));
    shape->no_system = !frit_probe_render(chat, conversation, out) || !shows(out, PROBE_TEXT);
}

static void find_calls(const frit_chat *chat, chat_shape *shape, frit_buf *out)
{
    shape->shows_tools =
        frit_probe_render(chat, frit_probe_chat(shape, NULL, true, true), out) && shows(out, PROBE_TOOL);
    for (int i = 0; i < 4 * CHAT_N_CONTENTS; i++) {
        shape->call_content = (chat_content)(i % CHAT_N_CONTENTS);
        shape->text_arguments = (i / CHAT_N_CONTENTS) & 1;
        shape->calls_without_tools = i >= 2 * CHAT_N_CONTENTS;
        json_t *answer = frit_probe_calls(shape, NULL, PROBE_OTHER, 1);
        json_t *conversation = frit_probe_chat(shape, answer, !shape->calls_without_tools, false);
        shape->shows_calls = frit_probe_render(chat, conversation, out) && shows(out, PROBE_OTHER);
        if (shape->shows_calls && shows(out, PROBE_VALUE_1) && shows_arguments(out)) return;
    }
    shape->call_content = CHAT_CONTENT_EMPTY;
    shape->text_arguments = shape->calls_without_tools = shape->shows_calls = false;
}

static void find_reasoning(const frit_chat *chat, chat_shape *shape, frit_buf *out)
{
    static const char *const keys[] = {"reasoning_content", "reasoning", "thinking", "parts"};
    for (size_t i = 0; i < FRIT_COUNT(keys); i++) {
        json_t *conversation = frit_probe_chat(shape, frit_probe_thought(keys[i]), false, false);
        if (!frit_probe_render(chat, conversation, out) || !shows(out, PROBE_REASONING)) continue;
        if (shows(out, "thinking'") || shows(out, "thinking\"")) continue;   // the list was printed as in Python
        shape->reasoning_key = keys[i];
        return;
    }
}

void frit_chat_find_shape(const frit_chat *chat, chat_shape *shape)
{
    *shape = (chat_shape){0};
    frit_buf out = {0};
    find_user(chat, shape, &out);
    find_system(chat, shape, &out);
    find_calls(chat, shape, &out);
    find_reasoning(chat, shape, &out);
    frit_buf_free(&out);
}
