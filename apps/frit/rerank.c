// SPDX-License-Identifier: MIT
// frit rerank: sorts documents by their relevance to a query.
#include "frit/cli/cli.h"

#include "common/ranking.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct rerank_input {
    const char *query, *file;
    int32_t top;
    bool raw_scores, json;
} rerank_input;

typedef struct rerank_args {
    cli_common common;
    rerank_input input;
    frit_engine_options engine;
    frit_model_options model;
} rerank_args;

static const frit_option *input_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "query",
         .letter = 'p',
         .aliases = "prompt",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(rerank_input, query),
         .metavar = "TEXT",
         .help = "the query, where it is not an argument"},
        {.name = "file",
         .letter = 'f',
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(rerank_input, file),
         .metavar = "FILE",
         .help = "a document on each line of this file ('-': of stdin); empty lines are left out"},
        {.name = "top",
         .aliases = "top-n",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(rerank_input, top),
         .max = 2147483647,
         .metavar = "N",
         .help = "print the best N only; 0: all"},
        {.name = "raw-scores",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(rerank_input, raw_scores),
         .help = "the numbers that the model's head gives, not made probabilities"},
        {.name = "json",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(rerank_input, json),
         .help = "print one JSON object instead of lines"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static int print_json(const app_ranked *best, size_t n, const frit_embed_item *documents)
{
    json_t *results = json_array();
    for (size_t i = 0; i < n; i++) {
        const frit_embed_item *d = &documents[best[i].index];
        json_t *text = json_stringn(d->text, d->n_bytes);
        json_array_append_new(results,
                              json_pack("{s:I, s:f, s:o}", "index", (json_int_t)best[i].index, "relevance_score",
                                        (double)best[i].score, "document", text ? text : json_null()));
    }
    return cli_print_json(json_pack("{s:o}", "results", results), JSON_INDENT(1) | JSON_REAL_PRECISION(9));
}

static void print_lines(const app_ranked *best, size_t n, const frit_embed_item *documents)
{
    for (size_t i = 0; i < n && !cli_should_stop(); i++) {
        const frit_embed_item *d = &documents[best[i].index];
        printf("%.6f\t%zu\t", (double)best[i].score, best[i].index);
        for (size_t at = 0; at < d->n_bytes;) {   // prints one line
            const char *newline = memchr(d->text + at, '\n', d->n_bytes - at);
            const size_t n_line = newline ? (size_t)(newline - d->text) - at : d->n_bytes - at;
            cli_put_text(stdout, d->text + at, n_line);
            if (newline) putchar(' ');
            at += n_line + (newline != NULL);
        }
        putchar('\n');
    }
}

static int rerank(const rerank_args *args, frit_engine *engine, const char *query, const frit_embed_item *documents,
                  size_t n)
{
    const frit_rerank_options options = {.raw_scores = args->input.raw_scores};
    float *scores = calloc(n + 1, sizeof *scores);
    app_ranked *best = calloc(n + 1, sizeof *best);
    int code = scores && best ? CLI_DONE : cli_no_memory();
    cli_exit_on_signal(true);   // nothing is written yet
    frit_status status = FRIT_OK;
    if (code == CLI_DONE) status = frit_rerank_texts(engine, query, strlen(query), documents, n, &options, scores);
    cli_exit_on_signal(false);
    if (status != FRIT_OK) code = cli_report(status);
    for (size_t i = 0; code == CLI_DONE && i < n; i++) best[i] = (app_ranked){i, scores[i]};
    if (code == CLI_DONE) {
        app_rank(best, n);
        const size_t top = (size_t)args->input.top;
        const size_t n_printed = top > 0 && top < n ? top : n;
        if (args->input.json)
            code = print_json(best, n_printed, documents);
        else
            print_lines(best, n_printed, documents);
    }
    free(scores);
    free(best);
    return code;
}

// The meaning of the arguments: the model, unless -m names it; the query, unless --query names it; documents.
typedef struct arguments {
    const char *model, *query;
    const char *const *documents;
    size_t n_documents;
} arguments;

static int read_arguments(const rerank_args *args, arguments *out)
{
    const cli_common *common = &args->common;
    const int n = common->n_positional;
    int at = 0;
    *out = (arguments){.query = args->input.query};
    if (!common->model && at < n) out->model = common->positional[at++];
    if (!out->query && at < n) out->query = common->positional[at++];
    out->n_documents = (size_t)(n - at);
    out->documents = common->positional + at;
    if (!out->query) return cli_usage("rerank: no query; give MODEL, QUERY and documents");
    if (out->n_documents > 0 && args->input.file)
        return cli_usage("rerank: give the documents once: as arguments or by -f");
    if (out->n_documents == 0 && !args->input.file && isatty(STDIN_FILENO))
        return cli_usage("rerank: no documents; give them as arguments, or a line for each with -f FILE or on stdin");
    return CLI_DONE;
}

static frit_embed_item *list_documents(const arguments *given, const cli_text *text, size_t *n)
{
    if (given->n_documents == 0) return cli_cut_texts(text, false, n);
    frit_embed_item *items = calloc(given->n_documents, sizeof *items);
    for (size_t i = 0; items && i < given->n_documents; i++)
        items[i] = (frit_embed_item){.text = given->documents[i], .n_bytes = strlen(given->documents[i])};
    *n = given->n_documents;
    return items;
}

static int run(void *ctx)
{
    rerank_args *args = ctx;
    frit_model *model = NULL;
    frit_engine *engine = NULL;
    frit_embed_item *documents = NULL;
    cli_text text = {0};
    arguments given;
    size_t n = 0;
    int code = read_arguments(args, &given);
    if (code == CLI_DONE && given.n_documents == 0)
        code = cli_read_file(args->input.file ? args->input.file : "-", &text);
    if (code == CLI_DONE && !(documents = list_documents(&given, &text, &n))) code = cli_no_memory();
    if (code == CLI_DONE && n == 0)
        code = cli_usage(
            "rerank: there are no documents; give them as arguments, or a line for each with -f FILE or on stdin");
    if (code == CLI_DONE) code = cli_open_model(&model, &args->common, &args->model, given.model);
    if (code == CLI_DONE) {
        args->engine.n_sessions = 4;   // short texts share steps
        code = cli_open_engine(&engine, &args->common, model, &args->engine);
    }
    if (code == CLI_DONE) code = rerank(args, engine, given.query, documents, n);
    frit_engine_free(engine);
    frit_model_free(model);
    free(documents);
    free(text.data);
    return code;
}

static const cli_group groups[] = {
    {"Input and output", input_rows, offsetof(rerank_args, input)},
    {"Engine", frit_engine_option_rows, offsetof(rerank_args, engine)},
    {"Model", frit_model_option_rows, offsetof(rerank_args, model)},
    {"General", cli_common_rows, offsetof(rerank_args, common)},
};

const cli_command cli_command_rerank = {
    .name = "rerank",
    .usage = "[MODEL] QUERY [DOCUMENT ...] [options]",
    .summary = "sort documents by how well they answer a query",
    .usual = "prompt file top-n raw-scores json ctx threads batch gpu-layers type model hf-repo quiet",
    .details = "Needs a model with a classification head that reads a query and a document at once (a cross-encoder,\n"
               "or a decoder made a reranker). A line has the score, from 0 to 1, the document's place from 0 on, and\n"
               "the document; best first.\n"
               "\n"
               "  frit rerank bge-reranker.gguf 'What is a panda?' 'A bear.' 'A car of Fiat.'\n"
               "  frit rerank bge-reranker.gguf 'What is a panda?' -f documents.txt --top 3 --json",
    .max_positional = CLI_MAX_POSITIONAL,
    .args_bytes = sizeof(rerank_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
