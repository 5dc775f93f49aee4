// SPDX-License-Identifier: MIT
// Tokens to text: the piece of every token is computed on opening; rules that depend on the position apply during
// decoding.
#include "text/tokenizer/decode.h"

#include "text/tokenizer/tokenizer.h"

static bool starts_with(frit_str s, frit_str prefix)
{
    return prefix.len > 0 && s.len >= prefix.len && memcmp(s.ptr, prefix.ptr, prefix.len) == 0;
}

static bool ends_with(frit_str s, frit_str suffix)
{
    return suffix.len > 0 && s.len >= suffix.len && memcmp(s.ptr + s.len - suffix.len, suffix.ptr, suffix.len) == 0;
}

// ------------------------------------------------------------------------------------- pieces

static void replace(frit_str text, frit_str from, frit_str to, frit_buf *out)
{
    for (size_t i = 0; i < text.len;) {
        bool found = starts_with((frit_str){text.ptr + i, text.len - i}, from);
        if (found)
            frit_buf_append(out, to.ptr, to.len);
        else
            frit_buf_char(out, text.ptr[i]);
        i += found ? from.len : 1;
    }
}

static const struct {
    const char *from, *to;
} cleanups[] = {
    {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},    {" n't", "n't"},
    {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
};

typedef struct decoder {
    const frit_decoding *rules;
    frit_letters letters;
    frit_buf turns[2];   // the piece before and after the current step
    int now;
} decoder;

static frit_str text_of(const decoder *d)
{
    const frit_buf *buf = &d->turns[d->now];
    return (frit_str){buf->len ? buf->data : "", buf->len};
}

static void step(decoder *d, const char *from, size_t n_from, const char *to, size_t n_to)
{
    frit_buf *out = &d->turns[!d->now];
    frit_buf_clear(out);
    replace(text_of(d), (frit_str){from, n_from}, (frit_str){to, n_to}, out);
    d->now = !d->now;
}

static bool is_plain(const frit_decoding *rules)
{
    return rules->n_replacements == 0 && !rules->spaced && rules->continuing.len == 0 && rules->word_end.len == 0;
}

// Appends the text of a piece that is not the first.
static void decode_piece(decoder *d, frit_str piece, frit_buf *out)
{
    const frit_decoding *rules = d->rules;
    if (is_plain(rules)) {
        if (rules->letters)
            frit_letters_read(&d->letters, piece, out);
        else if (rules->escaped)
            replace(piece, frit_str_of("\xe2\x96\x81"), frit_str_of(" "), out);
        else
            frit_buf_append(out, piece.ptr, piece.len);
        return;
    }
    frit_buf *text = &d->turns[d->now = 0];
    frit_buf_clear(text);
    bool inner = starts_with(piece, rules->continuing), last = ends_with(piece, rules->word_end);
    if (rules->spaced && !inner) frit_buf_char(text, ' ');
    if (inner) piece = (frit_str){piece.ptr + rules->continuing.len, piece.len - rules->continuing.len};
    if (last) piece.len -= rules->word_end.len;
    if (rules->letters)
        frit_letters_read(&d->letters, piece, text);
    else
        frit_buf_append(text, piece.ptr, piece.len);
    if (rules->escaped) step(d, "\xe2\x96\x81", 3, " ", 1);
    for (int i = 0; i < rules->n_replacements; i++)
        step(d, rules->replacements[i].from.ptr, rules->replacements[i].from.len, rules->replacements[i].to.ptr,
             rules->replacements[i].to.len);
    for (size_t i = 0; i < FRIT_COUNT(cleanups) && rules->cleanup; i++)
        step(d, cleanups[i].from, strlen(cleanups[i].from), cleanups[i].to, strlen(cleanups[i].to));
    frit_buf_append(out, text_of(d).ptr, text_of(d).len);
}

static void decode_entry(decoder *d, const frit_vocab_entry *entry, frit_buf *out)
{
    int byte = entry->kind == FRIT_TOKEN_BYTE ? frit_vocab_byte_of(entry->piece) : -1;
    if (byte >= 0)
        frit_buf_char(out, (char)byte);
    else if (entry->kind == FRIT_TOKEN_NORMAL || (d->rules->spaced && entry->kind != FRIT_TOKEN_UNUSED))
        decode_piece(d, entry->piece, out);
    else if (entry->kind == FRIT_TOKEN_UNKNOWN && d->rules->unknown.len > 0)
        frit_buf_append(out, d->rules->unknown.ptr, d->rules->unknown.len);
    else if (entry->kind != FRIT_TOKEN_UNUSED)
        frit_buf_append(out, entry->piece.ptr, entry->piece.len);
}

frit_status frit_decode_pieces(const frit_vocab *vocab, frit_arena *arena, frit_str **out)
{
    frit_str *pieces = *out = frit_arena_new(arena, frit_str, (size_t)vocab->n);
    frit_buf all = {0};
    decoder d = {.rules = &vocab->pipeline.decoding};
    frit_letters_init(&d.letters);
    for (frit_token id = 0; pieces && id < vocab->n; id++) {
        size_t start = all.len;
        decode_entry(&d, &vocab->entries[id], &all);
        pieces[id].len = all.len - start;
    }
    bool failed = !pieces || all.failed || d.turns[0].failed || d.turns[1].failed;
    const char *at = failed ? NULL : frit_arena_text(arena, all.data ? all.data : "", all.len);
    size_t n_bytes = all.len;
    frit_buf_free(&all);
    frit_buf_free(&d.turns[0]);
    frit_buf_free(&d.turns[1]);
    if (!at) return frit_fail_memory(n_bytes, "the decoded vocabulary");
    for (frit_token id = 0; id < vocab->n; id++) {
        pieces[id].ptr = at;
        at += pieces[id].len;
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- sequences

frit_str frit_tokenizer_piece(const frit_tokenizer *tokenizer, frit_token id, unsigned flags)
{
    const frit_vocab *vocab = tokenizer->vocab;
    if (id < 0 || id >= vocab->n) return (frit_str){"", 0};
    unsigned char kind = vocab->entries[id].kind;
    bool hidden =
        kind == FRIT_TOKEN_CONTROL || (kind == FRIT_TOKEN_UNKNOWN && vocab->pipeline.decoding.unknown.len == 0);
    return hidden && !(flags & FRIT_TEXT_SPECIAL) ? (frit_str){"", 0} : tokenizer->pieces[id];
}

static void drop(frit_str *piece, size_t n)
{
    piece->ptr += n;
    piece->len -= n;
}

// Removes spaces that the encoder put before the text.
static void strip(const frit_decoding *rules, bool is_text, frit_str *piece, frit_text_place *place)
{
    bool first = !place->started || (rules->strip_again && place->fresh);
    if (!first || !is_text) return;
    if (place->fresh && place->started) place->n_stripped = 0;
    for (; place->n_stripped < rules->strip_start && piece->len > 0 && piece->ptr[0] == ' '; place->n_stripped++)
        drop(piece, 1);
    while (rules->strip_first && piece->len > 0 && piece->ptr[0] == ' ') drop(piece, 1);
}

frit_str frit_tokenizer_next_piece(const frit_tokenizer *tokenizer, frit_token id, unsigned flags,
                                   frit_text_place *place)
{
    const frit_vocab *vocab = tokenizer->vocab;
    const frit_decoding *rules = &vocab->pipeline.decoding;
    frit_str piece = frit_tokenizer_piece(tokenizer, id, flags);
    if (id < 0 || id >= vocab->n) return piece;
    unsigned char kind = vocab->entries[id].kind;
    bool special = kind == FRIT_TOKEN_CONTROL || kind == FRIT_TOKEN_USER;
    if (piece.len > 0 && rules->spaced && piece.ptr[0] == ' ' &&
        (!place->started || (rules->word_end.len > 0 && !place->space_pending)))
        drop(&piece, 1);
    strip(rules, kind == FRIT_TOKEN_NORMAL, &piece, place);
    place->space_pending = ends_with(vocab->entries[id].piece, rules->word_end);
    place->started |= piece.len > 0 || (!special && rules->strip_start <= 1);
    place->fresh = special;
    return piece;
}

frit_status frit_tokenizer_decode(const frit_tokenizer *tokenizer, const frit_token *ids, size_t n, unsigned flags,
                                  frit_buf *out)
{
    frit_text_place place = {0};
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= tokenizer->vocab->n)
            return frit_fail(FRIT_E_INVALID, "token %zu is %d, but there are %d tokens", i, (int)ids[i],
                             (int)tokenizer->vocab->n);
        frit_str piece = frit_tokenizer_next_piece(tokenizer, ids[i], flags, &place);
        frit_buf_append(out, piece.ptr, piece.len);
    }
    return out->failed ? frit_fail_memory(out->len, "the decoded text") : FRIT_OK;
}
