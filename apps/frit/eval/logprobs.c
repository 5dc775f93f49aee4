// SPDX-License-Identifier: MIT
// frit run --logprobs and --prompt-logprobs: log-probabilities of tokens, as lines for people and as JSON.
#include "frit/cli/cli.h"

#include "common/grow.h"
#include "common/token_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const frit_option *cli_logprobs_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "logprobs",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(cli_logprobs_options, n_answer),
         .min = -1,
         .max = 256,
         .fallback = "-1",
         .metavar = "N",
         .help = "after the answer, print how likely each token was, and the N likeliest in its place (to stderr); "
                 "there is no speculation then; -1: no"},
        {.name = "prompt-logprobs",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(cli_logprobs_options, n_prompt),
         .min = -1,
         .max = 256,
         .fallback = "-1",
         .metavar = "N",
         .help = "likewise for the tokens of the prompt, which then runs whole, without the cache"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static size_t stride(const cli_logprobs *logprobs)
{
    return 1 + (size_t)logprobs->n_top;
}

static frit_logprob *new_row(cli_logprobs *logprobs)
{
    if (!APP_GROW(logprobs->items, logprobs->capacity, (logprobs->n + 1) * stride(logprobs))) exit(cli_no_memory());
    return logprobs->items + logprobs->n * stride(logprobs);
}

void cli_logprobs_init(cli_logprobs *logprobs, const frit_model *model, int32_t n_top)
{
    frit_model_info info;
    frit_model_get_info(model, &info);
    *logprobs = (cli_logprobs){.n_top = n_top < info.n_vocab ? n_top : info.n_vocab};
}

frit_status cli_logprobs_add(cli_logprobs *logprobs, frit_token token, const float *logits, size_t n_vocab)
{
    frit_logprob *row = new_row(logprobs);
    row[0] = (frit_logprob){token, NAN};
    for (int32_t k = 0; k < logprobs->n_top; k++) row[1 + k] = (frit_logprob){-1, NAN};
    frit_status status = FRIT_OK;
    if (logits) status = frit_logprobs_of(logits, n_vocab, row, 1);
    if (logits && status == FRIT_OK) status = frit_logprobs_top(logits, n_vocab, row + 1, (size_t)logprobs->n_top);
    logprobs->n += status == FRIT_OK;
    return status;
}

void cli_logprobs_row(void *ctx, size_t i, const float *values, size_t n)
{
    cli_prompt_logprobs *prompt = ctx;
    if (i + 1 < prompt->n_tokens && prompt->status == FRIT_OK)
        prompt->status = cli_logprobs_add(&prompt->logprobs, prompt->tokens[i + 1], values, n);
}

void cli_logprobs_deinit(cli_logprobs *logprobs)
{
    free(logprobs->items);
    *logprobs = (cli_logprobs){0};
}

static json_t *one_json(const frit_model *model, frit_logprob found)
{
    json_t *json = app_logprob_json(model, found);
    json_object_set_new(json, "id", json_integer(found.token));
    return json;
}

json_t *cli_logprobs_json(const cli_logprobs *logprobs, const frit_model *model)
{
    json_t *list = json_array();
    for (size_t i = 0; i < logprobs->n; i++) {
        const frit_logprob *row = logprobs->items + i * stride(logprobs);
        json_t *one = one_json(model, row[0]), *top = json_array();
        for (int32_t k = 1; k <= logprobs->n_top && row[k].token >= 0; k++)
            json_array_append_new(top, one_json(model, row[k]));
        json_object_set_new(one, "top_logprobs", top);
        json_array_append_new(list, one);
    }
    return list;
}

// Prints "-0.0213 \" once\"".
static void print_one(const frit_model *model, frit_logprob found, int width)
{
    json_t *text = app_token_json(model, found.token, NULL);
    char *quoted = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL;
    const int n = quoted ? (int)strlen(quoted) : 0;
    if (isnan(found.logprob))
        fprintf(stderr, "%9s ", "-");
    else
        fprintf(stderr, "%9.4f ", (double)found.logprob);
    cli_put_text(stderr, quoted ? quoted : "", (size_t)n);
    if (n < width) fprintf(stderr, "%*s", width - n, "");
    free(quoted);
    json_decref(text);
}

void cli_logprobs_print(const cli_logprobs *logprobs, const frit_model *model, const char *what)
{
    enum { WIDTH = 16 };
    fprintf(stderr, "log-probabilities of the %s:\n", what);
    for (size_t i = 0; i < logprobs->n; i++) {
        const frit_logprob *row = logprobs->items + i * stride(logprobs);
        const bool has_top = logprobs->n_top > 0 && row[1].token >= 0;
        print_one(model, row[0], has_top ? WIDTH : 0);
        if (has_top) fputs("  of", stderr);
        for (int32_t k = 1; has_top && k <= logprobs->n_top; k++) print_one(model, row[k], 0);
        fputc('\n', stderr);
    }
}
