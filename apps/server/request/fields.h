// SPDX-License-Identifier: MIT
// server/request/fields.h: a request's body to a struct, by a table of fields.
//
// A kind of request is a parser: a table of fields and the struct that they fill. A field that is absent or null keeps
// its default. A field that would change the answer and that frit cannot honour has a row of type FIELD_UNSUPPORTED: it
// is refused by name, except for the values that ask for nothing. A field without a row is unknown: it is ignored, or
// refused where server_parse_strictly is asked. A parser with a sampler also has each of the sampler's numeric
// options as a field, with _ for - in its name ("top_k").
//
//     {"stream", FIELD_BOOL, .offset = offsetof(request, stream)},
//     {"max_tokens", FIELD_INT, .offset = offsetof(request, max_tokens), .min = -1, .max = INT32_MAX, .fallback = -1},
//     {"temperature", FIELD_SAMPLER, .offset = offsetof(request, sampler), .row = "temp"},
//     {"n", FIELD_UNSUPPORTED, .harmless = "1", .why = "one answer is given for each request"},
#pragma once
#include "server/api/problem.h"

#include <jansson.h>

typedef enum server_field_type {
    FIELD_BOOL,          // bool
    FIELD_INT,           // int32_t
    FIELD_NUMBER,        // double
    FIELD_TEXT,          // const char *, borrowed from the body
    FIELD_SAMPLER,       // frit_sampler_options at the offset: another name for the option `row`
    FIELD_CUSTOM,        // `parse` reads it
    FIELD_UNSUPPORTED,   // refused by name
    FIELD_ELSEWHERE,     // known, and read by others (frit_turn_new), or without a meaning here
} server_field_type;

typedef struct server_field {
    const char *name;
    server_field_type type;
    size_t offset;
    double min, max, fallback;
    const char *row;
    bool (*parse)(json_t *value, void *request, server_problem *problem);
    const char *harmless;   // JSON texts with '|' between them that are let through
    const char *why;        // continues "NAME is not supported: "
} server_field;

// Every struct that a parser fills starts with this.
typedef struct server_body {
    json_t *root;       // what texts are borrowed from
    const char *text;   // the body as it came: lives while the request is handled
    size_t n_text;
    char *owned;                          // text, where it had to be changed
    json_t *given;                        // the root as it came, where `convert` put another in its place
    struct server_origins *origins;       // where its messages come from, where `convert` made them
    const struct server_parser *parser;   // what filled the struct
} server_body;

// A body of the allowed size may hold millions of tiny values, each of which costs memory many times its text.
enum { SERVER_MAX_VALUES = 1 << 20 };
// At least as many as the values and keys of a text, without looking whether it is JSON.
size_t server_count_values(const char *text, size_t n);

typedef struct server_parser {
    const server_field *fields;
    size_t n_fields;
    size_t n_bytes;                 // of the struct
    void (*clear)(void *request);   // frees what custom fields made; may be NULL
    // After all fields: makes of the body what other protocols would have sent (server_body_convert). May be NULL.
    bool (*convert)(void *request, server_problem *problem);
    bool loads_nothing;   // requests are about models, which need not be loaded
    const char *list;     // a body that is a list is the value of this field; NULL: bodies are objects
    size_t sampler;       // offset of its frit_sampler_options, which the caller presets; 0: it has none
} server_parser;

// Reads the body into the zeroed `request`, whose root then is an object. False with a problem of status 400;
// server_parser_clear either way.
bool server_load_body(const server_parser *parser, const char *body, size_t n, void *request, server_problem *problem);
// Fills the rest of the request, whose sampler is preset. False with a problem of status 400.
bool server_parse_body(const server_parser *parser, void *request, server_problem *problem);
// Both, for callers that preset no sampler.
bool server_parse(const server_parser *parser, const char *body, size_t n, void *request, server_problem *problem);
// The field of a sampler's option: its name, with _ for -. False: it has none.
struct frit_option;
bool server_name_sampler(const struct frit_option *row, char name[64]);
// The sampler's fields of an object, temperature too, into a frit_sampler_options.
bool server_read_sampling(const json_t *object, void *options, server_problem *problem);
// A whole number, which many clients write as 2.0. False: it is something else, and *out is 0.
bool server_integer(const json_t *value, json_int_t *out);
// What the caller calls a place of the conversation that the body was converted to.
typedef struct server_field_name {
    char text[64];
} server_field_name;
server_field_name server_body_field(const server_body *body, const char *place);
// False with a problem if the parsed request has unknown fields.
bool server_parse_strictly(const server_parser *parser, const void *request, server_problem *problem);
void server_parser_clear(const server_parser *parser, void *request);
// Takes another root over, whose text the body has from then on. False: no memory (also where it is NULL).
bool server_body_convert(server_body *body, json_t *root, server_problem *problem);

// Rows of tables of fields.
#define SERVER_FIELD_ELSEWHERE(name_)          \
    {                                          \
        .name = name_, .type = FIELD_ELSEWHERE \
    }
#define SERVER_FIELD_REFUSED(name, ...)      \
    {                                        \
        name, FIELD_UNSUPPORTED, __VA_ARGS__ \
    }
