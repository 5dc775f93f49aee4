// SPDX-License-Identifier: MIT
// Public chat functions: prompts from messages and conversations, and the parts of answers.
#include "engine/chat/turn.h"
#include "text/chat/conversation.h"

#include <stdlib.h>
#include <string.h>

// A template renders BOS itself if the model needs it, and no EOS after the start of the answer.
enum { PROMPT_FLAGS = FRIT_TEXT_PARSE_SPECIAL };

// ------------------------------------------------------------------------------------- rendering

static frit_status render_prompt(const frit_chat *chat, const frit_conversation *conversation, frit_buf *prompt,
                                 frit_spans *untrusted)
{
    FRIT_TRY(frit_chat_apply_json(chat, conversation->variables, prompt, untrusted));
    if (prompt->failed) return frit_fail_memory(prompt->len, "a prompt");
    return conversation->continues ? frit_conversation_cut(prompt, untrusted) : FRIT_OK;
}

// Returns the messages as JSON; NULL: a text is missing or not UTF-8, or out of memory.
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

static frit_status render_messages(const frit_model *model, const frit_message *messages, size_t n_messages,
                                   const frit_chat_options *options, frit_buf *out, frit_spans *untrusted)
{
    const frit_chat *chat;
    FRIT_TRY(frit_model_get_chat(model, false, &chat));
    json_t *list = messages_json(messages, n_messages);
    if (!list) return frit_fail(FRIT_E_INVALID, "a message's role or content is missing or not UTF-8");
    bool generate = !options || !options->no_generation_prompt;
    json_t *request = json_pack("{s:o, s:b}", "messages", list, "add_generation_prompt", generate);
    frit_conversation conversation = {0};
    frit_status status = request ? FRIT_OK : frit_fail_memory(n_messages, "messages");
    if (status == FRIT_OK) status = frit_conversation_read(&conversation, chat, request, 0);
    if (status == FRIT_OK) status = render_prompt(chat, &conversation, out, untrusted);
    frit_conversation_free(&conversation);
    json_decref(request);
    return status;
}

frit_status frit_chat_render(const frit_model *model, const frit_message *messages, size_t n_messages,
                             const frit_chat_options *options, char *text, size_t capacity, size_t *n_bytes)
{
    FRIT_REQUIRE(n_bytes);
    *n_bytes = 0;
    FRIT_REQUIRE(model);
    FRIT_REQUIRE_ITEMS(messages, n_messages);
    FRIT_REQUIRE_ITEMS(text, capacity);
    FRIT_REQUIRE_UNUSED(options);
    FRIT_REQUIRE_UNUSED_ITEMS(messages, n_messages);
    frit_buf buf = {0};
    frit_spans untrusted = {0};
    const frit_status status = render_messages(model, messages, n_messages, options, &buf, &untrusted);
    frit_spans_free(&untrusted);
    return frit_return_text(status, &buf, text, capacity, n_bytes);
}

static frit_status tokenize_prompt(const frit_model *model, const frit_buf *prompt, const frit_spans *untrusted,
                                   const frit_tokenize_limits *limits, frit_token *tokens, size_t capacity,
                                   size_t *n_tokens)
{
    const frit_encoding how = frit_encoding_of(PROMPT_FLAGS, untrusted, limits);
    const frit_str text = {prompt->data ? prompt->data : "", prompt->len};
    return frit_return_tokens(model, text, &how, tokens, capacity, n_tokens);
}

frit_status frit_chat_tokenize(const frit_model *model, const frit_message *messages, size_t n_messages,
                               const frit_chat_options *options, frit_token *tokens, size_t capacity, size_t *n_tokens)
{
    FRIT_REQUIRE(n_tokens);
    *n_tokens = 0;
    FRIT_REQUIRE(model);
    FRIT_REQUIRE_ITEMS(messages, n_messages);
    FRIT_REQUIRE_ITEMS(tokens, capacity);
    FRIT_REQUIRE_UNUSED(options);
    FRIT_REQUIRE_UNUSED_ITEMS(messages, n_messages);
    frit_buf buf = {0};
    frit_spans untrusted = {0};
    frit_status status = render_messages(model, messages, n_messages, options, &buf, &untrusted);
    if (status == FRIT_E_LIMIT) status = FRIT_E_INVALID;   // like frit_chat_render
    if (status == FRIT_OK) status = tokenize_prompt(model, &buf, &untrusted, NULL, tokens, capacity, n_tokens);
    frit_spans_free(&untrusted);
    frit_buf_free(&buf);
    return status;
}

// ------------------------------------------------------------------------------------- turns

static frit_status open_turn(frit_turn *turn, const json_t *request)
{
    frit_conversation conversation;
    FRIT_TRY(frit_model_get_chat(turn->model, frit_conversation_has_tools(request), &turn->chat));
    FRIT_TRY(frit_conversation_read(&conversation, turn->chat, request, turn->n_media));
    const answer_format *format = frit_chat_get_format(turn->chat);
    turn->tools = json_incref(conversation.tools);
    turn->must_call = conversation.must_call;
    turn->continues = conversation.continues;
    frit_buf *prompt = &turn->prompt;
    frit_status status = render_prompt(turn->chat, &conversation, prompt, &turn->untrusted);
    if (status == FRIT_OK) status = frit_media_surround(prompt, &turn->untrusted, turn->media, turn->n_media);
    if (status == FRIT_OK && conversation.must_call_name) {
        turn->only = strdup(conversation.must_call_name);
        if (!turn->only) status = frit_fail_memory(strlen(conversation.must_call_name), "a tool's name");
    }
    if (status == FRIT_OK) {
        const frit_str text = {prompt->data ? prompt->data : "", prompt->len};
        const frit_parts_options options = {
            .format = format, .tools = turn->tools, .prompt = text, .continues = turn->continues};
        turn->is_thinking = frit_answer_is_thinking(format, text, turn->continues);
        status = frit_parts_new(&turn->split, &options);
    }
    frit_conversation_free(&conversation);
    return status;
}

// Keeps the tokens of a conversation's pictures.
static frit_status keep_media(frit_turn *turn, frit_media *const *media, size_t n_media)
{
    turn->media = calloc(n_media + 1, sizeof *turn->media);
    if (!turn->media) return frit_fail_memory(n_media * sizeof *turn->media, "a turn of a chat");
    for (; turn->n_media < n_media; turn->n_media++)
        FRIT_TRY(frit_media_copy_tokens(&turn->media[turn->n_media], media[turn->n_media]));
    return FRIT_OK;
}

frit_status frit_turn_new_with_media(frit_turn **out, const frit_model *model, const char *conversation, size_t n_bytes,
                                     frit_media *const *media, size_t n_media)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(model);
    FRIT_REQUIRE(conversation);
    FRIT_REQUIRE_ITEMS(media, n_media);
    for (size_t i = 0; i < n_media; i++) FRIT_REQUIRE(media[i]);
    json_error_t error;
    json_t *request = json_loadb(conversation, n_bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!request)
        return frit_fail(FRIT_E_INVALID, "the conversation is not JSON: line %d, column %d: %s", error.line,
                         error.column, error.text);
    frit_turn *turn = calloc(1, sizeof *turn);
    frit_status status = turn ? FRIT_OK : frit_fail_memory(sizeof *turn, "a turn of a chat");
    if (turn) {
        turn->model = (frit_model *)model;   // only the reference count changes
        frit_model_ref(turn->model);
        status = keep_media(turn, media, n_media);
        if (status == FRIT_OK) status = open_turn(turn, request);
    }
    json_decref(request);
    if (status != FRIT_OK) {
        frit_turn_free(turn);
        return status;
    }
    *out = turn;
    return FRIT_OK;
}

frit_status frit_turn_new(frit_turn **out, const frit_model *model, const char *conversation, size_t n_bytes)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(model);
    FRIT_REQUIRE(conversation);
    return frit_turn_new_with_media(out, model, conversation, n_bytes, NULL, 0);
}

const char *frit_turn_prompt(const frit_turn *turn, size_t *n_bytes)
{
    FRIT_REQUIRE_OR(NULL, n_bytes);
    *n_bytes = 0;
    FRIT_REQUIRE_OR(NULL, turn);
    *n_bytes = turn->prompt.len;
    return turn->prompt.data ? turn->prompt.data : "";
}

// Tokenizes the prompt and replaces its placeholders by pictures.
static frit_status tokenize_with_media(const frit_turn *turn, const frit_tokenize_limits *limits, frit_token *tokens,
                                       size_t capacity, size_t *n_tokens)
{
    size_t n, n_all = 0;
    frit_token *all = NULL, *text = calloc(turn->prompt.len + 1, sizeof *text);   // a token has a byte at least
    if (!text) return frit_fail_memory(turn->prompt.len * sizeof *text, "a prompt");
    frit_status status =
        tokenize_prompt(turn->model, &turn->prompt, &turn->untrusted, limits, text, turn->prompt.len + 1, &n);
    if (status == FRIT_OK) status = frit_media_place_all(&all, &n_all, text, n, turn->media, turn->n_media);
    free(text);
    *n_tokens = n_all;
    if (status == FRIT_OK) memcpy(tokens, all, (n_all < capacity ? n_all : capacity) * sizeof *tokens);
    if (status == FRIT_OK && n_all > capacity)
        status = frit_fail(FRIT_E_LIMIT, "the prompt has %zu tokens, there is room for %zu", n_all, capacity);
    free(all);
    return status;
}

frit_status frit_turn_tokenize(const frit_turn *turn, const frit_tokenize_limits *limits, frit_token *tokens,
                               size_t capacity, size_t *n_tokens)
{
    FRIT_REQUIRE(n_tokens);
    *n_tokens = 0;
    FRIT_REQUIRE(turn);
    FRIT_REQUIRE_UNUSED(limits);
    FRIT_REQUIRE_ITEMS(tokens, capacity);
    if (turn->n_media > 0) return tokenize_with_media(turn, limits, tokens, capacity, n_tokens);
    return tokenize_prompt(turn->model, &turn->prompt, &turn->untrusted, limits, tokens, capacity, n_tokens);
}

static frit_status check_split(const frit_turn *turn)
{
    return frit_parts_failed(turn->split) ? frit_fail_memory(0, "the parts of an answer") : FRIT_OK;
}

frit_status frit_turn_push(frit_turn *turn, const char *text, size_t n_bytes)
{
    FRIT_REQUIRE(turn);
    FRIT_REQUIRE_ITEMS(text, n_bytes);
    frit_parts_push(turn->split, (frit_str){text, n_bytes});
    return check_split(turn);
}

frit_status frit_turn_end(frit_turn *turn)
{
    FRIT_REQUIRE(turn);
    frit_parts_end(turn->split);
    return check_split(turn);
}

bool frit_turn_next(frit_turn *turn, frit_part *part)
{
    FRIT_REQUIRE_OR(false, turn);
    FRIT_REQUIRE_OR(false, part);
    return frit_parts_next(turn->split, part);
}

bool frit_turn_shows(const frit_turn *turn, frit_token token)
{
    FRIT_REQUIRE_OR(false, turn);
    const frit_vocab *vocab = &turn->model->vocab;
    if (token < 0 || token >= vocab->n) return false;
    return frit_answer_has_mark(frit_chat_get_format(turn->chat), turn->tools != NULL, vocab->entries[token].piece);
}

bool frit_turn_is_thinking(const frit_turn *turn)
{
    FRIT_REQUIRE_OR(false, turn);
    return turn->is_thinking;
}

void frit_turn_free(frit_turn *turn)
{
    if (!turn) return;
    frit_parts_free(turn->split);
    for (size_t i = 0; i < turn->n_media; i++) frit_media_free(turn->media[i]);
    free(turn->media);
    free(turn->only);
    json_decref(turn->tools);
    frit_buf_free(&turn->prompt);
    frit_spans_free(&turn->untrusted);
    frit_model_free(turn->model);
    free(turn);
}
