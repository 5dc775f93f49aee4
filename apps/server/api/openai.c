// SPDX-License-Identifier: MIT
// OpenAI's replies for /v1/chat/completions and /v1/completions.
//
// A stream is a list of events, each a JSON object after "data: ", with the same id and time. Only the first delta has
// the role, only the last chunk with a choice has finish_reason, and usage comes in a further chunk without choices if
// the request asks for it.
#include "common/token_json.h"
#include "server/api/answer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------------- shared parts

static const char *finish_text(const server_answer *answer)
{
    return answer->finish == SERVER_FINISH_LENGTH ? "length" : answer->n_calls > 0 ? "tool_calls" : "stop";
}

// The usage of all answers to the request. Their prompt is counted once.
static json_t *usage_json(const server_job *job)
{
    const server_usage usage = server_answer_usage(job);
    json_t *json = json_pack("{s:I, s:I, s:I, s:{s:I}, s:{s:I, s:I, s:I}}", "prompt_tokens", (json_int_t)usage.n_prompt,
                             "completion_tokens", (json_int_t)usage.n_answer, "total_tokens",
                             (json_int_t)(usage.n_prompt + usage.n_answer), "prompt_tokens_details", "cached_tokens",
                             (json_int_t)usage.n_cached, "completion_tokens_details", "reasoning_tokens",
                             (json_int_t)usage.n_reasoning, "accepted_prediction_tokens", (json_int_t)usage.n_accepted,
                             "rejected_prediction_tokens", (json_int_t)usage.n_rejected);
    if (usage.n_image > 0)
        json_object_set_new(json_object_get(json, "prompt_tokens_details"), "image_tokens",
                            json_integer((json_int_t)usage.n_image));
    return json;
}

// Takes `choices` over.
static json_t *envelope_json(const server_answer *answer, const char *object, json_t *choices)
{
    char print[32];
    snprintf(print, sizeof print, "frit-%s", frit_version());
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:o}", "id", answer->id, "object", object, "created",
                     (json_int_t)answer->created, "model", answer->name, "system_fingerprint", print, "choices",
                     choices);
}

// ---------------------------------------------------------------------------------------- log-probabilities

static void add_chat_logprobs(const server_answer *answer, const server_logprobs *logprobs, json_t *content)
{
    json_t *json = app_logprob_json(answer->model, logprobs->picked), *top = json_array();
    for (int32_t i = 0; i < logprobs->n_top; i++)
        json_array_append_new(top, app_logprob_json(answer->model, logprobs->top[i]));
    json_object_set_new(json, "top_logprobs", top);
    json_array_append_new(content, json);
}

// The likeliest tokens as an object of text and log-probability.
static json_t *top_json(const server_answer *answer, const server_logprobs *logprobs)
{
    json_t *top = json_object();
    for (int32_t i = 0; i < logprobs->n_top && i < answer->request.contents.n_top; i++) {
        json_t *token = app_token_json(answer->model, logprobs->top[i].token, NULL);
        json_object_set_new(top, json_string_value(token), json_real((double)logprobs->top[i].logprob));
        json_decref(token);
    }
    return top;
}

// Appends a token to the four parallel lists of a completion's logprobs. Offsets are in characters. `known` is false
// for the first token of the prompt, which has no log-probability.
static void append_logprobs(const server_answer *answer, const server_logprobs *logprobs, bool known, json_t *lists)
{
    json_array_append_new(json_object_get(lists, "tokens"),
                          app_token_json(answer->model, logprobs->picked.token, NULL));
    json_array_append_new(json_object_get(lists, "token_logprobs"),
                          known ? json_real((double)logprobs->picked.logprob) : json_null());
    json_array_append_new(json_object_get(lists, "top_logprobs"), known ? top_json(answer, logprobs) : json_null());
    json_array_append_new(json_object_get(lists, "text_offset"), json_integer((json_int_t)answer->n_chars));
}

static size_t count_chars(const char *text, size_t n)
{
    size_t n_chars = 0;
    for (size_t i = 0; i < n; i++) n_chars += (text[i] & 0xc0) != 0x80;
    return n_chars;
}

static void add_text_logprobs(server_answer *answer, const char *text, const server_logprobs *logprobs, json_t *lists)
{
    if (logprobs->at > answer->at) {
        answer->n_chars += count_chars(text + answer->at, logprobs->at - answer->at);
        answer->at = logprobs->at;
    }
    append_logprobs(answer, logprobs, true, lists);
}

// Adds the prompt's tokens to `lists`, unless it is NULL, and sets answer->prompt to its text. The offsets of the
// tokens come from the tokens' own texts; the echoed text is the one that the client sent.
static void add_prompt(server_job *job, json_t *lists)
{
    server_answer *answer = job->reply.ctx;
    frit_text_stream *stream;
    if (frit_text_stream_new(&stream, answer->model, 0) != FRIT_OK) job->reply.queue.failed = true;
    for (size_t i = 0; i <= job->request.n_prompt && !job->reply.queue.failed; i++) {
        const char *text = "";
        size_t n = 0;
        frit_status status = FRIT_OK;
        if (i < job->request.n_prompt && lists) {
            const server_logprobs first = {.picked.token = job->request.prompt[0]};
            append_logprobs(answer, i == 0 ? &first : &job->report.prompt_logprobs[i], i > 0, lists);
        }
        status = i < job->request.n_prompt ? frit_text_stream_push(stream, job->request.prompt[i], &text, &n)
                                           : frit_text_stream_flush(stream, &text, &n);
        if (status != FRIT_OK || !server_text_add(&answer->prompt, text, n)) job->reply.queue.failed = true;
        answer->n_chars += count_chars(text, n);
    }
    frit_text_stream_free(stream);
    if (!answer->request.prompt.text) return;
    answer->prompt.n = 0;
    if (!server_text_add(&answer->prompt, answer->request.prompt.text, answer->request.prompt.n_text))
        job->reply.queue.failed = true;
    answer->n_chars = count_chars(answer->prompt.ptr, answer->prompt.n);
}

// The log-probabilities of the tokens that are not written yet and whose text begins before byte `end` of the answer;
// before them those of an echoed prompt. null if the request does not ask for log-probabilities.
static json_t *logprobs_json(server_job *job, size_t end)
{
    server_answer *answer = job->reply.ctx;
    const bool echoes = answer->request.contents.echo && !answer->echoed;
    answer->echoed = true;
    if (!answer->request.contents.wants_logprobs) {
        if (echoes) add_prompt(job, NULL);
        return json_null();
    }
    json_t *json =
        answer->chat ? json_pack("{s:[], s:n}", "content", "refusal")
                     : json_pack("{s:[], s:[], s:[], s:[]}", "tokens", "token_logprobs", "top_logprobs", "text_offset");
    if (echoes) add_prompt(job, json);
    for (; answer->n_logprobs < job->report.n_logprobs && job->report.logprobs[answer->n_logprobs].at < end;
         answer->n_logprobs++) {
        const server_logprobs *logprobs = &job->report.logprobs[answer->n_logprobs];
        if (answer->chat)
            add_chat_logprobs(answer, logprobs, json_object_get(json, "content"));
        else
            add_text_logprobs(answer, job->answer.text, logprobs, json);
    }
    return json;
}

// The remaining log-probabilities, except those after a stop string.
static json_t *last_logprobs_json(server_job *job)
{
    return logprobs_json(job, job->answer.stopped ? job->answer.n : SIZE_MAX);
}

// Adds a token of vLLM's prompt_logprobs, which has an object with token ids as keys for each token of the prompt.
static void add_rank(const server_answer *answer, frit_logprob found, int32_t rank, json_t *out)
{
    char id[16];
    json_t *token = app_token_json(answer->model, found.token, NULL);
    snprintf(id, sizeof id, "%d", found.token);
    json_object_set_new(
        out, id, json_pack("{s:f, s:i, s:o}", "logprob", (double)found.logprob, "rank", rank, "decoded_token", token));
}

static void add_prompt_logprobs(const server_job *job, json_t *to)
{
    const server_answer *answer = job->reply.ctx;
    if (!job->report.prompt_logprobs || !job->report.wants_prompt_logprobs) return;
    json_t *list = json_pack("[n]");
    for (size_t i = 1; i < job->request.n_prompt; i++) {
        const server_logprobs *logprobs = &job->report.prompt_logprobs[i];
        json_t *row = json_object();
        add_rank(answer, logprobs->picked, logprobs->rank, row);
        for (int32_t k = 0; k < job->report.n_prompt_top && k < logprobs->n_top; k++)
            if (logprobs->top[k].token != logprobs->picked.token) add_rank(answer, logprobs->top[k], k + 1, row);
        json_array_append_new(list, row);
    }
    json_object_set_new(to, "prompt_logprobs", list);
}

// ---------------------------------------------------------------------------------------- streams

static void put_chunk(server_job *job, json_t *choice, bool is_last)
{
    const server_answer *answer = job->reply.ctx;
    json_t *chunk =
        envelope_json(answer, answer->chat ? "chat.completion.chunk" : "text_completion", json_pack("[o]", choice));
    if (answer->request.stream.include_usage) json_object_set_new(chunk, "usage", json_null());
    if (answer->request.contents.wants_timings || is_last)
        json_object_set_new(chunk, "timings", server_timings_json(job));
    server_answer_put_event(job, NULL, chunk);
}

static json_t *choice_of(const server_answer *answer, json_t *content, json_t *logprobs, const char *finish)
{
    return json_pack("{s:i, s:o, s:o, s:s?}", "index", answer->index, answer->chat ? "delta" : "text", content,
                     "logprobs", logprobs, "finish_reason", finish);
}

// Writes the echoed prompt of a completion, and the first event of a chat, which has the role.
static void begin_stream(server_job *job)
{
    server_answer *answer = job->reply.ctx;
    if (answer->request.contents.echo) {
        json_t *logprobs = logprobs_json(job, 0);   // sets answer->prompt
        put_chunk(job, choice_of(answer, json_stringn(answer->prompt.ptr, answer->prompt.n), logprobs, NULL), false);
    }
    if (!answer->chat) return;
    json_t *delta = json_pack("{s:s, s:s, s:n}", "role", "assistant", "content", "", "refusal");
    put_chunk(job, choice_of(answer, delta, json_null(), NULL), false);
}

static void put_delta(server_job *job, json_t *delta)
{
    put_chunk(job, choice_of(job->reply.ctx, delta, logprobs_json(job, job->answer.n_shown), NULL), false);
}

// A call has two events: its name, then its arguments.
static void put_call(server_job *job, const frit_part *part, int index)
{
    put_delta(job, json_pack("{s:[{s:i, s:s, s:s, s:{s:s, s:s}}]}", "tool_calls", "index", index, "id", part->id,
                             "type", "function", "function", "name", part->name, "arguments", ""));
    put_delta(job,
              json_pack("{s:[{s:i, s:{s:s}}]}", "tool_calls", "index", index, "function", "arguments", part->text));
}

static void put_part(server_job *job, const frit_part *part)
{
    const server_answer *answer = job->reply.ctx;
    if (part->kind == FRIT_PART_CALL) {
        put_call(job, part, answer->n_calls);
        return;
    }
    json_t *text = json_stringn(part->text, part->n_bytes);
    if (answer->chat) text = json_pack("{s:o}", part->kind == FRIT_PART_TEXT ? "content" : "reasoning_content", text);
    put_delta(job, text);
}

static void end_stream(server_job *job)
{
    const server_answer *answer = job->reply.ctx;
    put_chunk(
        job,
        choice_of(answer, answer->chat ? json_object() : json_string(""), last_logprobs_json(job), finish_text(answer)),
        true);
    if (!server_answer_is_last(job)) return;
    if (answer->request.stream.include_usage) {
        json_t *chunk = envelope_json(answer, answer->chat ? "chat.completion.chunk" : "text_completion", json_array());
        json_object_set_new(chunk, "usage", usage_json(job));
        server_answer_put_event(job, NULL, chunk);
    }
    static const char done[] = "data: [DONE]\n\n";
    server_job_put(job, done, sizeof done - 1);
}

// Writes how much of the prompt is done. The event with the role comes first.
static void put_progress(server_job *job, const server_progress *progress)
{
    server_answer *answer = job->reply.ctx;
    if (answer->chat && !answer->begun) {
        answer->begun = true;
        begin_stream(job);
    }
    json_t *choice = choice_of(answer, answer->chat ? json_object() : json_string(""), json_null(), NULL);
    json_t *chunk =
        envelope_json(answer, answer->chat ? "chat.completion.chunk" : "text_completion", json_pack("[o]", choice));
    json_object_set_new(chunk, "prompt_progress", server_progress_json(progress));
    server_answer_put_event(job, NULL, chunk);
}

static void fail_stream(server_job *job, const server_problem *problem)
{
    char *text = server_problem_json(problem);
    json_t *json = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    server_answer_put_event(job, NULL, json);
}

// ---------------------------------------------------------------------------------------- whole answers

static json_t *calls_json(const server_answer *answer)
{
    json_t *calls = json_array();
    for (size_t i = 0; i < answer->n_parts; i++) {
        const server_part *part = &answer->parts[i];
        if (part->kind != FRIT_PART_CALL) continue;
        json_array_append_new(calls, json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", part->id, "type", "function",
                                               "function", "name", part->name, "arguments", part->text.ptr));
    }
    return calls;
}

static json_t *message_json(const server_answer *answer)
{
    json_t *content = server_answer_join(answer, FRIT_PART_TEXT);
    json_t *reasoning = server_answer_join(answer, FRIT_PART_REASONING);
    if (!content) content = answer->n_calls > 0 ? json_null() : json_string("");
    json_t *message = json_pack("{s:s, s:o, s:n}", "role", "assistant", "content", content, "refusal");
    if (reasoning) json_object_set_new(message, "reasoning_content", reasoning);
    if (answer->n_calls > 0) json_object_set_new(message, "tool_calls", calls_json(answer));
    return message;
}

static json_t *text_choice(server_job *job)
{
    server_answer *answer = job->reply.ctx;
    json_t *logprobs = last_logprobs_json(job);   // sets answer->prompt
    if (!server_text_add(&answer->prompt, job->answer.text, job->answer.n)) job->reply.queue.failed = true;
    const char *text = answer->prompt.ptr ? answer->prompt.ptr : "";
    return choice_of(answer, json_stringn(text, answer->prompt.n), logprobs, finish_text(answer));
}

// The mean log-probability of the answer's tokens.
static double mean_logprob(const server_job *job)
{
    double sum = 0;
    for (size_t i = 0; i < job->report.n_logprobs; i++) sum += (double)job->report.logprobs[i].picked.logprob;
    return job->report.n_logprobs > 0 ? sum / (double)job->report.n_logprobs : 0;
}

// Leaves only the n_given likeliest choices, the best first; equally likely choices keep their order.
static void select_best(server_job *first)
{
    const server_answer *answer = first->reply.ctx;
    json_t *best = json_array();
    for (int32_t k = 0; k < answer->request.choices.n_given; k++) {
        const server_job *found = NULL;
        for (const server_job *job = first; job; job = job == first ? first->group.further : job->group.next) {
            const json_t *made =
                json_array_get(answer->choices, (size_t)((const server_answer *)job->reply.ctx)->index);
            if (json_is_null(made)) continue;   // chosen already
            if (!found || mean_logprob(job) > mean_logprob(found)) found = job;
        }
        if (!found) break;
        const size_t i = (size_t)((const server_answer *)found->reply.ctx)->index;
        json_t *choice = json_copy(json_array_get(answer->choices, i));
        json_object_set_new(choice, "index", json_integer(k));
        json_array_append_new(best, choice);
        json_array_set_new(answer->choices, i, json_null());
    }
    json_array_clear(answer->choices);
    json_array_extend(answer->choices, best);
    json_decref(best);
}

static void put_whole(server_job *job)
{
    const server_answer *answer = job->reply.ctx, *first = server_job_first(job)->reply.ctx;
    json_t *choice;
    if (answer->chat)
        choice = json_pack("{s:i, s:o, s:o, s:s}", "index", answer->index, "message", message_json(answer), "logprobs",
                           last_logprobs_json(job), "finish_reason", finish_text(answer));
    else
        choice = text_choice(job);
    if (!answer->chat) add_prompt_logprobs(job, choice);
    if (json_array_set_new(first->choices, (size_t)answer->index, choice) != 0) job->reply.queue.failed = true;
    if (!server_answer_is_last(job)) return;
    if (first->request.choices.n_given < first->request.choices.n) select_best(server_job_first(job));
    json_t *json =
        envelope_json(answer, answer->chat ? "chat.completion" : "text_completion", json_incref(first->choices));
    json_object_set_new(json, "usage", usage_json(job));
    json_object_set_new(json, "timings", server_timings_json(server_job_first(job)));
    if (answer->chat) add_prompt_logprobs(server_job_first(job), json);
    server_answer_put(job, "", json, "\n");
}

#define EVENTS                                                                                           \
    .begin = begin_stream, .part = put_part, .end = end_stream, .fail = fail_stream, .whole = put_whole, \
    .keep_alive = server_answer_put_comment, .progress = put_progress

const server_protocol server_openai = {.problem = server_problem_json};
const server_protocol server_openai_chat = {
    .problem = server_problem_json, .stream_type = "text/event-stream", .id_prefix = "chatcmpl-", EVENTS};
const server_protocol server_openai_completion = {
    .problem = server_problem_json, .stream_type = "text/event-stream", .id_prefix = "cmpl-", EVENTS};
