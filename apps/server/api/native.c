// SPDX-License-Identifier: MIT
// Handlers for llama.cpp's paths: texts, tokens and prompts.
#include "common/grow.h"
#include "server/api/answer.h"
#include "server/api/handlers.h"
#include "server/api/json_text.h"
#include "server/request/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Returns the length of the token's JSON. If it is `size` or more, the buffer has no valid text.
static size_t write_token(char *at, size_t size, const frit_model *model, frit_token token, bool with_piece)
{
    if (!with_piece) return (size_t)snprintf(at, size, "%d", (int)token);
    size_t n = (size_t)snprintf(at, size, "{\"id\":%d,\"piece\":", (int)token);
    json_t *piece = server_piece_json(model, token);
    n += json_dumpb(piece, at + n, n < size ? size - n : 0, SERVER_JSON_FLAGS | JSON_ENCODE_ANY);
    json_decref(piece);
    if (n < size) at[n] = '}';
    return n + 1;
}

// The reply of /tokenize, malloc'd; NULL if memory is short. It is written as text, because a body of 32 MiB may have
// millions of tokens, and each would be a JSON value.
static char *tokens_text(const frit_model *model, const frit_token *tokens, size_t n_tokens, bool with_pieces)
{
    enum { LEAST = 512 };   // bytes that are always free
    static const char begin[] = "{\"tokens\":[";
    char *text = malloc(2 * LEAST);
    size_t n = sizeof begin - 1, capacity = 2 * LEAST;
    if (text) memcpy(text, begin, n);
    for (size_t i = 0; text && i < n_tokens;) {
        if (i > 0) text[n] = ',';
        const size_t from = n + (i > 0);
        const size_t length = write_token(text + from, capacity - from, model, tokens[i], with_pieces);
        if (from + length + LEAST <= capacity) {
            n = from + length;
            i++;
            continue;
        }
        capacity += capacity / 2 + length;
        char *grown = realloc(text, capacity);
        if (!grown) free(text);
        text = grown;
    }
    if (text) snprintf(text + n, capacity - n, "],\"count\":%zu}", n_tokens);
    return text;
}

void server_tokenize(server_exchange *exchange)
{
    const server_text_request *request = exchange->request;
    const frit_model *model = exchange->model->model;
    if (!request->text) {
        server_refuse(&exchange->problem, 400, "missing_required_parameter", "content", "content: is missing");
        return;
    }
    unsigned flags =
        (request->add_special ? FRIT_TEXT_SPECIAL : 0u) | (request->parse_special ? FRIT_TEXT_PARSE_SPECIAL : 0u);
    const frit_tokenize_limits limits = server_exchange_limits(exchange, 0);
    size_t n;
    frit_token *tokens = server_tokens(model, request->text, request->n_text, flags, &limits, &n, &exchange->problem);
    if (!tokens) return;
    exchange->reply = tokens_text(model, tokens, n, request->with_pieces);
    if (!exchange->reply) server_refuse_status(&exchange->problem, 500, NULL, FRIT_E_MEMORY);
    free(tokens);
}

// The text of tokens. A text stream replaces bytes that are not UTF-8 by U+FFFD.
static frit_status join_tokens(const frit_model *model, const server_text_request *request, char **out, size_t *n_out)
{
    frit_text_stream *stream;
    frit_status status = frit_text_stream_new(&stream, model, request->add_special ? FRIT_TEXT_SPECIAL : 0u);
    size_t capacity = 0;
    for (size_t i = 0; i <= request->n_ids && status == FRIT_OK; i++) {
        const char *text = NULL;
        size_t n = 0;
        status = i < request->n_ids ? frit_text_stream_push(stream, request->ids[i], &text, &n)
                                    : frit_text_stream_flush(stream, &text, &n);
        if (status != FRIT_OK || n == 0) continue;
        if (!APP_GROW(*out, capacity, *n_out + n)) {
            status = FRIT_E_MEMORY;
            break;
        }
        memcpy(*out + *n_out, text, n);
        *n_out += n;
    }
    frit_text_stream_free(stream);
    return status;
}

void server_detokenize(server_exchange *exchange)
{
    const server_text_request *request = exchange->request;
    if (!request->ids) {
        server_refuse(&exchange->problem, 400, "missing_required_parameter", "tokens", "tokens: is missing");
        return;
    }
    char *text = NULL;
    size_t n = 0;
    frit_status status = join_tokens(exchange->model->model, request, &text, &n);
    if (status == FRIT_OK)
        server_reply(exchange, json_pack("{s:o}", "content", json_stringn(text ? text : "", n)));
    else
        server_refuse_status(&exchange->problem, 400, "tokens", status);
    free(text);
}

void server_apply_template(server_exchange *exchange)
{
    const server_text_request *request = exchange->request;
    frit_turn *turn = server_turn(exchange->model->model, &request->body, NULL, &exchange->problem);
    if (!turn) return;
    size_t n;
    const char *text = frit_turn_prompt(turn, &n);
    json_t *json = json_stringn(text, n);
    frit_turn_free(turn);
    if (json)
        server_reply(exchange, json_pack("{s:o}", "prompt", json));
    else
        server_refuse(&exchange->problem, 500, NULL, NULL, "the template wrote bytes that are not UTF-8");
}

void server_infill(server_exchange *exchange)
{
    server_generation *request = exchange->request;
    const frit_tokenize_limits limits = server_exchange_limits(exchange, (size_t)exchange->model->n_ctx);
    if (!request->prompt.prefix && !request->prompt.suffix) {
        server_refuse(&exchange->problem, 400, "missing_required_parameter", "input_prefix",
                      "input_prefix and input_suffix: are missing");
        return;
    }
    if (request->prompt.ids || request->prompt.n_all > 1) {
        server_refuse(&exchange->problem, 400, "invalid_type", "prompt", "prompt: expected a string");
        return;
    }
    if (server_infill_tokens(exchange->model->model, request, &limits, &exchange->problem))
        server_generate(exchange, false);
}

void server_complete_native(server_exchange *exchange)
{
    const server_generation *request = exchange->request;
    if (request->prompt.n_all > 1) {
        server_refuse(&exchange->problem, 400, "unsupported_parameter", "prompt",
                      "prompt: has %d prompts, expected one; /v1/completions takes several", request->prompt.n_all);
        return;
    }
    server_generate(exchange, false);
}

// ---------------------------------------------------------------------------------------- the server

static json_t *token_text(const frit_model *model, frit_token_role role)
{
    const frit_token token = frit_token_of_role(model, role);
    return token < 0 ? json_string("") : server_piece_json(model, token);
}

void server_show_props(server_exchange *exchange)
{
    const server_model *model = exchange->model;
    const char *text = "";
    size_t n = 0;
    char build[64];
    const int has_vision = !model->why_no_pictures[0];
    if (!server_check_loaded(exchange)) return;
    snprintf(build, sizeof build, "frit-%s", frit_version());
    frit_model_meta_text(model->model, "tokenizer.chat_template", 0, &text, &n);
    json_t *settings =
        json_pack("{s:i, s:o}", "n_ctx", (int)model->n_ctx, "params", server_sampling_json(&model->sampling));
    server_reply(exchange,
                 json_pack("{s:o, s:i, s:s, s:s, s:o, s:o, s:o, s:{s:b, s:b}, s:s, s:b}", "default_generation_settings",
                           settings, "total_slots", (int)server_worker_load(model->worker).n_sessions, "model_alias",
                           model->name, "model_path", model->info.path, "chat_template",
                           n > 0 ? json_stringn(text, n) : json_string(""), "bos_token",
                           token_text(model->model, FRIT_ROLE_BOS), "eos_token",
                           token_text(model->model, FRIT_ROLE_EOS), "modalities", "vision", has_vision, "audio", 0,
                           "build_info", build, "is_sleeping", 0));
}

void server_list_slots(server_exchange *exchange)
{
    const server_model *model = exchange->model;
    if (!server_check_loaded(exchange)) return;
    const int32_t n = server_worker_load(model->worker).n_sessions;
    json_t *list = json_array();
    for (int32_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:i, s:i, s:b}", "id", (int)i, "n_ctx", (int)model->n_ctx,
                                              "is_processing", server_worker_is_busy(model->worker, i)));
    server_reply(exchange, list);
}

void server_show_live(server_exchange *exchange)
{
    server_reply(exchange, json_pack("{s:s}", "status", "ok"));
}

void server_refuse_moderation(server_exchange *exchange)
{
    server_refuse(
        &exchange->problem, 400, "unsupported_endpoint", NULL,
        "frit has no model that moderates: ask a model that was trained for it over /v1/chat/completions, with "
        "response_format json_schema");
}
