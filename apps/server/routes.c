// SPDX-License-Identifier: MIT
// The routes and their handlers.
#include "server/grammars.h"
#include "server/routes.h"

#include "server/embeddings.h"
#include "server/openai.h"
#include "server/prediction.h"
#include "server/request.h"
#include "server/rerank.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void no_memory(server_exchange *exchange)
{
    server_refuse_status(&exchange->problem, 500, NULL, FRIT_E_MEMORY);
}

// Takes the reply over.
static void reply(server_exchange *exchange, json_t *json)
{
    exchange->reply = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (!exchange->reply) no_memory(exchange);
}

frit_tokenize_limits server_exchange_limits(const server_exchange *exchange, size_t max_tokens)
{
    return (frit_tokenize_limits){.max_tokens = max_tokens, .cancelled = exchange->cancelled, .ctx = exchange->ctx};
}

// ---------------------------------------------------------------------------------------- models and health

static bool is_model(const server_site *site, const char *name)
{
    for (size_t i = 0; name && i < site->aliases.n; i++)
        if (strcmp(name, site->aliases.items[i]) == 0) return true;
    return !name || !*name || strcmp(name, site->stem) == 0 || strcmp(name, "default") == 0;
}

// 'one', 'two': the names that /v1/models lists, as many as have room.
static void write_names(const server_site *site, char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, "'%.200s'", site->name);
    for (size_t i = 1; i < site->aliases.n && at < size; i++) {
        const int n = snprintf(out + at, size - at, ", '%.200s'", site->aliases.items[i]);
        if ((size_t)n >= size - at) {
            out[at] = 0;   // no half name
            return;
        }
        at += (size_t)n;
    }
}

static bool check_model(server_exchange *exchange, const char *name)
{
    char names[400];
    if (is_model(exchange->site, name)) return true;
    write_names(exchange->site, names, sizeof names);
    return server_refuse(&exchange->problem, 404, "model_not_found", "model",
                         "The model '%.200s' does not exist; this server has %s.", name, names);
}

static json_t *model_json(const server_site *site, const char *name)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:{s:i, s:i, s:I, s:I, s:s}}", "id", name, "object", "model", "created",
                     (json_int_t)site->started, "owned_by", "frit", "meta", "n_ctx", (int)site->n_ctx, "n_vocab",
                     (int)site->model_info.n_vocab, "n_params", (json_int_t)site->model_info.n_params, "size",
                     (json_int_t)site->model_info.n_bytes, "architecture", site->model_info.architecture);
}

static void list_models(server_exchange *exchange)
{
    const server_site *site = exchange->site;
    json_t *list = json_array();
    for (size_t i = 0; i < site->aliases.n; i++) json_array_append_new(list, model_json(site, site->aliases.items[i]));
    if (site->aliases.n == 0) json_array_append_new(list, model_json(site, site->name));
    reply(exchange, json_pack("{s:s, s:o}", "object", "list", "data", list));
}

static void show_model(server_exchange *exchange)
{
    const char *name = exchange->rest, *own = exchange->site->name;
    if (check_model(exchange, name)) reply(exchange, model_json(exchange->site, strcmp(name, "default") ? name : own));
}

static void list_adapters(server_exchange *exchange)
{
    const server_adapters *adapters = &exchange->site->adapters;
    json_t *list = json_array();
    for (size_t i = 0; i < adapters->n; i++) {
        frit_adapter_info info;
        frit_adapter_get_info(adapters->items[i], &info);
        json_array_append_new(list, json_pack("{s:i, s:s, s:s, s:f}", "id", (int)i, "path", info.path, "kind",
                                              info.kind, "scale", (double)adapters->scales[i]));
    }
    reply(exchange, list);
}

static void show_health(server_exchange *exchange)
{
    server_load load = server_worker_load(exchange->site->worker);
    reply(exchange, json_pack("{s:s, s:i, s:i, s:i}", "status", "ok", "sessions", (int)load.n_sessions, "running",
                              (int)load.n_running, "waiting", (int)load.n_waiting));
}

// ---------------------------------------------------------------------------------------- generation

// Requests without a seed differ from each other, and depend on the server's seed alone.
static uint64_t next_seed(uint64_t seed)
{
    static _Atomic uint64_t counter;
    return seed + 0x9e3779b97f4a7c15u * (atomic_fetch_add(&counter, 1) + 1);
}

// One that is named twice has the last scale.
static bool choose_adapters(const server_site *site, const server_generation *request, server_job *job,
                            server_problem *problem)
{
    if (!request->lora) return true;
    job->scales = calloc(site->adapters.n + 1, sizeof *job->scales);
    if (!job->scales) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    for (size_t i = 0; i < request->n_lora; i++) {
        const server_chosen *chosen = &request->lora[i];
        if ((size_t)chosen->id >= site->adapters.n)
            return server_refuse(problem, 400, "invalid_value", "lora",
                                 "lora[%zu].id is %d, this server has %zu adapters, from 0 on", i, (int)chosen->id,
                                 site->adapters.n);
        job->scales[chosen->id] = chosen->scale;
    }
    return true;
}

// Callers with different keys, and requests with different salts, cannot tell what others have asked.
static bool set_salt(const server_exchange *exchange, const char *salt, server_job *job)
{
    const size_t n = (salt ? strlen(salt) : 0) + 32;
    if (exchange->key == 0 && !salt) return true;
    job->salt = malloc(n);
    if (job->salt) snprintf(job->salt, n, "%zu:%s", exchange->key, salt ? salt : "");
    return job->salt != NULL;
}

// What the answer may be. NULL with a problem, or without one: anything.
static frit_grammar *compile_grammar(const server_site *site, const server_generation *request, bool chat,
                                     server_problem *problem)
{
    if (!chat)
        return server_grammars_get(site->grammars, site->model, request->format_kind, request->format,
                                   request->n_format, request->format_param, problem);
    const frit_turn_grammar_options options = {.format = request->format_param ? request->format : NULL,
                                               .n_format = request->n_format,
                                               .kind = request->format_kind,
                                               .one_call = !request->parallel_calls};
    return server_grammars_get_turn(site->grammars, request->turn, request->body.root, &options, request->format_param,
                                    problem);
}

// Whether the answer may need a grammar, which is compiled while the prompt runs.
static bool check_grammar(const server_generation *request, bool chat, server_job *job, server_problem *problem)
{
    if (request->format_param && request->heals)
        return server_refuse(problem, 400, "unsupported_parameter", request->format_param,
                             "%s: is not supported together with heal", request->format_param);
    job->awaits_grammar = request->format_param || (chat && json_object_get(request->body.root, "tools"));
    return true;
}

// The field that a sampler's refusal is about: its sentence begins with the option's name.
static const char *sampler_field(void)
{
    static const char *const names[][2] = {{"logit-bias", "logit_bias"},
                                           {"samplers", "samplers"},
                                           {"sampler-seq", "samplers"},
                                           {"dry-sequence-breaker", "dry_sequence_breakers"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(frit_error(), names[i][0], strlen(names[i][0])) == 0) return names[i][1];
    return NULL;
}

// The other answers of a request with n of them: the same prompt, and seeds that follow.
static bool make_part(const server_site *site, const server_generation *request, server_job *first, int32_t index,
                      server_problem *problem)
{
    server_job *job = server_job_new();
    if (!job) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    job->first = first;
    job->next_part = first->parts;
    first->parts = job;
    job->n_prompt = first->n_prompt;
    job->continues = first->continues;
    job->heals = first->heals;
    job->echoes = first->echoes;
    job->max_tokens = first->max_tokens;
    job->n_top = first->n_top;
    job->awaits_grammar = first->awaits_grammar;
    job->prompt = malloc((first->n_prompt + 1) * sizeof *job->prompt);
    if (first->scales) job->scales = malloc((site->adapters.n + 1) * sizeof *job->scales);
    if (!job->prompt || (first->scales && !job->scales)) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    memcpy(job->prompt, first->prompt, first->n_prompt * sizeof *job->prompt);
    if (first->scales) memcpy(job->scales, first->scales, (site->adapters.n + 1) * sizeof *job->scales);
    if (request->turn && !(job->turn = server_turn(site->model, &request->body, problem))) return false;
    frit_sampler_options sampler = request->sampler;
    sampler.seed += (uint64_t)index;
    const frit_status status = frit_sampler_new(&job->sampler, site->model, &sampler);
    return status == FRIT_OK || server_refuse_status(problem, 400, sampler_field(), status);
}

static bool attach_parts(server_job *first)
{
    int index = 1;
    for (server_job *job = first->parts; job; job = job->next_part)
        if (!openai_answer_attach_part(job, first, index++)) return false;
    return true;
}

static bool make_job(server_exchange *exchange, server_generation *request, bool chat)
{
    const server_site *site = exchange->site;
    server_problem *problem = &exchange->problem;
    server_job *job = exchange->job = server_job_new();
    if (!job) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    job->continues = !chat;
    if (!choose_adapters(site, request, job, problem)) return false;
    if (!set_salt(exchange, request->cache_salt, job)) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    job->heals = request->heals;
    job->echoes = request->echo;
    if (request->echo && request->heals)
        return server_refuse(problem, 400, "unsupported_parameter", "echo",
                             "echo: a prompt that is healed cannot be echoed");
    if (request->echo && site->model_info.kind == FRIT_KIND_ENCODER_DECODER)
        return server_refuse(problem, 400, "unsupported_parameter", "echo",
                             "echo: the model turns one text into another; its answer does not continue the prompt");
    const frit_tokenize_limits limits = server_exchange_limits(exchange, (size_t)site->n_ctx - 1);
    if (!server_prompt_tokens(site->model, request, chat, &limits, &job->prompt, &job->n_prompt, problem)) return false;
    job->prediction = server_prediction_tokens(site->model, request, &limits, &job->n_prediction);
    request->sampler.seed = request->has_seed ? request->seed : next_seed(site->sampling.seed);
    frit_status status = frit_sampler_new(&job->sampler, site->model, &request->sampler);
    if (status != FRIT_OK) return server_refuse_status(problem, 400, sampler_field(), status);
    if (!check_grammar(request, chat, job, problem)) return false;
    const bool is_set = request->max_completion_tokens != SERVER_UNSET;
    job->max_tokens = is_set ? request->max_completion_tokens : request->max_tokens;
    job->n_top = request->wants_logprobs ? request->n_top : -1;
    exchange->stream = request->stream;
    for (int32_t i = request->n_choices - 1; i > 0; i--)
        if (!make_part(site, request, job, i, problem)) return false;
    if (openai_answer_attach(job, chat, request, site->model, site->name) && attach_parts(job)) return true;
    return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
}

static void generate(server_exchange *exchange, bool chat)
{
    server_generation *request = exchange->request;
    if (!check_model(exchange, request->model)) return;
    if (exchange->site->model_info.kind == FRIT_KIND_ENCODER) {
        server_refuse(&exchange->problem, 400, "unsupported_model", "model",
                      "'%.200s' is an encoder: it gives embeddings (/v1/embeddings) and generates no text.",
                      exchange->site->name);
        return;
    }
    if (exchange->site->model_info.kind == FRIT_KIND_ENCODER_DECODER && chat) {
        server_refuse(&exchange->problem, 400, "unsupported_model", "model",
                      "'%.200s' turns one text into another and does not chat: use /v1/completions.",
                      exchange->site->name);
        return;
    }
    // The job takes what the request points to, and lives as long as the exchange.
    server_generation kept = *request;
    if (!make_job(exchange, request, chat)) {
        server_job_release(NULL, exchange->job);
        exchange->job = NULL;
        return;
    }
    if (!exchange->job->awaits_grammar || !exchange->submit(exchange)) return;
    kept.turn = exchange->job->turn;
    server_problem problem = {0};
    frit_grammar *grammar = compile_grammar(exchange->site, &kept, chat, &problem);
    server_worker_give_grammar(exchange->site->worker, exchange->job, grammar, problem.status ? &problem : NULL);
}

static void complete_chat(server_exchange *exchange)
{
    generate(exchange, true);
}

static void complete_text(server_exchange *exchange)
{
    generate(exchange, false);
}

static void embed(server_exchange *exchange)
{
    const server_embedding *request = exchange->request;
    if (check_model(exchange, request->model)) exchange->job = server_embeddings_job(exchange, request);
}

static void rerank(server_exchange *exchange)
{
    const server_rerank *request = exchange->request;
    if (check_model(exchange, request->model)) exchange->job = server_rerank_job(exchange, request);
}

// ---------------------------------------------------------------------------------------- text

static void tokenize(server_exchange *exchange)
{
    const server_text_request *request = exchange->request;
    const frit_model *model = exchange->site->model;
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
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *id = json_integer(tokens[i]);
        json_array_append_new(
            list, request->with_pieces ? json_pack("{s:o, s:o}", "id", id, "piece", server_piece_json(model, tokens[i]))
                                       : id);
    }
    free(tokens);
    reply(exchange, json_pack("{s:o, s:I}", "tokens", list, "count", (json_int_t)n));
}

// Through a stream, so that what is no UTF-8 becomes U+FFFD.
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
        if (*n_out + n > capacity) {
            capacity = 2 * (*n_out + n);
            char *grown = realloc(*out, capacity);
            if (!grown) {
                status = FRIT_E_MEMORY;
                break;
            }
            *out = grown;
        }
        memcpy(*out + *n_out, text, n);
        *n_out += n;
    }
    frit_text_stream_free(stream);
    return status;
}

static void detokenize(server_exchange *exchange)
{
    const server_text_request *request = exchange->request;
    if (!request->ids) {
        server_refuse(&exchange->problem, 400, "missing_required_parameter", "tokens", "tokens: is missing");
        return;
    }
    char *text = NULL;
    size_t n = 0;
    frit_status status = join_tokens(exchange->site->model, request, &text, &n);
    if (status == FRIT_OK)
        reply(exchange, json_pack("{s:o}", "content", json_stringn(text ? text : "", n)));
    else
        server_refuse_status(&exchange->problem, 400, "tokens", status);
    free(text);
}

static void apply_template(server_exchange *exchange)
{
    const server_text_request *request = exchange->request;
    frit_turn *turn = server_turn(exchange->site->model, &request->body, &exchange->problem);
    if (!turn) return;
    size_t n;
    const char *text = frit_turn_prompt(turn, &n);
    json_t *json = json_stringn(text, n);
    frit_turn_free(turn);
    if (json)
        reply(exchange, json_pack("{s:o}", "prompt", json));
    else
        server_refuse(&exchange->problem, 500, NULL, NULL, "the template wrote bytes that are no UTF-8");
}

// ---------------------------------------------------------------------------------------- the table

// clang-format off
static const server_route routes[] = {
    {"POST", "/chat/completions", &server_chat_parser,       complete_chat,  true},
    {"POST", "/completions",      &server_completion_parser, complete_text,  true},
    {"POST", "/embeddings",       &server_embedding_parser,  embed,          true},
    {"POST", "/rerank",           &server_rerank_parser,     rerank,         true},
    {"POST", "/reranking",        &server_rerank_parser,     rerank,         true},
    {"GET",  "/models",           NULL,                      list_models,    true},
    {"GET",  "/models/*",         NULL,                      show_model,     true},
    {"GET",  "/lora-adapters",    NULL,                      list_adapters,  true},
    {"POST", "/tokenize",         &server_tokenize_parser,   tokenize,       true},
    {"POST", "/detokenize",       &server_detokenize_parser, detokenize,     true},
    {"POST", "/apply-template",   &server_template_parser,   apply_template, true},
    {"GET",  "/health",           NULL,                      show_health,    false},
};
// clang-format on

static bool matches(const char *pattern, const char *path, const char **rest)
{
    size_t n = strcspn(pattern, "*");
    if (strncmp(pattern, path, n) != 0) return false;
    *rest = path + n;
    return pattern[n] ? path[n] != 0 : path[n] == 0;
}

const server_route *server_route_find(const char *method, const char *path, const char **rest, char allow[64],
                                      server_problem *problem)
{
    const char *local = strncmp(path, "/v1/", 4) == 0 ? path + 3 : path;
    if (strcmp(method, "HEAD") == 0) method = "GET";
    size_t n = 0;
    allow[0] = 0;
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (!matches(routes[i].path, local, rest)) continue;
        if (strcmp(routes[i].method, method) == 0) return &routes[i];
        n += (size_t)snprintf(allow + n, 64 - n, "%s%s", n ? ", " : "", routes[i].method);
    }
    if (n > 0)
        server_refuse(problem, 405, "method_not_allowed", NULL, "%.16s is not possible here, only %s", method, allow);
    else
        server_refuse(problem, 404, "not_found", NULL, "there is no %.200s", path);
    return NULL;
}

void server_route_run(const server_route *route, server_exchange *exchange, const char *body, size_t n_body)
{
    const server_parser *parser = route->parser;
    if (!parser) {
        route->handle(exchange);
        return;
    }
    exchange->request = calloc(1, parser->n_bytes);
    if (!exchange->request) {
        no_memory(exchange);
        return;
    }
    if (parser->sampler)
        *(frit_sampler_options *)((char *)exchange->request + parser->sampler) = exchange->site->sampling;
    server_problem *problem = &exchange->problem;
    if (server_parse(parser, body, n_body, exchange->request, problem) &&
        (!exchange->site->strict_fields || server_parse_strictly(parser, exchange->request, problem)))
        route->handle(exchange);
    server_parser_clear(parser, exchange->request);
    free(exchange->request);
    exchange->request = NULL;
}
