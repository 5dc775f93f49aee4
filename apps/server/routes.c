// SPDX-License-Identifier: MIT
// The table of routes: method, path, parser of the body (NULL: none), handler, true if a key is needed, protocol,
// summary for /openapi.json, kind of reply (server_route).
#include "server/routes.h"

#include "server/api/handlers.h"
#include "server/api/json_text.h"
#include "server/request/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

// clang-format off
static const server_route routes[] = {
    {"POST", "/v1/chat/completions", &server_chat_parser,       server_complete_chat,  true,  &server_openai_chat,
     "Answers a conversation", "object"},
    {"POST", "/v1/completions",      &server_completion_parser, server_complete_text,  true,  &server_openai_completion,
     "Continues a text or a list of tokens", "object"},
    {"POST", "/v1/messages",         &server_anthropic_parser,  server_complete_chat,  true,  &server_anthropic,
     "Answers a conversation, as Anthropic's Messages do", "object"},
    {"POST", "/v1/messages/count_tokens", &server_anthropic_parser, server_count_message_tokens, true,
     &server_anthropic, "Counts the tokens of a conversation", "object"},
    {"POST", "/v1/responses",        &server_responses_parser,  server_respond,        true,  &server_openai_responses,
     "Answers a conversation, as OpenAI's Responses do", "object"},
    {"GET",  "/v1/responses/*",      NULL,                      server_show_response,  true,  &server_openai_responses,
     "Gives a stored response", "object"},
    {"DELETE", "/v1/responses/*",    NULL,                      server_delete_response, true, &server_openai_responses,
     "Deletes a stored response", "object"},
    {"POST", "/v1/responses/*",      NULL,                      server_cancel_response, true, &server_openai_responses,
     "Ends a response that is made in the background (ID/cancel)", "object"},
    {"GET",  "/v1/stream/*",         NULL,                      server_show_stream,    true,  &server_openai,
     "Continues a stream whose request had X-Conversation-Id", "text"},
    {"DELETE", "/v1/stream/*",       NULL,                      server_delete_stream,  true,  &server_openai,
     "Ends a stream whose request had X-Conversation-Id", "object"},
    {"POST", "/v1/embeddings",       &server_embedding_parser,  server_embed,          true,  &server_openai,
     "Turns texts into vectors", "object"},
    {"POST", "/v1/rerank",           &server_rerank_parser,     server_rerank_texts,   true,  &server_openai,
     "Scores documents by a query", "object"},
    {"POST", "/v1/reranking",        &server_rerank_parser,     server_rerank_texts,   true,  &server_openai,
     "Scores documents by a query", "object"},
    {"POST", "/v1/moderations",      &server_moderation_parser, server_refuse_moderation, true, &server_openai,
     "Is refused: no model here moderates", "object"},
    {"GET",  "/v1/models",           NULL,                      server_list_models,    true,  &server_openai,
     "Lists the names of the models", "object"},
    {"GET",  "/v1/models/*",         NULL,                      server_show_model,     true,  &server_openai,
     "Describes the model", "object"},
    {"POST", "/models/load",      &server_named_parser,      server_load_model,     true,  &server_openai,
     "Begins to load a model, as llama.cpp's router does", "object"},
    {"POST", "/models/unload",    &server_named_parser,      server_unload_model,   true,  &server_openai,
     "Frees a model that has no requests, as llama.cpp's router does", "object"},
    {"GET",  "/lora-adapters",    NULL,                      server_list_adapters,  true,  &server_openai,
     "Lists the adapters", "array"},
    {"POST", "/lora-adapters",    &server_adapters_parser,   server_change_adapters, true, &server_openai,
     "Changes the scales of adapters for requests that choose none, as llama.cpp's server does", "object"},
    {"POST", "/completion",       &server_native_parser,     server_complete_native, true, &server_native,
     "Continues a text, as llama.cpp's server does", "object"},
    {"POST", "/infill",           &server_native_parser,     server_infill,         true,  &server_native,
     "Fills the gap between two texts", "object"},
    {"GET",  "/props",            NULL,                      server_show_props,     true,  &server_openai,
     "Describes the server and its defaults", "object"},
    {"GET",  "/sampling",         NULL,                      server_list_sampling,  true,  &server_openai,
     "Lists the sampling options: ranges, defaults, help", "array"},
    {"GET",  "/slots",            NULL,                      server_list_slots,     true,  &server_openai,
     "Lists the sessions", "array"},
    {"POST", "/slots/*",          &server_saved_parser,      server_change_slot,    true,  &server_openai,
     "Saves the text of a session, restores it or erases it, as llama.cpp's server does", "object"},
    {"GET",  "/metrics",          NULL,                      server_show_metrics,   true,  &server_openai,
     "Gives counters, gauges and histograms to Prometheus", "text"},
    {"GET",  "/openapi.json",     NULL,                      server_show_openapi,   true,  &server_openai,
     "Describes all paths as OpenAPI 3.1", "object"},
    {"GET",  "/livez",            NULL,                      server_show_live,      false, &server_openai,
     "Says that the process lives", "object"},
    {"GET",  "/readyz",           NULL,                      server_show_live,      false, &server_openai,
     "Says that requests are taken", "object"},
    {"POST", "/api/chat",         &server_ollama_chat_parser, server_ollama_answer_chat, true, &server_ollama_chat,
     "Answers a conversation, as Ollama does", "object"},
    {"POST", "/api/generate",     &server_ollama_generate_parser, server_ollama_answer_prompt, true,
     &server_ollama_generate, "Answers a prompt, as Ollama does", "object"},
    {"POST", "/api/embed",        &server_ollama_embed_parser, server_embed,        true,  &server_ollama,
     "Turns texts into vectors, as Ollama does", "object"},
    {"POST", "/api/embeddings",   &server_ollama_embeddings_parser, server_embed,   true,  &server_ollama,
     "Turns a text into a vector, as Ollama did before /api/embed", "object"},
    {"POST", "/api/show",         &server_ollama_show_parser, server_ollama_show_model, true, &server_ollama,
     "Describes the model, as Ollama does", "object"},
    {"GET",  "/api/tags",         NULL,                      server_ollama_list_models, true, &server_ollama,
     "Lists the names of the models, as Ollama does", "object"},
    {"GET",  "/api/ps",           NULL,                      server_ollama_list_loaded, true, &server_ollama,
     "Lists the models that are loaded, as Ollama does", "object"},
    {"GET",  "/api/version",      NULL,                      server_ollama_show_version, true, &server_ollama,
     "Gives the version", "object"},
    {"POST", "/tokenize",         &server_tokenize_parser,   server_tokenize,       true,  &server_openai,
     "Turns a text into tokens", "object"},
    {"POST", "/detokenize",       &server_detokenize_parser, server_detokenize,     true,  &server_openai,
     "Turns tokens into a text", "object"},
    {"POST", "/apply-template",   &server_template_parser,   server_apply_template, true,  &server_openai,
     "Turns messages into the model's prompt", "object"},
    {"GET",  "/health",           NULL,                      server_show_health,    false, &server_openai,
     "Says that the server is there, and its load", "object"},
    {"GET",  "/",                 NULL,                      server_show_web_ui,      true,  &server_openai,
     "Gives the web UI", "html"},
    {"GET",  "/docs",             NULL,                      server_show_docs,      true,  &server_openai,
     "Gives an HTML document that shows /openapi.json", "html"},
    {"GET",  "/assets/*",         NULL,                      server_show_asset,     true,  &server_openai,
     "Gives a file of the web UI", "file"},
};
// clang-format on

const server_route *server_routes(size_t *n_routes)
{
    *n_routes = COUNT(routes);
    return routes;
}

static const char *without_version(const char *path)
{
    return strncmp(path, "/v1/", 4) == 0 ? path + 3 : path;
}

static bool matches(const char *pattern, const char *path, const char **rest)
{
    size_t n = strcspn(pattern, "*");
    if (strncmp(pattern, path, n) != 0) return false;
    *rest = path + n;
    return pattern[n] ? path[n] != 0 : path[n] == 0;
}

// True if a row has exactly this path, so that rows with '*' do not match it.
static bool is_listed(const char *local)
{
    for (size_t i = 0; i < COUNT(routes); i++)
        if (!strchr(routes[i].path, '*') && strcmp(without_version(routes[i].path), local) == 0) return true;
    return false;
}

const server_route *server_route_find(const char *method, const char *path, const char **rest, char allow[64],
                                      server_problem *problem)
{
    const char *local = without_version(path);
    const bool is_whole = is_listed(local);
    if (strcmp(method, "HEAD") == 0) method = "GET";
    size_t n = 0;
    allow[0] = 0;
    for (size_t i = 0; i < COUNT(routes); i++) {
        if (!matches(without_version(routes[i].path), local, rest) || (is_whole && **rest)) continue;
        if (strcmp(routes[i].method, method) == 0) return &routes[i];
        n += (size_t)snprintf(allow + n, 64 - n, "%s%s", n ? ", " : "", routes[i].method);
    }
    if (n > 0)
        server_refuse(problem, 405, "method_not_allowed", NULL, "%.16s is not possible here, only %s", method, allow);
    else
        server_refuse(problem, 404, "not_found", NULL, "there is no %.200s", path);
    return NULL;
}

const char *server_route_challenge(const server_route *route)
{
    return route && strcmp(route->reply, "html") == 0 ? "Basic realm=\"frit\", charset=\"UTF-8\"" : "Bearer";
}

// The parser of the fields refuses a name that is not a string.
static bool choose_model(const server_route *route, server_exchange *exchange)
{
    const server_body *body = exchange->request;
    const json_t *name = json_object_get(body->root, "model");
    if (!name && route->protocol == &server_ollama) name = json_object_get(body->root, "name");
    return server_check_model(exchange, json_string_value(name));
}

static bool parse_fields(const server_parser *parser, server_exchange *exchange)
{
    void *request = exchange->request;
    if (parser->sampler && exchange->is_held)
        *(frit_sampler_options *)((char *)request + parser->sampler) = exchange->model->sampling;
    return server_parse_body(parser, request, &exchange->problem) &&
           (!exchange->site->strict_fields || server_parse_strictly(parser, request, &exchange->problem));
}

// False without a problem: the model must be loaded first.
static bool run_body(const server_route *route, server_exchange *exchange, const char *body, size_t n_body)
{
    const server_parser *parser = route->parser;
    if (!server_load_body(parser, body, n_body, exchange->request, &exchange->problem) ||
        !choose_model(route, exchange))
        return false;
    if (!parser->loads_nothing && !exchange->is_held) {
        exchange->is_used = exchange->is_held = server_models_hold(exchange->site->models, exchange->model, true);
        if (!exchange->is_held) return false;
    }
    if (!parse_fields(parser, exchange)) return false;
    route->handle(exchange);
    return true;
}

bool server_route_run(const server_route *route, server_exchange *exchange, const char *body, size_t n_body)
{
    server_models *models = exchange->site->models;
    if (!route->parser) {
        if (!server_check_model(exchange, exchange->query ? exchange->query(exchange, "model") : NULL)) return true;
        exchange->is_held = server_models_hold(models, exchange->model, false);
        route->handle(exchange);
        return true;
    }
    for (;;) {
        exchange->request = calloc(1, route->parser->n_bytes);
        if (!exchange->request) return server_refuse_status(&exchange->problem, 500, NULL, FRIT_E_MEMORY) || true;
        const bool is_over = run_body(route, exchange, body, n_body) || exchange->problem.status;
        server_request_deinit(route->parser, exchange->request);
        free(exchange->request);
        exchange->request = NULL;
        if (is_over) return true;
        server_problem problem = {0};
        exchange->is_used = true;
        if (server_models_await(models, exchange->model, &exchange->waiter, &problem)) {
            exchange->is_held = true;
        } else if (problem.status) {
            exchange->problem = problem;
            return true;
        } else {
            return false;   // the exchange may be over already
        }
    }
}

void server_reply(server_exchange *exchange, json_t *json)
{
    exchange->reply = server_json_text(json);
    if (!exchange->reply) server_refuse_status(&exchange->problem, 500, NULL, FRIT_E_MEMORY);
}

frit_tokenize_limits server_exchange_limits(const server_exchange *exchange, size_t max_tokens)
{
    return (frit_tokenize_limits){.max_tokens = max_tokens, .cancelled = exchange->cancelled, .ctx = exchange->ctx};
}
