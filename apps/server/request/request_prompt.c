// SPDX-License-Identifier: MIT
// From the fields of a prompt, or the messages of a chat, to tokens.
#include "server/request/request.h"

#include "common/token_json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool no_memory(server_problem *problem)
{
    return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
}

// ---------------------------------------------------------------------------------------- fields

bool server_read_ids(const json_t *list, const char *name, frit_token **ids, size_t *n_ids, server_problem *problem)
{
    size_t n = json_array_size(list);
    *ids = calloc(n + 1, sizeof **ids);
    if (!*ids) return no_memory(problem);
    for (size_t i = 0; i < n; i++) {
        json_int_t id;
        if (!server_integer(json_array_get(list, i), &id) || id < 0 || id > INT32_MAX)
            return server_refuse(problem, 400, "invalid_value", name, "%s: item %zu is not a token id", name, i);
        (*ids)[i] = (frit_token)id;
    }
    *n_ids = n;
    return true;
}

static bool read_text(json_t *value, const json_t **out, const char *param, server_problem *problem)
{
    if (!json_is_string(value))
        return server_refuse(problem, 400, "invalid_type", param, "%s: expected a string", param);
    *out = value;
    return true;
}

bool server_parse_suffix(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    return read_text(value, &request->prompt.suffix, "suffix", problem);
}

bool server_parse_input_prefix(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    return read_text(value, &request->prompt.prefix, "input_prefix", problem);
}

bool server_parse_input_suffix(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    return read_text(value, &request->prompt.suffix, "input_suffix", problem);
}

bool server_parse_input_extra(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    request->prompt.files = value;
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *file = json_array_get(value, i), *name = json_object_get(file, "filename");
        if (!json_is_string(json_object_get(file, "text")) || (name && !json_is_string(name)))
            return server_refuse(problem, 400, "invalid_type", "input_extra",
                                 "input_extra[%zu]: expected an object with text and filename, strings", i);
    }
    return json_is_array(value) ||
           server_refuse(problem, 400, "invalid_type", "input_extra", "input_extra: expected a list of files");
}

static bool set_prompt(server_generation *request, const json_t *value, server_problem *problem)
{
    request->prompt.text = NULL;
    request->prompt.ids = NULL;
    if (json_is_string(value)) {
        request->prompt.text = json_string_value(value);
        request->prompt.n_text = json_string_length(value);
        return true;
    }
    if (json_is_array(value) && (json_array_size(value) == 0 || json_is_number(json_array_get(value, 0))))
        return server_read_ids(value, "prompt", &request->prompt.ids, &request->prompt.n_ids, problem);
    return server_refuse(problem, 400, "invalid_type", "prompt",
                         "prompt: expected a string, a list of token ids, or a list of these");
}

bool server_choose_prompt(server_generation *request, size_t i, server_problem *problem)
{
    return set_prompt(request, json_array_get(request->prompt.all, i), problem);
}

// A prompt, which is a string or a list of token ids, or a list of prompts.
bool server_parse_prompt(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    const size_t n = json_array_size(value);
    const json_t *first = json_array_get(value, 0);   // NULL if the value is not a list
    request->prompt.n_all = 1;
    if (n == 0 || json_is_number(first)) return set_prompt(request, value, problem);
    if (n > SERVER_MAX_CHOICES)
        return server_refuse(problem, 400, "invalid_value", "prompt", "prompt: %zu prompts, at most %d are possible", n,
                             SERVER_MAX_CHOICES);
    request->prompt.all = value;
    request->prompt.n_all = (int32_t)n;
    for (size_t i = n; i-- > 0;) {   // checks all prompts; the first remains the request's
        free(request->prompt.ids);
        if (!server_choose_prompt(request, i, problem)) return false;
    }
    return true;
}

// ---------------------------------------------------------------------------------------- tokens

// Refuses a conversation. An error without a field comes from the chat template.
static void refuse_conversation(const server_body *body, server_problem *problem, frit_status status)
{
    const char *field = frit_error_field();
    const server_field_name param = server_body_field(body, field ? field : "messages");
    if (status == FRIT_E_MEMORY)
        server_refuse_status(problem, 500, NULL, status);
    else if (field)
        server_refuse_field(problem, 400, param.text, status);
    else
        server_refuse(problem, 400, status == FRIT_E_LIMIT ? "context_length_exceeded" : NULL, param.text, "%s",
                      frit_error());
}

frit_turn *server_turn(const frit_model *model, const server_body *body, const server_pictures *pictures,
                       server_problem *problem)
{
    frit_turn *turn;
    frit_media *media[SERVER_MAX_PICTURES];
    const size_t n = server_pictures_list(pictures, body, media);
    frit_status status = frit_turn_new_with_media(&turn, model, body->text, body->n_text, media, n);
    if (status != FRIT_OK) refuse_conversation(body, problem, status);
    return turn;
}

typedef struct prompt_source {   // a text, or a chat if `turn` is set
    const frit_model *model;
    const frit_turn *turn;
    const char *text;
    size_t n_bytes;
    unsigned flags;
    const frit_tokenize_limits *limits;
    size_t n_free;   // positions of the context beyond limits->max_tokens
} prompt_source;

// Writes at most `capacity` tokens of a source and sets *n_tokens to their number; FRIT_E_LIMIT if there are more.
typedef frit_status (*tokens_fn)(const prompt_source *source, frit_token *tokens, size_t capacity, size_t *n_tokens);

bool server_refuse_length(server_problem *problem, const char *param, size_t n_ctx, size_t n_tokens, bool at_least)
{
    return server_refuse(problem, 400, "context_length_exceeded", param,
                         "This model's maximum context length is %zu tokens. However, your %s has %s%zu tokens.", n_ctx,
                         strcmp(param, "input") == 0 ? "input" : "prompt", at_least ? "at least " : "", n_tokens);
}

// The tokens of a source, malloc'd; NULL with a problem. The first try has room for a token for every second byte,
// which is mostly enough, and never for more tokens than the limit.
static frit_token *tokenize_source(tokens_fn tokenize, const prompt_source *source, const char *param, size_t *n_tokens,
                                   server_problem *problem)
{
    const size_t most = source->limits->max_tokens;
    frit_status status = FRIT_E_LIMIT;
    *n_tokens = source->n_bytes / 2 + 16;
    if (most > 0 && *n_tokens > most) *n_tokens = most;
    for (size_t capacity = 0; status == FRIT_E_LIMIT && *n_tokens > capacity && (most == 0 || *n_tokens <= most);) {
        capacity = *n_tokens;
        frit_token *tokens = malloc(capacity * sizeof *tokens);
        status = tokens ? tokenize(source, tokens, capacity, n_tokens) : FRIT_E_MEMORY;
        if (status == FRIT_OK) return tokens;
        free(tokens);
    }
    if (status == FRIT_E_LIMIT && most > 0 && *n_tokens > most)
        server_refuse_length(problem, param, most + source->n_free, *n_tokens, true);
    else if (status == FRIT_E_CANCELLED)
        server_refuse(problem, 499, NULL, NULL, "the client went away");
    else
        server_refuse_status(problem, 400, NULL, status);
    return NULL;
}

static frit_status tokenize_text(const prompt_source *source, frit_token *tokens, size_t capacity, size_t *n_tokens)
{
    return frit_tokenize_within(source->model, source->text, source->n_bytes, source->flags, source->limits, tokens,
                                capacity, n_tokens);
}

frit_token *server_tokens(const frit_model *model, const char *text, size_t n_bytes, unsigned flags,
                          const frit_tokenize_limits *limits, size_t *n_tokens, server_problem *problem)
{
    const prompt_source source = {.model = model, .text = text, .n_bytes = n_bytes, .flags = flags, .limits = limits};
    return tokenize_source(tokenize_text, &source, "input", n_tokens, problem);
}

static frit_status tokenize_turn(const prompt_source *source, frit_token *tokens, size_t capacity, size_t *n_tokens)
{
    return frit_turn_tokenize(source->turn, source->limits, tokens, capacity, n_tokens);
}

// The tokens of a chat's messages or of a completion's text. One position of the context stays free for the answer.
static frit_token *tokenize_prompt(const frit_model *model, const server_generation *request,
                                   const frit_tokenize_limits *limits, size_t *n_tokens, server_problem *problem)
{
    prompt_source source = {.model = model, .turn = request->prompt.turn, .limits = limits, .n_free = 1};
    source.flags = FRIT_TEXT_SPECIAL | FRIT_TEXT_PARSE_SPECIAL;
    source.text = request->prompt.text;
    source.n_bytes = request->prompt.n_text;
    if (request->prompt.turn) frit_turn_prompt(request->prompt.turn, &source.n_bytes);
    const server_field_name field = server_body_field(&request->body, request->prompt.turn ? "messages" : "prompt");
    return tokenize_source(request->prompt.turn ? tokenize_turn : tokenize_text, &source, field.text, n_tokens,
                           problem);
}

json_t *server_piece_json(const frit_model *model, frit_token token)
{
    char room[256];
    size_t n;
    const char *piece = app_token_text(model, token, room, sizeof room, &n);
    json_t *json = json_stringn(piece, n);
    if (json) return json;
    json = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(json, json_integer((unsigned char)piece[i]));
    return json;
}

// Tokens from 2^30 on stand for pictures of a chat.
static bool check_prompt(const frit_model *model, const frit_token *tokens, size_t n,
                         const frit_tokenize_limits *limits, const char *param, bool chat, server_problem *problem)
{
    frit_model_info info;
    frit_model_get_info(model, &info);
    for (size_t i = 0; i < n; i++)
        if (tokens[i] >= info.n_vocab && !(chat && tokens[i] >= 1 << 30))
            return server_refuse(problem, 400, "invalid_value", param, "%s: token %d, this model's ids are 0 to %d",
                                 param, tokens[i], info.n_vocab - 1);
    if (n == 0) return server_refuse(problem, 400, "invalid_value", param, "%s: is missing or empty", param);
    return n <= limits->max_tokens || server_refuse_length(problem, param, limits->max_tokens + 1, n, false);
}

bool server_prompt_tokens(const frit_model *model, server_generation *request, bool chat,
                          const frit_tokenize_limits *limits, frit_token **tokens, size_t *n_tokens,
                          server_problem *problem)
{
    const server_field_name field = server_body_field(&request->body, chat ? "messages" : "prompt");
    const char *param = field.text;
    *tokens = NULL;
    if (chat) request->prompt.turn = server_turn(model, &request->body, request->prompt.pictures, problem);
    if (chat && !request->prompt.turn) return false;
    if (request->prompt.ids && !chat) {
        *tokens = malloc((request->prompt.n_ids + 1) * sizeof **tokens);
        if (!*tokens) return no_memory(problem);
        memcpy(*tokens, request->prompt.ids, request->prompt.n_ids * sizeof **tokens);
        *n_tokens = request->prompt.n_ids;
    } else if (chat || request->prompt.text) {
        *tokens = tokenize_prompt(model, request, limits, n_tokens, problem);
    } else {
        return server_refuse(problem, 400, "missing_required_parameter", param, "prompt: is missing");
    }
    if (!*tokens) return false;
    if (check_prompt(model, *tokens, *n_tokens, limits, param, chat, problem)) return true;
    free(*tokens);
    *tokens = NULL;
    return false;
}
