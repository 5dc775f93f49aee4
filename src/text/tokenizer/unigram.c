// SPDX-License-Identifier: MIT
// Unigram: of all ways to write a word as pieces, the one with the largest sum of scores (Viterbi, from left to right).
//
//     cell i   the best way to write the first i bytes: its score, its last piece, where that begins
//
// A character that no piece covers costs more than any piece. Adjacent characters of this kind become one unknown
// token, or the tokens of their bytes.
#include "text/tokenizer/scratch.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

static const double unknown_penalty = 10;

typedef struct unigram {
    frit_trie trie;
    double unknown_score, best_score;
    frit_token bytes[256];
} unigram;

typedef struct cell {
    double score;
    int32_t from;    // -1: not reached
    frit_token id;   // -1: unknown
} cell;

// ------------------------------------------------------------------------------------- building

static frit_status build_trie(unigram *state, const frit_vocab *vocab, frit_arena *arena)
{
    frit_trie_item *items = calloc((size_t)vocab->n, sizeof *items);
    if (!items) return frit_fail_memory((size_t)vocab->n * sizeof *items, "the trie of pieces");
    size_t n = 0;
    for (frit_token id = 0; id < vocab->n; id++) {
        unsigned char kind = vocab->entries[id].kind;
        bool in_text = kind == FRIT_TOKEN_NORMAL || (kind == FRIT_TOKEN_USER && vocab->symbols);
        if (in_text) items[n++] = (frit_trie_item){vocab->entries[id].piece, id};
    }
    frit_status status = frit_trie_init(&state->trie, items, n, arena);
    free(items);
    return status;
}

static frit_status init(frit_tokenizer *tokenizer, const frit_log *log)
{
    const frit_vocab *vocab = tokenizer->vocab;
    unigram *state = frit_arena_new(&tokenizer->arena, unigram, 1);
    if (!state) return frit_fail_memory(sizeof *state, "the tokenizer");
    tokenizer->state = state;
    double least = DBL_MAX, most = -DBL_MAX;
    for (frit_token id = 0; id < vocab->n; id++) {
        if (vocab->entries[id].kind != FRIT_TOKEN_NORMAL) continue;
        double score = vocab->entries[id].score;
        least = score < least ? score : least;
        most = score > most ? score : most;
    }
    state->unknown_score = (least == DBL_MAX ? 0 : least) - unknown_penalty;
    if (vocab->single_precision) state->unknown_score = (float)state->unknown_score;
    state->best_score = most == -DBL_MAX ? 0 : most;
    bool has_all = vocab->byte_fallback;
    for (int byte = 0; byte < 256; byte++) {
        state->bytes[byte] = frit_vocab_find_byte(vocab, (unsigned char)byte);
        has_all &= state->bytes[byte] >= 0;
    }
    if (!has_all && vocab->unk < 0)
        frit_log_say(log, FRIT_LOG_WARNING,
                     "the vocabulary has no unknown token: characters that it lacks vanish from text");
    return build_trie(state, vocab, &tokenizer->arena);
}

// ------------------------------------------------------------------------------------- encoding

// SentencePiece adds in single precision, and the rounding decides between equal ways.
static void offer(cell *to, double score, bool single, size_t from, frit_token id)
{
    if (single) score = (float)score;
    if (to->from >= 0 && score <= to->score) return;
    *to = (cell){score, (int32_t)from, id};
}

static double score_of(const unigram *state, const frit_vocab *vocab, frit_token id, size_t n_bytes)
{
    const frit_vocab_entry *entry = &vocab->entries[id];
    if (entry->kind != FRIT_TOKEN_USER) return entry->score;
    return (double)n_bytes * state->best_score - 0.1;   // user-defined symbols win over other pieces
}

static void fill(const unigram *state, const frit_vocab *vocab, frit_str word, cell *cells)
{
    for (size_t i = 0; i <= word.len; i++) cells[i].from = -1;
    cells[0] = (cell){0, 0, -1};
    uint32_t c;
    for (size_t i = 0, n_char; i < word.len; i += n_char) {
        n_char = frit_unicode_next(word, i, &c);
        uint32_t node = 0;
        bool covered = false;
        for (size_t k = i; k < word.len; k++) {
            node = frit_trie_child(&state->trie, node, (unsigned char)word.ptr[k]);
            if (node == 0) break;
            frit_token id = state->trie.nodes[node].id;
            if (id < 0) continue;
            double score = cells[i].score + score_of(state, vocab, id, k + 1 - i);
            // The text of the unknown token counts as unknown too.
            offer(&cells[k + 1], score, vocab->single_precision, i, id == vocab->unk ? -1 : id);
            covered |= k + 1 - i == n_char;
        }
        double score = cells[i].score + state->unknown_score;
        if (covered) continue;
        offer(&cells[i + n_char], score, vocab->single_precision, i, -1);
    }
}

static void emit_unknown(const unigram *state, const frit_vocab *vocab, frit_str part, frit_ids *out)
{
    const frit_str own = vocab->unk >= 0 ? vocab->entries[vocab->unk].piece : (frit_str){0};
    bool falls_back = vocab->byte_fallback && !(part.len == own.len && memcmp(part.ptr, own.ptr, own.len) == 0);
    for (size_t i = 0; i < part.len && falls_back; i++) falls_back = state->bytes[(unsigned char)part.ptr[i]] >= 0;
    if (!falls_back && vocab->unk >= 0) frit_ids_push(out, vocab->unk);
    for (size_t i = 0; i < part.len && falls_back; i++) frit_ids_push(out, state->bytes[(unsigned char)part.ptr[i]]);
}

static frit_status encode(const frit_tokenizer *tokenizer, frit_str word, frit_scratch *scratch, frit_ids *out)
{
    const unigram *state = tokenizer->state;
    const frit_vocab *vocab = tokenizer->vocab;
    cell *cells = frit_scratch_cells(scratch, (word.len + 1) * sizeof *cells);
    if (!cells) return frit_fail_memory((word.len + 1) * sizeof *cells, "the ways to write a text");
    fill(state, vocab, word, cells);
    // The backward pass stores its next step in each cell, so that tokens come out in order.
    for (size_t at = word.len, next = 0; at > 0;) {
        size_t from = (size_t)cells[at].from;
        cells[at].from = (int32_t)next;
        next = at;
        at = from;
        if (at == 0) cells[0].from = (int32_t)next;
    }
    for (size_t at = 0, unknown = 0, next; at < word.len; at = next) {
        next = (size_t)cells[at].from;
        frit_token id = cells[next].id;
        bool goes_on = id < 0 && vocab->fuse_unknown && next < word.len && cells[cells[next].from].id < 0;
        if (id >= 0) frit_ids_push(out, id);
        if (id < 0 && !goes_on) emit_unknown(state, vocab, (frit_str){word.ptr + unknown, next - unknown}, out);
        if (!goes_on) unknown = next;
    }
    return FRIT_OK;
}

const frit_tokenizer_kind frit_tokenizer_unigram = {"t5 unigram", "Unigram", init, NULL, encode};
