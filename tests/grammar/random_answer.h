// SPDX-License-Identifier: MIT
// grammar/random_answer.h: answers made of the token with the largest random logit that a mask allows, over a small
// vocabulary.
#pragma once
#include "grammar/check.h"

#include "base/arena.h"
#include "grammar/mask.h"

typedef struct words {
    frit_arena arena;
    frit_str *pieces;
    int32_t n, room;
    frit_token_trie *trie;
} words;

enum { END_TOKEN = 256 };

static inline void add_word(words *w, frit_str text)
{
    if (text.len == 0 || w->n == w->room) return;
    w->pieces[w->n++] = (frit_str){frit_arena_text(&w->arena, text.ptr, text.len), text.len};
}

// Makes a vocabulary of all bytes, parts of JSON and prose, and the marks of a format as whole tokens.
static inline void make_words(words *w, const frit_str *marks, size_t n_marks)
{
    static const char *const parts[] = {
        "{\"",  "\":",      "\", \"",       "\"}",   "}}",    "]}",  ": ",   ", ",      " the",           "name",
        "city", "true",     "null",         "False", "None",  "12",  ".5",   "\\u00e9", "\\ud83d\\udc34", "\n",
        "  ",   "\xc3\xa9", "\xe2\x82\xac", "<",     ">",     "</",  "\"\"", "()",      "call",           "arguments",
        "'",    "\\\\",     "end|>",        "<|",    "Paris", "nul", "0"};
    *w = (words){.room = 1024};
    w->pieces = frit_arena_new(&w->arena, frit_str, (size_t)w->room);
    for (int b = 0; b < 256; b++) {
        const char c = (char)b;
        add_word(w, (frit_str){&c, 1});
    }
    w->pieces[w->n++] = (frit_str){"", 0};
    for (size_t i = 0; i < FRIT_COUNT(parts); i++) add_word(w, frit_str_of(parts[i]));
    for (size_t i = 0; i < n_marks; i++) add_word(w, marks[i]);
    assert_ok(frit_token_trie_new(&w->trie, w->pieces, w->n, &(frit_token){END_TOKEN}, 1));
}

static inline void free_words(words *w)
{
    frit_token_trie_free(w->trie);
    frit_arena_free(&w->arena);
}

// Writes an answer by the largest of random logits. Logits of tokens that close strings, lists and marks grow, so that
// answers end.
static inline bool write_answer(const frit_automaton *a, const words *w, frit_rng *rng, frit_buf *out)
{
    enum { MOST = 4000 };
    frit_masks *masks;
    frit_match match;
    uint32_t *mask = malloc((size_t)frit_mask_words(w->n) * sizeof *mask);
    bool done = false;
    assert_ok(frit_masks_new(&masks, a, w->trie, 0));
    assert_ok(frit_match_init(&match, a, 0));
    for (int n = 0; n < MOST && !done; n++) {
        assert_ok(frit_masks_get(masks, &match, mask));
        int32_t best = -1;
        double most = 0;
        for (int32_t t = 0; t < w->n; t++) {
            if (!(mask[t / 32] >> (t % 32) & 1)) continue;
            const frit_str piece = w->pieces[t];
            double logit = (double)random_between(rng, 0, 1000);
            if (t == END_TOKEN) logit += 300 + n * 8;
            if (piece.len > 0 && strchr("\"}]>)'", piece.ptr[piece.len - 1])) logit += n * 6;
            if (piece.len > 4) logit += n * 3;
            if (best < 0 || logit > most) {
                best = t;
                most = logit;
            }
        }
        if (best < 0) fail_msg("after '%s' no token fits", out->data ? out->data : "");
        done = best == END_TOKEN;
        if (done) break;
        size_t n_read;
        const frit_str piece = w->pieces[best];
        assert_ok(frit_match_push(&match, piece.ptr, piece.len, &n_read));
        assert_int_equal(n_read, piece.len);
        frit_buf_append(out, piece.ptr, piece.len);
        done = frit_match_is_over(&match);
    }
    frit_match_deinit(&match);
    frit_masks_free(masks);
    free(mask);
    return done;
}
