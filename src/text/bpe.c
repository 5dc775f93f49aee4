// SPDX-License-Identifier: MIT
// Byte-level BPE: text -> words (pretok.h) -> bytes -> merges by rank. Pieces spell bytes with letters: printable ones
// stand for themselves, the others for U+0100 and up. The raw variant (Gemma 4) merges characters instead, spaces
// written as U+2581, and falls back to <0xXX> tokens.
#include "text/merge.h"

#include "base/utf8.h"
#include "text/pretok.h"

#include <stdlib.h>

enum { N_LETTERS = 256 + 68 };   // 68 bytes have no printable letter of their own

typedef struct pair_slot {
    uint64_t pair;   // left << 32 | right
    int32_t rank;    // -1: empty
    frit_token merged;
} pair_slot;

typedef struct bpe {
    frit_pretok pretok;
    unsigned flags;
    pair_slot *pairs;   // open addressing, at most half full
    size_t mask;
    frit_token letters[256];   // token of a byte, or -1
    frit_map whole;            // bytes of a word -> token, where merges may be skipped
    size_t longest;            // bytes of the longest of them
} bpe;

// ------------------------------------------------------------------------------------- byte letters

static bool is_printable(int byte)
{
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

// letters[b]: code point that spells byte b; bytes[c]: byte that code point c spells, or -1.
static void byte_letters(uint16_t letters[256], int16_t bytes[N_LETTERS])
{
    for (int c = 0; c < N_LETTERS; c++) bytes[c] = -1;
    int next = 256;
    for (int byte = 0; byte < 256; byte++) {
        letters[byte] = (uint16_t)(is_printable(byte) ? byte : next++);
        bytes[letters[byte]] = (int16_t)byte;
    }
}

// A piece with a character that is no byte letter stands for itself.
static void spell_bytes(frit_str piece, const int16_t bytes[N_LETTERS], frit_buf *out)
{
    size_t start = out->len;
    for (size_t i = 0; i < piece.len;) {
        uint32_t c = 0;
        int n = frit_utf8_decode(piece.ptr + i, piece.len - i, &c);
        if (n <= 0 || c >= N_LETTERS || bytes[c] < 0) {
            out->len = start;
            frit_buf_append(out, piece.ptr, piece.len);
            return;
        }
        frit_buf_char(out, (char)bytes[c]);
        i += (size_t)n;
    }
}

static void decode_letters(const frit_tokenizer *tokenizer, frit_token id, frit_buf *out)
{
    uint16_t letters[256];
    int16_t bytes[N_LETTERS];
    byte_letters(letters, bytes);
    spell_bytes(tokenizer->vocab->entries[id].piece, bytes, out);
}

// ------------------------------------------------------------------------------------- building

static size_t hash_pair(uint64_t pair)
{
    pair *= 0x9e3779b97f4a7c15u;
    return (size_t)(pair ^ (pair >> 29));
}

static pair_slot *find_pair(const bpe *state, frit_token left, frit_token right)
{
    uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t i = hash_pair(pair) & state->mask;
    while (state->pairs[i].rank >= 0 && state->pairs[i].pair != pair) i = (i + 1) & state->mask;
    return &state->pairs[i];
}

static frit_status index_merges(bpe *state, const frit_vocab *vocab, frit_arena *arena)
{
    size_t capacity = 16;
    while (capacity / 2 <= vocab->n_merges) capacity *= 2;
    state->pairs = frit_arena_new(arena, pair_slot, capacity);
    if (!state->pairs) return frit_fail_memory(capacity * sizeof *state->pairs, "the index of merges");
    state->mask = capacity - 1;
    for (size_t i = 0; i < capacity; i++) state->pairs[i].rank = -1;
    for (uint64_t rank = 0; rank < vocab->n_merges; rank++) {
        const frit_merge *merge = &vocab->merges[rank];
        pair_slot *slot = find_pair(state, merge->left, merge->right);
        if (slot->rank >= 0) continue;   // named twice: the first rank holds
        *slot =
            (pair_slot){(uint64_t)(uint32_t)merge->left << 32 | (uint32_t)merge->right, (int32_t)rank, merge->merged};
    }
    return FRIT_OK;
}

static void index_letters(bpe *state, const frit_vocab *vocab, const uint16_t letters[256], const frit_log *log)
{
    int n_missing = 0;
    for (int byte = 0; byte < 256; byte++) {
        char piece[4];
        int n = frit_utf8_encode(letters[byte], piece);
        state->letters[byte] = frit_vocab_find_text(vocab, (frit_str){piece, (size_t)n});
        bool in_utf8 = byte < 0xf5 && byte != 0xc0 && byte != 0xc1;
        n_missing += in_utf8 && state->letters[byte] < 0;
    }
    if (n_missing > 0)
        frit_log_say(log, FRIT_LOG_INFO, "the vocabulary lacks the tokens of %d bytes: %s", n_missing,
                     vocab->unk >= 0 ? "they become the unknown token" : "they vanish from text");
}

static frit_status index_whole(frit_tokenizer *tokenizer, bpe *state, const int16_t bytes[N_LETTERS])
{
    const frit_vocab *vocab = tokenizer->vocab;
    frit_buf spelled = {0};
    for (frit_token id = 0; id < vocab->n; id++) {
        if (frit_vocab_find_text(vocab, vocab->entries[id].piece) != id) continue;
        frit_buf_clear(&spelled);
        spell_bytes(vocab->entries[id].piece, bytes, &spelled);
        char *copy = frit_arena_text(&tokenizer->arena, spelled.data ? spelled.data : "", spelled.len);
        if (!copy || spelled.failed || !frit_map_put(&state->whole, (frit_str){copy, spelled.len}, id)) {
            frit_buf_free(&spelled);
            return frit_fail_memory(spelled.len, "the index of whole words");
        }
        if (spelled.len > state->longest) state->longest = spelled.len;
    }
    frit_buf_free(&spelled);
    return FRIT_OK;
}

static frit_status init(frit_tokenizer *tokenizer, const frit_log *log)
{
    bpe *state = frit_arena_new(&tokenizer->arena, bpe, 1);
    if (!state) return frit_fail_memory(sizeof *state, "the tokenizer");
    tokenizer->state = state;
    state->flags = tokenizer->vocab->pretok->flags;
    FRIT_TRY(frit_pretok_init(&state->pretok, tokenizer->vocab->pretok));
    FRIT_TRY(index_merges(state, tokenizer->vocab, &tokenizer->arena));
    uint16_t letters[256];
    int16_t bytes[N_LETTERS];
    byte_letters(letters, bytes);
    if (!(state->flags & FRIT_PRETOK_RAW)) index_letters(state, tokenizer->vocab, letters, log);
    return state->flags & FRIT_PRETOK_IGNORE_MERGES ? index_whole(tokenizer, state, bytes) : FRIT_OK;
}

static void deinit(frit_tokenizer *tokenizer)
{
    bpe *state = tokenizer->state;
    if (!state) return;
    frit_pretok_deinit(&state->pretok);
    frit_map_free(&state->whole);
}

// ------------------------------------------------------------------------------------- encoding

static bool pair_cost(const void *ctx, const frit_symbol *left, const frit_symbol *right, double *cost,
                      frit_token *merged)
{
    if (left->id < 0 || right->id < 0) return false;
    const pair_slot *slot = find_pair(ctx, left->id, right->id);
    if (slot->rank < 0) return false;
    *cost = slot->rank;
    *merged = slot->merged;
    return true;
}

static void push_characters(const frit_vocab *vocab, frit_str word, frit_merger *merger)
{
    for (size_t i = 0; i < word.len;) {
        uint32_t c;
        int n = frit_utf8_decode(word.ptr + i, word.len - i, &c);
        if (n < 1) n = 1;
        frit_token id = frit_vocab_find_text(vocab, (frit_str){word.ptr + i, (size_t)n});
        if (id >= 0) {
            frit_merger_push(merger, (uint32_t)i, (uint32_t)n, id);
        } else {
            for (int k = 0; k < n; k++)
                frit_merger_push(merger, (uint32_t)i + (uint32_t)k, 1,
                                 frit_vocab_find_byte(vocab, (unsigned char)word.ptr[i + (size_t)k]));
        }
        i += (size_t)n;
    }
}

// A token that a word is as a whole, if this tokenizer looks for it before it merges.
static frit_token find_whole(const frit_tokenizer *tokenizer, frit_str word)
{
    const bpe *state = tokenizer->state;
    int64_t id;
    if ((state->flags & FRIT_PRETOK_IGNORE_MERGES) && word.len <= state->longest &&
        frit_map_get(&state->whole, word, &id))
        return (frit_token)id;
    if ((state->flags & FRIT_PRETOK_NEWLINES) && word.ptr[0] == '\n')
        return frit_vocab_find_text(tokenizer->vocab, word);
    return -1;
}

static void encode_word(const frit_tokenizer *tokenizer, frit_str word, frit_merger *merger, frit_ids *out)
{
    const bpe *state = tokenizer->state;
    frit_token whole = find_whole(tokenizer, word);
    if (whole >= 0) {
        frit_ids_push(out, whole);
        return;
    }
    frit_merger_clear(merger);
    if (state->flags & FRIT_PRETOK_RAW) {
        push_characters(tokenizer->vocab, word, merger);
    } else {
        for (size_t i = 0; i < word.len; i++)
            frit_merger_push(merger, (uint32_t)i, 1, state->letters[(unsigned char)word.ptr[i]]);
    }
    frit_merger_run(merger, pair_cost, state);
    for (int32_t i = 0; i < merger->n; i++) {
        if (merger->symbols[i].len == 0) continue;
        frit_token id = merger->symbols[i].id >= 0 ? merger->symbols[i].id : tokenizer->vocab->unk;
        if (id >= 0) frit_ids_push(out, id);
    }
}

// Words need valid UTF-8: every byte that belongs to no character becomes U+FFFD. Spaces become U+2581 if asked for.
static void clean(frit_str text, bool escape_spaces, frit_buf *out)
{
    for (size_t i = 0; i < text.len;) {
        size_t n = frit_utf8_valid_prefix(text.ptr + i, text.len - i);
        for (size_t end = i + n; i < end;) {
            const char *space = escape_spaces ? memchr(text.ptr + i, ' ', end - i) : NULL;
            size_t stop = space ? (size_t)(space - text.ptr) : end;
            frit_buf_append(out, text.ptr + i, stop - i);
            if (space) frit_buf_text(out, "\xe2\x96\x81");
            i = space ? stop + 1 : end;
        }
        if (i < text.len) {
            frit_buf_text(out, "\xef\xbf\xbd");
            i++;
        }
    }
}

static frit_status encode_words(const frit_tokenizer *tokenizer, frit_str text, frit_ids *out)
{
    const bpe *state = tokenizer->state;
    frit_words words = {0};
    frit_merger merger = {0};
    frit_status status = frit_pretok_split(&state->pretok, text, &words);
    size_t begin = 0;
    for (size_t i = 0; status == FRIT_OK && i < words.n; i++) {
        encode_word(tokenizer, (frit_str){text.ptr + begin, words.ends[i] - begin}, &merger, out);
        begin = words.ends[i];
        if (merger.failed) status = frit_fail_memory(text.len, "the symbols of a word");
    }
    frit_merger_free(&merger);
    frit_words_free(&words);
    return status;
}

static frit_status encode(const frit_tokenizer *tokenizer, frit_str text, frit_ids *out)
{
    bool escape = tokenizer->vocab->escape_spaces;
    if (!escape && frit_utf8_valid_prefix(text.ptr, text.len) == text.len) return encode_words(tokenizer, text, out);
    frit_buf cleaned = {0};
    clean(text, escape, &cleaned);
    frit_status status = cleaned.failed ? frit_fail_memory(text.len, "the text to encode")
                                        : encode_words(tokenizer, (frit_str){cleaned.data, cleaned.len}, out);
    frit_buf_free(&cleaned);
    return status;
}

static void decode(const frit_tokenizer *tokenizer, frit_token id, frit_buf *out)
{
    if (tokenizer->vocab->escape_spaces)
        frit_unescape_spaces(tokenizer->vocab->entries[id].piece, out);
    else
        decode_letters(tokenizer, id, out);
}

const frit_tokenizer_kind frit_tokenizer_bpe = {"gpt2", "byte-level BPE", init, deinit, encode, decode};
const frit_tokenizer_kind frit_tokenizer_gemma4 = {"gemma4", "BPE over characters", init, deinit, encode, decode};
