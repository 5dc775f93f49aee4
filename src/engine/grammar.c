// SPDX-License-Identifier: MIT
// Grammars for a model's vocabulary. The trie of its tokens is made once, for the first grammar.
#include "engine/engine.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { WARM_NS = 50000000 };   // for the masks that are slow to make

// Tokens with a text of their own; marks are no text, whatever their name is.
static frit_str text_of(const frit_model *model, frit_token token)
{
    static const frit_str none = {"", 0};
    if (token >= model->vocab.n) return none;
    const unsigned char kind = model->vocab.entries[token].kind;
    const bool is_text = kind == FRIT_TOKEN_NORMAL || kind == FRIT_TOKEN_BYTE || kind == FRIT_TOKEN_USER;
    return is_text && !model->vocab.entries[token].is_end ? model->tokenizer->pieces[token] : none;
}

static frit_status make_trie(frit_model *model)
{
    const int32_t n = model->info.n_vocab;
    frit_str *pieces = malloc((size_t)n * sizeof *pieces);
    frit_token *ends = malloc((size_t)n * sizeof *ends);
    int32_t n_ends = 0;
    frit_status status = pieces && ends ? FRIT_OK : frit_fail_memory((size_t)n * sizeof *pieces, "the vocabulary");
    for (int32_t i = 0; status == FRIT_OK && i < n; i++) {
        pieces[i] = text_of(model, i);
        if (i < model->vocab.n && model->vocab.entries[i].is_end) ends[n_ends++] = i;
    }
    if (status == FRIT_OK) status = frit_token_trie_new(&model->trie, pieces, n, ends, n_ends);
    free(ends);
    if (status == FRIT_OK)
        model->trie_pieces = pieces;
    else
        free(pieces);
    return status;
}

static void release_model(void *model)
{
    frit_model_free(model);
}

static frit_status compile(frit_automaton **out, frit_str text, const frit_grammar_options *options)
{
    const frit_schema_options schema = {.any_order = options->any_order};
    switch (options->kind) {
    case FRIT_GRAMMAR_GBNF:
        return frit_gbnf_compile(out, text);
    case FRIT_GRAMMAR_SCHEMA:
        return frit_schema_compile(out, text, &schema);
    case FRIT_GRAMMAR_REGEX:
        return frit_regex_compile(out, text);
    }
    return frit_fail(FRIT_E_INVALID, "frit_grammar_new: the kind of a grammar is %d; expected 0 to 2",
                     (int)options->kind);
}

static frit_status prepare(frit_grammar *grammar, frit_model *model, frit_str text, const frit_grammar_options *options)
{
    FRIT_TRY(compile(&grammar->automaton, text, options));
    frit_lock_take(model->trie_lock);
    const frit_status status = model->trie ? FRIT_OK : make_trie(model);
    frit_lock_give(model->trie_lock);
    FRIT_TRY(status);
    grammar->trie = model->trie;
    grammar->pieces = model->trie_pieces;
    return frit_masks_new(&grammar->masks, grammar->automaton, grammar->trie, WARM_NS);
}

frit_status frit_grammar_new(frit_grammar **out, const frit_model *model, const char *text, size_t n_bytes,
                             const frit_grammar_options *options)
{
    static const frit_grammar_options defaults;
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(model);
    FRIT_REQUIRE(text);
    FRIT_REQUIRE_UNUSED(options);
    if (!model->tokenizer)
        return frit_fail(FRIT_E_UNSUPPORTED, "%s: has no vocabulary; a grammar needs one", model->info.path);
    frit_grammar *grammar = calloc(1, sizeof *grammar);
    if (!grammar) return frit_fail_memory(sizeof *grammar, "a grammar");
    atomic_init(&grammar->n_refs, 1);
    grammar->n_vocab = model->info.n_vocab;
    const frit_status status =
        prepare(grammar, (frit_model *)model, (frit_str){text, n_bytes}, options ? options : &defaults);
    if (status != FRIT_OK) {
        frit_grammar_free(grammar);
        return status;
    }
    grammar->owner = (frit_model *)model;   // counting is the only change
    grammar->release = release_model;
    frit_model_retain((frit_model *)model);
    *out = grammar;
    return FRIT_OK;
}
