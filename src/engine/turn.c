// SPDX-License-Identifier: MIT
// The public functions for chats: messages and conversations to prompts.
#include "engine/engine.h"
#include "text/conversation.h"

#include <stdlib.h>

struct frit_turn {
    frit_model *model;   // kept alive
    frit_buf prompt;
};

static frit_status check_chat(const frit_model *model)
{
    if (model->chat) return FRIT_OK;
    return frit_fail(FRIT_E_UNSUPPORTED, "%s: has no vocabulary, so there can be no chat", model->info.path);
}

// ------------------------------------------------------------------------------------- rendering

// A last message that goes on ends where its content does.
static frit_status cut_at_mark(frit_buf *prompt)
{
    char *mark = prompt->data ? strstr(prompt->data, FRIT_CONVERSATION_MARK) : NULL;
    if (!mark) return frit_fail(FRIT_E_INVALID, "continue_final_message: the chat template drops the last message");
    prompt->len = (size_t)(mark - prompt->data);
    *mark = 0;
    return FRIT_OK;
}

static frit_status render(const frit_model *model, const json_t *request, frit_buf *prompt)
{
    frit_conversation conversation;
    FRIT_TRY(frit_conversation_read(&conversation, model->chat, request));
    frit_status status = frit_chat_apply_json(model->chat, conversation.variables, prompt);
    if (status == FRIT_OK && prompt->failed) status = frit_fail_memory(prompt->len, "a prompt");
    if (status == FRIT_OK && conversation.continues) status = cut_at_mark(prompt);
    frit_conversation_free(&conversation);
    return status;
}

// NULL: a text is missing or not UTF-8, or out of memory.
static json_t *messages_json(const frit_message *messages, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < n; i++) {
        json_t *message = json_pack("{s:s, s:s}", "role", messages[i].role, "content", messages[i].content);
        if (message && json_array_append_new(list, message) == 0) continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

frit_status frit_chat_render(const frit_model *model, const frit_message *messages, size_t n_messages,
                             const frit_chat_options *options, char *text, size_t capacity, size_t *n_bytes)
{
    *n_bytes = 0;
    FRIT_TRY(check_chat(model));
    json_t *list = messages_json(messages, n_messages);
    if (!list) return frit_fail(FRIT_E_INVALID, "a message's role or content is missing or not UTF-8");
    bool generate = !options || !options->no_generation_prompt;
    json_t *request = json_pack("{s:o, s:b}", "messages", list, "add_generation_prompt", generate);
    frit_buf buf = {0};
    frit_status status = request ? render(model, request, &buf) : frit_fail_memory(n_messages, "messages");
    json_decref(request);
    return frit_give_text(status, &buf, text, capacity, n_bytes);
}

// ------------------------------------------------------------------------------------- turns

frit_status frit_turn_new(frit_turn **out, const frit_model *model, const char *conversation, size_t n_bytes)
{
    *out = NULL;
    FRIT_TRY(check_chat(model));
    json_error_t error;
    json_t *request = json_loadb(conversation, n_bytes, JSON_REJECT_DUPLICATES, &error);
    if (!request)
        return frit_fail(FRIT_E_INVALID, "the conversation is not JSON: line %d, column %d: %s", error.line,
                         error.column, error.text);
    frit_turn *turn = calloc(1, sizeof *turn);
    frit_status status =
        turn ? render(model, request, &turn->prompt) : frit_fail_memory(sizeof *turn, "a turn of a chat");
    json_decref(request);
    if (status != FRIT_OK) {
        if (turn) frit_buf_free(&turn->prompt);
        free(turn);
        return status;
    }
    turn->model = (frit_model *)model;   // only its count changes
    frit_model_retain(turn->model);
    *out = turn;
    return FRIT_OK;
}

const char *frit_turn_prompt(const frit_turn *turn, size_t *n_bytes)
{
    *n_bytes = turn->prompt.len;
    return turn->prompt.data ? turn->prompt.data : "";
}

void frit_turn_free(frit_turn *turn)
{
    if (!turn) return;
    frit_buf_free(&turn->prompt);
    frit_model_free(turn->model);
    free(turn);
}
