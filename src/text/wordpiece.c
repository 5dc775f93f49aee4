// SPDX-License-Identifier: MIT
// WordPiece, as BERT has it: text is normalized and cut at white space and punctuation; a word is covered from the left
// by the longest pieces that fit, or becomes the unknown token. Pieces that open a word begin with U+2581 in the file.
#include "text/tokenizer.h"

#include "base/utf8.h"

#include <utf8proc.h>

typedef struct wordpiece {
    size_t longest;   // bytes of the longest piece
} wordpiece;

static frit_status init(frit_tokenizer *tokenizer, const frit_log *log)
{
    (void)log;
    wordpiece *state = frit_arena_new(&tokenizer->arena, wordpiece, 1);
    if (!state) return frit_fail_memory(sizeof *state, "the tokenizer");
    tokenizer->state = state;
    for (frit_token id = 0; id < tokenizer->vocab->n; id++)
        if (tokenizer->vocab->entries[id].piece.len > state->longest)
            state->longest = tokenizer->vocab->entries[id].piece.len;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- characters

// Ideographs stand alone. The ranges are BERT's, which knows the blocks of its day.
static bool is_ideograph(uint32_t c)
{
    return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
           (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

static bool is_space(uint32_t c, utf8proc_category_t category)
{
    return (c >= 9 && c <= 13) || c == 0x85 || category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
           category == UTF8PROC_CATEGORY_ZP;
}

static bool is_punctuation(uint32_t c, utf8proc_category_t category)
{
    bool ascii_symbol = c < 0x7f && category >= UTF8PROC_CATEGORY_SM && category <= UTF8PROC_CATEGORY_SO;
    return ascii_symbol || (category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO);
}

// ------------------------------------------------------------------------------------- words

static void encode_word(const frit_tokenizer *tokenizer, frit_str word, frit_ids *out)
{
    size_t longest = ((const wordpiece *)tokenizer->state)->longest, n_before = out->n;
    for (size_t i = 0; i < word.len;) {
        size_t len = word.len - i < longest ? word.len - i : longest;
        frit_token id = -1;
        for (; len > 0 && id < 0; len -= id < 0) id = frit_vocab_find(tokenizer->vocab, (frit_str){word.ptr + i, len});
        if (id < 0) {   // the whole word is unknown
            out->n = n_before;
            if (tokenizer->vocab->unk >= 0) frit_ids_push(out, tokenizer->vocab->unk);
            return;
        }
        frit_ids_push(out, id);
        i += len;
    }
}

typedef struct word_taker {
    const frit_tokenizer *tokenizer;
    frit_ids *out;
    frit_buf word;
} word_taker;

static void flush(word_taker *words)
{
    if (words->word.len > 3) encode_word(words->tokenizer, (frit_str){words->word.data, words->word.len}, words->out);
    frit_buf_clear(&words->word);
    frit_buf_text(&words->word, "\xe2\x96\x81");
}

static void take(word_taker *words, uint32_t c)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    if (is_space(c, category)) {
        flush(words);
        return;
    }
    bool mark = category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
    bool control = category >= UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CN;
    if (c == 0 || c == 0xfffd || control || (mark && words->tokenizer->vocab->strip_accents)) return;
    bool alone = is_punctuation(c, category) || is_ideograph(c);
    if (alone) flush(words);
    char utf8[4];
    uint32_t lower = words->tokenizer->vocab->lowercase ? (uint32_t)utf8proc_tolower((utf8proc_int32_t)c) : c;
    frit_buf_append(&words->word, utf8, (size_t)frit_utf8_encode(lower, utf8));
    if (alone) flush(words);
}

// The first part of a character's canonical decomposition. What follows is marks, which are stripped; Hangul syllables
// lose their vowel too, as in llama.cpp, whose ids GGUF files are made for.
static uint32_t base_character(uint32_t c)
{
    utf8proc_int32_t parts[32];
    int last_class = 0;
    utf8proc_ssize_t n =
        utf8proc_decompose_char((utf8proc_int32_t)c, parts, FRIT_COUNT(parts), UTF8PROC_DECOMPOSE, &last_class);
    return n >= 1 && n <= (utf8proc_ssize_t)FRIT_COUNT(parts) ? (uint32_t)parts[0] : c;
}

static frit_status encode(const frit_tokenizer *tokenizer, frit_str text, frit_ids *out)
{
    word_taker words = {tokenizer, out, {0}};
    flush(&words);
    for (size_t i = 0; i < text.len;) {
        uint32_t c;
        int n = frit_utf8_decode(text.ptr + i, text.len - i, &c);
        i += n > 0 ? (size_t)n : 1;
        if (n <= 0) continue;
        take(&words, tokenizer->vocab->strip_accents ? base_character(c) : c);
    }
    flush(&words);
    bool failed = words.word.failed;
    frit_buf_free(&words.word);
    return failed ? frit_fail_memory(text.len, "a word") : FRIT_OK;
}

static void decode(const frit_tokenizer *tokenizer, frit_token id, frit_buf *out)
{
    frit_unescape_spaces(tokenizer->vocab->entries[id].piece, out);
}

const frit_tokenizer_kind frit_tokenizer_wordpiece = {"bert", "WordPiece", init, NULL, encode, decode};
