// SPDX-License-Identifier: MIT
// WordPiece: a word is covered from the left by the longest pieces that fit, or becomes the unknown token. A prefix
// marks the pieces that begin a word (U+2581, in GGUF) or those that continue one (##).
#include "text/tokenizer/scratch.h"

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

static bool is_too_long(const frit_vocab *vocab, frit_str word)
{
    int32_t n = 0;
    for (size_t i = 0; i < word.len; i++) n += ((unsigned char)word.ptr[i] & 0xc0) != 0x80;
    return vocab->max_word_chars > 0 && n > vocab->max_word_chars;
}

// Finds the longest piece at text[at..], written after `prefix` in `piece`. Returns its length without the prefix.
static size_t find_longest(const frit_vocab *vocab, size_t longest, frit_str prefix, frit_str rest, char *piece,
                           frit_token *id)
{
    if (longest < prefix.len) return 0;
    size_t n = rest.len < longest - prefix.len ? rest.len : longest - prefix.len;
    if (prefix.len > 0) memcpy(piece, prefix.ptr, prefix.len);
    memcpy(piece + prefix.len, rest.ptr, n);
    for (; n > 0; n--) {
        *id = frit_vocab_find_text(vocab, (frit_str){piece, prefix.len + n});
        if (*id >= 0) return n;
    }
    return 0;
}

static frit_status encode(const frit_tokenizer *tokenizer, frit_str word, frit_scratch *scratch, frit_ids *out)
{
    const frit_vocab *vocab = tokenizer->vocab;
    size_t longest = ((const wordpiece *)tokenizer->state)->longest, n_before = out->n, n;
    char *piece = frit_scratch_cells(scratch, longest + 1);
    if (!piece) return frit_fail_memory(longest, "a piece of a word");
    bool known = !is_too_long(vocab, word);
    for (size_t i = 0; known && i < word.len; i += n) {
        frit_token id;
        n = find_longest(vocab, longest, i == 0 ? vocab->word_prefix : vocab->inner_prefix,
                         (frit_str){word.ptr + i, word.len - i}, piece, &id);
        known = n > 0;
        if (known) frit_ids_push(out, id);
    }
    if (known) return FRIT_OK;
    out->n = n_before;   // the whole word is unknown
    if (vocab->unk >= 0) frit_ids_push(out, vocab->unk);
    return FRIT_OK;
}

const frit_tokenizer_kind frit_tokenizer_wordpiece = {"bert wordpiece", "WordPiece", init, NULL, encode};
