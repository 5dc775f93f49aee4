// SPDX-License-Identifier: MIT
// The tables of fields of every kind of request, and the fields that need code of their own.
#include "server/request/request.h"

#include "common/token_json.h"
#include "server/api/logprobs.h"
#include "server/request/prediction.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool no_memory(server_problem *problem)
{
    return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
}

// ---------------------------------------------------------------------------------------- sampling fields

bool server_parse_seed(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    const char *text = json_string_value(value);
    json_int_t seed;
    if (!server_integer(value, &seed) && (!text || text[strspn(text, "0123456789")] || !*text))
        return server_refuse(problem, 400, "invalid_type", "seed", "seed: expected an integer");
    request->seed = (uint64_t)seed;
    request->has_seed = text || seed != -1;
    errno = 0;
    if (text) request->seed = strtoull(text, NULL, 10);
    return errno == 0 ||
           server_refuse(problem, 400, "invalid_value", "seed", "seed: %.64s is more than 2^64 - 1", text);
}

static bool add_stop(const char **items, size_t *n, const json_t *value, const char *param, server_problem *problem)
{
    const char *text = json_string_value(value);
    if (!text)
        return server_refuse(problem, 400, "invalid_type", param, "%s: expected a string or a list of strings", param);
    size_t length = json_string_length(value);
    if (length == 0)
        return server_refuse(problem, 400, "invalid_value", param, "%s: an empty string stops everything", param);
    if (strlen(text) < length)
        return server_refuse(problem, 400, "invalid_value", param, "%s: a string has a zero character", param);
    if (length > SERVER_MAX_STOP_BYTES)
        return server_refuse(problem, 400, "invalid_value", param, "%s: a string of %zu bytes, at most %d are possible",
                             param, length, SERVER_MAX_STOP_BYTES);
    items[(*n)++] = text;
    return true;
}

bool server_read_stop(server_generation *request, json_t *value, const char *param, server_problem *problem)
{
    size_t n = json_is_array(value) ? json_array_size(value) : 1;
    if (n > SERVER_MAX_STOPS)
        return server_refuse(problem, 400, "invalid_value", param, "%s: %zu strings, at most %d are possible", param, n,
                             SERVER_MAX_STOPS);
    const char **items = calloc(n + 1, sizeof *items);
    if (!items) return no_memory(problem);
    free((void *)request->stop.items);
    request->stop = (frit_option_list){items, 0};
    bool good = true;
    for (size_t i = 0; i < n && good; i++)
        good =
            add_stop(items, &request->stop.n, json_is_array(value) ? json_array_get(value, i) : value, param, problem);
    return good;
}

static bool parse_stop(json_t *value, void *ctx, server_problem *problem)
{
    return server_read_stop(ctx, value, "stop", problem);
}

bool server_parse_stream_options(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    if (!json_is_object(value))
        return server_refuse(problem, 400, "invalid_type", "stream_options", "stream_options: expected an object");
    const json_t *usage = json_object_get(value, "include_usage");
    if (usage && !json_is_boolean(usage) && !json_is_null(usage))
        return server_refuse(problem, 400, "invalid_type", "stream_options.include_usage",
                             "stream_options.include_usage: expected true or false");
    const json_t *padding = json_object_get(value, "include_obfuscation");
    if (padding && !json_is_boolean(padding) && !json_is_null(padding))
        return server_refuse(problem, 400, "invalid_type", "stream_options.include_obfuscation",
                             "stream_options.include_obfuscation: expected true or false");
    request->include_usage = json_is_true(usage);
    request->pads = json_is_true(padding);
    return true;
}

static bool is_text(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && strlen(text) == json_string_length(value);
}

// ["top_k", "temperature"], or a letter for each: "kt".
static bool parse_samplers(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    const size_t n = json_array_size(value);
    size_t length = 1, end = 0;
    if (is_text(value)) {
        request->sampler.sampler_seq = json_string_value(value);
        return true;
    }
    for (size_t i = 0; i < n; i++) length += json_string_length(json_array_get(value, i)) + 1;
    request->order = calloc(length, 1);
    if (!request->order) return no_memory(problem);
    for (size_t i = 0; i < n || !json_is_array(value); i++) {
        const json_t *name = json_array_get(value, i);
        if (!is_text(name) || strpbrk(json_string_value(name), ",;"))
            return server_refuse(problem, 400, "invalid_type", "samplers",
                                 "samplers: expected a list of names of stages, or their letters");
        if (i > 0) request->order[end++] = ',';
        memcpy(request->order + end, json_string_value(name), json_string_length(name));
        end += json_string_length(name);
    }
    request->sampler.samplers = request->order;
    request->sampler.sampler_seq = NULL;
    return true;
}

static bool parse_breakers(json_t *value, void *ctx, server_problem *problem)
{
    static const char *const none[] = {"none"};
    server_generation *request = ctx;
    const size_t n = json_array_size(value);
    const char **items = calloc(n + 1, sizeof *items);
    if (!items) return no_memory(problem);
    request->breakers.items = items;
    for (size_t i = 0; i < n || !json_is_array(value); i++) {
        if (!is_text(json_array_get(value, i)))
            return server_refuse(problem, 400, "invalid_type", "dry_sequence_breakers",
                                 "dry_sequence_breakers: expected a list of strings without zero characters");
        items[i] = json_string_value(json_array_get(value, i));
    }
    request->sampler.dry_breakers = n > 0 ? (frit_option_list){items, n} : (frit_option_list){none, 1};
    return true;
}

static bool parse_penalize_nl(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    if (!json_is_boolean(value))
        return server_refuse(problem, 400, "invalid_type", "penalize_nl", "penalize_nl: expected true or false");
    return frit_sampler_set_option(&request->sampler, "no-penalize-nl", json_is_true(value) ? "false" : "true") ==
           FRIT_OK;
}

// [{"id": 0, "scale": 0.5}, ...]: the adapters that are not named have the scale 0.
bool server_parse_lora(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    const size_t n = json_array_size(value);
    if (!json_is_array(value) || n > SERVER_MAX_LORA)
        return server_refuse(problem, 400, "invalid_type", "lora",
                             "lora: expected a list of at most %d objects with id and scale", SERVER_MAX_LORA);
    request->lora = calloc(n + 1, sizeof *request->lora);
    if (!request->lora) return no_memory(problem);
    for (request->n_lora = 0; request->n_lora < n; request->n_lora++) {
        const json_t *item = json_array_get(value, request->n_lora), *scale = json_object_get(item, "scale");
        json_int_t id;
        if (!server_integer(json_object_get(item, "id"), &id) || id < 0 || id > INT32_MAX)
            return server_refuse(problem, 400, "invalid_value", "lora",
                                 "lora[%zu].id: expected the number of an adapter", request->n_lora);
        if (scale && (!json_is_number(scale) || !(fabs(json_number_value(scale)) <= 1e6)))
            return server_refuse(problem, 400, "invalid_value", "lora", "lora[%zu].scale: expected a number",
                                 request->n_lora);
        request->lora[request->n_lora] = (server_chosen){(int32_t)id, scale ? (float)json_number_value(scale) : 1};
    }
    return true;
}

// ---------------------------------------------------------------------------------------- formats of answers

bool server_set_format(server_generation *request, frit_grammar_kind kind, const char *param, json_t *value,
                       server_problem *problem)
{
    if (request->format_param)
        return server_refuse(problem, 400, "invalid_value", param, "%s: %s says what the answer may be already", param,
                             request->format_param);
    request->format_kind = kind;
    request->format_param = param;
    if (json_is_string(value)) {
        request->format = json_string_value(value);
        request->n_format = json_string_length(value);
        return true;
    }
    request->format = request->format_owned = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    if (!request->format) return no_memory(problem);
    request->n_format = strlen(request->format);
    return true;
}

static bool set_text_format(json_t *value, void *ctx, frit_grammar_kind kind, const char *param,
                            server_problem *problem)
{
    if (!json_is_string(value))
        return server_refuse(problem, 400, "invalid_type", param, "%s: expected a string", param);
    if (json_string_length(value) == 0) return true;
    return server_set_format(ctx, kind, param, value, problem);
}

bool server_set_schema(server_generation *request, json_t *value, const char *param, server_problem *problem)
{
    if (!json_is_object(value) && !json_is_boolean(value))
        return server_refuse(problem, 400, "invalid_type", param, "%s: expected a JSON schema, an object", param);
    return server_set_format(request, FRIT_GRAMMAR_SCHEMA, param, value, problem);
}

static bool parse_grammar(json_t *value, void *ctx, server_problem *problem)
{
    return set_text_format(value, ctx, FRIT_GRAMMAR_GBNF, "grammar", problem);
}

static bool parse_regex(json_t *value, void *ctx, server_problem *problem)
{
    return set_text_format(value, ctx, FRIT_GRAMMAR_REGEX, "regex", problem);
}

static bool parse_json_schema(json_t *value, void *ctx, server_problem *problem)
{
    return server_set_schema(ctx, value, "json_schema", problem);
}

static bool parse_guided_grammar(json_t *value, void *ctx, server_problem *problem)
{
    return set_text_format(value, ctx, FRIT_GRAMMAR_GBNF, "guided_grammar", problem);
}

static bool parse_guided_regex(json_t *value, void *ctx, server_problem *problem)
{
    return set_text_format(value, ctx, FRIT_GRAMMAR_REGEX, "guided_regex", problem);
}

static bool parse_guided_json(json_t *value, void *ctx, server_problem *problem)
{
    if (json_is_string(value)) return set_text_format(value, ctx, FRIT_GRAMMAR_SCHEMA, "guided_json", problem);
    return server_set_schema(ctx, value, "guided_json", problem);
}

// {"type": "text"}, {"type": "json_object"}, {"type": "json_schema", "json_schema": {"name": ..., "schema": {...}}},
// {"type": "structural_tag", "structures": [...], "triggers": [...]} or "format" in place of these two
static bool parse_response_format(json_t *value, void *ctx, server_problem *problem)
{
    static const char param[] = "response_format";
    server_generation *request = ctx;
    const char *type = json_string_value(json_object_get(value, "type"));
    if (!type)
        return server_refuse(problem, 400, "invalid_type", param, "%s: expected an object with a type, a string",
                             param);
    if (strcmp(type, "text") == 0) return true;
    if (strcmp(type, "structural_tag") == 0)
        return server_set_format(request, FRIT_GRAMMAR_TAGS, param, value, problem);
    json_t *schema = json_object_get(value, "schema"), *inner = json_object_get(value, "json_schema");
    if (strcmp(type, "json_schema") == 0) {
        if (!schema) schema = json_object_get(inner, "schema");
        if (!schema)
            return server_refuse(problem, 400, "missing_required_parameter", param, "%s.json_schema.schema: is missing",
                                 param);
        return server_set_schema(request, schema, param, problem);
    }
    if (strcmp(type, "json_object") != 0)
        return server_refuse(problem, 400, "unsupported_parameter", param,
                             "%s: type '%.64s' is not known; expected text, json_object, json_schema or structural_tag",
                             param, type);
    if (schema) return server_set_schema(request, schema, param, problem);
    json_t *any = json_pack("{s:s}", "type", "object");
    if (!any) return no_memory(problem);
    const bool good = server_set_format(request, FRIT_GRAMMAR_SCHEMA, param, any, problem);
    json_decref(any);
    return good;
}

static bool read_logprobs(server_generation *request, const json_t *value, const char *param, server_problem *problem)
{
    json_int_t n;
    if (!server_integer(value, &n))
        return server_refuse(problem, 400, "invalid_type", param, "%s: expected an integer", param);
    if (n < 0 || n > SERVER_MAX_TOP)
        return server_refuse(problem, 400, "invalid_value", param, "%s: %lld is outside of 0 to %d", param,
                             (long long)n, SERVER_MAX_TOP);
    request->wants_logprobs = true;
    request->n_top = (int32_t)n;
    return true;
}

// A number here, where chats have true and top_logprobs.
static bool parse_logprobs(json_t *value, void *ctx, server_problem *problem)
{
    return json_is_false(value) || read_logprobs(ctx, value, "logprobs", problem);
}

static bool parse_members(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    bool good = json_is_array(value);
    for (size_t i = 0; good && i < json_array_size(value); i++) good = is_text(json_array_get(value, i));
    if (!good)
        return server_refuse(problem, 400, "invalid_type", "response_fields",
                             "response_fields: expected a list of names, such as \"timings/prompt_ms\"");
    if (json_array_size(value) > 0) request->members = value;
    return true;
}

// vLLM's; -1, the whole vocabulary, is too much.
static bool parse_prompt_logprobs(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    json_int_t n;
    const bool is_whole = server_integer(value, &n);
    if (json_is_false(value)) return true;
    if (!is_whole || n < 0 || n > SERVER_MAX_TOP)
        return server_refuse(problem, 400, is_whole ? "invalid_value" : "invalid_type", "prompt_logprobs",
                             "prompt_logprobs: expected an integer from 0 to %d", SERVER_MAX_TOP);
    request->wants_prompt_logprobs = true;
    request->n_prompt_top = (int32_t)n;
    return true;
}

// 0: none, as in llama.cpp.
static bool parse_n_probs(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    if (!read_logprobs(request, value, "n_probs", problem)) return false;
    request->wants_logprobs = request->n_top > 0;
    return true;
}

// ---------------------------------------------------------------------------------------- prompts

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

static bool keep_text(json_t *value, const json_t **out, const char *param, server_problem *problem)
{
    if (!json_is_string(value))
        return server_refuse(problem, 400, "invalid_type", param, "%s: expected a string", param);
    *out = value;
    return true;
}

static bool parse_suffix(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    return keep_text(value, &request->suffix, "suffix", problem);
}

static bool parse_input_prefix(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    return keep_text(value, &request->prefix, "input_prefix", problem);
}

static bool parse_input_suffix(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    return keep_text(value, &request->suffix, "input_suffix", problem);
}

static bool parse_input_extra(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    request->files = value;
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
    request->text = NULL;
    request->ids = NULL;
    if (json_is_string(value)) {
        request->text = json_string_value(value);
        request->n_text = json_string_length(value);
        return true;
    }
    if (json_is_array(value) && (json_array_size(value) == 0 || json_is_number(json_array_get(value, 0))))
        return server_read_ids(value, "prompt", &request->ids, &request->n_ids, problem);
    return server_refuse(problem, 400, "invalid_type", "prompt",
                         "prompt: expected a string, a list of token ids, or a list of these");
}

bool server_choose_prompt(server_generation *request, size_t i, server_problem *problem)
{
    return set_prompt(request, json_array_get(request->prompts, i), problem);
}

// One prompt, or a list of them.
static bool parse_prompt(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    const size_t n = json_array_size(value);
    const json_t *first = json_array_get(value, 0);   // NULL if it is no list
    request->n_prompts = 1;
    if (n == 0 || json_is_number(first)) return set_prompt(request, value, problem);
    if (n > SERVER_MAX_CHOICES)
        return server_refuse(problem, 400, "invalid_value", "prompt", "prompt: %zu prompts, at most %d are possible", n,
                             SERVER_MAX_CHOICES);
    request->prompts = value;
    request->n_prompts = (int32_t)n;
    for (size_t i = n; i-- > 0;) {   // all are looked at, and the first stays
        free(request->ids);
        if (!server_choose_prompt(request, i, problem)) return false;
    }
    return true;
}

void server_clear_generation(void *ctx)
{
    server_generation *request = ctx;
    free((void *)request->stop.items);
    server_clear_biases(request);
    free(request->format_owned);
    free((void *)request->breakers.items);
    free(request->order);
    free(request->lora);
    free(request->prediction);
    free(request->ids);
    frit_turn_free(request->turn);
    if (request->extra) request->free_extra(request->extra);
}

// ---------------------------------------------------------------------------------------- the tables

#define AT(field) offsetof(server_generation, field)
#define SAMPLER(name, option)                                     \
    {                                                             \
        name, FIELD_SAMPLER, .offset = AT(sampler), .row = option \
    }
#define LATER     SERVER_FIELD_REFUSED
#define ELSEWHERE SERVER_FIELD_ELSEWHERE

#define OLD_TOOLS     "it is an old form; use tools and tool_choice"
#define SAMPLER_LATER "it comes with a later version"
#define NO_BEAMS      "the server samples; 'frit run --beams N' searches"

// clang-format off
// Fields that both kinds of generation have.
#define GENERATION_FIELDS                                                                                 \
    {"model", FIELD_TEXT, .offset = AT(model)},                                                                     \
    {"stream", FIELD_BOOL, .offset = AT(stream)},                                                                   \
    {"stream_options", FIELD_CUSTOM, .parse = server_parse_stream_options},                                      \
    {"sse_ping_interval", FIELD_INT, .offset = AT(keep_alive_s), .min = -1, .max = 86400},                \
    {"return_progress", FIELD_BOOL, .offset = AT(wants_progress)},                                        \
    {"seed", FIELD_CUSTOM, .parse = server_parse_seed},                                                          \
    {"id_slot", FIELD_CUSTOM, .parse = server_parse_slot},                                                 \
    {"cache_salt", FIELD_TEXT, .offset = AT(cache_salt)},                                                 \
    {"priority", FIELD_CUSTOM, .parse = server_parse_priority},                                           \
    {"stop", FIELD_CUSTOM, .parse = parse_stop},                                                          \
    {"logit_bias", FIELD_CUSTOM, .parse = server_parse_logit_bias},                                              \
    {"lora", FIELD_CUSTOM, .parse = server_parse_lora},                                                          \
    {"prediction", FIELD_CUSTOM, .parse = server_parse_prediction},                                       \
    SAMPLER("temperature", "temp"),                                                                       \
    SAMPLER("repetition_penalty", "repeat-penalty"),                                                      \
    ELSEWHERE("user"), ELSEWHERE("store"), ELSEWHERE("metadata"), ELSEWHERE("service_tier"),              \
    ELSEWHERE("safety_identifier"), ELSEWHERE("prompt_cache_key"), ELSEWHERE("cache_prompt"),             \
    {"samplers", FIELD_CUSTOM, .parse = parse_samplers},                                                  \
    {"dry_sequence_breakers", FIELD_CUSTOM, .parse = parse_breakers},                                     \
    {"penalize_nl", FIELD_CUSTOM, .parse = parse_penalize_nl},                                            \
    {"min_tokens", FIELD_INT, .offset = AT(min_tokens), .min = 0, .max = INT32_MAX},                      \
    {"ignore_eos", FIELD_BOOL, .offset = AT(ignores_end)},                                                \
    {"timings_per_token", FIELD_BOOL, .offset = AT(wants_timings)},                                       \
    LATER("use_beam_search", .harmless = "false", .why = NO_BEAMS),                                       \
    {"guided_json", FIELD_CUSTOM, .parse = parse_guided_json},                                            \
    {"guided_regex", FIELD_CUSTOM, .parse = parse_guided_regex},                                          \
    {"guided_grammar", FIELD_CUSTOM, .parse = parse_guided_grammar},                                      \
    {"guided_choice", FIELD_CUSTOM, .parse = server_parse_guided_choice},                                 \
    {"structured_outputs", FIELD_CUSTOM, .parse = server_parse_structured_outputs},                       \
    {"max_completion_tokens", FIELD_INT, .offset = AT(max_completion_tokens), .min = -1, .max = INT32_MAX,          \
     .fallback = SERVER_UNSET},                                                                           \
    {"n", FIELD_INT, .offset = AT(n_choices), .min = 1, .max = SERVER_MAX_CHOICES, .fallback = 1},         \
    {"grammar", FIELD_CUSTOM, .parse = parse_grammar},                                                    \
    {"json_schema", FIELD_CUSTOM, .parse = parse_json_schema},                                            \
    {"regex", FIELD_CUSTOM, .parse = parse_regex},                                                        \
    {"open_objects", FIELD_BOOL, .offset = AT(open_objects)},                                             \
    {"response_format", FIELD_CUSTOM, .parse = parse_response_format}

static const server_field chat_fields[] = {
    GENERATION_FIELDS,
    {"max_tokens", FIELD_INT, .offset = AT(max_tokens), .min = -1, .max = INT32_MAX, .fallback = -1},
    ELSEWHERE("messages"), ELSEWHERE("tools"), ELSEWHERE("tool_choice"), ELSEWHERE("chat_template_kwargs"),
    ELSEWHERE("reasoning_effort"), ELSEWHERE("add_generation_prompt"), ELSEWHERE("continue_final_message"),
    ELSEWHERE("verbosity"),
    {"logprobs", FIELD_BOOL, .offset = AT(wants_logprobs)},
    {"top_logprobs", FIELD_INT, .offset = AT(n_top), .min = 0, .max = SERVER_MAX_TOP},
    {"parallel_tool_calls", FIELD_BOOL, .offset = AT(parallel_calls), .fallback = 1},
    {"prompt_logprobs", FIELD_CUSTOM, .parse = parse_prompt_logprobs},
    LATER("functions", .harmless = "[]", .why = OLD_TOOLS),
    LATER("function_call", .harmless = "\"none\"|\"auto\"", .why = OLD_TOOLS),
    LATER("chat_template", .why = "the server's template is used; --chat-template sets it"),
    LATER("modalities", .harmless = "[\"text\"]", .why = "frit answers with text"),
    LATER("audio", .why = "frit answers with text"),
    LATER("web_search_options", .why = "frit does not search the web"),
};

static const server_field completion_fields[] = {
    GENERATION_FIELDS,
    {"prompt", FIELD_CUSTOM, .parse = parse_prompt},
    {"max_tokens", FIELD_INT, .offset = AT(max_tokens), .min = -1, .max = INT32_MAX, .fallback = 16},
    {"heal", FIELD_BOOL, .offset = AT(heals)},
    {"logprobs", FIELD_CUSTOM, .parse = parse_logprobs},
    {"echo", FIELD_BOOL, .offset = AT(echo)},
    {"prompt_logprobs", FIELD_CUSTOM, .parse = parse_prompt_logprobs},
    {"best_of", FIELD_INT, .offset = AT(best_of), .min = 1, .max = SERVER_MAX_CHOICES},
    {"suffix", FIELD_CUSTOM, .parse = parse_suffix},
};

// llama.cpp's /completion and /infill.
static const server_field native_fields[] = {
    GENERATION_FIELDS,
    {"prompt", FIELD_CUSTOM, .parse = parse_prompt},
    {"n_predict", FIELD_INT, .offset = AT(max_tokens), .min = -1, .max = INT32_MAX, .fallback = -1},
    {"n_probs", FIELD_CUSTOM, .parse = parse_n_probs},
    {"input_prefix", FIELD_CUSTOM, .parse = parse_input_prefix},
    {"input_suffix", FIELD_CUSTOM, .parse = parse_input_suffix},
    {"input_extra", FIELD_CUSTOM, .parse = parse_input_extra},
    ELSEWHERE("n_keep"), ELSEWHERE("n_discard"),
    LATER("n_indent", .harmless = "0", .why = SAMPLER_LATER),
    LATER("min_keep", .harmless = "0", .why = SAMPLER_LATER),
    {"t_max_predict_ms", FIELD_INT, .offset = AT(max_ms), .min = -1, .max = INT32_MAX},
    LATER("t_max_prompt_ms", .harmless = "0|-1", .why = "close the connection instead"),
    {"return_tokens", FIELD_BOOL, .offset = AT(wants_ids)},
    LATER("post_sampling_probs", .harmless = "false", .why = "probabilities are those of the model"),
    {"response_fields", FIELD_CUSTOM, .parse = parse_members},
    LATER("n_cmpl", .harmless = "1", .why = "one answer is given for each request"),
};
// clang-format on

static const server_field adapters_fields[] = {
    {"model", FIELD_TEXT, .offset = AT(model)},
    {"lora", FIELD_CUSTOM, .parse = server_parse_lora},
};

#undef AT

const server_parser server_adapters_parser = {.fields = adapters_fields,
                                              .n_fields = COUNT(adapters_fields),
                                              .n_bytes = sizeof(server_generation),
                                              .clear = server_clear_generation,
                                              .list = "lora"};
const server_parser server_chat_parser = {.fields = chat_fields,
                                          .n_fields = COUNT(chat_fields),
                                          .n_bytes = sizeof(server_generation),
                                          .clear = server_clear_generation,
                                          .sampler = offsetof(server_generation, sampler)};
const server_parser server_completion_parser = {.fields = completion_fields,
                                                .n_fields = COUNT(completion_fields),
                                                .n_bytes = sizeof(server_generation),
                                                .clear = server_clear_generation,
                                                .sampler = offsetof(server_generation, sampler)};
const server_parser server_native_parser = {.fields = native_fields,
                                            .n_fields = COUNT(native_fields),
                                            .n_bytes = sizeof(server_generation),
                                            .clear = server_clear_generation,
                                            .sampler = offsetof(server_generation, sampler)};

// ---------------------------------------------------------------------------------------- to tokens

// A failure without a field is the template's own.
static void refuse_turn(const server_body *body, server_problem *problem, frit_status status)
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

frit_turn *server_turn(const frit_model *model, const server_body *body, server_problem *problem)
{
    frit_turn *turn;
    frit_status status = frit_turn_new(&turn, model, body->text, body->n_text);
    if (status != FRIT_OK) refuse_turn(body, problem, status);
    return turn;
}

typedef struct plain_text {   // or a turn
    const frit_model *model;
    const frit_turn *turn;
    const char *text;
    size_t n_bytes;
    unsigned flags;
    const frit_tokenize_limits *limits;
    size_t n_free;   // positions of the context that the limit leaves out
} plain_text;

// What gives the tokens of a text or of a turn: functions of frit.h with their two-call pattern.
typedef frit_status (*tokens_fn)(const plain_text *source, frit_token *tokens, size_t capacity, size_t *n_tokens);

bool server_refuse_length(server_problem *problem, const char *param, size_t n_ctx, size_t n_tokens, bool at_least)
{
    return server_refuse(problem, 400, "context_length_exceeded", param,
                         "This model's maximum context length is %zu tokens. However, your %s has %s%zu tokens.", n_ctx,
                         strcmp(param, "input") == 0 ? "input" : "prompt", at_least ? "at least " : "", n_tokens);
}

// A text of so many bytes has fewer tokens, mostly; and no more than the limit are wanted.
static frit_token *give_tokens(tokens_fn give, const plain_text *source, const char *param, size_t *n_tokens,
                               server_problem *problem)
{
    const size_t most = source->limits->max_tokens;
    frit_status status = FRIT_E_LIMIT;
    *n_tokens = source->n_bytes / 2 + 16;
    if (most > 0 && *n_tokens > most) *n_tokens = most;
    for (size_t capacity = 0; status == FRIT_E_LIMIT && *n_tokens > capacity && (most == 0 || *n_tokens <= most);) {
        capacity = *n_tokens;
        frit_token *tokens = malloc(capacity * sizeof *tokens);
        status = tokens ? give(source, tokens, capacity, n_tokens) : FRIT_E_MEMORY;
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

static frit_status text_tokens(const plain_text *source, frit_token *tokens, size_t capacity, size_t *n_tokens)
{
    return frit_tokenize_within(source->model, source->text, source->n_bytes, source->flags, source->limits, tokens,
                                capacity, n_tokens);
}

frit_token *server_tokens(const frit_model *model, const char *text, size_t n_bytes, unsigned flags,
                          const frit_tokenize_limits *limits, size_t *n_tokens, server_problem *problem)
{
    const plain_text source = {.model = model, .text = text, .n_bytes = n_bytes, .flags = flags, .limits = limits};
    return give_tokens(text_tokens, &source, "input", n_tokens, problem);
}

static frit_status turn_tokens(const plain_text *source, frit_token *tokens, size_t capacity, size_t *n_tokens)
{
    return frit_turn_tokenize(source->turn, source->limits, tokens, capacity, n_tokens);
}

// The prompt of a chat or a text, of which one position must stay free.
static frit_token *prompt_tokens(const frit_model *model, const server_generation *request,
                                 const frit_tokenize_limits *limits, size_t *n_tokens, server_problem *problem)
{
    plain_text source = {.model = model, .turn = request->turn, .limits = limits, .n_free = 1};
    source.flags = FRIT_TEXT_SPECIAL | FRIT_TEXT_PARSE_SPECIAL;
    source.text = request->text;
    source.n_bytes = request->n_text;
    if (request->turn) frit_turn_prompt(request->turn, &source.n_bytes);
    const server_field_name field = server_body_field(&request->body, request->turn ? "messages" : "prompt");
    return give_tokens(request->turn ? turn_tokens : text_tokens, &source, field.text, n_tokens, problem);
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

static bool check_prompt(const frit_model *model, const frit_token *tokens, size_t n,
                         const frit_tokenize_limits *limits, const char *param, server_problem *problem)
{
    frit_model_info info;
    frit_model_get_info(model, &info);
    for (size_t i = 0; i < n; i++)
        if (tokens[i] >= info.n_vocab)
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
    if (chat) request->turn = server_turn(model, &request->body, problem);
    if (chat && !request->turn) return false;
    if (request->ids && !chat) {
        *tokens = malloc((request->n_ids + 1) * sizeof **tokens);
        if (!*tokens) return no_memory(problem);
        memcpy(*tokens, request->ids, request->n_ids * sizeof **tokens);
        *n_tokens = request->n_ids;
    } else if (chat || request->text) {
        *tokens = prompt_tokens(model, request, limits, n_tokens, problem);
    } else {
        return server_refuse(problem, 400, "missing_required_parameter", param, "prompt: is missing");
    }
    if (!*tokens) return false;
    if (check_prompt(model, *tokens, *n_tokens, limits, param, problem)) return true;
    free(*tokens);
    *tokens = NULL;
    return false;
}
