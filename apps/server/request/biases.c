// SPDX-License-Identifier: MIT
// The field logit_bias: {"15": -1.5, "16": false}, or llama.cpp's [[15, -1.5], ["text", false]]. The bias false is
// -inf.
#include "server/request/request.h"

#include "common/grow.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct server_bias {
    frit_token token;
    float bias;
} server_bias;

static const char field[] = "logit_bias";

static bool refuse_pairs(server_problem *problem)
{
    return server_refuse(problem, 400, "invalid_type", field,
                         "logit_bias: expected a list of pairs of a token id or a text and a number or false");
}

static bool read_bias(const json_t *value, const char *of, float *bias, server_problem *problem)
{
    const double number = json_number_value(value);
    *bias = json_is_false(value) ? -INFINITY : (float)number;
    return json_is_false(value) || (json_is_number(value) && fabs(number) <= 100) ||
           server_refuse(problem, 400, "invalid_value", field,
                         "logit_bias: the bias of token %.64s is not a number from -100 to 100, or false", of);
}

static bool add_bias(server_generation *request, long long token, const json_t *value, server_problem *problem)
{
    char name[32];
    server_bias *bias = &request->sampling.biases[request->sampling.n_biases];
    snprintf(name, sizeof name, "%lld", token);
    if (token < 0 || token > INT32_MAX)
        return server_refuse(problem, 400, "invalid_value", field, "logit_bias: '%s' is not a token id", name);
    bias->token = (frit_token)token;
    request->sampling.n_biases++;
    return read_bias(value, name, &bias->bias, problem);
}

static bool read_object(json_t *value, server_generation *request, server_problem *problem)
{
    const char *key;
    json_t *bias;
    json_object_foreach(value, key, bias)
    {
        const size_t n_digits = strspn(key, "0123456789");
        if (n_digits == 0 || n_digits > 10 || key[n_digits])
            return server_refuse(problem, 400, "invalid_value", field, "logit_bias: '%.64s' is not a token id", key);
        if (!add_bias(request, strtoll(key, NULL, 10), bias, problem)) return false;
    }
    return true;
}

static bool read_list(const json_t *value, server_generation *request, server_problem *problem)
{
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *pair = json_array_get(value, i), *of = json_array_get(pair, 0), *bias = json_array_get(pair, 1);
        float number;
        json_int_t id;
        if (json_array_size(pair) != 2) return refuse_pairs(problem);
        if (json_is_string(of)) {
            if (!read_bias(bias, json_string_value(of), &number, problem)) return false;
            request->sampling.bias_texts = value;
        } else if (!server_integer(of, &id)) {
            return refuse_pairs(problem);
        } else if (!add_bias(request, id, bias, problem)) {
            return false;
        }
    }
    return true;
}

bool server_parse_logit_bias(json_t *value, void *ctx, server_problem *problem)
{
    server_generation *request = ctx;
    const size_t n = json_is_array(value) ? json_array_size(value) : json_object_size(value);
    if (!json_is_object(value) && !json_is_array(value))
        return server_refuse(problem, 400, "invalid_type", field,
                             "logit_bias: expected an object of token ids and numbers, or a list of pairs");
    if (n > SERVER_MAX_BIASES)
        return server_refuse(problem, 400, "invalid_value", field, "logit_bias: %zu tokens, at most %d are possible", n,
                             SERVER_MAX_BIASES);
    request->sampling.biases = calloc(n + 1, sizeof *request->sampling.biases);
    if (!request->sampling.biases) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    return json_is_array(value) ? read_list(value, request, problem) : read_object(value, request, problem);
}

static void clear_items(server_generation *request)
{
    if (request->sampling.bias_items) free((void *)request->sampling.options.logit_bias.items);
    free(request->sampling.bias_items);
    request->sampling.bias_items = NULL;
}

void server_free_biases(server_generation *request)
{
    clear_items(request);
    free(request->sampling.biases);
    request->sampling.biases = NULL;
}

// ---------------------------------------------------------------------------------------- the sampler's option

typedef struct list {
    server_bias *items;
    size_t n, capacity;
    bool failed;
} list;

static void append_bias(list *all, frit_token token, float bias)
{
    if (!APP_GROW(all->items, all->capacity, all->n + 1)) {
        all->failed = true;
        return;
    }
    all->items[all->n++] = (server_bias){token, bias};
}

static bool append_texts(const frit_model *model, const server_generation *request, list *all, server_problem *problem)
{
    for (size_t i = 0; i < json_array_size(request->sampling.bias_texts); i++) {
        const json_t *pair = json_array_get(request->sampling.bias_texts, i), *text = json_array_get(pair, 0);
        const frit_tokenize_limits limits = {.max_tokens = SERVER_MAX_BIASES};
        size_t n;
        float bias;
        if (!json_is_string(text) || !read_bias(json_array_get(pair, 1), "", &bias, problem)) continue;
        frit_token *tokens =
            server_tokens(model, json_string_value(text), json_string_length(text), 0, &limits, &n, problem);
        if (!tokens) return false;
        for (size_t k = 0; k < n; k++) append_bias(all, tokens[k], bias);
        free(tokens);
        if (all->n > SERVER_MAX_BIASES)
            return server_refuse(problem, 400, "invalid_value", field, "logit_bias: the texts have more than %d tokens",
                                 SERVER_MAX_BIASES);
    }
    return true;
}

// Writes sampling.options.logit_bias: first the items of `others`, the options of the server, then "15=-1.5",
// "16=-inf".
static bool write_items(server_generation *request, const list *all, const frit_option_list *others,
                        server_problem *problem)
{
    const char **items = calloc(others->n + all->n + 1, sizeof *items);
    request->sampling.bias_items = items ? calloc(all->n + 1, sizeof *request->sampling.bias_items) : NULL;
    if (!request->sampling.bias_items) {
        free((void *)items);
        return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    }
    for (size_t i = 0; i < others->n; i++) items[i] = others->items[i];
    for (size_t i = 0; i < all->n; i++) {
        snprintf(request->sampling.bias_items[i], sizeof *request->sampling.bias_items, "%d=%.6g",
                 (int)all->items[i].token, (double)all->items[i].bias);
        items[others->n + i] = request->sampling.bias_items[i];
    }
    request->sampling.options.logit_bias = (frit_option_list){items, others->n + all->n};
    return true;
}

bool server_make_biases(const frit_model *model, server_generation *request, const frit_option_list *others,
                        bool ban_end, server_problem *problem)
{
    static const frit_option_list none;
    list all = {0};
    clear_items(request);
    request->sampling.options.logit_bias = *others;
    if (!request->sampling.biases && !ban_end) return true;
    for (size_t i = 0; i < request->sampling.n_biases; i++)
        append_bias(&all, request->sampling.biases[i].token, request->sampling.biases[i].bias);
    bool good = append_texts(model, request, &all, problem);
    frit_model_info info;
    frit_model_get_info(model, &info);
    for (frit_token token = 0; token < info.n_vocab && ban_end; token++)
        if (frit_token_is_end(model, token)) append_bias(&all, token, -INFINITY);
    if (all.failed) good = server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    good = good && write_items(request, &all, request->sampling.biases ? &none : others, problem);
    free(all.items);
    return good;
}
