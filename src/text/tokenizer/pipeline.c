// SPDX-License-Identifier: MIT
// Runs the steps before a model. Words are ranges of a text; only a step that changes bytes writes a new text.
//
//     text        |..................text..................|
//     cut 1       |....|match|......|match|match|..........|
//     cut 2       |.|m||match|..    each word separately: look-arounds do not cross a border
#include "text/tokenizer/pipeline.h"

#include "base/grow.h"
#include "base/utf8.h"

#include <stdlib.h>

void frit_pipeline_deinit(frit_pipeline *pipeline)
{
    for (size_t i = 0; i < pipeline->n_norms; i++) frit_regex_free(pipeline->norms[i].regex);
    for (size_t i = 0; i < pipeline->n_cuts; i++) frit_regex_free(pipeline->cuts[i].regex);
    *pipeline = (frit_pipeline){0};
}

frit_status frit_cut_add_bert(frit_pipeline *pipeline)
{
    frit_cut *cuts = pipeline->cuts + pipeline->n_cuts;
    cuts[0] = (frit_cut){.split = FRIT_SPLIT_REMOVED};
    FRIT_TRY(frit_regex_new(&cuts[0].regex, frit_str_of("\\s"), FRIT_DIALECT_PLAIN));
    pipeline->n_cuts++;
    cuts[1] = (frit_cut){.split = FRIT_SPLIT_ISOLATED};
    FRIT_TRY(frit_regex_new(&cuts[1].regex, frit_str_of(FRIT_PUNCTUATION), FRIT_DIALECT_PLAIN));
    pipeline->n_cuts++;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- byte letters

enum { N_LETTERS = 256 + 68 };   // 68 bytes have no printable letter of their own

static bool is_printable(unsigned byte)
{
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

// The unprintable bytes in order: 0 to 0x20, 0x7f to 0xa0, 0xad.
uint32_t frit_letter_of(unsigned char byte)
{
    if (is_printable(byte)) return byte;
    if (byte <= 0x20) return 256u + byte;
    return byte == 0xad ? N_LETTERS - 1 : 256u + 0x21 + byte - 0x7f;
}

int frit_letter_byte(uint32_t c)
{
    if (c < 256) return is_printable(c) ? (int)c : -1;
    if (c >= N_LETTERS) return -1;
    c -= 256;
    if (c <= 0x20) return (int)c;
    return c == N_LETTERS - 1 - 256 ? 0xad : (int)c - 0x21 + 0x7f;
}

void frit_letters_spell(frit_str bytes, frit_buf *out)
{
    for (size_t i = 0; i < bytes.len; i++) frit_unicode_put(frit_letter_of((unsigned char)bytes.ptr[i]), out);
}

void frit_letters_init(frit_letters *letters)
{
    for (uint32_t c = 0; c < FRIT_COUNT(letters->bytes); c++) letters->bytes[c] = (int16_t)frit_letter_byte(c);
}

// The loop has no other branches, because the processor cannot predict which letters have one byte and which two.
void frit_letters_read(const frit_letters *letters, frit_str piece, frit_buf *out)
{
    if (!frit_buf_reserve(out, piece.len)) return;
    char *to = out->data + out->len;
    int bad = 0;
    size_t n = 0, i = 0;
    while (i < piece.len) {
        unsigned first = (unsigned char)piece.ptr[i], two = first >= 0x80;
        unsigned second = i + two < piece.len ? (unsigned char)piece.ptr[i + two] : 0;
        unsigned c = two ? (first & 0x1f) << 6 | (second & 0x3f) : first;
        bad |= letters->bytes[c % FRIT_COUNT(letters->bytes)];
        bad |= -(int)(two & (first < 0xc2 || first > 0xc5 || (second & 0xc0) != 0x80));
        to[n++] = (char)letters->bytes[c % FRIT_COUNT(letters->bytes)];
        i += 1 + two;
    }
    if (bad < 0) {
        frit_buf_append(out, piece.ptr, piece.len);
        return;
    }
    out->len += n;
    out->data[out->len] = 0;
}

// ------------------------------------------------------------------------------------- runs

frit_status frit_flow_init(frit_flow *flow)
{
    *flow = (frit_flow){0};
    return frit_matcher_init(&flow->matcher);
}

void frit_words_free(frit_words *words)
{
    free(words->items);
    *words = (frit_words){0};
}

void frit_flow_deinit(frit_flow *flow)
{
    for (int i = 0; i < 2; i++) {
        frit_buf_free(&flow->normal[i]);
        frit_buf_free(&flow->rewritten[i]);
        frit_words_free(&flow->words[i]);
    }
    frit_matcher_deinit(&flow->matcher);
}

enum { MAX_GROWTH = 16, MIN_ROOM = 4096 };

static frit_str str_of(const frit_buf *buf)
{
    return (frit_str){buf->len ? buf->data : "", buf->len};
}

frit_status frit_pipeline_normalize(const frit_pipeline *pipeline, frit_str text, frit_flow *flow, frit_str *out)
{
    const size_t most = MAX_GROWTH * text.len + MIN_ROOM;   // the steps of a file may double a text repeatedly
    for (size_t i = 0; i < pipeline->n_norms; i++) {
        frit_buf *buf = &flow->normal[i % 2];
        frit_buf_clear(buf);
        FRIT_TRY(pipeline->norms[i].apply(&pipeline->norms[i], text, buf));
        if (buf->failed) return frit_fail_memory(text.len, "a normalized text");
        text = str_of(buf);
        if (text.len > most)
            return frit_fail(FRIT_E_LIMIT, "the normalizers make a text of %zu bytes, expected at most %zu", text.len,
                             most);
    }
    if (text.len > UINT32_MAX) return frit_fail(FRIT_E_LIMIT, "the normalized text has %zu bytes", text.len);
    *out = text;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- words

static void push(frit_words *words, size_t start, size_t end)
{
    if (FRIT_GROW(words->items, words->capacity, words->n + 1, "words") != FRIT_OK) {
        words->failed = true;
        return;
    }
    words->items[words->n++] = (frit_word){(uint32_t)start, (uint32_t)end};
}

static frit_str word_at(const frit_words *words, size_t i)
{
    return (frit_str){words->text.ptr + words->items[i].start, words->items[i].end - words->items[i].start};
}

// The buffer that does not contain the words.
static frit_buf *free_text(frit_flow *flow, const frit_words *words)
{
    frit_buf *buf = &flow->rewritten[flow->rewritten[0].data && words->text.ptr == flow->rewritten[0].data];
    frit_buf_clear(buf);
    return buf;
}

static void add_space(const frit_cut *cut, frit_str word, bool first, size_t most, frit_buf *text)
{
    size_t start = text->len;
    frit_str space = cut->space;
    if (cut->replace) {
        for (size_t i = 0; i < word.len && text->len <= most; i++) {
            if (word.ptr[i] == ' ')
                frit_buf_append(text, space.ptr, space.len);
            else
                frit_buf_char(text, word.ptr[i]);
        }
    } else {
        frit_buf_append(text, word.ptr, word.len);
    }
    if (cut->prefix == FRIT_PREFIX_NEVER || (cut->prefix == FRIT_PREFIX_FIRST && !first) || text->failed) return;
    size_t n = text->len - start;
    if (n >= space.len && memcmp(text->data + start, space.ptr, space.len) == 0) return;
    if (!frit_buf_reserve(text, space.len)) return;
    memmove(text->data + start + space.len, text->data + start, n);
    memcpy(text->data + start, space.ptr, space.len);
    text->len += space.len;
    text->data[text->len] = 0;
}

// Rewrites every word: spaces, or letters for bytes.
static frit_status rewrite(const frit_cut *cut, bool spell, bool at_start, frit_flow *flow, const frit_words *from,
                           frit_words *to)
{
    frit_buf *text = free_text(flow, from);
    for (size_t i = 0; i < from->n && text->len <= flow->most; i++) {
        size_t start = text->len;
        if (spell)
            frit_letters_spell(word_at(from, i), text);
        else
            add_space(cut, word_at(from, i), at_start && i == 0 && from->items[0].start == 0, flow->most, text);
        push(to, start, text->len);
    }
    to->text = str_of(text);
    if (text->len > flow->most)
        return frit_fail(FRIT_E_LIMIT, "the pre-tokenizers make a text of more than %zu bytes", flow->most);
    return text->failed ? frit_fail_memory(text->len, "the words of the text") : FRIT_OK;
}

typedef struct splitter {
    const frit_cut *cut;
    frit_halt *halt;
    frit_words *out;
    size_t first;        // where the parts of this word begin
    bool last_matched;   // the last part was a match
    bool held;           // a match that may be joined with the next part: [held_start, ...)
    size_t held_start;
} splitter;

static void put_part(splitter *s, size_t start, size_t end, bool matched)
{
    frit_words *out = s->out;
    matched ^= s->cut->invert;
    bool has_last = out->n > s->first;
    switch (s->cut->split) {
    case FRIT_SPLIT_ISOLATED:
        push(out, start, end);
        break;
    case FRIT_SPLIT_REMOVED:
        if (!matched) push(out, start, end);
        break;
    case FRIT_SPLIT_CONTIGUOUS:
        if (has_last && matched == s->last_matched)
            out->items[out->n - 1].end = (uint32_t)end;
        else
            push(out, start, end);
        break;
    case FRIT_SPLIT_WITH_PREVIOUS:
        if (has_last && matched && !s->last_matched)
            out->items[out->n - 1].end = (uint32_t)end;
        else
            push(out, start, end);
        break;
    case FRIT_SPLIT_WITH_NEXT:
        if (s->held && matched) push(out, s->held_start, start);
        if (!matched) push(out, s->held ? s->held_start : start, end);
        s->held = matched;
        s->held_start = start;
        break;
    }
    s->last_matched = matched;
}

static frit_status split_word(splitter *s, frit_matcher *matcher, frit_str text, frit_word word)
{
    frit_str inside = {text.ptr + word.start, word.end - word.start};
    size_t done = 0, start = 0, end = 0;
    s->first = s->out->n;
    s->last_matched = s->held = false;
    while (done < inside.len) {
        bool found;
        if (s->halt) FRIT_TRY(frit_halt_check(s->halt, 0));
        FRIT_TRY(frit_matcher_next(matcher, s->cut->regex, inside, done, &start, &end, &found));
        if (!found) break;
        if (start > done) put_part(s, word.start + done, word.start + start, false);
        put_part(s, word.start + start, word.start + end, true);
        done = end;
    }
    if (done < inside.len) put_part(s, word.start + done, word.end, false);
    if (s->held) push(s->out, s->held_start, word.end);
    return FRIT_OK;
}

static frit_status split(const frit_cut *cut, frit_flow *flow, const frit_words *from, frit_words *to)
{
    splitter s = {.cut = cut, .halt = flow->halt, .out = to};
    to->text = from->text;
    for (size_t i = 0; i < from->n; i++) FRIT_TRY(split_word(&s, &flow->matcher, from->text, from->items[i]));
    return FRIT_OK;
}

static void swap(frit_words **from, frit_words **to)
{
    frit_words *other = *from;
    *from = *to;
    *to = other;
    (*to)->n = 0;
}

static frit_status apply(const frit_cut *cut, bool at_start, frit_flow *flow, frit_words **from, frit_words **to)
{
    if (cut->replace || cut->prefix != FRIT_PREFIX_NEVER) {
        FRIT_TRY(rewrite(cut, false, at_start, flow, *from, *to));
        swap(from, to);
    }
    if (cut->regex) {
        FRIT_TRY(split(cut, flow, *from, *to));
        swap(from, to);
    }
    if (cut->spell) {
        FRIT_TRY(rewrite(cut, true, at_start, flow, *from, *to));
        swap(from, to);
    }
    return FRIT_OK;
}

frit_status frit_pipeline_cut(const frit_pipeline *pipeline, frit_str text, bool at_start, frit_flow *flow,
                              const frit_words **out)
{
    frit_words *from = &flow->words[0], *to = &flow->words[1];
    from->n = to->n = 0;
    from->text = text;
    if (text.len > 0) push(from, 0, text.len);
    frit_matcher_allow(&flow->matcher, text.len);
    flow->most = MAX_GROWTH * text.len + MIN_ROOM;
    if (flow->most > UINT32_MAX) flow->most = UINT32_MAX;
    for (size_t i = 0; i < pipeline->n_cuts; i++) FRIT_TRY(apply(&pipeline->cuts[i], at_start, flow, &from, &to));
    *out = from;
    return from->failed || to->failed ? frit_fail_memory(text.len, "the words of the text") : FRIT_OK;
}
