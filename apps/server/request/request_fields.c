// SPDX-License-Identifier: MIT
// The tables of fields of chats, completions and llama.cpp's paths, and the fields of sampling and log-probabilities.
#include "server/request/request.h"

#include "server/api/logprobs.h"
#include "server/request/prediction.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
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
    request->sampling.seed = (uint64_t)seed;
    request->sampling.has_seed = text || seed != -1;
    errno = 0;
    if (text) request->sampling.seed = strtoull(text, NULL, 10);
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
        return server_refuse(problem, 400, "invalid_value", param,
                             "%s: has an empty string, which would stop every text", param);
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
    free((void *)request->limits.stop.items);
    request->limits.stop = (frit_option_list){items, 0};
    bool good = true;
    for (size_t i = 0; i < n && good; i++)
        good = add_stop(items, &request->limits.stop.n, json_is_array(value) ? json_array_get(value, i) : value, param,
                        problem);
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
    request->stream.include_usage = json_is_true(usage);
    request->stream.pads = json_is_true(padding);
    return true;
}

static bool is_text(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && strlen(text) == json_string_length(value);
}

// A list of the stages' names, or a string with a letter for each stage: ["top_k", "temperature"] or "kt".
static bool parse_samplers(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    const size_t n = json_array_size(value);
    size_t length = 1, end = 0;
    if (is_text(value)) {
        request->sampling.options.sampler_seq = json_string_value(value);
        return true;
    }
    for (size_t i = 0; i < n; i++) length += json_string_length(json_array_get(value, i)) + 1;
    request->sampling.order = calloc(length, 1);
    if (!request->sampling.order) return no_memory(problem);
    for (size_t i = 0; i < n || !json_is_array(value); i++) {
        const json_t *name = json_array_get(value, i);
        if (!is_text(name) || strpbrk(json_string_value(name), ",;"))
            return server_refuse(problem, 400, "invalid_type", "samplers",
                                 "samplers: expected a list of names of stages, or their letters");
        if (i > 0) request->sampling.order[end++] = ',';
        memcpy(request->sampling.order + end, json_string_value(name), json_string_length(name));
        end += json_string_length(name);
    }
    request->sampling.options.samplers = request->sampling.order;
    request->sampling.options.sampler_seq = NULL;
    return true;
}

static bool parse_breakers(json_t *value, void *ctx, server_problem *problem)
{
    static const char *const none[] = {"none"};
    server_generation *request = ctx;
    const size_t n = json_array_size(value);
    const char **items = calloc(n + 1, sizeof *items);
    if (!items) return no_memory(problem);
    request->sampling.breakers.items = items;
    for (size_t i = 0; i < n || !json_is_array(value); i++) {
        if (!is_text(json_array_get(value, i)))
            return server_refuse(problem, 400, "invalid_type", "dry_sequence_breakers",
                                 "dry_sequence_breakers: expected a list of strings without zero characters");
        items[i] = json_string_value(json_array_get(value, i));
    }
    request->sampling.options.dry_breakers = n > 0 ? (frit_option_list){items, n} : (frit_option_list){none, 1};
    return true;
}

static bool parse_penalize_nl(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    if (!json_is_boolean(value))
        return server_refuse(problem, 400, "invalid_type", "penalize_nl", "penalize_nl: expected true or false");
    return frit_sampler_set_option(&request->sampling.options, "no-penalize-nl",
                                   json_is_true(value) ? "false" : "true") == FRIT_OK;
}

// [{"id": 0, "scale": 0.5}, ...]. Adapters that the list does not name get the scale 0.
bool server_parse_lora(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    const size_t n = json_array_size(value);
    if (!json_is_array(value) || n > SERVER_MAX_LORA)
        return server_refuse(problem, 400, "invalid_type", "lora",
                             "lora: expected a list of at most %d objects with id and scale", SERVER_MAX_LORA);
    request->scheduling.lora = calloc(n + 1, sizeof *request->scheduling.lora);
    if (!request->scheduling.lora) return no_memory(problem);
    for (request->scheduling.n_lora = 0; request->scheduling.n_lora < n; request->scheduling.n_lora++) {
        const json_t *item = json_array_get(value, request->scheduling.n_lora), *scale = json_object_get(item, "scale");
        json_int_t id;
        if (!server_integer(json_object_get(item, "id"), &id) || id < 0 || id > INT32_MAX)
            return server_refuse(problem, 400, "invalid_value", "lora",
                                 "lora[%zu].id: expected the number of an adapter", request->scheduling.n_lora);
        if (scale && (!json_is_number(scale) || !(fabs(json_number_value(scale)) <= 1e6)))
            return server_refuse(problem, 400, "invalid_value", "lora", "lora[%zu].scale: expected a number",
                                 request->scheduling.n_lora);
        request->scheduling.lora[request->scheduling.n_lora] =
            (server_chosen){(int32_t)id, scale ? (float)json_number_value(scale) : 1};
    }
    return true;
}

// ---------------------------------------------------------------------------------------- log-probabilities

static bool read_logprobs(server_generation *request, const json_t *value, const char *param, server_problem *problem)
{
    json_int_t n;
    if (!server_integer(value, &n))
        return server_refuse(problem, 400, "invalid_type", param, "%s: expected an integer", param);
    if (n < 0 || n > SERVER_MAX_TOP)
        return server_refuse(problem, 400, "invalid_value", param, "%s: %lld is outside of 0 to %d", param,
                             (long long)n, SERVER_MAX_TOP);
    request->contents.wants_logprobs = true;
    request->contents.n_top = (int32_t)n;
    return true;
}

// The field of completions is a number; chats have a boolean and top_logprobs.
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
    if (json_array_size(value) > 0) request->contents.members = value;
    return true;
}

// vLLM's field. Its -1, for the whole vocabulary, is refused.
static bool parse_prompt_logprobs(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    json_int_t n;
    const bool is_whole = server_integer(value, &n);
    if (json_is_false(value)) return true;
    if (!is_whole || n < 0 || n > SERVER_MAX_TOP)
        return server_refuse(problem, 400, is_whole ? "invalid_value" : "invalid_type", "prompt_logprobs",
                             "prompt_logprobs: expected an integer from 0 to %d", SERVER_MAX_TOP);
    request->contents.wants_prompt_logprobs = true;
    request->contents.n_prompt_top = (int32_t)n;
    return true;
}

// 0 turns log-probabilities off, as in llama.cpp.
static bool parse_n_probs(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    if (!read_logprobs(request, value, "n_probs", problem)) return false;
    request->contents.wants_logprobs = request->contents.n_top > 0;
    return true;
}

// ---------------------------------------------------------------------------------------- the tables

#define AT(field) offsetof(server_generation, field)
#define SAMPLER(name, option)                                              \
    {                                                                      \
        name, FIELD_SAMPLER, .offset = AT(sampling.options), .row = option \
    }
#define LATER     SERVER_FIELD_REFUSED
#define ELSEWHERE SERVER_FIELD_ELSEWHERE

#define OLD_TOOLS     "it is an old form; use tools and tool_choice"
#define SAMPLER_LATER "it comes with a later version"
#define NO_BEAMS      "the server samples; 'frit run --beams N' searches"

// clang-format off
// The fields of chats and of completions.
#define GENERATION_FIELDS                                                                                         \
    {"model", FIELD_TEXT, .offset = AT(model)},                                                                   \
    {"stream", FIELD_BOOL, .offset = AT(stream.is_wanted)},                                                       \
    {"stream_options", FIELD_CUSTOM, .parse = server_parse_stream_options},                                       \
    {"sse_ping_interval", FIELD_INT, .offset = AT(stream.keep_alive_s), .min = -1, .max = 86400},                 \
    {"return_progress", FIELD_BOOL, .offset = AT(stream.wants_progress)},                                         \
    {"seed", FIELD_CUSTOM, .parse = server_parse_seed},                                                           \
    {"id_slot", FIELD_CUSTOM, .parse = server_parse_slot},                                                        \
    {"cache_salt", FIELD_TEXT, .offset = AT(scheduling.cache_salt)},                                              \
    {"priority", FIELD_CUSTOM, .parse = server_parse_priority},                                                   \
    {"stop", FIELD_CUSTOM, .parse = parse_stop},                                                                  \
    {"logit_bias", FIELD_CUSTOM, .parse = server_parse_logit_bias},                                               \
    {"lora", FIELD_CUSTOM, .parse = server_parse_lora},                                                           \
    {"prediction", FIELD_CUSTOM, .parse = server_parse_prediction},                                               \
    SAMPLER("temperature", "temp"),                                                                               \
    SAMPLER("repetition_penalty", "repeat-penalty"),                                                              \
    ELSEWHERE("user"), ELSEWHERE("store"), ELSEWHERE("metadata"), ELSEWHERE("service_tier"),                      \
    ELSEWHERE("safety_identifier"), ELSEWHERE("prompt_cache_key"), ELSEWHERE("cache_prompt"),                     \
    {"samplers", FIELD_CUSTOM, .parse = parse_samplers},                                                          \
    {"dry_sequence_breakers", FIELD_CUSTOM, .parse = parse_breakers},                                             \
    {"penalize_nl", FIELD_CUSTOM, .parse = parse_penalize_nl},                                                    \
    {"min_tokens", FIELD_INT, .offset = AT(limits.min_tokens), .min = 0, .max = INT32_MAX},                       \
    {"ignore_eos", FIELD_BOOL, .offset = AT(limits.ignores_end)},                                                 \
    {"timings_per_token", FIELD_BOOL, .offset = AT(contents.wants_timings)},                                      \
    LATER("use_beam_search", .harmless = "false", .why = NO_BEAMS),                                               \
    {"guided_json", FIELD_CUSTOM, .parse = server_parse_guided_json},                                             \
    {"guided_regex", FIELD_CUSTOM, .parse = server_parse_guided_regex},                                           \
    {"guided_grammar", FIELD_CUSTOM, .parse = server_parse_guided_grammar},                                       \
    {"guided_choice", FIELD_CUSTOM, .parse = server_parse_guided_choice},                                         \
    {"structured_outputs", FIELD_CUSTOM, .parse = server_parse_structured_outputs},                               \
    {"max_completion_tokens", FIELD_INT, .offset = AT(limits.max_completion_tokens), .min = -1, .max = INT32_MAX, \
     .fallback = SERVER_UNSET},                                                                                   \
    {"n", FIELD_INT, .offset = AT(choices.n), .min = 1, .max = SERVER_MAX_CHOICES, .fallback = 1},                \
    {"grammar", FIELD_CUSTOM, .parse = server_parse_grammar},                                                     \
    {"json_schema", FIELD_CUSTOM, .parse = server_parse_json_schema},                                             \
    {"regex", FIELD_CUSTOM, .parse = server_parse_regex},                                                         \
    {"open_objects", FIELD_BOOL, .offset = AT(format.open_objects)},                                              \
    {"response_format", FIELD_CUSTOM, .parse = server_parse_response_format}

static const server_field chat_fields[] = {
    GENERATION_FIELDS,
    {"max_tokens", FIELD_INT, .offset = AT(limits.max_tokens), .min = -1, .max = INT32_MAX, .fallback = -1},
    ELSEWHERE("messages"), ELSEWHERE("tools"), ELSEWHERE("tool_choice"), ELSEWHERE("chat_template_kwargs"),
    ELSEWHERE("reasoning_effort"), ELSEWHERE("add_generation_prompt"), ELSEWHERE("continue_final_message"),
    ELSEWHERE("verbosity"),
    {"logprobs", FIELD_BOOL, .offset = AT(contents.wants_logprobs)},
    {"top_logprobs", FIELD_INT, .offset = AT(contents.n_top), .min = 0, .max = SERVER_MAX_TOP},
    {"parallel_tool_calls", FIELD_BOOL, .offset = AT(format.parallel_calls), .fallback = 1},
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
    {"prompt", FIELD_CUSTOM, .parse = server_parse_prompt},
    {"max_tokens", FIELD_INT, .offset = AT(limits.max_tokens), .min = -1, .max = INT32_MAX, .fallback = 16},
    {"heal", FIELD_BOOL, .offset = AT(prompt.heals)},
    {"logprobs", FIELD_CUSTOM, .parse = parse_logprobs},
    {"echo", FIELD_BOOL, .offset = AT(contents.echo)},
    {"prompt_logprobs", FIELD_CUSTOM, .parse = parse_prompt_logprobs},
    {"best_of", FIELD_INT, .offset = AT(choices.best_of), .min = 1, .max = SERVER_MAX_CHOICES},
    {"suffix", FIELD_CUSTOM, .parse = server_parse_suffix},
};

// The fields of llama.cpp's /completion and /infill.
static const server_field native_fields[] = {
    GENERATION_FIELDS,
    {"prompt", FIELD_CUSTOM, .parse = server_parse_prompt},
    {"n_predict", FIELD_INT, .offset = AT(limits.max_tokens), .min = -1, .max = INT32_MAX, .fallback = -1},
    {"n_probs", FIELD_CUSTOM, .parse = parse_n_probs},
    {"input_prefix", FIELD_CUSTOM, .parse = server_parse_input_prefix},
    {"input_suffix", FIELD_CUSTOM, .parse = server_parse_input_suffix},
    {"input_extra", FIELD_CUSTOM, .parse = server_parse_input_extra},
    ELSEWHERE("n_keep"), ELSEWHERE("n_discard"),
    LATER("n_indent", .harmless = "0", .why = SAMPLER_LATER),
    LATER("min_keep", .harmless = "0", .why = SAMPLER_LATER),
    {"t_max_predict_ms", FIELD_INT, .offset = AT(limits.max_ms), .min = -1, .max = INT32_MAX},
    LATER("t_max_prompt_ms", .harmless = "0|-1", .why = "close the connection instead"),
    {"return_tokens", FIELD_BOOL, .offset = AT(contents.wants_ids)},
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
                                              .deinit = server_generation_deinit,
                                              .list = "lora"};
const server_parser server_chat_parser = {.fields = chat_fields,
                                          .n_fields = COUNT(chat_fields),
                                          .n_bytes = sizeof(server_generation),
                                          .deinit = server_generation_deinit,
                                          .convert = server_convert_chat_parts,
                                          .sampler = offsetof(server_generation, sampling.options)};
const server_parser server_completion_parser = {.fields = completion_fields,
                                                .n_fields = COUNT(completion_fields),
                                                .n_bytes = sizeof(server_generation),
                                                .deinit = server_generation_deinit,
                                                .sampler = offsetof(server_generation, sampling.options)};
const server_parser server_native_parser = {.fields = native_fields,
                                            .n_fields = COUNT(native_fields),
                                            .n_bytes = sizeof(server_generation),
                                            .deinit = server_generation_deinit,
                                            .sampler = offsetof(server_generation, sampling.options)};

void server_generation_deinit(void *ctx)
{
    server_generation *request = ctx;
    free((void *)request->limits.stop.items);
    server_free_biases(request);
    free(request->format.owned);
    free((void *)request->sampling.breakers.items);
    free(request->sampling.order);
    free(request->scheduling.lora);
    free(request->scheduling.prediction);
    free(request->prompt.ids);
    frit_turn_free(request->prompt.turn);
    server_pictures_free(request->prompt.pictures);
    if (request->extra) request->free_extra(request->extra);
}
