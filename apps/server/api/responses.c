// SPDX-License-Identifier: MIT
// OpenAI's Responses: replies, streams, and stored responses.
//
// Each part of an answer is an item: reasoning, a message, or a function call. A stream has the events response.created
// and response.in_progress; for each item output_item.added, events of the item's kind and output_item.done; then
// response.completed or response.incomplete with all items. sequence_number counts all events.
#include "server/api/answer.h"
#include "server/api/handlers.h"
#include "server/api/json_text.h"
#include "server/request/message_origins.h"
#include "server/api/responses_store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct state {   // the request's `extra`
    json_t *base;        // members of the response that repeat the request
    char *history;       // JSON: the messages that the response answers, without the instructions; NULL: not stored
    server_store *store;
    size_t key;
    int sequence;
    size_t n_items;   // the number of items whose events have begun
} state;

static void free_state(void *ctx)
{
    state *s = ctx;
    json_decref(s->base);
    free(s->history);
    free(s);
}

// ---------------------------------------------------------------------------------------- objects

static const char *status_of(const server_answer *answer)
{
    return answer->finish == SERVER_FINISH_LENGTH ? "incomplete" : "completed";
}

static json_t *text_json(frit_part_kind kind, const server_text *text)
{
    json_t *said = text ? json_stringn(text->ptr, text->n) : json_string("");
    if (kind == FRIT_PART_REASONING) return json_pack("{s:s, s:o}", "type", "reasoning_text", "text", said);
    return json_pack("{s:s, s:o, s:[], s:[]}", "type", "output_text", "text", said, "annotations", "logprobs");
}

// Part i of the answer as an item. `whole` is false at the start of an item in a stream.
static json_t *item_json(const server_answer *answer, size_t i, bool whole, const char *status)
{
    static const char *const prefixes[] = {
        [FRIT_PART_TEXT] = "msg", [FRIT_PART_REASONING] = "rs", [FRIT_PART_CALL] = "fc"};
    const server_part *part = &answer->parts[i];
    char id[96];
    snprintf(id, sizeof id, "%s_%s_%zu", prefixes[part->kind], answer->id + strlen(answer->protocol->id_prefix), i);
    if (part->kind == FRIT_PART_CALL)
        return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "id", id, "type", "function_call", "status", status,
                         "call_id", part->id, "name", part->name, "arguments", whole ? part->text.ptr : "");
    json_t *content = whole ? json_pack("[o]", text_json(part->kind, &part->text)) : json_array();
    if (part->kind == FRIT_PART_REASONING)
        return json_pack("{s:s, s:s, s:[], s:o, s:s}", "id", id, "type", "reasoning", "summary", "content", content,
                         "status", status);
    return json_pack("{s:s, s:s, s:s, s:s, s:o}", "id", id, "type", "message", "status", status, "role", "assistant",
                     "content", content);
}

static json_t *usage_json(const server_job *job)
{
    const server_usage usage = server_answer_usage(job);
    json_t *json =
        json_pack("{s:I, s:{s:I, s:i}, s:I, s:{s:I}, s:I}", "input_tokens", (json_int_t)usage.n_prompt,
                  "input_tokens_details", "cached_tokens", (json_int_t)usage.n_cached, "cache_write_tokens", 0,
                  "output_tokens", (json_int_t)usage.n_answer, "output_tokens_details", "reasoning_tokens",
                  (json_int_t)usage.n_reasoning, "total_tokens", (json_int_t)(usage.n_prompt + usage.n_answer));
    if (usage.n_image > 0)
        json_object_set_new(json_object_get(json, "input_tokens_details"), "image_tokens",
                            json_integer((json_int_t)usage.n_image));
    return json;
}

// The response object. With the status "in_progress" it has no output yet.
static json_t *response_json(const server_job *job, const char *status)
{
    const server_answer *answer = job->reply.ctx;
    const state *s = answer->request.extra;
    const bool is_over = strcmp(status, "in_progress") != 0;
    json_t *output = json_array();
    for (size_t i = 0; i < answer->n_parts && is_over; i++)
        json_array_append_new(output, item_json(answer, i, true, i + 1 < answer->n_parts ? "completed" : status));
    json_t *json =
        json_pack("{s:s, s:s, s:I, s:s, s:n, s:o, s:s, s:o, s:o}", "id", answer->id, "object", "response", "created_at",
                  (json_int_t)answer->created, "status", status, "error", "incomplete_details",
                  strcmp(status, "incomplete") == 0 ? json_pack("{s:s}", "reason", "max_output_tokens") : json_null(),
                  "model", answer->name, "output", output, "usage", is_over ? usage_json(job) : json_null());
    json_object_update(json, s->base);
    return json;
}

// The answer as a message in OpenAI's form, for requests that continue the response.
static json_t *message_json(const server_answer *answer)
{
    json_t *text = server_answer_join(answer, FRIT_PART_TEXT), *calls = json_array();
    json_t *reasoning = server_answer_join(answer, FRIT_PART_REASONING);
    for (size_t i = 0; i < answer->n_parts; i++) {
        const server_part *part = &answer->parts[i];
        if (part->kind == FRIT_PART_CALL)
            json_array_append_new(calls, json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", part->id, "type", "function",
                                                   "function", "name", part->name, "arguments", part->text.ptr));
    }
    json_t *message = json_pack("{s:s, s:o}", "role", "assistant", "content", text ? text : json_string(""));
    if (reasoning) json_object_set_new(message, "reasoning_content", reasoning);
    if (json_array_size(calls) > 0) json_object_set(message, "tool_calls", calls);
    json_decref(calls);
    return message;
}

// True if a conversation is short enough to be stored.
static bool is_short(const char *history)
{
    const size_t n = history ? strlen(history) : 0;
    return n <= SERVER_MAX_HISTORY_BYTES && server_count_values(history, n) <= SERVER_MAX_HISTORY_VALUES;
}

// Marks a background response that could not be stored as failed. It can be queried as long as its stream is buffered.
static void mark_lost(server_job *job, json_t *response)
{
    const char *status = json_string_value(json_object_get(response, "status"));
    if (strcmp(status, "completed") == 0 || strcmp(status, "incomplete") == 0) {
        json_object_set_new(response, "status", json_string("failed"));
        json_object_set_new(
            response, "error",
            json_pack("{s:s, s:s}", "code", "server_error", "message", "the server could not store the response"));
    }
    server_replay_set_snapshot(job->reply.replay, server_json_text(json_incref(response)));
}

// Stores the response. If this fails, its "store" becomes false.
static void store_response(server_job *job, json_t *response)
{
    const server_answer *answer = job->reply.ctx;
    state *s = answer->request.extra;
    if (!answer->request.response.is_stored) return;
    if (!s->history) {   // too long
        json_object_set_new(response, "store", json_false());
        return;
    }
    json_t *message = message_json(answer);
    server_stored stored = {.response = server_json_text(json_incref(response)),
                            .history = s->history,
                            .message = json_dumps(message, JSON_COMPACT)};
    s->history = NULL;
    json_decref(message);
    const bool good = server_store_put(s->store, answer->id, s->key, &stored);
    if (!good) json_object_set_new(response, "store", json_false());
    if (answer->request.response.is_background && good)
        server_replay_set_snapshot(job->reply.replay, NULL);
    else if (answer->request.response.is_background)
        mark_lost(job, response);
}

// ---------------------------------------------------------------------------------------- streams

// Takes `members` over.
static void put_event(server_job *job, const char *name, json_t *members)
{
    const server_answer *answer = job->reply.ctx;
    state *s = answer->request.extra;
    json_t *json = members ? json_pack("{s:s, s:i}", "type", name, "sequence_number", s->sequence++) : NULL;
    json_object_update(json, members);
    json_decref(members);
    server_answer_put_event(job, name, json);
}

static void begin_stream(server_job *job)
{
    put_event(job, "response.created", json_pack("{s:o}", "response", response_json(job, "in_progress")));
    put_event(job, "response.in_progress", json_pack("{s:o}", "response", response_json(job, "in_progress")));
}

// Writes an event of the item that began last, with the item's id and index. Takes `members` over.
static void put_in_item(server_job *job, const char *name, json_t *members)
{
    const server_answer *answer = job->reply.ctx;
    const size_t i = ((const state *)answer->request.extra)->n_items - 1;
    json_t *item = item_json(answer, i, false, "in_progress");
    if (members) json_object_set(members, "item_id", json_object_get(item, "id"));
    if (members) json_object_set_new(members, "output_index", json_integer((json_int_t)i));
    json_decref(item);
    put_event(job, name, members);
}

static void put_item(server_job *job, const char *name, size_t i, bool whole, const char *status)
{
    put_event(
        job, name,
        json_pack("{s:I, s:o}", "output_index", (json_int_t)i, "item", item_json(job->reply.ctx, i, whole, status)));
}

static const struct {
    const char *delta, *done;
} names[] = {
    [FRIT_PART_TEXT] = {"response.output_text.delta", "response.output_text.done"},
    [FRIT_PART_REASONING] = {"response.reasoning_text.delta", "response.reasoning_text.done"},
    [FRIT_PART_CALL] = {"response.function_call_arguments.delta", "response.function_call_arguments.done"},
};

static void open_item(server_job *job, frit_part_kind kind)
{
    server_answer *answer = job->reply.ctx;
    state *s = answer->request.extra;
    put_item(job, "response.output_item.added", s->n_items++, false, "in_progress");
    if (kind != FRIT_PART_CALL)
        put_in_item(job, "response.content_part.added",
                    json_pack("{s:i, s:o}", "content_index", 0, "part", text_json(kind, NULL)));
}

static void close_item(server_job *job, const char *status)
{
    const server_answer *answer = job->reply.ctx;
    const state *s = answer->request.extra;
    if (s->n_items == 0) return;
    const server_part *part = &answer->parts[s->n_items - 1];
    json_t *text = json_stringn(part->text.ptr, part->text.n);
    if (part->kind == FRIT_PART_CALL) {
        put_in_item(job, names[part->kind].done, json_pack("{s:s, s:o}", "name", part->name, "arguments", text));
    } else {
        json_t *done = json_pack("{s:i, s:o}", "content_index", 0, "text", text);
        if (part->kind == FRIT_PART_TEXT) json_object_set_new(done, "logprobs", json_array());
        put_in_item(job, names[part->kind].done, done);
        put_in_item(job, "response.content_part.done",
                    json_pack("{s:i, s:o}", "content_index", 0, "part", text_json(part->kind, &part->text)));
    }
    put_item(job, "response.output_item.done", s->n_items - 1, true, status);
}

static void put_part(server_job *job, const frit_part *part)
{
    const server_answer *answer = job->reply.ctx;
    const state *s = answer->request.extra;
    if (s->n_items < answer->n_parts) {
        close_item(job, "completed");
        open_item(job, part->kind);
    }
    json_t *delta = json_pack("{s:o}", "delta", json_stringn(part->text, part->n_bytes));
    if (part->kind != FRIT_PART_CALL) json_object_set_new(delta, "content_index", json_integer(0));
    if (part->kind == FRIT_PART_TEXT) json_object_set_new(delta, "logprobs", json_array());
    put_in_item(job, names[part->kind].delta, delta);
}

static void end_stream(server_job *job)
{
    const server_answer *answer = job->reply.ctx;
    const char *status = status_of(answer);
    close_item(job, status);
    json_t *response = response_json(job, status);
    store_response(job, response);
    char event[32];
    snprintf(event, sizeof event, "response.%s", json_string_value(json_object_get(response, "status")));
    put_event(job, event, json_pack("{s:o}", "response", response));
}

// Ends a response with an error. response.created comes first in any stream.
static void fail_response(server_job *job, const server_problem *problem)
{
    const server_answer *answer = job->reply.ctx;
    const bool is_cancelled = problem->status == 499;
    json_t *response = response_json(job, is_cancelled ? "cancelled" : "failed");
    if (!is_cancelled)
        json_object_set_new(
            response, "error",
            json_pack("{s:s, s:o}", "code", "server_error", "message", server_problem_message(problem)));
    if (answer->request.response.is_background) store_response(job, response);
    if (answer->request.stream.is_wanted && !answer->begun) begin_stream(job);
    if (answer->request.stream.is_wanted)
        put_event(job, is_cancelled ? "response.cancelled" : "response.failed",
                  json_pack("{s:O}", "response", response));
    json_decref(response);
}

static void put_whole(server_job *job)
{
    const server_answer *answer = job->reply.ctx;
    json_t *response = response_json(job, status_of(answer));
    store_response(job, response);
    server_answer_put(job, "", response, "\n");
}

// Sets the reply to queries for a background response that has not ended.
static void set_snapshot(server_job *job)
{
    json_t *response = response_json(job, "in_progress");
    server_replay_set_snapshot(job->reply.replay, server_json_text(response));
}

const server_protocol server_openai_responses = {.problem = server_problem_json,
                                                 .stream_type = "text/event-stream",
                                                 .id_prefix = "resp_",
                                                 .repeats_parts = true,
                                                 .begin = begin_stream,
                                                 .part = put_part,
                                                 .end = end_stream,
                                                 .fail = fail_response,
                                                 .keep_alive = server_answer_put_comment,
                                                 .show = set_snapshot,
                                                 .whole = put_whole};

// ---------------------------------------------------------------------------------------- handlers

// The nearest double with six decimals: 0.95 for 0.95f.
static double short_number(float number)
{
    return round((double)number * 1e6) / 1e6;
}

// The members of a response that repeat the request, or their defaults.
static json_t *base_json(const server_generation *request)
{
    static const struct {
        const char *key, *otherwise;
    } rows[] = {
        {"instructions", "null"},
        {"max_output_tokens", "null"},
        {"metadata", "{}"},
        {"parallel_tool_calls", "true"},
        {"previous_response_id", "null"},
        {"reasoning", "{\"effort\":null,\"summary\":null}"},
        {"store", "true"},
        {"text", "{\"format\":{\"type\":\"text\"}}"},
        {"tool_choice", "\"auto\""},
        {"tools", "[]"},
        {"truncation", "\"disabled\""},
        {"user", "null"},
        {"background", "false"},
    };
    json_t *json = json_pack("{s:f, s:f}", "temperature", short_number(request->sampling.options.temp), "top_p",
                             short_number(request->sampling.options.top_p));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *value = json_object_get(request->body.given, rows[i].key);
        if (value && !json_is_null(value))
            json_object_set(json, rows[i].key, value);
        else
            json_object_set_new(json, rows[i].key, json_loads(rows[i].otherwise, JSON_DECODE_ANY, NULL));
    }
    return json;
}

// Puts the previous response's conversation and answer before the request's messages.
static bool continue_previous(server_exchange *exchange, const server_generation *request, json_t **messages,
                              server_problem *problem)
{
    enum { LARGE_BYTES = 1 << 20 };
    server_stored stored;
    if (!request->response.previous_id) return true;
    if (!server_store_get(exchange->site->responses, request->response.previous_id, exchange->key, &stored))
        return server_refuse(problem, 400, "previous_response_not_found", "previous_response_id",
                             "previous_response_id: there is no response '%.64s'", request->response.previous_id);
    exchange->is_large = strlen(stored.history) >= LARGE_BYTES;
    json_t *history = json_loads(stored.history, JSON_ALLOW_NUL, NULL);
    json_t *message = json_loads(stored.message, JSON_ALLOW_NUL, NULL);
    server_stored_deinit(&stored);
    server_origins_insert(request->body.origins, request->response.instructions ? 1 : 0, json_array_size(history) + 1,
                          "previous_response_id");
    const bool good = history && message && server_pictures_rename(history, "previous_response_id") &&
                      json_array_append(history, message) == 0 && json_array_extend(history, *messages) == 0;
    json_decref(message);
    if (good) {
        json_decref(*messages);
        *messages = history;
        return true;
    }
    json_decref(history);
    return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
}

// The conversation as JSON, without the instructions. NULL if it is too long to be stored, or memory is short.
static char *history_text(const json_t *messages, bool has_instructions)
{
    json_t *list = json_copy((json_t *)messages);
    if (has_instructions) json_array_remove(list, 0);
    char *text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    if (text && is_short(text)) return text;
    free(text);
    return NULL;
}

// Completes the conversation from the previous response.
static bool complete_conversation(server_exchange *exchange, server_generation *request)
{
    server_problem *problem = &exchange->problem;
    json_t *root = json_copy(request->body.root), *messages = json_copy(json_object_get(root, "messages"));
    json_t *instructions = request->response.instructions ? json_incref(json_array_get(messages, 0)) : NULL;
    state *s = calloc(1, sizeof *s);
    request->extra = s;
    request->free_extra = free_state;
    if (instructions) json_array_remove(messages, 0);
    bool good = s ? continue_previous(exchange, request, &messages, problem)
                  : server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    if (good) {
        *s = (state){.base = base_json(request), .store = exchange->site->responses, .key = exchange->key};
        good = s->base || server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    }
    if (good && instructions) json_array_insert(messages, 0, instructions);
    json_decref(instructions);
    json_object_set_new(root, "messages", messages);
    if (good) return server_body_convert(&request->body, root, problem);
    json_decref(root);
    return false;
}

// Sets the conversation to store, without the instructions, which apply to one response. If it is too long to be
// stored, the messages that truncation removed are left out.
static bool set_history(server_exchange *exchange, server_generation *request, const json_t *all)
{
    state *s = request->extra;
    if (!request->response.is_stored) return true;
    const bool has_instructions = request->response.instructions != NULL;
    s->history = history_text(all, has_instructions);
    if (!s->history && request->prompt.truncates)
        s->history = history_text(json_object_get(request->body.root, "messages"), has_instructions);
    return s->history || !request->response.is_background ||
           server_refuse(&exchange->problem, 400, "conversation_too_long", "input",
                         "input: the conversation has more than %d MiB or %d values, and cannot be stored; a response "
                         "that is made in the background must be",
                         SERVER_MAX_HISTORY_BYTES >> 20, SERVER_MAX_HISTORY_VALUES);
}

// Truncates the conversation so that there is room for the answer: as the request says, at most half of the context,
// and a quarter if the request does not say.
static bool make_room(server_exchange *exchange, server_generation *request)
{
    const int32_t n_ctx = exchange->model->n_ctx,
                  wanted = request->limits.max_tokens >= 0 ? request->limits.max_tokens : n_ctx / 4;
    const int32_t room = wanted < 1 ? 1 : wanted > n_ctx / 2 ? n_ctx / 2 : wanted;
    const frit_tokenize_limits limits = server_exchange_limits(exchange, (size_t)(n_ctx > room ? n_ctx - room : 1));
    json_t *all = json_incref(json_object_get(request->body.root, "messages"));
    const bool good =
        (!request->prompt.truncates || server_truncate(exchange->model->model, request, &limits, &exchange->problem)) &&
        set_history(exchange, request, all);
    json_decref(all);
    return good;
}

// Replies to the request of a background response: with the response so far, or with its stream.
static void run_in_background(server_exchange *exchange, bool streams)
{
    server_job *job = exchange->job;
    if (streams || !exchange->submit(exchange)) return;
    exchange->reply = server_replay_snapshot(job->reply.replay);
    exchange->job = NULL;
    server_job_leave(exchange->model->worker, job);
    if (!exchange->reply) server_refuse_status(&exchange->problem, 500, NULL, FRIT_E_MEMORY);
}

void server_respond(server_exchange *exchange)
{
    server_generation *request = exchange->request;
    const bool is_background = request->response.is_background, streams = request->stream.is_wanted;
    request->response.ends_on_finisher = request->response.is_stored && server_store_is_slow(exchange->site->responses);
    if (is_background && !request->response.is_stored) {
        server_refuse(&exchange->problem, 400, "invalid_value", "background",
                      "background: a response that is made in the background must be stored");
        return;
    }
    if (complete_conversation(exchange, request) && server_prepare_pictures(exchange) && make_room(exchange, request))
        server_generate(exchange, true);
    if (exchange->job && is_background) run_in_background(exchange, streams);
}

static void refuse_unknown(server_exchange *exchange)
{
    server_refuse(&exchange->problem, 404, "not_found", NULL, "there is no response '%.64s'", exchange->rest);
}

// Replies with the stream of a background response.
static void show_stream(server_exchange *exchange)
{
    server_replay *replay = server_replays_find(exchange->site->replays, exchange->rest, exchange->key);
    const char *after = exchange->query(exchange, "starting_after");
    if (!after) after = exchange->last_event;
    if (replay && server_replay_type(replay) && server_replay_follow(exchange, replay, after)) return;
    server_replay_unref(replay);
    if (!exchange->problem.status)
        server_refuse(
            &exchange->problem, 400, "invalid_value", "stream",
            "the stream of '%.64s' is not kept: it was not made with background and stream, or ended long ago",
            exchange->rest);
}

// The response object of a running background response. NULL if no response of this id is running.
static char *running_json(const server_exchange *exchange, const char *id, bool cancel)
{
    server_replay *replay = server_replays_find(exchange->site->replays, id, exchange->key);
    const bool runs = replay && server_replay_is_running(replay);
    char *text = runs ? server_replay_snapshot(replay) : NULL;
    if (text && cancel) server_replay_cancel(replay);
    server_replay_unref(replay);
    return text;
}

// The response object of a stored response, or of an ended background response that could not be stored. NULL: none.
static char *ended_json(const server_exchange *exchange, const char *id)
{
    server_stored stored;
    if (server_store_get(exchange->site->responses, id, exchange->key, &stored)) {
        char *text = stored.response;
        stored.response = NULL;
        server_stored_deinit(&stored);
        return text;
    }
    server_replay *replay = server_replays_find(exchange->site->replays, id, exchange->key);
    char *text = replay ? server_replay_snapshot(replay) : NULL;
    server_replay_unref(replay);
    return text;
}

void server_show_response(server_exchange *exchange)
{
    const char *stream = exchange->query(exchange, "stream");
    if (stream && strcmp(stream, "true") == 0) {
        show_stream(exchange);
        return;
    }
    exchange->reply = running_json(exchange, exchange->rest, false);
    if (!exchange->reply) exchange->reply = ended_json(exchange, exchange->rest);
    if (!exchange->reply) refuse_unknown(exchange);
}

void server_delete_response(server_exchange *exchange)
{
    char *running = running_json(exchange, exchange->rest, false);
    if (running)
        server_refuse(&exchange->problem, 409, "response_in_progress", NULL,
                      "the response '%.64s' is still being made: cancel it first (POST %.64s/cancel)", exchange->rest,
                      exchange->rest);
    else if (server_store_remove(exchange->site->responses, exchange->rest, exchange->key))
        server_reply(exchange, json_pack("{s:s, s:s, s:b}", "id", exchange->rest, "object", "response", "deleted", 1));
    else
        refuse_unknown(exchange);
    free(running);
}

// POST /v1/responses/ID/cancel. A response that has ended or was cancelled does not change.
void server_cancel_response(server_exchange *exchange)
{
    static const char ending[] = "/cancel";
    char id[64];
    const size_t n = strlen(exchange->rest), n_ending = sizeof ending - 1;
    if (n <= n_ending || n - n_ending >= sizeof id || strcmp(exchange->rest + n - n_ending, ending) != 0) {
        server_refuse(&exchange->problem, 404, "not_found", NULL, "there is no /v1/responses/%.100s", exchange->rest);
        return;
    }
    snprintf(id, sizeof id, "%.*s", (int)(n - n_ending), exchange->rest);
    char *running = running_json(exchange, id, true), *text = running ? running : ended_json(exchange, id);
    if (!text) {
        server_refuse(&exchange->problem, 404, "not_found", NULL, "there is no response '%.64s'", id);
        return;
    }
    json_t *json = json_loads(text, JSON_ALLOW_NUL, NULL);
    if (running) json_object_set_new(json, "status", json_string("cancelled"));
    const bool in_background = json_is_true(json_object_get(json, "background"));
    free(text);
    if (!in_background)
        server_refuse(&exchange->problem, 400, "invalid_value", NULL,
                      "the response '%.64s' was not made in the background", id);
    else
        server_reply(exchange, json_incref(json));
    json_decref(json);
}
