// SPDX-License-Identifier: MIT
// The table of kinds, and what they share: special tokens, BOS and EOS, pieces, decoding.
#include "text/tokenizer.h"

#include <ctype.h>
#include <stdlib.h>

static const frit_tokenizer_kind *const kinds[] = {
    &frit_tokenizer_bpe,
    &frit_tokenizer_gemma4,
    &frit_tokenizer_spm,
    &frit_tokenizer_wordpiece,
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

// ------------------------------------------------------------------------------------- spaces

static const char escaped_space[] = "\xe2\x96\x81";   // U+2581

void frit_escape_spaces(frit_str text, frit_buf *out)
{
    for (size_t i = 0; i < text.len;) {
        const char *space = memchr(text.ptr + i, ' ', text.len - i);
        size_t stop = space ? (size_t)(space - text.ptr) : text.len;
        frit_buf_append(out, text.ptr + i, stop - i);
        if (space) frit_buf_text(out, escaped_space);
        i = stop + (space != NULL);
    }
}

void frit_unescape_spaces(frit_str piece, frit_buf *out)
{
    for (size_t i = 0; i < piece.len;) {
        bool space = piece.len - i >= 3 && memcmp(piece.ptr + i, escaped_space, 3) == 0;
        frit_buf_char(out, space ? ' ' : piece.ptr[i]);
        i += space ? 3 : 1;
    }
}

// ------------------------------------------------------------------------------------- building

// "<0x0A>" -> 10; -1 for another spelling.
static int byte_of(frit_str piece)
{
    if (piece.len != 6 || memcmp(piece.ptr, "<0x", 3) != 0 || piece.ptr[5] != '>') return -1;
    int value = 0;
    for (int i = 3; i < 5; i++) {
        unsigned char c = (unsigned char)piece.ptr[i];
        if (!isxdigit(c)) return -1;
        value = value * 16 + (isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
    }
    return value;
}

static void decode_piece(const frit_tokenizer *tokenizer, frit_token id, frit_buf *out)
{
    const frit_vocab_entry *entry = &tokenizer->vocab->entries[id];
    int byte = entry->kind == FRIT_TOKEN_BYTE ? byte_of(entry->piece) : -1;
    if (byte >= 0)
        frit_buf_char(out, (char)byte);
    else if (entry->kind == FRIT_TOKEN_NORMAL)
        tokenizer->kind->decode(tokenizer, id, out);
    else if (entry->kind != FRIT_TOKEN_UNUSED)
        frit_buf_append(out, entry->piece.ptr, entry->piece.len);
}

static frit_status decode_pieces(frit_tokenizer *tokenizer)
{
    int32_t n = tokenizer->vocab->n;
    tokenizer->pieces = frit_arena_new(&tokenizer->arena, frit_str, (size_t)n);
    frit_buf all = {0};
    for (frit_token id = 0; tokenizer->pieces && id < n; id++) {
        size_t start = all.len;
        decode_piece(tokenizer, id, &all);
        tokenizer->pieces[id].len = all.len - start;
    }
    const char *at = all.failed ? NULL : frit_arena_text(&tokenizer->arena, all.data ? all.data : "", all.len);
    size_t n_bytes = all.len;
    frit_buf_free(&all);
    if (!at || !tokenizer->pieces) return frit_fail_memory(n_bytes, "the decoded vocabulary");
    for (frit_token id = 0; id < n; id++) {
        tokenizer->pieces[id].ptr = at;
        at += tokenizer->pieces[id].len;
    }
    return FRIT_OK;
}

static frit_status init(frit_tokenizer *tokenizer, const frit_log *log)
{
    FRIT_TRY(frit_special_init(&tokenizer->special, tokenizer->vocab, &tokenizer->arena));
    if (tokenizer->kind->init) FRIT_TRY(tokenizer->kind->init(tokenizer, log));
    return decode_pieces(tokenizer);
}

frit_status frit_tokenizer_new(frit_tokenizer **out, const frit_vocab *vocab, const frit_log *log)
{
    *out = NULL;
    if (!vocab->entries) return FRIT_OK;
    const frit_tokenizer_kind *kind = NULL;
    for (size_t i = 0; i < FRIT_COUNT(kinds); i++)
        if (strcmp(kinds[i]->name, vocab->model) == 0) kind = kinds[i];
    if (!kind)
        return frit_fail(FRIT_E_UNSUPPORTED, "tokenizer.ggml.model is '%s', which no tokenizer serves", vocab->model);
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

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

// `begin` is behind the special token that the fragment follows, if any; `end` is before the next one, if any.
static frit_status encode_fragment(const frit_tokenizer *tokenizer, frit_str text, size_t begin, size_t end,
                                   bool strip_left, bool strip_right, frit_ids *out)
{
    while (strip_left && begin < end && is_space(text.ptr[begin])) begin++;
    while (strip_right && begin < end && is_space(text.ptr[end - 1])) end--;
    if (begin == end) return FRIT_OK;
    return tokenizer->kind->encode(tokenizer, (frit_str){text.ptr + begin, end - begin}, out);
}

static frit_status encode_text(const frit_tokenizer *tokenizer, frit_str text, bool parse_control, frit_ids *out)
{
    const frit_vocab_entry *entries = tokenizer->vocab->entries;
    size_t begin = 0;
    bool strip = false;
    frit_special_match match;
    while (frit_special_find(&tokenizer->special, text, begin, parse_control, &match)) {
        FRIT_TRY(encode_fragment(tokenizer, text, begin, match.start, strip, entries[match.id].strip_left, out));
        frit_ids_push(out, match.id);
        strip = entries[match.id].strip_right;
        begin = match.end;
    }
    return encode_fragment(tokenizer, text, begin, text.len, strip, false, out);
}

frit_status frit_tokenizer_encode(const frit_tokenizer *tokenizer, frit_str text, unsigned flags, frit_ids *out)
{
    const frit_vocab *vocab = tokenizer->vocab;
    if (text.len > MAX_TEXT_BYTES)
        return frit_fail(FRIT_E_LIMIT, "the text has %zu bytes, at most %d are possible", text.len, MAX_TEXT_BYTES);
    bool parse_control = flags & FRIT_TEXT_PARSE_SPECIAL, add = flags & FRIT_TEXT_SPECIAL;
    if (add && vocab->add_bos && vocab->bos >= 0) {
        frit_special_match match;
        bool has_bos = parse_control && frit_special_find(&tokenizer->special, text, 0, true, &match) &&
                       match.start == 0 && match.id == vocab->bos;
        if (!has_bos) frit_ids_push(out, vocab->bos);
    }
    FRIT_TRY(encode_text(tokenizer, text, parse_control, out));
    if (add && vocab->add_eos && vocab->eos >= 0) frit_ids_push(out, vocab->eos);
    if (add && vocab->add_sep && vocab->sep >= 0 && tokenizer->kind == &frit_tokenizer_wordpiece)
        frit_ids_push(out, vocab->sep);   // others put it between two texts only
    return out->failed ? frit_fail_memory(text.len, "the tokens of the text") : FRIT_OK;
}

// ------------------------------------------------------------------------------------- decoding

frit_str frit_tokenizer_piece(const frit_tokenizer *tokenizer, frit_token id, unsigned flags)
{
    if (id < 0 || id >= tokenizer->vocab->n) return (frit_str){"", 0};
    frit_token_kind kind = tokenizer->vocab->entries[id].kind;
    bool hidden = kind == FRIT_TOKEN_CONTROL || kind == FRIT_TOKEN_UNKNOWN;
    return hidden && !(flags & FRIT_TEXT_SPECIAL) ? (frit_str){"", 0} : tokenizer->pieces[id];
}

frit_str frit_tokenizer_next_piece(const frit_tokenizer *tokenizer, frit_token id, unsigned flags, bool *at_start)
{
    frit_str piece = frit_tokenizer_piece(tokenizer, id, flags);
    const frit_vocab *vocab = tokenizer->vocab;
    if (id < 0 || id >= vocab->n || !vocab->add_space_prefix) return piece;
    frit_token_kind kind = vocab->entries[id].kind;
    bool added = *at_start && kind == FRIT_TOKEN_NORMAL && piece.len > 0 && piece.ptr[0] == ' ';
    *at_start = kind == FRIT_TOKEN_CONTROL || kind == FRIT_TOKEN_USER;
    return added ? (frit_str){piece.ptr + 1, piece.len - 1} : piece;
}

frit_status frit_tokenizer_decode(const frit_tokenizer *tokenizer, const frit_token *ids, size_t n, unsigned flags,
                                  frit_buf *out)
{
    bool at_start = true;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= tokenizer->vocab->n)
            return frit_fail(FRIT_E_INVALID, "token %zu is %d, but there are %d tokens", i, (int)ids[i],
                             (int)tokenizer->vocab->n);
        frit_str piece = frit_tokenizer_next_piece(tokenizer, ids[i], flags, &at_start);
        frit_buf_append(out, piece.ptr, piece.len);
    }
    return out->failed ? frit_fail_memory(out->len, "the decoded text") : FRIT_OK;
}
