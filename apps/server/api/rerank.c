// SPDX-License-Identifier: MIT
// Reranking with the requests and replies of Jina and Cohere. The job runs like a job of embeddings.c.
#include "server/api/handlers.h"
#include "server/request/request.h"
#include "server/sched/fair_queue.h"

#include "common/ranking.h"
#include "server/api/json_reply.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DOCUMENTS = 2048 };

typedef struct document {
    frit_token *tokens;   // of the query and the document together
    size_t n_tokens;
    float score;
} document;

typedef struct reranking {   // the job's ctx
    const char *name;        // the model's
    document *documents;
    size_t n, next, n_batch;   // next: the first document that has no score yet
    size_t top_n;
    json_t *texts;   // of the documents, if the reply repeats them; else NULL
    bool raw_scores;
} reranking;

static void free_reranking(void *ctx)
{
    reranking *r = ctx;
    for (size_t i = 0; r->documents && i < r->n; i++) free(r->documents[i].tokens);
    free(r->documents);
    json_decref(r->texts);
    free(r);
}

// ---------------------------------------------------------------------------------------- the answer

static json_t *results_json(const reranking *r, const app_ranked *best)
{
    json_t *results = json_array();
    for (size_t i = 0; i < r->top_n; i++) {
        json_t *result =
            json_pack("{s:I, s:f}", "index", (json_int_t)best[i].index, "relevance_score", (double)best[i].score);
        json_t *text = json_array_get(r->texts, best[i].index);
        if (text) json_object_set_new(result, "document", json_pack("{s:O}", "text", text));
        json_array_append_new(results, result);
    }
    return results;
}

static void put_results(server_job *job, server_finish how)
{
    const reranking *r = job->reply.ctx;
    (void)how;
    app_ranked *best = calloc(r->n, sizeof *best);
    for (size_t i = 0; best && i < r->n; i++) best[i] = (app_ranked){i, r->documents[i].score};
    if (best) app_rank(best, r->n);
    const json_int_t n_tokens = (json_int_t)job->usage.n_prompt;
    json_t *json = best ? json_pack("{s:s, s:s, s:o, s:{s:I, s:I}}", "object", "list", "model", r->name, "results",
                                    results_json(r, best), "usage", "prompt_tokens", n_tokens, "total_tokens", n_tokens)
                        : NULL;
    server_json_reply_put(job, json);
    free(best);
}

static const server_reply_writer writer = {
    .text = server_json_reply_text, .finish = put_results, .fail = server_json_reply_fail};

// ---------------------------------------------------------------------------------------- on the engine thread

static frit_status score_batch(server_job *job, frit_engine *engine, bool *ended)
{
    enum { MOST = 64 };
    reranking *r = job->reply.ctx;
    frit_embed_item items[MOST];
    float scores[MOST];
    size_t n = 0, n_tokens = 0;
    while (n < MOST && r->next + n < r->n && (n == 0 || n_tokens + r->documents[r->next + n].n_tokens <= r->n_batch)) {
        const document *d = &r->documents[r->next + n];
        items[n++] = (frit_embed_item){.tokens = d->tokens, .n_tokens = d->n_tokens};
        n_tokens += d->n_tokens;
    }
    const frit_rerank_options options = {.raw_scores = r->raw_scores};
    const frit_status status = frit_rerank_texts(engine, "", 0, items, n, &options, scores);
    if (status != FRIT_OK) return status;
    for (size_t i = 0; i < n; i++) r->documents[r->next + i].score = scores[i];
    r->next += n;
    server_job_charge(job, n_tokens, 0);
    *ended = r->next == r->n;
    return FRIT_OK;
}

// ---------------------------------------------------------------------------------------- the request

// The text of a document: a string, or an object with a text.
static const json_t *text_of(const json_t *value)
{
    return json_is_object(value) ? json_object_get(value, "text") : value;
}

static bool read_document(const server_model *model, const json_t *query, const json_t *value, size_t i, document *d,
                          server_problem *problem)
{
    const json_t *text = text_of(value);
    if (!json_is_string(text))
        return server_refuse(problem, 400, "invalid_type", "documents",
                             "documents[%zu]: expected a string, or an object with a text", i);
    frit_status status = FRIT_E_LIMIT;
    d->n_tokens = (json_string_length(query) + json_string_length(text)) / 2 + 16;
    for (size_t capacity = 0; status == FRIT_E_LIMIT && d->n_tokens > capacity;) {
        capacity = d->n_tokens;
        free(d->tokens);
        d->tokens = malloc(capacity * sizeof *d->tokens);
        if (!d->tokens) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
        status =
            frit_rerank_tokenize(model->model, json_string_value(query), json_string_length(query),
                                 json_string_value(text), json_string_length(text), d->tokens, capacity, &d->n_tokens);
    }
    if (status != FRIT_OK) return server_refuse_status(problem, 400, "documents", status);
    if (d->n_tokens <= (size_t)model->n_ctx) return true;
    return server_refuse(problem, 400, "context_length_exceeded", "documents",
                         "documents[%zu]: it has %zu tokens with the query; the model's context is %d", i, d->n_tokens,
                         (int)model->n_ctx);
}

static bool read_documents(const server_exchange *exchange, const server_rerank *request, reranking *r, server_job *job,
                           server_problem *problem)
{
    const json_t *documents = request->documents;
    const size_t n = json_array_size(documents);
    if (!documents)
        return server_refuse(problem, 400, "missing_required_parameter", "documents", "documents: is missing");
    if (!json_is_array(documents))
        return server_refuse(problem, 400, "invalid_type", "documents", "documents: expected a list of texts");
    if (n == 0 || n > MAX_DOCUMENTS)
        return server_refuse(problem, 400, "invalid_value", "documents", "documents: %zu texts; expected 1 to %d", n,
                             MAX_DOCUMENTS);
    r->documents = calloc(n, sizeof *r->documents);
    r->texts = request->return_documents ? json_array() : NULL;
    if (!r->documents) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    for (r->n = 0; r->n < n;) {
        document *d = &r->documents[r->n];
        const size_t i = r->n++;   // counted first, so that free_reranking frees it after an error
        json_t *text = json_array_get(documents, i);
        if (exchange->cancelled && exchange->cancelled(exchange->ctx))
            return server_refuse(problem, 499, NULL, NULL, "the client went away");
        if (!read_document(exchange->model, request->query, text, i, d, problem)) return false;
        if (r->texts) json_array_append_new(r->texts, json_copy((json_t *)text_of(text)));
        job->usage.n_prompt += d->n_tokens;
    }
    r->top_n = request->top_n > 0 && (size_t)request->top_n < n ? (size_t)request->top_n : n;
    return true;
}

// Refuses a model that cannot rerank. The library's message begins with the model's path, which is replaced by the name
// that clients use.
static bool refuse_model(const server_model *model, server_problem *problem)
{
    const char *why = frit_error();
    const size_t n = strlen(model->info.path);
    const bool named = strncmp(why, model->info.path, n) == 0;
    return server_refuse(problem, 400, "unsupported_model", "model", "%s%s", named ? model->name : "",
                         why + (named ? n : 0));
}

// Checks the model and the query before any text is tokenized.
static bool check_request(const server_model *model, const server_rerank *request, server_problem *problem)
{
    size_t width;
    const frit_status status = frit_embed_width(model->model, &(frit_embed_options){.pooling = "rank"}, &width);
    if (status != FRIT_OK) return refuse_model(model, problem);
    if (!request->query) return server_refuse(problem, 400, "missing_required_parameter", "query", "query: is missing");
    return json_is_string(request->query) ||
           server_refuse(problem, 400, "invalid_type", "query", "query: expected a string");
}

static server_job *make_rerank_job(server_exchange *exchange, const server_rerank *request)
{
    const server_model *model = exchange->model;
    server_problem *problem = &exchange->problem;
    server_job *job = server_job_new();
    reranking *r = job ? calloc(1, sizeof *r) : NULL;
    if (!r) {
        free(job);
        server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
        return NULL;
    }
    r->name = model->name;
    r->n_batch = 512;
    r->raw_scores = request->raw_scores;
    job->reply.ctx = r;
    job->reply.free_ctx = free_reranking;
    job->reply.writer = &writer;
    job->work = score_batch;
    if (check_request(model, request, problem) && read_documents(exchange, request, r, job, problem)) return job;
    server_job_leave(NULL, job);
    return NULL;
}

void server_rerank_texts(server_exchange *exchange)
{
    const server_rerank *request = exchange->request;
    exchange->job = make_rerank_job(exchange, request);
}
