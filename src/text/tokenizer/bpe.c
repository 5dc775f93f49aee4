// SPDX-License-Identifier: MIT
// BPE: a word is split into bytes or characters, and adjacent symbols merge, the best pair first.
//
//     units   bytes (byte-level vocabularies, tiktoken) or characters (SentencePiece, Gemma)
//     pairs   by a list of merges, or by the score of the merged token
//
// Short words rescan all pairs for each merge; long ones use a heap (merge.h), so that no word takes quadratic time.
#include "text/tokenizer/merge.h"

#include "base/utf8.h"
#include "text/tokenizer/scratch.h"

#include <stdlib.h>

enum { SHORT_WORD = 24 };   // symbols

typedef struct pair_bucket {
    frit_token left, right;
    int32_t rank;   // -1: empty
} pair_bucket;

typedef struct bpe {
    const frit_vocab *vocab;
    pair_bucket *pairs;   // open addressing, three fifths full
    size_t n_pairs;
    frit_token bytes[256];   // token of a byte that is a unit or a fallback, or -1
    size_t longest;          // bytes of the longest piece
    frit_index plain;        // index of ordinary tokens alone; unused if special tokens have no equal pieces
} bpe;

// ------------------------------------------------------------------------------------- building

// The first bucket of the search for a pair.
static inline size_t home(const bpe *state, frit_token left, frit_token right)
{
    uint64_t hash = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15u;
    return (size_t)(((hash ^ hash >> 29) & UINT32_MAX) * (uint64_t)state->n_pairs >> 32);
}

static inline pair_bucket *find_pair(const bpe *state, frit_token left, frit_token right)
{
    for (size_t i = home(state, left, right);; i = i + 1 < state->n_pairs ? i + 1 : 0) {
        pair_bucket *bucket = &state->pairs[i];
        if (bucket->rank < 0 || (bucket->left == left && bucket->right == right)) return bucket;
    }
}

// Prefetches the memory that find_pair will read.
static void touch_pair(const bpe *state, frit_token left, frit_token right)
{
#ifdef __GNUC__
    __builtin_prefetch(&state->pairs[home(state, left, right)], 1);
#else
    (void)state, (void)left, (void)right;
#endif
}

static frit_status index_merges(bpe *state)
{
    const frit_vocab *vocab = state->vocab;
    size_t n = state->n_pairs = (size_t)(vocab->n_merges + vocab->n_merges / 3 * 2 + 16);
    state->pairs = malloc(n * sizeof *state->pairs);
    if (!state->pairs) return frit_fail_memory(n * sizeof *state->pairs, "the index of merges");
    for (size_t i = 0; i < n; i++) state->pairs[i].rank = -1;
    enum { AHEAD = 16 };
    for (uint64_t rank = 0; rank < vocab->n_merges; rank++) {
        const frit_merge *merge = &vocab->merges[rank];
        if (vocab->n_merges - rank > AHEAD) touch_pair(state, merge[AHEAD].left, merge[AHEAD].right);
        pair_bucket *bucket = find_pair(state, merge->left, merge->right);
        if (bucket->rank >= 0) continue;   // listed twice: the first rank is used
        *bucket = (pair_bucket){merge->left, merge->right, (int32_t)rank};
    }
    return FRIT_OK;
}

static frit_token byte_token(const frit_vocab *vocab, unsigned char byte)
{
    char piece[4] = {(char)byte};
    size_t n = 1;
    if (vocab->pipeline.letters) n = (size_t)frit_utf8_encode(frit_letter_of(byte), piece);
    if (vocab->pipeline.bytes) return frit_vocab_find_text(vocab, (frit_str){piece, n});
    frit_token id = frit_vocab_find_byte(vocab, byte);
    return id >= 0 || !vocab->by_score ? id : frit_vocab_find(vocab, (frit_str){piece, n});
}

static void index_bytes(bpe *state, const frit_log *log)
{
    const frit_vocab *vocab = state->vocab;
    int n_needed = 0;
    for (int byte = 0; byte < 256; byte++) {
        bool in_utf8 = byte < 0xf5 && byte != 0xc0 && byte != 0xc1;
        state->bytes[byte] = byte_token(vocab, (unsigned char)byte);
        n_needed += state->bytes[byte] < 0 && in_utf8;
    }
    if (n_needed > 0 && (vocab->pipeline.bytes || vocab->byte_fallback))
        frit_log_say(log, vocab->unk >= 0 || vocab->pipeline.bytes ? FRIT_LOG_INFO : FRIT_LOG_WARNING,
                     "the vocabulary lacks the tokens of %d bytes: %s", n_needed,
                     vocab->unk >= 0 ? "they become the unknown token" : "they vanish from text");
}

static bool is_special(const void *ctx, int32_t id)
{
    return ((const frit_vocab *)ctx)->entries[id].kind != FRIT_TOKEN_NORMAL;
}

// Makes the index `plain`, if pieces of special and ordinary tokens are equal. Usually they are not, and the
// vocabulary's own index is used.
static frit_status index_plain(bpe *state)
{
    const frit_vocab *vocab = state->vocab;
    if (vocab->n_equal == 0) return FRIT_OK;
    if (!frit_index_init(&state->plain, (size_t)vocab->n, &vocab->entries[0].piece, sizeof *vocab->entries))
        return frit_fail_memory((size_t)vocab->n, "the index of whole words");
    frit_index_add_all(&state->plain, vocab->n, is_special, vocab, NULL);
    return FRIT_OK;
}

// The ordinary token with this piece, or -1.
static frit_token find_plain(const bpe *state, frit_str piece)
{
    if (state->plain.buckets) return frit_index_find(&state->plain, piece);
    frit_token id = frit_vocab_find(state->vocab, piece);
    return id >= 0 && state->vocab->entries[id].kind == FRIT_TOKEN_NORMAL ? id : -1;
}

static frit_status init(frit_tokenizer *tokenizer, const frit_log *log)
{
    bpe *state = frit_arena_new(&tokenizer->arena, bpe, 1);
    if (!state) return frit_fail_memory(sizeof *state, "the tokenizer");
    const frit_vocab *vocab = state->vocab = tokenizer->vocab;
    tokenizer->state = state;
    for (frit_token id = 0; id < vocab->n; id++)
        if (vocab->entries[id].piece.len > state->longest) state->longest = vocab->entries[id].piece.len;
    index_bytes(state, log);
    if (!vocab->by_score) FRIT_TRY(index_merges(state));
    return vocab->pipeline.bytes && vocab->whole_words ? index_plain(state) : FRIT_OK;
}

static void deinit(frit_tokenizer *tokenizer)
{
    bpe *state = tokenizer->state;
    if (!state) return;
    free(state->pairs);
    frit_index_deinit(&state->plain);
}

// ------------------------------------------------------------------------------------- pairs

typedef struct pair_context {
    const bpe *state;
    const char *word;
} pair_context;

static bool by_rank(const void *ctx, const frit_symbol *left, const frit_symbol *right, double *cost,
                    frit_token *merged)
{
    if (left->id < 0 || right->id < 0) return false;
    const pair_bucket *bucket = find_pair(((const pair_context *)ctx)->state, left->id, right->id);
    if (bucket->rank < 0) return false;
    *cost = bucket->rank;
    *merged = ((const pair_context *)ctx)->state->vocab->merges[bucket->rank].merged;
    return true;
}

// True for user-defined symbols; they are in a word only if the model keeps them whole.
static bool is_frozen(const frit_vocab *vocab, const frit_symbol *symbol)
{
    return vocab->symbols && symbol->id >= 0 && vocab->entries[symbol->id].kind == FRIT_TOKEN_USER;
}

static bool by_score(const void *ctx, const frit_symbol *left, const frit_symbol *right, double *cost,
                     frit_token *merged)
{
    const pair_context *context = ctx;
    const frit_vocab *vocab = context->state->vocab;
    size_t len = (size_t)left->len + right->len;
    if (len > context->state->longest || is_frozen(vocab, left) || is_frozen(vocab, right)) return false;
    frit_str both = {context->word + left->start, len};
    bool plain = vocab->pipeline.bytes && vocab->whole_words;
    *merged = plain ? find_plain(context->state, both) : frit_vocab_find_text(vocab, both);
    if (*merged < 0) return false;
    *cost = -(double)vocab->entries[*merged].score;
    return true;
}

// ------------------------------------------------------------------------------------- units

// The token of one character, as it is written in the word.
static frit_token character_token(const frit_vocab *vocab, frit_str word, size_t at, size_t n)
{
    bool inner = at > 0 && vocab->inner_prefix.len > 0, last = at + n == word.len && vocab->word_suffix.len > 0;
    if (!inner && !last) return frit_vocab_find_text(vocab, (frit_str){word.ptr + at, n});
    char piece[128];
    size_t len = 0;
    if (vocab->inner_prefix.len + vocab->word_suffix.len + n > sizeof piece) return -1;
    if (inner) memcpy(piece, vocab->inner_prefix.ptr, len = vocab->inner_prefix.len);
    memcpy(piece + len, word.ptr + at, n);
    len += n;
    if (last) memcpy(piece + len, vocab->word_suffix.ptr, vocab->word_suffix.len);
    return frit_vocab_find_text(vocab, (frit_str){piece, len + (last ? vocab->word_suffix.len : 0)});
}

// An unknown character that is not written yet. In a vocabulary with merges it is a symbol too, which may merge. It is
// written before the next known or unknown character, so that bytes between them come first, as in the tokenizers
// library.
typedef struct unknown {
    size_t at, n;   // n of 0: no character waits
} unknown;

static void write_unknown(const frit_vocab *vocab, unknown *waiting, frit_merger *merger)
{
    if (waiting->n > 0 && vocab->unk >= 0)
        frit_merger_push(merger, (uint32_t)waiting->at, (uint32_t)waiting->n, vocab->unk);
    waiting->n = 0;
}

static void push_unknown(const frit_vocab *vocab, size_t at, size_t n, unknown *waiting, frit_merger *merger)
{
    if (vocab->unk < 0 && vocab->unknown_parts) {
        frit_merger_push(merger, (uint32_t)at, (uint32_t)n, -1);
        return;
    }
    if (!vocab->fuse_unknown) write_unknown(vocab, waiting, merger);
    if (waiting->n == 0) waiting->at = at;
    waiting->n += n;
}

// Writes a character as its bytes. Returns false and writes nothing if one of them has no token.
static bool push_fallback(const bpe *state, frit_str word, size_t at, size_t n, frit_merger *merger)
{
    for (size_t k = at; k < at + n; k++)
        if (state->bytes[(unsigned char)word.ptr[k]] < 0) return false;
    for (size_t k = at; k < at + n; k++)
        frit_merger_push(merger, (uint32_t)k, 1, state->bytes[(unsigned char)word.ptr[k]]);
    return true;
}

static void push_characters(const bpe *state, frit_str word, frit_merger *merger)
{
    const frit_vocab *vocab = state->vocab;
    unknown waiting = {0};
    for (size_t i = 0; i < word.len;) {
        uint32_t c;
        frit_token id = -1;
        size_t n = vocab->symbols ? frit_trie_longest(vocab->symbols, (frit_str){word.ptr + i, word.len - i}, &id) : 0;
        if (n == 0) {
            n = frit_unicode_next(word, i, &c);
            id = character_token(vocab, word, i, n);
        }
        if (id >= 0 || vocab->by_score) {   // by score, unknown symbols fall back to bytes after all merges
            write_unknown(vocab, &waiting, merger);
            frit_merger_push(merger, (uint32_t)i, (uint32_t)n, id);
        } else if (!vocab->byte_fallback || !push_fallback(state, word, i, n, merger)) {
            push_unknown(vocab, i, n, &waiting, merger);
        }
        i += n;
    }
    write_unknown(vocab, &waiting, merger);
}

static void push_bytes(const bpe *state, frit_str word, frit_merger *merger)
{
    for (size_t i = 0; i < word.len; i++)
        frit_merger_push(merger, (uint32_t)i, 1, state->bytes[(unsigned char)word.ptr[i]]);
}

// ------------------------------------------------------------------------------------- words

// Converts bytes to letters of at most two bytes. Returns the length.
static size_t spell(frit_str word, char *letters)
{
    size_t n = 0;
    for (size_t i = 0; i < word.len; i++)
        n += (size_t)frit_utf8_encode(frit_letter_of((unsigned char)word.ptr[i]), letters + n);
    return n;
}

// The token of a whole word, if this tokenizer searches for it before it merges.
static frit_token find_whole(const bpe *state, frit_str word, frit_scratch *scratch, frit_ids *out)
{
    const frit_vocab *vocab = state->vocab;
    if (vocab->whole_words && word.len <= state->longest) {
        if (!vocab->pipeline.bytes) return frit_vocab_find_text(vocab, word);
        if (!vocab->pipeline.letters) return find_plain(state, word);
        char *letters = frit_scratch_cells(scratch, 2 * word.len);
        out->failed |= !letters;
        return letters ? find_plain(state, (frit_str){letters, spell(word, letters)}) : -1;
    }
    if (vocab->whole_newlines && word.ptr[0] == '\n') return frit_vocab_find_text(vocab, word);
    return -1;
}

static int32_t rank_of(const bpe *state, frit_token left, frit_token right)
{
    if (left < 0 || right < 0) return INT32_MAX;
    int32_t rank = find_pair(state, left, right)->rank;
    return rank < 0 ? INT32_MAX : rank;
}

// Merges by rank without a heap: an array has the ranks of the pairs, and each step searches the smallest.
static size_t merge_short(const bpe *state, frit_token *ids, size_t n)
{
    int32_t ranks[SHORT_WORD];
    for (size_t i = 0; i + 1 < n; i++) ranks[i] = rank_of(state, ids[i], ids[i + 1]);
    while (n > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n; i++)
            if (ranks[i] < ranks[best]) best = i;
        if (ranks[best] == INT32_MAX) break;
        ids[best] = state->vocab->merges[ranks[best]].merged;
        n--;
        for (size_t i = best + 1; i < n; i++) ids[i] = ids[i + 1];
        for (size_t i = best + 1; i + 1 < n; i++) ranks[i] = ranks[i + 1];
        for (size_t i = best > 0 ? best - 1 : 0; i <= best && i + 1 < n; i++)
            ranks[i] = rank_of(state, ids[i], ids[i + 1]);
    }
    return n;
}

static void emit_unknown(const frit_vocab *vocab, bool *after_unknown, frit_ids *out)
{
    if (vocab->unk >= 0 && !(vocab->fuse_unknown && *after_unknown)) frit_ids_push(out, vocab->unk);
    *after_unknown = true;
}

static void emit(const bpe *state, frit_str word, const frit_symbol *symbol, bool *after_unknown, frit_ids *out)
{
    if (symbol->id >= 0) {
        frit_ids_push(out, symbol->id);
        *after_unknown = false;
        return;
    }
    const frit_vocab *vocab = state->vocab;
    if (!vocab->by_score || !vocab->byte_fallback) {
        emit_unknown(vocab, after_unknown, out);
        return;
    }
    for (uint32_t i = 0; i < symbol->len; i++) {
        frit_token byte = state->bytes[(unsigned char)word.ptr[symbol->start + i]];
        if (byte < 0) {   // without byte tokens the whole character is unknown
            emit_unknown(vocab, after_unknown, out);
            return;
        }
        frit_ids_push(out, byte);
        *after_unknown = false;
    }
}

static frit_status encode(const frit_tokenizer *tokenizer, frit_str word, frit_scratch *scratch, frit_ids *out)
{
    const bpe *state = tokenizer->state;
    const frit_vocab *vocab = state->vocab;
    bool after_unknown = false;
    frit_token whole = find_whole(state, word, scratch, out);
    if (whole >= 0) {
        frit_ids_push(out, whole);
        return FRIT_OK;
    }
    if (vocab->pipeline.bytes && !vocab->by_score && word.len <= SHORT_WORD) {
        frit_token ids[SHORT_WORD];
        for (size_t i = 0; i < word.len; i++) ids[i] = state->bytes[(unsigned char)word.ptr[i]];
        size_t n = merge_short(state, ids, word.len);
        for (size_t i = 0; i < n; i++) emit(state, word, &(frit_symbol){.id = ids[i]}, &after_unknown, out);
        return FRIT_OK;
    }
    frit_merger *merger = &scratch->merger;
    frit_merger_clear(merger);
    if (vocab->pipeline.bytes)
        push_bytes(state, word, merger);
    else
        push_characters(state, word, merger);
    FRIT_TRY(frit_merger_run(merger, vocab->by_score ? by_score : by_rank, &(pair_context){state, word.ptr}));
    for (int32_t i = 0; i < merger->n; i++)
        if (merger->symbols[i].len > 0) emit(state, word, &merger->symbols[i], &after_unknown, out);
    return merger->failed ? frit_fail_memory(word.len, "the symbols of a word") : FRIT_OK;
}

const frit_tokenizer_kind frit_tokenizer_bpe = {"gpt2 gemma4 bpe llama spm tiktoken tekken", "BPE", init, deinit,
                                                encode};
