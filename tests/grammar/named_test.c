// SPDX-License-Identifier: MIT
// Tokens that a GBNF grammar names: which sequences of tokens match, agreement of masks, and refusals.
#include "grammar/check.h"

#include "grammar/mask.h"

enum { END = 9, N_VOCAB = 70 };   // the last word of a mask is not full

// Token 5 is special: it has a name, but no text, and is not in the trie. Tokens without an entry have no text.
static const char *const pieces[N_VOCAB] = {"a", "b", "ab", "<t>", "</t>", "", "<", "t>", "aa", "", "c"};
static const char *const special = "<s>";

static const char *find(const void *ctx, frit_str text, int32_t *id)
{
    (void)ctx;
    if (text.len == 0) return *id < N_VOCAB && *id != END ? NULL : "the id of a token of the vocabulary";
    *id = frit_str_is(text, special) ? 5 : -1;
    for (int32_t i = 0; i < N_VOCAB && *id < 0; i++)
        if (pieces[i] && frit_str_is(text, pieces[i])) *id = i;
    return *id < 0 ? "the text of a token" : NULL;
}

static const frit_token_names names = {NULL, find};

typedef struct world {
    frit_str texts[N_VOCAB];
    frit_token_trie *trie;
    frit_automaton *a;
    frit_masks *masks;
    frit_match match;
} world;

static void begin(world *w, const char *grammar)
{
    for (int32_t i = 0; i < N_VOCAB; i++) w->texts[i] = frit_str_of(pieces[i] ? pieces[i] : "");
    assert_ok(frit_gbnf_compile(&w->a, frit_str_of(grammar), &names));
    assert_ok(frit_token_trie_new(&w->trie, w->texts, N_VOCAB, &(frit_token){END}, 1));
    frit_token_trie_name(w->trie, 5);
    assert_ok(frit_masks_new(&w->masks, w->a, w->trie, 0));
    assert_ok(frit_match_init(&w->match, w->a, 8));
}

static void end(world *w)
{
    frit_match_deinit(&w->match);
    frit_masks_free(w->masks);
    frit_token_trie_free(w->trie);
    frit_automaton_free(w->a);
}

static bool can_be_named(int32_t t)
{
    return t == 5 || (pieces[t] && pieces[t][0]);
}

// Checks that the mask has the tokens that fit. Tokens without a name fit a negation, but are in no mask.
static void check_mask(world *w, const char *grammar)
{
    uint32_t mask[(N_VOCAB + 31) / 32];
    assert_ok(frit_masks_get(w->masks, &w->match, mask));
    for (int32_t t = 0; t < N_VOCAB; t++) {
        bool fits;
        assert_ok(frit_match_push_token(&w->match, t, w->texts[t], &fits));
        if (fits) assert_ok(frit_match_pop(&w->match, 1));
        const bool expected = t == END ? frit_match_is_final(&w->match) : fits && can_be_named(t);
        if (expected != (mask[t / 32] >> (t % 32) & 1))
            fail_msg("%s: token %d %s", grammar, t, expected ? "fits, but is not in the mask" : "is in the mask");
    }
}

enum { STOP = -1 };

typedef struct sequence {
    int tokens[8];
    int n_fit;       // number of tokens that fit
    bool complete;   // the text may end after these
} sequence;

static const struct {
    const char *grammar;
    sequence sequences[8];   // ends with a sequence of zeros
} cases[] = {
    // The named token, not its text; a text may consist of any tokens, also of the special one's characters.
    {"root ::= <t> \"a\"",
     {{{3, 0, STOP}, 2, true}, {{6, STOP}, 0, false}, {{3, 2, STOP}, 1, false}, {{3, 8, STOP}, 1, false}}},
    {"root ::= \"<t>\" \"a\"", {{{3, 0, STOP}, 2, true}, {{6, 7, 0, STOP}, 3, true}}},
    {"root ::= <[5]> !<s>{1,2} <s>",
     {{{5, 5, STOP}, 1, false}, {{5, 2, 3, 5, STOP}, 4, true}, {{5, 0, 0, 0, STOP}, 3, false}, {{0, STOP}, 0, false}}},
    {"root ::= <t> think </t> .*\nthink ::= !</t>*",
     {{{3, 4, STOP}, 2, true}, {{3, 0, 6, 5, 4, 0, 8, STOP}, 7, true}, {{3, 4, 4, STOP}, 3, true}, {{4, STOP}, 0, 0}}},
    // One token may be read in both ways; each continues differently.
    {"root ::= <[2]> \"c\" | \"a\" \"b\" \"a\" | [ab]+ <[8]>",
     {{{2, 10, STOP}, 2, true},
      {{2, 0, STOP}, 2, true},
      {{0, 1, 0, STOP}, 3, true},
      {{0, 1, 10, STOP}, 2, false},
      {{2, 8, STOP}, 2, true},
      {{0, 0, 8, STOP}, 3, true}}},
    // Within a text no token can be named, and none begins in the middle of one.
    {"root ::= \"a\" <[1]>", {{{0, 1, STOP}, 2, true}, {{2, STOP}, 0, false}}},
    {"root ::= x* <[10]>\nx ::= \"(\" x \")\" | <[0]> | !<[0]> \"b\"",
     {{{0, 0, 10, STOP}, 3, true}, {{10, STOP}, 1, true}, {{10, 1, 10, STOP}, 3, true}, {{10, 10, STOP}, 1, true}}},
};

static void sequences_match_as_the_rules_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        for (size_t k = 0; cases[i].sequences[k].tokens[1] || cases[i].sequences[k].tokens[0]; k++) {
            const sequence *s = &cases[i].sequences[k];
            world w;
            int n = 0;
            begin(&w, cases[i].grammar);
            for (bool fits = true; s->tokens[n] != STOP && n < 8; n += fits) {
                check_mask(&w, cases[i].grammar);
                assert_ok(frit_match_push_token(&w.match, s->tokens[n], w.texts[s->tokens[n]], &fits));
                if (!fits) break;
            }
            if (n != s->n_fit || frit_match_is_final(&w.match) != s->complete)
                fail_msg("%s: sequence %zu: %d tokens fit, final: %d", cases[i].grammar, k, n,
                         frit_match_is_final(&w.match));
            check_mask(&w, cases[i].grammar);
            end(&w);
        }
    }
}

// Forced text stops before a named token, whose text is not text of the grammar.
static void named_tokens_are_not_forced_as_text(void **state)
{
    (void)state;
    world w;
    frit_buf text = {0};
    begin(&w, "root ::= \"a\" \"b\" (<t> | \"c\") \"a\"");
    assert_ok(frit_match_forced(&w.match, 100, &text));
    assert_int_equal(text.len, 2);
    assert_memory_equal(text.data, "ab", 2);
    frit_buf_free(&text);
    end(&w);
}

static void each_bad_name_has_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *grammar, *sentence;
    } bad[] = {
        {"root ::= <[70]>", "column 10: found '<[70]>'; expected the id of a token of the vocabulary"},
        {"root ::= <[9]>", "found '<[9]>'; expected the id of a token of the vocabulary"},
        {"root ::= <[99999999999999999999]>", "expected the id of a token"},
        {"root ::= \"a\" !<nothing>", "column 15: found '<nothing>'; expected the text of a token"},
        {"root ::= <[x]>", "expected the text of a token"},
        {"root ::= <[]>", "expected the text of a token"},
        {"root ::= <t", "found the end of the text; expected a closing > of a token"},
        {"root ::= <t\n>", "expected a closing > of a token"},
        {"root ::= !\"a\"", "found '\"a\"'; expected a token, as <[12]> or <think>, after !"},
        {"root ::= x\nx ::= x <t> | <t>", "left-recursive"},
    };
    for (size_t i = 0; i < FRIT_COUNT(bad); i++) {
        frit_automaton *a = NULL;
        assert_fails(frit_gbnf_compile(&a, frit_str_of(bad[i].grammar), &names), FRIT_E_INVALID, bad[i].sentence);
        assert_null(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_match_as_the_rules_say),
        cmocka_unit_test(named_tokens_are_not_forced_as_text),
        cmocka_unit_test(each_bad_name_has_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
