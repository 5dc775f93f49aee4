// SPDX-License-Identifier: MIT
// server/request/request.h: the kinds of requests: the structs that their bodies fill, and the steps from these structs
// to tokens.
//
// Each kind has a parser with a field table (request_fields.c, texts_request.c, api/*_request.c). The code does not use
// HTTP, threads or the engine.
#pragma once
#include "frit.h"
#include "server/request/fields.h"
#include "server/request/pictures.h"

enum {
    SERVER_MAX_STOPS = 64,
    SERVER_MAX_STOP_BYTES = 1024,
    SERVER_MAX_BIASES = 8192,
    SERVER_MAX_LORA = 1024,
    SERVER_MAX_CHOICES = 128,
    SERVER_UNSET = -2,
};

typedef struct server_chosen {
    int32_t id;   // the adapter's index
    float scale;
} server_chosen;

// The prompt. The messages of a chat are in the request's body.
typedef struct server_generation_prompt {
    frit_turn *turn;             // owned: a chat's, made by server_prompt_tokens
    server_pictures *pictures;   // owned: of a chat, made by server_prepare_pictures; NULL: none
    const json_t *all;           // a completion's list of n_all prompts; NULL: there is one prompt; borrowed
    int32_t n_all;
    const char *text;   // the prompt of a completion is `text`, borrowed, or `ids`
    size_t n_text;
    frit_token *ids;   // owned
    size_t n_ids;
    // Infill: the answer stands between prefix and suffix, texts or NULL. files: a list of further files as context.
    const json_t *prefix, *suffix, *files;
    bool is_raw;      // of /api/generate: the prompt does not go through the template
    bool heals;       // the answer may begin within the last word of the prompt (token healing)
    bool truncates;   // the oldest rounds of a conversation that is too long are removed
} server_generation_prompt;

// How tokens are picked.
typedef struct server_generation_sampling {
    frit_sampler_options options;
    uint64_t seed;
    bool has_seed;
    frit_option_list breakers;    // items owned, texts borrowed
    char *order;                  // owned: options.samplers if the request has a list of stages
    struct server_bias *biases;   // owned
    size_t n_biases;
    const json_t *bias_texts;   // NULL, or a list with pairs of a text and the bias of its tokens; borrowed
    char (*bias_items)[48];     // owned: the texts of options.logit_bias
} server_generation_sampling;

// The grammar of the answer.
typedef struct server_generation_format {
    const char *text;   // NULL: any answer
    size_t n_text;
    frit_grammar_kind kind;
    const char *param;     // the field that has the grammar
    char *owned;           // the memory of `text` if it is not a text of the body; else NULL
    bool open_objects;     // objects of the schema and of tools' schemas may have members without a schema
    bool parallel_calls;   // the answer may call several tools
} server_generation_format;

// When an answer ends.
typedef struct server_generation_limits {
    int32_t max_tokens;              // -1: until the answer or the context ends
    int32_t max_completion_tokens;   // used in place of max_tokens unless SERVER_UNSET
    int32_t min_tokens;      // tokens that end the answer are not picked before the answer has min_tokens tokens
    bool ignores_end;        // tokens that end the answer are never picked
    int32_t max_ms;          // the answer ends at the first line end after this time from its first token; <= 0: never
    frit_option_list stop;   // items owned, texts borrowed
} server_generation_limits;

// The number of answers.
typedef struct server_generation_choices {
    int32_t n;         // the number of answers to generate for all prompts
    int32_t best_of;   // the number of answers to generate for each prompt; 0: n
    int32_t n_given;   // the number of answers in the reply, the likeliest of n
} server_generation_choices;

// The parts of a reply beside the answer's text.
typedef struct server_generation_contents {
    bool echo;                    // the answer's text begins with the prompt
    bool wants_logprobs;          // log-probabilities of the answer's tokens, and of an echoed prompt's tokens
    int32_t n_top;                // the number of likeliest other tokens reported with each of these tokens
    bool wants_prompt_logprobs;   // log-probabilities of the prompt's tokens, beside the answer
    int32_t n_prompt_top;         // the number of likeliest other tokens reported with each token of the prompt
    bool wants_timings;           // timings in each event
    bool wants_ids;               // token ids of the answer
    const json_t
        *members;   // paths of the members that the reply has, such as "timings/prompt_ms"; NULL: all; borrowed
} server_generation_contents;

// The reply as a stream of events.
typedef struct server_generation_stream {
    bool is_wanted;
    bool include_usage;
    bool pads;              // events are padded, so that their lengths reveal less of the text
    int32_t keep_alive_s;   // 0: the server's, -1: none
    bool wants_progress;    // the stream reports how much of the prompt is done
} server_generation_stream;

// How the worker runs the request.
typedef struct server_generation_scheduling {
    int32_t priority;   // lower numbers are served first
    bool has_priority;
    int32_t wanted_slot;      // the slot's id plus 1; 0: any slot
    const char *cache_salt;   // only requests with equal salts share prefixes in the cache; NULL: no salt
    server_chosen *lora;      // owned; NULL: the server's adapters
    size_t n_lora;
    char *prediction;   // owned: a text that the answer will probably repeat; or NULL
    size_t n_prediction;
} server_generation_scheduling;

// Members for /v1/responses.
typedef struct server_generation_response {
    const char *previous_id, *instructions;
    bool is_stored;
    bool is_background;      // the answer is generated even if the client disconnects
    bool ends_on_finisher;   // the end of the reply writes to a disk, so the finisher thread calls it
} server_generation_response;

// /v1/chat/completions, /v1/completions, and other protocols' requests for generated text.
typedef struct server_generation {
    server_body body;
    const char *model;   // NULL: any
    server_generation_prompt prompt;
    server_generation_sampling sampling;
    server_generation_format format;
    server_generation_limits limits;
    server_generation_choices choices;
    server_generation_contents contents;
    server_generation_stream stream;
    server_generation_scheduling scheduling;
    server_generation_response response;
    void *extra;   // owned by the handler's reply; freed by free_extra
    void (*free_extra)(void *extra);
} server_generation;

// /v1/embeddings.
typedef struct server_embedding {
    server_body body;
    const char *model;
    const json_t *input;    // borrowed; NULL: missing
    const char *encoding;   // "float", "base64"; NULL: float
    int32_t n_dims;         // 0: all
    const char *pooling, *normalize, *prompt_name;
    const char *field;   // the name of the field for `input`; NULL: "input"
    bool truncates;      // inputs longer than the context are cut at their end
    bool is_single;      // there is one text, and the reply is its vector alone
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

// Rows for the field tables of other protocols: fields that only OpenAI's chats have, for their defaults.
#define SERVER_DEFAULT_FIELDS                                                                                          \
    {"max_completion_tokens",                                                                                          \
     FIELD_INT,                                                                                                        \
     .offset = offsetof(server_generation, limits.max_completion_tokens),                                              \
     .min = -1,                                                                                                        \
     .max = INT32_MAX,                                                                                                 \
     .fallback = SERVER_UNSET},                                                                                        \
        {"n", FIELD_INT, .offset = offsetof(server_generation, choices.n), .min = 1, .max = 1, .fallback = 1},         \
        {"open_objects", FIELD_BOOL, .offset = offsetof(server_generation, format.open_objects)},                      \
    {                                                                                                                  \
        "parallel_tool_calls", FIELD_BOOL, .offset = offsetof(server_generation, format.parallel_calls), .fallback = 1 \
    }
// request_fields.c
bool server_parse_seed(json_t *value, void *request, server_problem *problem);
bool server_parse_lora(json_t *value, void *request, server_problem *problem);
bool server_parse_stream_options(json_t *value, void *request, server_problem *problem);
bool server_read_stop(server_generation *request, json_t *value, const char *param, server_problem *problem);
// chat_parts.c
bool server_convert_chat_parts(void *request, server_problem *problem);
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
// Makes prompt i of prompt.all the request's prompt. The ids of the previous prompt are not freed.
bool server_choose_prompt(server_generation *request, size_t i, server_problem *problem);
// request_limits.c
bool server_parse_slot(json_t *value, void *request, server_problem *problem);
bool server_parse_priority(json_t *value, void *request, server_problem *problem);
// biases.c
bool server_parse_logit_bias(json_t *value, void *request, server_problem *problem);
void server_free_biases(server_generation *request);
// Writes all biases to sampling.options.logit_bias; with `ban_end` also a bias of -inf for each token that ends an
// answer. May be called again with another `ban_end`.
bool server_make_biases(const frit_model *model, server_generation *request, const frit_option_list *others,
                        bool ban_end, server_problem *problem);
void server_generation_deinit(void *request);

// The tokens of a request's prompt, malloc'd: with `chat` of the messages through the template, else of the text or the
// ids. limits->max_tokens is the context less the position that must stay free. False with a problem.
bool server_prompt_tokens(const frit_model *model, server_generation *request, bool chat,
                          const frit_tokenize_limits *limits, frit_token **tokens, size_t *n_tokens,
                          server_problem *problem);
// truncate.c. Removes as few of the oldest rounds of a conversation as leave limits->max_tokens tokens at most, and all
// but the last round if that is not enough. False with a problem.
bool server_truncate(const frit_model *model, server_generation *request, const frit_tokenize_limits *limits,
                     server_problem *problem);
// infill.c. Sets request->ids to the tokens of an infill prompt from prefix, suffix, files and text.
bool server_infill_tokens(const frit_model *model, server_generation *request, const frit_tokenize_limits *limits,
                          server_problem *problem);
// The bytes of a token as a string, or as a list of numbers if they are not UTF-8.
json_t *server_piece_json(const frit_model *model, frit_token token);
// The turn for the conversation of the body, with its pictures (NULL: none). NULL with a problem.
frit_turn *server_turn(const frit_model *model, const server_body *body, const server_pictures *pictures,
                       server_problem *problem);
// The tokens of a text, malloc'd. NULL with a problem, whose code is context_length_exceeded if there are more than
// limits->max_tokens tokens.
frit_token *server_tokens(const frit_model *model, const char *text, size_t n_bytes, unsigned flags,
                          const frit_tokenize_limits *limits, size_t *n_tokens, server_problem *problem);
// Refuses a prompt of n_tokens tokens with context_length_exceeded; with at_least, of n_tokens or more. Returns false.
bool server_refuse_length(server_problem *problem, const char *param, size_t n_ctx, size_t n_tokens, bool at_least);
