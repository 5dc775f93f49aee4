// SPDX-License-Identifier: MIT
// Tokens of a sampler as bytes of a match.
#include "grammar/constraint.h"

#include <stdatomic.h>
#include <stdlib.h>

struct frit_constraint {
    frit_grammar *grammar;
    frit_match match;
    uint32_t *mask;
    bool has_mask;   // it is that of the match as it is
    bool ended;      // by a token
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
    const frit_status status = frit_match_init(&c->match, grammar->automaton, 0);
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
    free(c->mask);
    free(c);
}

// A limit of the grammar: FRIT_E_LIMIT of a session is a full context.
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

frit_status frit_constraint_accept(frit_constraint *c, frit_token token)
{
    size_t n_read = 0;
    const frit_str piece = c->grammar->pieces[token];
    if (frit_match_is_final(&c->match) && is_end(c, token)) {
        c->ended = true;
        return FRIT_OK;
    }
    if (piece.len > 0 && !c->ended) FRIT_TRY(not_supported(frit_match_push(&c->match, piece.ptr, piece.len, &n_read)));
    if (piece.len == 0 || n_read < piece.len)
        return frit_fail(FRIT_E_INVALID, "token %d, '%.*s', does not fit the grammar", token,
                         (int)(piece.len < 64 ? piece.len : 64), piece.ptr);
    c->has_mask = false;
    return FRIT_OK;
}

bool frit_constraint_is_over(const frit_constraint *c)
{
    return c->ended || frit_match_is_over(&c->match);
}

int32_t frit_constraint_n_vocab(const frit_constraint *c)
{
    return c->grammar->n_vocab;
}
