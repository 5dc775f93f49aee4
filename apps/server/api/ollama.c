// SPDX-License-Identifier: MIT
// Ollama's replies: one JSON object per line, the last with "done": true and durations; and Ollama's lists of models.
#include "server/api/answer.h"
#include "server/api/handlers.h"
#include "server/api/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static json_t *time_json(int64_t seconds)
{
    const time_t time = (time_t)seconds;
    struct tm utc;
    char text[32];
    gmtime_r(&time, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return json_string(text);
}

static json_t *duration_json(double from, double to)
{
    return json_integer(to > from && from > 0 ? (json_int_t)(1e9 * (to - from)) : 0);
}

// ---------------------------------------------------------------------------------------- answers

static bool is_chat(const server_answer *answer)
{
    return answer->protocol == &server_ollama_chat;
}

static json_t *call_json(const char *id, const char *name, const char *arguments)
{
    json_t *values = json_loads(arguments, 0, NULL);
    return json_pack("{s:s, s:{s:s, s:o}}", "id", id, "function", "name", name, "arguments",
                     values ? values : json_object());
}

// Takes over the arguments that are not NULL.
static json_t *line_json(const server_answer *answer, json_t *text, json_t *thinking, json_t *calls, bool done)
{
    json_t *json = json_pack("{s:s, s:o}", "model", answer->name, "created_at", time_json(answer->created));
    json_t *said = is_chat(answer) ? json_pack("{s:s}", "role", "assistant") : json;
    json_object_set_new(said, is_chat(answer) ? "content" : "response", text ? text : json_string(""));
    if (thinking) json_object_set_new(said, "thinking", thinking);
    if (calls) json_object_set_new(said, "tool_calls", calls);
    if (said != json) json_object_set_new(json, "message", said);
    json_object_set_new(json, "done", json_boolean(done));
    return json;
}

static void add_end(const server_job *job, json_t *json)
{
    const server_answer *answer = job->reply.ctx;
    const server_times *t = &job->times;
    const server_usage usage = server_answer_usage(job);
    json_object_set_new(json, "done_reason", json_string(answer->finish == SERVER_FINISH_LENGTH ? "length" : "stop"));
    json_object_set_new(json, "total_duration", duration_json(t->submitted, t->latest));
    json_object_set_new(json, "load_duration", json_integer(0));
    json_object_set_new(json, "prompt_eval_count", json_integer((json_int_t)usage.n_prompt));
    json_object_set_new(json, "prompt_eval_duration", duration_json(t->started, t->first));
    json_object_set_new(json, "eval_count", json_integer((json_int_t)usage.n_answer));
    json_object_set_new(json, "eval_duration", duration_json(t->first, t->latest));
}

static void begin_stream(server_job *job)
{
    (void)job;
}

static void put_part(server_job *job, const frit_part *part)
{
    json_t *said = json_stringn(part->text, part->n_bytes), *parts[3] = {NULL};
    parts[part->kind] = said;
    if (part->kind == FRIT_PART_CALL) {
        json_decref(said);
        parts[FRIT_PART_CALL] = json_pack("[o]", call_json(part->id, part->name, part->text));
    }
    server_answer_put(
        job, "",
        line_json(job->reply.ctx, parts[FRIT_PART_TEXT], parts[FRIT_PART_REASONING], parts[FRIT_PART_CALL], false),
        "\n");
}

static void end_stream(server_job *job)
{
    json_t *json = line_json(job->reply.ctx, NULL, NULL, NULL, true);
    add_end(job, json);
    server_answer_put(job, "", json, "\n");
}

static void put_whole(server_job *job)
{
    const server_answer *answer = job->reply.ctx;
    json_t *calls = answer->n_calls > 0 ? json_array() : NULL;
    for (size_t i = 0; i < answer->n_parts; i++) {
        const server_part *part = &answer->parts[i];
        if (part->kind == FRIT_PART_CALL) json_array_append_new(calls, call_json(part->id, part->name, part->text.ptr));
    }
    json_t *json = line_json(answer, server_answer_join(answer, FRIT_PART_TEXT),
                             server_answer_join(answer, FRIT_PART_REASONING), calls, true);
    add_end(job, json);
    server_answer_put(job, "", json, "\n");
}

static json_t *error_json(const server_problem *problem)
{
    return json_pack("{s:o}", "error", server_problem_message(problem));
}

static char *write_problem(const server_problem *problem)
{
    return server_json_text(error_json(problem));
}

static void put_error(server_job *job, const server_problem *problem)
{
    server_answer_put(job, "", error_json(problem), "\n");
}

// Lines are objects and cannot be comments, so this writes an object with an empty text.
static void put_empty_line(server_job *job)
{
    server_answer_put(job, "", line_json(job->reply.ctx, json_string(""), NULL, NULL, false), "\n");
}

#define EVENTS                                                                                              \
    .stream_type = "application/x-ndjson", .id_prefix = "ollama-", .begin = begin_stream, .part = put_part, \
    .end = end_stream, .fail = put_error, .whole = put_whole, .keep_alive = put_empty_line

const server_protocol server_ollama = {.problem = write_problem};
const server_protocol server_ollama_chat = {.problem = write_problem, EVENTS};
const server_protocol server_ollama_generate = {.problem = write_problem, EVENTS};

// ---------------------------------------------------------------------------------------- handlers

// A request without a message loads the model in Ollama. Here it is loaded already.
static void say_loaded(server_exchange *exchange, bool chat)
{
    const server_model *model = exchange->model;
    json_t *json = json_pack("{s:s, s:o, s:b, s:s}", "model", model->name, "created_at", time_json((int64_t)time(NULL)),
                             "done", 1, "done_reason", "load");
    if (chat)
        json_object_set_new(json, "message", json_pack("{s:s, s:s}", "role", "assistant", "content", ""));
    else
        json_object_set_new(json, "response", json_string(""));
    server_reply(exchange, json);
}

void server_ollama_answer_chat(server_exchange *exchange)
{
    const server_generation *request = exchange->request;
    if (json_array_size(json_object_get(request->body.root, "messages")) == 0)
        say_loaded(exchange, true);
    else
        server_generate(exchange, true);
}

void server_ollama_answer_prompt(server_exchange *exchange)
{
    server_generation *request = exchange->request;
    if (json_string_length(request->prompt.suffix) > 0) {
        request->prompt.prefix = json_object_get(request->body.given, "prompt");
        request->prompt.n_text = 0;
        const frit_tokenize_limits limits = server_exchange_limits(exchange, (size_t)exchange->model->n_ctx);
        if (server_infill_tokens(exchange->model->model, request, &limits, &exchange->problem))
            server_generate(exchange, false);
    } else if (request->prompt.n_text == 0) {
        say_loaded(exchange, false);
    } else {
        server_generate(exchange, !request->prompt.is_raw);
    }
}

// 7.2B, 30M
static json_t *size_json(int64_t n)
{
    const bool many = n >= 1000000000;
    const int64_t tenths = n / (many ? 100000000 : 100000);
    return json_sprintf("%lld.%lld%s", (long long)(tenths / 10), (long long)(tenths % 10), many ? "B" : "M");
}

static json_t *details_json(const server_model *model)
{
    const frit_model_info *info = &model->info;
    return json_pack("{s:s, s:s, s:s, s:[s], s:o, s:s}", "parent_model", "", "format",
                     strncmp(info->format, "GGUF", 4) == 0 ? "gguf" : "safetensors", "family", info->architecture,
                     "families", info->architecture, "parameter_size", size_json(info->n_params), "quantization_level",
                     info->file_type);
}

// Details of a model that is not loaded.
static json_t *unread_json(void)
{
    return json_pack("{s:s, s:s, s:s, s:[], s:s, s:s}", "parent_model", "", "format", "", "family", "", "families",
                     "parameter_size", "", "quantization_level", "");
}

static json_int_t file_bytes(const server_model *model)
{
    struct stat info;
    return stat(model->path, &info) == 0 && S_ISREG(info.st_mode) ? (json_int_t)info.st_size : 0;
}

static void add_model(void *list, const server_model *model, const char *name, const server_model_status *status)
{
    const bool is_held = server_is_loaded(status);
    json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:I, s:s, s:o}", "name", name, "model", name, "modified_at",
                                          time_json(model->started), "size",
                                          is_held ? (json_int_t)model->info.n_bytes : file_bytes(model), "digest", "",
                                          "details", is_held ? details_json(model) : unread_json()));
}

static void add_loaded(void *list, const server_model *model, const char *name, const server_model_status *status)
{
    if (server_is_loaded(status)) add_model(list, model, name, status);
}

void server_ollama_list_models(server_exchange *exchange)
{
    json_t *list = json_array();
    server_each_name(exchange->site->models, add_model, list);
    server_reply(exchange, json_pack("{s:o}", "models", list));
}

void server_ollama_list_loaded(server_exchange *exchange)
{
    json_t *list = json_array();
    server_each_name(exchange->site->models, add_loaded, list);
    server_reply(exchange, json_pack("{s:o}", "models", list));
}

// The metadata without the vocabulary.
static json_t *meta_json(const frit_model *model)
{
    enum { SIZE = 4096 };
    json_t *json = json_object();
    const char *key;
    char text[SIZE];
    size_t n;
    for (size_t i = 0; (key = frit_model_get_meta_json(model, i, text, sizeof text, 16, &n)) != NULL; i++) {
        if (n >= sizeof text || strncmp(key, "tokenizer.", 10) == 0) continue;
        json_t *value = json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (value) json_object_set_new(json, key, value);
    }
    return json;
}

void server_ollama_show_model(server_exchange *exchange)
{
    const server_model *model = exchange->model;
    const char *text = "";
    size_t n = 0;
    frit_model_meta_text(model->model, "tokenizer.chat_template", 0, &text, &n);
    const bool generates = model->info.kind != FRIT_KIND_ENCODER;
    json_t *capabilities = json_array();
    json_array_append_new(capabilities, json_string(generates ? "completion" : "embedding"));
    if (generates && model->info.chat_format[0]) json_array_append_new(capabilities, json_string("tools"));
    if (!model->why_no_pictures[0]) json_array_append_new(capabilities, json_string("vision"));
    if (frit_token_of_role(model->model, FRIT_ROLE_FIM_MIDDLE) >= 0)
        json_array_append_new(capabilities, json_string("insert"));
    server_reply(exchange, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "modelfile", "", "parameters", "",
                                     "template", n > 0 ? json_stringn(text, n) : json_string(""), "details",
                                     details_json(model), "model_info", meta_json(model->model), "capabilities",
                                     capabilities, "modified_at", time_json(model->started)));
}

void server_ollama_show_version(server_exchange *exchange)
{
    server_reply(exchange, json_pack("{s:s}", "version", frit_version()));
}
