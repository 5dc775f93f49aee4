// SPDX-License-Identifier: MIT
// server/request/request.h: the kinds of requests: what their bodies may hold, and what becomes of it before the
// engine.
//
// A table in request_fields.c says which fields a kind has. Nothing here knows of HTTP, threads or the engine.
#pragma once
#include "frit.h"
#include "server/request/fields.h"

enum {
    SERVER_MAX_STOPS = 64,
    SERVER_MAX_STOP_BYTES = 1024,
    SERVER_MAX_BIASES = 8192,
    SERVER_MAX_LORA = 1024,
    SERVER_MAX_CHOICES = 128,
    SERVER_UNSET = -2,
};

typedef struct server_chosen {
    int32_t id;   // of an adapter
    float scale;
} server_chosen;

// /v1/chat/completions and /v1/completions.
typedef struct server_generation {
    server_body body;
    const char *model;   // NULL: any
    bool stream, include_usage;
    int32_t max_tokens;              // -1: until the answer or the context ends
    int32_t max_completion_tokens;   // SERVER_UNSET: max_tokens holds
    frit_sampler_options sampler;
    // What the answer may be: the text of a grammar, and the field that gave it; NULL: anything.
    const char *format;
    size_t n_format;
    frit_grammar_kind format_kind;
    const char *format_param;
    char *format_owned;           // format, where it is not a text of the body
    bool open_objects;            // of its schema, and of those of tools
    bool heals;                   // the answer may go on within the last word of the prompt
    bool echo;                    // the prompt comes before the answer
    bool wants_logprobs;          // log-probabilities of the answer's tokens, and of the prompt's that comes before it
    int32_t n_top;                // and so many of the likeliest others
    bool wants_prompt_logprobs;   // of the prompt's tokens, beside the answer
    int32_t n_prompt_top;         // and so many of the likeliest others
    uint64_t seed;
    bool has_seed;
    frit_option_list stop;        // items owned, texts borrowed
    struct server_bias *biases;   // owned: of tokens
    size_t n_biases;
    const json_t *bias_texts;    // a list with pairs of a text, whose tokens have the bias, and a bias; or NULL
    char (*bias_items)[48];      // owned: texts of sampler.logit_bias
    bool ignores_end;            // no token that ends the answer is picked
    int32_t min_tokens;          // of the answer, before one is
    int32_t best_of;             // so many answers are made, and the likeliest n_choices given; 0: n_choices
    int32_t n_given;             // ... of all, where fewer are given
    int32_t max_ms;              // after its first token the answer ends with a line, once it took so long; <= 0: any
    bool wants_timings;          // with each event
    bool wants_ids;              // of the answer's tokens
    const json_t *members;       // paths of those that the answer has, as "timings/prompt_ms"; NULL: all. Of the body
    bool pads;                   // events are filled up, so that their length tells less of what they say
    int32_t wanted_slot;         // from 1 on; 0: any
    frit_option_list breakers;   // items owned, texts borrowed
    char *order;                 // owned: sampler.samplers, where a list gives it
    char *prediction;            // owned: what the answer will probably be; NULL: nothing is known
    size_t n_prediction;
    int32_t priority;   // lower ones are served first
    bool has_priority;
    const char *cache_salt;   // only requests with the same one share what has run; NULL: none
    server_chosen *lora;      // owned; NULL: as the server was started
    size_t n_lora;
    int32_t keep_alive_s;    // of the stream; 0: the server's, -1: none
    bool wants_progress;     // the stream tells how much of the prompt has run
    int32_t n_choices;       // answers
    bool parallel_calls;     // the answer may call several tools
    frit_turn *turn;         // owned: of a chat, made by server_prompt_tokens
    const json_t *prompts;   // of a completion, where there is a list of them, and how many there are; borrowed
    int32_t n_prompts;
    const char *text;   // a completion's prompt: text, or ...
    size_t n_text;
    frit_token *ids;   // ... tokens (owned)
    size_t n_ids;
    // What is filled in lies between prefix and suffix: texts, or NULL; files: a list of others that it may look at.
    const json_t *prefix, *suffix, *files;
    // Of /v1/responses.
    const char *previous_id, *instructions;
    bool is_stored;
    bool is_background;      // it goes on without its client
    bool truncates;          // the oldest turns are dropped where the conversation is too long
    bool ends_on_finisher;   // its end takes long
    bool is_raw;             // of /api/generate: the prompt is the whole input
    void *extra;             // of the handler, for its answer; freed by free_extra
    void (*free_extra)(void *extra);
} server_generation;

// /v1/embeddings.
typedef struct server_embedding {
    server_body body;
    const char *model;
    const json_t *input;    // borrowed; NULL: missing
    const char *encoding;   // "float", "base64"; NULL: float
    int32_t n_dims;         // 0: all
    const char *pooling, *normalize;
    const char *field;   // that has the input, where it has another name
    bool truncates;      // what is longer than the context loses its end
    bool is_single;      // one text, and its vector alone is the answer
} server_embedding;

// /v1/rerank.
typedef struct server_rerank {
    server_body body;
    const char *model;
    const json_t *query, *documents;   // borrowed; NULL: missing
    int32_t top_n;                     // 0: all
    bool return_documents, raw_scores;
} server_rerank;

// /api/show, /models/load, /models/unload.
typedef struct server_named {
    server_body body;
    const char *model, *name;
} server_named;

// /slots/ID.
typedef struct server_saved {
    server_body body;
    const char *filename, *cache_salt;
} server_saved;

// /tokenize, /detokenize, /apply-template.
typedef struct server_text_request {
    server_body body;
    const char *text;
    size_t n_text;
    frit_token *ids;
    size_t n_ids;
    bool add_special, parse_special, with_pieces;
} server_text_request;

extern const server_parser server_named_parser, server_saved_parser, server_adapters_parser, server_chat_parser,
    server_completion_parser, server_tokenize_parser, server_detokenize_parser, server_moderation_parser,
    server_template_parser, server_embedding_parser, server_rerank_parser, server_anthropic_parser,
    server_responses_parser, server_native_parser, server_ollama_chat_parser, server_ollama_generate_parser,
    server_ollama_show_parser, server_ollama_embed_parser, server_ollama_embeddings_parser;

// For the tables of other protocols: fields of chats that they do not have, with their defaults.
#define SERVER_DEFAULT_FIELDS                                                                                   \
    {"max_completion_tokens",                                                                                   \
     FIELD_INT,                                                                                                 \
     .offset = offsetof(server_generation, max_completion_tokens),                                              \
     .min = -1,                                                                                                 \
     .max = INT32_MAX,                                                                                          \
     .fallback = SERVER_UNSET},                                                                                 \
        {"n", FIELD_INT, .offset = offsetof(server_generation, n_choices), .min = 1, .max = 1, .fallback = 1},  \
        {"open_objects", FIELD_BOOL, .offset = offsetof(server_generation, open_objects)},                      \
    {                                                                                                           \
        "parallel_tool_calls", FIELD_BOOL, .offset = offsetof(server_generation, parallel_calls), .fallback = 1 \
    }
// request_fields.c
bool server_parse_seed(json_t *value, void *request, server_problem *problem);
bool server_parse_lora(json_t *value, void *request, server_problem *problem);
bool server_parse_stream_options(json_t *value, void *request, server_problem *problem);
bool server_read_stop(server_generation *request, json_t *value, const char *param, server_problem *problem);
// request_format.c. The fields that say what the answer may be; a request has at most one of them.
bool server_parse_grammar(json_t *value, void *request, server_problem *problem);
bool server_parse_regex(json_t *value, void *request, server_problem *problem);
bool server_parse_json_schema(json_t *value, void *request, server_problem *problem);
bool server_parse_response_format(json_t *value, void *request, server_problem *problem);
bool server_parse_guided_grammar(json_t *value, void *request, server_problem *problem);
bool server_parse_guided_regex(json_t *value, void *request, server_problem *problem);
bool server_parse_guided_json(json_t *value, void *request, server_problem *problem);
bool server_set_format(server_generation *request, frit_grammar_kind kind, const char *param, json_t *value,
                       server_problem *problem);
bool server_set_schema(server_generation *request, json_t *value, const char *param, server_problem *problem);
// guided.c
bool server_parse_guided_choice(json_t *value, void *request, server_problem *problem);
bool server_parse_structured_outputs(json_t *value, void *request, server_problem *problem);
// request_prompt.c
bool server_parse_prompt(json_t *value, void *request, server_problem *problem);
bool server_parse_suffix(json_t *value, void *request, server_problem *problem);
bool server_parse_input_prefix(json_t *value, void *request, server_problem *problem);
bool server_parse_input_suffix(json_t *value, void *request, server_problem *problem);
bool server_parse_input_extra(json_t *value, void *request, server_problem *problem);
bool server_read_ids(const json_t *list, const char *name, frit_token **ids, size_t *n_ids, server_problem *problem);
// Makes prompt i of request->prompts the request's prompt. The ids of the previous prompt are not freed.
bool server_choose_prompt(server_generation *request, size_t i, server_problem *problem);
// request_limits.c
bool server_parse_slot(json_t *value, void *request, server_problem *problem);
bool server_parse_priority(json_t *value, void *request, server_problem *problem);
// biases.c
bool server_parse_logit_bias(json_t *value, void *request, server_problem *problem);
void server_clear_biases(server_generation *request);
// Writes all biases to sampler.logit_bias; with `ban_end` also a bias of -inf for each token that ends an answer. May
// be called again with another `ban_end`.
bool server_make_biases(const frit_model *model, server_generation *request, const frit_option_list *others,
                        bool ban_end, server_problem *problem);
void server_clear_generation(void *request);

// The tokens of what a generation asks for; malloc'd. `chat`: messages through the template. limits->max_tokens is
// the context less the position that must stay free. False with a problem.
bool server_prompt_tokens(const frit_model *model, server_generation *request, bool chat,
                          const frit_tokenize_limits *limits, frit_token **tokens, size_t *n_tokens,
                          server_problem *problem);
// truncate.c. Drops the oldest turns of a conversation, the fewest with which it has limits->max_tokens tokens at most;
// all but the last if none is enough. False with a problem.
bool server_truncate(const frit_model *model, server_generation *request, const frit_tokenize_limits *limits,
                     server_problem *problem);
// Makes the tokens of a gap to fill, request->ids, from prefix, suffix, files and text, which comes last.
bool server_infill_tokens(const frit_model *model, server_generation *request, const frit_tokenize_limits *limits,
                          server_problem *problem);
// The bytes of a token as a string, or as a list of numbers where they are no UTF-8.
json_t *server_piece_json(const frit_model *model, frit_token token);
// The turn of a chat that the body describes; NULL with a problem.
frit_turn *server_turn(const frit_model *model, const server_body *body, server_problem *problem);
// malloc'd; NULL with a problem: of code context_length_exceeded where there are more than limits->max_tokens.
frit_token *server_tokens(const frit_model *model, const char *text, size_t n_bytes, unsigned flags,
                          const frit_tokenize_limits *limits, size_t *n_tokens, server_problem *problem);
// The problem of a prompt with so many tokens. `param`: the field; at_least: there may be more.
bool server_refuse_length(server_problem *problem, const char *param, size_t n_ctx, size_t n_tokens, bool at_least);
