// SPDX-License-Identifier: MIT
// Embeddings with the requests and replies of OpenAI and Ollama.
//
// The thread that reads the body tokenizes the texts. The job then takes an idle session, whose room in the cache it
// uses, and embeds a batch of texts in each iteration of the engine thread, so that other answers continue meanwhile.
#include "server/api/handlers.h"
#include "server/request/request.h"
#include "server/sched/fair_queue.h"

#include "server/api/json_reply.h"
#include "server/api/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INPUTS = 2048 };

typedef struct input {
    frit_token *tokens;
    size_t n_tokens;
} input;

typedef struct embeddings {   // the job's ctx
    const char *name;         // the model's
    input *inputs;
    size_t n, next, n_batch;   // next: the first input that has no vector yet
    float *values;             // [n, width]
    size_t width;
    frit_embed_options options;
    char pooling[96], normalize[8];
    bool as_base64, is_sparse;
    const char *prompt;   // before each text
    size_t n_prompt_bytes;
} embeddings;

static void free_embeddings(void *ctx)
{
    embeddings *e = ctx;
    for (size_t i = 0; e->inputs && i < e->n; i++) free(e->inputs[i].tokens);
    free(e->inputs);
    free(e->values);
    free(e);
}

// ---------------------------------------------------------------------------------------- the answer

// The numbers as little-endian floats in base64, malloc'd.
static char *base64(const float *values, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t n_bytes = n * sizeof *values;
    char *text = malloc((n_bytes + 2) / 3 * 4 + 1), *at = text;
    uint8_t *bytes = calloc(n_bytes + 3, 1);
    for (size_t i = 0; bytes && i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        for (int k = 0; k < 4; k++) bytes[4 * i + (size_t)k] = (uint8_t)(bits >> (8 * k));
    }
    for (size_t i = 0; text && bytes && i < n_bytes; i += 3, at += 4) {
        const uint32_t group = (uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8 | bytes[i + 2];
        for (size_t k = 0; k < 4; k++) at[k] = i + k <= n_bytes ? digits[group >> (18 - 6 * k) & 63] : '=';
    }
    if (text && bytes) *at = 0;
    if (!bytes) {
        free(text);
        text = NULL;
    }
    free(bytes);
    return text;
}

// {"indices": [...], "values": [...]} of the numbers that are not 0.
static json_t *sparse_json(const float *values, size_t n)
{
    json_t *indices = json_array(), *numbers = json_array();
    for (size_t k = 0; k < n; k++) {
        if (values[k] == 0) continue;
        json_array_append_new(indices, json_integer((json_int_t)k));
        json_array_append_new(numbers, json_real((double)values[k]));
    }
    return json_pack("{s:o, s:o}", "indices", indices, "values", numbers);
}

static json_t *vector_json(const embeddings *e, size_t i)
{
    const float *values = e->values + i * e->width;
    if (e->as_base64) {
        char *text = base64(values, e->width);
        json_t *json = text ? json_string(text) : NULL;
        free(text);
        return json;
    }
    if (e->is_sparse) return sparse_json(values, e->width);
    json_t *list = json_array();
    for (size_t k = 0; k < e->width; k++) json_array_append_new(list, json_real((double)values[k]));
    return list;
}

// Writes a JSON value at once: a reply may have millions of numbers, too many to be JSON values at the same time.
static void put_json(server_job *job, json_t *json)
{
    char *text = server_json_text(json);
    if (text)
        server_job_put(job, text, strlen(text));
    else
        job->reply.queue.failed = true;
    free(text);
}

static void put_text(server_job *job, const char *text)
{
    server_job_put(job, text, strlen(text));
}

// Writes the members of an object, to follow other members.
static void put_members(server_job *job, json_t *json)
{
    char *text = server_json_text(json);
    if (text) text[0] = ',';   // instead of '{'
    if (text) put_text(job, text);
    if (!text) job->reply.queue.failed = true;
    free(text);
}

static void finish_openai(server_job *job, server_finish how)
{
    const embeddings *e = job->reply.ctx;
    (void)how;
    put_text(job, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < e->n; i++) {
        if (i > 0) put_text(job, ",");
        put_json(job, json_pack("{s:s, s:I, s:o}", "object", "embedding", "index", (json_int_t)i, "embedding",
                                vector_json(e, i)));
    }
    put_text(job, "]");
    const json_int_t n_tokens = (json_int_t)job->usage.n_prompt;
    put_members(job, json_pack("{s:s, s:{s:I, s:I}}", "model", e->name, "usage", "prompt_tokens", n_tokens,
                               "total_tokens", n_tokens));
    put_text(job, "\n");
}

// Ollama's reply: the vectors without further members.
static void finish_ollama(server_job *job, server_finish how)
{
    const embeddings *e = job->reply.ctx;
    (void)how;
    put_text(job, "{\"embeddings\":[");
    for (size_t i = 0; i < e->n; i++) {
        if (i > 0) put_text(job, ",");
        put_json(job, vector_json(e, i));
    }
    put_text(job, "]");
    put_members(job, json_pack("{s:s, s:I, s:I, s:I}", "model", e->name, "total_duration", (json_int_t)0,
                               "load_duration", (json_int_t)0, "prompt_eval_count", (json_int_t)job->usage.n_prompt));
    put_text(job, "\n");
}

static void finish_single(server_job *job, server_finish how)
{
    (void)how;
    server_json_reply_put(job, json_pack("{s:o}", "embedding", vector_json(job->reply.ctx, 0)));
}

static const server_reply_writer single_writer = {
    .text = server_json_reply_text, .finish = finish_single, .fail = server_json_reply_fail};
static const server_reply_writer openai_writer = {
    .text = server_json_reply_text, .finish = finish_openai, .fail = server_json_reply_fail};
static const server_reply_writer ollama_writer = {
    .text = server_json_reply_text, .finish = finish_ollama, .fail = server_json_reply_fail};

// ---------------------------------------------------------------------------------------- on the engine thread

static void store_vector(void *ctx, size_t item, size_t i, const float *values, size_t n)
{
    embeddings *e = ctx;
    (void)i;
    memcpy(e->values + (e->next + item) * e->width, values, n * sizeof *values);
}

static frit_status embed_batch(server_job *job, frit_engine *engine, bool *ended)
{
    enum { MOST = 64 };
    embeddings *e = job->reply.ctx;
    frit_embed_item items[MOST];
    size_t n = 0, n_tokens = 0;
    while (n < MOST && e->next + n < e->n && (n == 0 || n_tokens + e->inputs[e->next + n].n_tokens <= e->n_batch)) {
        const input *in = &e->inputs[e->next + n];
        items[n++] = (frit_embed_item){.tokens = in->tokens, .n_tokens = in->n_tokens};
        n_tokens += in->n_tokens;
    }
    const frit_status status = frit_embed_texts(engine, items, n, &e->options, store_vector, e);
    if (status != FRIT_OK) return status;
    e->next += n;
    server_job_charge(job, n_tokens, 0);
    *ended = e->next == e->n;
    return FRIT_OK;
}

// ---------------------------------------------------------------------------------------- the request

static bool read_ids(const json_t *list, size_t i, int32_t n_vocab, input *in, server_problem *problem)
{
    in->n_tokens = json_array_size(list);
    in->tokens = calloc(in->n_tokens + 1, sizeof *in->tokens);
    if (!in->tokens) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    for (size_t k = 0; k < in->n_tokens; k++) {
        json_int_t id;
        if (!server_integer(json_array_get(list, k), &id) || id < 0 || id >= n_vocab)
            return server_refuse(problem, 400, "invalid_value", "input",
                                 "input[%zu]: item %zu is not a token id of this model, 0 to %d", i, k, n_vocab - 1);
        in->tokens[k] = (frit_token)id;
    }
    return true;
}

// Tokenizes a text with the prompt before it.
static bool read_text(const server_exchange *exchange, const json_t *value, const embeddings *e,
                      const frit_tokenize_limits *limits, input *in, server_problem *problem)
{
    const size_t n = json_string_length(value), n_prompt = e->n_prompt_bytes;
    char *whole = malloc(n_prompt + n + 1);
    if (!whole) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    memcpy(whole, e->prompt, n_prompt);
    memcpy(whole + n_prompt, json_string_value(value), n);
    in->tokens =
        server_tokens(exchange->model->model, whole, n_prompt + n, FRIT_TEXT_SPECIAL, limits, &in->n_tokens, problem);
    free(whole);
    return in->tokens != NULL;
}

static bool read_input(const server_exchange *exchange, const json_t *value, size_t i, const embeddings *e, input *in,
                       server_problem *problem)
{
    const server_embedding *request = exchange->request;
    const server_model *model = exchange->model;
    const bool cuts = request->truncates || model->info.n_embed_tokens > 0;
    const frit_tokenize_limits limits = server_exchange_limits(exchange, cuts ? 0 : (size_t)model->n_ctx);
    if (json_is_array(value)) {
        if (!read_ids(value, i, model->info.n_vocab, in, problem)) return false;
    } else if (json_is_string(value)) {
        if (!read_text(exchange, value, e, &limits, in, problem)) return false;
        const size_t most = request->truncates ? (size_t)model->n_ctx : 0;
        const frit_status status = frit_embed_cut(model->model, most, in->tokens, &in->n_tokens);
        if (status != FRIT_OK) return server_refuse_status(problem, 500, NULL, status);
    } else {
        return server_refuse(problem, 400, "invalid_type", "input",
                             "input: expected a string, a list of strings, or lists of token ids");
    }
    if (in->n_tokens == 0) return server_refuse(problem, 400, "invalid_value", "input", "input[%zu]: is empty", i);
    if (in->n_tokens > (size_t)model->n_ctx)
        return server_refuse_length(problem, "input", (size_t)model->n_ctx, in->n_tokens, false);
    return true;
}

static bool read_inputs(const server_exchange *exchange, const json_t *value, embeddings *e, server_job *job,
                        server_problem *problem)
{
    const char *field = ((const server_embedding *)exchange->request)->field;
    if (!field) field = "input";
    if (!value) return server_refuse(problem, 400, "missing_required_parameter", field, "%s: is missing", field);
    const bool is_list = json_is_array(value) && !json_is_number(json_array_get(value, 0));
    const size_t n = is_list ? json_array_size(value) : 1;
    if (n == 0) return server_refuse(problem, 400, "invalid_value", "input", "input: an empty list");
    if (n > MAX_INPUTS)
        return server_refuse(problem, 400, "invalid_value", "input", "input: %zu inputs, at most %d are possible", n,
                             MAX_INPUTS);
    e->inputs = calloc(n, sizeof *e->inputs);
    e->values = e->inputs ? calloc(n * e->width, sizeof *e->values) : NULL;
    if (!e->values) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    for (e->n = 0; e->n < n;) {
        input *in = &e->inputs[e->n];
        const size_t i = e->n++;   // counted first, so that free_embeddings frees it after an error
        if (!read_input(exchange, is_list ? json_array_get(value, i) : value, i, e, in, problem)) return false;
        job->usage.n_prompt += in->n_tokens;
    }
    return true;
}

static bool choose_options(const server_model *model, const server_embedding *request, embeddings *e,
                           server_problem *problem)
{
    const char *encoding = request->encoding ? request->encoding : "float";
    const char *pooling = request->pooling ? request->pooling : model->info.pooling;
    e->as_base64 = strcmp(encoding, "base64") == 0;
    if (!e->as_base64 && strcmp(encoding, "float") != 0)
        return server_refuse(problem, 400, "invalid_value", "encoding_format",
                             "encoding_format: '%.64s', expected float or base64", encoding);
    if (strcmp(pooling, "none") == 0)
        return server_refuse(problem, 400, "unsupported_parameter", "pooling",
                             "pooling: a vector for each token is not possible here; ask for mean, cls or last");
    if (strlen(pooling) >= sizeof e->pooling)
        return server_refuse(problem, 400, "invalid_value", "pooling", "pooling: the name is too long");
    snprintf(e->pooling, sizeof e->pooling, "%s", pooling);
    e->is_sparse = strncmp(pooling, "splade", 6) == 0;
    if (e->is_sparse && e->as_base64)
        return server_refuse(problem, 400, "unsupported_parameter", "encoding_format",
                             "encoding_format: sparse vectors are given as numbers only, ask for float");
    e->options.pooling = e->pooling;
    if (request->normalize) {
        snprintf(e->normalize, sizeof e->normalize, "%s", request->normalize);
        e->options.normalize = e->normalize;
    }
    e->options.n_dims = request->n_dims;
    if (frit_embed_prompt(model->model, request->prompt_name, &e->prompt, &e->n_prompt_bytes) != FRIT_OK)
        return server_refuse_field(problem, 400, "prompt_name", FRIT_E_INVALID);
    const frit_status status = frit_embed_width(model->model, &e->options, &e->width);
    if (status == FRIT_OK) return true;
    const char *field = frit_error_field();
    return server_refuse_field(problem, 400, field && strcmp(field, "dims") == 0 ? "dimensions" : "pooling", status);
}

static server_job *make_embeddings_job(server_exchange *exchange, const server_embedding *request)
{
    const server_model *model = exchange->model;
    server_problem *problem = &exchange->problem;
    server_job *job = server_job_new();
    embeddings *e = job ? calloc(1, sizeof *e) : NULL;
    if (!e) {
        free(job);
        server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
        return NULL;
    }
    e->name = model->name;
    e->n_batch = 512;
    job->reply.ctx = e;
    job->reply.free_ctx = free_embeddings;
    job->reply.writer = request->is_single                     ? &single_writer
                        : exchange->protocol == &server_ollama ? &ollama_writer
                                                               : &openai_writer;
    job->work = embed_batch;
    job->reply.ends_on_finisher = true;   // writing the reply must not delay other answers
    if (choose_options(model, request, e, problem) && read_inputs(exchange, request->input, e, job, problem))
        return job;
    server_job_leave(NULL, job);
    return NULL;
}

void server_embed(server_exchange *exchange)
{
    const server_embedding *request = exchange->request;
    exchange->job = make_embeddings_job(exchange, request);
}
