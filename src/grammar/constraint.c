// SPDX-License-Identifier: MIT
// Reads the tokens of a sampler as bytes of a match.
#include "grammar/constraint.h"

#include <stdatomic.h>
#include <stdlib.h>

struct frit_constraint {
    frit_grammar *grammar;
    frit_match match;
    uint32_t *mask;
    bool has_mask;     // the mask belongs to the current match
    bool ended;        // a token has ended the text
    frit_buf forced;   // scratch
};

frit_status frit_grammar_retain(frit_grammar *grammar)
{
    FRIT_REQUIRE(grammar);
    atomic_fetch_add(&grammar->n_refs, 1);
    return FRIT_OK;
}

void frit_grammar_free(frit_grammar *grammar)
{
    if (!grammar || atomic_fetch_sub(&grammar->n_refs, 1) > 1) return;
    frit_masks_free(grammar->masks);
    frit_automaton_free(grammar->automaton);
    if (grammar->release) grammar->release(grammar->owner);
    free(grammar);
}

frit_status frit_constraint_new(frit_constraint **out, frit_grammar *grammar)
{
    *out = NULL;
    frit_constraint *c = calloc(1, sizeof *c);
    const size_t n_words = (size_t)frit_mask_words(grammar->n_vocab);
    if (c) c->mask = calloc(n_words, sizeof *c->mask);
    if (!c || !c->mask) {
        free(c);
        return frit_fail_memory(n_words * sizeof(uint32_t), "a grammar's mask");
    }
    c->grammar = grammar;
    frit_grammar_retain(grammar);
    const frit_status status = frit_match_init(&c->match, grammar->automaton, FRIT_CONSTRAINT_UNDO);
    if (status == FRIT_OK)
        *out = c;
    else
        frit_constraint_free(c);
    return status;
}

void frit_constraint_free(frit_constraint *c)
{
    if (!c) return;
    frit_match_deinit(&c->match);
    frit_grammar_free(c->grammar);
    frit_buf_free(&c->forced);
    free(c->mask);
    free(c);
}

// Converts FRIT_E_LIMIT of the grammar, because FRIT_E_LIMIT of a session means a full context.
static frit_status not_supported(frit_status status)
{
    return status == FRIT_E_LIMIT ? FRIT_E_UNSUPPORTED : status;
}

static bool is_end(const frit_constraint *c, frit_token token)
{
    const frit_token_trie *trie = c->grammar->trie;
    for (int32_t i = 0; i < trie->n_ends; i++)
        if (trie->ends[i] == token) return true;
    return false;
}

frit_status frit_constraint_mask(frit_constraint *c, const uint32_t **mask)
{
    *mask = c->mask;
    if (c->has_mask) return FRIT_OK;
    FRIT_TRY(not_supported(frit_masks_get(c->grammar->masks, &c->match, c->mask)));
    c->has_mask = true;
    return FRIT_OK;
}

frit_status frit_constraint_only(frit_constraint *c, frit_token *token)
{
    const uint32_t *mask;
    *token = -1;
    FRIT_TRY(frit_constraint_mask(c, &mask));
    for (int32_t i = 0; i < frit_mask_words(c->grammar->n_vocab); i++) {
        if (mask[i] == 0) continue;
        const bool several = *token >= 0 || (mask[i] & (mask[i] - 1)) != 0;
        *token = several ? -1 : 32 * i;
        if (several) return FRIT_OK;
        for (uint32_t bits = mask[i]; bits > 1; bits >>= 1) ++*token;
    }
    return FRIT_OK;
}

frit_status frit_constraint_accept(frit_constraint *c, frit_token token)
{
    bool fits = false;
    const frit_str piece = c->grammar->pieces[token];
    if (frit_match_is_final(&c->match) && is_end(c, token)) {
        c->ended = true;
        return FRIT_OK;
    }
    if (!c->ended) FRIT_TRY(not_supported(frit_match_push_token(&c->match, token, piece, &fits)));
    if (!fits)
        return frit_fail(FRIT_E_INVALID, "token %d, '%.*s', does not fit the grammar", token,
                         (int)(piece.len < 64 ? piece.len : 64), piece.ptr);
    c->has_mask = false;
    return FRIT_OK;
}

frit_status frit_constraint_undo(frit_constraint *c)
{
    if (!c->ended) {
        c->has_mask = false;
        return frit_match_pop(&c->match, 1);
    }
    c->ended = false;
    return FRIT_OK;
}

// The node of a byte below a node, or 0 if it has no such child.
static uint32_t child_of(const frit_token_trie *trie, uint32_t node, unsigned char byte)
{
    for (uint32_t i = node + 1; i < trie->nodes[node].end; i = trie->nodes[i].end)
        if (trie->nodes[i].byte == byte) return i;
    return 0;
}

// Returns the token with the longest text that begins `bytes`, and the length of this text; -1: no token matches.
static frit_token longest_token(const frit_token_trie *trie, const char *bytes, size_t n, size_t *n_bytes)
{
    frit_token best = -1;
    uint32_t node = 0;
    for (size_t i = 0; i < n && (node = child_of(trie, node, (unsigned char)bytes[i])) != 0; i++) {
        const uint32_t first = trie->nodes[node].first_token;
        if (first == trie->nodes[node + 1].first_token) continue;
        best = trie->tokens[first];
        *n_bytes = i + 1;
    }
    return best;
}

int32_t frit_constraint_forced(frit_constraint *c, frit_token *tokens, int32_t most)
{
    enum { MOST_BYTES = 256 };
    int32_t n = 0;
    frit_buf_clear(&c->forced);
    if (c->ended || frit_match_forced(&c->match, MOST_BYTES, &c->forced) != FRIT_OK) return 0;
    for (size_t at = 0, n_bytes = 0; at < c->forced.len && n < most; at += n_bytes, n++) {
        tokens[n] = longest_token(c->grammar->trie, c->forced.data + at, c->forced.len - at, &n_bytes);
        if (tokens[n] < 0) break;
    }
    return n;
}

bool frit_constraint_is_over(const frit_constraint *c)
{
    return c->ended || frit_match_is_over(&c->match);
}

int32_t frit_constraint_n_vocab(const frit_constraint *c)
{
    return c->grammar->n_vocab;
}
