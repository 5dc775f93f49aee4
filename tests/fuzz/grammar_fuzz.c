// SPDX-License-Identifier: MIT
// Any bytes as a grammar in GBNF, followed by a zero and a text, whose bytes are also tokens that the grammar may name.
// A grammar that compiles has no dead ends: as long as a text fits, some byte or token may follow, or the text may end.
#include "grammar/match.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static void require(bool good)
{
    if (!good) abort();
}

// Token i has the text of byte i; other names mean the token of their length.
static const char *find(const void *ctx, frit_str text, int32_t *id)
{
    (void)ctx;
    if (text.len > 0) *id = (int32_t)text.len;
    return *id < 256 ? NULL : "a byte";
}

static bool names_token(const frit_automaton *a, const frit_match *match, int token)
{
    for (int32_t i = 0; i < match->now.n; i++) {
        const frit_automaton_state *s = &a->states[match->now.items[i].state];
        for (int32_t k = 0; k < s->n_tokens; k++) {
            const frit_token_edge *e = &a->tokens[s->first_token + (uint32_t)k];
            if (token < 0 || (token >= e->low && token <= e->high)) return true;
        }
    }
    return false;
}

// With sanitizers the whole budget would be too slow for one input.
static bool is_enough(void *ctx)
{
    int *n = ctx;
    return --*n < 0;
}

static frit_status compile(frit_automaton **a, frit_str grammar)
{
    int n_looks = 200, rule;
    frit_rule_builder builder = {.budget = {.cancelled = is_enough, .ctx = &n_looks}};
    frit_status status = frit_gbnf_add(&builder, grammar, &(frit_token_names){NULL, find}, &rule);
    *a = NULL;
    if (status == FRIT_OK) status = frit_automaton_compile(a, &builder, rule);
    frit_builder_free(&builder);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    const uint8_t *zero = n_bytes > 0 ? memchr(bytes, 0, n_bytes) : NULL;
    const size_t n_grammar = zero ? (size_t)(zero - bytes) : n_bytes;
    frit_automaton *a;
    if (compile(&a, (frit_str){(const char *)bytes, n_grammar}) != FRIT_OK) {
        require(frit_error()[0] != 0 && a == NULL);
        return 0;
    }
    frit_match match;
    require(frit_match_init(&match, a, 2) == FRIT_OK);
    for (size_t i = n_grammar + 1; i < n_bytes; i++) {
        bool fits;
        uint64_t next[4];
        frit_match_bytes(&match, next);
        const bool may_follow = (next[0] | next[1] | next[2] | next[3]) != 0 || names_token(a, &match, -1);
        const bool expected = (next[bytes[i] / 64] >> (bytes[i] % 64) & 1) || names_token(a, &match, bytes[i]);
        require(frit_match_is_final(&match) || may_follow);
        if (frit_match_push_token(&match, bytes[i], (frit_str){(const char *)bytes + i, 1}, &fits) != FRIT_OK) break;
        require(fits == expected);
        if (fits && bytes[i] == 'p') require(frit_match_pop(&match, 1) == FRIT_OK);
    }
    frit_match_deinit(&match);
    frit_automaton_free(a);
    return 0;
}
