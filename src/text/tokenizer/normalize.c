// SPDX-License-Identifier: MIT
// The normalizers: steps from text to text.
#include "text/tokenizer/pipeline.h"
#include "text/tokenizer/trie.h"

#include <utf8proc.h>

static const char escaped_space[] = "\xe2\x96\x81";   // U+2581

static frit_status finish(const frit_buf *out)
{
    return out->failed ? frit_fail_memory(out->len, "a normalized text") : FRIT_OK;
}

// ------------------------------------------------------------------------------------- small ones

frit_status frit_normalizer_form(const frit_normalizer *norm, frit_str text, frit_buf *out)
{
    return frit_unicode_normalize(text, (frit_form)norm->flags, out);
}

frit_status frit_normalizer_lowercase(const frit_normalizer *norm, frit_str text, frit_buf *out)
{
    (void)norm;
    frit_unicode_lower(text, out);
    return finish(out);
}

frit_status frit_normalizer_strip(const frit_normalizer *norm, frit_str text, frit_buf *out)
{
    size_t begin = 0, end = 0, at = 0;
    bool started = false;
    uint32_t c;
    while (at < text.len) {
        size_t n = frit_unicode_next(text, at, &c);
        bool space = frit_unicode_is_space(c);
        if (!space && !started) begin = at;
        started |= !space;
        at += n;
        if (!space) end = at;
    }
    if (!(norm->flags & FRIT_STRIP_LEFT)) begin = 0;
    if (!(norm->flags & FRIT_STRIP_RIGHT)) end = text.len;
    if (!started && norm->flags != 0) begin = end;
    frit_buf_append(out, text.ptr + begin, end - begin);
    return finish(out);
}

frit_status frit_normalizer_strip_accents(const frit_normalizer *norm, frit_str text, frit_buf *out)
{
    (void)norm;
    for (size_t i = 0; i < text.len;) {
        uint32_t c;
        i += frit_unicode_next(text, i, &c);
        if (!frit_unicode_is_mark(c)) frit_unicode_put(c, out);
    }
    return finish(out);
}

frit_status frit_normalizer_escape(const frit_normalizer *norm, frit_str text, frit_buf *out)
{
    (void)norm;
    for (size_t i = 0; i < text.len;) {
        const char *space = memchr(text.ptr + i, ' ', text.len - i);
        size_t stop = space ? (size_t)(space - text.ptr) : text.len;
        frit_buf_append(out, text.ptr + i, stop - i);
        if (space) frit_buf_text(out, escaped_space);
        i = stop + (space != NULL);
    }
    return finish(out);
}

frit_status frit_normalizer_prepend(const frit_normalizer *norm, frit_str text, frit_buf *out)
{
    if (text.len > 0) frit_buf_append(out, norm->content.ptr, norm->content.len);
    frit_buf_append(out, text.ptr, text.len);
    return finish(out);
}

static frit_status replace(const frit_normalizer *norm, frit_matcher *matcher, frit_str text, frit_buf *out)
{
    size_t done = 0, start = 0, end = 0;
    for (;;) {
        bool found;
        FRIT_TRY(frit_matcher_next(matcher, norm->regex, text, done, &start, &end, &found));
        if (!found) break;
        frit_buf_append(out, text.ptr + done, start - done);
        frit_buf_append(out, norm->content.ptr, norm->content.len);
        done = end;
    }
    frit_buf_append(out, text.ptr + done, text.len - done);
    return finish(out);
}

frit_status frit_normalizer_replace(const frit_normalizer *norm, frit_str text, frit_buf *out)
{
    frit_matcher matcher;
    FRIT_TRY(frit_matcher_init(&matcher));
    frit_matcher_allow(&matcher, text.len);
    frit_status status = replace(norm, &matcher, text, out);
    frit_matcher_deinit(&matcher);
    return status;
}

frit_status frit_normalizer_byte_level(const frit_normalizer *norm, frit_str text, frit_buf *out)
{
    (void)norm;
    frit_letters_spell(text, out);
    return finish(out);
}

// ------------------------------------------------------------------------------------- BERT

// The first part of a character's canonical decomposition. The other parts are marks, which are stripped. A Hangul
// syllable loses its vowel too, as in llama.cpp, whose ids GGUF files use.
static uint32_t base_character(uint32_t c)
{
    utf8proc_int32_t parts[32];
    int last_class = 0;
    if (c < 0x80) return c;
    utf8proc_ssize_t n =
        utf8proc_decompose_char((utf8proc_int32_t)c, parts, FRIT_COUNT(parts), UTF8PROC_DECOMPOSE, &last_class);
    return n >= 1 && n <= (utf8proc_ssize_t)FRIT_COUNT(parts) ? (uint32_t)parts[0] : c;
}

static bool is_control(uint32_t c)
{
    return c == 0 || c == 0xfffd || (c != '\t' && c != '\n' && c != '\r' && frit_unicode_is_control(c));
}

static void bert_gguf(unsigned flags, frit_str text, frit_buf *out)
{
    for (size_t i = 0; i < text.len;) {
        uint32_t c;
        i += frit_unicode_next(text, i, &c);
        if (flags & FRIT_BERT_STRIP) c = base_character(c);
        bool mark = (flags & FRIT_BERT_STRIP) && frit_unicode_is_mark(c);
        if (frit_unicode_is_space(c)) {
            frit_buf_char(out, ' ');
        } else if (!is_control(c) && !frit_unicode_is_unassigned(c) && !mark) {
            bool alone = frit_unicode_is_ideograph(c);
            if (alone) frit_buf_char(out, ' ');
            frit_unicode_put(flags & FRIT_BERT_LOWER ? frit_unicode_lower_of(c) : c, out);
            if (alone) frit_buf_char(out, ' ');
        }
    }
}

static void clean(unsigned flags, frit_str text, frit_buf *out)
{
    for (size_t i = 0; i < text.len;) {
        uint32_t c;
        i += frit_unicode_next(text, i, &c);
        if (flags & FRIT_BERT_CLEAN) {
            if (is_control(c)) continue;
            if (frit_unicode_is_space(c)) c = ' ';
        }
        bool alone = (flags & FRIT_BERT_IDEOGRAPHS) && frit_unicode_is_ideograph(c);
        if (alone) frit_buf_char(out, ' ');
        frit_unicode_put(c, out);
        if (alone) frit_buf_char(out, ' ');
    }
}

static frit_str str_of(const frit_buf *buf)
{
    return (frit_str){buf->len ? buf->data : "", buf->len};
}

frit_status frit_normalizer_bert(const frit_normalizer *norm, frit_str text, frit_buf *out)
{
    unsigned flags = norm->flags;
    if (flags & FRIT_BERT_GGUF) {
        bert_gguf(flags, text, out);
        return finish(out);
    }
    frit_buf cleaned = {0}, apart = {0}, stripped = {0};
    clean(flags, text, &cleaned);
    frit_status status = finish(&cleaned);
    if (status == FRIT_OK && flags & FRIT_BERT_STRIP) {
        status = frit_unicode_normalize(str_of(&cleaned), FRIT_FORM_NFD, &apart);
        for (size_t i = 0; status == FRIT_OK && i < apart.len;) {
            uint32_t c;
            i += frit_unicode_next(str_of(&apart), i, &c);
            if (!frit_unicode_is_nonspacing(c)) frit_unicode_put(c, &stripped);
        }
        if (status == FRIT_OK) status = finish(&stripped);
    }
    frit_str so_far = str_of(flags & FRIT_BERT_STRIP ? &stripped : &cleaned);
    if (flags & FRIT_BERT_LOWER)
        frit_unicode_lower(so_far, out);
    else
        frit_buf_append(out, so_far.ptr, so_far.len);
    frit_buf_free(&cleaned);
    frit_buf_free(&apart);
    frit_buf_free(&stripped);
    return status == FRIT_OK ? finish(out) : status;
}

// ------------------------------------------------------------------------------------- NMT

// Drops control characters and writes every kind of space as a space, as in the training of the translation models.
frit_status frit_normalizer_nmt(const frit_normalizer *norm, frit_str text, frit_buf *out)
{
    (void)norm;
    for (size_t i = 0; i < text.len;) {
        uint32_t c;
        i += frit_unicode_next(text, i, &c);
        bool dropped = (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f;
        bool space = c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 || (c >= 0x200b && c <= 0x200f) ||
                     c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd;
        if (!dropped) frit_unicode_put(space ? ' ' : c, out);
    }
    return finish(out);
}

// ------------------------------------------------------------------------------------- SentencePiece

// Applies the map as the tokenizers library does: to whole graphemes if they are short, otherwise to their characters.
// The shortest key is used, and the rest of its chunk is dropped.
frit_status frit_normalizer_precompiled(const frit_normalizer *norm, frit_str text, frit_buf *out)
{
    for (size_t i = 0; i < text.len;) {
        frit_str rest = {text.ptr + i, text.len - i}, with = {"", 0};
        frit_str grapheme = {rest.ptr, frit_unicode_grapheme(rest)};
        i += grapheme.len;
        if (grapheme.len < 6 && frit_charsmap_find(&norm->charsmap, grapheme, true, &with) > 0) {
            frit_buf_append(out, with.ptr, with.len);
            continue;
        }
        for (size_t k = 0; k < grapheme.len;) {
            uint32_t c;
            frit_str part = {grapheme.ptr + k, frit_unicode_next(grapheme, k, &c)};
            k += part.len;
            if (frit_charsmap_find(&norm->charsmap, part, true, &with) > 0) part = with;
            frit_buf_append(out, part.ptr, part.len);
        }
    }
    return finish(out);
}

// Converts the next bytes: a user-defined symbol stays unchanged; otherwise a key of the map is replaced, or one
// character copied.
static size_t next_part(const frit_normalizer *norm, frit_str rest, frit_str *part)
{
    int32_t id;
    uint32_t c;
    size_t n = norm->symbols ? frit_trie_longest(norm->symbols, rest, &id) : 0;
    *part = (frit_str){rest.ptr, n};
    if (n > 0) return n;
    n = frit_charsmap_find(&norm->charsmap, rest, false, part);
    if (n > 0) return n;
    n = frit_unicode_next(rest, 0, &c);
    *part = c == 0xfffd && n == 1 ? (frit_str){"\xef\xbf\xbd", 3} : (frit_str){rest.ptr, n};
    return n;
}

static void put_escaped(frit_str part, const char *space, frit_buf *out)
{
    for (size_t i = 0; i < part.len; i++) {
        if (part.ptr[i] == ' ')
            frit_buf_text(out, space);
        else
            frit_buf_char(out, part.ptr[i]);
    }
}

static bool ends_with(const frit_buf *text, size_t start, const char *space)
{
    size_t n = strlen(space);
    return text->len >= start + n && memcmp(text->data + text->len - n, space, n) == 0;
}

frit_status frit_normalizer_spm(const frit_normalizer *norm, frit_str text, frit_buf *out)
{
    bool trim = norm->flags & FRIT_SPM_TRIM, before = trim;   // before: the last character was a space
    const char *space = norm->flags & FRIT_SPM_ESCAPE ? escaped_space : " ";
    size_t start = out->len, i = 0;
    frit_str part;
    while (trim && i < text.len) {
        size_t n = next_part(norm, (frit_str){text.ptr + i, text.len - i}, &part);
        if (!frit_str_is(part, " ")) break;
        i += n;
    }
    if (i == text.len) return FRIT_OK;
    if (norm->flags & FRIT_SPM_PREFIX) frit_buf_text(out, space);
    while (i < text.len) {
        i += next_part(norm, (frit_str){text.ptr + i, text.len - i}, &part);
        for (; before && part.len > 0 && part.ptr[0] == ' '; part.len--) part.ptr++;
        if (part.len == 0) continue;
        put_escaped(part, space, out);
        before = trim && part.ptr[part.len - 1] == ' ';
    }
    while (trim && !out->failed && ends_with(out, start, space)) out->len -= strlen(space);
    if (norm->flags & FRIT_SPM_SUFFIX) frit_buf_text(out, space);
    return finish(out);
}
