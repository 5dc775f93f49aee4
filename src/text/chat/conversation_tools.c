// SPDX-License-Identifier: MIT
// Writes tools, calls and results as texts of messages.
#include "text/chat/conversation_tools.h"

#include "text/answer/values.h"

#include <stdlib.h>

static const char before_tools[] = "You can call tools. Each has a name, and parameters that are a JSON schema:\n\n";
static const char after_tools[] =
    "\nAnswer with one JSON object and nothing else. To call tools, one or several:\n\n"
    "{\"tool_calls\": [{\"name\": NAME, \"arguments\": {...}}]}\n\n"
    "What a tool returns is in the next message, as {\"tool_result\": {\"name\": NAME, \"content\": TEXT}}. To reply "
    "to "
    "the user in words, where no tool is needed or when you know what the tools returned:\n\n"
    "{\"response\": TEXT}";

typedef struct writing {
    const chat_shape *shape;
    const answer_format *format;
    json_t *out;
    bool is_made;   // the last message of `out` has a text that this file wrote
} writing;

static frit_status no_memory(void)
{
    return frit_fail_memory(0, "a conversation");
}

static const char *role_of(const json_t *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    return role ? role : "";
}

static frit_str str_of(const frit_buf *buf)
{
    return (frit_str){buf->data ? buf->data : "", buf->len};
}

// ------------------------------------------------------------------------------------- contents

// Appends text to a string, or to a list whose last part is a text. Other parts of a list stay unchanged.
static bool append_text(json_t *message, const char *between, frit_str text)
{
    const char *key = "content";
    json_t *content = json_object_get(message, key);
    if (json_is_array(content)) {
        json_t *last = json_array_get(content, json_array_size(content) - 1);
        if (!json_is_string(json_object_get(last, "text")))
            return json_array_append_new(content,
                                         json_pack("{s:s, s:s%}", "type", "text", "text", text.ptr, text.len)) == 0;
        message = last;
        key = "text";
        content = json_object_get(last, key);
    }
    frit_buf joined = {0};
    frit_buf_append(&joined, json_string_value(content), json_string_length(content));
    if (joined.len > 0) frit_buf_text(&joined, between);
    frit_buf_append(&joined, text.ptr, text.len);
    const frit_str all = str_of(&joined);
    const bool good = !joined.failed && json_object_set_new(message, key, json_stringn_nocheck(all.ptr, all.len)) == 0;
    frit_buf_free(&joined);
    return good;
}

static void add_texts(const json_t *content, frit_buf *out)
{
    if (json_is_string(content)) frit_buf_append(out, json_string_value(content), json_string_length(content));
    for (size_t i = 0; i < json_array_size(content); i++)
        add_texts(json_object_get(json_array_get(content, i), "text"), out);
}

static bool is_text(const json_t *part)
{
    return json_is_string(json_object_get(part, "text"));
}

// True if content is a list with parts that are no texts: pictures.
static bool has_pictures(const json_t *content)
{
    for (size_t i = 0; i < json_array_size(content); i++)
        if (!is_text(json_array_get(content, i))) return true;
    return false;
}

// Makes the content of a message a list, and returns it; NULL: no memory.
static json_t *make_list(json_t *message)
{
    json_t *content = json_object_get(message, "content");
    if (json_is_array(content)) return content;
    json_t *list =
        json_string_length(content) > 0 ? json_pack("[{s:s, s:O}]", "type", "text", "text", content) : json_array();
    return json_object_set_new(message, "content", list) == 0 ? list : NULL;
}

// Appends the pictures of content to a message.
static bool append_pictures(json_t *message, const json_t *content)
{
    json_t *list = has_pictures(content) ? make_list(message) : NULL;
    bool good = list || !has_pictures(content);
    for (size_t i = 0; i < json_array_size(content) && list; i++)
        if (!is_text(json_array_get(content, i)))
            good = json_array_append(list, json_array_get(content, i)) == 0 && good;
    return good;
}

// Appends content to a message, with an empty line between.
static bool append_content(json_t *message, const json_t *content)
{
    if (!has_pictures(content)) {
        frit_buf text = {0};
        add_texts(content, &text);
        const bool good = !text.failed && append_text(message, "\n\n", str_of(&text));
        frit_buf_free(&text);
        return good;
    }
    json_t *list = make_list(message);
    for (size_t i = 0; i < json_array_size(content) && list; i++) {
        json_t *part = json_array_get(content, i), *text = json_object_get(part, "text");
        const bool good = is_text(part) ? append_text(message, i == 0 ? "\n\n" : "",
                                                      (frit_str){json_string_value(text), json_string_length(text)})
                                        : json_array_append(list, part) == 0;
        if (!good) return false;
    }
    return list != NULL;
}

static json_t *message_of(const writing *w, const char *role, frit_str text)
{
    json_t *content = json_stringn_nocheck(text.ptr, text.len);
    if (w->shape->list_only) content = json_pack("[{s:s, s:o}]", "type", "text", "text", content);
    return json_pack("{s:s, s:o}", "role", role, "content", content);
}

// ------------------------------------------------------------------------------------- calls and results

static void add_json(json_t *value, frit_buf *out)
{
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    if (text)
        frit_buf_text(out, text);
    else
        out->failed = true;
    free(text);
    json_decref(value);
}

static void add_str(frit_str text, frit_buf *out)
{
    frit_buf_append(out, text.ptr, text.len);
}

// Writes a value in Python's syntax.
static void add_python(const json_t *value, frit_buf *out)
{
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_object(value)) {
        frit_buf_char(out, '{');
        json_object_foreach((json_t *)(uintptr_t)value, key, item)
        {
            if (item != json_object_iter_value(json_object_iter((json_t *)(uintptr_t)value))) frit_buf_text(out, ", ");
            frit_json_quote(frit_str_of(key), out);
            frit_buf_text(out, ": ");
            add_python(item, out);
        }
        frit_buf_char(out, '}');
    } else if (json_is_array(value)) {
        frit_buf_char(out, '[');
        json_array_foreach(value, i, item)
        {
            if (i > 0) frit_buf_text(out, ", ");
            add_python(item, out);
        }
        frit_buf_char(out, ']');
    } else if (json_is_boolean(value) || json_is_null(value)) {
        frit_buf_text(out, json_is_true(value) ? "True" : json_is_false(value) ? "False" : "None");
    } else {
        add_json(json_incref((json_t *)(uintptr_t)value), out);
    }
}

static void add_python_call(const char *name, const json_t *arguments, frit_buf *out)
{
    const char *key;
    json_t *item;
    size_t n = 0;
    frit_buf_printf(out, "%s(", name);
    json_object_foreach((json_t *)(uintptr_t)arguments, key, item)
    {
        frit_buf_printf(out, "%s%s=", n++ > 0 ? ", " : "", key);
        add_python(item, out);
    }
    frit_buf_char(out, ')');
}

static void add_call(const answer_format *f, const json_t *function, frit_buf *out)
{
    json_t *name = json_object_get(function, "name"), *arguments = json_object_get(function, "arguments");
    if (f->style == CALL_PYTHON) {
        add_python_call(json_string_value(name), arguments, out);
    } else if (f->style == CALL_NAMED) {
        frit_buf_printf(out, "%s\n", json_string_value(name));
        add_str(f->args_open, out);
        frit_buf_char(out, '\n');
        add_json(json_incref(arguments), out);
        frit_buf_char(out, '\n');
    } else {
        add_json(json_pack("{s:O, s:O}", f->name_key.ptr, name, f->args_key.ptr, arguments), out);
    }
}

// Writes calls in the format that the model is asked to use.
static void add_calls(const writing *w, const json_t *calls, frit_buf *out)
{
    const answer_format *f = w->format;
    const bool in_list = f->in_list || f->style == CALL_PYTHON;
    add_str(f->section_open, out);
    for (size_t i = 0; i < json_array_size(calls); i++) {
        if (i == 0 || !in_list) add_str(f->call_open, out);
        if (i == 0 && f->plain) frit_buf_char(out, ' ');
        if (in_list) frit_buf_text(out, i == 0 ? "[" : ", ");
        add_call(f, json_object_get(json_array_get(calls, i), "function"), out);
        if (!in_list) add_str(f->call_close, out);
    }
    if (in_list) frit_buf_char(out, ']');
    if (in_list) add_str(f->call_close, out);
    add_str(f->section_close, out);
}

static void add_result(const json_t *message, frit_buf *out)
{
    json_t *result = json_object(), *name = json_object_get(message, "name");
    frit_buf text = {0};
    add_texts(json_object_get(message, "content"), &text);
    if (json_is_string(name)) json_object_set(result, "name", name);
    json_object_set_new(result, "content", json_stringn_nocheck(str_of(&text).ptr, text.len));
    out->failed |= text.failed;
    frit_buf_free(&text);
    add_json(json_pack("{s:o}", "tool_result", result), out);
}

// ------------------------------------------------------------------------------------- messages

// Appends the message. If it or the last message has a text that this file wrote, the text is appended to the last
// message.
static frit_status put(writing *w, json_t *message, const frit_buf *made)
{
    json_t *last = json_array_get(w->out, json_array_size(w->out) - 1);
    const bool is_made = made != NULL;
    bool good = message != NULL;
    if (good && (is_made || w->is_made) && last && strcmp(role_of(last), role_of(message)) == 0) {
        good = append_content(last, json_object_get(message, "content"));
    } else if (good) {
        good = json_array_append(w->out, message) == 0;
    }
    w->is_made = is_made;
    json_decref(message);
    return good && !(made && made->failed) ? FRIT_OK : no_memory();
}

static frit_status write_message(writing *w, json_t *message)
{
    const json_t *calls = json_object_get(message, "tool_calls");
    const bool is_result = w->format->plain && strcmp(role_of(message), "tool") == 0;
    if (!calls && !is_result) return put(w, json_incref(message), NULL);
    frit_buf text = {0};
    json_t *written = NULL;
    if (is_result) {
        add_result(message, &text);
        written = message_of(w, "user", str_of(&text));
        text.failed |= !written || !append_pictures(written, json_object_get(message, "content"));
    } else {
        add_calls(w, calls, &text);
        written = json_copy(message);
        bool good = written && json_object_del(written, "tool_calls") == 0;
        if (good && json_is_null(json_object_get(written, "content"))) json_object_del(written, "content");
        if (good && !json_object_get(written, "content"))
            good = json_object_set_new(written, "content", w->shape->list_only ? json_array() : json_string("")) == 0;
        if (!good || !append_text(written, "\n\n", str_of(&text))) text.failed = true;
    }
    const frit_status status = put(w, written, &text);
    frit_buf_free(&text);
    return status;
}

static frit_status add_instruction(const writing *w, const json_t *tools)
{
    frit_buf text = {0};
    frit_buf_text(&text, before_tools);
    for (size_t i = 0; i < json_array_size(tools); i++) {
        json_t *function = json_object_get(json_array_get(tools, i), "function");
        if (function) add_json(json_incref(function), &text);
        frit_buf_char(&text, '\n');
    }
    frit_buf_text(&text, after_tools);
    json_t *first = json_array_get(w->out, 0);
    bool good = !text.failed;
    if (strcmp(role_of(first), "system") == 0)
        good = good && append_text(first, "\n\n", str_of(&text));
    else
        good = good && json_array_insert_new(w->out, 0, message_of(w, "system", str_of(&text))) == 0;
    frit_buf_free(&text);
    return good ? FRIT_OK : no_memory();
}

frit_status frit_conversation_write_tools(json_t *messages, const chat_shape *shape, const answer_format *format,
                                          const json_t *tools)
{
    writing w = {.shape = shape, .format = format, .out = json_array()};
    frit_status status = w.out ? FRIT_OK : no_memory();
    for (size_t i = 0; i < json_array_size(messages) && status == FRIT_OK; i++)
        status = write_message(&w, json_array_get(messages, i));
    if (status == FRIT_OK && tools) status = add_instruction(&w, tools);
    if (status == FRIT_OK && (json_array_clear(messages) != 0 || json_array_extend(messages, w.out) != 0))
        status = no_memory();
    json_decref(w.out);
    return status;
}
