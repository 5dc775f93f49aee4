// SPDX-License-Identifier: MIT
// Mistral's tekken.json: ranks as in tiktoken files, numbered after the special tokens, with their regex.
//
//     {"config": {"pattern": "...", "default_vocab_size": 131072, "default_num_special_tokens": 1000},
//      "vocab": [{"rank": 0, "token_bytes": "AA==", "token_str": "..."}, ...],
//      "special_tokens": [{"rank": 0, "token_str": "<unk>"}, ...]}            (absent in early files)
#include "text/vocab/vocab_file.h"

#include "format/json.h"
#include "text/json_reader.h"

#include <stdio.h>

// Special tokens of files that do not list them. Further special tokens are called <SPECIAL_20> and so on.
static const char *const default_specials[] = {
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
};

typedef struct reading {
    frit_vocab *vocab;
    const char *path;
    frit_arena *arena;
    frit_str config, pieces, specials;
    int64_t n_vocab, n_special;
    frit_vocab_list list;
} reading;

static frit_status load(const reading *r, frit_str span, json_t **out)
{
    json_error_t error;
    *out = frit_json_read(span.ptr, span.len, JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
    return *out ? FRIT_OK : frit_fail_file(FRIT_E_FORMAT, "%s: not valid JSON: %s", r->path, error.text);
}

static frit_status use_config(reading *r, const json_t *config)
{
    const json_t *pattern = json_object_get(config, "pattern");
    r->n_vocab = json_integer_value(json_object_get(config, "default_vocab_size"));
    r->n_special = json_integer_value(json_object_get(config, "default_num_special_tokens"));
    if (!json_is_string(pattern)) return frit_fail_file(FRIT_E_FORMAT, "%s: config has no pattern", r->path);
    if (r->n_special < 0 || r->n_vocab <= r->n_special || r->n_vocab > INT32_MAX)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: default_vocab_size is %lld, expected more than the %lld special tokens", r->path,
                              (long long)r->n_vocab, (long long)r->n_special);
    frit_cut *cut = r->vocab->pipeline.cuts = frit_arena_new(r->arena, frit_cut, 1);
    if (!cut) return frit_fail_memory(sizeof *cut, "the pre-tokenizer");
    FRIT_TRY(frit_regex_new(&cut->regex, (frit_str){json_string_value(pattern), json_string_length(pattern)},
                            FRIT_DIALECT_PLAIN));
    r->vocab->pipeline.n_cuts = 1;
    return FRIT_OK;
}

static frit_status add_special(reading *r, int64_t rank, const char *name)
{
    char made[40];
    snprintf(made, sizeof made, "<SPECIAL_%lld>", (long long)rank);
    if (!name) name = made;
    char *piece = frit_arena_text(r->arena, name, strlen(name));
    if (!piece) return frit_fail_memory(sizeof made, "a special token");
    return frit_vocab_list_add(&r->list, frit_str_of(piece), (double)rank, 0, FRIT_TOKEN_CONTROL);
}

static frit_status add_specials(reading *r, const json_t *specials)
{
    size_t i;
    json_t *token;
    int64_t n = 0;
    json_array_foreach(specials, i, token)
    {
        json_int_t rank = json_integer_value(json_object_get(token, "rank"));
        if (rank >= r->n_special)
            return frit_fail_file(FRIT_E_FORMAT, "%s: a special token has rank %lld, but there are %lld", r->path,
                                  (long long)rank, (long long)r->n_special);
        FRIT_TRY(add_special(r, rank, json_string_value(json_object_get(token, "token_str"))));
        if (rank >= n) n = rank + 1;
    }
    for (; n < r->n_special && n < (1 << 20); n++)
        FRIT_TRY(
            add_special(r, n, n < (int64_t)FRIT_COUNT(default_specials) && !specials ? default_specials[n] : NULL));
    return FRIT_OK;
}

static frit_status add_piece(reading *r, frit_pull *pull)
{
    frit_str code = {"", 0}, piece;
    double rank = -1;
    for (bool more = frit_pull_open(pull, '{'); more; more = frit_pull_more(pull, '}')) {
        frit_str key;
        if (!frit_pull_key(pull, &key)) break;
        if (frit_str_is(key, "rank"))
            frit_pull_number(pull, &rank);
        else if (frit_str_is(key, "token_bytes"))
            frit_pull_text(pull, &code);
        else
            frit_pull_skip(pull, NULL);
    }
    FRIT_TRY(pull->status);
    if (rank < 0) return frit_fail_file(FRIT_E_FORMAT, "%s: a token has no rank", r->path);
    if (rank >= (double)(r->n_vocab - r->n_special)) return FRIT_OK;   // ranks that the model does not use
    FRIT_TRY(frit_base64_read(code, r->arena, &piece));
    if (piece.len == 0) return frit_fail_file(FRIT_E_FORMAT, "%s: token %.0f has no bytes", r->path, rank);
    return frit_vocab_list_add(&r->list, piece, rank + (double)r->n_special, -rank, FRIT_TOKEN_NORMAL);
}

static frit_status read_pieces(reading *r, frit_pull *pull)
{
    for (bool more = frit_pull_open(pull, '['); more; more = frit_pull_more(pull, ']')) FRIT_TRY(add_piece(r, pull));
    return pull->status;
}

static frit_pull pull_of(const reading *r, frit_str span)
{
    return (frit_pull){span.ptr, span.ptr, span.ptr + span.len, r->path, r->arena, FRIT_OK};
}

static frit_status read_config(reading *r)
{
    json_t *json;
    FRIT_TRY(load(r, r->config, &json));
    frit_status status = use_config(r, json);
    json_decref(json);
    return status;
}

// Reads the members of the file. Pieces are read in place if the configuration came before them, as usual.
static frit_status read_members(reading *r, frit_str text)
{
    frit_pull pull = pull_of(r, text);
    for (bool more = frit_pull_open(&pull, '{'); more; more = frit_pull_more(&pull, '}')) {
        frit_str key, span;
        if (!frit_pull_key(&pull, &key)) break;
        if (frit_str_is(key, "vocab") && r->config.len > 0 && r->list.n == 0) {
            FRIT_TRY(read_pieces(r, &pull));
            continue;
        }
        if (!frit_pull_skip(&pull, &span)) break;
        if (frit_str_is(key, "vocab")) r->pieces = span;
        if (frit_str_is(key, "special_tokens")) r->specials = span;
        if (!frit_str_is(key, "config") || r->config.len > 0) continue;
        r->config = span;
        FRIT_TRY(read_config(r));
    }
    return pull.status;
}

static frit_status read_parts(reading *r, frit_str text)
{
    FRIT_TRY(read_members(r, text));
    if (r->config.len == 0 || (r->list.n == 0 && r->pieces.len == 0))
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: there is neither 'model' (tokenizer.json) nor 'config' and 'vocab' (tekken.json)",
                              r->path);
    if (r->list.n == 0) {
        frit_pull pieces = pull_of(r, r->pieces);
        FRIT_TRY(read_pieces(r, &pieces));
    }
    json_t *json = NULL;
    if (r->specials.len > 0) FRIT_TRY(load(r, r->specials, &json));
    frit_status status = add_specials(r, json);
    json_decref(json);
    FRIT_TRY(status);
    FRIT_TRY(frit_vocab_list_finish(&r->list, r->path, r->vocab, r->arena));
    return frit_vocab_index(r->vocab, NULL);   // a text may equal a special token here
}

frit_status frit_tekken_read(frit_vocab *vocab, frit_str text, const char *path, frit_arena *arena)
{
    reading r = {.vocab = vocab, .path = path, .arena = arena};
    frit_status status = read_parts(&r, text);
    frit_vocab_list_free(&r.list);
    FRIT_TRY(status);
    vocab->model = "tekken";
    vocab->by_score = vocab->whole_words = vocab->pipeline.bytes = true;
    vocab->pipeline.repair = FRIT_REPAIR_PARTS;
    vocab->unk = frit_vocab_find(vocab, frit_str_of("<unk>"));
    vocab->bos = frit_vocab_find(vocab, frit_str_of("<s>"));
    vocab->eos = frit_vocab_find(vocab, frit_str_of("</s>"));
    vocab->pad = frit_vocab_find(vocab, frit_str_of("<pad>"));
    vocab->add_bos = vocab->bos >= 0;
    return FRIT_OK;
}
