// SPDX-License-Identifier: MIT
// tokenizer.json: the model's vocabulary and merges are read piece by piece, the rest through Jansson.
//
//     {"added_tokens": [...], "normalizer": ..., "pre_tokenizer": ..., "post_processor": ..., "decoder": ...,
//      "model": {"type": "BPE", "vocab": {"a": 0, ...}, "merges": ["a b", ["a", "b"], ...], ...}}
//
// A file named tokenizer.json with "config" and "vocab" is Mistral's: tekken.c.
#include "text/vocab/vocab_file.h"

#include "format/json.h"
#include "text/json_reader.h"

#include <math.h>
#include <stdlib.h>

typedef enum part { PART_ADDED, PART_NORMALIZER, PART_CUTS, PART_TEMPLATE, PART_DECODER, N_PARTS } part;

static const char *const part_names[N_PARTS] = {
    "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder",
};

typedef struct reading {
    frit_vocab *vocab;
    const char *path;
    frit_arena *arena;
    const frit_log *log;
    frit_str parts[N_PARTS];
    bool is_list;   // the model's vocabulary is a list with scores
    frit_str merges;
    json_t *model;   // the other members of the model
    json_t *added;
    frit_vocab_list list;
    bool built;   // the list has been converted to the vocabulary
} reading;

static frit_status load(const reading *r, frit_str span, const char *what, json_t **out)
{
    *out = NULL;
    if (span.len == 0) return FRIT_OK;
    json_error_t error;
    *out = frit_json_read(span.ptr, span.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (*out) return FRIT_OK;
    return frit_fail_file(FRIT_E_FORMAT, "%s: %s: not valid JSON in line %d of it: %s", r->path, what, error.line,
                          error.text);
}

static frit_pull pull_of(const reading *r, frit_str span)
{
    return (frit_pull){span.ptr, span.ptr, span.ptr + span.len, r->path, r->arena, FRIT_OK};
}

static frit_str text_field(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) ? (frit_str){json_string_value(value), json_string_length(value)} : (frit_str){"", 0};
}

static frit_status copy_field(const reading *r, const char *name, frit_str *out)
{
    frit_str text = text_field(r->model, name);
    *out = (frit_str){frit_arena_text(r->arena, text.ptr, text.len), text.len};
    return out->ptr ? FRIT_OK : frit_fail_memory(text.len, name);
}

// ------------------------------------------------------------------------------------- added tokens

static frit_status list_added(reading *r)
{
    size_t i;
    json_t *token;
    if (r->added && !json_is_array(r->added) && !json_is_null(r->added))
        return frit_fail_file(FRIT_E_FORMAT, "%s: added_tokens is no list", r->path);
    json_array_foreach(r->added, i, token)
    {
        const json_t *id = json_object_get(token, "id"), *content = json_object_get(token, "content");
        if (!json_is_integer(id) || !json_is_string(content))
            return frit_fail_file(FRIT_E_FORMAT, "%s: added_tokens: item %zu lacks an id or a content", r->path, i);
        frit_str piece = {json_string_value(content), json_string_length(content)};
        char *copy = frit_arena_text(r->arena, piece.ptr, piece.len);
        if (!copy) return frit_fail_memory(piece.len, "an added token");
        FRIT_TRY(frit_vocab_list_add(&r->list, (frit_str){copy, piece.len}, (double)json_integer_value(id), 0,
                                     FRIT_TOKEN_NORMAL));
    }
    return FRIT_OK;
}

// Marks added tokens. The first n_model tokens of the list belong to the model.
static frit_status mark_added(reading *r, size_t n_model)
{
    size_t i;
    json_t *token;
    json_array_foreach(r->added, i, token)
    {
        json_int_t id = json_integer_value(json_object_get(token, "id"));
        frit_vocab_entry *entry = &r->vocab->entries[id];
        if (frit_vocab_find(r->vocab, entry->piece) != id)
            return frit_fail_file(FRIT_E_FORMAT,
                                  "%s: added_tokens: '%.*s' has id %lld, but in the vocabulary it has id %d", r->path,
                                  (int)(entry->piece.len < 100 ? entry->piece.len : 100), entry->piece.ptr,
                                  (long long)id, (int)frit_vocab_find(r->vocab, entry->piece));
        if (entry->piece.len == 0) continue;
        entry->kind = json_is_true(json_object_get(token, "special")) ? FRIT_TOKEN_CONTROL : FRIT_TOKEN_USER;
        entry->single_word = json_is_true(json_object_get(token, "single_word"));
        entry->strip_left = json_is_true(json_object_get(token, "lstrip"));
        entry->strip_right = json_is_true(json_object_get(token, "rstrip"));
        entry->normalized = json_is_true(json_object_get(token, "normalized"));
        entry->is_added = true;
    }
    for (size_t k = 0; k < n_model && json_array_size(r->added) > 0; k++)
        r->vocab->entries[r->list.items[k].id].is_added = false;
    return FRIT_OK;
}

// Converts the list to the vocabulary, when all tokens are known.
static frit_status build(reading *r)
{
    FRIT_TRY(load(r, r->parts[PART_ADDED], "added_tokens", &r->added));
    const size_t n_model = r->list.n;
    FRIT_TRY(list_added(r));
    FRIT_TRY(frit_vocab_list_finish(&r->list, r->path, r->vocab, r->arena));
    FRIT_TRY(frit_vocab_index(r->vocab, r->log));
    r->built = true;
    return mark_added(r, n_model);
}

// ------------------------------------------------------------------------------------- merges

// Reads "a b" or ["a", "b"].
static bool read_merge(frit_pull *pull, frit_str *left, frit_str *right)
{
    if (frit_pull_peek(pull) == '[')
        return frit_pull_open(pull, '[') && frit_pull_text(pull, left) && frit_pull_more(pull, ']') &&
               frit_pull_text(pull, right) && !frit_pull_more(pull, ']') && pull->status == FRIT_OK;
    return frit_pull_two(pull, left, right);
}

static frit_status read_merges(reading *r, frit_pull *pull)
{
    frit_vocab *vocab = r->vocab;
    size_t n_bytes = (size_t)(pull->end - pull->at);
    vocab->merges = frit_arena_new(r->arena, frit_merge, n_bytes / sizeof "\"a b\"" + 1);   // upper bound
    if (!vocab->merges) return frit_fail_memory(n_bytes, "the merges");
    frit_merge_text batch[FRIT_MERGE_BATCH];
    bool more = frit_pull_open(pull, '[');
    while (more) {
        size_t n = 0;
        for (; more && n < FRIT_MERGE_BATCH && read_merge(pull, &batch[n].left, &batch[n].right); n++)
            more = frit_pull_more(pull, ']');
        if (pull->status != FRIT_OK) break;
        if (frit_vocab_add_merges(vocab, batch, n) != FRIT_OK) return frit_fail_in(r->path, FRIT_E_FORMAT);
    }
    return pull->status;
}

// ------------------------------------------------------------------------------------- the model

// Reads a vocabulary of the form {"a": 0, "b": 1}.
static frit_status read_object(reading *r, frit_pull *pull)
{
    for (bool more = frit_pull_open(pull, '{'); more; more = frit_pull_more(pull, '}')) {
        frit_str piece;
        double id;
        if (!frit_pull_key(pull, &piece) || !frit_pull_number(pull, &id)) break;
        FRIT_TRY(frit_vocab_list_add(&r->list, piece, id, 0, FRIT_TOKEN_NORMAL));
    }
    return pull->status;
}

// Reads a vocabulary of the form [["a", -1.5], ["b", -2]].
static frit_status read_list(reading *r, frit_pull *pull)
{
    for (bool more = frit_pull_open(pull, '['); more; more = frit_pull_more(pull, ']')) {
        frit_str piece;
        double score;
        if (!frit_pull_open(pull, '[') || !frit_pull_text(pull, &piece) || !frit_pull_more(pull, ']') ||
            !frit_pull_number(pull, &score) || frit_pull_more(pull, ']'))
            break;
        if (isnan(score))
            return frit_fail_file(FRIT_E_FORMAT, "%s: the score of token %zu is not a number", r->path, r->list.n);
        FRIT_TRY(frit_vocab_list_add(&r->list, piece, (double)r->list.n, score, FRIT_TOKEN_NORMAL));
    }
    return pull->status;
}

// True if everything that merges depend on has been read, as in most files. Then merges are read in place, otherwise
// later.
static bool has_all_for_merges(const reading *r)
{
    return r->list.n > 0 && !r->built && r->parts[PART_ADDED].len > 0 &&
           json_object_get(r->model, "continuing_subword_prefix");
}

static frit_status read_merges_here(reading *r, frit_pull *pull)
{
    FRIT_TRY(build(r));
    FRIT_TRY(copy_field(r, "continuing_subword_prefix", &r->vocab->inner_prefix));
    return read_merges(r, pull);
}

// Reads the model's members in place.
static frit_status read_model(reading *r, frit_pull *pull)
{
    if (r->model) return frit_fail_file(FRIT_E_FORMAT, "%s: there are two models", r->path);
    r->model = json_object();
    if (!r->model) return frit_fail_memory(0, "the model of a tokenizer");
    for (bool more = frit_pull_open(pull, '{'); more; more = frit_pull_more(pull, '}')) {
        frit_str key, span;
        if (!frit_pull_key(pull, &key)) break;
        if (frit_str_is(key, "vocab") && r->built)
            return frit_fail_file(FRIT_E_FORMAT, "%s: there are two vocabularies", r->path);
        if (frit_str_is(key, "vocab")) {
            r->is_list = frit_pull_peek(pull) == '[';
            FRIT_TRY(r->is_list ? read_list(r, pull) : read_object(r, pull));
        } else if (frit_str_is(key, "merges") && frit_pull_peek(pull) == '[' && has_all_for_merges(r)) {
            FRIT_TRY(read_merges_here(r, pull));
        } else if (!frit_pull_skip(pull, &span)) {
            break;
        } else if (frit_str_is(key, "merges")) {
            r->merges = span;
        } else {
            json_t *value;
            FRIT_TRY(load(r, span, "model", &value));
            json_object_setn_new(r->model, key.ptr, key.len, value);
        }
    }
    return pull->status;
}

static frit_status find_parts(reading *r, frit_str text)
{
    frit_pull pull = pull_of(r, text);
    for (bool more = frit_pull_open(&pull, '{'); more; more = frit_pull_more(&pull, '}')) {
        frit_str key, span;
        if (!frit_pull_key(&pull, &key)) break;
        if (frit_str_is(key, "model") && frit_pull_peek(&pull) == '{') {
            FRIT_TRY(read_model(r, &pull));
            continue;
        }
        if (!frit_pull_skip(&pull, &span)) break;
        for (int i = 0; i < N_PARTS; i++)
            if (frit_str_is(key, part_names[i])) r->parts[i] = span;
    }
    return pull.status;
}

static frit_status read_unknown(reading *r)
{
    frit_str piece = text_field(r->model, "unk_token");
    const json_t *id = json_object_get(r->model, "unk_id");
    if (json_is_integer(id)) {
        if (json_integer_value(id) < 0 || json_integer_value(id) >= r->vocab->n)
            return frit_fail_file(FRIT_E_FORMAT, "%s: unk_id is %lld, but there are %d tokens", r->path,
                                  (long long)json_integer_value(id), (int)r->vocab->n);
        r->vocab->unk = (frit_token)json_integer_value(id);
    } else if (piece.len > 0) {
        r->vocab->unk = frit_vocab_find(r->vocab, piece);
        if (r->vocab->unk < 0)
            return frit_fail_file(FRIT_E_FORMAT, "%s: unk_token is '%.100s', which is no token", r->path, piece.ptr);
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- kinds of models

static const char *type_of(const reading *r)
{
    const char *type = json_string_value(json_object_get(r->model, "type"));
    if (type) return type;
    if (r->merges.len > 0 || r->vocab->merges) return "BPE";   // old files do not give the type
    if (r->is_list) return "Unigram";
    return json_object_get(r->model, "max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

static frit_status read_bpe(reading *r)
{
    frit_vocab *vocab = r->vocab;
    vocab->model = "bpe";
    vocab->whole_words = json_is_true(json_object_get(r->model, "ignore_merges"));
    vocab->byte_fallback = json_is_true(json_object_get(r->model, "byte_fallback"));
    vocab->fuse_unknown = json_is_true(json_object_get(r->model, "fuse_unk"));
    FRIT_TRY(copy_field(r, "continuing_subword_prefix", &vocab->inner_prefix));
    FRIT_TRY(copy_field(r, "end_of_word_suffix", &vocab->word_suffix));
    if (vocab->merges) return FRIT_OK;
    if (r->merges.len == 0) return frit_fail_file(FRIT_E_FORMAT, "%s: a model of type BPE has no 'merges'", r->path);
    frit_pull pull = pull_of(r, r->merges);
    return read_merges(r, &pull);
}

static frit_status read_unigram(reading *r)
{
    r->vocab->model = "unigram";
    r->vocab->byte_fallback = json_is_true(json_object_get(r->model, "byte_fallback"));
    r->vocab->fuse_unknown = true;
    return FRIT_OK;
}

static frit_status read_wordpiece(reading *r)
{
    r->vocab->model = "wordpiece";
    const json_t *limit = json_object_get(r->model, "max_input_chars_per_word");
    json_int_t n = json_is_integer(limit) ? json_integer_value(limit) : 100;
    r->vocab->max_word_chars = n > 0 && n < INT32_MAX ? (int32_t)n : INT32_MAX;
    return copy_field(r, "continuing_subword_prefix", &r->vocab->inner_prefix);
}

static frit_status read_wordlevel(reading *r)
{
    r->vocab->model = "wordlevel";
    return FRIT_OK;
}

static const struct {
    const char *type;
    frit_status (*read)(reading *r);
} models[] = {
    {"BPE", read_bpe},
    {"Unigram", read_unigram},
    {"WordPiece", read_wordpiece},
    {"WordLevel", read_wordlevel},
};

static frit_status read_kind(reading *r)
{
    const char *type = type_of(r);
    for (size_t i = 0; i < FRIT_COUNT(models); i++)
        if (strcmp(models[i].type, type) == 0) return models[i].read(r);
    return frit_fail_file(FRIT_E_UNSUPPORTED,
                          "%s: the model's type is '%.100s'; BPE, Unigram, WordPiece and WordLevel are known", r->path,
                          type);
}

// ------------------------------------------------------------------------------------- the whole

static frit_status read_step(reading *r, part p,
                             frit_status (*read)(frit_vocab *vocab, const json_t *json, frit_arena *arena))
{
    json_t *json;
    FRIT_TRY(load(r, r->parts[p], part_names[p], &json));
    frit_status status = read(r->vocab, json_is_null(json) ? NULL : json, r->arena);
    json_decref(json);
    return status == FRIT_OK || status == FRIT_E_MEMORY
               ? status
               : frit_fail_file(status, "%s: %s: %s", r->path, part_names[p], frit_error());
}

static frit_status read_parts(reading *r)
{
    frit_vocab *vocab = r->vocab;
    if (!r->model)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: there is neither 'model' (tokenizer.json) nor 'config' and 'vocab' (tekken.json)",
                              r->path);
    if (!r->built) FRIT_TRY(build(r));
    FRIT_TRY(read_kind(r));
    FRIT_TRY(read_unknown(r));
    if (vocab->byte_fallback) frit_vocab_mark_bytes(vocab);
    vocab->pipeline.repair = FRIT_REPAIR_PARTS;
    FRIT_TRY(read_step(r, PART_NORMALIZER, frit_json_read_normalizer));
    FRIT_TRY(read_step(r, PART_CUTS, frit_json_read_cuts));
    FRIT_TRY(read_step(r, PART_DECODER, frit_json_read_decoder));
    return read_step(r, PART_TEMPLATE, frit_json_read_template);
}

static bool recognises(frit_str start)
{
    size_t i = 0;
    while (i < start.len && strchr(" \t\r\n", start.ptr[i]) && start.ptr[i]) i++;
    return i < start.len && start.ptr[i] == '{';
}

// True if a member of Mistral's format comes first. A file of neither format is refused later.
static bool is_tekken(frit_str text, const char *path, frit_arena *arena)
{
    frit_pull pull = {text.ptr, text.ptr, text.ptr + text.len, path, arena, FRIT_OK};
    for (bool more = frit_pull_open(&pull, '{'); more; more = frit_pull_more(&pull, '}')) {
        frit_str key;
        if (!frit_pull_key(&pull, &key) || frit_str_is(key, "model")) return false;
        if (frit_str_is(key, "config") || frit_str_is(key, "vocab")) return true;
        if (!frit_pull_skip(&pull, NULL)) return false;
    }
    return false;
}

static frit_status read(frit_vocab *vocab, frit_str text, const char *path, frit_arena *arena, const frit_log *log)
{
    if (is_tekken(text, path, arena)) return frit_tekken_read(vocab, text, path, arena);
    reading r = {.vocab = vocab, .path = path, .arena = arena, .log = log};
    frit_status status = find_parts(&r, text);
    if (status == FRIT_OK) status = read_parts(&r);
    json_decref(r.model);
    json_decref(r.added);
    frit_vocab_list_free(&r.list);
    return status;
}

const frit_vocab_source frit_vocab_json = {"tokenizer.json", recognises, read};
