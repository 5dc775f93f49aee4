// SPDX-License-Identifier: MIT
// The replies of llama.cpp's /completion and /infill: events with the next piece of text, and a last event with all
// other members. There is no [DONE].
#include "common/token_json.h"
#include "server/api/answer.h"
#include "server/request/fields.h"

#include "frit_tools.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// The option "temp" has the name "temperature" in requests.
json_t *server_sampling_json(const frit_sampler_options *options)
{
    size_t n_rows;
    const frit_option *rows = frit_sampler_option_rows(&n_rows);
    json_t *json = json_object();
    for (size_t i = 0; i < n_rows; i++) {
        char name[64];
        const char *at = (const char *)options + rows[i].offset;
        if (!server_name_sampler(&rows[i], name)) continue;
        const char *key = strcmp(name, "temp") == 0 ? "temperature" : name;
        if (rows[i].type == FRIT_OPTION_INT)
            json_object_set_new(json, key, json_integer(*(const int32_t *)at));
        else
            json_object_set_new(json, key, json_real(round((double)*(const float *)at * 1e6) / 1e6));
    }
    return json;
}

static json_t *token_json(const frit_model *model, frit_logprob found)
{
    json_t *json = app_logprob_json(model, found);
    json_object_set_new(json, "id", json_integer(found.token));
    return json;
}

// The log-probabilities that are not written yet and whose text begins before byte `end` of the answer.
static json_t *logprobs_json(server_job *job, size_t end)
{
    server_answer *answer = job->reply.ctx;
    json_t *list = json_array();
    for (; answer->n_logprobs < job->report.n_logprobs && job->report.logprobs[answer->n_logprobs].at < end;
         answer->n_logprobs++) {
        const server_logprobs *logprobs = &job->report.logprobs[answer->n_logprobs];
        json_t *json = token_json(answer->model, logprobs->picked), *top = json_array();
        for (int32_t i = 0; i < logprobs->n_top; i++)
            json_array_append_new(top, token_json(answer->model, logprobs->top[i]));
        json_object_set_new(json, "top_logprobs", top);
        json_array_append_new(list, json);
    }
    return list;
}

// The token ids that are not written yet.
static json_t *ids_json(server_job *job)
{
    server_answer *answer = job->reply.ctx;
    json_t *list = json_array();
    for (; answer->n_ids < job->report.n_ids; answer->n_ids++)
        json_array_append_new(list, json_integer(job->report.ids[answer->n_ids]));
    return list;
}

// A string if the seed is too large for a JSON integer; requests may give a seed as a string too.
static json_t *seed_json(uint64_t seed)
{
    return seed <= INT64_MAX ? json_integer((json_int_t)seed) : json_sprintf("%llu", (unsigned long long)seed);
}

// Takes `text` over.
static json_t *piece_json(server_job *job, json_t *text, bool stop, size_t end)
{
    const server_answer *answer = job->reply.ctx;
    json_t *json = json_pack("{s:i, s:o, s:o, s:b, s:I, s:I}", "index", 0, "content", text, "tokens", ids_json(job),
                             "stop", stop, "tokens_predicted", (json_int_t)job->usage.n_answer, "tokens_evaluated",
                             (json_int_t)job->usage.n_prompt);
    if (answer->request.contents.wants_logprobs)
        json_object_set_new(json, "completion_probabilities", logprobs_json(job, end));
    return json;
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

json_t *server_timings_json(const server_job *job)
{
    const server_times *t = &job->times;
    const double first = t->first > 0 ? t->first : t->started, latest = t->latest > first ? t->latest : first;
    const double prompt_ms = 1e3 * (first - t->started), answer_ms = 1e3 * (latest - first);
    const double n_prompt = (double)(job->usage.n_prompt - job->usage.n_cached), n_answer = (double)job->usage.n_answer;
    return json_pack("{s:I, s:I, s:f, s:f, s:f, s:I, s:f, s:f, s:f}", "cache_n", (json_int_t)job->usage.n_cached,
                     "prompt_n", (json_int_t)n_prompt, "prompt_ms", prompt_ms, "prompt_per_token_ms",
                     ratio(prompt_ms, n_prompt), "prompt_per_second", ratio(1e3 * n_prompt, prompt_ms), "predicted_n",
                     (json_int_t)n_answer, "predicted_ms", answer_ms, "predicted_per_token_ms",
                     ratio(answer_ms, n_answer - 1), "predicted_per_second", ratio(1e3 * (n_answer - 1), answer_ms));
}

// The members that a request selects, each under the last part of its path, as llama.cpp does. Takes `json` over.
static json_t *choose_members(json_t *json, const json_t *paths)
{
    if (!paths) return json;
    json_t *chosen = json_object();
    for (size_t i = 0; i < json_array_size(paths); i++) {
        char part[128];
        const char *at = json_string_value(json_array_get(paths, i));
        json_t *found = json;
        while (found && *at) {
            const size_t n = strcspn(at, "/");
            snprintf(part, sizeof part, "%.*s", n < sizeof part ? (int)n : 0, at);
            found = json_object_get(found, part);
            at += n + (at[n] == '/');
        }
        if (found && found != json) json_object_set(chosen, part, found);
    }
    json_decref(json);
    return chosen;
}

static json_t *last_json(server_job *job, json_t *text)
{
    const server_answer *answer = job->reply.ctx;
    const bool is_cut = answer->finish == SERVER_FINISH_LENGTH, stopped = job->answer.stopped;
    json_t *json = piece_json(job, text, true, stopped ? job->answer.n : SIZE_MAX);
    json_t *more =
        json_pack("{s:s, s:o, s:s%, s:b, s:b, s:s, s:s, s:I, s:o}", "model", answer->name, "generation_settings",
                  server_sampling_json(&answer->request.sampling.options), "prompt",
                  answer->request.prompt.text ? answer->request.prompt.text : "", answer->request.prompt.n_text,
                  "has_new_line", memchr(job->answer.text, '\n', job->answer.n) != NULL, "truncated", 0, "stop_type",
                  is_cut    ? "limit"
                  : stopped ? "word"
                            : "eos",
                  "stopping_word", stopped ? job->answer.stopped_by : "", "tokens_cached",
                  (json_int_t)job->usage.n_cached, "timings", server_timings_json(job));
    json_object_set_new(json_object_get(more, "generation_settings"), "seed",
                        seed_json(answer->request.sampling.options.seed));
    json_object_update(json, more);
    json_decref(more);
    return choose_members(json, answer->request.contents.members);
}

static void begin_stream(server_job *job)
{
    (void)job;
}

static void put_part(server_job *job, const frit_part *part)
{
    const server_answer *answer = job->reply.ctx;
    json_t *json = piece_json(job, json_stringn(part->text, part->n_bytes), false, job->answer.n_shown);
    if (answer->request.contents.wants_timings) json_object_set_new(json, "timings", server_timings_json(job));
    server_answer_put_event(job, NULL, json);
}

static void put_progress(server_job *job, const server_progress *progress)
{
    json_t *json = piece_json(job, json_string(""), false, 0);
    json_object_set_new(json, "prompt_progress", server_progress_json(progress));
    server_answer_put_event(job, NULL, json);
}

static void end_stream(server_job *job)
{
    server_answer_put_event(job, NULL, last_json(job, json_string("")));
}

static void put_whole(server_job *job)
{
    server_answer_put(job, "", last_json(job, json_stringn(job->answer.text, job->answer.n)), "\n");
}

static void put_error(server_job *job, const server_problem *problem)
{
    server_openai_chat.fail(job, problem);
}

const server_protocol server_native = {.problem = server_problem_json,
                                       .stream_type = "text/event-stream",
                                       .id_prefix = "cmpl-",
                                       .begin = begin_stream,
                                       .part = put_part,
                                       .end = end_stream,
                                       .fail = put_error,
                                       .keep_alive = server_answer_put_comment,
                                       .progress = put_progress,
                                       .whole = put_whole};
