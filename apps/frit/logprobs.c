// SPDX-License-Identifier: MIT
// frit run --logprobs and --prompt-logprobs: how likely tokens were, as lines for people and as JSON.
#include "cli.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PIECE = 256 };

typedef struct piece_text {
    const char *ptr;
    size_t n;
} piece_text;

const frit_option *cli_odds_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "logprobs",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(cli_odds_options, n_answer),
         .min = -1,
         .max = 256,
         .fallback = "-1",
         .metavar = "N",
         .help = "then say how likely each token of the answer was, and the N likeliest in its place (to stderr); "
                 "tokens are not guessed then; -1: no"},
        {.name = "prompt-logprobs",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(cli_odds_options, n_prompt),
         .min = -1,
         .max = 256,
         .fallback = "-1",
         .metavar = "N",
         .help = "the same of the prompt's tokens; all of it runs then"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static size_t stride(const cli_odds *odds)
{
    return 1 + (size_t)odds->n_top;
}

static frit_logprob *new_row(cli_odds *odds)
{
    if (odds->n == odds->capacity) {
        odds->capacity = odds->capacity ? 2 * odds->capacity : 64;
        odds->items = realloc(odds->items, odds->capacity * stride(odds) * sizeof *odds->items);
        if (!odds->items) exit(cli_no_memory());
    }
    return odds->items + odds->n * stride(odds);
}

void cli_odds_init(cli_odds *odds, const frit_model *model, int32_t n_top)
{
    frit_model_info info;
    frit_model_get_info(model, &info);
    *odds = (cli_odds){.n_top = n_top < info.n_vocab ? n_top : info.n_vocab};
}

frit_status cli_odds_add(cli_odds *odds, frit_token token, const float *logits, size_t n_vocab)
{
    frit_logprob *row = new_row(odds);
    row[0] = (frit_logprob){token, NAN};
    for (int32_t k = 0; k < odds->n_top; k++) row[1 + k] = (frit_logprob){-1, NAN};
    frit_status status = FRIT_OK;
    if (logits) status = frit_logprobs_of(logits, n_vocab, row, 1);
    if (logits && status == FRIT_OK) status = frit_logprobs_top(logits, n_vocab, row + 1, (size_t)odds->n_top);
    odds->n += status == FRIT_OK;
    return status;
}

void cli_odds_row(void *ctx, size_t i, const float *values, size_t n)
{
    cli_prompt_odds *prompt = ctx;
    if (i + 1 < prompt->n_tokens && prompt->status == FRIT_OK)
        prompt->status = cli_odds_add(&prompt->odds, prompt->tokens[i + 1], values, n);
}

void cli_odds_free(cli_odds *odds)
{
    free(odds->items);
    *odds = (cli_odds){0};
}

// A token's bytes, or the name of one that stands for no text.
static piece_text piece_of(const frit_model *model, frit_token token)
{
    size_t n;
    const char *piece = frit_token_piece(model, token, &n);
    frit_token_info info;
    if (n == 0 && frit_token_get_info(model, token, &info) == FRIT_OK) return (piece_text){info.text, info.n_bytes};
    return (piece_text){piece, n};
}

// OpenAI writes "bytes:\xe2\x82" for what is no UTF-8 on its own.
static json_t *text_json(piece_text piece)
{
    char escaped[6 + 4 * MAX_PIECE + 1] = "bytes:";
    json_t *text = json_stringn(piece.ptr ? piece.ptr : "", piece.n);
    if (text) return text;
    for (size_t i = 0, at = 6; i < piece.n && i < MAX_PIECE; i++, at += 4)
        snprintf(escaped + at, 5, "\\x%02x", (unsigned char)piece.ptr[i]);
    return json_string(escaped);
}

static json_t *one_json(const frit_model *model, frit_logprob found)
{
    const piece_text piece = piece_of(model, found.token);
    json_t *bytes = json_array();
    for (size_t i = 0; i < piece.n; i++) json_array_append_new(bytes, json_integer((unsigned char)piece.ptr[i]));
    return json_pack("{s:o, s:i, s:o, s:o}", "token", text_json(piece), "id", found.token, "logprob",
                     isnan(found.logprob) ? json_null() : json_real((double)found.logprob), "bytes", bytes);
}

json_t *cli_odds_json(const cli_odds *odds, const frit_model *model)
{
    json_t *list = json_array();
    for (size_t i = 0; i < odds->n; i++) {
        const frit_logprob *row = odds->items + i * stride(odds);
        json_t *one = one_json(model, row[0]), *top = json_array();
        for (int32_t k = 1; k <= odds->n_top && row[k].token >= 0; k++)
            json_array_append_new(top, one_json(model, row[k]));
        json_object_set_new(one, "top_logprobs", top);
        json_array_append_new(list, one);
    }
    return list;
}

// "-0.0213 \" once\""
static void print_one(const frit_model *model, frit_logprob found, int width)
{
    json_t *text = text_json(piece_of(model, found.token));
    char *quoted = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL;
    if (isnan(found.logprob))
        fprintf(stderr, "%9s %-*s", "-", width, quoted ? quoted : "");
    else
        fprintf(stderr, "%9.4f %-*s", (double)found.logprob, width, quoted ? quoted : "");
    free(quoted);
    json_decref(text);
}

void cli_odds_print(const cli_odds *odds, const frit_model *model, const char *what)
{
    enum { WIDTH = 16 };
    fprintf(stderr, "log-probabilities of the %s:\n", what);
    for (size_t i = 0; i < odds->n; i++) {
        const frit_logprob *row = odds->items + i * stride(odds);
        const bool has_top = odds->n_top > 0 && row[1].token >= 0;
        print_one(model, row[0], has_top ? WIDTH : 0);
        if (has_top) fputs("  of", stderr);
        for (int32_t k = 1; has_top && k <= odds->n_top; k++) print_one(model, row[k], 0);
        fputc('\n', stderr);
    }
}
