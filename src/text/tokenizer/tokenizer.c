// SPDX-License-Identifier: MIT
// The table of kinds, and the parts that they share: special tokens, the pipeline, tokens around a text.
#include "text/tokenizer/tokenizer.h"

#include "base/grow.h"
#include "base/utf8.h"
#include "base/word_list.h"
#include "text/tokenizer/decode.h"
#include "text/tokenizer/scratch.h"
#include "text/chat/trust.h"

#include <stdlib.h>

static const frit_tokenizer_kind *const kinds[] = {
    &frit_tokenizer_bpe,       &frit_tokenizer_unigram, &frit_tokenizer_wordpiece,
    &frit_tokenizer_wordlevel, &frit_tokenizer_rwkv,
};

enum { MAX_TEXT_BYTES = INT32_MAX / 4 };   // escaped spaces are three times as long

// ------------------------------------------------------------------------------------- ids

void frit_ids_push(frit_ids *ids, frit_token id)
{
    if (FRIT_GROW(ids->items, ids->capacity, ids->n + 1, "tokens") != FRIT_OK) {
        ids->failed = true;
        return;
    }
    ids->items[ids->n++] = id;
}

void frit_ids_free(frit_ids *ids)
{
    free(ids->items);
    *ids = (frit_ids){0};
}

// ------------------------------------------------------------------------------------- building

static bool only_grows(const frit_normalizer *norm)
{
    if (norm->apply == frit_normalizer_spm) return !(norm->flags & FRIT_SPM_TRIM) && norm->charsmap.n_units == 0;
    return norm->apply == frit_normalizer_escape || norm->apply == frit_normalizer_prepend;
}

static bool has_byte(const frit_vocab *vocab, unsigned char byte)
{
    char letter[4] = {(char)byte};
    size_t n = 1;
    if (!vocab->pipeline.bytes) return vocab->byte_fallback && frit_vocab_find_byte(vocab, byte) >= 0;
    if (vocab->pipeline.letters) n = (size_t)frit_utf8_encode(frit_letter_of(byte), letter);
    return frit_vocab_find_text(vocab, (frit_str){letter, n}) >= 0;
}

// The largest number of bytes of a text that a token may stand for: the length of the longest piece, if no step drops
// bytes and every byte has a token. 0: unlimited.
static size_t longest_token(const frit_vocab *vocab)
{
    const frit_pipeline *pipeline = &vocab->pipeline;
    for (size_t i = 0; i < pipeline->n_norms; i++)
        if (!only_grows(&pipeline->norms[i])) return 0;
    for (size_t i = 0; i < pipeline->n_cuts; i++)
        if (pipeline->cuts[i].regex && pipeline->cuts[i].split == FRIT_SPLIT_REMOVED) return 0;
    for (unsigned byte = 0; byte < 256; byte++) {
        const bool in_utf8 = byte < 0xf5 && byte != 0xc0 && byte != 0xc1;
        if ((in_utf8 || pipeline->repair == FRIT_REPAIR_NONE) && !has_byte(vocab, (unsigned char)byte)) return 0;
    }
    size_t longest = 1;
    for (frit_token id = 0; id < vocab->n; id++) {
        const frit_vocab_entry *entry = &vocab->entries[id];
        if (entry->strip_left || entry->strip_right) return 0;
        if (entry->piece.len > longest) longest = entry->piece.len;
    }
    return longest;
}

static frit_status init(frit_tokenizer *tokenizer, const frit_log *log)
{
    const frit_vocab *vocab = tokenizer->vocab;
    FRIT_TRY(frit_special_init(&tokenizer->special, vocab, false, &tokenizer->arena));
    FRIT_TRY(frit_special_init(&tokenizer->special_normalized, vocab, true, &tokenizer->arena));
    FRIT_TRY(frit_special_init_raw(&tokenizer->special_raw, vocab, &tokenizer->arena));
    tokenizer->token_bytes = longest_token(vocab);
    FRIT_TRY(frit_decode_pieces(vocab, &tokenizer->arena, &tokenizer->pieces));
    return tokenizer->kind->init ? tokenizer->kind->init(tokenizer, log) : FRIT_OK;
}

frit_status frit_tokenizer_new(frit_tokenizer **out, const frit_vocab *vocab, const frit_log *log)
{
    *out = NULL;
    if (!vocab->entries) return FRIT_OK;
    const frit_tokenizer_kind *kind = NULL;
    for (size_t i = 0; i < FRIT_COUNT(kinds); i++)
        if (frit_word_list_has(kinds[i]->models, " ", frit_str_of(vocab->model))) kind = kinds[i];
    if (!kind) return frit_fail(FRIT_E_UNSUPPORTED, "the tokenizer is '%s', which is not supported", vocab->model);
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
    frit_special_scope scope;   // for the whole text
    const char *text;           // start of the whole text
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

// Passes text between special tokens to `next`, and emits the special tokens.
static frit_status cut_specials(encoder *e, const frit_special *special, const frit_special_scope *scope, frit_str text,
                                bool at_start, fragment_fn next)
{
    const frit_vocab_entry *entries = e->tokenizer->vocab->entries;
    size_t begin = 0;
    frit_special_match match;
    for (size_t from = 0; frit_special_find(special, text, from, scope, &match); from = match.end) {
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

// Encodes normalized text. It has no untrusted ranges of its own: the original text determines which of its control
// tokens are trusted.
static frit_status encode_fragment(encoder *e, frit_str text, bool at_start)
{
    const frit_tokenizer *tokenizer = e->tokenizer;
    const frit_special *special = &tokenizer->special_normalized;
    frit_special_scope scope = e->scope, normalized = {.parse_control = scope.parse_control};
    frit_spans distrusted = {0};
    frit_status status = FRIT_OK;
    scope.offset = (size_t)(text.ptr - e->text);
    if (scope.parse_control && scope.untrusted && special->n > special->n_user) {
        status = frit_trust_normalized(tokenizer, text, &scope, &e->scratch.flow, &distrusted);
        normalized.untrusted = &distrusted;
    }
    if (status == FRIT_OK) status = frit_pipeline_normalize(&tokenizer->vocab->pipeline, text, &e->scratch.flow, &text);
    if (status == FRIT_OK) status = cut_specials(e, special, &normalized, text, at_start, encode_words);
    frit_spans_free(&distrusted);
    return status;
}

static frit_status encode_text(encoder *e, frit_str text)
{
    e->text = text.ptr;
    return cut_specials(e, &e->tokenizer->special, &e->scope, text, true, encode_fragment);
}

// Repairs trusted and untrusted text separately, so that the ranges of the repaired text are known.
static void repair_parts(const encoder *e, frit_str text, frit_repair how, frit_buf *out, frit_spans *untrusted)
{
    const frit_spans *spans = e->scope.untrusted;
    size_t at = 0;
    for (size_t i = 0; spans && i < spans->n; i++) {
        const frit_span span = spans->items[i];
        frit_unicode_repair((frit_str){text.ptr + at, span.begin - at}, how, out);
        const size_t begin = out->len;
        frit_unicode_repair((frit_str){text.ptr + span.begin, span.end - span.begin}, how, out);
        frit_spans_push(untrusted, begin, out->len);
        at = span.end;
    }
    frit_unicode_repair((frit_str){text.ptr + at, text.len - at}, how, out);
}

static frit_status encode_repaired(encoder *e, frit_str text)
{
    frit_repair how = e->tokenizer->vocab->pipeline.repair;
    if (how == FRIT_REPAIR_NONE || frit_utf8_valid_prefix(text.ptr, text.len) == text.len) return encode_text(e, text);
    frit_buf repaired = {0};
    frit_spans untrusted = {0};
    repair_parts(e, text, how, &repaired, &untrusted);
    if (e->scope.untrusted) e->scope.untrusted = &untrusted;
    frit_status status = repaired.failed || untrusted.failed ? frit_fail_memory(text.len, "the text to encode")
                                                             : encode_text(e, (frit_str){repaired.data, repaired.len});
    frit_buf_free(&repaired);
    frit_spans_free(&untrusted);
    return status;
}

static bool starts_with(const frit_special *special, frit_str text, const frit_special_scope *scope, frit_token id)
{
    frit_special_match match;
    return frit_special_find(special, text, 0, scope, &match) && match.start == 0 && match.id == id;
}

static void push_prefix(encoder *e, frit_str text)
{
    const frit_tokenizer *tokenizer = e->tokenizer;
    const frit_vocab *vocab = tokenizer->vocab;
    const bool looks = vocab->n_prefix > 0 && e->scope.parse_control;
    bool has_it = looks && starts_with(&tokenizer->special, text, &e->scope, vocab->prefix[0]);
    if (looks && vocab->pipeline.n_norms == 0)
        has_it |= starts_with(&tokenizer->special_normalized, text, &e->scope, vocab->prefix[0]);
    for (int32_t i = 0; i < vocab->n_prefix && !has_it; i++) frit_ids_push(e->out, vocab->prefix[i]);
}

// Checks the limit of tokens by the length of the text alone.
static frit_status check_length(const frit_tokenizer *tokenizer, frit_str text, const frit_encoding *how, frit_ids *out)
{
    if (text.len > MAX_TEXT_BYTES)
        return frit_fail(FRIT_E_LIMIT, "the text has %zu bytes, expected at most %d", text.len, MAX_TEXT_BYTES);
    if (how->max_tokens == 0 || tokenizer->token_bytes == 0) return FRIT_OK;
    const size_t least = text.len / tokenizer->token_bytes;
    if (least <= how->max_tokens) return FRIT_OK;
    out->n_least = least;
    return frit_fail(FRIT_E_LIMIT, "the text has more than %zu tokens", how->max_tokens);
}

frit_status frit_tokenizer_encode_as(const frit_tokenizer *tokenizer, frit_str text, const frit_encoding *how,
                                     frit_ids *out)
{
    const frit_vocab *vocab = tokenizer->vocab;
    FRIT_TRY(check_length(tokenizer, text, how, out));
    const bool add = how->flags & FRIT_TEXT_SPECIAL;
    encoder e = {.tokenizer = tokenizer, .out = out};
    e.scope.parse_control = how->flags & FRIT_TEXT_PARSE_SPECIAL;
    if (how->untrusted && how->untrusted->n > 0) e.scope.untrusted = how->untrusted;
    FRIT_TRY(frit_scratch_init(&e.scratch, how));
    if (add) push_prefix(&e, text);
    frit_status status = encode_repaired(&e, text);
    for (int32_t i = 0; i < vocab->n_suffix && add; i++) frit_ids_push(out, vocab->suffix[i]);
    frit_scratch_deinit(&e.scratch);
    if (status == FRIT_OK && out->failed) return frit_fail_memory(text.len, "the tokens of the text");
    if (status == FRIT_OK) status = frit_halt_check(&e.scratch.halt, out->n);
    if (out->n > out->n_least) out->n_least = out->n;
    return status;
}

frit_status frit_tokenizer_encode(const frit_tokenizer *tokenizer, frit_str text, unsigned flags, frit_ids *out)
{
    return frit_tokenizer_encode_as(tokenizer, text, &(frit_encoding){.flags = flags}, out);
}
