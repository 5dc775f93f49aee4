// SPDX-License-Identifier: MIT
// Anthropic's Messages: replies, streams, errors, and the number of tokens of a request.
//
// A stream has the events message_start and ping; for each block content_block_start, content_block_delta, ...,
// content_block_stop; then message_delta with stop_reason and usage, and message_stop.
#include "server/api/answer.h"
#include "server/api/handlers.h"
#include "server/api/json_text.h"

#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------------- shared parts

static json_t *usage_json(const server_job *job, size_t n_answer)
{
    const server_usage usage = server_answer_usage(job);
    return json_pack("{s:I, s:I, s:I, s:I}", "input_tokens", (json_int_t)(usage.n_prompt - usage.n_cached),
                     "cache_creation_input_tokens", (json_int_t)0, "cache_read_input_tokens",
                     (json_int_t)usage.n_cached, "output_tokens", (json_int_t)n_answer);
}

static const char *stop_reason(const server_job *job)
{
    const server_answer *answer = job->reply.ctx;
    if (answer->finish == SERVER_FINISH_LENGTH) return "max_tokens";
    if (answer->n_calls > 0) return "tool_use";
    return job->answer.stopped ? "stop_sequence" : "end_turn";
}

static const char *stop_sequence(const server_job *job)
{
    return strcmp(stop_reason(job), "stop_sequence") == 0 ? job->answer.stopped_by : NULL;
}

// Takes `content` and `usage` over.
static json_t *message_json(const server_answer *answer, json_t *content, const char *reason, const char *sequence,
                            json_t *usage)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s?, s:s?, s:o}", "id", answer->id, "type", "message", "role",
                     "assistant", "model", answer->name, "content", content, "stop_reason", reason, "stop_sequence",
                     sequence, "usage", usage);
}

// A content block. `text` is NULL at the start of a block in a stream.
static json_t *block_json(frit_part_kind kind, const char *id, const char *name, const server_text *text)
{
    if (kind == FRIT_PART_CALL) {
        json_t *input = text ? json_loadb(text->ptr, text->n, 0, NULL) : NULL;
        return json_pack("{s:s, s:s, s:s, s:o}", "type", "tool_use", "id", id, "name", name, "input",
                         input ? input : json_object());
    }
    json_t *said = text ? json_stringn(text->ptr, text->n) : json_string("");
    if (kind == FRIT_PART_TEXT) return json_pack("{s:s, s:o}", "type", "text", "text", said);
    return json_pack("{s:s, s:o, s:s}", "type", "thinking", "thinking", said, "signature", "");
}

// ---------------------------------------------------------------------------------------- streams

typedef struct block {   // the answer's `state`
    frit_part_kind kind;
    bool open;
    int index;
} block;

// Takes `members` over.
static void put_event(server_job *job, const char *name, json_t *members)
{
    json_t *json = members ? json_pack("{s:s}", "type", name) : NULL;
    json_object_update(json, members);
    json_decref(members);
    server_answer_put_event(job, name, json);
}

static void begin_stream(server_job *job)
{
    server_answer *answer = job->reply.ctx;
    answer->state = calloc(1, sizeof(block));
    answer->free_state = free;
    if (!answer->state) job->reply.queue.failed = true;
    put_event(job, "message_start",
              json_pack("{s:o}", "message", message_json(answer, json_array(), NULL, NULL, usage_json(job, 0))));
    put_event(job, "ping", json_object());
}

static void close_block(server_job *job, block *b)
{
    if (!b->open) return;
    b->open = false;
    put_event(job, "content_block_stop", json_pack("{s:i}", "index", b->index++));
}

static void put_delta(server_job *job, const block *b, const char *type, const char *key, const frit_part *part)
{
    put_event(job, "content_block_delta",
              json_pack("{s:i, s:{s:s, s:o}}", "index", b->index, "delta", "type", type, key,
                        json_stringn(part->text, part->n_bytes)));
}

static void put_part(server_job *job, const frit_part *part)
{
    static const char *const types[] = {[FRIT_PART_TEXT] = "text_delta",
                                        [FRIT_PART_REASONING] = "thinking_delta",
                                        [FRIT_PART_CALL] = "input_json_delta"};
    static const char *const keys[] = {
        [FRIT_PART_TEXT] = "text", [FRIT_PART_REASONING] = "thinking", [FRIT_PART_CALL] = "partial_json"};
    const server_answer *answer = job->reply.ctx;
    block *b = answer->state;
    if (!b) return;
    if (b->kind != part->kind || part->kind == FRIT_PART_CALL) close_block(job, b);
    b->kind = part->kind;
    if (!b->open)
        put_event(job, "content_block_start",
                  json_pack("{s:i, s:o}", "index", b->index, "content_block",
                            block_json(part->kind, part->id, part->name, NULL)));
    b->open = true;
    put_delta(job, b, types[part->kind], keys[part->kind], part);
}

static void end_stream(server_job *job)
{
    const server_answer *answer = job->reply.ctx;
    if (!answer->state) return;
    close_block(job, answer->state);
    put_event(job, "message_delta",
              json_pack("{s:{s:s, s:s?}, s:o}", "delta", "stop_reason", stop_reason(job), "stop_sequence",
                        stop_sequence(job), "usage", usage_json(job, server_answer_usage(job).n_answer)));
    put_event(job, "message_stop", json_object());
}

// ---------------------------------------------------------------------------------------- whole answers, errors

static void put_whole(server_job *job)
{
    const server_answer *answer = job->reply.ctx;
    json_t *content = json_array();
    for (size_t i = 0; i < answer->n_parts; i++) {
        const server_part *part = &answer->parts[i];
        json_array_append_new(content, block_json(part->kind, part->id, part->name, &part->text));
    }
    server_answer_put(job, "",
                      message_json(answer, content, stop_reason(job), stop_sequence(job),
                                   usage_json(job, server_answer_usage(job).n_answer)),
                      "\n");
}

static const char *type_of(int status)
{
    static const struct {
        int status;
        const char *type;
    } rows[] = {{401, "authentication_error"}, {403, "permission_error"}, {404, "not_found_error"},
                {413, "request_too_large"},    {429, "rate_limit_error"}, {503, "overloaded_error"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].status == status) return rows[i].type;
    return status < 500 ? "invalid_request_error" : "api_error";
}

static json_t *error_json(const server_problem *problem)
{
    return json_pack("{s:s, s:{s:s, s:o}}", "type", "error", "error", "type", type_of(problem->status), "message",
                     server_problem_message(problem));
}

static char *write_problem(const server_problem *problem)
{
    return server_json_text(error_json(problem));
}

static void put_error(server_job *job, const server_problem *problem)
{
    server_answer_put_event(job, "error", error_json(problem));
}

static void put_ping(server_job *job)
{
    put_event(job, "ping", json_object());
}

const server_protocol server_anthropic = {.problem = write_problem,
                                          .id_header = "Request-Id",
                                          .stream_type = "text/event-stream",
                                          .id_prefix = "msg_",
                                          .begin = begin_stream,
                                          .part = put_part,
                                          .end = end_stream,
                                          .fail = put_error,
                                          .keep_alive = put_ping,
                                          .whole = put_whole};

// ---------------------------------------------------------------------------------------- handlers

void server_count_message_tokens(server_exchange *exchange)
{
    server_generation *request = exchange->request;
    const server_model *model = exchange->model;
    const frit_tokenize_limits limits = server_exchange_limits(exchange, INT32_MAX);
    frit_token *tokens;
    size_t n;
    if (!server_prepare_pictures(exchange)) return;
    if (!server_prompt_tokens(model->model, request, true, &limits, &tokens, &n, &exchange->problem)) return;
    free(tokens);
    server_reply(exchange, json_pack("{s:I}", "input_tokens", (json_int_t)n));
}
