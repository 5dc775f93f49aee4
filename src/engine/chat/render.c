// SPDX-License-Identifier: MIT
// Renders chat templates with any variables, and templates that callers pass.
#include "engine/model/model.h"

#include "text/chat/conversation.h"
#include "text/template/template.h"

// Returns the text of a token: as the variables define it, or the model's.
static frit_str token_text(const frit_model *model, const json_t *variables, const char *name, frit_token id)
{
    const json_t *given = json_object_get(variables, name);
    if (given) return (frit_str){json_is_string(given) ? json_string_value(given) : "", json_string_length(given)};
    const bool known = model && id >= 0 && id < model->vocab.n;
    return known ? model->vocab.entries[id].piece : (frit_str){"", 0};
}

// Opens a template that the caller passes. A parse error is an error: no other template replaces it.
static frit_status open_source(const frit_model *model, const char *source, const json_t *variables, frit_chat **out)
{
    frit_template *template;
    FRIT_TRY(frit_template_new(&template, frit_str_of(source)));
    frit_template_free(template);
    const frit_chat_tokens tokens = {.bos = token_text(model, variables, "bos_token", model ? model->vocab.bos : -1),
                                     .eos = token_text(model, variables, "eos_token", model ? model->vocab.eos : -1)};
    return frit_chat_new(out, frit_str_of(source), tokens, NULL);
}

// Builds a chat request from variables. Other variables become chat_template_kwargs. NULL: out of memory.
static json_t *request_of(const json_t *variables)
{
    static const char *const fields[] = {"messages",
                                         "tools",
                                         "tool_choice",
                                         "chat_template_kwargs",
                                         "reasoning_effort",
                                         "add_generation_prompt",
                                         "continue_final_message"};
    json_t *request = json_object(), *own = json_copy((json_t *)(uintptr_t)variables);
    json_t *kwargs = json_object_get(variables, "chat_template_kwargs");
    bool good = request && own;
    for (size_t i = 0; good && i < FRIT_COUNT(fields); i++) {
        json_t *value = json_object_get(own, fields[i]);
        if (value) good = json_object_set(request, fields[i], value) == 0 && json_object_del(own, fields[i]) == 0;
    }
    if (good && json_is_object(kwargs)) good = json_object_update(own, kwargs) == 0;
    if (good && (!kwargs || json_is_object(kwargs))) good = json_object_set(request, "chat_template_kwargs", own) == 0;
    json_decref(own);
    if (good) return request;
    json_decref(request);
    return NULL;
}

// Renders a conversation in the form that the template needs, as frit_turn_new does. Variables without a conversation
// are passed unchanged.
static frit_status render_chat(const frit_chat *chat, json_t *variables, frit_buf *out)
{
    json_t *request = request_of(variables);
    if (!request) return frit_fail_memory(0, "the variables of a chat template");
    frit_conversation conversation = {0};
    frit_status status = frit_conversation_read(&conversation, chat, request, 0);
    if (status == FRIT_OK) {
        status = frit_chat_apply_json(chat, conversation.variables, out, NULL);
        if (status == FRIT_OK && conversation.continues) status = frit_conversation_cut(out, NULL);
    } else if (status == FRIT_E_INVALID) {
        status = frit_chat_apply_json(chat, variables, out, NULL);
    }
    frit_conversation_free(&conversation);
    json_decref(request);
    return status;
}

static frit_status render_json(const frit_model *model, const char *source, json_t *variables, frit_buf *out)
{
    if (!json_is_object(variables)) return frit_fail(FRIT_E_INVALID, "the template's variables are not a JSON object");
    if (!json_object_get(variables, "add_generation_prompt"))
        json_object_set_new(variables, "add_generation_prompt", json_true());
    if (!source && !model) return frit_fail(FRIT_E_INVALID, "neither a model nor a template's source is given");
    frit_chat *own = NULL;
    const frit_chat *chat;
    if (source) {
        FRIT_TRY(open_source(model, source, variables, &own));
        chat = own;
    } else {
        FRIT_TRY(frit_model_get_chat(model, frit_conversation_has_tools(variables), &chat));
    }
    // Without a template nothing is rendered.
    const frit_status status = chat ? render_chat(chat, variables, out) : FRIT_OK;
    frit_chat_free(own);
    return status;
}

frit_status frit_chat_render_json(const frit_model *model, const char *source, const char *variables,
                                  size_t n_variable_bytes, char *text, size_t capacity, size_t *n_bytes)
{
    FRIT_REQUIRE(n_bytes);
    *n_bytes = 0;
    FRIT_REQUIRE(variables);
    FRIT_REQUIRE_ITEMS(text, capacity);
    json_error_t error;
    json_t *json = json_loadb(variables, n_variable_bytes, JSON_ALLOW_NUL, &error);
    if (!json)
        return frit_fail(FRIT_E_INVALID, "the template's variables are not JSON: line %d: %s", error.line, error.text);
    frit_buf buf = {0};
    frit_status status = render_json(model, source, json, &buf);
    json_decref(json);
    return frit_return_text(status, &buf, text, capacity, n_bytes);
}
