// SPDX-License-Identifier: MIT
// The field tables of requests that generate no text: embeddings, reranking, tokens, prompts.
#include "server/request/request.h"

#include <stddef.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LATER        SERVER_FIELD_REFUSED
#define ELSEWHERE    SERVER_FIELD_ELSEWHERE

static bool set_input(json_t *value, void *ctx, server_problem *problem)
{
    (void)problem;   // read_inputs checks the value
    ((server_embedding *)ctx)->input = value;
    return true;
}

#define AT(field) offsetof(server_embedding, field)

// clang-format off
static const server_field embedding_fields[] = {
    {"model", FIELD_TEXT, .offset = AT(model)},
    {"input", FIELD_CUSTOM, .parse = set_input},
    {"encoding_format", FIELD_TEXT, .offset = AT(encoding)},
    {"dimensions", FIELD_INT, .offset = AT(n_dims), .min = 1, .max = 1 << 20},
    {"pooling", FIELD_TEXT, .offset = AT(pooling)},
    {"prompt_name", FIELD_TEXT, .offset = AT(prompt_name)},
    {"normalize", FIELD_TEXT, .offset = AT(normalize)},
    ELSEWHERE("user"),
};
// clang-format on

#undef AT

const server_parser server_embedding_parser = {
    .fields = embedding_fields, .n_fields = COUNT(embedding_fields), .n_bytes = sizeof(server_embedding)};

static bool set_query(json_t *value, void *ctx, server_problem *problem)
{
    (void)problem;
    ((server_rerank *)ctx)->query = value;
    return true;
}

static bool set_documents(json_t *value, void *ctx, server_problem *problem)
{
    (void)problem;
    ((server_rerank *)ctx)->documents = value;
    return true;
}

#define AT(field) offsetof(server_rerank, field)

// clang-format off
static const server_field rerank_fields[] = {
    {"model", FIELD_TEXT, .offset = AT(model)},
    {"query", FIELD_CUSTOM, .parse = set_query},
    {"documents", FIELD_CUSTOM, .parse = set_documents},
    {"top_n", FIELD_INT, .offset = AT(top_n), .min = 1, .max = INT32_MAX},
    {"return_documents", FIELD_BOOL, .offset = AT(return_documents)},
    {"raw_scores", FIELD_BOOL, .offset = AT(raw_scores)},
    ELSEWHERE("user"),
};
// clang-format on

#undef AT

const server_parser server_rerank_parser = {
    .fields = rerank_fields, .n_fields = COUNT(rerank_fields), .n_bytes = sizeof(server_rerank)};

static bool parse_content(json_t *value, void *ctx, server_problem *problem)
{
    server_text_request *request = ctx;
    if (!json_is_string(value))
        return server_refuse(problem, 400, "invalid_type", "content", "content: expected a string");
    request->text = json_string_value(value);
    request->n_text = json_string_length(value);
    return true;
}

static bool parse_tokens(json_t *value, void *ctx, server_problem *problem)
{
    server_text_request *request = ctx;
    if (!json_is_array(value))
        return server_refuse(problem, 400, "invalid_type", "tokens", "tokens: expected a list of token ids");
    return server_read_ids(value, "tokens", &request->ids, &request->n_ids, problem);
}

static void deinit_text(void *ctx)
{
    server_text_request *request = ctx;
    free(request->ids);
}

#define AT(field) offsetof(server_text_request, field)

// clang-format off
static const server_field tokenize_fields[] = {
    {"content", FIELD_CUSTOM, .parse = parse_content},
    {"prompt", FIELD_CUSTOM, .parse = parse_content},
    {"add_special", FIELD_BOOL, .offset = AT(add_special)},
    {"parse_special", FIELD_BOOL, .offset = AT(parse_special), .fallback = 1},
    {"with_pieces", FIELD_BOOL, .offset = AT(with_pieces)},
    ELSEWHERE("model"),
};
static const server_field detokenize_fields[] = {
    {"tokens", FIELD_CUSTOM, .parse = parse_tokens},
    {"special", FIELD_BOOL, .offset = AT(add_special), .fallback = 1},
    ELSEWHERE("model"),
};
static const server_field template_fields[] = {
    ELSEWHERE("model"), ELSEWHERE("messages"), ELSEWHERE("tools"), ELSEWHERE("tool_choice"),
    ELSEWHERE("chat_template_kwargs"), ELSEWHERE("reasoning_effort"), ELSEWHERE("add_generation_prompt"),
    ELSEWHERE("continue_final_message"),
    LATER("chat_template", .why = "the server's template is used; --chat-template sets it"),
};
// clang-format on

const server_parser server_tokenize_parser = {.fields = tokenize_fields,
                                              .n_fields = COUNT(tokenize_fields),
                                              .n_bytes = sizeof(server_text_request),
                                              .deinit = deinit_text};
const server_parser server_detokenize_parser = {.fields = detokenize_fields,
                                                .n_fields = COUNT(detokenize_fields),
                                                .n_bytes = sizeof(server_text_request),
                                                .deinit = deinit_text};
const server_parser server_template_parser = {.fields = template_fields,
                                              .n_fields = COUNT(template_fields),
                                              .n_bytes = sizeof(server_text_request),
                                              .deinit = deinit_text};

// ---------------------------------------------------------------------------------------- Ollama's

// clang-format off
static const server_field show_fields[] = {
    {"model", FIELD_TEXT, .offset = offsetof(server_named, model)},
    {"name", FIELD_TEXT, .offset = offsetof(server_named, name)},
    ELSEWHERE("verbose"),
};
static const server_field ollama_embed_fields[] = {
    {"model", FIELD_TEXT, .offset = offsetof(server_embedding, model)},
    {"input", FIELD_CUSTOM, .parse = set_input},
    {"dimensions", FIELD_INT, .offset = offsetof(server_embedding, n_dims), .min = 1, .max = 1 << 20},
    {"truncate", FIELD_BOOL, .offset = offsetof(server_embedding, truncates), .fallback = 1},
    ELSEWHERE("options"), ELSEWHERE("keep_alive"),
};
static const server_field ollama_embeddings_fields[] = {
    {"model", FIELD_TEXT, .offset = offsetof(server_embedding, model)},
    {"prompt", FIELD_CUSTOM, .parse = set_input},
    ELSEWHERE("options"), ELSEWHERE("keep_alive"),
};
static const server_field named_fields[] = {
    {"model", FIELD_TEXT, .offset = offsetof(server_named, model)},
};
static const server_field saved_fields[] = {
    {"filename", FIELD_TEXT, .offset = offsetof(server_saved, filename)},
    {"cache_salt", FIELD_TEXT, .offset = offsetof(server_saved, cache_salt)},
    ELSEWHERE("model"),
};
// clang-format on

const server_parser server_saved_parser = {
    .fields = saved_fields, .n_fields = COUNT(saved_fields), .n_bytes = sizeof(server_saved)};
const server_parser server_named_parser = {
    .fields = named_fields, .n_fields = COUNT(named_fields), .n_bytes = sizeof(server_named), .loads_nothing = true};
const server_parser server_ollama_show_parser = {
    .fields = show_fields, .n_fields = COUNT(show_fields), .n_bytes = sizeof(server_named)};
// The older path /api/embeddings: one text, which is cut to the context.
static bool convert_single(void *ctx, server_problem *problem)
{
    server_embedding *request = ctx;
    request->field = "prompt";
    request->truncates = request->is_single = true;
    return !request->input || json_is_string(request->input) ||
           server_refuse(problem, 400, "invalid_type", "prompt", "prompt: expected a string");
}

const server_parser server_ollama_embeddings_parser = {.fields = ollama_embeddings_fields,
                                                       .n_fields = COUNT(ollama_embeddings_fields),
                                                       .n_bytes = sizeof(server_embedding),
                                                       .convert = convert_single};
const server_parser server_ollama_embed_parser = {
    .fields = ollama_embed_fields, .n_fields = COUNT(ollama_embed_fields), .n_bytes = sizeof(server_embedding)};

static bool parse_moderated(json_t *value, void *request, server_problem *problem)
{
    (void)request;
    return json_is_string(value) || json_is_array(value) ||
           server_refuse(problem, 400, "invalid_type", "input", "input: expected a string or a list");
}

static const server_field moderation_fields[] = {
    {"model", FIELD_TEXT, .offset = offsetof(server_named, model)},
    {"input", FIELD_CUSTOM, .parse = parse_moderated},
};

const server_parser server_moderation_parser = {
    .fields = moderation_fields, .n_fields = COUNT(moderation_fields), .n_bytes = sizeof(server_named)};
