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

// The name of a field in an error: "messages[2].content[0]".
typedef struct server_field_name {
    char text[64];
} server_field_name;

typedef enum server_field_type {
    FIELD_BOOL,          // bool
    FIELD_INT,           // int32_t
    FIELD_NUMBER,        // double
    FIELD_TEXT,          // const char *, borrowed from the body
    FIELD_SAMPLER,       // frit_sampler_options at the offset: another name for the option `row`
    FIELD_CUSTOM,        // `parse` reads it
    FIELD_UNSUPPORTED,   // refused by name
    FIELD_ELSEWHERE,     // read by other code, such as frit_turn_new, or ignored on purpose
} server_field_type;

typedef struct server_field {
    const char *name;
    server_field_type type;
    size_t offset;
    double min, max, fallback;
    const char *row;
    bool (*parse)(json_t *value, void *request, server_problem *problem);
    const char *harmless;   // accepted values of an unsupported field: JSON texts with '|' between them
    const char *why;        // continues "NAME is not supported: "
} server_field;

// The first member of every struct that a parser fills.
typedef struct server_body {
    json_t *root;       // the parsed body; texts of the request point into it
    const char *text;   // of the body, zero-terminated or not; lives while the request is handled
    size_t n_text;
    char *owned;                          // `text` if it was changed, else NULL
    json_t *given;                        // the root that the client sent, if `convert` replaced it; else NULL
    struct server_origins *origins;       // of the messages, if `convert` made them; else NULL
    const struct server_parser *parser;   // that filled the struct
} server_body;

// The most values of a body. A body of the allowed size could have millions of tiny values, and a parsed value takes
// many times the memory of its text.
enum { SERVER_MAX_VALUES = 1 << 20 };
// An upper bound of the number of values and keys in a JSON text. Does not check that the text is JSON.
size_t server_count_values(const char *text, size_t n);

typedef struct server_parser {
    const server_field *fields;
    size_t n_fields;
    size_t n_bytes;                  // of the struct
    void (*deinit)(void *request);   // frees what custom fields allocated; may be NULL
    // Called after all fields are read: converts the body to OpenAI's form (server_body_convert). May be NULL.
    bool (*convert)(void *request, server_problem *problem);
    bool loads_nothing;   // the request works on models that are not loaded
    const char *list;     // the field whose value is a body that is a list; NULL: bodies are objects
    size_t sampler;       // offset of the frit_sampler_options, which the caller presets; 0: there are none
} server_parser;

// Parses the JSON of a body into the zeroed `request`; the root is an object then. Returns false with a problem of
// status 400. Call server_request_deinit in both cases.
bool server_load_body(const server_parser *parser, const char *body, size_t n, void *request, server_problem *problem);
// Reads the fields of a loaded body. The caller has preset the sampler options. Returns false with a problem of status
// 400.
bool server_parse_body(const server_parser *parser, void *request, server_problem *problem);
// server_load_body and server_parse_body, for requests without preset sampler options.
bool server_parse(const server_parser *parser, const char *body, size_t n, void *request, server_problem *problem);
// The name of the field for a numeric option of samplers: the option's name with _ for -. False for other options.
struct frit_option;
bool server_name_sampler(const struct frit_option *row, char name[64]);
// Reads "temperature" and all fields named after sampler options from an object into a frit_sampler_options.
bool server_read_sampling(const json_t *object, void *options, server_problem *problem);
// Reads a whole number, also one that is written as 2.0. Returns false, and sets *out to 0, for other values.
bool server_integer(const json_t *value, json_int_t *out);
// The name that a field of the conversation in OpenAI's form has in the client's request.
server_field_name server_body_field(const server_body *body, const char *field);
// Returns false with a problem if the parsed request has unknown fields.
bool server_parse_strictly(const server_parser *parser, const void *request, server_problem *problem);
void server_request_deinit(const server_parser *parser, void *request);
// Makes `root` the root of the body, and its JSON, without the data of pictures, the body's text. Takes `root` over.
// Returns false with a problem if `root` is NULL or memory is short.
bool server_body_convert(server_body *body, json_t *root, server_problem *problem);

// Rows of field tables.
#define SERVER_FIELD_ELSEWHERE(name_)          \
    {                                          \
        .name = name_, .type = FIELD_ELSEWHERE \
    }
#define SERVER_FIELD_REFUSED(name, ...)      \
    {                                        \
        name, FIELD_UNSUPPORTED, __VA_ARGS__ \
    }
