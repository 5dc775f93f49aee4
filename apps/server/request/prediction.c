// SPDX-License-Identifier: MIT
// The field `prediction`.
#include "server/request/prediction.h"

#include <stdlib.h>
#include <string.h>

static bool refuse_prediction(server_problem *problem, const char *expected)
{
    return server_refuse(problem, 400, "invalid_type", "prediction", "prediction: expected %s", expected);
}

static const json_t *text_of(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    const json_t *text = json_object_get(part, "text");
    return type && strcmp(type, "text") == 0 && json_is_string(text) ? text : NULL;
}

bool server_parse_prediction(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    const char *type = json_string_value(json_object_get(value, "type"));
    const json_t *content = json_object_get(value, "content");
    const size_t n_parts = json_array_size(content);
    size_t n = 0;
    if (!type || strcmp(type, "content") != 0) return refuse_prediction(problem, "an object of type \"content\"");
    if (!json_is_string(content) && !json_is_array(content))
        return refuse_prediction(problem, "content that is a string or a list of parts of type text");
    for (size_t i = 0; i < n_parts; i++) {
        const json_t *text = text_of(json_array_get(content, i));
        if (!text) return refuse_prediction(problem, "content that is a string or a list of parts of type text");
        n += json_string_length(text);
    }
    if (json_is_string(content)) n = json_string_length(content);
    request->scheduling.prediction = malloc(n + 1);
    if (!request->scheduling.prediction) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    if (json_is_string(content)) memcpy(request->scheduling.prediction, json_string_value(content), n);
    for (size_t i = 0; i < n_parts; i++) {
        const json_t *text = text_of(json_array_get(content, i));
        memcpy(request->scheduling.prediction + request->scheduling.n_prediction, json_string_value(text),
               json_string_length(text));
        request->scheduling.n_prediction += json_string_length(text);
    }
    request->scheduling.n_prediction = n;
    return true;
}

frit_token *server_prediction_tokens(const frit_model *model, const server_generation *request,
                                     const frit_tokenize_limits *limits, size_t *n_tokens)
{
    const size_t n_bytes = request->scheduling.n_prediction + 1,
                 most = n_bytes < limits->max_tokens ? n_bytes : limits->max_tokens;
    *n_tokens = 0;
    if (!request->scheduling.prediction) return NULL;
    frit_token *tokens = malloc(most * sizeof *tokens + 1);
    const frit_status status =
        tokens ? frit_tokenize_within(model, request->scheduling.prediction, request->scheduling.n_prediction, 0,
                                      limits, tokens, most, n_tokens)
               : FRIT_E_MEMORY;
    if (status == FRIT_OK && *n_tokens > 0) return tokens;
    free(tokens);   // not an error: the answer does not need a prediction
    *n_tokens = 0;
    return NULL;
}
