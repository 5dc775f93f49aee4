// SPDX-License-Identifier: MIT
// The table of kinds, and what they share: special tokens, the pipeline, what is put around a text.
#include "text/tokenizer.h"

#include "base/utf8.h"
#include "text/decode.h"
#include "text/scratch.h"

#include <stdlib.h>

static const frit_tokenizer_kind *const kinds[] = {
    &frit_tokenizer_bpe,       &frit_tokenizer_unigram, &frit_tokenizer_wordpiece,
    &frit_tokenizer_wordlevel, &frit_tokenizer_rwkv,
};

enum { MAX_TEXT_BYTES = INT32_MAX / 4 };   // escaped spaces are three times as long

// ------------------------------------------------------------------------------------- ids

void frit_ids_push(frit_ids *ids, frit_token id)
{
    if (ids->n == ids->capacity) {
        size_t capacity = ids->capacity ? ids->capacity * 2 : 64;
        frit_token *items = capacity < SIZE_MAX / sizeof *items ? realloc(ids->items, capacity * sizeof *items) : NULL;
        if (!items) {
            ids->failed = true;
            return;
        }
        ids->items = items;
        ids->capacity = capacity;
    }
    ids->items[ids->n++] = id;
}

void frit_ids_free(frit_ids *ids)
{
    free(ids->items);
    *ids = (frit_ids){0};
}

// ------------------------------------------------------------------------------------- building

static bool is_listed(const char *names, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = names; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == len && memcmp(at, name, len) == 0) return true;
    return false;
}

static frit_status init(frit_tokenizer *tokenizer, const frit_log *log)
{
    const frit_vocab *vocab = tokenizer->vocab;
    FRIT_TRY(frit_special_init(&tokenizer->special, vocab, false, &tokenizer->arena));
    FRIT_TRY(frit_special_init(&tokenizer->special_normalized, vocab, true, &tokenizer->arena));
    FRIT_TRY(frit_decode_pieces(vocab, &tokenizer->arena, &tokenizer->pieces));
    return tokenizer->kind->init ? tokenizer->kind->init(tokenizer, log) : FRIT_OK;
}

frit_status frit_tokenizer_new(frit_tokenizer **out, const frit_vocab *vocab, const frit_log *log)
{
    *out = NULL;
    if (!vocab->entries) return FRIT_OK;
    const frit_tokenizer_kind *kind = NULL;
    for (size_t i = 0; i < FRIT_COUNT(kinds); i++)
        if (is_listed(kinds[i]->models, vocab->model)) kind = kinds[i];
    if (!kind) return frit_fail(FRIT_E_UNSUPPORTED, "the tokenizer is '%s', which no kind serves", vocab->model);
    frit_tokenizer *tokenizer = calloc(1, sizeof *tokenizer);
    if (!tokenizer) return frit_fail_memory(sizeof *tokenizer, "the tokenizer");
    tokenizer->kind = kind;
    tokenizer->vocab = vocab;
    frit_status status = init(tokenizer, log);
    if (status != FRIT_OK) {
        frit_tokenizer_free(tokenizer);
        return status;
    }
    *out = tokenizer;
    return FRIT_OK;
}

void frit_tokenizer_free(frit_tokenizer *tokenizer)
{
    if (!tokenizer) return;
    if (tokenizer->kind->deinit) tokenizer->kind->deinit(tokenizer);
    frit_arena_free(&tokenizer->arena);
    free(tokenizer);
}

// ------------------------------------------------------------------------------------- encoding

typedef struct encoder {
    const frit_tokenizer *tokenizer;
    frit_scratch scratch;
    bool parse_control;
    frit_ids *out;
} encoder;

typedef frit_status (*fragment_fn)(encoder *e, frit_str text, bool at_start);

static size_t skip_spaces(frit_str text, size_t begin, size_t end)
{
    while (begin < end) {
        uint32_t c;
        size_t n = frit_unicode_next(text, begin, &c);
        if (!frit_unicode_is_space(c) || begin + n > end) break;
        begin += n;
    }
    return begin;
}

static size_t drop_spaces(frit_str text, size_t begin, size_t end)
{
    while (begin < end) {
        uint32_t c;
        size_t at = end - 1;
        while (at > begin && ((unsigned char)text.ptr[at] & 0xc0) == 0x80) at--;
        if (frit_unicode_next(text, at, &c) != end - at || !frit_unicode_is_space(c)) break;
        end = at;
    }
    return end;
}

// Hands what lies between special tokens to `next`, and emits these.
static frit_status cut_specials(encoder *e, const frit_special *special, frit_str text, bool at_start, fragment_fn next)
{
    const frit_vocab_entry *entries = e->tokenizer->vocab->entries;
    size_t begin = 0;
    frit_special_match match;
    for (size_t from = 0; frit_special_find(special, text, from, e->parse_control, &match); from = match.end) {
        size_t end = match.start, after = match.end;
        if (entries[match.id].strip_left) end = drop_spaces(text, begin, end);
        if (entries[match.id].strip_right) after = skip_spaces(text, after, text.len);
        if (end > begin) FRIT_TRY(next(e, (frit_str){text.ptr + begin, end - begin}, at_start && begin == 0));
        frit_ids_push(e->out, match.id);
        begin = after > match.start ? after : match.end;
    }
    if (begin == text.len) return FRIT_OK;
    return next(e, (frit_str){text.ptr + begin, text.len - begin}, at_start && begin == 0);
}

static frit_status encode_words(encoder *e, frit_str text, bool at_start)
{
    const frit_words *words;
    FRIT_TRY(frit_pipeline_cut(&e->tokenizer->vocab->pipeline, text, at_start, &e->scratch.flow, &words));
    return frit_scratch_encode(&e->scratch, e->tokenizer, words, e->out);
}

static frit_status encode_fragment(encoder *e, frit_str text, bool at_start)
{
    FRIT_TRY(frit_pipeline_normalize(&e->tokenizer->vocab->pipeline, text, &e->scratch.flow, &text));
    return cut_specials(e, &e->tokenizer->special_normalized, text, at_start, encode_words);
}

static frit_status encode_repaired(encoder *e, frit_str text)
{
    frit_repair how = e->tokenizer->vocab->pipeline.repair;
    const frit_special *special = &e->tokenizer->special;
    if (how == FRIT_REPAIR_NONE || frit_utf8_valid_prefix(text.ptr, text.len) == text.len)
        return cut_specials(e, special, text, true, encode_fragment);
    frit_buf repaired = {0};
    frit_unicode_repair(text, how, &repaired);
    frit_status status = repaired.failed
                             ? frit_fail_memory(text.len, "the text to encode")
                             : cut_specials(e, special, (frit_str){repaired.data, repaired.len}, true, encode_fragment);
    frit_buf_free(&repaired);
    return status;
}

static bool starts_with(const frit_special *special, frit_str text, frit_token id)
{
    frit_special_match match;
    return frit_special_find(special, text, 0, true, &match) && match.start == 0 && match.id == id;
}

static void push_prefix(encoder *e, frit_str text)
{
    const frit_tokenizer *tokenizer = e->tokenizer;
    const frit_vocab *vocab = tokenizer->vocab;
    bool has_it = vocab->n_prefix > 0 && e->parse_control && starts_with(&tokenizer->special, text, vocab->prefix[0]);
    if (vocab->n_prefix > 0 && e->parse_control && vocab->pipeline.n_norms == 0)
        has_it |= starts_with(&tokenizer->special_normalized, text, vocab->prefix[0]);
    for (int32_t i = 0; i < vocab->n_prefix && !has_it; i++) frit_ids_push(e->out, vocab->prefix[i]);
}

frit_status frit_tokenizer_encode(const frit_tokenizer *tokenizer, frit_str text, unsigned flags, frit_ids *out)
{
    const frit_vocab *vocab = tokenizer->vocab;
    if (text.len > MAX_TEXT_BYTES)
        return frit_fail(FRIT_E_LIMIT, "the text has %zu bytes, expected at most %d", text.len, MAX_TEXT_BYTES);
    bool add = flags & FRIT_TEXT_SPECIAL;
    encoder e = {.tokenizer = tokenizer, .parse_control = flags & FRIT_TEXT_PARSE_SPECIAL, .out = out};
    FRIT_TRY(frit_scratch_init(&e.scratch));
    if (add) push_prefix(&e, text);
    frit_status status = encode_repaired(&e, text);
    for (int32_t i = 0; i < vocab->n_suffix && add; i++) frit_ids_push(out, vocab->suffix[i]);
    frit_scratch_deinit(&e.scratch);
    if (status == FRIT_OK && out->failed) return frit_fail_memory(text.len, "the tokens of the text");
    return status;
}
