// SPDX-License-Identifier: MIT
// OpenAI's shapes.
//
// A stream is a row of events, each a JSON object after "data: ". All have one id and one time; the role comes in the
// first delta only, finish_reason in the last chunk with a choice, usage (if asked for) in one more without choices.
#include "server/openai.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// ---------------------------------------------------------------------------------------- shared parts

static const char *finish_text(const openai_answer *answer, server_finish finish)
{
    return finish == SERVER_FINISH_LENGTH ? "length" : answer->n_calls > 0 ? "tool_calls" : "stop";
}

// Of all answers to the request; they share the prompt.
static json_t *usage_json(server_job *job)
{
    server_usage all = server_job_first(job)->usage, *usage = &all;
    for (const server_job *part = server_job_first(job)->parts; part; part = part->next_part) {
        all.n_answer += part->usage.n_answer;
        all.n_reasoning += part->usage.n_reasoning;
        all.n_accepted += part->usage.n_accepted;
        all.n_rejected += part->usage.n_rejected;
    }
    return json_pack("{s:I, s:I, s:I, s:{s:I}, s:{s:I, s:I, s:I}}", "prompt_tokens", (json_int_t)usage->n_prompt,
                     "completion_tokens", (json_int_t)usage->n_answer, "total_tokens",
                     (json_int_t)(usage->n_prompt + usage->n_answer), "prompt_tokens_details", "cached_tokens",
                     (json_int_t)usage->n_cached, "completion_tokens_details", "reasoning_tokens",
                     (json_int_t)usage->n_reasoning, "accepted_prediction_tokens", (json_int_t)usage->n_accepted,
                     "rejected_prediction_tokens", (json_int_t)usage->n_rejected);
}

// Takes `choices` over.
static json_t *envelope(const openai_answer *answer, const char *object, json_t *choices)
{
    char print[32];
    snprintf(print, sizeof print, "frit-%s", frit_version());
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:o}", "id", answer->id, "object", object, "created",
                     (json_int_t)answer->created, "model", answer->name, "system_fingerprint", print, "choices",
                     choices);
}

static bool add_text(openai_text *text, const char *bytes, size_t n)
{
    if (text->n + n + 1 > text->capacity) {
        size_t capacity = 2 * (text->n + n + 1);
        char *grown = realloc(text->ptr, capacity);
        if (!grown) return false;
        text->ptr = grown;
        text->capacity = capacity;
    }
    if (n > 0) memcpy(text->ptr + text->n, bytes, n);
    text->n += n;
    return true;
}

// ---------------------------------------------------------------------------------------- log-probabilities

// A token's bytes, and as text: OpenAI writes "bytes:\xe2\x82" for what is no UTF-8 on its own.
static json_t *token_json(const frit_model *model, frit_token token, json_t **bytes)
{
    char room[256];
    size_t n;
    const char *piece = server_piece(model, token, room, sizeof room, &n);
    *bytes = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(*bytes, json_integer((unsigned char)piece[i]));
    json_t *text = json_stringn(piece, n);
    if (text) return text;
    char escaped[6 + 4 * sizeof room + 1] = "bytes:";
    for (size_t i = 0, at = 6; i < n && at + 5 < sizeof escaped; i++, at += 4)
        snprintf(escaped + at, 5, "\\x%02x", (unsigned char)piece[i]);
    return json_string(escaped);
}

static json_t *logprob_json(const frit_model *model, frit_logprob found)
{
    json_t *bytes, *token = token_json(model, found.token, &bytes);
    return json_pack("{s:o, s:f, s:o}", "token", token, "logprob", (double)found.logprob, "bytes", bytes);
}

static void add_chat_pick(const openai_answer *answer, const server_pick *pick, json_t *content)
{
    json_t *json = logprob_json(answer->model, pick->picked), *top = json_array();
    for (int32_t i = 0; i < pick->n_top; i++) json_array_append_new(top, logprob_json(answer->model, pick->top[i]));
    json_object_set_new(json, "top_logprobs", top);
    json_array_append_new(content, json);
}

static void append_token(const frit_model *model, frit_logprob found, json_t *tokens)
{
    json_t *bytes;
    json_array_append_new(tokens, token_json(model, found.token, &bytes));
    json_decref(bytes);
}

// Completions have four lists side by side; the offset is in characters.
static json_t *top_json(const openai_answer *answer, const server_pick *pick)
{
    json_t *top = json_object();
    for (int32_t i = 0; i < pick->n_top; i++) {
        json_t *bytes, *token = token_json(answer->model, pick->top[i].token, &bytes);
        json_object_set_new(top, json_string_value(token), json_real((double)pick->top[i].logprob));
        json_decref(token);
        json_decref(bytes);
    }
    return top;
}

// `known`: false of a prompt's first token, which nothing comes before.
static void append_pick(const openai_answer *answer, const server_pick *pick, bool known, json_t *lists)
{
    append_token(answer->model, pick->picked, json_object_get(lists, "tokens"));
    json_array_append_new(json_object_get(lists, "token_logprobs"),
                          known ? json_real((double)pick->picked.logprob) : json_null());
    json_array_append_new(json_object_get(lists, "top_logprobs"), known ? top_json(answer, pick) : json_null());
    json_array_append_new(json_object_get(lists, "text_offset"), json_integer((json_int_t)answer->n_chars));
}

static size_t count_chars(const char *text, size_t n)
{
    size_t n_chars = 0;
    for (size_t i = 0; i < n; i++) n_chars += (text[i] & 0xc0) != 0x80;
    return n_chars;
}

static void add_text_pick(openai_answer *answer, const char *text, const server_pick *pick, json_t *lists)
{
    if (pick->at > answer->at) {
        answer->n_chars += count_chars(text + answer->at, pick->at - answer->at);
        answer->at = pick->at;
    }
    append_pick(answer, pick, true, lists);
}

// The prompt's text: as it came, or that of its tokens. Where its tokens begin is known by the texts of these.
static void add_prompt(server_job *job, json_t *lists)
{
    openai_answer *answer = job->ctx;
    frit_text_stream *stream;
    if (frit_text_stream_new(&stream, answer->model, 0) != FRIT_OK) job->outbox.failed = true;
    for (size_t i = 0; i <= job->n_prompt && !job->outbox.failed; i++) {
        const char *text = "";
        size_t n = 0;
        frit_status status = FRIT_OK;
        if (i < job->n_prompt && lists) {
            const server_pick first = {.picked.token = job->prompt[0]};
            append_pick(answer, i == 0 ? &first : &job->prompt_picks[i], i > 0, lists);
        }
        status = i < job->n_prompt ? frit_text_stream_push(stream, job->prompt[i], &text, &n)
                                   : frit_text_stream_flush(stream, &text, &n);
        if (status != FRIT_OK || !add_text(&answer->prompt, text, n)) job->outbox.failed = true;
        answer->n_chars += count_chars(text, n);
    }
    frit_text_stream_free(stream);
    if (!answer->request.text) return;
    answer->prompt.n = 0;
    if (!add_text(&answer->prompt, answer->request.text, answer->request.n_text)) job->outbox.failed = true;
    answer->n_chars = count_chars(answer->prompt.ptr, answer->prompt.n);
}

// Of the tokens whose text begins before byte `end` of the answer, as far as they have not been written; null if
// the request did not ask for them.
static json_t *take_picks(server_job *job, size_t end)
{
    openai_answer *answer = job->ctx;
    const bool echoes = answer->request.echo && !answer->echoed;
    answer->echoed = true;
    if (!answer->request.wants_logprobs) {
        if (echoes) add_prompt(job, NULL);
        return json_null();
    }
    json_t *json =
        answer->chat ? json_pack("{s:[], s:n}", "content", "refusal")
                     : json_pack("{s:[], s:[], s:[], s:[]}", "tokens", "token_logprobs", "top_logprobs", "text_offset");
    if (echoes) add_prompt(job, json);
    for (; answer->n_picks < job->n_picks && job->picks[answer->n_picks].at < end; answer->n_picks++) {
        const server_pick *pick = &job->picks[answer->n_picks];
        if (answer->chat)
            add_chat_pick(answer, pick, json_object_get(json, "content"));
        else
            add_text_pick(answer, job->answer.text, pick, json);
    }
    return json;
}

// At the end: all except those after a stop string.
static json_t *take_last_picks(server_job *job)
{
    return take_picks(job, job->answer.stopped ? job->answer.n : SIZE_MAX);
}

// Whether the reply is complete with this answer.
static bool is_last(server_job *job)
{
    openai_answer *first = server_job_first(job)->ctx;
    return --first->n_left == 0;
}

static void put(server_job *job, json_t *json, const char *before, const char *after)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (!text) {
        job->outbox.failed = true;
        return;
    }
    server_job_put(job, before, strlen(before));
    server_job_put(job, text, strlen(text));
    server_job_put(job, after, strlen(after));
    free(text);
}

// ---------------------------------------------------------------------------------------- parts of a chat's answer

typedef void part_fn(server_job *job, const frit_part *part, int index);

// Gives out the parts that are there. With parallel_tool_calls false the first call is the last part.
static void give_parts(server_job *job, part_fn *give)
{
    openai_answer *answer = job->ctx;
    frit_part part;
    bool thinks = false;
    while (!job->is_over && frit_turn_next(job->turn, &part)) {
        thinks = part.kind == FRIT_PART_REASONING;
        give(job, &part, answer->n_calls);
        if (part.kind != FRIT_PART_CALL) continue;
        answer->n_calls++;
        job->is_over = !answer->request.parallel_calls;
    }
    job->usage.n_reasoning += thinks;
}

static void take_parts(server_job *job, app_text text, part_fn *give)
{
    if (job->is_over) return;
    if (frit_turn_push(job->turn, text.ptr, text.n) != FRIT_OK) job->outbox.failed = true;
    give_parts(job, give);
}

static void end_parts(server_job *job, part_fn *give)
{
    if (!job->turn || job->is_over) return;
    if (frit_turn_end(job->turn) != FRIT_OK) job->outbox.failed = true;
    give_parts(job, give);
}

// ---------------------------------------------------------------------------------------- streams

static void put_event(server_job *job, json_t *json)
{
    put(job, json, "data: ", "\n\n");
}

static void put_chunk(server_job *job, json_t *choice)
{
    const openai_answer *answer = job->ctx;
    json_t *chunk =
        envelope(answer, answer->chat ? "chat.completion.chunk" : "text_completion", json_pack("[o]", choice));
    if (answer->request.include_usage) json_object_set_new(chunk, "usage", json_null());
    put_event(job, chunk);
}

static json_t *choice_of(const openai_answer *answer, json_t *content, json_t *picks, const char *finish)
{
    return json_pack("{s:i, s:o, s:o, s:s?}", "index", answer->index, answer->chat ? "delta" : "text", content,
                     "logprobs", picks, "finish_reason", finish);
}

// The role has an event of its own, before all others.
static void open_stream(server_job *job)
{
    openai_answer *answer = job->ctx;
    if (answer->opened) return;
    answer->opened = true;
    if (answer->request.echo) {
        json_t *picks = take_picks(job, 0);   // which makes the prompt's text
        put_chunk(job, choice_of(answer, json_stringn(answer->prompt.ptr, answer->prompt.n), picks, NULL));
    }
    if (!answer->chat) return;
    json_t *delta = json_pack("{s:s, s:s, s:n}", "role", "assistant", "content", "", "refusal");
    put_chunk(job, choice_of(answer, delta, json_null(), NULL));
}

static void stream_delta(server_job *job, json_t *delta)
{
    open_stream(job);
    put_chunk(job, choice_of(job->ctx, delta, take_picks(job, job->answer.n_shown), NULL));
}

// A call has two events: what is called, then the arguments.
static void stream_call(server_job *job, const frit_part *part, int index)
{
    stream_delta(job, json_pack("{s:[{s:i, s:s, s:s, s:{s:s, s:s}}]}", "tool_calls", "index", index, "id", part->id,
                                "type", "function", "function", "name", part->name, "arguments", ""));
    stream_delta(job,
                 json_pack("{s:[{s:i, s:{s:s}}]}", "tool_calls", "index", index, "function", "arguments", part->text));
}

static void stream_part(server_job *job, const frit_part *part, int index)
{
    if (part->kind == FRIT_PART_CALL)
        stream_call(job, part, index);
    else
        stream_delta(job, json_pack("{s:o}", part->kind == FRIT_PART_TEXT ? "content" : "reasoning_content",
                                    json_stringn(part->text, part->n_bytes)));
}

static void stream_text(server_job *job, app_text text)
{
    if (job->turn)
        take_parts(job, text, stream_part);
    else
        stream_delta(job, json_stringn(text.ptr, text.n));
}

static void stream_finish(server_job *job, server_finish finish)
{
    const openai_answer *answer = job->ctx;
    end_parts(job, stream_part);
    open_stream(job);
    put_chunk(job, choice_of(answer, answer->chat ? json_object() : json_string(""), take_last_picks(job),
                             finish_text(answer, finish)));
    if (!is_last(job)) return;
    if (answer->request.include_usage) {
        json_t *chunk = envelope(answer, answer->chat ? "chat.completion.chunk" : "text_completion", json_array());
        json_object_set_new(chunk, "usage", usage_json(job));
        put_event(job, chunk);
    }
    static const char done[] = "data: [DONE]\n\n";
    server_job_put(job, done, sizeof done - 1);
}

static void stream_fail(server_job *job, const server_problem *problem)
{
    char *text = server_problem_json(problem);
    json_t *json = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    put_event(job, json);
}

// ---------------------------------------------------------------------------------------- whole answers

static void keep_part(server_job *job, const frit_part *part, int index)
{
    (void)index;
    openai_answer *answer = job->ctx;
    bool kept;
    if (part->kind == FRIT_PART_CALL)
        kept = json_array_append_new(answer->calls,
                                     json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", part->id, "type", "function",
                                               "function", "name", part->name, "arguments", part->text)) == 0;
    else
        kept =
            add_text(part->kind == FRIT_PART_TEXT ? &answer->content : &answer->reasoning, part->text, part->n_bytes);
    if (!kept) job->outbox.failed = true;
}

static void keep_text(server_job *job, app_text text)
{
    if (job->turn) take_parts(job, text, keep_part);   // otherwise job->answer has it
}

static json_t *message_json(const openai_answer *answer)
{
    bool has_calls = answer->n_calls > 0, has_text = answer->content.n > 0;
    json_t *content =
        has_calls && !has_text ? json_null() : json_stringn(has_text ? answer->content.ptr : "", answer->content.n);
    json_t *message = json_pack("{s:s, s:o, s:n}", "role", "assistant", "content", content, "refusal");
    if (answer->reasoning.n > 0)
        json_object_set_new(message, "reasoning_content", json_stringn(answer->reasoning.ptr, answer->reasoning.n));
    if (has_calls) json_object_set(message, "tool_calls", answer->calls);
    return message;
}

static json_t *text_choice(server_job *job, server_finish finish)
{
    openai_answer *answer = job->ctx;
    json_t *picks = take_last_picks(job);   // which makes the prompt's text
    if (!add_text(&answer->prompt, job->answer.text, job->answer.n)) job->outbox.failed = true;
    const char *text = answer->prompt.ptr ? answer->prompt.ptr : "";
    return choice_of(answer, json_stringn(text, answer->prompt.n), picks, finish_text(answer, finish));
}

static void whole_finish(server_job *job, server_finish finish)
{
    const openai_answer *answer = job->ctx;
    json_t *choice;
    end_parts(job, keep_part);
    if (answer->chat)
        choice = json_pack("{s:i, s:o, s:o, s:s}", "index", answer->index, "message", message_json(answer), "logprobs",
                           take_last_picks(job), "finish_reason", finish_text(answer, finish));
    else
        choice = text_choice(job, finish);
    const openai_answer *first = server_job_first(job)->ctx;
    if (json_array_set_new(first->choices, (size_t)answer->index, choice) != 0) job->outbox.failed = true;
    if (!is_last(job)) return;
    json_t *json = envelope(answer, answer->chat ? "chat.completion" : "text_completion", json_incref(first->choices));
    json_object_set_new(json, "usage", usage_json(job));
    put(job, json, "", "\n");
}

static void whole_fail(server_job *job, const server_problem *problem)
{
    (void)job, (void)problem;   // nothing has begun before the end
}

static const server_voice stream_voice = {stream_text, stream_finish, stream_fail};
static const server_voice whole_voice = {keep_text, whole_finish, whole_fail};

// ---------------------------------------------------------------------------------------- attaching

static void free_answer(void *ctx)
{
    openai_answer *answer = ctx;
    if (!answer->is_part)
        server_parser_clear(answer->chat ? &server_chat_parser : &server_completion_parser, &answer->request);
    json_decref(answer->choices);
    json_decref(answer->calls);
    free(answer->content.ptr);
    free(answer->reasoning.ptr);
    free(answer->prompt.ptr);
    free(answer);
}

static void attach(server_job *job, openai_answer *answer)
{
    job->voice = answer->request.stream ? &stream_voice : &whole_voice;
    job->stop = answer->request.stop;
    job->ctx = answer;
    job->free_ctx = free_answer;
}

bool openai_answer_attach(server_job *job, bool chat, server_generation *request, const frit_model *model,
                          const char *name)
{
    static _Atomic uint32_t counter;
    openai_answer *answer = calloc(1, sizeof *answer);
    if (!answer) return false;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    answer->chat = chat;
    answer->created = (int64_t)now.tv_sec;
    answer->model = model;
    answer->name = name;
    snprintf(answer->id, sizeof answer->id, "%s-%08llx%08lx%08x", chat ? "chatcmpl" : "cmpl",
             (unsigned long long)now.tv_sec, (unsigned long)now.tv_nsec, (unsigned)atomic_fetch_add(&counter, 1));
    answer->calls = json_array();
    answer->choices = json_array();
    answer->n_left = request->n_choices;
    for (int32_t i = 0; i < request->n_choices; i++) json_array_append_new(answer->choices, json_null());
    answer->request = *request;
    memset(request, 0, sizeof *request);
    job->turn = answer->request.turn;   // the job's from here on
    answer->request.turn = NULL;
    attach(job, answer);
    return true;
}

bool openai_answer_attach_part(server_job *job, server_job *first, int index)
{
    const openai_answer *of = first->ctx;
    openai_answer *answer = calloc(1, sizeof *answer);
    if (!answer) return false;
    answer->request = of->request;
    answer->chat = of->chat;
    answer->created = of->created;
    answer->model = of->model;
    answer->name = of->name;
    memcpy(answer->id, of->id, sizeof answer->id);
    answer->calls = json_array();
    answer->index = index;
    answer->is_part = true;
    attach(job, answer);
    return true;
}
